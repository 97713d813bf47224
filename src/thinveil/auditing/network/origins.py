"""Where a service is, in one spelling: what is shown and warned of is what the token goes to.

Origins (RFC 6454). Addresses that programs read in different ways are refused: a user before the
host, a backslash, spaces and controls, letters beyond ASCII.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from thinveil.errors import TargetError, UsageError
from thinveil.passwords import shown

TOKEN: Final = "THINVEIL_TOKEN"
"""The environment variable with an analyst's token."""

_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[\w-]{1,63}(?:\.[\w-]{1,63})*\.?))"
    r"(?::(?P<port>\d{0,5}))?(?P<path>/[!\"$->@-\[\]-~]*)?",
    re.IGNORECASE | re.ASCII,
)
"""An address; its path has no question mark, no fragment and no backslash."""
_PORTS: Final = {"http": 80, "https": 443}
_TOKEN: Final = re.compile(r"[!-~]+")  # what a header can hold


@dataclass(frozen=True, slots=True)
class Origin:
    """What a token belongs to: the way, the host in lower case, and the port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def warning(self) -> str:
        """What the user should know before a token goes there; empty where all is well."""
        if self.scheme == "https" or loopback(self.host):
            return ""
        return f"{self} is not https: your token and all answers can be read on the way"


def origin_and_path(url: str) -> tuple[Origin, str]:
    """Read the address of a service; its path is without the last slash.

    >>> origin, path = origin_and_path("HTTP://Agency.example:80/counts/")
    >>> str(origin), path
    ('http://agency.example', '/counts')

    Raises:
        UsageError: It is none, or one that not all programs read alike.
    """
    found = _ADDRESS.fullmatch(url.strip())
    scheme = found["scheme"].lower() if found else ""
    port = int(found["port"] or _PORTS[scheme]) if found else 0
    if found and 0 < port < 2**16 and (host := _host(found["host"], found["six"])):
        return Origin(scheme, host, port), (found["path"] or "").rstrip("/")
    if re.match(r"\s*https?://[^/\\]*[@?#]", url, re.IGNORECASE) or "?" in url or "#" in url:
        raise UsageError(
            "the address of a service has no user, password or question mark in it: the token "
            f"comes from {TOKEN}"
        )
    raise UsageError(
        f"the address of a service looks like http://127.0.0.1:8321, not {shown(url)!r}; letters "
        "beyond ASCII are written as in DNS (xn--...)"
    )


def _host(name: str | None, six: str | None) -> str:
    """Return the one spelling of a host; empty where it is an address that cannot be."""
    try:
        return name.lower() if name else str(ipaddress.IPv6Address(six or ""))
    except ValueError:
        return ""


def loopback(host: str) -> bool:
    """Tell whether a host is this machine, seen from itself."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def authorization(token: str, url: str) -> str:
    """Return the header's value that a token makes.

    Raises:
        TargetError: No header can hold it.
    """
    if not _TOKEN.fullmatch(token.strip()):
        raise unknown_token(url)
    return f"Bearer {token.strip()}"


def unknown_token(url: str) -> TargetError:
    """Return the error of a service that does not know the token."""
    return TargetError(
        f"{url} does not know the token: set {TOKEN} to the one that thinveil serve printed"
    )
