"""What attackers get who never ask, and how sure all of a comparison is together."""

import json
import math
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from thinveil import audit, people
from thinveil.language.queries import Codes
from thinveil.report import html
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.judging import others, scoring
from thinveil.verdicts.judging.accuracy import BASELINES, by_marginals
from thinveil.verdicts.judging.chance import expected_overlap
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.judging.others import SinglingOut, named_by_others, singled_out, weights
from thinveil.verdicts.phrases import percent
from thinveil.verdicts.typed import from_json, to_json
from worlds import examples, sure

DATA = people(80)
PAGE = Path(__file__).parents[1] / "docs" / "verdicts.md"


def tables(most_rows: int, columns: int, values: int = 2) -> st.SearchStrategy[Codes]:
    """Tables of a few rows and values."""
    row = st.tuples(*[st.integers(0, values - 1)] * columns)
    rows = st.lists(row, min_size=1, max_size=most_rows)
    return rows.map(lambda rows: np.array(rows, np.int64))


# Joining columns by chance


def overlap(actual: Codes, mixed: Codes, distinct: bool) -> int:
    sides = (scoring.counted(each, distinct) for each in (actual, mixed))
    return scoring.overlap(*next(sides), *next(sides))


@examples(100)
@given(data=st.data(), distinct=st.booleans())
def test_the_expected_overlap_is_the_mean_over_all_joins(data, distinct):
    actual = data.draw(tables(4, 3))
    other = data.draw(tables(4, 3))
    orders = list(permutations(range(len(other))))
    found = [
        overlap(
            actual,
            np.column_stack([other[:, 0], other[list(one), 1], other[list(two), 2]]),
            distinct,
        )
        for one, two in product(orders, repeat=2)
    ]
    assert expected_overlap(actual, other, distinct) == pytest.approx(np.mean(found), abs=1e-8)


@pytest.mark.parametrize("columns", [(2, 7), (5, 7, 4), (0, 5), (0, 2, 5, 7), (5,)])
@pytest.mark.parametrize("distinct", [False, True])
def test_many_random_joins_come_out_as_expected(columns, distinct):
    # between them: one row expected of a record and hundreds, so both ways to compute it
    actual = people(600).codes[:, columns]
    rng = np.random.default_rng(3)
    found = [
        overlap(actual, np.column_stack([rng.permutation(each) for each in actual.T]), distinct)
        for _ in range(200)
    ]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(by_marginals(actual, distinct) - np.mean(found)) < 4 * error + 0.2


def test_baselines_do_not_depend_on_a_draw():
    one, two = (sure(audit(DATA, seed=seed).accuracy) for seed in (1, 2))
    assert one.whole == two.whole
    assert one.attributes == two.attributes
    assert 0 < sure(one.whole.marginals) < 0.01
    codes = DATA.codes[:, [2, 7]]
    assert by_marginals(codes, distinct=False) != round(by_marginals(codes, distinct=False))


# Everybody else's records


def naive_bayes(rows: Codes, place: int, given: list[int]) -> list[bool]:
    """Leave each row out, count anew, and name the likeliest value that another row has."""
    right = []
    sizes = {column: len(set(rows[:, column].tolist())) for column in given}
    for at, person in enumerate(rows):
        rest = np.delete(rows, at, axis=0)
        scores = {}
        for value in sorted(set(rest[:, place].tolist())):
            mine = rest[rest[:, place] == value]
            score = math.log(len(mine) + 0.5)
            for column in given:
                same = int((mine[:, column] == person[column]).sum())
                score += math.log(same + 0.5) - math.log(len(mine) + 0.5 * sizes[column])
            scores[value] = round(score, 9)
        best = max(scores, key=lambda value: (scores[value], -value)) if scores else None
        right.append(best == person[place])
    return right


def agreeing(rows: Codes, place: int, given: list[int]) -> list[bool]:
    """Leave each row out, and name the most common value of the others who agree."""
    right = []
    for at, person in enumerate(rows):
        rest = np.delete(rows, at, axis=0)
        among = rest[(rest[:, given] == person[given]).all(axis=1), place].tolist()
        best = max(sorted(set(among)), key=among.count) if among else None
        right.append(best == person[place])
    return right


@examples(200)
@given(rows=tables(12, 3, 3))
def test_the_fast_ways_to_guess_are_what_leaving_each_row_out_gives(rows):
    ids = [others._ids(column) for column in rows.T]
    assert others._by_bayes(ids[2], ids[:2]).tolist() == naive_bayes(rows, 2, [0, 1])
    cell = others._both(ids[0], ids[1])
    right, some = others._by_agreeing(cell, ids[2])
    assert right.tolist() == agreeing(rows, 2, [0, 1])
    alone = [int(((rows[:, :2] == row[:2]).all(axis=1)).sum()) == 1 for row in rows]
    assert (~some).tolist() == alone


@examples(200)
@given(rows=tables(10, 3, 3), at=st.integers(0, 9))
def test_nobodys_own_value_has_a_say_in_how_it_is_guessed(rows, at):
    # a guess that does not look at the value is right for one value at most
    right = 0
    for value in range(4):
        changed = rows.copy()
        changed[at % len(rows), 2] = value
        right += bool(named_by_others(changed, 2, [0, 1])[at % len(rows)])
    assert right <= 1


def test_a_ward_that_follows_from_the_diagnosis_is_no_merit_of_the_attack():
    data = people()
    place, rows = data.schema.column("ward"), data.codes
    given = [column for column in range(rows.shape[1]) if column != place]
    assert np.unique(rows[:, place], return_counts=True)[1].max() / len(rows) == 0.246
    bins = [others._steps(others._ids(rows[:, column]), 64) for column in given]
    assert others._by_bayes(others._ids(rows[:, place]), bins).mean() == 0.991
    assert named_by_others(rows, place, given).all()


def test_the_table_of_the_page(capsys):
    verdict = audit(people())
    judged = sure(verdict.accuracy)
    page = PAGE.read_text("utf-8")
    for each in judged.attributes:
        one = sure(each.inferred)
        shares = (one.nothing_share, one.marginals_share, one.others_share, one.share)
        cells = [f"{100 * sure(share):.1f} %" for share in shares]
        cells = [{"100.0 %": "100 %", "0.0 %": "0 %"}.get(cell, cell) for cell in cells]
        assert f"| {each.name} | {' | '.join(cells)} |" in page
    assert judged.given_away == ("ward",)
    alone = sure(judged.singling_out)
    assert (alone.rare, alone.isolating, alone.predicates) == (1996, 2000, 2000)
    assert f"{alone.rare:,} of the 2,000 people, beside {100 * alone.by_chance:.1f} %" in page
    show_verdict(Console(width=120), verdict)
    shown = capsys.readouterr().out
    assert "others" in shown
    assert "no merit of the attack" in " ".join(shown.split())
    assert "as a share" not in shown
    assert "knowing all other records" not in shown  # of whole records that is no question


def test_beyond_guessing_means_beyond_everybody_elses_records():
    share = Share(9, 10, 1.0, 2.0, others=9.5)
    assert share.guess == share.others_share == 0.95
    judged = sure(audit(people(400), mechanism="idp").accuracy)
    ward = sure(judged.attributes[-1].inferred)
    assert ward.share == ward.guess == ward.others_share == 1
    assert sure(ward.marginals_share) < 0.3


def test_an_attack_on_attributes_stands_beside_the_others_too():
    data = people(300)
    rows = data.rows()
    known = [{"diagnosis": row[4] or "", "salary": row[3]} for row in rows if row[3] and row[4]]
    verdict = audit(data, attack="attribute", columns=("ward",), people=tuple(known[:40]))
    judged = sure(verdict.accuracy)
    assert sure(judged.whole.others) / judged.whole.of > 0.95
    assert judged.baselines == BASELINES
    assert sure(judged.whole.marginals) < judged.whole.of / 2
    told = to_json(judged)
    assert told["records"]["others"] == judged.whole.others


# Singling out


def test_chance_singles_out_in_one_of_e_tables():
    for records in (1, 2, 10, 1000):
        found = SinglingOut(records, 1, 1, 1)
        assert found.by_chance == pytest.approx((1 - 1 / records) ** (records - 1))
        weights_ = np.linspace(0, 1, 1001)[1:]
        best = (records * weights_ * (1 - weights_) ** (records - 1)).max()
        assert best <= found.by_chance + 1e-12
    assert SinglingOut(10**6, 1, 1, 1).by_chance == pytest.approx(1 / math.e, rel=1e-5)
    rng = np.random.default_rng(0)
    alone = (rng.binomial(50, 1 / 50, 20_000) == 1).mean()
    assert abs(alone - SinglingOut(50, 1, 1, 1).by_chance) < 0.02
    assert SinglingOut(50, 1, 1, 1).by_chance_if_rare <= 0.001


def test_singled_out_is_who_is_there_once_and_rare():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 30, (200, 6))
    rows[1] = rows[0]
    said = np.concatenate([rows, rng.integers(40, 50, (3, 6))])
    found = singled_out(said, rows)
    assert (found.predicates, found.isolating) == (202, 198)
    assert found.rare == 198
    assert found.share == 198 / 202
    # a number that everybody has another of isolates, and is not rare: a new one comes anyway
    numbers = np.arange(200)[:, None]
    plain = singled_out(numbers, numbers)
    assert (plain.isolating, plain.rare) == (200, 0)
    few = singled_out(rows[:, :1], rows[:, :1])
    assert few.rare == 0


def test_weights_are_about_how_likely_records_are():
    rng = np.random.default_rng(5)
    n = 20_000
    first = rng.integers(0, 4, n)
    second = (first + (rng.random(n) < 0.1)) % 4
    third = rng.integers(0, 5, n)
    true = 0.25 * np.where(second == first, 0.9, 0.1) / 5
    found = weights(np.column_stack([first, second, third]))
    assert np.abs(np.log(found / true)).max() < 0.15
    assert weights(np.zeros((1, 2), np.int64)) == pytest.approx([1.0])


def test_uniqueness_and_reports_say_what_chance_singles_out():
    rows = DATA.rows()
    known = tuple({"age": str(row[0]), "postcode": row[1]} for row in rows[:40])
    verdict = audit(DATA, attack="uniqueness", people=known)
    alone = sure(sure(verdict.accuracy).singling_out)
    unique = sum(each.unique is True for each in verdict.record().people)
    assert (alone.predicates, alone.isolating) == (unique, unique)
    assert f"Of {unique} people said to be alone, {unique} are" in alone.sentence()
    assert "people said to be alone" in html.page(verdict.record())
    text = html.page(audit(people(400)).record())
    assert "at best (about 1/e)" in text
    assert "Cohen" in text
    assert "of 99 % of the people or more" in text
    # of few people, what is rare of them is masked
    few = audit(DATA, attack="uniqueness", people=known[:5])
    assert sure(few.accuracy).singling_out is not None
    assert "said to be alone" not in html.page(few.record())


# No interval on one run


def test_records_of_one_run_have_no_interval_and_older_files_are_still_read():
    judged = sure(audit(DATA).accuracy)
    written = json.dumps(to_json(judged))
    assert '"interval"' not in written
    assert '"confidence"' not in written
    assert "no interval" in judged.meaning()
    older = {**to_json(judged.whole), "interval": [0.9, 1.0], "confidence": 0.999}
    assert from_json(Share, older) == judged.whole
    assert percent(judged.whole.others_share) == "not known"
