"""No table is said to have more bits than its plain code, whether bounds are public or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.code_length import table_bits
from thinveil.attacker.findings import ColumnFound, TableFound
from thinveil.attacker.known_bits import known_bits
from thinveil.attacker.ways import domains, log2_factorial, reach_of, zero_bits
from thinveil.language.schema import MISSING, Grid, Schema
from worlds import sure


def plain_code(schema: Schema, codes: Any) -> float:
    """The bits of all values from the lowest to the highest of each column, less the order.

    Where bounds are not public, naming both ends costs as much as any pair of the range that was
    doubled, and one bit that says so.
    """
    told = 0.0
    for attribute, column in zip(schema, codes.T, strict=True):
        there = column[column != MISSING]
        first, last = (int(there.min()), int(there.max())) if len(there) else (0, 0)
        low, high = attribute.lower, attribute.upper
        if low is None or high is None:
            low, high = first, last
            reach = 2 * reach_of(first, last)
            told += 1 + math.log2(reach * (reach + 1) / 2)
        told += len(codes) * math.log2(high - low + 1 + attribute.missing)
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    orders = log2_factorial(np.array([len(codes)]))[0] - log2_factorial(counts).sum()
    return told - float(orders)


def whole(codes: Any) -> TableFound:
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    width = codes.shape[1]
    known = np.full(len(rows), width)
    return TableFound(tuple(range(width)), rows, known, counts, (1,) * width)


def test_a_random_table_of_noughts_and_ones_has_no_more_bits_than_it_has_cells() -> None:
    codes = np.random.default_rng(1).integers(0, 2, (100, 299))
    schema = Schema(tuple(Grid(f"c{place}") for place in range(299)))
    bits = sum(table_bits(schema, whole(codes)))
    orders = float(log2_factorial(np.array([100]))[0])
    assert bits == pytest.approx(29_900 + 299 - orders)  # one bit names the ends of each column
    assert bits < 29_900
    assert known_bits(schema, whole(codes)).known == pytest.approx(bits)


@pytest.mark.parametrize("strategy", ["adaptive", "published"])
@pytest.mark.parametrize("kind", ["bits", "public", "ints", "floats", "missing"])
def test_an_audit_reports_no_more_than_the_plain_code(strategy: str, kind: str) -> None:
    random = np.random.default_rng(7)
    low, high = {"bits": (0, 2), "public": (0, 2), "floats": (-999, 999)}.get(kind, (-3, 5))
    codes = random.integers(low, high, (12, 5))
    plain = Grid("x", missing=kind == "missing")
    if kind == "public":
        plain = Grid("x", lower=0, upper=1)
    elif kind == "floats":
        plain = Grid("x", "decimal", Decimal("0.01"))
    if kind == "missing":
        codes[random.random(codes.shape) < 0.3] = MISSING
    schema = Schema(tuple(replace(plain, name=f"c{at}") for at in range(5)))
    verdict = thinveil.audit(thinveil.Dataset(schema, codes), strategy=strategy)
    run, most = verdict.record(), plain_code(schema, codes) + 1e-6
    assert sure(verdict.bits) <= most
    assert sure(run.bits_known) == pytest.approx(sure(run.bits_of_all))
    assert sure(run.bits_of_all) <= most
    assert sure(sure(verdict.bounds).bits) <= most


def tables(missing: bool) -> st.SearchStrategy[list[tuple[int, int]]]:
    value = st.integers(-4, 9) | st.integers(0, 1)
    cell = value | st.just(MISSING) if missing else value
    return st.lists(st.tuples(cell, cell), min_size=1, max_size=9)


@given(st.data(), st.booleans())
def test_no_table_is_longer_than_its_plain_code(data: st.DataObject, missing: bool) -> None:
    codes = np.array(data.draw(tables(missing)), np.int64)
    other = Grid("y", missing=missing)
    if data.draw(st.booleans()):
        other = replace(other, lower=-4, upper=9)
    schema = Schema((Grid("x", missing=missing), other))
    bits = table_bits(schema, whole(codes))
    assert 0 <= sum(bits) <= plain_code(schema, codes) + 1e-9
    turned = table_bits(Schema((schema[1], schema[0])), whole(codes[:, ::-1]))
    assert sum(turned) == pytest.approx(sum(bits))
    assert known_bits(schema, whole(codes)).known == pytest.approx(sum(bits))


@pytest.mark.parametrize("reach", [1, 2, 4, 8])
def test_names_of_ends_are_a_code(reach: int) -> None:
    """2^-length adds up to no more than 1 over all ends that one range was doubled for (Kraft)."""
    total = 0.0
    for first in range(-reach, reach):
        for last in range(first, reach):
            if reach_of(first, last) == reach:
                named = domains(Grid("x"), 1, np.array([first, last]))
                total += 2 ** -(zero_bits(last) if first == 0 else named[1][1])
    assert 0.5 <= total <= 1 + 1e-9


def splits(values: Sequence[int]) -> st.SearchStrategy[Any]:
    """A range of values, cut in one place after the other."""

    @st.composite
    def cut(draw: Any) -> list[list[tuple[int, int]]]:
        steps, parts = [[(values[0], len(values))]], [(values[0], len(values))]
        for _ in range(draw(st.integers(1, 20))):
            wide = [at for at, each in enumerate(parts) if each[1] > 1]
            if not wide:
                break
            at = draw(st.sampled_from(wide))
            first, many = parts[at]
            left = draw(st.integers(1, many - 1))
            parts = [*parts[:at], (first, left), (first + left, many - left), *parts[at + 1 :]]
            steps.append(parts)
        return steps

    return cut()


@given(st.data(), st.booleans())
def test_bits_of_a_column_whose_limits_are_open_never_fall_nor_pass_the_whole(
    data: st.DataObject, missing: bool
) -> None:
    there = data.draw(st.lists(st.integers(-8, 7) | st.integers(0, 1), min_size=1, max_size=12))
    gone = data.draw(st.integers(0, 3)) if missing else 0
    codes = np.array([*there, *[MISSING] * gone], np.int64)[:, None]
    reach = reach_of(min(there), max(there))
    schema = Schema((Grid("x", missing=missing),))
    before = 0.0
    for parts in data.draw(splits(range(-reach, reach))):
        held = [(low, many, sum(low <= x < low + many for x in there)) for low, many in parts]
        values = [(low, count) for low, many, count in held if many == 1 and count]
        values += [(MISSING, gone)] if gone else []
        ranges = tuple(each for each in held if each[1] > 1 and each[2])
        margin = ColumnFound(0, values, ranges=ranges, domain=2 * reach + missing)
        nothing = np.zeros((1, 1), np.int64), np.array([0]), np.array([len(codes)])
        found = TableFound((0,), *nothing, (1,), margins=(margin,))
        told = known_bits(schema, found).known
        assert told >= before - 1e-9
        before = told
    assert before <= sum(table_bits(schema, whole(codes))) + 1e-9


@given(st.data(), st.booleans())
def test_bits_of_records_never_fall_nor_pass_the_whole(data: st.DataObject, missing: bool) -> None:
    codes = np.array(data.draw(tables(missing)), np.int64)
    schema = Schema((Grid("x", missing=missing), Grid("y", missing=missing)))
    before, known = 0.0, np.zeros(len(codes), np.int64)
    for place in (1, 2):
        for value in data.draw(st.permutations(np.unique(codes[:, :place], axis=0).tolist())):
            known[(codes[:, :place] == value).all(axis=1)] = place
            shown = np.where(known[:, None] > np.arange(2), codes, 0)
            found = TableFound((0, 1), shown, known, np.ones_like(known), (1, 1))
            told = known_bits(schema, found).known
            assert told >= before - 1e-9
            before = told
    assert before == pytest.approx(sum(table_bits(schema, whole(codes))))
