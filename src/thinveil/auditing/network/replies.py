"""What a service says in its replies, read with care: it may be anybody's, and may say anything."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final

from thinveil.auditing.network.exchange import Failed, Received
from thinveil.errors import FieldError, TargetError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Floats, QueryBatch
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_from_plain
from thinveil.language.wire.json import KEY, Asked, Reply
from thinveil.language.wire.limits import Limits

FACTS: Final = 2**25
"""The most bytes of /facts: more than a million categories."""
LEDGER: Final = 2**16
"""The most bytes of /ledger."""
_ROOM: Final = 2**16
_AN_ANSWER: Final = 64
"""Bytes of JSON for an answer: 24 of the longest double, brackets, and indents if there are any."""
_PARTS: Final = 2**12
_FACTS_PARTS: Final = 2**22
_PARTS_OF_ANSWER: Final = 4
"""Commas and brackets of JSON for an answer: each of them may take 100 bytes once it is read."""
_MOST_SAID: Final = 300
_MOST_LEFT: Final = 1e300
_LONGEST_EXACT: Final = 4000
_UNREADABLE: Final = "its replies cannot be read"


def most_of(batch: QueryBatch) -> int:
    """Return the most bytes that the answers to a batch can have, as JSON or as Arrow."""
    return _ROOM + _AN_ANSWER * batch.queries


def facts_of(received: Received) -> tuple[PublicFacts, str, Limits, bool]:
    """Read what is public; whose service it is, how much it takes, whether it speaks Arrow."""
    plain = _plain(received.body, _FACTS_PARTS)
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


def values_of(received: Received, asked: Asked) -> Floats:
    """Read the answers to a batch."""
    kind = received.headers.get("content-type", "").partition(";")[0]
    code: Any = wire_arrow if kind == wire_arrow.MEDIA_TYPE else wire
    if code is wire:
        _check_parts(received.body, _PARTS + _PARTS_OF_ANSWER * asked.batch.queries)
    try:
        reply: Reply = code.decode_reply(received.body)
    except FieldError:
        raise Failed(_UNREADABLE) from None
    if reply.key != asked.key or len(reply.values) != asked.batch.queries:
        raise Failed("its replies do not belong to what was asked")
    return reply.values


def ledger_of(received: Received) -> dict[str, Any]:
    """Read how an account stands: budget, spent, left, batches, answers, and some of it exactly."""
    plain = _plain(received.body, _PARTS)
    try:
        found: dict[str, Any] = {name: float(plain[name]) for name in ("budget", "spent", "left")}
        if not all(map(math.isfinite, found.values())):
            raise ValueError
        found |= {name: int(plain[name]) for name in ("batches", "answers")}
        exact = {name: str(text) for name, text in dict(plain.get("exact", {})).items()}
        return {**found, "exact": {name: exact[name][:_LONGEST_EXACT] for name in exact}}
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise TargetError("the service's ledger is not understood") from None


def error_of(received: Received) -> Mapping[str, Any]:
    """Return what a service says of an error, as far as it can be read."""
    with suppress(Failed):
        said = _plain(received.body, _PARTS).get("error")
        return said if isinstance(said, dict) else {}
    return {}


def quoted(said: Mapping[str, Any]) -> str:
    """Return a message from elsewhere, fit to be shown; with what is left of a budget, if said."""
    message, left = said.get("message"), said.get("left", math.inf)
    text = message[:_MOST_SAID] if isinstance(message, str) else "it gives no reason"
    fit = "".join(character if character.isprintable() else " " for character in text)
    told = isinstance(left, int | float) and abs(left) < _MOST_LEFT
    return f"{fit} ({left:.10g} is left)" if told else fit


def retry_after(received: Received) -> float:
    """Read how long to wait: seconds, or a date; what cannot be read is no wait."""
    text = received.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _plain(body: bytes, parts: int) -> dict[str, Any]:
    _check_parts(body, parts)
    with suppress(ValueError, RecursionError):
        plain = json.loads(body)
        if isinstance(plain, dict):
            return plain
    raise Failed(_UNREADABLE)


def _check_parts(body: bytes, most: int) -> None:
    """Refuse JSON of more commas and brackets than a reply can have: small parts take much room."""
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > most:
        raise Failed(_UNREADABLE)
