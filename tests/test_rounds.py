"""Where rounds are dear, more is asked at once: fewer rounds, hardly more questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from bench.synthetic import synthetic

import thinveil
from thinveil.auditing.attempt import DEAR, paced
from thinveil.auditing.targets import round_seconds
from thinveil.auditing.transcript import Transcript
from thinveil.curator.curator import Curator
from thinveil.curator.database.engines import ENGINES
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import TargetError, UsageError
from thinveil.language.claims import claim_named
from thinveil.language.queries import Answers, Codes, QueryBatch
from thinveil.language.schema import Grid, Schema
from thinveil.verdicts.verdict import Verdict

SMALL: dict[str, Any] = {"effort": 64, "windows": 32}
FROZEN = {
    # mechanism, k, strategy: (queries, rounds) of 300 people, as usual and in few rounds
    ("idp", 1, "adaptive"): ((12_421, 300), (12_705, 192)),
    ("idp", 1, "thrifty"): ((9_551, 1_472), (9_992, 832)),
    ("idp", 3, "adaptive"): ((12_802, 312), (13_114, 206)),
    ("idp", 3, "thrifty"): ((12_511, 2_029), (12_906, 1_156)),
    ("unprotected", 1, "adaptive"): ((12_925, 335), (13_276, 222)),
    ("unprotected", 1, "thrifty"): ((12_686, 2_093), (13_119, 1_173)),
}


def asked(verdict: Verdict) -> tuple[int, int]:
    assert verdict.score is not None
    assert verdict.score.exact
    return verdict.run.meter.queries, verdict.run.meter.rounds


@pytest.mark.parametrize(("setting", "expected"), FROZEN.items(), ids=str)
def test_frozen_counts(setting: tuple[str, int, str], expected: Any) -> None:
    mechanism, k, strategy = setting
    more = SMALL if strategy == "thrifty" else {}
    found = (
        thinveil.audit(
            thinveil.people(300),
            mechanism=mechanism,
            k=k,
            strategy=strategy,
            rounds=rounds,
            **more,
        )
        for rounds in ("usual", "few")
    )
    assert tuple(map(asked, found)) == expected


@pytest.mark.parametrize("mechanism", ["idp", "unprotected"])
@pytest.mark.parametrize("table", ["people", "synthetic"])
def test_few_rounds_cost_at_most_a_twentieth_more(table: str, mechanism: str) -> None:
    data = thinveil.people() if table == "people" else synthetic(2000)[0]
    usual, few = (
        asked(thinveil.audit(data, mechanism=mechanism, rounds=rounds))
        for rounds in ("usual", "few")
    )
    assert few[0] <= 1.05 * usual[0]
    assert few[1] <= 0.6 * usual[1]


def _follows(rng: np.random.Generator) -> list[Codes]:
    """Return columns one of which follows from another for nine records in ten."""
    first = rng.choice(101, 8000, p=rng.dirichlet(np.full(101, 0.5)))
    other = rng.choice(1001, 8000, p=rng.dirichlet(np.full(1001, 0.1)))
    return [first, np.where(rng.random(8000) < 0.9, 7 * first, other), rng.integers(0, 50, 8000)]


def _different(rng: np.random.Generator) -> list[Codes]:
    """Return a column whose values all differ, and one of four values."""
    return [rng.permutation(20_000), rng.choice(4, 20_000, p=[0.42, 0.3, 0.2, 0.08])]


def _heavy(rng: np.random.Generator) -> list[Codes]:
    """Return columns of few frequent and many rare values."""
    return [np.minimum(rng.pareto(0.7, 8000), 10**4).astype(np.int64) for _ in range(3)]


@pytest.mark.parametrize("columns", [_follows, _different, _heavy])
def test_haste_costs_little_where_there_is_little_to_gain(
    columns: Callable[[np.random.Generator], list[Codes]],
) -> None:
    codes = np.column_stack(columns(np.random.default_rng(0)))
    tops = codes.max(axis=0).tolist()
    schema = Schema(tuple(Grid(f"c{place}", lower=0, upper=top) for place, top in enumerate(tops)))
    usual, few = (
        asked(thinveil.audit(Dataset(schema, codes), rounds=rounds)) for rounds in ("usual", "few")
    )
    assert few[0] <= 1.05 * usual[0]
    assert few[1] <= 0.9 * usual[1]


@pytest.mark.nightly
def test_few_rounds_of_the_thrifty() -> None:
    usual, few = (
        asked(thinveil.audit(strategy="thrifty", rounds=rounds)) for rounds in ("usual", "few")
    )
    assert few[0] <= 1.05 * usual[0]
    assert few[1] <= 0.6 * usual[1]


@pytest.mark.parametrize("strategy", ["adaptive", "thrifty"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("mechanism", "k"), [("idp", 1), ("idp", 4), ("unprotected", 1)])
def test_any_table_comes_back(strategy: str, seed: int, mechanism: str, k: int) -> None:
    rng = np.random.default_rng(seed)
    data = thinveil.people(40 + 80 * seed, seed=seed)
    data = data.sample(np.sort(rng.choice(data.records, data.records // 2, replace=False)))
    more = SMALL if strategy == "thrifty" else {}
    settings: dict[str, Any] = {"mechanism": mechanism, "k": k, "strategy": strategy, **more}
    asked(thinveil.audit(data, rounds="few", **settings))
    columns = thinveil.audit(
        data, rounds="few", attack="column", columns=("age", "salary"), **settings
    )
    assert all(each["exact"] for each in columns.result)


def _determined(seed: int) -> Dataset:
    """Return a table one column of which nearly always follows from another."""
    rng = np.random.default_rng(seed)
    n, tops = int(rng.integers(50, 3000)), rng.integers(3, 30, int(rng.integers(2, 4)))
    columns = [
        rng.choice(top + 1, n, p=rng.dirichlet(np.full(top + 1, rng.choice([0.02, 0.1, 1]))))
        for top in tops
    ]
    follows = rng.random(n) < rng.choice([0.9, 0.98, 0.995])
    columns[1] = np.where(follows, columns[0] % (tops[1] + 1), columns[1])
    schema = Schema(
        tuple(Grid(f"c{place}", lower=0, upper=int(top)) for place, top in enumerate(tops))
    )
    return Dataset(schema, np.column_stack(columns))


@pytest.mark.parametrize(("seed", "mechanism"), [(2, "idp"), (17, "unprotected")])
def test_what_is_nearly_sure_is_asked_about_once(seed: int, mechanism: str) -> None:
    """No box of a question lies in another, and nothing is read that nobody has heard."""
    settings: dict[str, Any] = {"mechanism": mechanism, "checks": "off", "effort": 16}
    asked(thinveil.audit(_determined(seed), strategy="thrifty", rounds="few", **settings))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20, 40))
def test_any_table_that_is_nearly_sure_comes_back(seed: int) -> None:
    data = _determined(seed)
    for mechanism in ("idp", "unprotected"):
        settings: dict[str, Any] = {"mechanism": mechanism, "checks": "off", "effort": 16}
        asked(thinveil.audit(data, strategy="thrifty", rounds="few", **settings))


@pytest.mark.parametrize("records", [1000, 20_000, 100_000])
def test_haste_goes_by_what_there_is_to_ask(records: int) -> None:
    """Few different records need few questions, however many records there are."""
    codes = np.random.default_rng(records).integers(0, 3, (records, 6))
    data = Dataset(Schema(tuple(Grid(name, lower=0, upper=2) for name in "abcdef")), codes)
    usual, few = (
        asked(thinveil.audit(data, rounds=rounds, checks="off")) for rounds in ("usual", "few")
    )
    assert few[0] <= 1.06 * usual[0]
    assert few[1] < usual[1]


def test_limited_answers_are_not_spent_on_haste() -> None:
    one, other = (
        thinveil.audit(thinveil.people(200), max_queries=1500, rounds=rounds).run.transcript
        for rounds in ("usual", "few")
    )
    assert one is not None
    assert one == other


class Dear:
    """A curator of ours behind something slow, that may break down at some round."""

    remote: ClassVar = False

    def __init__(self, data: Dataset, seconds: Any, stop: int | None = None) -> None:
        self._curator = Curator(data, claim_named("idp", 1))
        self.facts, self.fingerprint = self._curator.facts, self._curator.fingerprint
        self.round_seconds, self._stop = seconds, stop

    def answer(self, batch: QueryBatch) -> Answers:
        if self._stop is not None:
            self._stop -= 1
            if self._stop < 0:
                raise TargetError("it is gone")
        return self._curator.answer(batch)


def test_what_a_round_costs_decides_where_nobody_does() -> None:
    data = thinveil.people(150)
    usual = thinveil.Options()
    assert paced(usual, Dear(data, 0.06)) == usual
    assert paced(usual, Dear(data, DEAR)) == replace(usual, rounds="few")
    assert paced(replace(usual, rounds="usual"), Dear(data, 9.0)).rounds == "usual"
    published = replace(usual, strategy="published")
    assert paced(published, Dear(data, 9.0)) == published
    cheap, dear = (
        thinveil.audit(Dear(data, seconds), truth=data, checks="off").run.meter
        for seconds in (0.0, 1.0)
    )
    by_hand = thinveil.audit(data, rounds="few").run.meter
    assert dear.rounds < cheap.rounds
    assert (dear.queries, dear.rounds) == (by_hand.queries, by_hand.rounds)


@pytest.mark.parametrize("seconds", ["fast", -1.0, float("nan"), float("inf"), None])
def test_a_time_that_is_none(seconds: Any) -> None:
    with pytest.raises(TargetError, match="round_seconds"):
        round_seconds(Dear(thinveil.people(20), seconds))


@pytest.mark.parametrize(("before", "after"), [(1.0, 0.0), (0.0, 1.0)])
def test_a_resumed_run_keeps_its_pace(before: float, after: float, tmp_path: Path) -> None:
    data, path = thinveil.people(150), tmp_path / "run.transcript"
    whole = thinveil.audit(Dear(data, before), truth=data, checks="off")
    broken = thinveil.audit(Dear(data, before, stop=40), checks="off", transcript=path)
    assert broken.run.ending == "target"
    recorded = Transcript.read_header(path).options["rounds"]
    assert recorded == ("few" if before else "auto")
    resumed = thinveil.audit(Dear(data, after), truth=data, resume=path)
    assert asked(resumed) == asked(whole)


def test_a_transcript_without_the_option_goes_on_as_usual() -> None:
    plain = thinveil.Options().plain()
    del plain["rounds"]
    assert thinveil.Options.from_plain(json.loads(json.dumps(plain))).rounds == "auto"


def test_engines_state_what_a_round_costs() -> None:
    for engine in ENGINES:
        assert (engine.round_seconds >= DEAR) == (engine.name == "Spark")
    assert Curator(thinveil.people(20), claim_named("idp", 1)).round_seconds == 0.0


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="--rounds is one of auto, few, usual"):
        thinveil.Options(rounds="none")
    with pytest.raises(UsageError, match="--rounds few is for --strategy adaptive and thrifty"):
        thinveil.Options(rounds="few", strategy="published")
