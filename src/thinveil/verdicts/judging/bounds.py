"""How few questions there could be: what one answer tells at most, and how well a table packs."""

from __future__ import annotations

import lzma
import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.attacker.findings import Found, TableFound
from thinveil.auditing.schedule import Schedule
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Bootstrap, Claim, Global, KLocal, Smooth
from thinveil.language.laws.cauchy import CAUCHY, Cauchy
from thinveil.language.queries import Codes, batch_of
from thinveil.language.schema import MISSING
from thinveil.verdicts.judging.scoring import coarse

MOST_CELLS: Final = 2_000_000
"""A table of more cells is not packed: that would take longer than a few seconds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no attack with the same beliefs can expect to beat, and what a packer makes of it.

    One answer tells 1 bit where it is the truth, log2(3) where it is 0, noise or 1, far less
    where it is always noisy; a little more where its loss is large. Where doubles were read, it
    tells apart all laws that it can follow, `by_doubles`: a bit more. A table that is more regular
    than the beliefs expect may still be found with fewer questions: it has fewer bits under
    better beliefs. Only the whole table is packed, unless it is too large to do so in passing.
    """

    DERIVED: ClassVar = ("packed_by", "packed_bits")

    bits_an_answer: float
    questions_per_bit: float | None
    questions: int | None
    packed_bytes: int | None = None
    packed_left_out: str | None = None
    by_doubles: bool = False

    @property
    def packed_bits(self) -> int | None:
        """The size of the packed table in bits."""
        return None if self.packed_bytes is None else 8 * self.packed_bytes

    @property
    def packed_by(self) -> str:
        """How the table was packed."""
        return "xz -9e, records sorted, stored by column"


def bounds_of(
    found: Found | None,
    bits: float | None,
    claim: Claim,
    schedule: Schedule,
    truth: Dataset,
    outcomes: int = 0,
    most_cells: int = MOST_CELLS,
) -> Bounds:
    """Return the bounds for what was found, of a table that is at hand.

    Where doubles tell `outcomes` laws apart, the answer tells no more than which of them it is.
    """
    most = bits_an_answer(claim, truth.records, largest_loss(schedule))
    if outcomes:
        most = math.log2(min(outcomes, truth.records + 1))
    packed = reason = None
    if isinstance(found, TableFound):
        if truth.codes.size <= most_cells:
            packed = packed_bytes(truth, found)
        else:
            reason = f"the table has more than {most_cells:,} cells"
    a_bit = 1 / most if most > 1e-300 else None
    least = None if bits is None or a_bit is None else math.ceil(bits * a_bit)
    return Bounds(most, a_bit, least, packed, reason, outcomes > 0)


def largest_loss(schedule: Schedule) -> float:
    """Return the largest loss that an answer can have: shares only ever shrink."""
    stamp = schedule.stamp(batch_of([([{0: (0, 1)}], 0)]), 0)
    return 0.0 if stamp is None else float(np.max(stamp))


def bits_an_answer(claim: Claim, records: int, loss: float) -> float:
    """Bound how many bits one answer can tell, from above.

    An answer that is exact or drowned in noise has three outcomes; which side of the
    threshold the noise is centred on tells more only at a large loss. Rounding never adds
    anything. The bound is on the capacity of the channel from a count to its answer.

    >>> from thinveil.language.claims import idp
    >>> round(bits_an_answer(idp(), 100, 1e-10), 3)
    1.585
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
        return min(most, law.bits(rate / (1.0 + claim.offset)))
    if claim.offset == 0:
        return min(most, math.log2(2 + math.pow(2, law.bits(rate))))
    rate, wide = rate / claim.offset, claim.offset / rate
    scales = law.distance(wide, wide * (1 + 1 / claim.offset))
    side = 1 - 2 * float(law.tail(0.5, rate))
    return min(most, 2.0, scales + side + law.bits(rate))


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
        codes = np.unique(codes, axis=0)
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
