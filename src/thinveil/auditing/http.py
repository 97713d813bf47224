"""A target behind HTTP: carries batches to a service and brings the answers back.

Every batch has a key, so it can be sent again whenever a reply got lost: the service gives the
same answers and charges once. What may pass by itself is tried again, later and later.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import random
import re
import secrets
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import numpy as np

from thinveil.auditing.targets import checked
from thinveil.errors import (
    BudgetError,
    BudgetSpent,
    FieldError,
    MissingExtra,
    TargetError,
    UsageError,
)
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Floats, QueryBatch
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_from_plain
from thinveil.language.wire.json import KEY, Asked, Limits, Reply

PATIENCE: Final = 120.0
"""For how many seconds one request is tried again."""
FIRST_PATIENCE: Final = 5.0
"""The same before anything was asked: whoever gives a wrong address does not want to wait."""

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_MOST_SAID: Final = 300
_KEPT: Final = "Answers so far are kept; go on when it is back"
_CHECK: Final = "Check the address, and that the service is running"
_TOKEN: Final = re.compile(r"[!-~]+")  # what a header can hold

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Trips:
    """Requests that brought a usable reply or had to be sent again; bytes of bodies; times."""

    trips: int = 0
    retries: int = 0
    sent: int = 0
    received: int = 0
    milliseconds: array[float] = field(default_factory=lambda: array("d"), repr=False)

    def to_plain(self) -> dict[str, float]:
        """Return the figures for a report; of the times, what half, most and all did not pass."""
        median, most, slowest = np.quantile(self.milliseconds or [0.0], (0.5, 0.95, 1.0)).tolist()
        return {
            "trips": self.trips,
            "retries": self.retries,
            "bytes_sent": self.sent,
            "bytes_received": self.received,
            "median_ms": round(median, 3),
            "p95_ms": round(most, 3),
            "slowest_ms": round(slowest, 3),
        }


class _Unusable(Exception):
    """A reply that cannot be used; the next one may be."""


class HttpTarget:
    """A service of `thinveil serve`, as a target.

    Args:
        url: The address of the service.
        token: The analyst's token.
        patience: For how many seconds a request is tried again before the run ends.
        timeout: For how many seconds a single reply is waited for.
        arrow: Whether batches travel as Arrow; wherever both sides can, unless given.
        sleep: How to wait, for tests.

    Raises:
        TargetError: The service cannot be reached, or does not know the token.
        UsageError: The address is not one of a service.
        MissingExtra: httpx is not installed.
    """

    remote: Final = True

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = PATIENCE,
        timeout: float = 120.0,
        arrow: bool | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("A target behind HTTP", "service") from None
        self.url, self._host = _address(url)
        self.trips = Trips()
        self._httpx = httpx
        self._sleep = sleep
        self._shake = random.Random(secrets.randbits(64))
        if not _TOKEN.fullmatch(token.strip()):
            raise _unknown_token(self.url)
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token.strip()}", "Accept-Encoding": "identity"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            follow_redirects=False,
            trust_env=not loopback(self._host),
        )
        self._patience = min(patience, FIRST_PATIENCE)
        try:
            told = self._exchange("GET", "/facts", None, "", _facts)
        except BaseException:
            self.close()
            raise
        self.facts, self.fingerprint, self._limits, speaks = told
        self._patience = patience
        can = find_spec("pyarrow") is not None
        self._arrow = speaks and can if arrow is None else arrow
        _log.info("%s answers; batches travel as %s", self.url, "Arrow" if self._arrow else "JSON")

    def __repr__(self) -> str:
        return f"HttpTarget({self.url!r})"

    @property
    def warning(self) -> str:
        """What the user should know about the way to the service; empty where all is well."""
        if self.url.startswith("https:") or loopback(self._host):
            return ""
        return f"{self.url} is not https: your token and all answers can be read on the way"

    def answer(self, batch: QueryBatch) -> Answers:
        """Answer a stamped batch, in parts where it is larger than the service takes at once.

        Raises:
            BudgetSpent: The service refuses the batch, or the rest of it: the budget is spent.
            BudgetError: The service refuses the share of an answer.
            TargetError: The service failed for too long, or does not understand.
        """
        return checked(self._answered(Asked(_key(batch), batch)), batch, self.facts.claim)

    def ledger(self) -> dict[str, Any]:
        """Ask how the analyst's account stands: budget, spent, left, batches, answers."""
        return self._exchange("GET", "/ledger", None, "", _plain)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _answered(self, asked: Asked) -> Floats:
        """Send a batch, or its two halves where it is too large."""
        body = self._body(asked)
        if body is None:
            halves = enumerate(_halves(asked.batch))
            parts = [self._answered(Asked(f"{asked.key}.{at}", half)) for at, half in halves]
            return np.concatenate(parts)
        kind = wire_arrow.MEDIA_TYPE if self._arrow else "application/json"
        return self._exchange(
            "POST", "/answers", body, kind, lambda response: _values(response, asked)
        )

    def _body(self, asked: Asked) -> bytes | None:
        """Return a batch as it travels; None where the service does not take it at once."""
        batch, limits = asked.batch, self._limits
        few = batch.queries <= limits.answers and len(batch.cell) <= limits.boxes
        if not few or _pairs(batch) > limits.pairs:
            return None
        if self._arrow:
            body, most = bytes(wire_arrow.encode_batch(asked)), limits.body
        else:
            body, most = wire.encode_batch(asked, self.facts.schema), limits.json
        return body if len(body) <= most else None

    def _exchange(
        self, method: str, path: str, body: bytes | None, kind: str, read: Callable[[Any], _T]
    ) -> _T:
        """Send a request until a usable reply comes back, or patience ends."""
        headers = {"Content-Type": kind} if kind else {}
        deadline = time.monotonic() + self._patience
        pause, attempt = _FIRST_PAUSE, 0
        while True:
            attempt += 1
            wait = 0.0
            started = time.perf_counter()
            try:
                where = self.url + path
                response = self._client.request(method, where, content=body, headers=headers)
                self.trips.sent += len(body or b"")
                self.trips.received += len(response.content)
                if response.status_code == 200:
                    result = read(response)
                    self.trips.trips += 1
                    self.trips.milliseconds.append((time.perf_counter() - started) * 1e3)
                    return result
                if response.status_code not in _PASSING:
                    self._refused(response)
                problem = f"it answers with status {response.status_code}"
                wait = _retry_after(response.headers.get("retry-after", ""))
            except _Unusable as error:
                problem = str(error)
            except self._httpx.HTTPError as error:
                problem = f"{type(error).__name__}"
            except self._httpx.InvalidURL:
                raise UsageError(f"{self.url} is not the address of a service") from None
            left = deadline - time.monotonic()
            wait = max(wait, pause * self._shake.uniform(0.5, 1.0))
            if wait > left:
                after = f"{self.url} could not be used, after {attempt} attempts: {problem}"
                raise TargetError(f"{after}. {_KEPT if self.trips.trips else _CHECK}")
            self.trips.retries += 1
            _log.info("%s: %s; attempt %d in %.1f s", self.url, problem, attempt + 1, wait)
            self._sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _refused(self, response: Any) -> NoReturn:
        """Say why the service refuses for good."""
        status = response.status_code
        said = _error(response)
        if status in (401, 403):
            raise _unknown_token(self.url)
        if status == 402:
            left = said.get("left")
            rest = f" ({left:.10g} is left)" if isinstance(left, int | float) else ""
            raise BudgetSpent(f"the service refuses: {_quoted(said)}{rest}")
        if status == 422 and said.get("kind") == "epsilon":
            raise BudgetError(f"the service refuses: {_quoted(said)}")
        if status == 409:
            raise TargetError(
                f"{self.url} has answered another batch under this key; start a new run"
            )
        if 300 <= status < 400:
            raise TargetError(f"{self.url} sends elsewhere, and is not followed: give the address")
        raise TargetError(f"{self.url} refuses with status {status}: {_quoted(said)}")


def _address(url: str) -> tuple[str, str]:
    """Return an address without its last slash, and its host."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(f"the address of a service looks like http://127.0.0.1:8321, not {url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError(
            "the address of a service has no user, password or question mark in it: the token "
            "comes from THINVEIL_TOKEN"
        )
    return url.strip().rstrip("/"), host


def loopback(host: str) -> bool:
    """Tell whether a host is this machine, seen from itself."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def _unknown_token(url: str) -> TargetError:
    return TargetError(
        f"{url} does not know the token: set THINVEIL_TOKEN to the one that thinveil serve printed"
    )


def _facts(response: Any) -> tuple[PublicFacts, str, Limits, bool]:
    """Read what is public out of a reply."""
    plain = _plain(response)
    try:
        service, limits = plain["service"], plain["limits"]
        facts = facts_from_plain(plain)
        sizes = [limits[f"largest_{what}"] for what in ("batch", "boxes", "body", "json", "pairs")]
        if any(type(size) is not int or size < 1 for size in sizes) or plain["format"] != 1:
            raise ValueError
        if not isinstance(service, str) or not KEY.fullmatch(service):
            raise ValueError
        return facts, f"service:{service}", Limits(*sizes), limits.get("arrow") is True
    except FieldError as error:
        raise TargetError(f"the service is not understood: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TargetError(
            "what answers there is not a thinveil service that this version understands"
        ) from None


def _values(response: Any, asked: Asked) -> Floats:
    """Read the answers to a batch out of a reply."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    code: Any = wire_arrow if kind == wire_arrow.MEDIA_TYPE else wire
    try:
        reply: Reply = code.decode_reply(response.content)
    except FieldError:
        raise _Unusable("its replies cannot be read") from None
    if reply.key != asked.key or len(reply.values) != asked.batch.queries:
        raise _Unusable("its replies do not belong to what was asked")
    return reply.values


def _plain(response: Any) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        plain = response.json()
        if isinstance(plain, dict):
            return plain
    raise _Unusable("its replies cannot be read")


def _error(response: Any) -> dict[str, Any]:
    """Return what a service says of an error, as far as it can be read."""
    with suppress(_Unusable):
        said = _plain(response).get("error")
        return said if isinstance(said, dict) else {}
    return {}


def _quoted(said: dict[str, Any]) -> str:
    """Return a message from elsewhere, fit to be shown."""
    text = str(said.get("message", "it gives no reason"))[:_MOST_SAID]
    return "".join(character if character.isprintable() else " " for character in text)


def _retry_after(text: str) -> float:
    """Read how long to wait: seconds, or a date."""
    with suppress(ValueError):
        return max(0.0, float(int(text)))
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _key(batch: QueryBatch) -> str:
    """Return the text under which a batch is charged once."""
    if batch.key is None:
        return secrets.token_hex(12)
    key = f"{batch.key[0]}-{batch.key[1]}"
    if KEY.fullmatch(key) and len(key) <= 100:
        return key
    return hashlib.blake2b(repr(batch.key).encode(), digest_size=16).hexdigest()


def _pairs(batch: QueryBatch) -> int:
    """Return how many pairs of boxes the questions of a batch have, where there are unions."""
    if batch.offsets is None:
        return 0
    sizes = np.diff(batch.offsets)
    return int(np.dot(sizes, sizes))


def _halves(batch: QueryBatch) -> tuple[QueryBatch, QueryBatch]:
    """Split a batch in two: its questions, or the repeats of a single one.

    The halves depend on the batch alone, so the same keys always stand for the same parts.
    """
    if batch.questions > 1:
        first, second = np.array_split(np.arange(batch.questions), [batch.questions // 2])
        return batch.some(first), batch.some(second)
    repeats = int(np.max(batch.repeats))
    if repeats == 1:
        raise TargetError("a single question is larger than the service takes at once")
    few = repeats // 2
    return replace(batch, repeats=few), replace(batch, repeats=repeats - few)
