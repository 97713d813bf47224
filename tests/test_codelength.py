"""Bits of what was found, questions a bit, and the bounds that nothing can beat."""

from __future__ import annotations

import csv
import io
import json
import lzma
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import thinveil
from thinveil.attacker.code_length import code_length, column_bits, table_bits
from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.terms import axes_of
from thinveil.attacker.ways import domain_size, log2_choose, log2_factorial, multiset_bits
from thinveil.auditing.driver import run as drive
from thinveil.auditing.schedule import Equal, Fixed, Free, Halving, Total
from thinveil.commands.main import run
from thinveil.language.claims import claim_named
from thinveil.language.laws import Cauchy
from thinveil.language.queries import About
from thinveil.language.schema import LIMIT, MISSING, Categories, Grid, Schema
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.judging.scoring import coarse
from thinveil.verdicts.limits import bounds as bounds_module
from thinveil.verdicts.limits.bounds import (
    Given,
    bits_an_answer,
    bounds_of,
    largest_loss,
    packed_bytes,
)
from thinveil.verdicts.limits.shortest_code import CODES
from worlds import as_a, sure

PEOPLE = thinveil.people(40)


def schema_of(*sizes: int) -> Schema:
    return Schema(
        tuple(
            Grid(f"a{place}", lower=0, upper=size - 1) if place % 2 else
            Categories(f"a{place}", tuple(map(str, range(size))))
            for place, size in enumerate(sizes)
        )
    )  # fmt: skip


def table_of(rows, columns=None, known=None, distinct=False, widths=None) -> TableFound:
    codes, counts = np.unique(np.array(rows, np.int64), axis=0, return_counts=True)
    columns = tuple(range(codes.shape[1])) if columns is None else columns
    return TableFound(
        columns,
        codes,
        np.full(len(codes), len(columns)) if known is None else known,
        np.ones_like(counts) if distinct else counts,
        widths or (1,) * len(columns),
        distinct,
    )


# ---- formulas


def test_factorials_agree_with_the_gamma_function_on_both_sides_of_the_table():
    numbers = np.array([0, 1, 2, 50, 255, 256, 257, 1000, 10**6, 10**12])
    exact = [math.lgamma(number + 1) / math.log(2) for number in numbers.tolist()]
    assert log2_factorial(numbers) == pytest.approx(exact, rel=1e-14, abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_how_many_sets_there_are(size):
    chosen = np.arange(size + 1)
    exact = [math.log2(math.comb(size, some)) for some in range(size + 1)]
    assert log2_choose(size, chosen) == pytest.approx(exact, abs=1e-9)


def test_sets_out_of_more_values_than_a_double_can_count():
    assert log2_choose(2**63, np.array([1, 2])) == pytest.approx([63, 125])


@pytest.mark.parametrize(("sizes", "records"), [((2, 3), 3), ((3, 1, 2), 4), ((4,), 5)])
def test_all_tables_of_a_small_world_share_out_the_whole_probability(sizes, records):
    """Each ordered table is equally likely; a multiset has the sum over its orders."""
    schema = schema_of(*sizes)
    everything = list(product(*(range(size) for size in sizes)))
    ordered = Counter(tuple(sorted(rows)) for rows in product(everything, repeat=records))
    all_tables = sum(ordered.values())
    total = 0.0
    for rows in combinations_with_replacement(everything, records):
        bits = sum(table_bits(schema, table_of(rows)))
        assert bits == pytest.approx(-math.log2(ordered[tuple(sorted(rows))] / all_tables))
        total += 2**-bits
    assert total == pytest.approx(1)


@given(st.data())
def test_columns_add_up_to_the_multiset_in_whichever_order(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    order = data.draw(st.permutations(range(len(sizes))))
    schema = schema_of(*sizes)
    counts = np.array(list(Counter(rows).values()))
    whole = multiset_bits(counts, math.prod(sizes))
    assert sum(table_bits(schema, table_of(rows))) == pytest.approx(whole, abs=1e-9)
    turned = table_of(np.array(rows)[:, order], columns=tuple(order))
    bits = table_bits(schema, turned)
    assert sum(bits) == pytest.approx(whole, abs=1e-9)
    assert bits == pytest.approx(plain_table_bits(schema, turned), abs=1e-9)


def plain_table_bits(schema, found):
    """The same, group by group."""
    bits = []
    for place, column in enumerate(found.columns):
        groups: dict[tuple[int, ...], Any] = {}
        rows = zip(found.codes.tolist(), found.known.tolist(), found.counts.tolist(), strict=True)
        for codes, known, count in rows:
            if known > place:
                group = groups.setdefault(tuple(codes[:place]), Counter())
                group[codes[place]] += count
        size, total = schema[column].size, 0.0
        for group in groups.values():
            if found.distinct:
                total += math.log2(math.comb(size, len(group)))
                continue
            records = sum(group.values())
            ways = math.factorial(records)
            for count in group.values():
                ways //= math.factorial(count)
            total += records * math.log2(size) - math.log2(ways)
        bits.append(total)
    return bits


@given(st.data())
def test_partial_and_distinct_tables_by_the_plain_way(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = data.draw(st.lists(row, min_size=1, max_size=12, unique=True))
    distinct = data.draw(st.booleans())
    known = np.array([data.draw(st.integers(0, len(sizes))) for _ in rows])
    codes = np.where(np.arange(len(sizes)) < known[:, None], np.array(rows), 0)
    counts = [1 if distinct else data.draw(st.integers(1, 400)) for _ in rows]
    found = TableFound(
        tuple(range(len(sizes))), codes, known, np.array(counts), (1,) * len(sizes), distinct
    )
    schema = schema_of(*sizes)
    assert table_bits(schema, found) == pytest.approx(plain_table_bits(schema, found), abs=1e-6)


@pytest.mark.nightly
def test_a_table_of_the_size_of_the_published_one_is_measured_in_passing(bank):
    order = np.argsort([attribute.size for attribute in bank.schema], kind="stable")
    found = table_of(bank.codes[:, order], columns=tuple(order.tolist()))
    bits = table_bits(bank.schema, found)
    assert sum(bits) == pytest.approx(3_537_494.53, abs=0.1)
    assert 8 * packed_bytes(bank, found) == pytest.approx(1_896_192, rel=0.01)  # by version of xz


def test_sizes_of_domains():
    nothing = np.empty(0, np.int64)
    grid = Grid("x", lower=-3, upper=10, missing=True)
    assert domain_size(grid, 1, nothing) == 15
    assert domain_size(grid, 5, nothing) == 5  # -1, 0, 1, 2 and missing
    assert domain_size(grid, 1, nothing, (0, 99)) == 11
    free = Grid("x", missing=True)
    assert domain_size(free, 1, np.array([MISSING])) == 3
    assert domain_size(free, 1, np.array([-1, 0])) == 3
    assert domain_size(free, 1, np.array([1, MISSING])) == 5
    assert domain_size(free, 1, np.array([-5, 7])) == 17
    assert domain_size(free, 10, np.array([-50, 70])) == 17
    assert domain_size(free, 1, np.array([1, 2]), (1, 4)) == 4
    assert domain_size(Grid("x"), 1, np.array([LIMIT - 1])) == 2 * LIMIT - 1
    assert domain_size(Categories("x", (), missing=True), 1, np.array([MISSING])) == 1


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("claim", ["idp", "unprotected", "bdp"])
@pytest.mark.parametrize(
    "values", [[-7, 3], [0], [100, 129], [-64], [MISSING, 5], [MISSING], [LIMIT - 1]]
)
def test_limits_that_are_not_public_are_those_that_a_search_finds(values, claim, width):
    """The doubled range of the searches is seen from the values alone."""
    attribute = Grid("x", missing=True)
    data = thinveil.Dataset(Schema((attribute,)), np.array([[each] for each in values] * 2))
    curator = thinveil.Curator(data, claim_named(claim))
    axes = axes_of(curator.facts, {0: width})
    strategy = thinveil.STRATEGIES["adaptive" if claim == "bdp" else "published"]
    search = strategy.engine(curator.facts).limits(axes, About())
    schedule = Fixed(Fraction(1, 10**10)) if curator.facts.claim.protected else Free()
    (axis,) = drive(search, curator, schedule).found
    assert domain_size(attribute, width, coarse(data.codes, (width,))) == axis.size


# ---- findings


def facts_of(claim="idp", records=100):
    return thinveil.PublicFacts(records, schema_of(4, 8), claim_named(claim))


def test_counts_columns_and_people():
    facts = facts_of()
    assert code_length(CountFound(7), facts).total == pytest.approx(math.log2(101))
    assert code_length(CountFound(7), facts, asked=False).total == 0
    assert code_length(CountFound(None), facts).total is None
    assert code_length(CountFound(None, True), facts_of("bdp")).total == pytest.approx(math.log2(3))
    column = ColumnFound(1, [(0, 60), (5, 40)])
    exact = 300 - math.log2(math.comb(100, 40))
    measured = code_length(ColumnsFound((column,)), facts)
    assert measured.total == pytest.approx(exact)
    assert measured.columns == {1: measured.total}
    different = ColumnFound(1, [(0, 1), (5, 1)], distinct=True)
    assert column_bits(facts.schema, different) == pytest.approx(math.log2(28))
    assert code_length(ColumnsFound(()), facts).total is None
    assert code_length(None, facts).total is None


def test_people():
    facts = facts_of()
    value = ColumnFound(0, [(2, 1)])
    several = ColumnFound(0, [(1, 1), (2, 1)])
    people = PeopleFound(
        (
            PersonFound(present=True),
            PersonFound(present=True, unique=True),
            PersonFound(present=True, unique=True, matches=1, values=(value,)),
            PersonFound(present=True, unique=False, matches=2, values=(several,)),
            PersonFound(),
        )
    )
    three = math.log2(3)
    measured = code_length(people, facts)
    *bits, last = [each.bits for each in as_a(PeopleFound, measured.found).people]
    assert bits == pytest.approx([1, three, three + 2, three + math.log2(99) + 3])
    assert last is None
    assert measured.total == pytest.approx(sum(sure(each) for each in bits))
    assert measured.columns == {0: pytest.approx(5)}
    assert measured.found == people  # bits do not tell findings apart
    given = code_length(PeopleFound((PersonFound(present=True, unique=True),)), facts, present=True)
    assert given.total == 1
    assert code_length(PeopleFound((PersonFound(),)), facts).total is None


def test_prior_bounds_that_held_are_believed():
    facts = facts_of()
    person = PersonFound(True, True, 1, (ColumnFound(1, [(2, 1)]),))
    held = code_length(PeopleFound((person,)), facts, {1: (2, 3)})
    assert held.columns == {1: pytest.approx(1)}
    failed = PersonFound(True, True, 1, (ColumnFound(1, [(2, 1)]),), (1,))
    assert code_length(PeopleFound((failed,)), facts, {1: (6, 7)}).columns == {1: pytest.approx(3)}


def test_beliefs_of_an_attack_are_taken_as_they_are():
    facts = facts_of()
    table = table_of([(0, 1), (3, 2)])
    measured = code_length(TableFound(**{**_fields(table), "bits": (1.5, 2.25)}), facts)
    assert (measured.total, measured.learned) == (3.75, True)
    assert measured.columns == {0: 1.5, 1: 2.25}
    measured = code_length(TableFound(**{**_fields(table), "bits": (1.5,)}), facts)
    assert (measured.total, measured.columns, as_a(TableFound, measured.found).bits) == (
        1.5,
        {0: 1.5, 1: 0},
        (1.5, 0),
    )
    column = ColumnsFound((ColumnFound(1, [(2, 100)], bits=4.5),))
    assert code_length(column, facts).total == 4.5
    assert code_length(CountFound(3, bits=0.5), facts).total == 0.5
    person = PersonFound(True, True, 1, (ColumnFound(1, [(2, 1)], bits=0.25),), bits=1.25)
    measured = code_length(PeopleFound((person,)), facts)
    assert (measured.total, measured.columns, measured.learned) == (1.25, {1: 0.25}, True)


def _fields(found):
    return {name: getattr(found, name) for name in found.__slots__}


def test_of_a_table_of_which_nothing_is_known_there_are_no_bits():
    nothing = TableFound((0, 1), np.zeros((1, 2), np.int64), np.array([0]), np.array([9]), (1, 1))
    assert code_length(nothing, facts_of()).total is None


# ---- bounds


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [
        ("unprotected", 1), ("idp", math.log2(3)), ("idp-integer", math.log2(3)),
        ("idp-binary", 1), ("bdp", math.log2(3)), ("idp-noisy", 0.07812),
    ],
)  # fmt: skip
def test_what_an_answer_can_tell_at_a_small_loss(mechanism, most):
    assert bits_an_answer(claim_named(mechanism), 1000, 1e-10) == pytest.approx(most, rel=1e-4)


@pytest.mark.parametrize("mechanism", thinveil.MECHANISMS)
@pytest.mark.parametrize("records", [2, 50])
@pytest.mark.parametrize("loss", [1e-300, 1e-10, 0.1, 1.0, 5.0, 50.0, 1e9])
def test_an_answer_never_tells_more_than_bounded(mechanism, records, loss):
    """Beside the information that really passes, for counts that are all equally likely."""
    claim = claim_named(mechanism)
    most = bits_an_answer(claim, records, loss)
    assert 0 <= most <= math.log2(records + 1)
    if claim.protected and 0.05 < loss < 100:
        assert information(claim, records, loss) <= most + 1e-3


def information(claim, records, loss):
    """Return the information between a random count and its answer, by a fine grid."""
    counts = np.arange(records + 1)
    threshold = np.full(records + 1, records // 2)
    bit, scale = claim.law(
        counts, threshold, np.zeros(records + 1, np.bool_), records, loss
    )  # one threshold in the middle
    grid = np.concatenate([-np.geomspace(1e6, 1e-4, 4000), np.linspace(0, 1, 2001)[1:-1],
                           1 + np.geomspace(1e-4, 1e6, 4000)])  # fmt: skip
    if claim.post == "binary":
        grid = np.array([0.5])
    law = np.zeros((records + 1, len(grid) + 3))
    for row, (one, wide) in enumerate(zip(bit, scale / loss, strict=True)):
        if wide == 0:
            law[row, -1 if one else -2] = 1
            continue
        far = (grid - one) / wide
        below = (
            0.5 + np.arctan(far) / np.pi
            if isinstance(claim.noise, Cauchy)
            else np.where(far < 0, 0.5 * np.exp(np.minimum(far, 0)),
                          1 - 0.5 * np.exp(-np.maximum(far, 0)))
        )  # fmt: skip
        law[row, : len(grid) + 1] = np.diff(np.concatenate([[0], below, [1]]))
    if claim.post == "binary":  # exactly 0 and rounded to 0 look alike
        law = np.stack([law[:, 0] + law[:, -2], law[:, 1] + law[:, -1]], axis=1)
    mean = law.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(law > 1e-300, law * np.log2(law / mean), 0)
    return terms.sum() / (records + 1)


def test_the_largest_loss_of_an_answer():
    assert largest_loss(Free()) == 0
    assert largest_loss(Fixed(Fraction(1, 8))) == 0.125
    assert largest_loss(Equal(Fraction(1), 4)) == 0.25
    assert largest_loss(Halving(Fraction(1))) == 0.5
    assert largest_loss(Total(Fraction(1))) == pytest.approx(0.6079)


def test_packing_is_what_xz_makes_of_columns_one_after_the_other():
    codes = np.array([[5, 700], [3, MISSING], [3, 100], [5, 700]])
    data = thinveil.Dataset(Schema((Grid("x"), Grid("y", missing=True))), codes)
    raw = bytes([0, 0, 2, 2]) + np.array([0, 1, 601, 601], "<u2").tobytes()
    usual = lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)
    assert packed_bytes(data) == len(usual)
    coarse = table_of(codes, widths=(10, 1))
    assert packed_bytes(data, coarse) <= len(usual)


@pytest.mark.parametrize(
    "column", [[LIMIT - 1, 1 - LIMIT, MISSING], [MISSING] * 3, [7] * 3, [0, 255, 256]]
)
def test_any_column_can_be_packed(column):
    data = thinveil.Dataset(Schema((Grid("x", missing=True),)), np.array(column)[:, None])
    assert packed_bytes(data) > 0


def test_large_tables_are_not_packed_in_passing():
    found = table_of(PEOPLE.codes)
    given = Given(thinveil.idp(), Fixed(Fraction(1)))
    left_out = bounds_of(found, 10.0, replace(given, most_cells=100), PEOPLE)
    assert left_out.packed_bits is None
    assert left_out.packed_left_out == "the table has more than 100 cells"
    assert bounds_of(CountFound(3), 2.0, given, PEOPLE).packed_left_out is None


def test_no_figure_is_given_where_a_loss_is_too_small_for_one():
    small = Fraction(1, 10**300)
    given = Given(claim_named("dp-laplace"), Fixed(small))
    found = bounds_of(None, 500.0, given, PEOPLE)
    assert (found.questions_per_bit, found.questions) == (None, None)
    some = bounds_of(None, 500.0, replace(given, schedule=Fixed(Fraction(1))), PEOPLE)
    assert 0.7 * 500 / some.bits_an_answer < sure(some.questions) < 500 / some.bits_an_answer


# ---- audits


def shown(verdict):
    written = io.StringIO()
    show_verdict(Console(width=80, file=written), verdict)
    return written.getvalue()


KNOWN = {"age": PEOPLE.rows()[0][0], "job": PEOPLE.rows()[0][2]}
ATTACKS = [
    {"attack": "dataset"},
    {"attack": "column", "columns": ["age"]},
    {"attack": "count", "known": KNOWN},
    {"attack": "membership", "known": KNOWN},
    {"attack": "attribute", "known": KNOWN, "columns": ["salary", "insured"]},
]


@pytest.mark.parametrize("settings", ATTACKS, ids=lambda each: each["attack"])
@pytest.mark.parametrize("mechanism", ["idp", "unprotected", "bdp", "idp-integer"])
def test_every_audit_reports_bits(settings, mechanism):
    verdict = thinveil.audit(PEOPLE, mechanism=mechanism, **settings)
    plain = json.loads(json.dumps(verdict.to_plain()))
    assert verdict.bits is not None
    assert plain["bits"] == verdict.bits > 0
    assert plain["questions_per_bit"] == pytest.approx(plain["queries"] / plain["bits"])
    limit = plain["bounds"]["questions"]
    assert limit is None or limit <= plain["queries"]
    assert plain["bounds"]["bits"] <= plain["bits"] + math.log2(len(CODES))
    assert plain["bits_basis"]
    if settings["attack"] in ("dataset", "column"):
        assert sum(plain["bits_by_attribute"].values()) == pytest.approx(plain["bits"])
    parts = plain["result"]
    if settings["attack"] != "dataset":
        parts = [parts] if isinstance(parts, dict) else parts
        assert sum(each["bits"] for each in parts) == pytest.approx(plain["bits"])
        assert plain["bounds"]["packed_bits"] is None
    else:
        assert plain["bounds"]["packed_bits"] == 8 * plain["bounds"]["packed_bytes"]
        for each in plain["by_attribute"]:
            assert each["bits"] == plain["bits_by_attribute"][each["name"]]
    text = shown(verdict)
    assert "bits found" in text
    assert " a bit " in text
    assert ("packed by xz" in text) is (settings["attack"] == "dataset")
    assert max(map(len, text.splitlines())) <= 80


def test_questions_a_bit_by_attribute_need_questions_asked_once():
    once = thinveil.audit(PEOPLE, strategy="published").to_plain()
    for name, each in once["questions_per_bit_by_attribute"].items():
        if once["bits_by_attribute"][name]:
            asked = once["questions_by_attribute"][name]
            assert each == pytest.approx(asked / once["bits_by_attribute"][name])
    repeated = thinveil.audit(PEOPLE, mechanism="idp-binary").to_plain()
    assert repeated["queries"] > repeated["questions"]
    assert set(repeated["questions_per_bit_by_attribute"].values()) == {None}


def test_a_run_that_ended_early_counts_what_it_has():
    whole = thinveil.audit(PEOPLE)
    part = thinveil.audit(PEOPLE, max_queries=whole.run.meter.queries * 3 // 4)
    assert part.run.ending == "cap"
    assert 0 < sure(part.bits) < sure(whole.bits)
    assert sure(part.bounds).packed_bits == sure(whole.bounds).packed_bits
    early = thinveil.audit(PEOPLE, max_queries=1)
    assert early.bits is None
    assert early.questions_per_bit is None
    assert early.to_plain()["bits_basis"] is None
    assert "none yet" in shown(early)


class Elsewhere:
    """A target that shows nothing of its table."""

    def __init__(self, data):
        self._curator = thinveil.Curator(data, thinveil.idp(1))
        self.facts = self._curator.facts

    def answer(self, batch):
        return self._curator.answer(batch).values


@pytest.mark.parametrize("settings", ATTACKS, ids=lambda each: each["attack"])
def test_without_the_table_there_are_bits_and_no_bounds(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def never(*_):
        raise AssertionError("nothing to pack")

    monkeypatch.setattr(bounds_module, "packed_bytes", never)
    verdict = thinveil.audit(Elsewhere(PEOPLE), **settings)
    assert verdict.bounds is None
    assert verdict.to_plain()["bounds"] is None
    assert sure(verdict.bits) > 0
    text = shown(verdict)
    assert "bits found" in text
    assert "at best" not in text
    assert "xz" not in text


def test_the_strategy_does_not_matter_to_even_beliefs():
    strategies = ("published", "linear", "posterior")
    data = thinveil.Dataset(schema_of(4, 8), np.array([[0, 1], [3, 7], [3, 7], [2, 0], [1, 1]]))
    bits = {sure(thinveil.audit(data, strategy=each, k=1).bits) for each in strategies}
    assert max(bits) - min(bits) < 1e-9


def test_a_table_more_regular_than_believed_says_so():
    data = thinveil.Dataset(schema_of(4, 8), np.ones((50, 2), np.int64))
    verdict = thinveil.audit(data, strategy="published")
    assert sure(verdict.questions_per_bit) < sure(sure(verdict.bounds).questions_per_bit)
    assert "more regular" in shown(verdict)


def test_limits_that_are_not_public_are_mentioned():
    assert "limits as found" in thinveil.audit(PEOPLE, strategy="published").bits_basis
    data = thinveil.Dataset(schema_of(4, 8), np.array([[0, 1], [3, 7]]))
    assert "limits" not in thinveil.audit(data, strategy="published").bits_basis


def test_the_command_writes_and_prints_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    with (tmp_path / "few.csv").open("w", newline="") as file:
        csv.writer(file).writerows([PEOPLE.schema.names, *PEOPLE.rows()])
    assert run(["audit", "few.csv", "--json", "out.json"]) == 0
    printed = capsys.readouterr().out
    assert "questions a bit" in printed
    assert "true table packed by xz" in printed
    plain = json.loads((tmp_path / "out.json").read_text())
    assert {"bits", "questions_per_bit", "bounds"} <= plain.keys()
    assert plain["bounds"]["bits_an_answer"] == pytest.approx(math.log2(3))
    assert all("bits" in each for each in plain["by_attribute"])
