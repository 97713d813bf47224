"""Runs that end early: what they know is credited and said, and a limit is planned for."""

from __future__ import annotations

import io
import itertools
import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import thinveil
from thinveil.attacker.code_length import table_bits
from thinveil.attacker.findings import ColumnFound, CountFound, PeopleFound, TableFound
from thinveil.attacker.known_bits import known_bits, whole_bits
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from thinveil.report.charts import accuracy, progress
from thinveil.report.html import page
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.record import Record
from worlds import sure

PEOPLE = thinveil.people(60)


MORE = ("idp-integer", "idp-binary", "idp-noisy")


def nightly(*each: Any) -> Any:
    return pytest.param(*each, marks=pytest.mark.nightly)


@cache
def capped(most: int | None, **settings: Any) -> thinveil.Verdict:
    return thinveil.audit(PEOPLE, max_queries=most, **settings)


def printed(verdict: thinveil.Verdict) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    show_verdict(console, verdict)
    return " ".join(console.export_text().replace("│", " ").split())


# ---- what is credited


def test_columns_known_by_themselves_are_credited() -> None:
    verdict = capped(300)
    assert verdict.run.ending == "cap"
    run = verdict.record()
    assert run.records_rebuilt == 0
    assert len(run.columns_known) >= 5
    right = {each.name: (each.recovered, each.of) for each in sure(verdict.score).attributes}
    for name in run.columns_known:
        assert right[name] == (60, 60)
    shares = {each.name: sure(each.column) for each in sure(verdict.accuracy).attributes}
    assert shares["diagnosis"].share == 1
    assert 0 < sure(run.bits_share) < 1
    assert sure(verdict.bits) > 0
    assert not run.is_nothing


def test_whoever_knows_a_margin_names_at_least_its_most_common_value() -> None:
    verdict = capped(300)
    for each in sure(verdict.accuracy).attributes:
        if each.name in verdict.record().columns_known:
            named = sure(each.inferred)
            assert named.right >= sure(named.marginals) - 1e-9


FAST = (("idp", 0.6), ("bdp", 0.2))
SLOW = itertools.product(("idp", "unprotected", "bdp", *MORE), (0.02, 0.2, 0.6, 0.9))


@pytest.mark.parametrize(
    ("mechanism", "share"), [*FAST, *(nightly(*each) for each in SLOW if each not in FAST)]
)
def test_what_a_run_under_a_limit_says_is_true(mechanism: str, share: float) -> None:
    data = thinveil.people(20)
    whole = thinveil.audit(data, mechanism=mechanism).run.meter.queries
    most = max(1, int(share * whole))
    verdict = thinveil.audit(data, mechanism=mechanism, max_queries=most)
    assert verdict.run.meter.queries <= most
    found = verdict.run.found
    assert isinstance(found, TableFound)
    for each in found.margins:
        column = data.column(each.column).tolist()
        for code, count in each.values:
            assert count == column.count(code) or (each.distinct and code in column)
        assert sum(records for *_, records in each.ranges) <= len(column)
    rows = data.codes[:, found.columns]
    for codes, known, count in zip(found.codes, found.known, found.counts, strict=True):
        there = int((rows[:, :known] == codes[:known]).all(axis=1).sum())
        assert there >= (1 if found.distinct else count)
    known = sure(verdict.knowledge)
    assert 0 <= known.bits <= sure(known.of_all) + 1e-6


@pytest.mark.parametrize("strategy", ["adaptive", nightly("thrifty"), "published", "posterior"])
def test_every_strategy_credits_what_it_has_found_of_its_first_column(strategy: str) -> None:
    verdict = capped(120, strategy=strategy)
    assert verdict.run.ending == "cap"
    assert sure(verdict.record().bits_known) > 0
    assert "0 of 60 records" in verdict.sentence()
    assert "of all bits" in verdict.sentence()


def test_limits_of_a_count_are_said() -> None:
    known = {"job": "nurse"}
    true = PEOPLE.rows()
    place = PEOPLE.schema.names.index("job")
    count = sum(row[place] == "nurse" for row in true)
    whole = thinveil.audit(PEOPLE, attack="count", known=known)
    assert sure(whole.record().count).count == count
    part = thinveil.audit(PEOPLE, max_queries=2, attack="count", known=known)
    found = part.run.found
    assert isinstance(found, CountFound)
    low, high = sure(found.between)
    assert 0 <= low <= count <= high <= 60
    assert high - low < 60
    assert 0 < sure(part.bits) < sure(whole.bits)
    assert f"between {low:,} and {high:,} records match" in part.sentence()
    assert f"records that match: between {low:,} and {high:,}" in printed(part)
    masked = page(part.record())
    assert "about how many records match" in masked
    assert f"between {low:,} and {high:,} records" not in masked


NUMBERS = thinveil.Dataset(Schema((Grid("a", lower=None, upper=None),)), np.arange(1, 41)[:, None])


@pytest.mark.parametrize("mechanism", ["idp", "bdp"])
@pytest.mark.parametrize("strategy", ["adaptive", nightly("thrifty")])
def test_in_one_column_values_are_records(mechanism: str, strategy: str) -> None:
    most = 80 if mechanism == "idp" and strategy == "thrifty" else 75 if mechanism == "bdp" else 100
    verdict = thinveil.audit(NUMBERS, mechanism=mechanism, strategy=strategy, max_queries=most)
    run = verdict.record()
    right = sure(verdict.score).recovered
    assert 25 < right < 40
    assert run.records_rebuilt == right == sure(verdict.score).attributes[0].recovered
    shares = [each.records for each in sure(run.trace)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.6
    rows = [row[0] for row in verdict.rows()]
    assert sum(row != "?" for row in rows) == right
    assert f"recovered {right} of 40" in verdict.sentence()
    assert "something of" not in verdict.sentence()


def test_bits_say_whose_limits_they_rest_on() -> None:
    part = thinveil.audit(NUMBERS, max_queries=90)
    run = part.record()
    assert "by even chances within the limits found" in printed(part)
    said = progress.rebuilt(run, sure(run.trace)).explained
    assert "limits as found where they are not public" in said
    assert "Before its limits are found nothing counts of a column" in said
    public = Schema((Grid("a", lower=1, upper=64),))
    part = thinveil.audit(thinveil.Dataset(public, NUMBERS.codes), max_queries=50)
    run = part.record()
    assert "by even chances)" in printed(part)
    assert "as found" not in progress.rebuilt(run, sure(run.trace)).explained


def test_more_bits_than_answers_carry_on_average_are_explained() -> None:
    wide = Schema((Grid("a", lower=0, upper=1000), Grid("b", lower=0, upper=9)))
    same = np.column_stack([np.full(40, 700), np.arange(40) % 10])
    part = thinveil.audit(thinveil.Dataset(wide, same), max_queries=45)
    answers = part.run.meter.queries
    assert sure(part.knowledge).bits > answers * sure(sure(part.bounds).bits_an_answer)
    assert "more than answers carry on average, as the table is unlike most" in printed(part)
    usual = thinveil.audit(NUMBERS, max_queries=100)
    assert "more than answers carry" not in printed(usual)


def test_where_no_bits_are_counted_yet_that_is_said() -> None:
    early = printed(thinveil.audit(NUMBERS, max_queries=10))
    assert "none yet; what is known of limits so far is not counted" in early
    apart = printed(thinveil.audit(NUMBERS, max_queries=60, mechanism="bdp"))
    assert "different values count once all of a column are found" in apart


def missing() -> thinveil.Dataset:
    """Return 30 people of three cities; some ages are missing, and their bounds are not public."""
    schema = Schema((Grid("age", missing=True), Categories("city", ("A", "B", "C"))))
    rng = np.random.default_rng(1)
    age = np.where(rng.random(30) < 0.2, MISSING, rng.integers(18, 81, 30))
    return thinveil.Dataset(schema, np.column_stack([age, np.repeat([0, 1, 2], [9, 11, 10])]))


def of_city(mechanism: str, strategy: str, most: int | None) -> thinveil.Verdict:
    return thinveil.audit(
        missing(), attack="attribute", known={"city": "A"}, columns=["age"],
        mechanism=mechanism, strategy=strategy, max_queries=most,
    )  # fmt: skip


@pytest.mark.parametrize(
    "strategy", ["adaptive", *map(nightly, ("thrifty", "published", "posterior"))]
)
def test_values_of_people_that_are_settled_are_credited(strategy: str) -> None:
    whole = of_city("idp", strategy, None)
    asked = whole.run.meter.queries
    true = Counter(missing().codes[:9, 0].tolist())
    before, seen = 0.0, set()
    for most in range(10, asked, 5 if strategy == "adaptive" else asked // 20):
        part = of_city("idp", strategy, most)
        found = part.run.found
        person = next(iter(part.record().people), None)
        said = part.sentence()
        if person is None or person.matches is None:
            continue
        assert isinstance(found, PeopleFound)
        assert person.judged
        assert before - 1e-9 <= sure(part.bits) <= sure(whole.bits) + 1e-9
        before = sure(part.bits)
        if not person.values:
            assert "that 9 records fit, and no value yet," in said
            continue
        values = dict(found.people[0].values[0].values)
        assert values == {code: true[code] for code in values}
        left = 9 - sum(values.values())
        assert person.left("age") == left
        seen.add(left)
        if left:
            assert "some values of 1 attribute among the 9 records that fit" in said
            assert f"{left} not known yet" in printed(part)
            assert "some values of 1 attribute among several records" in page(part.record())
    assert len(seen - {0}) > 1
    assert "learned the values of 1 attribute among the 9 records" in whole.sentence()


def test_where_no_value_is_found_none_is_said() -> None:
    part = of_city("bdp", "adaptive", 20)
    assert "that somebody fits 1 of 1 person, and no value yet," in part.sentence()
    assert "learned the values that occur" in of_city("bdp", "adaptive", None).sentence()


# ---- bits


def test_bits_are_the_share_of_tables_left() -> None:
    """Count all tables of three records over a domain of 2 x 3, told apart by their place."""
    schema = Schema((Categories("a", ("x", "y")), Grid("b", lower=0, upper=2)))
    every = list(itertools.product(itertools.product(range(2), range(3)), repeat=3))

    def bits(fits: Any) -> float:
        return math.log2(len(every) / sum(map(fits, every)))

    def table(codes: Any, known: Any, counts: Any, margins: Any = ()) -> TableFound:
        rows = np.array(codes, np.int64).reshape(-1, 2)
        many = np.array(counts, np.int64)
        return TableFound((0, 1), rows, np.array(known), many, (1, 1), False, None, tuple(margins))

    def column(rows: Any, place: int) -> list[int]:
        return sorted(row[place] for row in rows)

    nothing = table([[0, 0]], [0], [3])
    assert known_bits(schema, nothing).known == 0
    one = ColumnFound(0, [(0, 2), (1, 1)], domain=2)
    two = ColumnFound(1, [(0, 1), (2, 2)], domain=3)
    for margins in ([one], [two], [one, two]):
        want = [[0, 0, 1] if each is one else [0, 2, 2] for each in margins]
        places = [each.column for each in margins]
        exact = bits(
            lambda rows, places=places, want=want: [column(rows, at) for at in places] == want
        )
        told = known_bits(schema, table([[0, 0]], [0], [3], margins)).known
        assert told == pytest.approx(exact)
    # one value is settled, and two records lie in a range of two others
    half = ColumnFound(1, [(0, 1)], ranges=((1, 2, 2),), domain=3)
    told = known_bits(schema, table([[0, 0]], [0], [3], [half])).known
    assert told == pytest.approx(bits(lambda rows: column(rows, 1).count(0) == 1))
    # nothing is settled, and two records lie among the first two values
    wide = ColumnFound(1, [], ranges=((0, 2, 2), (2, 1, 1)), domain=3)
    told = known_bits(schema, table([[0, 0]], [0], [3], [wide])).known
    assert told == pytest.approx(bits(lambda rows: column(rows, 1).count(2) == 1))
    # the first column of records is known, then some of the second
    prefix = table([[0, 0], [1, 0]], [1, 1], [2, 1])
    exact = bits(lambda rows: column(rows, 0) == [0, 0, 1])
    assert known_bits(schema, prefix).known == pytest.approx(exact)
    partly = table([[0, 0], [0, 0], [1, 0]], [2, 1, 1], [1, 1, 1])
    exact = bits(
        lambda rows: column(rows, 0) == [0, 0, 1] and sum(row == (0, 0) for row in rows) == 1
    )
    assert known_bits(schema, partly).known == pytest.approx(exact)
    whole = table([[0, 0], [0, 2], [1, 2]], [2, 2, 2], [1, 1, 1])
    exact = bits(lambda rows: sorted(rows) == [(0, 0), (0, 2), (1, 2)])
    assert known_bits(schema, whole).known == pytest.approx(exact)
    assert known_bits(schema, whole).known == pytest.approx(sum(table_bits(schema, whole)))
    assert whole_bits(schema, nothing, whole.codes) == pytest.approx(exact)
    # a margin and parts of records together: never more than is known
    both = table([[0, 0], [0, 0], [1, 0]], [2, 1, 1], [1, 1, 1], [two])
    exact = bits(
        lambda rows: (
            column(rows, 0) == [0, 0, 1]
            and column(rows, 1) == [0, 2, 2]
            and sum(row == (0, 0) for row in rows) == 1
        )
    )
    assert known_bits(schema, both).known <= exact + 1e-9
    assert known_bits(schema, both).known >= known_bits(schema, partly).known - 1e-9


@pytest.mark.parametrize("mechanism", ["idp", "bdp", *map(nightly, MORE)])
def test_bits_rise_from_nothing_to_all(mechanism: str) -> None:
    verdict = thinveil.audit(thinveil.people(30), mechanism=mechanism)
    steps = [sure(each.bits) for each in sure(verdict.record().trace)]
    assert steps[0] == 0
    assert steps == sorted(steps)
    assert steps[-1] == 1
    assert sum(0 < each < 1 for each in steps) > 5
    run = verdict.record()
    assert run.bits_known == pytest.approx(run.bits_of_all)


def test_without_the_table_the_share_of_bits_is_a_lower_bound() -> None:
    schema = PEOPLE.schema
    found = capped(1500).run.found
    assert isinstance(found, TableFound)
    known = known_bits(schema, found)
    truth = PEOPLE.codes[:, found.columns]
    assert sure(known.most) >= whole_bits(schema, found, truth) >= known.known
    early = capped(30).run.found  # bounds of age are not known yet
    assert isinstance(early, TableFound)
    assert known_bits(schema, early).most is None


# ---- what is said


def test_no_ended_run_gives_an_all_clear() -> None:
    for most in (12, 300, 1500):
        verdict = capped(most)
        run = verdict.record()
        assert verdict.run.ending == "cap"
        said = verdict.sentence()
        assert "every value of" in said
        assert "(not whose)" in said
        assert "of all bits" in said
        html = page(run)
        assert "Nothing was recovered" not in html
        assert "tone-part" in html
        assert "known of all bits" in printed(verdict)
        drawn = progress.rebuilt(run, sure(run.trace))
        assert "of all bits known" in drawn.title
        assert "guessing gets" not in accuracy.picture(run, sure(run.accuracy)).title or (
            "More values of" in accuracy.picture(run, sure(run.accuracy)).title
        )


def test_a_report_says_what_leaks_under_the_limit_that_it_names() -> None:
    html = page(capped(None).record())
    assert "A limit on how many answers are given." in html
    assert "By itself it is no protection" in html
    assert "of all bits were known after" in html.replace("\N{NO-BREAK SPACE}", " ")


def test_records_of_earlier_versions_are_read() -> None:
    plain = capped(60).to_plain()
    for name in ("bits_known", "bits_of_all", "columns_known", "columns_begun"):
        del plain[name]
    for moment in plain["trace"]:
        del moment["bits"]
    from thinveil.verdicts.typed import from_json

    run = from_json(Record, plain)
    assert run.bits_share is None
    assert "0 of 60 records" in run.verdict()
    assert "How far the attack got" in page(run)


# ---- planning


def test_a_limit_is_used_to_the_last_answer() -> None:
    for most in (12, 60, 300):
        assert capped(most).run.meter.queries == most
    for most in (11, 101):
        by_cap = thinveil.audit(PEOPLE, cap=str(most * 1e-10), epsilon_per_query="1e-10")
        assert most - 1 <= by_cap.run.meter.queries <= most


def test_small_columns_come_before_large_ones() -> None:
    names = capped(60).record().columns_known
    assert set(names) >= {"insured", "ward"}
    assert len(capped(300).record().columns_known) > len(names)


def test_whole_records_come_before_the_end() -> None:
    whole = capped(None).run.meter.queries
    part = capped(int(0.8 * whole))
    assert sure(part.score).recovered > 15
    assert len(part.record().columns_known) == len(PEOPLE.schema)


@pytest.mark.parametrize("seed", [2024, nightly(7)])
def test_a_limit_that_suffices_finds_everything(seed: int) -> None:
    data = thinveil.people(20, seed)
    free = thinveil.audit(data)
    verdict = thinveil.audit(data, max_queries=int(1.02 * free.run.meter.queries))
    assert verdict.run.ending == "complete"
    assert sure(verdict.score).exact


@pytest.mark.nightly
@pytest.mark.parametrize("records", [60, 300, 1000])
@pytest.mark.parametrize("factor", [1.02, 1.1, 1.5])
def test_limits_that_suffice_on_larger_tables(records: int, factor: float) -> None:
    data = thinveil.people(records, 5)
    most = int(factor * thinveil.audit(data).run.meter.queries)
    assert sure(thinveil.audit(data, max_queries=most).score).exact


def test_more_answers_never_show_fewer_columns_or_bits() -> None:
    shown = [capped(most).record() for most in (30, 60, 300, 1500)]
    for fewer, more in itertools.pairwise(shown):
        assert set(fewer.columns_known) <= set(more.columns_known)
        assert sure(fewer.bits_share) <= sure(more.bits_share)


def test_what_is_proved_at_the_end_only_has_no_bound_before_it() -> None:
    data = thinveil.people(6)
    whole = thinveil.audit(data, mechanism="idp-binary")
    assert whole.error_probability < 1e-6
    part = thinveil.audit(
        data, mechanism="idp-binary", max_queries=whole.run.meter.queries * 4 // 5
    )
    assert part.error_probability == 1
    assert "proofs come at the end" in printed(part)
    assert "proofs come at the end" in page(part.record())
    nothing = thinveil.audit(data, mechanism="dp-laplace")
    assert nothing.error_probability < 1e-6
