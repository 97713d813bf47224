"""Passwords in addresses are left out of everything that is printed, logged or written.

Redaction. What looks like a password counts as one, also in an address that is misspelled and
means nothing: rather too much is left out than too little.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from thinveil.errors import printable

_HEAD: Final = re.compile(r"\s*(?:--[\w-]+=)?\s*([A-Za-z][\w+.-]*)?(:/*|/{2,})")
"""How an address begins, also with a slash too few or as the value of an option."""
_AFAR: Final = re.compile(r"\s*(postgres(ql)?|mariadb|mysql|spark|https?)://", re.IGNORECASE)
_COLON: Final = re.compile(r":|%(?:25)*3a", re.IGNORECASE)
_AT: Final = re.compile(r"@|%(?:25)*40")
_EQUALS: Final = re.compile(r"=|%(?:25)*3d", re.IGNORECASE)
_BETWEEN: Final = re.compile(
    r"([?&;#]|(?<![=\s])\s+(?![\s=])|%(?:25)*(?:20|23|26|3b|3f))", re.IGNORECASE
)
"""What stands between the parameters of an address, also percent-encoded, and twice so."""
_PORTS: Final = re.compile(r"\d{0,5}(?:,[^:]*(?::\d{0,5})?)*")
_IN_BRACKETS: Final = re.compile(r"\[[^\]/]*\]")
_KEY: Final = re.compile(
    r"[\w.-]*(pass|pwd|\bpw\b|secret|token|credential|key|auth(?!or(?!iz))|signature|\bsig\b)[\w.-]*"
)
"""The name of a parameter that holds a secret."""
_BY_ITSELF: Final = re.compile(
    r"(?:^|[\s;&,])['\"]?(?:[\w.-]*pass(?:word|wd|phrase)|pwd)['\"]?\s*=", re.IGNORECASE
)
"""The name of a password that needs no address around it."""
_WITHIN: Final = re.compile(r"[A-Za-z][\w+.-]*:/{2}")
_NESTED: Final = re.compile(r"\s*['\"]?\s*dbname\s*=.*(?:=|:/)", re.IGNORECASE | re.DOTALL)
"""A database's name that libpq takes for an address of its own."""
_HARMLESS: Final = frozenset({
    "service", "user", "passfile", "channel_binding", "connect_timeout", "dbname", "host",
    "hostaddr", "port", "client_encoding", "options", "application_name",
    "fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval",
    "keepalives_count", "tcp_user_timeout", "sslmode", "sslnegotiation", "sslcompression",
    "sslcert", "sslkey", "sslcertmode", "sslrootcert", "sslcrl", "sslcrldir", "sslsni",
    "requirepeer", "require_auth", "min_protocol_version", "max_protocol_version",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "gssencmode", "krbsrvname",
    "gsslib", "gssdelegation", "replication", "target_session_attrs", "load_balance_hosts",
    "oauth_issuer", "oauth_client_id", "oauth_scope", "sslkeylogfile",
    "ssl_ca", "ssl_cert", "ssl_key", "unix_socket",
})  # fmt: skip
"""The parameters of addresses of PostgreSQL (libpq 18) and MariaDB that hold no secret; some name
files."""


def shown(address: str, mark: str = "") -> str:
    """Return an address without its password, for messages and for files.

    The name of a file that is there stays as it is.

    Args:
        address: What was given as an address, or as any other argument.
        mark: What stands in the place of a password before a host.

    >>> shown("postgresql://ann:se/cret@localhost/census?sslpassword=x&connect_timeout=2")
    'postgresql://ann@localhost/census?connect_timeout=2'
    """
    if not _AFAR.match(address) and _is_there(address):
        return address
    head = _HEAD.match(address)
    if head is None:
        if _describes(address):
            return _without_parameters(address)
        inner = _WITHIN.search(address)
        at = inner.start() if inner else len(address)
        return address[:at] + (shown(address[at:], mark) if inner else "")
    start, rest = address[: head.end()], _without_parameters(address[head.end() :])
    body, query = _split(rest)
    return start + _without_user(body, (head[1] or "").lower(), head[2], mark) + query


def missing(path: object) -> str:
    """Return the name of a file that is not there: it may be an address without its beginning."""
    name = str(path)
    if _is_there(name):
        return name
    head = _HEAD.match(name)
    return shown(name if head and "/" in head[2] else f"//{name}", ":***").removeprefix("//")


def redacted(text: str, arguments: Iterable[str]) -> str:
    """Return a text in which no argument of the command line stands with a password."""
    given = list(arguments)
    given += [each.partition("=")[2] for each in given if each.startswith("--") and "=" in each]
    for each in given:
        whole = Path(each)
        for form in (each, str(whole), str(whole.parent / whole.stem)):
            plain = missing(form)
            if plain != form:
                text = _replaced(text, form, plain)
    return text


def _replaced(text: str, form: str, plain: str) -> str:
    for spelled in (form, repr(form)[1:-1], printable(form)):
        text = text.replace(spelled, plain)
    return text


def _is_there(address: str) -> bool:
    """Tell whether it is the path of a file, or the address of a database in one."""
    try:
        scheme, _, path = address.partition("://")
        return os.path.exists(address) or (scheme.isalpha() and os.path.isfile(path))
    except ValueError:  # what holds a NUL is no path
        return False


def _split(rest: str) -> tuple[str, str]:
    """Return what stands before the parameters, and these, where they are a database's own."""
    body, mark, query = rest.partition("?")
    known = all(
        not each or (equals and (key in _HARMLESS or _is_secret(key)))
        for each in query.split("&")
        for key, equals, _ in (each.partition("="),)
    )
    return (body, mark + query) if mark and known else (rest, "")


def _without_user(body: str, scheme: str, between: str, mark: str) -> str:
    """Leave out what stands between the first colon and the last @; with no @, what is no port."""
    places = [each.start() for each in _AT.finditer(body)]
    if places:
        at = places[-1]
        if scheme in ("http", "https"):
            return body[at:]  # nobody is named there
        colon = _COLON.search(body, 0, at)
        return body if colon is None else body[: colon.start()] + mark + body[at:]
    remote = between.startswith(":/") and scheme not in ("duckdb", "sqlite", "file", "md")
    if not remote and not scheme.startswith(("post", "pg")):
        return body
    plain = _IN_BRACKETS.sub(lambda found: "x" * len(found[0]), body)
    colon = _COLON.search(plain)
    if colon is None or "/" in plain[: colon.start()] or "?" in plain[: colon.start()]:
        return body
    ports = re.split(r"[/?#]", plain[colon.end() :])[0]
    return body if _PORTS.fullmatch(ports) else body[: colon.start()] + mark


def _describes(text: str) -> bool:
    """Tell whether a text has parameters of a database: key=value, with or without a file."""
    if "?" in text or _BY_ITSELF.search(text) or _NESTED.match(text):
        return True
    keys = [each.partition("=")[0].strip() for each in text.split() if "=" in each]
    return len(keys) > 1 and not _HARMLESS.isdisjoint(keys)


def _without_parameters(text: str) -> str:
    """Leave out parameters with a secret, and what follows them up to one that is known."""
    first, *parts = _BETWEEN.split(text)
    kept, hidden = [first], False
    if _begins_secret(first):
        kept, hidden = [""], True
    for separator, piece in zip(parts[::2], parts[1::2], strict=True):
        key, equals, _ = piece.partition("=")
        if _begins_secret(piece):
            if not hidden:
                kept.append(separator)
            hidden = True
        elif hidden and not (equals and key.strip() in _HARMLESS and separator[0] != "%"):
            continue
        else:
            kept += [piece] if hidden else [separator, piece]
            hidden = False
    return "".join(kept)


def _begins_secret(piece: str) -> bool:
    """Tell whether a parameter begins with the name of a secret, be it percent-encoded."""
    found = _EQUALS.search(piece)
    secret = found is not None and _is_secret(piece[: found.start()])
    return secret or _NESTED.match(_decoded(piece)) is not None


def _is_secret(key: str) -> bool:
    key = _decoded(key).strip(" \t\r\n'\"").lower()
    return key not in _HARMLESS and _KEY.fullmatch(key) is not None


def _decoded(text: str) -> str:
    for _ in range(5):
        text = unquote(text)
    return text
