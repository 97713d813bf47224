"""How few questions there could be: what one answer tells at most, and how well a table packs."""

from __future__ import annotations

import lzma
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.attacker.findings import Found, TableFound
from thinveil.auditing.schedule import Schedule
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Bootstrap, Claim, Global, KLocal, Smooth
from thinveil.language.contracts import Law, Post
from thinveil.language.laws.cauchy import CAUCHY, Cauchy
from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes, batch_of
from thinveil.language.schema import MISSING
from thinveil.verdicts.judging.scoring import coarse
from thinveil.verdicts.limits.capacity import ORDERS, SMOOTH, of_a_bit, told_by
from thinveil.verdicts.limits.shortest_code import shortest

MOST_CELLS: Final = 2_000_000
"""A table of more cells is not packed: that would take longer than a few seconds."""

_SMALL: Final = 1e-3  # below this a rate's closed form is right to 1e-3, and an offset near none


@dataclass(frozen=True, slots=True)
class Bounds:
    """How few answers there could be, and how well the table packs.

    One answer tells 1 bit where it is the truth, log2(3) where it is 0, noise or 1, far less
    where it is always noisy; a little more where its loss is large. Where doubles were read, it
    tells apart all laws that it can follow, `by_doubles`: a bit more. Only the whole table is
    packed, unless it is too large to do so in passing.

    `questions` answers are a limit of this kind: whoever draws tables as the `code` believes,
    each as often as 2^-bits says, sees any attack find fewer than a share `chance` of them
    rightly with fewer answers than this formula gives. So no attack does better on tables
    like this one in general; on one table alone, one that guesses it does.
    """

    DERIVED: ClassVar = ("packed_by", "packed_bits")

    bits_an_answer: float
    questions_per_bit: float | None
    questions: int | None
    packed_bytes: int | None = None
    packed_left_out: str | None = None
    by_doubles: bool = False
    bits: float | None = None
    code: str | None = None
    chance: float | None = None

    @property
    def packed_bits(self) -> int | None:
        """The size of the packed table in bits."""
        return None if self.packed_bytes is None else 8 * self.packed_bytes

    @property
    def packed_by(self) -> str:
        """How the table was packed."""
        return "xz -9e, records sorted, stored by column"


@dataclass(frozen=True, slots=True)
class Given:
    """What bounds rest on besides the table.

    Args:
        claim: What the target says of itself.
        schedule: How the loss is shared out.
        outcomes: How many laws doubles tell apart; 0 where they were not read.
        chance: That of the tables which an attack may find with fewer answers.
        most_cells: A table of more is not packed.
    """

    claim: Claim
    schedule: Schedule
    outcomes: int = 0
    chance: float = 0.001
    most_cells: int = MOST_CELLS


def bounds_of(found: Found | None, bits: float | None, given: Given, truth: Dataset) -> Bounds:
    """Return the bounds for what was found, of a table that is at hand.

    Where doubles tell laws apart, the answer tells no more than which of them it is.
    """
    loss = largest_loss(given.schedule)
    most = bits_an_answer(given.claim, truth.records, loss)
    channel = tails(given.claim, truth.records, loss)
    if given.outcomes:
        most = math.log2(min(given.outcomes, truth.records + 1))
        channel = {math.inf: most}
    packed = reason = code = None
    if isinstance(found, TableFound):
        if truth.codes.size <= given.most_cells:
            packed = packed_bytes(truth, found)
        else:
            reason = f"the table has more than {given.most_cells:,} cells"
    if bits is not None:
        code = "own"
        if isinstance(found, TableFound) and whole(found, truth):
            bits, code = shortest(bits, found, truth, None if packed is None else 8 * packed)
    least = None if bits is None else fewest(bits, channel, given.chance)
    return Bounds(
        bits_an_answer=most,
        questions_per_bit=1 / most if most > 1e-300 else None,
        questions=least,
        packed_bytes=packed,
        packed_left_out=reason,
        by_doubles=given.outcomes > 0,
        bits=bits,
        code=code,
        chance=None if least is None else given.chance,
    )


def whole(found: TableFound, truth: Dataset) -> bool:
    """Tell whether every value of every record was found, rightly or not."""
    deep = len(found.columns) == len(truth.schema) and bool(
        (found.known >= len(truth.schema)).all()
    )
    return deep and (found.distinct or int(found.counts.sum()) == truth.records)


def fewest(bits: float, channel: Mapping[float, float], chance: float) -> int | None:
    """Return how many answers say so many bits, but for a chance; None if no number can be said.

    For order a and a limit C on what an answer tells at that order, whoever asks m questions
    finds tables rightly that have more than C m + s + s/(a - 1) bits with a chance of at most
    2 * 2^-s: a code can say that few of them (Kraft), and answers that tell more than C m +
    s/(a - 1) bits are that rare (Markov, whatever was asked and when it ended). Of order infinity
    an answer never tells more than C: there s bits are all.
    """
    most = 0.0
    for order, told in channel.items():
        if told <= 1e-300:
            return None
        s = -math.log2(chance)
        spare = s if math.isinf(order) else (s + 1) * (1 + 1 / (order - 1))
        most = max(most, (bits - spare) / told)
    return math.ceil(most) or None


def largest_loss(schedule: Schedule) -> float:
    """Return the largest loss that an answer can have: shares only ever shrink."""
    stamp = schedule.stamp(batch_of([([{0: (0, 1)}], 0)]), 0)
    return 0.0 if stamp is None else float(np.max(stamp))


def bits_an_answer(claim: Claim, records: int, loss: float) -> float:
    """Bound how many bits one answer can tell, from above (capacity).

    The bound is on the channel from a count to its answer, over all ways to choose counts. An
    answer that is exact or drowned in noise has three outcomes; which side of the threshold
    the noise is centred on tells more only at a large loss. Where there is always noise, the
    scales and sides are weighed by Blahut and Arimoto. Rounding never adds anything.

    >>> from thinveil.language.claims import claim_named, idp
    >>> round(bits_an_answer(idp(), 100, 1e-10), 3)
    1.585
    >>> round(bits_an_answer(claim_named("idp-noisy"), 100, 1e-10), 3)
    0.078
    """
    law = claim.noise
    if law is None:
        return 1.0
    most = math.log2(records + 1)
    if claim.post == "binary" and not law.silent:
        most = min(most, 1.0)
    if isinstance(claim.sensitivity, Smooth) and isinstance(law, Cauchy):
        return min(most, _smooth(records, claim.offset, loss))
    if not isinstance(claim.sensitivity, (Bootstrap, Global, KLocal)):
        cuts = claim.sensitivity.breakpoints(np.array([records // 2]), records)
        return min(most, math.log2(cuts.shape[1] + 1))  # one outcome for each law there is
    rate = loss / float(law.widen(loss))
    if isinstance(claim.sensitivity, Global):
        return min(most, *_sides(law, rate / (1.0 + claim.offset), claim.post))
    if claim.offset == 0:
        wide = min(_sides(law, rate, "none"))
        return min(most, math.log2(2 + math.pow(2, wide)))
    return min(most, *_always_noisy(law, rate, claim.offset, claim.post))


def _sides(law: Law, rate: float, post: Post) -> Iterator[float]:
    """Bound what an answer at one scale tells of its side, in more than one way."""
    yield law.bits(rate)
    if type(law) in SMOOTH and rate > _SMALL:
        yield told_by(law, ((False, 1 / rate), (True, 1 / rate))).bits
    if post == "binary" and type(law) in SMOOTH:
        yield of_a_bit(float(law.tail(0.5, rate)))


def _always_noisy(law: Law, rate: float, offset: float, post: Post) -> Iterator[float]:
    """Bound what an answer tells whose noise has two scales, in more than one way."""
    far, near = offset / rate, (1 + offset) / rate
    told = [min(_sides(law, 1 / each, "none")) for each in (far, near)]
    yield math.log2(sum(math.pow(2, each) for each in told))  # had it told its scale as well
    side = 1 - 2 * float(law.tail(0.5, rate / offset))
    yield law.distance(far, near) + side + law.bits(rate / offset)
    if type(law) in SMOOTH and offset > _SMALL:
        yield told_by(law, ((False, far), (False, near), (True, near), (True, far))).bits
    if post == "binary" and type(law) in SMOOTH:
        yield of_a_bit(float(law.tail(0.5, 1 / far)))


def tails(claim: Claim, records: int, loss: float) -> Mapping[float, float]:
    """Bound what an answer tells at several orders, infinity first: then it never tells more.

    Of order infinity it is log2 of the sum over answers of the largest chance that any count
    gives them (maximal leakage).
    """
    law = claim.noise
    if law is None:
        return {math.inf: 1.0}
    most = math.log2(records + 1)
    if claim.post == "binary" and not law.silent:
        most = min(most, 1.0)
    if not isinstance(claim.sensitivity, (Bootstrap, Global, KLocal)):
        return {math.inf: min(most, bits_an_answer(claim, records, math.inf))}
    rate = loss / float(law.widen(loss))
    if isinstance(claim.sensitivity, Global):
        rate /= 1.0 + claim.offset
        return {math.inf: min(most, math.log2(1 + _apart(law, rate))), **_orders(law, rate)}
    if claim.offset == 0:
        return {math.inf: min(most, math.log2(3 + _apart(law, rate)))}
    far, near = rate / claim.offset, rate / (1 + claim.offset)
    larger = 1 + law.distance(1 / far, 1 / near) + _apart(law, far) + _apart(law, near)
    told = {math.inf: min(most, math.log2(larger))}
    if type(law) in SMOOTH and claim.offset > _SMALL:
        laws = ((False, 1 / far), (False, 1 / near), (True, 1 / near), (True, 1 / far))
        told |= dict(zip(ORDERS, told_by(law, laws).orders, strict=True))
    return told


def _apart(law: Law, rate: float) -> float:
    """Return how far answers to both sides are apart: total variation."""
    return max(0.0, 1 - 2 * float(law.tail(0.5, rate)))


def _orders(law: Law, rate: float) -> Mapping[float, float]:
    """Bound what an answer at one scale tells of its side, at each order.

    From the law halfway, which no answer is more than rate / 2 nats off: order * rate^2 / 8 nats
    (Bun and Steinke 2016, proposition 3.3; for Gaussian noise it is equal).
    """
    if type(law) not in SMOOTH:
        return {}
    told = {order: order * rate * rate / (8 * math.log(2)) for order in ORDERS}
    if rate > _SMALL:
        sharp = told_by(law, ((False, 1 / rate), (True, 1 / rate))).orders
        told = {order: min(told[order], each) for order, each in zip(ORDERS, sharp, strict=True)}
    return told


def _smooth(records: int, offset: float, loss: float) -> float:
    """Bound what Cauchy noise of any scale lets through: by the distance from one law."""
    far = loss / CAUCHY * records
    if far > 700:
        return math.inf
    scales = [CAUCHY * (each + offset) / loss for each in (math.exp(-far), 1.0)]
    middle = math.sqrt(scales[0]) * math.sqrt(scales[1])
    return max(
        math.log1p(((each - 1) ** 2 + (0.5 / middle) ** 2) / (4 * each)) / math.log(2)
        for each in (scales[0] / middle, scales[1] / middle)
    )


def packed_bytes(truth: Dataset, found: TableFound | None = None) -> int:
    """Return the size of a table packed by xz -9e, its records sorted, column after column.

    Every column is stored in as few whole bytes a value as its values need. Of what was found,
    the precision is taken, and different records alone where it names no others.
    """
    codes = truth.codes
    if found is not None:
        widths = dict(zip(found.columns, found.widths, strict=True))
        codes = coarse(codes, tuple(widths[column] for column in range(codes.shape[1])))
    if found is not None and found.distinct:
        codes = Different.of(codes).rows
    codes = codes[np.lexsort(codes.T[::-1])]
    raw = b"".join(_stored(codes[:, column]) for column in range(codes.shape[1]))
    # a dictionary as large as the data packs as well as the usual one of 64 MB, and costs less
    extreme = {"preset": 9 | lzma.PRESET_EXTREME, "dict_size": max(4096, len(raw))}
    return len(lzma.compress(raw, filters=[{"id": lzma.FILTER_LZMA2, **extreme}]))


def _stored(column: Codes) -> bytes:
    """Return a column as whole numbers from 0, little end first; a missing value is 0."""
    gone = column == MISSING
    there = column[~gone]
    lowest = int(there.min()) - int(gone.any()) if len(there) else 0
    numbers = np.where(gone, 0, np.where(gone, 0, column) - lowest)
    most = int(numbers.max())
    width = next(width for width in (1, 2, 4, 8) if most < 256**width)
    return numbers.astype(f"<u{width}").tobytes()
