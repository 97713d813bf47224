"""Synthetic people, for trying things out without anybody's data."""

from __future__ import annotations

from bisect import bisect
from datetime import date, timedelta
from itertools import accumulate
from typing import Final

import numpy as np

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.files import code
from thinveil.curator.tables.inferring import infer
from thinveil.curator.tables.invented import JOBS, NO_INCOME, POSTCODES, WARDS
from thinveil.curator.tables.reading import READ_AS_USUAL
from thinveil.errors import UsageError
from thinveil.language.queries import Codes

_DIAGNOSES: Final = tuple(WARDS)
_AGES: Final = (12, 20, 24, 28, 26, 18, 9, 3)
"""Weights of the age groups 0-12, 13-25, ... of thirteen years each."""

_ILLNESS: Final = (
    (10, 6, 40, 2, 2, 38, 1, 1, 1),
    (10, 24, 20, 18, 4, 22, 1, 2, 1),
    (10, 22, 12, 24, 8, 14, 2, 8, 2),
    (10, 14, 10, 20, 16, 12, 6, 18, 4),
    (10, 8, 8, 12, 24, 12, 16, 26, 10),
    (10, 4, 8, 8, 24, 14, 26, 28, 18),
    (10, 2, 6, 6, 20, 22, 30, 26, 26),
    (10, 1, 4, 4, 16, 30, 30, 22, 30),
)
"""Weights of the diagnoses, in the order of `WARDS`, for each age group."""

_RETIRED: Final = 95
_FIRST_DAY: Final = date(2019, 1, 1)
_DAYS: Final = 4 * 365


def _pick(weights: tuple[int, ...], draw: int) -> int:
    """Return the choice that a draw falls on, by cumulative weights."""
    return bisect(list(accumulate(weights)), draw % sum(weights))


def people(records: int = 2000, seed: int = 2024) -> Dataset:
    """Return a table of people who do not exist, in a hospital that does not either.

    Job depends on age, salary on job and age, insurance on job, diagnosis on age, and the
    ward is determined by the diagnosis. Those without income have no salary; some have no
    diagnosis. The schema is what loading the table from a file would infer.

    Args:
        records: How many people.
        seed: The same seed gives the same table on every machine.

    Raises:
        UsageError: There are no records, or the seed is negative.
    """
    if records < 1:
        raise UsageError(f"cannot make up {records} people: ask for at least 1")
    if seed < 0:
        raise UsageError(f"the seed must be a whole number from 0 on, not {seed}")
    # The raw output of numpy's bit generators is fixed for good, unlike what its Generator makes.
    bits = np.random.Philox(seed)
    draws = [(bits.random_raw(records) % np.uint64(2**40)).tolist() for _ in range(9)]
    names = ("age", "postcode", "job", "salary", "diagnosis", "insured", "admitted", "ward")
    rows = [_person(each) for each in zip(*draws, strict=True)]
    columns = [
        _column(name, texts) for name, texts in zip(names, zip(*rows, strict=True), strict=True)
    ]
    return code(columns, infer(columns, READ_AS_USUAL).schema, READ_AS_USUAL)


def _person(draws: tuple[int, ...]) -> tuple[str, ...]:
    """Make up one person from nine draws."""
    group, years, home, work, pay, ill, cover, day, gap = draws
    generation = _pick(_AGES, group)
    age = generation * 13 + years % 13
    job, salary, insured = _work(age, work, pay)
    diagnosis = _DIAGNOSES[_pick(_ILLNESS[generation], ill)]
    if gap % 100 < 3:
        diagnosis = ""
    # Postcodes at the head of the list are larger towns.
    place = min(home % len(POSTCODES), (home // 64) % len(POSTCODES))
    return (
        str(age),
        POSTCODES[place],
        job,
        "" if salary is None else f"{salary // 100}.{salary % 100:02d}",
        diagnosis,
        "yes" if cover % 100 < insured else "no",
        (_FIRST_DAY + timedelta(days=day % _DAYS)).isoformat(),
        WARDS[diagnosis],
    )


def _work(age: int, work: int, pay: int) -> tuple[str, int | None, int]:
    """Return a job, the monthly salary in cents, and how many in a hundred are insured."""
    chance = work % 100
    if age < 16 or (age < 20 and chance < 70):
        return "pupil", None, NO_INCOME["pupil"]
    names = tuple(JOBS)
    last_job = names[_pick(tuple(each[0] for each in JOBS.values()), work // 100)]
    _, start, rise, insured = JOBS[last_job]
    full = start + rise * (min(age, 66) - 18) if age > 18 else start
    spread = (pay % 2001) + (pay // 4096 % 2001)  # A triangle around 2000.
    salary = full * (8_000 + spread) // 10_000
    if age > 66 or (age > 60 and chance < 30):
        return "retired", salary * 55 // 100, _RETIRED
    if chance < 8:
        return "unemployed", None, NO_INCOME["unemployed"]
    return last_job, salary, insured


def _column(name: str, texts: tuple[str, ...]) -> Column:
    """Return texts as a column of distinct texts and an index."""
    places: dict[str, int] = {}
    index: Codes = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    return Column(name, list(places), index)
