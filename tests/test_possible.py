"""The exact verdict: what a law says before anything is asked, against enumeration by hand."""

import io
import json
import math
import re
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import thinveil
from thinveil.language.claims import POSTS, Claim, Global, KLocal, claim_named
from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace
from thinveil.language.laws.additive import GRAIN, Additive, rounded
from thinveil.language.mechanisms import BUILT_IN
from thinveil.language.mechanisms.claim import composed
from thinveil.report.html import page
from thinveil.report.text.comparison import show_comparison
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.judging.divergence import cells_of, delta_of, gamma_tails, largest_loss_of
from thinveil.verdicts.judging.pairs import Pair, World, pairs_of
from thinveil.verdicts.judging.possible import Delta, Event, Possible, chance, down, possible, up
from thinveil.verdicts.record import Record
from thinveil.verdicts.typed import from_json
from worlds import sweep

EPSILONS = np.array([0.0, 0.1, 1.0, 3.0])


def law_of(*about) -> Possible:
    """Return what a law says of neighbours that differ."""
    told = possible(*about)
    assert told is not None
    return told


def neighbours(claim, records, loss):
    """Return the laws (bit, scale) of all counts and thresholds, c beside c + 1, one by one."""
    found = []
    for b, c in product(range(records), range(records)):
        both = [
            claim.law(np.array([each]), np.array([b]), np.zeros(1, np.bool_), records, loss)
            for each in (c, c + 1)
        ]
        found.append([(bool(bit[0]), float(size[0]) / loss) for bit, size in both])
    return found


def chances(claim, world, values):
    """Return how likely each rounded answer is."""
    bit, scale = world
    if scale == 0:
        return [float(value == bit) for value in values]
    told = claim.noise.loglik(
        np.array(values), np.array([bit]), np.array([1 / scale]), claim.post, False
    )
    return np.exp(told).tolist()


def brute(claim, records, loss, answers, epsilon):
    """Return delta by adding up over all outcomes of all answers, for all neighbours."""
    values = [0.0, 1.0] if claim.post == "binary" else [float(z) for z in range(-9, 11)]
    best, factor = 0.0, math.exp(epsilon)
    for one, other in neighbours(claim, records, loss):
        p, q = (chances(claim, each, values) for each in (one, other))
        rows = [
            (math.prod(p[i] for i in each), math.prod(q[i] for i in each))
            for each in product(range(len(values)), repeat=answers)
        ]
        for sign in (1, -1):
            best = max(
                best, math.fsum(max(a - factor * b, 0.0) for a, b in (r[::sign] for r in rows))
            )
    return best


def at(told, epsilon):
    """Return both ends of delta where the curve was computed."""
    point = next(each for each in told.curve if each.epsilon == epsilon)
    return point.low, point.high


# ---- by enumeration


@pytest.mark.parametrize(
    ("name", "loss"), [("idp", 4.0), ("idp", 0.5), ("bdp", 2.0), ("dp-laplace", 3.0)]
)
@pytest.mark.parametrize(
    ("post", "answers"),
    [("binary", 1), ("binary", 3), ("binary", 6), ("integer", 1), ("integer", 2)],
)
def test_rounded_answers_are_added_up(name, loss, post, answers):
    claim = replace(claim_named(name), post=post, sampler="own")
    told = law_of(claim, 4, loss, answers)
    for point in told.curve[:: len(told.curve) // 4]:
        exact = brute(claim, 4, loss, answers, point.epsilon)
        lost = 0 if post == "binary" else 2 * answers * math.exp(-9.0 * loss)
        assert point.low - 1e-9 <= exact + lost
        assert exact <= point.high + 1e-9
        assert point.high - point.low < 0.02


@pytest.mark.parametrize("answers", [1, 2, 3, 10, 48])
def test_a_rounded_bit_gives_itself_away_by_halves(answers):
    told = law_of(claim_named("idp-binary"), 60, 1e-10, answers)
    assert told.pure is None
    for point in told.curve:
        assert point.low == point.high == pytest.approx(1 - 2.0**-answers, abs=1e-9)
    assert told.event.one == 1
    assert told.event.other == pytest.approx(2.0**-answers)


def test_noise_of_two_widths_is_told_by_48_answers():
    told = law_of(claim_named("idp-noisy"), 2000, 1e-10)
    assert told.answers == 48
    assert told.pure is None
    assert at(told, 3.0)[0] == pytest.approx(0.94625, abs=1e-4)
    # by simulation: how likely the loss passes 3, less e^3 times how likely it does elsewhere;
    # the wider noise tells more
    rng = np.random.default_rng(7)
    passed = []
    for scale in (2.0, 1.0):
        sums = np.abs(rng.laplace(0, scale, (100_000, 48))).sum(axis=1)
        passed.append(float((sums / 2 - 48 * math.log(2) > 3).mean()))
    assert passed[0] - math.exp(3) * passed[1] == pytest.approx(0.94625, abs=0.006)
    assert "48 answers are within 13.9 billion of 0 on average" in told.sentence()
    assert "delta is 0.946 at epsilon 3" in told.sentence()


def dense(claim, one, other):
    """Return the chances of many small steps of an answer in two noisy worlds."""
    u = (np.arange(100_000) + 0.5) / 100_000
    x = np.sort(
        np.concatenate([bit + claim.noise.quantile(u, scale) for bit, scale in (one, other)])
    )
    middle, width = (x[1:] + x[:-1]) / 2, np.diff(x)
    return [
        np.exp(claim.noise.loglik(middle, np.array([bit]), np.array([1 / scale]), "none", False))
        * width
        for bit, scale in (one, other)
    ]


@pytest.mark.parametrize("loss", [0.3, 2.0])
@pytest.mark.parametrize(
    "claim",
    [
        claim_named("dp-laplace"), claim_named("dp-smooth"), claim_named("idp-noisy"),
        composed(claim_named("bdp"), 0.5, None),
        composed(claim_named("idp"), 0.5, None, Gaussian(1e-3)),
        composed(claim_named("dp-laplace"), None, None, Gaussian(1e-3)),
    ],
    ids=lambda claim: claim.name,
)  # fmt: skip
def test_one_answer_is_integrated(claim, loss):
    told = law_of(claim, 5, loss, 1)
    wanted = told.curve[:: len(told.curve) // 4]
    exact = dict.fromkeys((each.epsilon for each in wanted), 0.0)
    for one, other in {tuple(map(tuple, each)) for each in neighbours(claim, 5, loss)}:
        p, q = dense(claim, one, other)
        for epsilon in exact:
            more = (
                np.maximum(p - math.exp(epsilon) * q, 0),
                np.maximum(q - math.exp(epsilon) * p, 0),
            )
            exact[epsilon] = max(exact[epsilon], *(float(each.sum()) for each in more))
    for point in wanted:
        assert point.low - 2e-4 <= exact[point.epsilon] <= point.high + 2e-4
        assert point.high - point.low < 1e-3


@pytest.mark.parametrize("loss", [1e-10, 0.05, 1.0])
@pytest.mark.parametrize("answers", [1, 48])
def test_an_honest_answer_loses_what_it_says(loss, answers):
    told = law_of(claim_named("dp-laplace"), 2000, loss, answers)
    assert told.pure_of_one == pytest.approx(loss)
    assert told.pure == pytest.approx(answers * loss)
    assert told.holds
    if answers == 1:
        for point in told.curve:
            exact = -math.expm1((point.epsilon - loss) / 2)
            assert point.low * (1 - 1e-9) <= exact + 1e-14
            assert exact <= point.high * (1 + 1e-9) + 1e-14
    assert f"epsilon = {up(loss)}" in told.sentence()
    assert "No finite" not in told.sentence()


def test_smooth_noise_loses_a_sixth_of_what_it_says():
    for loss in (1e-10, 0.3, 3.0):
        told = law_of(claim_named("dp-smooth"), 100, loss, 1)
        assert told.pure == pytest.approx(max(2 * math.asinh(loss / 12), loss / 6), rel=1e-5)
        # the largest ratio of densities, looked for on a grid
        best = 0.0
        for (bit, scale), (bit1, scale1) in neighbours(claim_named("dp-smooth"), 5, 0.3):
            x = np.concatenate([-np.geomspace(1e-3, 1e9, 4000), np.geomspace(1e-3, 1e9, 4000)])
            one, other = ((x - b) / s for b, s in ((bit, scale), (bit1, scale1)))
            ratio = np.log(scale1 / scale) + np.log1p(other**2) - np.log1p(one**2)
            best = max(best, float(np.abs(ratio).max()))
    assert law_of(claim_named("dp-smooth"), 5, 0.3, 1).pure == pytest.approx(best, rel=1e-3)


# ---- which neighbours there are


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@pytest.mark.parametrize("records", [1, 2, 3, 12])
def test_no_pair_of_laws_is_missed(name, records):
    claim = claim_named(name, 2) if name.startswith("idp") else claim_named(name)
    loss = 0.7
    pairs, every = pairs_of(claim, records, loss if claim.protected else None)
    assert every
    scale = loss if not claim.protected else 1.0
    seen = set()
    for one, other in neighbours(claim, records, loss):
        if one != other:
            worlds = sorted(
                (World(b, s * scale) for b, s in (one, other)), key=lambda w: (w.scale, w.bit)
            )
            if worlds[0].bit and worlds[1].scale:
                worlds = [World(not each.bit, each.scale) for each in worlds]
            seen.add(tuple(worlds))
    mine = {(pair.one, pair.other) for pair in pairs}
    if name == "dp-smooth":  # those farther away differ alike: by the same ratio of scales
        ratios = {round(b.scale / a.scale, 9) for a, b in seen if a.bit == b.bit}
        assert len(ratios) <= 1
        assert mine <= seen
        assert {(a.bit != b.bit, round(b.scale / a.scale, 9)) for a, b in mine} == {
            (a.bit != b.bit, round(b.scale / a.scale, 9)) for a, b in seen
        }
    else:
        assert mine == seen


def test_large_tables_have_the_same_pairs():
    for name in BUILT_IN:
        claim = claim_named(name)
        loss = 0.1 if claim.protected else None
        small, large = (law_of(claim, records, loss) for records in (700, 10**9))
        assert small.curve == large.curve
        assert small.every


@dataclass(frozen=True)
class Fading:
    """A sensitivity of somebody else's, that fades with the square of the distance."""

    title: ClassVar = "fading sensitivity"

    def at(self, count, threshold, records, epsilon):
        return 1 / (1.0 + (count - threshold) ** 2)

    def breakpoints(self, threshold, records):
        return np.broadcast_to(np.arange(records), (len(threshold), records))


def test_of_a_large_table_of_somebody_elses_thresholds_are_sampled():
    told = law_of(Claim("fading", Fading(), Laplace()), 3_000, 0.1)
    assert not told.every
    assert told.pure is None
    assert "Thresholds were sampled" in told.sentence()


# ---- other laws


@dataclass(frozen=True)
class Foreign(Additive):
    """A law of somebody else's, with the figures of one of ours."""

    name: ClassVar = "foreign"
    title: ClassVar = "Foreign"
    real: Additive

    def __getattribute__(self, name):
        if name in ("loglik", "tail", "quantile", "silent", "discrete"):
            return getattr(object.__getattribute__(self, "real"), name)
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("wider", [1.0, 1.5])
@pytest.mark.parametrize("law", [Laplace(), Gaussian(1e-3), Cauchy()], ids=lambda law: law.name)
def test_a_law_of_somebody_elses_is_cut_into_kinds(law, wider, shifted):
    if wider == 1.0 and not shifted:
        return
    pair = Pair(law, "none", World(False, 2.0), World(shifted, 2.0 * wider))
    other = replace(pair, law=Foreign(law))
    for answers in (1, 7):
        low, high = delta_of(pair, answers, EPSILONS)
        least, most = delta_of(other, answers, EPSILONS)
        assert (least <= high + 1e-9).all()
        assert (most >= low - 1e-9).all()
        assert (most - least < 3e-3).all()
    assert largest_loss_of(other) is None


@pytest.mark.parametrize("seed", sweep(range(40), 6))
def test_draws_lie_between_both_ends(seed):
    """Two laws drawn at random; delta estimated from 50,000 draws of the answers, either way."""
    rng = np.random.default_rng(seed)
    law = (Laplace(), Cauchy(), Gaussian(1e-3))[seed % 3]
    post = POSTS[int(rng.integers(3))]
    one = math.exp(rng.uniform(-1, 2))
    other = one * math.exp(rng.uniform(0, 1)) if rng.random() < 0.7 else one
    shifted = one == other or bool(rng.random() < 0.6)
    pair = Pair(law, post, World(False, one), World(shifted, other))
    answers = int(rng.integers(1, 6))
    low, high = delta_of(pair, answers, EPSILONS)
    best, off = np.zeros(len(EPSILONS)), np.zeros(len(EPSILONS))
    for mine, rival in ((pair.one, pair.other), (pair.other, pair.one)):
        words = rng.integers(0, 2**64, size=50_000 * answers, dtype=np.uint64)
        values = rounded(law.draw(words, np.full(len(words), float(mine.bit)), mine.scale), post)
        told = [
            law.loglik(values, np.array([each.bit]), np.array([1 / each.scale]), post, False)
            for each in (mine, rival)
        ]
        loss = (told[0] - told[1]).reshape(-1, answers).sum(axis=1)
        more = -np.expm1(np.minimum(EPSILONS[:, None] - loss, 0.0))
        better = more.mean(axis=1) > best
        best = np.where(better, more.mean(axis=1), best)
        off = np.where(better, 5 * more.std(axis=1) / math.sqrt(50_000), off)
    assert (low - off - 1e-6 <= best).all()
    assert (best <= high + off + 2e-5).all()
    assert (high - low < 0.005).all()


@dataclass(frozen=True)
class Mute(Laplace):
    """Laplace noise that says nothing in one case of four."""

    silent: ClassVar = True

    def loglik(self, value, bit, rate, post, exact):
        told = Laplace.loglik(self, np.nan_to_num(value), bit, rate, post, exact) + math.log(0.75)
        return np.where(np.isnan(value), math.log(0.25), told)


def test_silence_is_one_more_answer():
    one, other = World(False, 2.0), World(False, 3.0)
    mute = replace(Pair(Mute(), "none", one, other), law=Foreign(Mute()))
    low, high = delta_of(mute, 1, EPSILONS)
    loud = 0.75 * delta_of(Pair(Laplace(), "none", one, other), 1, EPSILONS)[0]
    assert (low - 1e-9 <= loud).all()
    assert (loud <= high + 1e-9).all()
    assert (high - low < 1e-3).all()
    assert cells_of(mute).p.sum() == pytest.approx(1.0)


def test_discrete_noise_is_a_coin():
    pair = Pair(DiscreteLaplace(), "integer", World(False, 2.0), World(True, 2.0))
    assert largest_loss_of(pair) == pytest.approx(0.5)
    exact = math.tanh(0.25)
    assert delta_of(pair, 1, np.zeros(1))[0][0] == pytest.approx(exact)
    wider = replace(pair, other=World(False, 3.0))
    low, high = delta_of(wider, 1, np.zeros(1))
    assert low[0] - 1e-9 <= DiscreteLaplace().distance(2.0, 3.0) <= high[0] + 1e-9
    assert high[0] - low[0] < 1e-3


def test_gamma_tails_are_those_of_a_gamma_number():
    for shape, x in ((1, 0.5), (3, 9.0), (48, 60.5), (48, 20.0), (4096, 4000.0)):
        below, above = gamma_tails(shape, x)
        assert below == pytest.approx(stats.gamma.cdf(x, shape), rel=1e-9)
        assert above == pytest.approx(stats.gamma.sf(x, shape), rel=1e-9)


@pytest.mark.parametrize("loss", [1e-300, 1e-30, 1e-10, 20.0, 50.0, 1e4])
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_no_loss_is_too_small_or_too_large(name, loss):
    claim = claim_named(name)
    told = law_of(claim, 60, loss if claim.protected else None)
    assert told is not None
    for point in told.curve:
        assert 0 <= point.low <= point.high * (1 + 1e-9) <= 1 + 1e-8
    highs = [each.high for each in told.curve]
    assert all(a >= b - 1e-9 for a, b in pairwise(highs))
    if claim.control and loss < 100:
        assert told.pure <= told.answers * loss * (1 + 1e-9)
        assert told.curve[0].high <= min(1.0, told.answers * loss)
    assert told.sentence()
    assert told.brief()


# ---- in words


def test_the_event_is_named_with_both_chances():
    told = law_of(claim_named("idp"), 60, 1e-10)
    assert told.event.what == "the answer is exactly 0"
    assert (told.event.one, told.event.other) == (1.0, 0.0)
    assert told.as_drawn == pytest.approx(GRAIN)
    assert "probability 1 on the one and 0 (drawn in doubles: at most 2.22e-16)" in told.sentence()
    assert "No finite epsilon holds" in told.sentence()
    assert all(each == Delta(each.epsilon, 1.0, 1.0) for each in told.curve)
    bare = law_of(claim_named("unprotected"), 60, None)
    assert bare.event.what == "the answer is 0"
    assert not bare.as_drawn
    assert bare.brief() == "no finite epsilon; 1 answer: delta 1 at every epsilon"


def test_one_record_shows_no_noise_at_all():
    told = law_of(claim_named("idp"), 1, 0.1)
    assert told.pure == pytest.approx(0.1)
    assert possible(claim_named("idp"), 0, 0.1) is None


def test_textbook_noise_keeps_its_promise_by_law_alone():
    by_law, drawn = (law_of(claim_named(name), 60, 0.1) for name in ("dp-laplace", "dp-textbook"))
    assert by_law.curve == drawn.curve
    assert by_law.pure == drawn.pure
    assert "drawn in doubles" in drawn.sentence()
    assert "does not keep what the law promises" in drawn.sentence()
    assert "doubles" not in by_law.sentence()
    assert "doubles" in drawn.brief()


def test_figures_that_cannot_be_are_refused():
    told = law_of(claim_named("idp"), 60, 1e-10)
    for wrong in ({"answers": 0}, {"pure": -1.0}, {"curve": ()}, {"curve": (Delta(1.0, 0, 1),)}):
        with pytest.raises(ValueError, match=r"possible|curve"):
            replace(told, **wrong)
    for low, high in ((-0.1, 0.5), (0.5, 0.4), (0.5, 1.1), (math.nan, 0.5)):
        with pytest.raises(ValueError, match="two ends"):
            Delta(1.0, low, high)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Event("an event", 1, 1.5, 0.0)


def test_figures_never_say_more_than_is_so():
    assert Delta(3.0, 0.94999, 0.9512).figure() == "at least 0.9499"
    assert [down(each) for each in (0.89991, 0.89996, 0.9, 2e-20, 0.0)] == [
        "0.8999", "0.8999", "0.9", "2e-20", "0",
    ]  # fmt: skip
    assert Delta(3.0, 0.9462, 0.9463).figure() == "0.946"
    assert Delta(3.0, 1 - 1e-9, 1.0).figure() == "above 0.999"
    assert Delta(0.0, 0.0, 1.0).figure() == "at least 0"
    assert chance(1e-20) == "1e-20"
    assert [up(each) for each in (0.12341, 0.1234, 2.4, 0.0)] == ["0.1235", "0.1234", "2.4", "0"]


# ---- where it stands


def test_it_stands_first_in_every_verdict():
    verdict = thinveil.audit(
        thinveil.people(30), mechanism="idp-noisy", attack="column", columns=["age"]
    )
    told = verdict.possible
    assert told is not None
    assert told.answers == 48
    plain = json.loads(json.dumps(verdict.to_plain()))
    assert plain["possible"]["sentence"] == told.sentence()
    assert from_json(Record, plain).possible == told
    assert from_json(Possible, plain["possible"]) == told
    console = Console(record=True, width=2000, file=io.StringIO())
    show_verdict(console, verdict)
    text = console.export_text()
    assert text.index(told.sentence()) < text.index("answers asked for")
    html = page(verdict.record())
    assert html.index("What the law alone says") < html.index("What single answers show")
    assert "48 answers are within 13.9 billion of 0 on average" in html


def test_an_undecided_run_is_about_all_its_answers():
    verdict = thinveil.audit(thinveil.people(20), mechanism="dp-laplace", most_repeats=64)
    told = verdict.possible
    assert told is not None
    assert told.answers == 64
    assert told.pure == pytest.approx(64e-10)


def test_a_comparison_has_a_line_for_each_law():
    compared = compare(thinveil.people(20), Settings(mechanisms=("idp", "dp-laplace"), people=2))
    told = {line.mechanism: line.possible for line in compared.lines}
    assert told["idp"] == law_of(claim_named("idp"), 20, 1e-10)
    assert told["dp-laplace"] == law_of(claim_named("dp-laplace"), 20, 1e-10, 4096)
    again = from_json(Comparison, json.loads(json.dumps(compared.to_plain())))
    assert again.lines[0].possible == told["idp"]
    console = Console(record=True, width=200, file=io.StringIO())
    show_comparison(console, compared)
    text = console.export_text()
    assert text.index("by its law alone") < text.index("asking nothing  ")
    assert "no finite epsilon; 1 answer: delta 1 at every epsilon" in text


@pytest.mark.parametrize("post", ["none", "integer"])
@pytest.mark.parametrize("law", [Gaussian(1e-3), Cauchy(), Laplace()], ids=lambda law: law.name)
def test_an_event_has_the_chances_it_says(law, post):
    """Widths are told by how close answers are; chances are compared with draws."""
    claim = Claim("mine", KLocal(1), law, offset=0.5, post=post)
    event = law_of(claim, 60, 0.4, 1).event
    what = re.fullmatch(
        r"(?:the answer is|1 answers are) within (\S+) of 0(?: on average)?", event.what
    )
    assert what is not None
    wide = float(what[1])
    words = np.random.Philox(key=5).random_raw(200_000)
    for size, said in ((0.5, event.one), (1.5, event.other)):
        scale = size * float(law.widen(0.4)) / 0.4
        drawn = rounded(law.draw(words, np.zeros(len(words)), scale), post)
        assert float((np.abs(drawn) <= wide * 1.0005).mean()) == pytest.approx(said, abs=0.006)
    assert event.one > event.other + 0.1


def test_noise_that_is_nearly_private_is_not_called_leaking():
    told = law_of(Claim("mine", Global(), Gaussian(1e-6), post="integer"), 60, 0.5, 1)
    assert told.nearly
    assert told.curve[0].high > 0
    assert "no epsilon holds for certain" in told.sentence()
    assert "No finite epsilon" not in told.sentence()
    assert told.curve[1].high <= 1e-6  # at epsilon 0.5, as it claims


def test_larger_groups_and_offsets_change_nothing_about_it():
    for k in (1, 3):
        assert law_of(Claim("idp", KLocal(k), Laplace()), 60, 1e-10).curve[-1].low == 1


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("loss", [230.0, 300.0, 2200.0, 5000.0, 1e6, 1e9])
def test_smooth_noise_holds_its_epsilon_at_a_large_loss(loss, post):
    """Scales that fade to no double are not exact, and what is lost is at most what is claimed."""
    told = law_of(replace(claim_named("dp-smooth"), post=post), 60, loss)
    assert told.holds
    assert told.pure_of_one <= loss
    assert "no epsilon" not in told.sentence()
    if post == "none":
        assert told.pure_of_one == pytest.approx(max(loss / 6, 2 * math.asinh(loss / 12)))


@pytest.mark.parametrize("law", [Laplace(), DiscreteLaplace()])
def test_a_rounded_answer_loses_as_much_as_its_tail_says(law):
    """No tail is too small for that: at 5,000, ln(2 P(noise > 1/2)) is -2,500 for Laplace."""
    pair = Pair(law, "binary", World(False, 1 / 5000), World(True, 1 / 5000))
    half = 2 if isinstance(law, Laplace) else 1
    assert largest_loss_of(pair) == pytest.approx(5000 / half + math.log(2) * (half - 1))


def test_a_rounded_gaussian_answer_loses_no_less_than_its_tail_says():
    for scale in (1 / 50, 1 / 70, 1 / 80, 1 / 200):
        pair = Pair(Gaussian(1e-6), "binary", World(False, scale), World(True, scale))
        tail = stats.norm.logsf(0.5 / scale)
        lost = largest_loss_of(pair)
        assert lost >= stats.norm.logcdf(0.5 / scale) - tail - 1e-9
        assert lost == pytest.approx(-tail, rel=1e-3)


@pytest.mark.parametrize(
    ("noise", "post", "loss"),
    [(Laplace(), "none", 1.0), (DiscreteLaplace(), "none", 1e6), (Laplace(), "integer", 1e6)],
)
def test_what_is_nearly_certain_is_not_called_certain(noise, post, loss):
    """A delta that rounds to 1 is below 1, and not so at every epsilon."""
    claim = replace(claim_named("idp"), noise=noise, post=post, offset=0.01)
    said = law_of(claim, 60, loss).sentence()
    assert "delta is 1 " not in said
    assert "every epsilon" not in said
    assert "probability 1 " not in said


def test_a_rounded_answer_that_hardly_ever_changes_is_not_called_certain():
    said = law_of(claim_named("idp-binary"), 60, 3000.0).sentence()
    assert "1 on the one and above 0.999 on the other" in said
    assert "every epsilon" not in said


def test_a_delta_of_which_only_the_upper_end_is_known_says_that():
    assert Delta(3.0, 0.0, 1e-11).figure() == "at most 1e-11"
    assert Delta(3.0, 0.0, 1.0).figure() == "at least 0"


def test_cauchy_noise_of_vastly_different_widths():
    """The bound by an event against the exact chances of that event."""
    pair = Pair(Cauchy(), "none", World(False, 1e-20), World(False, 1.0))
    low, high = delta_of(pair, 1, EPSILONS)
    edge = 1e-10
    inside = [2 * stats.cauchy.cdf(edge, scale=each) - 1 for each in (1e-20, 1.0)]
    assert (low <= inside[0] - np.exp(EPSILONS) * inside[1] + 1e-12).all()
    assert (low > 0.9999).all()
    assert (high == 1).all()
    assert largest_loss_of(pair) == pytest.approx(20 * math.log(10))
