"""Tables of many columns, and bits that are never more than the plain code's."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil import audit
from thinveil.attacker.attacks import groups
from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.code_length import code_length, table_bits
from thinveil.attacker.engines.histograms import Columns
from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.known_bits import Alone, known_bits
from thinveil.attacker.terms import Axis, Rules
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Cells, QueryBatch
from thinveil.language.schema import Categories, Grid, Schema
from thinveil.verdicts.judging.nearest import nearest, parents, tree
from thinveil.verdicts.judging.others import Others
from worlds import as_a, examples, sure


def table_of(codes, *, bounded=True):
    names = (f"c{column}" for column in range(codes.shape[1]))
    high = int(codes.max())
    grids = (Grid(name, lower=0, upper=high) if bounded else Grid(name) for name in names)
    return Dataset(Schema(tuple(grids)), codes)


# -- columns -------------------------------------------------------------------------------


def test_a_schema_finds_its_columns_by_name():
    names = [f"c{column}" for column in range(500)]
    schema = Schema(tuple(Grid(name) for name in names))
    assert schema.names == tuple(names)
    assert [schema.column(name) for name in names] == list(range(500))
    assert schema == Schema(tuple(Grid(name) for name in names))


def test_of_many_attributes_those_that_tell_most_are_contexts():
    rng = np.random.default_rng(3)
    many, groups = 200, 400
    contexts = list(rng.integers(0, 4, (many, groups)))
    cells = (contexts[150] + contexts[7]) % 4
    mixer = Mixer(contexts, np.bincount(cells))
    assert mixer.chosen == []
    contexts[31] = cells.copy()
    mixer = Mixer(contexts, np.bincount(cells))
    some = np.arange(200)
    mixer.learn(some, cells[some], np.ones(200, np.int64))
    mixer.refresh()
    assert 31 in mixer.chosen
    assert len(mixer.chosen) <= 32
    rest = np.arange(200, 400)
    assert (mixer.predict(rest).argmax(axis=1) == cells[rest]).mean() > 0.9


@pytest.mark.nightly
def test_many_columns_ask_about_as_much_a_column_as_few():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10, (30, 110))
    asked = {}
    for columns in (60, 110):
        verdict = audit(table_of(codes[:, :columns], bounded=False), seed=1)
        assert sure(verdict.score).exact
        asked[columns] = verdict.run.meter.questions / columns
    assert asked[110] <= 1.05 * asked[60]


@pytest.mark.nightly
def test_every_shape_of_claim_takes_more_columns_than_are_weighed():
    rng = np.random.default_rng(2)
    table = table_of(rng.integers(0, 3, (12, 80)))
    for settings in ({"mechanism": "bdp"}, {"k": 3}, {"strategy": "published"}):
        assert sure(audit(table, seed=1, **settings).score).recovered == 12
    known = {f"c{column}": int(table.codes[4, column]) for column in range(70)}
    verdict = audit(table, attack="attribute", known=known, seed=1)
    person = as_a(PeopleFound, verdict.run.found).people[0]
    found = {each.column: each.values for each in person.values}
    assert found == {column: [(int(table.codes[4, column]), 1)] for column in range(70, 80)}


@examples(40)
@given(data=st.data())
def test_groups_that_a_column_does_not_split_are_found_all_the_same(data):
    rows = data.draw(st.integers(1, 6))
    cell = st.lists(st.integers(0, 2), min_size=5, max_size=5)
    codes = np.array(data.draw(st.lists(cell, min_size=rows, max_size=rows)), np.int64)
    asked = np.array(data.draw(st.lists(cell, min_size=1, max_size=8)), np.int64)
    width = data.draw(st.sampled_from([1, 2]))
    cells = Cells.points(range(4), asked[:, :4] // width * width, [width] * 4)
    number = np.arange(len(asked))
    column, low = np.full(len(asked), 4), asked[:, 4]
    batch = QueryBatch(cells, number, column, low, low + 1, np.zeros_like(number))
    assert IndexCounter(codes).count(batch).tolist() == ScanCounter(codes).count(batch).tolist()


def test_ranges_that_are_not_split_are_those_that_were_asked_about():
    facts = PublicFacts(9, Schema((Grid("a", lower=0, upper=7),)), claim_named("idp"))
    axes = [Axis(0, 0, 7)]
    columns = Columns(Rules.of(facts), axes)
    columns.begin([0])
    assert columns.ranges() == [((0, 8, 9),)]


# -- columns that tell of each other ---------------------------------------------------------


def test_of_many_attributes_questions_name_as_few_as_tell_all_groups_apart(monkeypatch):
    """The same records in fewer words: same questions, same table, twins and gaps included."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (30, 20))
    codes[7] = codes[3]
    table = table_of(codes)

    def asked(most):
        monkeypatch.setattr(groups, "_LONG", most)
        verdict = audit(table)
        assert verdict.exit_code == 0
        return verdict.run.meter.queries, sorted(
            map(tuple, as_a(TableFound, verdict.run.found).codes.tolist())
        )

    assert asked(4) == asked(64)
    whole = Groups.whole([Axis(column, 0, 2) for column in range(20)], [30])
    for column in range(20):
        values, sizes = np.unique(codes[:, : column + 1], axis=0, return_counts=True)
        whole = replace(whole, codes=values, sizes=sizes, known=np.full(len(sizes), column + 1))
    monkeypatch.setattr(groups, "_LONG", 4)
    short = whole.cells(30)
    assert len(short.columns) < 20
    assert len(np.unique(short.low, axis=0)) == len(whole.sizes)
    assert len(whole.cells(31).columns) == len(whole.cells().columns) == 20  # some are elsewhere


def test_the_nearest_columns_are_those_that_follow_from_each_other():
    rng = np.random.default_rng(5)
    columns = list(rng.integers(0, 5, (90, 300)))
    columns[40] = (columns[11] * 2 + 1) % 5
    near = nearest(columns, 3)
    assert near.shape == (90, 3)
    assert (near[40, 0], near[11, 0]) == (11, 40)
    assert all(column not in near[column] for column in range(90))
    assert 11 in parents(columns)[40]
    assert (tree(columns)[40] == 11) != (tree(columns)[11] == 40)


def test_others_name_a_value_that_follows_however_many_columns_there_are():
    rng = np.random.default_rng(6)
    rows = rng.integers(0, 4, (200, 90))
    rows[:, 80] = (3 * rows[:, 17] + 1) % 4
    others = Others(rows)
    assert others.named(80, [each for each in range(90) if each != 80]).all()
    assert others.named(3, [each for each in range(90) if each != 3]).mean() < 0.5


# -- bits ------------------------------------------------------------------------------------


def plain(data):
    """Records times log2 of each public domain, less the order of the records."""
    each = data.records * sum(math.log2(sure(attribute.size)) for attribute in data.schema)
    _, often = np.unique(data.codes, axis=0, return_counts=True)
    orders = math.lgamma(data.records + 1) - sum(math.lgamma(many + 1) for many in often)
    return each - orders / math.log(2)


def bits_of(verdict):
    """All bits that are said of a whole table."""
    record = verdict.record()
    limits = sure(verdict.bounds)
    return [sure(verdict.bits), sum(verdict.bits_by_attribute.values()), sure(limits.bits)], record


@pytest.mark.parametrize("strategy", ["adaptive", "thrifty", "posterior"])
@pytest.mark.parametrize("mechanism", ["idp", "bdp"])
def test_a_random_table_has_no_more_bits_than_the_plain_code(strategy, mechanism):
    if (strategy, mechanism) == ("posterior", "bdp"):
        return
    rng = np.random.default_rng(4)
    for shape, size in (((12, 20), 2), ((30, 4), 8), ((7, 20), 3)):
        data = table_of(rng.integers(0, size, shape))
        verdict = audit(data, strategy=strategy, mechanism=mechanism, seed=2)
        said, record = bits_of(verdict)
        assert max(said) <= plain(data) + 1e-6
        assert sure(record.bits) <= plain(data) + 1e-6


def test_every_small_table_has_no_more_bits_than_the_plain_code():
    for cells in itertools.product(range(2), repeat=6):
        data = table_of(np.array([*cells, 0, 1]).reshape(4, 2))
        verdict = audit(data, seed=1)
        assert max(bits_of(verdict)[0]) <= plain(data) + 1e-6


def test_where_an_attack_learned_what_is_not_so_the_plain_code_is_named():
    rng = np.random.default_rng(7)
    data = table_of(rng.integers(0, 2, (30, 90)))
    verdict = audit(data, seed=1)
    assert sure(verdict.bits) == pytest.approx(plain(data))
    assert "equally likely" in verdict.bits_basis
    assert sum(verdict.bits_by_attribute.values()) == pytest.approx(sure(verdict.bits))
    limits = sure(verdict.bounds)
    assert limits.code == "even"
    assert sure(limits.bits) == pytest.approx(plain(data))


def test_columns_counts_and_people_have_no_more_bits_than_the_plain_code():
    schema = Schema((Grid("a", lower=0, upper=7), Categories("b", ("x", "y"))))
    facts = PublicFacts(100, schema, claim_named("idp"))
    column = ColumnFound(0, [(2, 100)], bits=1e6, domain=8)
    measured = code_length(ColumnsFound((column,)), facts)
    assert measured.total == pytest.approx(300)
    assert not measured.learned
    half = ColumnFound(0, [], bits=1e6, domain=8, ranges=((0, 4, 100),))
    assert code_length(ColumnsFound((half,)), facts).total == pytest.approx(100)
    measured = code_length(CountFound(7, bits=50.0), facts)
    assert measured.total == pytest.approx(math.log2(101))
    assert not measured.learned
    person = PersonFound(True, True, 1, (ColumnFound(0, [(2, 1)], bits=9.0),), bits=10.0)
    measured = code_length(PeopleFound((person,)), facts)
    assert measured.total == pytest.approx(4.0)
    assert (measured.columns, measured.learned) == ({0: 3}, False)


@examples(100)
@given(data=st.data())
def test_known_bits_of_rows_that_are_groups_are_those_of_all_rows(data):
    """A shortcut for groups of one row: the same as with the row twice, apart by one column."""
    rows = data.draw(st.integers(1, 5))
    cell = st.lists(st.integers(0, 3), min_size=4, max_size=4)
    codes = np.array(data.draw(st.lists(cell, min_size=rows, max_size=rows)), np.int64)
    codes[:, 0] = np.arange(rows)  # each is a group of its own
    schema = table_of(np.array([[0, 3, 3, 4]])).schema
    counts = np.array(data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows)))
    whole = TableFound((0, 1, 2, 3), codes, np.full(rows, 4), counts, (1, 1, 1, 1))
    told = known_bits(schema, whole, Alone())
    assert told.known == pytest.approx(sum(table_bits(schema, whole)))
    assert told.known == pytest.approx(sum(told.columns))
