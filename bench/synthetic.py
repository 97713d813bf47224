"""Synthetic tables of any length, all from one distribution that is known exactly.

Seven attributes of several kinds that depend on each other. As the chance of every record is
known, so is what a table is worth to somebody who knows the distribution beforehand.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt

from thinveil import Categories, Dataset, Grid, Schema
from thinveil.attacker.ways import log2_factorial
from thinveil.language.schema import MISSING

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

REGIONS, AGES, LEVELS, VISITS, FEES, DAYS = 12, 100, 5, 60, 50_000, 1_461
BANDS = 4  # of ages
FIRST_DAY = 16_436  # 2015-01-01, in days from 1970-01-01
SCHEMA = Schema(
    (
        Categories("region", tuple(f"region {number}" for number in range(REGIONS))),
        Grid("age", lower=0, upper=AGES - 1),
        Grid("level", lower=0, upper=LEVELS - 1),
        Categories("insured", ("no", "yes")),
        Grid("visits", lower=0, upper=VISITS - 1),
        Grid("fee", "decimal", Decimal("0.01"), 0, FEES - 1, missing=True),
        Grid("day", "date", lower=FIRST_DAY, upper=FIRST_DAY + DAYS - 1),
    )
)


def synthetic(records: int, seed: int = 0) -> tuple[Dataset, float]:
    """Draw a table of patients.

    Returns:
        The table, and its bits to somebody who knows the distribution. Its records stand in
        no order, which is log2(n!) bits less, or fewer where some are equal.
    """
    rng = np.random.default_rng(seed)
    bits = np.zeros(records)

    def draw(chances: Floats, given: Codes | None = None) -> Codes:
        """Draw values by the row of chances that each record's earlier values choose."""
        given = np.zeros(records, np.int64) if given is None else given
        chances = chances / chances.sum(axis=1, keepdims=True)
        # Running sums, each row lifted by its number: one sorted list for all of them.
        steps = np.cumsum(chances, axis=1)
        steps[:, -1] = 1.0
        ladder = (steps + np.arange(len(steps))[:, None]).ravel()
        values: Codes = np.searchsorted(ladder, rng.random(records) + given, side="right")
        values = np.clip(values - given * chances.shape[1], 0, chances.shape[1] - 1)
        bits[:] -= np.log2(chances[given, values])
        return values

    region = draw(1 / np.arange(1.0, REGIONS + 1)[None])
    age = draw(_bells(AGES, [45.0], [18.0]))
    band = age * BANDS // AGES
    level = draw(_bells(LEVELS, [0.5, 1.5, 2.0, 2.5], [0.7, 0.9, 1.1, 1.3]), band)
    insured = draw(np.array([[0.4, 0.6], [0.1, 0.9], *[[0.02, 0.98]] * 3]), level)
    visits = draw(np.array([[0.6], [0.75], [0.85], [0.93]]) ** np.arange(VISITS), band)
    fee = draw(_fees(), insured * LEVELS + level)
    day = draw(_days(), region % 3)
    codes = np.column_stack(
        [
            *(region, age, level, insured, visits),
            np.where(fee == 0, MISSING, fee - 1),
            day + FIRST_DAY,
        ]
    )
    alike = np.unique(codes, axis=0, return_counts=True)[1]
    unordered = log2_factorial(np.array([records]))[0] - log2_factorial(alike).sum()
    return Dataset(SCHEMA, codes), float(bits.sum() - unordered)


def _bells(size: int, means: list[float], widths: list[float]) -> Floats:
    """Return bell curves over whole numbers, a row for each."""
    away = (np.arange(size) - np.array(means)[:, None]) / np.array(widths)[:, None]
    chances: Floats = np.exp(-(away**2) / 2)
    return chances


def _fees() -> Floats:
    """Return fees by insurance and level: missing for those who have none, else long-tailed."""
    cents = np.arange(FEES)
    logs = np.log(cents + 50.0)
    middles = np.log([800.0, 1_500.0, 2_500.0, 4_000.0, 8_000.0])[:, None]
    tailed = np.exp(-(((logs - middles) / 0.7) ** 2) / 2) / (cents + 50.0)
    tailed *= np.where(cents % 100 == 0, 20.0, 1.0)  # people like round amounts
    chances = np.zeros((2 * LEVELS, FEES + 1))
    chances[:LEVELS, 0] = 1.0
    chances[LEVELS:, 1:] = tailed
    return chances


def _days() -> Floats:
    """Return days by kind of region: closed at weekends, on Mondays, or never quite."""
    weekday = (np.arange(DAYS) + 3) % 7  # 2015-01-01 was a Thursday
    growth = np.linspace(1.0, 2.0, DAYS)
    return np.stack(
        [
            growth * np.where(weekday >= 5, 0.05, 1.0),
            growth * np.where(weekday == 0, 0.0, 1.0),
            growth * np.where(weekday == 6, 0.5, 1.0),
        ]
    )
