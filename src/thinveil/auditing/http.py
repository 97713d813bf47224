"""A target behind HTTP: carries batches to a service and brings the answers back.

Every batch has a key, so it can be sent again whenever a reply got lost: the service gives the
same answers and charges once. What may pass by itself is tried again, later and later.
"""

from __future__ import annotations

import hashlib
import logging
import random
import secrets
import time
import warnings
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from thinveil.auditing.network.origins import authorization, origin_and_path, unknown_token
from thinveil.auditing.targets import checked
from thinveil.errors import BudgetError, BudgetSpent, MissingExtra, TargetError
from thinveil.language.queries import Answers, Floats, QueryBatch
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.json import KEY, Asked

try:
    from thinveil.auditing.network import replies
    from thinveil.auditing.network.exchange import Failed, Faulty, Line, Received
except ImportError:
    raise MissingExtra("A target behind HTTP", "service") from None

PATIENCE: Final = 120.0
"""For how many seconds one request is tried again."""
FIRST_PATIENCE: Final = 5.0
"""The same before anything was asked: whoever gives a wrong address does not want to wait."""
_ONE_TRY: Final = 10.0
"""For how many seconds a reply is waited for where there is no patience at all."""
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_STAYS: Final = "Answers so far are kept; go on when it is back"
_CHECK: Final = "Check the address, and that the service is running"

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


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


class HttpTarget:
    """A service of `thinveil serve`, as a target.

    Args:
        url: The address of the service; nothing else ever gets the token.
        token: The analyst's token.
        patience: For how many seconds a request is tried again, and a reply may take in all,
            before the run ends. With 0 there is one try, of ten seconds.
        timeout: For how many seconds a single reply is waited for; as long as patience lasts,
            unless given.
        arrow: Whether batches travel as Arrow; wherever both sides can, unless given.
        sleep: How to wait, for tests.
        tell: What to do with a warning before the token is sent; a Python warning, unless given.

    Raises:
        TargetError: The service cannot be reached, or does not know the token.
        UsageError: The address is not one of a service.
    """

    remote: Final = True

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = PATIENCE,
        timeout: float | None = None,
        arrow: bool | None = None,
        sleep: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        origin, self._path = origin_and_path(url)
        self.url = f"{origin}{self._path}"
        self.trips = Trips()
        self._sleep = sleep
        self._shake = random.Random(secrets.randbits(64))
        self._line = Line(origin, authorization(token, self.url))
        self._longest = patience or _ONE_TRY
        self._timeout = self._longest if timeout is None else timeout
        self._patience = min(patience, FIRST_PATIENCE)
        if origin.warning:
            (tell or _warn)(origin.warning)
        try:
            told = self._exchange("GET", "/facts", None, replies.FACTS, replies.facts_of)
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
        return self._exchange("GET", "/ledger", None, replies.LEDGER, replies.ledger_of)

    def close(self) -> None:
        """Let go of the connection."""
        self._line.close()

    def _answered(self, asked: Asked) -> Floats:
        """Send a batch, or its two halves where it is too large."""
        body = self._body(asked)
        if body is None:
            halves = enumerate(_halves(asked.batch))
            parts = [self._answered(Asked(f"{asked.key}.{at}", half)) for at, half in halves]
            return np.concatenate(parts)
        kind = wire_arrow.MEDIA_TYPE if self._arrow else "application/json"
        most = replies.most_of(asked.batch)
        return self._exchange(
            "POST", "/answers", (body, kind), most, lambda got: replies.values_of(got, asked)
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
        self,
        method: str,
        path: str,
        body: tuple[bytes, str] | None,
        most: int,
        read: Callable[[Received], _T],
    ) -> _T:
        """Send a request until a usable reply comes back, or patience ends."""
        begun = time.monotonic()
        pause, attempt = _FIRST_PAUSE, 0
        while True:
            attempt += 1
            wait = 0.0
            started = time.monotonic()
            seconds = min(self._timeout, begun + self._longest - started)
            try:
                received = self._line.exchange(method, self._path + path, body, seconds, most)
                self.trips.sent += len(body[0]) if body else 0
                self.trips.received += len(received.body)
                if received.status == 200:
                    result = read(received)
                    self.trips.trips += 1
                    self.trips.milliseconds.append((time.monotonic() - started) * 1e3)
                    return result
                if received.status not in _PASSING:
                    self._refused(received)
                problem = f"it answers with status {received.status}"
                wait = replies.retry_after(received)
            except Failed as error:
                problem = str(error)
            except Faulty as error:
                raise self._unusable(attempt, str(error)) from None
            left = begun + self._patience - time.monotonic()
            wait = max(wait, pause * self._shake.uniform(0.5, 1.0))
            if wait > left:
                raise self._unusable(attempt, problem)
            self.trips.retries += 1
            _log.info("%s: %s; attempt %d in %.1f s", self.url, problem, attempt + 1, wait)
            self._sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _unusable(self, attempt: int, problem: str) -> TargetError:
        after = f"{self.url} could not be used, after {attempt} attempts: {problem}"
        return TargetError(f"{after}. {_STAYS if self.trips.trips else _CHECK}")

    def _refused(self, received: Received) -> NoReturn:
        """Say why the service refuses for good."""
        status = received.status
        said = replies.error_of(received)
        if status in (401, 403):
            raise unknown_token(self.url)
        if status == 402:
            raise BudgetSpent(f"the service refuses: {replies.quoted(said)}")
        if status == 422 and said.get("kind") == "epsilon":
            raise BudgetError(f"the service refuses: {replies.quoted(said)}")
        if status == 409:
            raise TargetError(
                f"{self.url} has answered another batch under this key; start a new run"
            )
        if 300 <= status < 400:
            raise TargetError(f"{self.url} sends elsewhere, and is not followed: give the address")
        raise TargetError(f"{self.url} refuses with status {status}: {replies.quoted(said)}")


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
