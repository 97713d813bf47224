"""Targets of one's own: what the driver demands of them and how it survives them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil.attacker.findings import CountFound
from thinveil.auditing.attacks import attack_on
from thinveil.auditing.driver import run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Fixed
from thinveil.errors import UsageError
from thinveil.language.queries import Answers
from worlds import as_a, sure, sweep


class Wrapped:
    """A curator behind a plain object that has facts and answers, and nothing else."""

    def __init__(self, data, claim, spoil=None):
        self._curator = thinveil.Curator(data, claim)
        self.facts = self._curator.facts
        self.spoil = spoil
        self.asked = 0

    def answer(self, batch):
        self.asked += 1
        values = self._curator.answer(batch).values
        return values if self.spoil is None else self.spoil(self.asked, values)


@pytest.fixture
def data():
    return thinveil.people(60)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "claim", sweep([thinveil.idp(1), thinveil.unprotected(), thinveil.idp(3)], 3)
)
def test_contract_every_target_answers_alike(data, claim):
    """The contract: one finite number for each answer wanted, the same attack, the same end."""
    targets: list[thinveil.Target] = [thinveil.Curator(data, claim), Wrapped(data, claim)]
    verdicts = [thinveil.audit(target, truth=data, checks="off") for target in targets]
    first, second = verdicts
    assert sure(first.score).exact
    assert sure(second.score).exact
    assert first.run.meter.queries == second.run.meter.queries
    assert first.run.spent == second.run.spent
    batch = thinveil.batch_of([([{0: (0, 50)}], 3), ([{0: (0, 5)}, {0: (7, 9)}], 1)], repeats=3)
    for target in targets:
        answer = target.answer(batch.stamped(("x", 1), 0.5))
        values = answer.values if isinstance(answer, Answers) else answer
        assert np.asarray(values).shape == (6,)


def test_without_truth_nothing_is_scored(data):
    verdict = thinveil.audit(Wrapped(data, thinveil.idp(1)))
    assert verdict.score is None
    assert verdict.to_plain()["exact"] is None
    assert "rebuilt 60 of 60" in verdict.sentence()


@pytest.mark.parametrize(
    ("spoil", "said"),
    sweep(
        [
            (lambda i, v: v[:-1] if i == 5 else v, "answers where"),
            (lambda i, v: np.append(v, 1.0) if i == 5 else v, "answers where"),
            (lambda i, v: v * np.nan if i == 5 else v, "finite"),
            (lambda i, v: v + np.inf if i == 5 else v, "finite"),
            (lambda i, v: ["x"] * len(v) if i == 5 else v, "not an array"),
            (lambda i, v: None if i == 5 else v, "returned None"),
            (lambda i, v: 1 / 0 if i == 5 else v, "ZeroDivisionError"),
        ],
        3,
    ),
)
def test_a_target_that_fails_half_way_loses_nothing(data, spoil, said):
    target = Wrapped(data, thinveil.unprotected(), spoil)
    verdict = thinveil.audit(target, checks="off")
    assert verdict.run.ending == "target"
    assert verdict.exit_code == 1
    assert said in verdict.run.reason
    assert verdict.run.meter.rounds == 4
    assert Path(sure(verdict.transcript)).is_file()
    target.spoil = None
    resumed = thinveil.audit(target, resume=verdict.transcript, truth=data)
    assert sure(resumed.score).exact
    assert resumed.run.meter.replayed == 4


def test_a_cap_holds_for_targets_without_a_ledger(data):
    target = Wrapped(data, thinveil.idp(1))
    verdict = thinveil.audit(target, cap="1e-7", checks="off")
    assert verdict.run.ending == "cap"
    assert verdict.run.spent <= Fraction(1, 10**7)
    assert target.asked == verdict.run.meter.rounds


def test_a_mechanism_that_lies_about_being_exact_is_caught(data):
    target = Wrapped(data, thinveil.unprotected(), lambda i, v: v + 0.25)
    verdict = thinveil.audit(target, checks="off")
    assert verdict.exit_code == 1
    assert "other than 0 or 1" in verdict.run.reason


@pytest.mark.parametrize("strategy", ["published", "linear"])
@pytest.mark.parametrize("attack", ["column", "dataset"])
@pytest.mark.parametrize("seed", sweep(range(12), 3))
def test_contradicting_answers_end_the_run(attack, strategy, seed):
    """Noise passed off as truth must never keep an attack busy for ever."""

    class Dice:
        schema = thinveil.Schema((thinveil.Grid("age", lower=0, upper=30),))
        facts = thinveil.PublicFacts(9, schema, thinveil.unprotected())
        rng = np.random.default_rng(seed)

        def answer(self, batch):
            if seed < 2:
                return np.full(batch.queries, float(seed))
            return self.rng.integers(0, 2, batch.queries)

    which: dict[str, Any] = {"columns": ["age"]} if attack == "column" else {}
    verdict = thinveil.audit(Dice(), attack=attack, strategy=strategy, checks="off", **which)
    assert verdict.run.ending in ("complete", "broken")
    if seed == 0 and strategy == "published":
        assert "contradict" in verdict.run.reason


def test_settings_that_contradict_the_target_are_refused(data):
    target = thinveil.Curator(data, thinveil.idp(1), seed=7)
    for settings in ({"k": 3}, {"mechanism": "unprotected"}, {"universe": "bounded"}, {"seed": 8}):
        with pytest.raises(UsageError, match="has its own"):
            thinveil.audit(target, **settings)
    same = thinveil.audit(target, attack="membership", known={"age": 44}, k=1, seed=7)
    assert same.seed == 7


def test_a_cap_holds_for_a_curator_too_and_runs_are_told_apart(data):
    target = thinveil.Curator(data, thinveil.idp(1))
    assert thinveil.audit(target, cap="1e-9").run.ending == "cap"
    first, second = (
        thinveil.audit(target, attack="membership", known={"age": 44}) for _ in range(2)
    )
    assert first.run.spent == second.run.spent == Fraction(1, 10**10)


class Stopping(thinveil.Curator):
    """A curator whose user presses Ctrl-C at its fiftieth batch."""

    after = True
    batches = 0

    def answer(self, batch):
        self.batches += 1
        if self.batches == 50:
            if self.after:
                super().answer(batch)
            raise KeyboardInterrupt
        return super().answer(batch)


@pytest.mark.parametrize("after", sweep([True, False], 2))
def test_the_same_curator_goes_on_and_charges_once(data, after):
    whole = thinveil.audit(thinveil.Curator(data, thinveil.idp(1)))
    target = Stopping(data, thinveil.idp(1))
    target.after = after
    cut = thinveil.audit(target)
    assert cut.run.ending == "interrupted"
    done = thinveil.audit(target, resume=cut.transcript, truth=data)
    assert sure(done.score).exact
    assert target.ledger.spent == done.run.spent == whole.run.spent
    with pytest.raises(thinveil.ThinveilError) as refused:
        target.restore(cut.run.meter.queries, [])
    assert "other questions" in str(refused.value)


def test_whole_numbers_are_asked_for(data):
    for settings in ({"k": 1.5}, {"k": "2"}, {"seed": 0.5}):
        with pytest.raises(UsageError, match="whole number"):
            thinveil.audit(data, **settings)


def test_prior_bounds_as_a_pair(data):
    verdict = thinveil.audit(
        data, attack="attribute", known={"age": 44}, columns=["salary"], priors={"salary": (0, 9)}
    )
    assert verdict.exit_code == 0


def test_an_attack_is_a_plain_generator(data):
    curator = thinveil.Curator(data, thinveil.idp(1))
    attack = attack_on(Options(attack="count", people=({"age": "30..50"},)), curator.facts)
    ended = run(attack, curator, Fixed(Fraction(1, 10**10)))
    column = data.column(0)
    found = as_a(CountFound, ended.found)
    assert found.count == int(((column >= 30) & (column <= 50)).sum())


def test_python_settings_are_checked(data):
    with pytest.raises(UsageError, match="no setting 'colour'"):
        thinveil.audit(data, colour="red")
    with pytest.raises(UsageError, match="no use"):
        thinveil.audit(data, known={"age": 3})


def test_data_frames_are_audited_like_files(data):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"age": [44, 31, 44, 60], "job": ["nurse", "clerk", None, "judge"]})
    verdict = thinveil.audit(frame, epsilon=0.5)
    assert sure(verdict.score).exact
    assert sure(verdict.epsilon_claimed) <= 0.5


def test_modules_can_be_imported_by_any_name():
    """A package called audit hid its modules behind the function of the same name."""
    import thinveil.auditing.driver as driver
    import thinveil.verdicts.audit as module

    assert driver.run.__module__ == "thinveil.auditing.driver"
    assert module.audit is thinveil.audit
