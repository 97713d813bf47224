"""The best attack on one person, beside the search for whole records in the risk curves."""

from __future__ import annotations

import math
from functools import cache

import pytest

import thinveil
from thinveil.language.claims import claim_named
from thinveil.report.charts.risk import against_loss
from thinveil.verdicts.comparing.one_person import Advantage, advantages, by_law
from thinveil.verdicts.comparing.risk import (
    AnswersCurve,
    Known,
    LossCurve,
    LossPoint,
    Risk,
    _one_person,
)
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.phrases import SPACE
from thinveil.verdicts.typed import from_json

TOTALS = (1e-12, 0.1, 1.0, 10.0)


@pytest.mark.parametrize("total", [0.01, 0.5, 2.0, 10.0, 30.0])
def test_honest_noise_tells_of_one_person_what_its_law_says(total: float) -> None:
    told, answers = by_law(claim_named("dp-laplace"), 60, total, 10**5)
    assert told == pytest.approx(-math.expm1(-total / 2), rel=1e-3)
    assert answers == 1  # all of it on one answer


@pytest.mark.parametrize("mechanism", ["idp", "idp-noisy", "idp-binary", "idp-integer"])
def test_relaxed_mechanisms_tell_everything_at_any_total(mechanism: str) -> None:
    told, answers = by_law(claim_named(mechanism), 60, 1e-12, 10**5)
    assert told > 0.999
    assert answers == 1 or mechanism != "idp"


def test_a_larger_total_never_tells_less() -> None:
    told = advantages("x", claim_named("dp-laplace"), 60, (1e6, 1e3, 10.0, 1.0), 10**5)
    assert [each.epsilon for each in told] == [1.0, 10.0, 1e3, 1e6]
    assert [each.advantage for each in told] == sorted(each.advantage for each in told)
    assert told[-1].advantage > 0.999
    assert told[0].right == pytest.approx((2 - math.exp(-0.5)) / 2, rel=1e-4)


def test_trials_of_membership_are_right_as_often_as_the_law_says() -> None:
    data = thinveil.people(40)
    verdict = thinveil.audit(
        data,
        mechanism="dp-laplace",
        epsilon="2",
        split="equal",
        answers=1,
        attack="count",
        known={"insured": "yes"},
        trials=200,
        seed=3,
    )
    trial = verdict.membership
    assert trial is not None
    share = (trial.right + trial.outside - trial.wrong) / (trial.inside + trial.outside)
    law = (1 + by_law(claim_named("dp-laplace"), 40, 2.0, 1)[0]) / 2
    assert abs(share - law) < 0.12  # four times the deviation of 200 trials


@cache
def drawn() -> Risk:
    """Risk curves of a search that finds everybody, but nobody of honest DP."""
    shares = {"idp": 1.0, "dp-textbook": 1.0, "dp-laplace": 0.0}
    runs = [
        LossPoint(name, total, 0, Known(share, share), 9, total, "complete", "")
        for name, share in shares.items()
        for total in TOTALS
    ]
    alone = _one_person(runs, 60, Settings(), 10**5)
    return Risk(
        LossCurve(60, 10**5, "posterior", 0.0, 0.1, tuple(runs), alone),
        AnswersCurve(60, "1e-10", 0.0, 0.1, ()),
        {"idp": "red", "dp-textbook": "pink", "dp-laplace": "blue"},
        0,
        False,
    )


def test_no_record_at_a_loss_of_ten_is_not_called_safe() -> None:
    curves = drawn()
    said = curves.sentence().replace(SPACE, " ")
    assert "dp-laplace (honest DP): this search found no record up to a total of 10" in said
    assert "but guesses whether one person is in the table can be right in 69.7 % at 1" in said
    assert "99.7 % at 10" in said
    assert (
        "idp, dp-textbook (DP drawn in doubles): this search found every record at 1e-12, and"
        in said
    )


def test_the_chart_says_where_this_search_succeeds_and_shows_the_best_attack_beside() -> None:
    picture = against_loss(drawn())
    search, person = picture.panels
    assert "where this search succeeds" in search.heading
    assert "best attack" in person.heading
    assert "not where nothing is given away" in picture.explained
    points = person.spec["data"]["values"]
    honest = {each["epsilon"]: each["advantage"] for each in points if "lap" in each["mechanism"]}
    assert honest[10.0] == pytest.approx(-math.expm1(-5), abs=1e-6)
    assert {each["advantage"] for each in points if each["mechanism"] == "dp-textbook"} == {1.0}
    assert str(picture.table.rows[-1][-1]).replace(SPACE, " ") == "99.7 %"


def test_what_a_search_found_everywhere_is_no_figure_of_the_law() -> None:
    told = drawn().one_person("dp-textbook")
    assert {(each.by, each.answers) for each in told} == {("search", None)}
    assert {each.by for each in drawn().one_person("dp-laplace")} == {"law"}


def test_curves_of_an_older_file_have_one_panel() -> None:
    whole = drawn()
    plain = whole.to_plain()
    del plain["against_loss"]["one_person"]
    older = from_json(Risk, plain)
    assert older.against_loss.one_person == ()
    assert len(against_loss(older).panels) == 1
    assert from_json(Risk, whole.to_plain()) == whole
    assert isinstance(whole.against_loss.one_person[0], Advantage)
