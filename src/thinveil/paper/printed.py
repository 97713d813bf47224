"""The paper followed to the letter: its lemmas, algorithms and formulas as printed.

No attack uses this. It is here so that errata can be executed; `docs/errata.md` has what is right,
by number, and `thinveil.paper.lessons_printed` shows both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from thinveil.paper.theory.functions import Threshold


@dataclass(frozen=True, slots=True)
class Failure:
    """A case in which Lemma boundary as printed says a wrong count (erratum 15)."""

    n: int
    k: int
    c: int
    b: int
    said: int


def boundary_failures(most: int) -> Iterator[Failure]:
    """Return where Lemma boundary as printed fails, of all tables of 2k to so many records.

    It takes any integer as a threshold, also those that are answered without looking.

    >>> next(each for each in boundary_failures(3) if each.n == 3 and each.c == 3)
    Failure(n=3, k=1, c=3, b=3, said=2)
    """
    for n in range(1, most + 1):
        for k in range(1, n // 2 + 1):
            for c in range(n + 1):
                data = (True,) * c + (False,) * (n - c)
                moves = {b: Threshold(bool, b).k_local(data, k) for b in range(-k - 2, n + k + 3)}
                for b in range(-k - 1, n + k + 2):
                    if moves[b] == 0:
                        upper = [b - k] * (moves[b - 1] == 1)
                        lower = [b + k + 1] * (moves[b + 1] == 1)
                        yield from (Failure(n, k, c, b, s) for s in upper + lower if s != c)


def seen(data: Sequence[int], k: int, u: int, v: int, b: int) -> int | None:
    """Return what shows of "are there more than b in [u, v)?": the exact bit, or None for noise.

    The universe is unbounded: only an empty range can hold nobody.
    """
    query = Threshold(lambda value: u <= value < v, b, varies=u < v)
    return None if query.k_local(data, k) else int(query(data)[0])


def count_reconstruct(data: Sequence[int], k: int, u: int, v: int) -> tuple[int, int]:
    """Follow Algorithm 1 as printed; return the count and the number of answers (erratum 10)."""
    before = seen(data, k, u, v, 0)
    for b in range(1, len(data)):
        answer = seen(data, k, u, v, b)
        if answer is None and before is not None:
            return b - 1 + k + 1, b + 1
        if answer is not None and before is None:
            return b - k, b + 1
        before = answer
    return k, len(data)


@dataclass(frozen=True, slots=True)
class Walk:
    """What Algorithm 2 as printed finds, from how many counts and answers, and whether it ends."""

    values: tuple[int, ...]
    counts: int
    answers: int
    ended: bool

    def spent(self, records: int, share: Fraction) -> Fraction:
        """Return its claimed loss, where a count gives each answer its share over n."""
        return self.answers * share / records


def column_reconstruct(data: Sequence[int], k: int, lower: int, upper: int) -> Walk:
    """Follow Algorithm 2 as printed, with steps of 1, from public bounds (errata 10 and 16).

    Below the lower bound it would go on for ever: there it is stopped.

    >>> column_reconstruct([31, 30, 5], 1, 0, 31).values
    (30, 30, 5)
    """
    values: list[int] = []
    left, v, counts, answers = len(data), upper, 0, 0
    while left and v >= lower:
        v -= 1
        count, asked = count_reconstruct(data, k, lower, v)
        counts, answers = counts + 1, answers + asked
        if count != left:
            values += [v] * (left - count)
            left = count
    return Walk(tuple(values), counts, answers, not left)


def halved(first: Fraction, answers: int) -> Fraction:
    """Return what the printed schedule spends: the first share, then half of it, ... (erratum 6).

    >>> halved(Fraction(1), 3)
    Fraction(7, 4)
    """
    return sum((first / 2**each for each in range(answers)), Fraction(0))


def psi(answers: Sequence[Fraction], epsilon: Fraction, literally: bool = False) -> Fraction:
    """Return psi_m of m answers at epsilon / m each, exactly: the sample variance, scaled.

    Literally, the answers are centred on (z_1 + z_m) / m (errata 4 and 19).
    """
    m = len(answers)
    nothing = Fraction(0)
    centre = (answers[0] + answers[-1] if literally else sum(answers, nothing)) / m
    squares = sum(((each - centre) * (each - centre) for each in answers), nothing)
    return epsilon * epsilon / (m * m) * squares / (m - 1)


def literal_mean(m: int, shift: Fraction = Fraction(0)) -> Fraction:
    """Return the mean of psi_m as printed, for noise of scale 1 and epsilon mu / m = shift.

    For the right one it is 2, whatever m and the shift.

    >>> float(literal_mean(10))
    2.1777777777777776
    """
    moved = shift * (1 - Fraction(2, m))
    return (2 * (m - Fraction(2, m)) + m * moved * moved) / (m - 1)
