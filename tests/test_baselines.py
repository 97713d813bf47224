"""What attackers get who never ask, and how sure all of a comparison is together."""

import json
import math
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from thinveil import audit, people
from thinveil.language.queries import Codes
from thinveil.report import html
from thinveil.report.charts import spread
from thinveil.report.charts.thresholds import Stairs
from thinveil.report.text.comparison import show_comparison
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.judging import others, scoring
from thinveil.verdicts.judging.abstaining import choose
from thinveil.verdicts.judging.accuracy import BASELINES, by_marginals
from thinveil.verdicts.judging.chance import expected_overlap
from thinveil.verdicts.judging.guesses import epsilon_by_guesses
from thinveil.verdicts.judging.intervals import Share, clopper_pearson, interval_of_people
from thinveil.verdicts.judging.nearest import numbered, stepped
from thinveil.verdicts.judging.others import SinglingOut, named_by_others, singled_out, weights
from thinveil.verdicts.judging.tradeoff import trade_off
from thinveil.verdicts.phrases import percent
from thinveil.verdicts.sentences import outcome
from thinveil.verdicts.staircase import Staircase, Step
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
    ids = [numbered(column) for column in rows.T]
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
    bins = [stepped(numbered(rows[:, column]), 64) for column in given]
    assert others._by_bayes(numbered(rows[:, place]), bins).mean() == 0.991
    assert named_by_others(rows, place, given).all()


def test_the_table_of_the_page(capsys):
    verdict = audit(people())
    judged = sure(verdict.accuracy)
    page = PAGE.read_text("utf-8")
    for each in judged.attributes:
        one = sure(each.inferred)
        shares = (one.nothing_share, one.marginals_share, one.others_share, one.share)
        cells = [f"{100 * sure(share):.1f}" for share in shares]
        cells = [{"100.0": "100", "0.0": "0"}.get(cell, cell) for cell in cells]
        assert f"| {each.name} | {' | '.join(cells)} |" in page
    assert judged.given_away == ("ward",)
    alone = sure(judged.singling_out)
    assert (alone.rare, alone.isolating, alone.predicates) == (1996, 2000, 2000)
    told = f"{alone.rare:,} of the 2,000 people, beside {100 * alone.by_chance:.1f} %"
    assert told in " ".join(page.split())
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
    said = (
        "Other people's records alone name ward as well: that the attack names it too is no merit"
    )
    for people_ in (known[:40], known[:1]):
        alone = audit(data, attack="attribute", columns=("ward",), people=tuple(people_))
        assert (said in alone.sentence()) is bool(sure(alone.accuracy).given_away)
        assert said not in outcome(alone.record(), masked=True)
    told = to_json(judged)
    assert told["records"]["others"] == judged.whole.others


@pytest.mark.nightly
def test_what_the_others_suggest_does_not_hang_on_the_attack():
    runs: tuple[dict[str, Any], ...] = (
        {},
        {"strategy": "published"},
        {"mechanism": "idp-noisy"},
        {"mechanism": "bdp"},
    )
    found = []
    for how in runs:
        judged = sure(audit(DATA, **how).accuracy)
        found.append({each.name: sure(each.inferred).others for each in judged.attributes})
    assert found[0] == found[1] == found[2]
    again = sure(audit(DATA, mechanism="bdp", order=DATA.schema.names[::-1]).accuracy)
    assert found[3] == {each.name: sure(each.inferred).others for each in again.attributes}


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


# One confidence, all together


class Member(NamedTuple):
    """What is true of a mechanism that is simulated: its loss, and both rates of saying "in"."""

    loss: float
    tpr: float
    fpr: float


def wrong_of_membership(rng: np.random.Generator, true: Member, confidence: float) -> bool:
    """Tell whether anything is wrong that trials of membership say with an interval or bound."""
    inside = rng.random(40) < 0.5
    said = rng.random(40) < np.where(inside, true.tpr, true.fpr)
    scores = np.where(said, 1.0, -1.0)
    guesses = choose(scores, inside, confidence=confidence)
    bound = epsilon_by_guesses(guesses.right, guesses.made, confidence, trials=40)
    right = int((said == inside).sum())
    missed = [bound > true.loss]
    for count, of, share in (
        (right, 40, (true.tpr + 1 - true.fpr) / 2),
        (int((said & inside).sum()), int(inside.sum()), true.tpr),
        (int((said & ~inside).sum()), int((~inside).sum()), true.fpr),
    ):
        low, high = clopper_pearson(count, of, confidence)
        missed.append(not low <= share <= high)
    for point in trade_off(scores, inside, confidence).points:
        sides = ((true.tpr, point.tpr_interval), (true.fpr, point.fpr_interval))
        missed += [
            not low <= (1.0 if point.threshold <= -1 else rate * (point.threshold <= 1)) <= high
            for rate, (low, high) in sides
        ]
    return any(missed)


def wrong_of_people(rng: np.random.Generator, odds: tuple[float, ...], confidence: float) -> bool:
    """Tell whether the interval of values of 40 people is wrong, each of whom has six."""
    drawn = rng.choice(7, 40, p=odds) / 6
    low, high = interval_of_people(float(drawn.mean()), 40, confidence)
    return not low <= float(np.dot(np.arange(7), odds)) / 6 <= high


def test_all_intervals_and_bounds_of_a_comparison_hold_together():
    # ten mechanisms whose truth is known; without correction most comparisons have an error
    settings = Settings(confidence="0.8")
    loss = math.log(3)
    members = (Member(0.0, 0.5, 0.5), Member(loss, 0.75, 0.25))
    odds = ((0.0, 0.1, 0.2, 0.3, 0.2, 0.1, 0.1), (0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5))
    assert settings.statements == 6 * len(settings.mechanisms)

    def wrong(confidence: float) -> float:
        rng = np.random.default_rng(9)
        families = []
        for _ in range(120):
            cells = [
                wrong_of_membership(rng, members[at % 2], confidence)
                or wrong_of_people(rng, odds[at % 2], confidence)
                for at in range(len(settings.mechanisms))
            ]
            families.append(any(cells))
        return float(np.mean(families))

    assert wrong(settings.confidence_each) <= 0.2
    assert wrong(0.8) > 0.8


def test_a_comparison_says_that_all_of_it_holds_together(capsys):
    settings = Settings(mechanisms=("idp", "dp-laplace"), people=4, most_repeats=64)
    found = compare(people(20), replace(settings, confidence="0.99"))
    plain = found.to_plain()
    assert (plain["confidence"], plain["statements"], plain["confidence_each"]) == (
        "0.99", 12, 0.99917,
    )  # fmt: skip
    assert plain["confidence_each"] >= 1 - 0.01 / 12
    said = "12 at most, hold together with 99 % confidence: each by itself with 99.917 %"
    assert said in found.trials()[-1]
    for line in found.lines:
        member, attribute, dataset = line.tried
        assert sure(member.trial).confidence == attribute.confidence == found.confidence_each
        assert attribute.others is not None
        assert member.others is dataset.others is None
    show_comparison(Console(width=120), found)
    shown = " ".join(capsys.readouterr().out.split())
    assert "knowing all others" in shown
    assert "hold together with 99 % confidence" in shown


def test_at_the_baseline_means_at_that_of_the_best_guesser():
    found = compare(people(60), Settings(mechanisms=("idp",), people=6)).lines[0].tried[1]
    assert not found.at_baseline
    assert replace(found, recovered=10, stated=10, others=12.0).at_baseline
    assert replace(found, recovered=10, stated=10, marginals=12.0).at_baseline
    blind = replace(found, baseline=0.0, marginals=0.0, others=0.0)
    assert not replace(blind, recovered=20, stated=20).at_baseline


def test_noise_that_is_equally_large_is_rarely_called_different():
    rng = np.random.default_rng(2)
    steps = [Step(b, tuple(rng.laplace(size=200)), "noise") for b in range(12)]
    stairs = Stairs.of(Staircase("x", None, 1, 0.1, 0.1, tuple(steps), 0.9), 20, masked=False)
    picture = spread.picture(stairs)
    assert "equally large" in picture.title
    assert "90 % for all together" in str(picture)
    drawn = []
    for confidence in (0.9, 0.9999):
        other = spread.picture(replace(stairs, confidence=confidence))
        rows = other.panels[0].spec["data"]["values"]
        drawn.append(rows[0]["high"] - rows[0]["low"])
    assert drawn[0] < drawn[1]
