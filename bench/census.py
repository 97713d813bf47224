"""A table as a national statistics office has it: five columns, as many records as wanted.

Age, sex, marital status, occupation and district depend on each other as people's do: children
have no occupation and are single, the old are widowed and retired, cities are younger, districts
and occupations are of very unequal size. Drawn in pieces, each from a seed of its own, by several
processes: the same files whatever their number.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bench.synthetic import Floats
from thinveil import Categories, Grid, Schema

AGES: Final = 106
DISTRICTS: Final = 400
KINDS: Final = 8  # of districts, from the youngest towns to the oldest villages
OCCUPATIONS: Final = 44  # 43 of them as ISCO-08's sub-major groups, and none
PIECE: Final = 2_000_000  # records, a file each
SEXES: Final = ("female", "male")
STATUSES: Final = ("single", "married", "divorced", "widowed", "partnership")
SCHEMA: Final = Schema(
    (
        Grid("age", lower=0, upper=AGES - 1),
        Categories("sex", SEXES),
        Categories("status", STATUSES),
        Categories("occupation", ("none", *(f"group {each}" for each in range(1, OCCUPATIONS)))),
        Grid("district", lower=1, upper=DISTRICTS),
    )
)


class _Alias(NamedTuple):
    """Draws numbers by their chances in constant time each (Walker's alias method)."""

    keep: npt.NDArray[np.float32]
    other: npt.NDArray[np.int32]

    @staticmethod
    def of(chances: Floats) -> _Alias:
        """Prepare for drawing; a heap of what is too little is filled from what is too much."""
        scaled = chances.ravel() / chances.sum() * chances.size
        keep, other = np.ones(chances.size), np.arange(chances.size)
        small = [int(each) for each in np.flatnonzero(scaled < 1)]
        large = [int(each) for each in np.flatnonzero(scaled >= 1)]
        left = scaled.tolist()
        while small and large:
            low, high = small.pop(), large[-1]
            keep[low], other[low] = left[low], high
            left[high] -= 1 - left[low]
            if left[high] < 1:
                small.append(large.pop())
        return _Alias(keep.astype(np.float32), other.astype(np.int32))

    def draw(self, rng: np.random.Generator, many: int) -> npt.NDArray[np.int32]:
        """Return so many numbers."""
        place = rng.integers(len(self.keep), size=many, dtype=np.int32)
        stay = rng.random(many, np.float32) < self.keep[place]
        drawn: npt.NDArray[np.int32] = np.where(stay, place, self.other[place])
        return drawn


def write_census(folder: Path, records: int, processes: int = 2) -> None:
    """Write a table of so many records as Parquet files."""
    pieces = range(-(-records // PIECE))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare) as pool:
        sizes = (min(PIECE, records - piece * PIECE) for piece in pieces)
        for _ in pool.map(_write, [folder] * len(pieces), pieces, sizes):
            pass


_PREPARED: list[tuple[list[_Alias], _Alias]] = []


def _prepare() -> None:
    """Prepare a process for drawing."""
    people = _people()
    _PREPARED.append(([_Alias.of(each) for each in people], _Alias.of(_districts())))


def _write(folder: Path, piece: int, records: int) -> None:
    """Write one piece."""
    people, districts = _PREPARED[0]
    rng = np.random.default_rng((19, piece))
    district = districts.draw(rng, records)
    person = np.empty(records, np.int32)
    kind = (district % KINDS).astype(np.int8)
    for each in range(KINDS):
        mine = np.flatnonzero(kind == each)
        person[mine] = people[each].draw(rng, len(mine))
    shape = AGES, len(SEXES), len(STATUSES), OCCUPATIONS
    age, sex, status, occupation = (
        part.astype(np.int8)[person] for part in np.unravel_index(np.arange(np.prod(shape)), shape)
    )
    texts = {
        attribute.name: attribute.values
        for attribute in SCHEMA
        if isinstance(attribute, Categories)
    }
    table = pa.table(
        {
            "age": age,
            **{
                name: pa.DictionaryArray.from_arrays(codes, list(texts[name]))
                for name, codes in (("sex", sex), ("status", status), ("occupation", occupation))
            },
            "district": (district + 1).astype(np.int16),
        }
    )
    pq.write_table(table, folder / f"part-{piece:04d}.parquet", compression="zstd")


def _districts() -> Floats:
    """Return how many people live in each district: a few have very many (a power law)."""
    chances: Floats = 1 / np.arange(6.0, DISTRICTS + 6) ** 0.8
    return np.random.default_rng(5).permutation(chances)


def _people() -> Floats:
    """Return, by kind of district, the chance of each age, sex, status and occupation."""
    age = np.arange(AGES)
    old = np.clip((age - 62) / 6.0, 0, None)
    kinds = []
    for kind in range(KINDS):
        bulge = np.exp(-(((age - 28 - 4 * kind) / 22.0) ** 2) / 2)
        alive = np.stack([np.exp(-np.exp((age - top) / 9.5)) for top in (88, 83)], axis=1)
        people = ((0.55 + bulge)[:, None] * alive)[:, :, None, None]  # age, sex, status, occupation
        status = _status(age, kind)
        work = _work(age, old, kind)
        kinds.append(people * status[:, :, :, None] * work[:, :, None, :])
    return np.stack(kinds)


def _status(age: npt.NDArray[np.int64], kind: int) -> Floats:
    """Return the chances of a marital status, by age and sex."""
    rows = np.zeros((AGES, 2, len(STATUSES)))
    for sex, later in enumerate((0.0, 2.5)):
        ever = 0.86 / (1 + np.exp(-(age - 29.0 - later + 0.5 * kind) / 4.5)) * (age >= 16)
        widowed = ever * 0.9 / (1 + np.exp(-(age - 78.0 - 3 * later) / 6.0)) * (age >= 20)
        divorced = (ever - widowed) * 0.24 * np.clip((age - 20) / 30.0, 0, 1)
        partnership = (1 - ever) * 0.09 * (age >= 18) * (age < 90)
        rows[:, sex, 1] = ever - widowed - divorced
        rows[:, sex, 2:] = np.stack([divorced, widowed, partnership], axis=1)
        rows[:, sex, 0] = 1 - rows[:, sex, 1:].sum(axis=1)
    return rows


def _work(age: npt.NDArray[np.int64], old: Floats, kind: int) -> Floats:
    """Return the chances of an occupation, by age and sex."""
    rng = np.random.default_rng(11)
    groups = np.arange(1, OCCUPATIONS)
    share = 1 / rng.permutation(groups + 2.0)  # some are common, most are not
    middle, spread = rng.uniform(28, 52, len(groups)), rng.uniform(9, 22, len(groups))
    by_sex = rng.uniform(0.15, 0.85, len(groups))
    urban = np.exp(rng.normal(0, 0.35, len(groups)) * (kind - KINDS / 2) / KINDS)
    rows = np.zeros((AGES, 2, OCCUPATIONS))
    curve = np.exp(-(((age[:, None] - middle) / spread) ** 2) / 2)
    active = 0.8 * np.clip((age - 15) / 10.0, 0, 1) * np.exp(-(old**1.3)) * (age >= 15)
    active = active * (age <= 79)
    for sex, chance in enumerate((by_sex, 1 - by_sex)):
        each = share * urban * chance * curve
        rows[:, sex, 1:] = active[:, None] * each / each.sum(axis=1, keepdims=True)
        rows[:, sex, 0] = 1 - rows[:, sex, 1:].sum(axis=1)
    return rows
