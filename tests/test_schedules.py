"""Equal and halving shares of a total: exact sums, limits, and runs that use them up."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.longest import most_questions
from thinveil.attacker.strategies import STRATEGIES
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import SPLITS, Equal, Halving, Total, exact_epsilon, shared_out
from thinveil.commands.main import run as command
from thinveil.curator.curator import Curator
from thinveil.curator.ledger import Ledger, Spend, exact
from thinveil.errors import BudgetSpent, EpsilonError, ThinveilError, UsageError
from thinveil.language.claims import SMALLEST_EPSILON, idp
from thinveil.language.queries import QueryBatch
from thinveil.language.texts import many
from thinveil.paper.printed import column_reconstruct
from worlds import Watched, World, as_a, attack_with, examples, one_column, ranges, sure, worlds

TOTALS = st.one_of(
    st.sampled_from(["1", "0.1", "0.3", "1e-10", "5e-4", "7", "1e-290", "1e9"]),
    st.decimals("1e-6", "1e3", places=9).map(str),
).map(exact_epsilon)


def asking(questions: int, repeats: Any = 1) -> QueryBatch:
    zeros = [0] * questions
    wanted = repeats if isinstance(repeats, int) else np.array(repeats)
    return ranges(zeros, zeros, zeros, zeros, repeats=wanted)


def cost(batch: QueryBatch, share: Any) -> Spend:
    return Spend.of(batch.stamped(("run", 1), share))


# ---- equal shares


@settings(max_examples=300)
@given(TOTALS, st.integers(1, 10**7))
def test_equal_shares_sum_to_the_total_and_never_above_it(total: Fraction, answers: int) -> None:
    share = Equal(total, answers).share
    assert exact(share) * answers <= total
    assert exact(math.nextafter(share, math.inf)) * answers > total or share == float(
        total / answers
    )
    assert exact(share) * answers > total * (1 - Fraction(1, 10**14))


@given(
    TOTALS,
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=12),
)
def test_equal_shares_however_they_are_batched(
    total: Fraction, batches: list[tuple[int, int]]
) -> None:
    answers = sum(questions * repeats for questions, repeats in batches)
    schedule, ledger, drawn = Equal(total, answers), Ledger(total), 0
    for questions, repeats in batches:
        batch = asking(questions, repeats)
        ledger.charge(cost(batch, schedule.stamp(batch, drawn)))
        drawn += batch.queries
    with pytest.raises(BudgetSpent, match=f"split over {many(answers, 'answer')}:"):
        schedule.stamp(asking(1), drawn)


def test_the_answer_after_the_last_is_refused_with_its_whole_batch() -> None:
    schedule = Equal(Fraction(1), 10)
    for batch, drawn in ((asking(11), 0), (asking(2), 9), (asking(1, [4]), 7), (asking(1), 10)):
        with pytest.raises(BudgetSpent, match="--answers"):
            schedule.stamp(batch, drawn)
    assert schedule.stamp(asking(2, [4, 6]), 0) == 0.1


@pytest.mark.parametrize("answers", [0, -1, 2.0, True, "5"])
def test_the_number_of_answers_is_a_whole_number(answers: Any) -> None:
    with pytest.raises(UsageError, match="answers"):
        Equal(Fraction(1), answers)


def test_an_equal_share_that_noise_cannot_bear_is_refused_at_once() -> None:
    assert Equal(exact_epsilon("1e-290"), 10**10).share >= SMALLEST_EPSILON * 0.99
    with pytest.raises(EpsilonError, match="larger total"):
        Equal(exact_epsilon("1e-290"), 10**11)


# ---- halving shares


@settings(max_examples=200)
@given(
    TOTALS,
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=12),
)
def test_halving_shares_never_pass_the_total(
    total: Fraction, batches: list[tuple[int, int]]
) -> None:
    schedule, ledger, drawn = Halving(total), Ledger(total), 0
    for questions, repeats in batches:
        batch = asking(questions, repeats)
        if drawn + batch.queries > schedule.limit:
            with pytest.raises(BudgetSpent, match=f"{schedule.limit:,} answers"):
                schedule.stamp(batch, drawn)
            break
        shares = schedule.stamp(batch, drawn)
        assert (shares >= SMALLEST_EPSILON).all()
        ledger.charge(cost(batch, shares))
        drawn += batch.queries


def test_answer_j_gets_the_total_over_two_to_the_j() -> None:
    shares = Halving(Fraction(1)).stamp(asking(4), 2)
    assert shares.tolist() == [2.0**-3, 2.0**-4, 2.0**-5, 2.0**-6]
    uneven = Halving(Fraction(1)).stamp(asking(2, [3, 1]), 0)
    assert uneven.tolist() == [2.0**-3, 2.0**-4]  # repeats get the share of the last of them


@given(TOTALS)
def test_the_limit_of_halving_is_the_last_share_that_noise_can_bear(total: Fraction) -> None:
    schedule = Halving(total)
    assert math.ldexp(schedule.total, -schedule.limit) >= SMALLEST_EPSILON
    assert math.ldexp(schedule.total, -schedule.limit - 1) < SMALLEST_EPSILON
    assert len(schedule.stamp(asking(schedule.limit), 0)) == schedule.limit
    assert f"{schedule.limit:,} answers" in schedule.describe()


def test_a_total_that_cannot_be_halved_once() -> None:
    assert Halving(exact_epsilon("3e-300")).limit == 1
    with pytest.raises(EpsilonError, match="larger total"):
        Halving(exact_epsilon("1e-300"))


# ---- by name


def test_ways_to_share_out_a_total() -> None:
    assert list(SPLITS) == sorted(SPLITS)
    one = Fraction(1)
    assert shared_out(one, "shrinking", None) == Total(one)
    assert shared_out(one, "halving", None) == Halving(one)
    assert shared_out(one, "equal", 7) == Equal(one, 7)
    assert shared_out(one, "equal", None) == Equal(one, None)  # found later, or asked for
    with pytest.raises(UsageError, match="--answers N"):
        shared_out(one, "equal", None).stamp(asking(1), 0)
    for split, answers in (("halving", 7), ("shrinking", 7), ("odd", None)):
        with pytest.raises(UsageError):
            shared_out(one, split, answers)


def test_a_split_needs_a_total_and_a_claim() -> None:
    for wrong in (
        {"split": "equal", "answers": 5},
        {"split": "halving", "epsilon_per_query": "1"},
        {"answers": 5},
        {"mechanism": "unprotected", "split": "halving"},
        {"epsilon": "1", "answers": 5},
        {"epsilon": "1", "split": "equal", "answers": 2.5},
    ):
        with pytest.raises(UsageError):
            Options(**wrong)
    assert Options(epsilons=("1", "0.5"), split="halving").schedule(idp(2)) == Halving(
        Fraction(1, 2)
    )
    assert Options(epsilon="1").schedule(idp()) == Total(Fraction(1))


# ---- whole runs


def test_enough_equal_shares_recover_everything_within_the_total() -> None:
    data = thinveil.people(60)
    needed = thinveil.audit(data).run.meter.queries
    verdict = thinveil.audit(data, epsilon="0.001", split="equal", answers=needed)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.run.spent <= Fraction(1, 1000)
    short = thinveil.audit(data, epsilon="0.001", split="equal", answers=np.int64(needed // 2))
    assert short.exit_code == 3
    assert short.run.ending == "cap"
    assert 0 < short.run.meter.queries < needed
    assert short.run.spent < Fraction(1, 1000)


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(*arguments: str) -> tuple[int, dict[str, Any]]:
    code = command(["audit", *arguments, "--json", "out.json"])
    return code, json.loads(Path("out.json").read_text())


@pytest.mark.usefixtures("_elsewhere")
def test_halving_ends_early_and_states_its_limit() -> None:
    code, result = told("--epsilon", "1", "--split", "halving")
    assert (code, result["ended"]) == (3, "cap")
    assert 0 < result["queries"] <= 996
    assert result["epsilon_claimed"] <= 1
    assert "996 answers" in result["reason"]
    assert "halved" in result["budget"]


@pytest.mark.usefixtures("_elsewhere")
def test_halving_is_enough_for_a_small_attack() -> None:
    who = ("--attack", "membership", "--known", "age=44")
    code, result = told(*who, "--epsilon", "0.5", "--split", "halving")
    assert (code, result["epsilon_claimed"]) == (0, 0.25)


@pytest.mark.usefixtures("_elsewhere")
def test_equal_shares_from_the_command_line() -> None:
    code, result = told("--epsilon", "0.001", "--split", "equal", "--answers", "2000")
    assert (code, result["ended"]) == (3, "cap")
    assert 0 < result["queries"] <= 2000
    assert result["epsilon_claimed"] <= 0.001
    assert "2,000 answers" in result["budget"]


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(
    "wrong",
    [
        ("--split", "equal", "--answers", "5"),
        ("--epsilon", "1", "--split", "equal"),
        ("--epsilon", "1", "--answers", "5"),
        ("--epsilon", "1", "--split", "equal", "--answers", "0"),
        ("--epsilon", "1e-300", "--split", "halving"),
    ],
    ids=" ".join,
)
def test_schedules_that_cannot_be_meant(
    wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["audit", *wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err


# ---- the paper's own split: as many answers as its search needs, and a limit for each


@pytest.mark.parametrize("epsilon", ["0.01", "1e-12"], ids=["capped", "shared"])
def test_algorithm_2_spends_what_it_prints(epsilon: str) -> None:
    """eps_share = min(1e-10, eps / steps) for a count, and eps_share / n for an answer of it."""
    values, steps, n = [6, 1, 3, 3, 5, 1], 8, 6  # from 0 to 7
    share = min(exact_epsilon("1e-10"), exact_epsilon(epsilon) / steps) / n
    verdict = thinveil.audit(
        one_column(values, lower=0, upper=steps - 1),
        strategy="linear",
        attack="column",
        columns=["x"],
        epsilon=epsilon,
        split="equal",
        most_each=repr(1e-10 / n),
    )
    assert verdict.options.answers == steps * n
    spent, queries = verdict.run.spent, verdict.run.meter.queries
    assert float(spent / queries) == pytest.approx(float(share), rel=1e-12)
    assert spent <= exact_epsilon(epsilon)
    printed = column_reconstruct(values, 1, 0, steps)  # from one step above the highest value on
    assert printed.ended
    assert (printed.answers, sorted(printed.values)) == (queries, sorted(values))
    [found] = verdict.result
    assert found["exact"]


def test_a_limit_for_each_answer_goes_with_every_split() -> None:
    one, most = Fraction(1), exact_epsilon("1e-10")
    assert Equal(one, 8, most).share == 1e-10
    assert Equal(most, 8, one).share == 1e-10 / 8
    for schedule, free in ((Total(one, most), Total(one)), (Halving(one, most), Halving(one))):
        shares = schedule.stamp(asking(60), 0)
        assert (shares == np.minimum(free.stamp(asking(60), 0), shares[0])).all()
        assert Fraction(shares[0]) <= most
        assert "at most 1e-10 each" in schedule.describe()
    for wrong in (
        {"most_each": "1e-10"},
        {"most_each": "x", "epsilon": "1"},
        {"most_each": "0", "epsilon": "1"},
        {"most_each": "1", "mechanism": "unprotected"},
    ):
        with pytest.raises(ThinveilError):
            Options(**as_a(dict, wrong))


@pytest.mark.parametrize("strategy", ["linear", "published"])
@pytest.mark.parametrize(
    "wish",
    [
        {"attack": "count", "known": {"age": "30..50"}},
        {"attack": "column", "columns": ["job", "ward"]},
        {"attack": "membership", "known": [{"age": 40}, {"age": 41}]},
        {"attack": "uniqueness", "known": {"age": 40}},
        {"attack": "uniqueness", "known": {"age": 40}, "present": True},
        {"attack": "attribute", "known": {"insured": "yes"}, "columns": ["job", "ward"]},
        {"attack": "attribute", "known": {"insured": "yes"}, "columns": ["age"]},
        {"attack": "dataset"},
    ],
    ids=lambda wish: wish["attack"],
)
def test_the_number_of_answers_is_found_where_it_is_public(
    strategy: str, wish: dict[str, Any]
) -> None:
    data = thinveil.people(20)
    settings = {"epsilon": "0.001", "split": "equal", "strategy": strategy, **wish}
    if strategy == "linear" and (wish["attack"] == "dataset" or wish.get("columns") == ["age"]):
        with pytest.raises(UsageError, match="--answers N"):  # ages have no bounds
            thinveil.audit(data, **settings)
        return
    verdict = thinveil.audit(data, **settings)
    assert verdict.run.ending == "complete"
    assert verdict.run.meter.queries <= sure(verdict.options.answers)
    assert verdict.run.spent <= Fraction(1, 1000)


@examples(80)
@given(
    worlds(columns=2, domain=4, records=9, large=False), st.sampled_from(["linear", "published"])
)
def test_no_search_asks_more_than_was_planned(world: World, strategy: str) -> None:
    assume(world.claim.reads_exactly)
    engine = STRATEGIES[strategy].engine(world.facts)
    columns = list(range(len(world.dataset.schema)))
    for name, wish in (("dataset", Wish()), ("column", Wish(columns=columns))):
        most = most_questions(name, engine, wish)
        if most is not None:
            attack = STRATEGIES[strategy].attack(name, world.facts, Care(), wish)
            assert attack_with(attack, world.curator()).meter.queries <= most
        else:
            assert any(each.lower is None for each in world.dataset.schema)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strategy": "thrifty"},
        {"strategy": "posterior", "attack": "column", "columns": ["job"]},
        {"strategy": "linear", "mechanism": "idp-binary"},
        {"strategy": "published", "mechanism": "idp-noisy"},
        {"attack": "membership", "trials": 40},
    ],
    ids=str,
)
def test_where_the_number_is_not_public_it_must_be_given(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--answers N"):
        thinveil.audit(thinveil.people(20), epsilon="1", split="equal", **settings)


def test_repeats_that_are_fixed_are_planned_for() -> None:
    wish: dict[str, Any] = {"attack": "count", "known": {"age": "30..50"}, "strategy": "published"}
    once = thinveil.audit(thinveil.people(20), epsilon="1", split="equal", **wish)
    again = {**wish, "mechanism": "idp-binary", "test": "identical", "repeats": 40}
    verdict = thinveil.audit(thinveil.people(20), epsilon="1", split="equal", **again)
    assert verdict.options.answers == 40 * sure(once.options.answers)
    assert verdict.run.ending == "complete"
    assert verdict.run.spent <= 1


def test_answers_are_set_aside_for_checks_of_a_target_that_is_not_ours() -> None:
    curator = Curator(thinveil.people(20), idp())
    wish: dict[str, Any] = {
        "attack": "membership",
        "known": {"age": 40},
        "epsilon": "1",
        "split": "equal",
    }
    ours, theirs = (
        thinveil.audit(target, **wish)
        for target in (curator, Watched(Curator(thinveil.people(20), idp())))
    )
    assert ours.options.answers == 1
    assert theirs.options.answers == 65
