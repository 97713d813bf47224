"""Trials of membership that score: never silent, guesses by likelihood, power, true reasons."""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from thinveil import Dataset, Grid, Options, Schema, Trial, audit, people, trial
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.scored import SURE, best_threshold
from thinveil.auditing.attempt import curator_of, hashed, trial_of
from thinveil.auditing.driver import Run
from thinveil.auditing.schedule import Equal, Fixed, Free, Halving, Total, first_loss, most_answers
from thinveil.commands.main import run
from thinveil.curator.neighbours import Neighbour
from thinveil.errors import RecordError, UsageError
from thinveil.language.claims import Claim, KLocal, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.report.charts.membership import trade_off
from thinveil.report.html import page
from thinveil.verdicts.record import read_run
from thinveil.verdicts.trials import coins, membership_trials, possible_targets
from worlds import sure, sweep

DATA = people(60)
BOUNDED = Dataset(
    Schema((Grid("a", lower=0, upper=9999), Grid("b", lower=0, upper=9))),
    np.random.default_rng(3).integers(0, (3000, 10), (80, 2)),
)


def scores(data, many=40, **settings) -> tuple[list[float], list[bool], list[Run[float]]]:
    """Return the score of each trial, its coin, and its run."""
    options = Options(attack="membership", trials=many, **settings)
    found = []
    drawn = coins(data, possible_targets(data), many, 0)
    for coin in drawn:
        row, other = data.codes[[coin.row]], data.codes[[coin.row if coin.inside else coin.other]]
        world = Neighbour(data.schema, data.records, data.counter(), row, other, str(coin.seed))
        target = curator_of(world, options, seed=coin.seed)
        found.append(hashed(trial_of(target, options, dict(enumerate(row[0].tolist())))))
    return [sure(each.found) for each in found], [coin.inside for coin in drawn], found


# A trial yields a score


def test_what_an_honest_answer_tells_is_guessed_and_not_left_unsaid():
    """At 0.05 an answer and 4,096 answers a guess by likelihood is right 94 % of the time.

    Exactly: the ratio is nearly normal with a mean of n eps^2 / 2 and twice that as variance, so a
    guess is right with chance Phi(0.05 * 64 / 2) = 0.945.
    """
    found = trial(DATA, mechanism="dp-laplace", epsilon_per_query="0.05", trials=100)
    assert 0.945 - 0.07 < found.guessed_right / 100 <= 1  # three standard errors
    assert found.epsilon_at_least > 1
    assert found.queries == 100 * 4096
    assert sure(found.curve).mu_at_least > 0.5


@pytest.mark.parametrize(
    ("mechanism", "loss", "chance"),
    [
        ("idp-binary", "1e-10", 0.75),  # half of those who are in it show a 1
        ("dp-laplace", "2", 1 - math.exp(-1) / 2),
        ("idp-noisy", "1e-10", 0.625),  # scales 1 and 2: (1 + 1/2 - 1/4) / 2
        ("idp-binary", "9", 1 - math.exp(-4.5) / 2),  # there the bit tells more than the noise
    ],
)
def test_one_answer_a_trial_is_audited(mechanism, loss, chance):
    found = trial(DATA, mechanism=mechanism, epsilon_per_query=loss, most_repeats=1, trials=160)
    assert (found.queries, found.most_queries, found.cut) == (160, 1, 0)
    share, error = found.guessed_right / 160, math.sqrt(chance * (1 - chance) / 160)
    assert abs(share - chance) < 4 * error
    assert found.epsilon_at_least > 0 or chance < 0.7


@pytest.mark.parametrize(
    ("mechanism", "most"),
    # answers a trial before this attack, on average, at 1e-10 an answer and an error of 1e-6
    [("idp", 1), ("idp-binary", 17.75), ("idp-integer", 1), ("idp-noisy", 196), ("bdp", 1)],
)
def test_a_trial_that_was_sure_before_asks_no_more(mechanism, most):
    told, inside, runs = scores(DATA, mechanism=mechanism)
    assert [each > 0 for each in told] == inside
    assert all(13.8 < abs(each) <= SURE for each in told)
    assert np.mean([each.meter.queries for each in runs]) <= most


@pytest.mark.parametrize("mechanism", sweep(["idp-noisy", "idp-binary", "bdp", "idp"], 2))
@pytest.mark.parametrize("universe", ["unbounded", "bounded"])
def test_a_curator_who_remembers_is_asked_in_new_words(mechanism, universe):
    told, inside, _ = scores(BOUNDED, 12, mechanism=mechanism, cache=True, universe=universe)
    assert [each > 0 for each in told] == inside
    assert min(map(abs, told)) > 13.8


def test_where_there_are_no_new_words_one_answer_is_a_score_all_the_same():
    small = Dataset(Schema((Grid("a", lower=0, upper=40),)), np.arange(0, 30)[:, None])
    how: dict[str, Any] = {"mechanism": "dp-laplace", "cache": True, "universe": "bounded"}
    told, _, runs = scores(small, 10, epsilon_per_query="3", **how)
    assert {each.ending for each in runs} == {"undecided"}
    assert all(0 < abs(each) <= 3 + 1e-9 for each in told)
    found = trial(small, trials=10, epsilon_per_query="3", **how)
    assert found.cut == 10
    assert "All trials ended before they were sure" in found.sentence()
    assert "no usable difference" not in found.sentence()


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [
        ({"mechanism": "idp"}, 1),
        ({"mechanism": "idp", "k": 3}, 3),
        ({"mechanism": "idp-noisy", "k": 2}, 2),
        ({"mechanism": "idp-binary"}, 1),
        ({"mechanism": "bdp"}, 0),
        ({"mechanism": "dp-laplace"}, 0),
        ({"mechanism": "dp-smooth"}, 0),
    ],
)
def test_the_threshold_is_where_one_record_and_none_differ_most(settings, threshold):
    claim = Options(**settings).claim()
    facts = PublicFacts(200, DATA.schema, claim)
    assert best_threshold(facts, Care(), 1e-10)[0] == threshold
    if claim.leaks:
        assert best_threshold(facts, Care(), 1e-10)[1] > 0.05
    loud = best_threshold(PublicFacts(200, DATA.schema, claim_named("idp-binary")), Care(), 9.0)
    assert loud[0] == 0


@dataclass(frozen=True)
class Fading:
    """Never zero; falls with the distance from the threshold. A law that no zones describe."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return np.exp(-0.5 * np.maximum(np.maximum(threshold - count, count - threshold - 1), 0))

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return np.broadcast_to(np.arange(records), (len(threshold), records))


@dataclass(frozen=True)
class Growing:
    """Noise reaches one record far, in large tables two, and nobody says so."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return KLocal(2 if records > 10_000 else 1).at(count, threshold, records, epsilon)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return threshold[:, None] + np.array([-2, -1, 0, 1, 2])


def test_a_law_of_its_own_is_asked_where_it_tells_most():
    claim = Claim("fading", Fading(), "laplace")
    for records in (60, 300):
        b, apart = best_threshold(PublicFacts(records, DATA.schema, claim), Care(), 1e-10)
        assert b > 0  # at b = 0 only the true bit differs, under noise
        assert apart == pytest.approx(1 - 1 / math.cosh(0.25), rel=1e-6)  # scales of ratio e^(1/2)
    options = Options(attack="membership", trials=40)
    found = membership_trials(DATA, options, claim=claim)
    assert found.guessed_right == 40


def test_a_law_that_is_another_in_large_tables_is_refused():
    large = Dataset(Schema((Grid("a"),)), np.arange(10_001)[:, None])
    claim = Claim("growing", Growing(), "laplace")
    with pytest.raises(UsageError, match="another shape in a table of 10,001 records"):
        membership_trials(large, Options(attack="membership", trials=2), claim=claim)
    with pytest.raises(UsageError, match="Use a smaller k"):
        trial(people(5), k=3, trials=4)


# Why a trial ends


@pytest.mark.parametrize(
    ("limits", "answers", "words"),
    [
        ({"cap": "2e-9"}, 20, "the cap on the claimed loss is reached: 2e-09 of 2e-09 is spent"),
        ({"max_queries": 7}, 7, "the curator gives at most 7 answers in all"),
        ({"epsilon": "1", "split": "equal", "answers": 9}, 9, "was split over 9 answers"),
        ({"cap": "1.55e-9"}, 15, "the cap on the claimed loss is reached"),
    ],
)
def test_a_trial_that_was_cut_has_a_score_and_says_by_what(limits, answers, words):
    found = trial(DATA, mechanism="idp-noisy", trials=40, **limits)
    assert 0 < found.cut <= 40
    assert found.most_queries == answers  # all that there are, not merely whole batches
    assert words in found.reason
    assert words in found.sentence()
    assert "no usable difference" not in found.sentence()
    assert found.guessed_right > 30


def test_trials_that_drew_all_answers_of_their_settings_were_not_cut():
    found = trial(DATA, mechanism="dp-laplace", trials=12, most_repeats=64)
    assert (found.cut, found.reason, found.most_queries) == (0, "", 64)


def test_schedules_say_how_many_answers_they_allow():
    cap = Options(cap="1e-9").cap_value()
    each, whole = Options(epsilon_per_query="3e-10"), Options(epsilon="1")
    claim = each.claim()
    fixed, total = each.schedule(claim), whole.schedule(claim)
    assert isinstance(fixed, Fixed)
    assert isinstance(total, Total)
    assert [most_answers(fixed, limit) for limit in (None, cap)] == [None, 3]
    assert most_answers(total, cap) is None
    one = Options(epsilon="1").total()
    assert one is not None
    assert most_answers(Equal(one, 40), None) == 40
    assert most_answers(Equal(one, 40), one / 4) == 10
    assert most_answers(Halving(one), None) == 996
    assert most_answers(Free(), None) is None
    assert first_loss(Free()) is None
    assert first_loss(fixed) == 3e-10
    assert sure(first_loss(total)) > 0.6


def test_shares_that_shrink_are_not_wasted_on_a_large_first_batch():
    _, _, runs = scores(DATA, 4, mechanism="dp-laplace", epsilon="1", most_repeats=64)
    assert all(each.spent > 0.8 for each in runs)  # of the 0.6079 pi^2 / 6 = 1 that there is


# What the record says


def test_right_guesses_show_more_than_two_rates_did():
    """5.65 where two rates showed 4.88, and 0.87 of twenty trials, which showed nothing."""
    assert trial(DATA, trials=20).epsilon_at_least == pytest.approx(0.868, abs=1e-3)
    found = trial(DATA, trials=400)
    assert found.epsilon_at_least == found.ceiling == pytest.approx(4.035, abs=1e-3)
    assert "(the most that 400 trials can show): 400 of 400 guesses were right" in found.sentence()


def test_the_power_of_trials_is_that_of_randomised_response_and_says_so():
    """Noise of the very loss that is named shows a bound far less often than named."""
    seen = sure(trial(DATA, mechanism="dp-smooth", trials=50, most_repeats=1).seen_loss)
    tries = (
        trial(DATA, mechanism="dp-smooth", epsilon_per_query=f"{seen:.3g}", trials=50,
              most_repeats=1, seed=seed)
        for seed in range(10)
    )  # fmt: skip
    null = [each for each in tries if not each.epsilon_at_least]
    assert len(null) > 5
    assert all("as randomised response does" in each.sentence() for each in null)


def test_every_null_result_states_its_power():
    found = trial(DATA, mechanism="dp-laplace", trials=60, most_repeats=16)
    assert found.epsilon_at_least == 0
    seen = sure(found.seen_loss)
    assert (
        f"A loss of {seen:.3g} in the sense of differential privacy, all of it given away in each "
        "trial (as randomised response does), would have shown one with a probability of 90 %; "
        "noise of the same loss gives away less." in found.sentence()
    )
    assert found.to_plain()["seen_loss"] == seen
    assert found.to_plain()["seen_chance"] == 0.9
    text = page(audit(DATA, attack="membership", mechanism="dp-laplace", trials=60).record())
    assert "would have shown one with a probability of 90 %" in text.replace("\xa0", " ")


def test_a_run_that_was_stopped_has_a_bound_that_holds_whenever_that_is():
    calls = []

    def stop(meter, about):
        calls.append(about)
        if len(calls) == 60:
            raise KeyboardInterrupt

    found = membership_trials(DATA, Options(trials=400, attack="membership"), stop)
    assert (found.trials, found.interrupted, found.curve) == (60, True, None)
    assert 0 < found.epsilon_at_least == found.ceiling < trial(DATA, trials=60).ceiling
    assert "stopped by hand after 60 of 400; the bound holds whenever that is done" in (
        found.sentence()
    )
    assert sure(found.seen_loss) > sure(trial(DATA, mechanism="dp-laplace", trials=60).seen_loss)


def test_a_claimed_delta_is_part_of_the_bound():
    found = trial(DATA, mechanism="idp", noise="gaussian", delta="1e-6", trials=60)
    assert found.delta_claimed == pytest.approx(1e-6)
    assert found.epsilon_at_least < trial(DATA, trials=60).epsilon_at_least
    assert "with a delta of 0.000001, at 99.9 % confidence" in found.sentence()


def test_the_trade_off_is_drawn_with_its_band():
    found = trial(DATA, mechanism="dp-laplace", epsilon_per_query="1", most_repeats=9, trials=120)
    drawn = trade_off(sure(found.curve))
    assert "standard deviations away, or more" in drawn.title
    assert "mu is at least" in drawn.note
    assert len(drawn.table.rows) == len(sure(found.curve).points)
    band, diagonal, line = (each["data"]["values"] for each in drawn.panels[0].spec["layer"])
    assert [row["fpr"] for row in band] == sorted(row["fpr"] for row in band)
    for name in ("low", "high"):
        assert all(a[name] <= b[name] for a, b in pairwise(band))
    assert all(row["low"] <= row["high"] for row in band)
    assert diagonal == [{"fpr": 0, "tpr": 0}, {"fpr": 1, "tpr": 1}]
    assert (line[0], line[-1]) == ({"fpr": 0.0, "tpr": 0.0}, {"fpr": 1.0, "tpr": 1.0})
    idle = trial(DATA, mechanism="dp-laplace", trials=60, most_repeats=16)
    assert "No threshold on the scores shows a difference" in trade_off(sure(idle.curve)).title


def test_the_terminal_counts_guesses_and_promises_no_decision(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    how = ["--mechanism", "dp-laplace", "--most-repeats", "16", "--trials", "12"]
    assert run(["audit", "--attack", "membership", *how]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "of 12 (asking nothing: half of them)" in shown
    assert "answers a trial │ 16.0" in shown
    assert "wrong decision" not in shown
    assert "trials of up to" not in shown


def test_a_capped_run_still_has_its_trials():
    verdict = audit(DATA, max_queries=300, trials=20)
    assert (verdict.run.ending, verdict.exit_code) == ("cap", 3)
    assert sure(verdict.membership).guessed_right == 20


def test_the_chance_of_a_wrong_guess_is_that_of_the_public_law():
    assert trial(DATA, trials=20).error < 1e-10
    assert trial(DATA, mechanism="dp-laplace", trials=20, most_repeats=4).error == 1
    found = trial(DATA, mechanism="idp-noisy", trials=20)
    assert 0 < found.error <= 20e-6
    assert isinstance(found, Trial)


def test_a_double_that_one_world_alone_can_give_settles_a_trial():
    """The textbook way of drawing (Mironov 2012): 63 % of answers settle it, at any loss."""
    found = trial(DATA, mechanism="dp-textbook", trials=60)
    assert found.guessed_right == 60
    assert found.queries_a_trial < 3
    blind = trial(DATA, mechanism="dp-textbook", channel="noise", trials=60, most_repeats=64)
    assert 10 < blind.guessed_right < 50
    for mechanism in ("dp-laplace", "dp-smooth"):
        assert 10 < trial(DATA, mechanism=mechanism, trials=60, most_repeats=64).guessed_right < 50
    assert trial(DATA, mechanism="idp-noisy", channel="doubles", trials=30).queries_a_trial < 4
    with pytest.raises(UsageError, match="--channel doubles"):
        trial(DATA, mechanism="idp-binary", channel="doubles", trials=30)


def test_a_result_of_trials_without_scores_is_one_clear_error(tmp_path):
    plain = audit(DATA, attack="membership", trials=12).to_plain()
    for name in ("guesses", "curve", "most_repeats"):
        del plain["membership"][name]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(RecordError, match=r"membership.guesses is missing.*run the audit again"):
        read_run(path)
