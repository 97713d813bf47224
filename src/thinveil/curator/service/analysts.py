"""Who may ask: analysts with tokens and budgets of their own.

A token is 256 random bits, so its plain hash can be kept: nobody can guess what was hashed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

from thinveil.errors import UsageError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_MOST_DIGITS: Final = 400


@dataclass(frozen=True, slots=True)
class Analyst:
    """Somebody who may ask, up to a budget."""

    number: int  # the place in the ledger
    name: str  # what logs and the operator call them
    seal: bytes = field(repr=False)  # the hash of their token
    budget: Fraction  # the claimed loss that all their answers together may reach


def new_token() -> str:
    """Return a fresh secret token."""
    return f"thinveil-{secrets.token_urlsafe(32)}"


def seal_of(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=32).digest()


def who_has(token: str, analysts: Iterable[Analyst]) -> Analyst | None:
    """Return the analyst with this token; it takes equally long whoever that is."""
    seal = seal_of(token)
    found = [each for each in analysts if hmac.compare_digest(seal, each.seal)]
    return found[0] if found else None


def analyst_named(text: str) -> tuple[str, Fraction]:
    """Read NAME=BUDGET.

    >>> analyst_named("ada=0.25")
    ('ada', Fraction(1, 4))
    """
    name, equals, budget = text.partition("=")
    if not equals:
        raise UsageError(f"--analyst {text}: write NAME=BUDGET, such as ada=0.5")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be an analyst's name: use 1 to 64 letters, digits and _ . @ -"
        )
    return name, budget_of(budget, f"--analyst {name}")


def budget_of(text: str, what: str) -> Fraction:
    """Read a budget exactly."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0 or abs(number.adjusted()) > _MOST_DIGITS:
        raise UsageError(f"{what}: a budget must be a number above zero")
    return Fraction(number)


class Bucket:
    """Lets so many requests a second through, and as many at once after a pause.

    A token bucket: `left` may come at once, as of the time `seen`.
    """

    def __init__(self, rate: float) -> None:
        self.rate, self.left, self.seen = rate, max(rate, 1.0), time.monotonic()

    def wait(self, now: float | None = None) -> float:
        """Take one request through and return 0, or return how many seconds it is too early."""
        now = time.monotonic() if now is None else now
        self.left = min(max(self.rate, 1.0), self.left + (now - self.seen) * self.rate)
        self.seen = now
        if self.left < 1:
            return (1 - self.left) / self.rate
        self.left -= 1
        return 0.0
