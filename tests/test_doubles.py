"""Which doubles come out: the textbook's way of drawing falls, the controls stand."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import thinveil
from services import served
from thinveil.attacker import channel
from thinveil.attacker.channel import FIRST, Looked, by_doubles, simpler
from thinveil.attacker.evidence import doubles
from thinveil.attacker.evidence.doubles import chance, reachable, settled, settled_share
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import Attack
from thinveil.auditing.driver import run
from thinveil.auditing.http import HttpTarget
from thinveil.auditing.schedule import Fixed
from thinveil.commands.main import run as command
from thinveil.curator.curator import Curator
from thinveil.errors import UsageError
from thinveil.lab.recording import record
from thinveil.language.claims import Claim, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import LAWS, Cauchy, DiscreteLaplace, Gaussian, Laplace
from thinveil.language.policies import Policies
from thinveil.language.queries import Codes, Floats, Loss, QueryBatch, batch_of
from thinveil.language.schema import Categories, Grid, Schema
from thinveil.report.html import page as report
from thinveil.verdicts.names import KINDS, LINES, ClaimRecord
from thinveil.verdicts.record import read_run
from thinveil.verdicts.verdict import Verdict
from worlds import sure, sweep

LOSSES = (1e-10, 1e-3, 1.0)
DATA = thinveil.people(12)
MANY = 10_000

CONTROLS = [
    ("dp-laplace", None),
    ("dp-smooth", None),
    ("dp-laplace", "cauchy"),
    ("dp-laplace", "discrete-laplace"),
    pytest.param(
        "dp-opendp",
        None,
        marks=pytest.mark.skipif(find_spec("opendp") is None, reason="needs OpenDP"),
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def wide(law: Any, epsilon: float) -> float:
    """Return the scale of noise for a sensitivity of 1."""
    return float(law.widen(epsilon)) / epsilon


def answers_of(claim: Claim, bit: bool, epsilon: float, many: int = MANY) -> Floats:
    """Ask so often about a count that is b + 1, or b: one record makes the difference."""
    count = int(np.count_nonzero((DATA.codes[:, 0] >= 30) & (DATA.codes[:, 0] < 60)))
    asked = batch_of([([{0: (30, 60)}], count - bit)], repeats=many)
    return Curator(DATA, claim).answer(asked.stamped(("test", 1), epsilon)).values


# Doubles


@pytest.mark.parametrize("epsilon", [1e-15, 1e-10, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("law", [Laplace(), Cauchy(), Gaussian(1e-5)], ids=lambda law: law.name)
def test_what_was_drawn_is_possible(law, epsilon):
    words = np.random.default_rng(3).integers(2**64, size=MANY, dtype=np.uint64)
    scale = wide(law, epsilon)
    for bit in (0.0, 1.0):
        values = law.draw(words, np.full(MANY, bit), scale)
        for ulps in doubles.SLACKS:
            assert reachable(law, values, bit, scale, ulps).all()


def test_the_extremes_of_the_random_bits_are_possible():
    words = np.array([0, 1, 2**64 - 1, 2**64 - 2, 2**11, 2**63], np.uint64)
    for law in (Laplace(), Cauchy(), Gaussian(1e-5)):
        for scale in (1e-3, 1.0, 1e10, 1e290):
            for bit in (0.0, 1.0):
                values = law.draw(words, np.full(len(words), bit), scale)
                assert reachable(law, values, bit, scale).all()


def test_at_scale_zero_the_answer_is_the_bit():
    values = np.array([0.0, 1.0, 0.5])
    assert reachable(Laplace(), values, 1.0, 0.0).tolist() == [False, True, False]


def test_a_law_that_we_do_not_draw_settles_nothing():
    for law in (DiscreteLaplace(), None, object()):
        zero, one = settled(law, np.array([0.25, 3.0]), 1.0)
        assert zero.all()
        assert one.all()


@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize("noise", ["laplace", "cauchy"])
def test_the_textbook_settles_most_bits_and_all_rightly(noise, epsilon):
    claim = claim_named("dp-textbook", noise=LAWS[noise]())
    told = 0
    for bit in (False, True):
        values = answers_of(claim, bit, epsilon)
        can = settled(claim.noise, values, wide(claim.noise, epsilon))
        assert can[bit].all(), "a true bit was ruled out"
        told += int(np.count_nonzero(~can[not bit]))
    assert told / (2 * MANY) >= 0.6


@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize(("name", "noise"), CONTROLS)
def test_which_doubles_come_tells_no_more_than_the_control_claims(name, noise, epsilon):
    """The pattern of what could be is an event: its odds must not pass exp(epsilon).

    Of the textbook's, some patterns never come from one of both bits.
    """
    law = None if noise is None else LAWS[noise]()
    claim = claim_named(name, noise=law)
    assert claim.control
    scale = wide(claim.noise, epsilon)
    seen = []
    for bit in (False, True):
        zero, one = settled(claim.noise, answers_of(claim, bit, epsilon), scale)
        seen.append(np.bincount(zero + 2 * one, minlength=4))
    for some, others in (seen, seen[::-1]):
        for a, b in zip(some.tolist(), others.tolist(), strict=True):
            assert a <= math.exp(epsilon) * b + 6 * math.sqrt(a + b + 1)


@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize(("name", "noise"), CONTROLS)
def test_a_control_settles_nothing(name, noise, epsilon, monkeypatch):
    claim = claim_named(name, noise=None if noise is None else LAWS[noise]())
    if noise == "discrete-laplace":
        with pytest.raises(UsageError, match="whole numbers"):
            simpler(Curator(DATA, claim).facts)
        return
    monkeypatch.setattr(channel, "FIRST", MANY)
    assert stood(claim, epsilon, 1, Care(most_repeats=MANY)) >= MANY


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize(("name", "noise"), [*CONTROLS[:3], CONTROLS[4]])
def test_a_control_settles_nothing_however_often_somebody_looks(name, noise, epsilon):
    claim = claim_named(name, noise=None if noise is None else LAWS[noise]())
    assert stood(claim, epsilon, 160) >= MANY


def stood(claim: Claim, epsilon: float, looks: int, care: Care | None = None) -> int:
    """Look at a control, by so many seeds; return how many answers settled nothing."""
    answers = 0
    for seed in range(looks):
        looked, target = Looked(), Curator(DATA, claim, seed=seed)
        attack = by_doubles(target.facts, care or Care(), asking, nothing, looked)
        ended = run(attack, target, Fixed(Fraction(str(epsilon))))
        assert (ended.ending, ended.found) == ("complete", None)
        assert (looked.used, looked.settled) == (False, 0)
        # at a large loss and with much allowed for, chance may be as good: then that is why
        chance = "noise drawn otherwise gives such doubles about as often" in looked.why
        assert chance or "cannot come from noise that is drawn in doubles" in looked.why
        answers += looked.answers
    return answers


def asking(facts: PublicFacts) -> Attack[list[float] | None]:
    """Ask four questions of a simpler target, and return its answers."""
    questions = [([{0: (30 + each, 60)}], each) for each in range(4)]
    told: list[float] = (yield batch_of(questions)).values.tolist()
    return told


def nothing() -> Attack[None]:
    """Find nothing, and ask nothing."""
    return None
    yield


def test_by_the_same_code_the_textbook_is_believed_at_once():
    for noise, law in (("laplace", Laplace()), ("cauchy", Cauchy())):
        for epsilon in LOSSES:
            for seed in range(5):
                claim, looked = claim_named("dp-textbook", noise=law), Looked()
                target = Curator(DATA, claim, seed=seed)
                attack = by_doubles(target.facts, Care(), asking, nothing, looked)
                ended = run(attack, target, Fixed(Fraction(str(epsilon))))
                bare = Curator(DATA, claim_named("unprotected"))
                expected = run(
                    asking(bare.facts), bare, thinveil.Options().schedule(bare.facts.claim)
                )
                assert ended.found == expected.found, noise
                assert looked.settled == 4
                assert looked.answers <= 3 * FIRST


def test_chance_is_measured_and_no_less_than_it_is():
    """Other doubles of the same law are possible by chance, as often as is allowed for."""
    rng = np.random.default_rng(8)
    for law in (Laplace(), Cauchy(), Gaussian(1e-5)):
        for epsilon in (*LOSSES, 10.0, 1e4):
            scale = wide(law, epsilon)
            noise = law.quantile(rng.random(MANY), scale) * (1 + rng.random(MANY) / 2**35)
            for bit in (0, 1):
                assert reachable(law, bit + noise, float(bit), scale).mean() <= chance(
                    law, scale, bit, 0
                )
    assert chance(Laplace(), 1e10, 0, 0) < 0.5
    assert chance(Laplace(), 1e-4, 1, 0) == 1


@pytest.mark.parametrize("epsilon", sweep(["10", "3", "100", "1000", "1e6"], 3))
@pytest.mark.parametrize("name", ["dp-laplace", "dp-smooth"])
def test_a_control_is_not_believed_at_a_large_loss_either(name, epsilon):
    for seed in range(4):
        looked, target = Looked(), Curator(DATA, claim_named(name), seed=seed)
        attack = by_doubles(target.facts, Care(), asking, nothing, looked)
        assert run(attack, target, Fixed(Fraction(epsilon))).found is None
        assert looked.why


def test_what_settles_hardly_hangs_on_the_loss():
    for epsilon in (10.0**-power for power in range(15)):
        assert 0.5 < settled_share(Laplace(), 1 / epsilon) < 0.7
    assert settled_share(Laplace(), 1e20) == 0


# Whole attacks


def audited(**settings: Any) -> Verdict:
    return thinveil.audit(DATA, **settings)


@pytest.mark.parametrize("strategy", sweep(["published", "thrifty", "posterior", "adaptive"], 2))
def test_every_strategy_rebuilds_the_table(strategy):
    few = thinveil.people(6)
    verdict = thinveil.audit(few, mechanism="dp-textbook", strategy=strategy)
    assert sure(verdict.score).exact
    assert verdict.strategy == strategy
    bare = thinveil.audit(few, mechanism="unprotected", strategy=strategy)
    assert sure(verdict.channel).settled <= bare.run.meter.queries
    assert verdict.run.meter.queries <= 2 * bare.run.meter.queries + 2 * FIRST


def test_the_textbook_gives_the_table_away_and_the_verdict_says_why():
    verdict = audited(mechanism="dp-textbook")
    assert sure(verdict.score).exact
    assert 0 < verdict.error_probability < 1e-6
    said = verdict.sentence()
    assert "recovered all 12 records exactly" in said
    assert "Its noise is drawn in doubles" in said
    plain = verdict.to_plain()
    assert plain["channel"]["used"] is True
    assert plain["channel"]["settled"] > 0
    assert plain["claim"]["textbook"] is True
    assert (plain["bounds"]["bits_an_answer"], plain["bounds"]["by_doubles"]) == (1.0, True)
    assert json.dumps(plain)
    by_noise = audited(mechanism="dp-textbook", channel="noise", most_repeats=64)
    assert by_noise.channel is None
    assert by_noise.run.ending == "undecided"


@pytest.mark.nightly
def test_two_thousand_people_come_back():
    verdict = thinveil.audit(mechanism="dp-textbook")
    assert sure(verdict.score).exact
    assert verdict.run.meter.queries < 1.75 * 72_765


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": "cauchy"},
        {"noise": "gaussian", "delta": "1e-9"},
        {"offset": "0.5"},
        {"cache": True},
        {"epsilon": "1"},
        {"min_epsilon": "1e-6"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_whatever_is_put_upon_the_textbook(settings):
    verdict = thinveil.audit(thinveil.people(6), mechanism="dp-textbook", **settings)
    assert sure(verdict.score).exact
    assert sure(verdict.channel).used


def test_gaussian_noise_of_a_control_is_drawn_in_doubles_and_told_apart():
    claim = claim_named("dp-laplace", noise=Gaussian(1e-9))
    assert (claim.textbook, claim.control) == (True, False)
    assert "drawn in doubles" in claim.describe()
    assert ClaimRecord.of(claim).kind == "pink"
    verdict = thinveil.audit(
        thinveil.people(6), mechanism="dp-laplace", noise="gaussian", delta=1e-9
    )
    assert sure(verdict.score).exact


def test_the_always_noisy_mechanism_takes_a_tenth_of_the_answers():
    told, weighed = (audited(mechanism="idp-noisy", channel=each) for each in ("doubles", None))
    assert sure(told.score).exact
    assert weighed.channel is None
    assert told.run.meter.queries < weighed.run.meter.queries / 5
    assert sure(told.bounds).bits_an_answer == 2
    assert sure(weighed.bounds).bits_an_answer < 1


def test_bootstrap_gives_counts_away_by_its_doubles():
    rows = np.array([[1, 2]] * 3 + [[0, 5]] * 2 + [[2, 7]], np.int64)
    schema = Schema((Categories("c", ("a", "b", "c")), Grid("x", lower=0, upper=9)))
    data = thinveil.Dataset(schema, rows)
    verdict = thinveil.audit(data, mechanism="bdp", channel="doubles")
    assert sure(verdict.score).exact
    assert not verdict.record().distinct_only
    assert sorted(map(tuple, verdict.rows())) == [("a", 5)] * 2 + [("b", 2)] * 3 + [("c", 7)]
    usual = thinveil.audit(data, mechanism="bdp")
    assert usual.channel is None
    assert usual.record().distinct_only
    asked: dict[str, Any] = {"attack": "count", "known": {"c": "b"}, "channel": "doubles"}
    assert sure(thinveil.audit(data, mechanism="bdp", **asked).record().count).count == 3


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"mechanism": "idp"}, "by any answer"),
        ({"mechanism": "idp-binary"}, "rounds its answers"),
        ({"mechanism": "unprotected"}, "no noise"),
        ({"mechanism": "dp-laplace", "noise": "discrete-laplace"}, "whole numbers"),
        ({"mechanism": "idp-noisy", "test": "mean", "strategy": "published"}, "--test"),
    ],
)
def test_where_doubles_are_of_no_use_it_says_why(settings, why):
    with pytest.raises(UsageError, match=why):
        audited(channel="doubles", **settings)
    with pytest.raises(UsageError, match="--channel is one of"):
        audited(mechanism="idp", channel="sound")


def test_a_cache_in_a_bounded_universe_leaves_no_words():
    schema = Schema((Grid("x", lower=0, upper=9),))
    data = thinveil.Dataset(schema, np.arange(6, dtype=np.int64)[:, None])
    claim = claim_named("dp-textbook", universe="bounded")
    facts = Curator(data, claim, policies=Policies(cache=True)).facts
    with pytest.raises(UsageError, match="new words"):
        simpler(facts)


def test_noise_so_wide_that_it_swallows_the_bit_is_not_believed():
    verdict = audited(mechanism="dp-textbook", epsilon_per_query="1e-20", most_repeats=128)
    assert verdict.run.ending == "undecided"
    assert "adding 1 changes next to none" in sure(verdict.channel).why


@dataclass(frozen=True)
class Uneven:
    """A sensitivity of a plug-in: a law of its own, since it grows with the count."""

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        sizes: Floats = (1 + count // 3).astype(np.float64)
        return sizes

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        every = np.broadcast_to(np.arange(records), (len(threshold), records))
        return np.concatenate([every, threshold[:, None]], axis=1)


def test_a_mechanism_of_a_plug_in_is_read_by_our_laws():
    claim = Claim("uneven", Uneven(), Laplace(), "unbounded")
    assert claim.leaks
    few = thinveil.people(6)
    verdict = thinveil.audit(Curator(few, claim), truth=few, channel="doubles")
    assert sure(verdict.score).exact
    assert sure(verdict.channel).outcomes > 4


def test_the_report_and_the_terminal_say_how_it_was(capsys, tmp_path):
    table, result = str(tmp_path / "six.csv"), tmp_path / "six.json"
    assert command(["people", "--records", "6", "--output", table]) == 0
    asked = ["audit", table, "--mechanism", "dp-textbook"]
    assert command([*asked, "--json", str(result)]) == 0
    told = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    assert "doubles read" in told
    assert "Its noise is drawn in doubles" in told
    page = report(read_run(result))
    for text in (
        "which doubles can come out depends on the true answer",
        "Noise drawn on a grid that does not depend on the data",
        "which doubles came settled",
    ):
        assert text in page
    assert sure(read_run(result).channel).used
    assert command([*asked, "--channel", "sound"]) == 2


def test_a_control_says_that_its_doubles_were_looked_at(capsys):
    asked = ["audit", "--mechanism", "dp-laplace", "--most-repeats", "64", "--attack", "count"]
    assert command([*asked, "--known", "age=30..40"]) == 0
    told = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    assert "64, none believed: some of them cannot come from noise that is drawn" in told


# Targets that draw otherwise


class Drawing:
    """A target that answers as a curator of ours does, with noise drawn by a function."""

    def __init__(self, draw: Any, claim: Claim | None = None) -> None:
        claim = claim_named("dp-textbook") if claim is None else claim
        self._truth = Curator(DATA, claim_named("unprotected"))
        self._noisy = Curator(DATA, claim)
        self.facts, self._draw = self._noisy.facts, draw

    def answer(self, batch: QueryBatch) -> Floats:
        bits = self._truth.answer(replace(batch, epsilon=None)).values
        noisy = self._noisy.answer(batch).values
        scale = 1 / float(sure(batch.epsilon))  # type: ignore[arg-type]
        values: Floats = np.where(noisy == bits, bits, self._draw(bits, scale))
        return values


def off(by: int, share: float, seed: int = 4) -> Any:
    """Return a way to draw Laplace noise by a logarithm that lies so many doubles off, at times."""
    rng = np.random.default_rng(seed)

    def draw(bits: Floats, scale: float) -> Floats:
        words = rng.integers(2**64, size=len(bits), dtype=np.uint64)
        drawn = Laplace().standard(words)
        moved = drawn.view(np.int64) + by * rng.choice((-1, 1), len(bits))
        noise = np.where(rng.random(len(bits)) < share, moved.view(np.float64), drawn)
        return bits + noise * scale

    return draw


@pytest.mark.parametrize(
    ("by", "share", "ulps"), [(1, 0.3, 1), (1, 0.003, 1), (2, 0.3, 2), (4, 0.5, 4)]
)
def test_a_logarithm_that_is_off_is_survived(by, share, ulps):
    target = Drawing(off(by, share))
    verdict = thinveil.audit(target, truth=DATA, attack="column", columns=("age",))
    assert sure(verdict.accuracy).whole.share == 1
    assert sure(verdict.channel).ulps == ulps
    assert "beside them" in verdict.sentence()


def test_what_was_believed_before_is_asked_again_where_more_must_be_allowed_for():
    """A few answers in a thousand are off: found out late, after others were believed."""
    target, seen = Drawing(off(1, 0.004)), []
    looked = Looked()

    def inside(facts: PublicFacts) -> Attack[list[float]]:
        seen.append(looked.ulps)
        told: list[float] = []
        for each in range(12):
            answers = yield batch_of([([{0: (age, 200)}], each) for age in range(150)])
            told += answers.values.tolist()
        return told

    ended = run(
        by_doubles(target.facts, Care(), inside, nothing, looked), target, Fixed(Fraction(1, 10**6))
    )
    assert seen == [0, 1]
    bare = Curator(DATA, claim_named("unprotected"))
    expected = run(inside(bare.facts), bare, thinveil.Options().schedule(bare.facts.claim))
    assert ended.found == expected.found


@pytest.mark.parametrize("where", sweep(["inside", "outside"], 2))
def test_the_noise_of_numpy_falls_the_same_way(where):
    rng = np.random.default_rng(6)

    def draw(bits: Floats, scale: float) -> Floats:
        return (
            rng.laplace(bits, scale)
            if where == "inside"
            else bits + rng.laplace(0, scale, len(bits))
        )

    verdict = thinveil.audit(Drawing(draw), truth=DATA)
    assert sure(verdict.score).exact
    assert sure(verdict.channel).used


def test_noise_that_is_drawn_in_another_way_is_not_believed():
    rng = np.random.default_rng(7)

    def draw(bits: Floats, scale: float) -> Floats:
        noise: Floats = rng.exponential(scale, len(bits)) - rng.exponential(scale, len(bits))
        return bits + noise

    settings: dict[str, Any] = {"truth": DATA, "most_repeats": 128}
    verdict = thinveil.audit(Drawing(draw), channel="doubles", **settings)
    assert verdict.run.ending == "undecided"
    assert "none was believed: some of them cannot come from noise" in verdict.sentence()
    assert not sure(verdict.channel).used
    # not asked for, and said all the same: what claims to be drawn so was looked at
    assert "none was believed" in thinveil.audit(Drawing(draw), **settings).sentence()


@pytest.mark.parametrize("grid", [2.0**-4, 2.0**-10, 2.0**-30])
def test_answers_on_a_grid_are_never_believed(grid):
    rng = np.random.default_rng(11)

    def draw(bits: Floats, scale: float) -> Floats:
        rounded: Floats = np.rint((bits + rng.laplace(0, scale, len(bits))) / grid) * grid
        return rounded

    for epsilon in ("1", "0.1", "1e-6"):
        for _ in range(8):
            target, looked = Drawing(draw), Looked()
            attack = by_doubles(target.facts, Care(), asking, nothing, looked)
            assert run(attack, target, Fixed(Fraction(epsilon))).found is None


def test_a_service_is_read_as_well(tmp_path):
    claim, few = claim_named("dp-textbook"), thinveil.people(8)
    with served(few, claim, tmp_path) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        verdict = thinveil.audit(target, truth=few, attack="count", known={"age": "30..60"})
        target.close()
    assert sure(verdict.accuracy).whole.right == 1
    assert (sure(verdict.channel).used, sure(verdict.channel).ulps) == (True, 1)


# Interruptions


@pytest.mark.parametrize("stop", sweep([40, 1, 2, 90], 4))
def test_an_interrupted_run_goes_on(tmp_path, stop):
    whole, path = audited(mechanism="dp-textbook", seed=5), tmp_path / "run.transcript"

    def observer(meter: Any, about: Any) -> None:
        if meter.rounds == stop and not meter.replayed:
            raise KeyboardInterrupt

    broken = audited(mechanism="dp-textbook", seed=5, transcript=path, observer=observer)
    assert broken.run.ending == "interrupted"
    assert broken.sentence()
    again = thinveil.audit(DATA, resume=path)
    assert again.run.meter.replayed == stop
    assert again.run.meter.queries == whole.run.meter.queries
    assert again.channel == whole.channel
    assert sure(again.score).exact
    replayed = thinveil.audit(DATA, resume=path)
    assert replayed.run.meter.replayed == replayed.run.meter.rounds == whole.run.meter.rounds
    assert replayed.to_plain()["channel"] == whole.to_plain()["channel"]


# Told apart


@cache
def textbook() -> ClaimRecord:
    return ClaimRecord.of(claim_named("dp-textbook"))


def test_the_textbook_is_told_apart_in_every_list():
    kinds = {name: ClaimRecord.of(claim_named(name)).kind for name in LINES}
    assert [name for name, kind in kinds.items() if kind == "pink"] == ["dp-textbook"]
    assert sorted(set(kinds.values())) == sorted(KINDS)
    assert textbook().textbook
    assert not textbook().control
    assert "doubles" in textbook().title
    assert "doubles" in textbook().which_is


def test_a_trial_reads_doubles_where_they_are_drawn():
    told = thinveil.trial(DATA, mechanism="dp-textbook", trials=40, most_repeats=64)
    assert told.right + (told.outside - told.wrong) == 40
    assert told.queries < 200
    for name, way in (("dp-textbook", "noise"), ("dp-laplace", None)):
        weighed = thinveil.trial(DATA, mechanism=name, channel=way, trials=40, most_repeats=64)
        assert weighed.right + (weighed.outside - weighed.wrong) < 35


def test_the_lab_shows_the_table_coming_back():
    *_, last = map(json.loads, record(mechanism="dp-textbook", table="people-30"))
    assert (last["kind"], last["ending"]) == ("end", "complete")
    assert last["people"] == 30
    assert "Its noise is drawn in doubles" in last["sentence"]


def test_of_very_many_laws_one_question_alone_is_judged():
    schema = Schema((Grid("x", lower=0, upper=9),))
    data = thinveil.Dataset(schema, np.arange(4200, dtype=np.int64)[:, None] % 10)
    asked: dict[str, Any] = {"attack": "count", "known": {"x": "2..5"}, "most_repeats": 64}
    verdict = thinveil.audit(data, mechanism="dp-smooth", **asked)
    looked = sure(verdict.channel)
    assert (looked.used, looked.answers, looked.outcomes) == (False, FIRST, 4201)
    own = replace(claim_named("dp-smooth"), sampler="own")
    with pytest.raises(UsageError, match="too many to tell apart"):
        simpler(Curator(data, own).facts)
