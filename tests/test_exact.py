"""Exact draws: their probabilities, their support, and that neither tells the true bit."""

import ast
import inspect
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services import asking, served
from thinveil import people
from thinveil.curator.curator import Curator
from thinveil.curator.drawing import NoiseStream, SystemEntropy, Truth, draw
from thinveil.curator.exact import cauchy_cells, laplace_steps, taps
from thinveil.curator.exact.cauchy_cells import Fade, Point, cauchy, exp_bounds
from thinveil.curator.exact.laplace_steps import geometric, grid_of, laplace
from thinveil.curator.exact.taps import Tap
from thinveil.curator.ledger import exact
from thinveil.errors import LawError, UsageError
from thinveil.language.claims import Claim, Global, KLocal, Smooth, claim_named
from thinveil.language.laws import Cauchy, DiscreteLaplace, Laplace
from thinveil.language.plugins import check_claim
from thinveil.language.policies import Policies
from worlds import one_column, ranges

HALF = Fraction(1, 2)
KEY = ("run", 1)


def tap(many: int, seed: int = 0) -> Tap:
    stream = NoiseStream(seed)
    return Tap(stream, stream.take(many))


def only(values: Any) -> np.ndarray:
    return np.asarray(values, np.uint64)


class Script:
    """A source of words that somebody wrote."""

    def __init__(self, *words: int) -> None:
        self.words = iter(words)

    def further(self, first: Any, nth: Any) -> np.ndarray:
        return only([next(self.words) for _ in first])


# ---- dice and coins


def test_a_die_throws_away_the_words_of_a_broken_cycle() -> None:
    last = 2**64 - 1
    one = np.zeros(1, np.int64)
    for limit in (1, 2, 3, 10, 2**40 + 1, 2**53 + 1, 2**63 + 1, last):
        fair = 2**64 // limit * limit  # words of whole cycles
        for word in {0, 1, limit - 1, fair - limit, fair - 1}:
            drawn = Tap(Script(word), only([0])).below(one, only([limit]))
            assert drawn.tolist() == [word % limit]
        if fair <= last:
            for word in {fair, last}:
                drawn = Tap(Script(word, 5), only([0])).below(one, only([limit]))
                assert drawn.tolist() == [5 % limit]


class Tree(Tap):
    """Follows a path of choices, and says which chance each had; the end of the path is an end."""

    def __init__(self, path: tuple[int, ...]) -> None:
        super().__init__(Script(), only([0]))
        self.path = iter(path)

    def choose(self, *chances: Fraction) -> int:
        try:
            return next(self.path)
        except StopIteration:
            raise EndOfPath(chances) from None

    def below(self, who: Any, limit: Any) -> Any:
        return only([self.choose(*[Fraction(1, each)] * each) for each in limit.tolist()])

    def one_in(self, who: Any, many: int) -> Any:
        yes = Fraction(1, many)
        return np.array([self.choose(1 - yes, yes) == 1 for _ in who], bool)


class EndOfPath(Exception):
    pass


def chances(of: Any, least: Fraction) -> tuple[dict[Any, Fraction], Fraction]:
    """Try every path of choices whose chance is not below this; return what came, and the rest."""
    told: dict[Any, Fraction] = defaultdict(Fraction)
    rest = Fraction(0)
    open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_paths:
        path, chance = open_paths.pop()
        if chance < least:
            rest += chance
            continue
        try:
            told[of(Tree(path))] += chance
        except EndOfPath as ended:
            sides = enumerate(ended.args[0])
            open_paths += [((*path, side), chance * each) for side, each in sides]
    return told, rest


def fits(chance: Fraction, rest: Fraction, true: tuple[Fraction, Fraction]) -> bool:
    """Tell whether a chance, known up to a rest, can be one that lies between two others."""
    return chance <= true[1] and true[0] <= chance + rest


ONE = np.zeros(1, np.int64)


@pytest.mark.parametrize(("part", "whole"), [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (3, 4)])
def test_a_faded_coin_has_its_very_chance(part: int, whole: int) -> None:
    told, rest = chances(
        lambda tree: bool(tree.faded(ONE, only([part]), only([whole]))[0]), Fraction(1, 10**6)
    )
    assert rest < Fraction(1, 1000)
    assert fits(told[True], rest, exp_bounds(Fraction(part, whole), 64))


def test_a_coin_of_one_in_e_has_its_very_chance() -> None:
    told, rest = chances(lambda tree: bool(tree.faded_once(ONE)[0]), Fraction(1, 10**6))
    assert rest < Fraction(1, 10**4)
    assert fits(told[True], rest, exp_bounds(Fraction(1), 64))


@pytest.mark.parametrize("t", [1, 2, 3])
def test_steps_have_their_very_chances(t: int) -> None:
    told, rest = chances(lambda tree: int(geometric(tree, ONE, only([t]))[0]), Fraction(1, 60_000))
    assert rest < Fraction(1, 15)
    low, high = exp_bounds(Fraction(1, t), 64)
    for x in range(4):
        mass = (1 - high) * low**x, (1 - low) * high**x
        assert fits(told[x], rest, mass)


# ---- Laplace


def chi_square(drawn: np.ndarray, ratio: float, most: int) -> float:
    """Compare whole numbers with masses proportional to ratio^|z|; return a sum of squares."""
    z = np.arange(-most, most + 1)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(z)
    mass[[0, -1]] = ratio**most / (1 + ratio)  # this and beyond
    came = np.bincount(np.clip(drawn, -most, most).astype(int) + most, minlength=2 * most + 1)
    return float(((came - len(drawn) * mass) ** 2 / (len(drawn) * mass)).sum())


@pytest.mark.parametrize("parts", [1, 4, 9])
def test_few_steps_come_as_often_as_they_should(parts: int) -> None:
    many = 150_000
    scale = np.full(many, parts * 2.0**-52)
    assert grid_of(scale)[1][0] == parts + 2
    drawn = laplace(tap(many, parts), np.zeros(many), scale, whole=False) * 2.0**52
    # 17 outcomes: a chi-square of 16 degrees passes 60 once in two million
    assert chi_square(drawn, math.exp(-1 / (parts + 2)), 8) < 60
    assert chi_square(drawn, math.exp(-1 / (parts + 1.7)), 8) > 60


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("bit", [0.0, 1.0])
def test_whole_numbers_come_as_often_as_they_should(epsilon: float, bit: float) -> None:
    many = 150_000
    drawn = laplace(tap(many), np.full(many, bit), np.full(many, 1 / epsilon), whole=True)
    assert (drawn == np.rint(drawn)).all()
    most = 4 if epsilon < 4 else 2
    assert chi_square(drawn - bit, math.exp(-epsilon), most) < 60
    assert chi_square(drawn - bit, math.exp(-epsilon * 1.05), most) > 60 * (epsilon < 4)


@settings(max_examples=300)
@given(
    st.floats(1e-300, 1e300) | st.floats(1e-20, 1e6),
    st.sampled_from([0.0, 1e-9, 0.5, 3.0, 1e6]),
)
def test_noise_is_never_narrower_than_what_is_charged_for(epsilon: float, offset: float) -> None:
    scale = np.array([(1 + offset) / epsilon])
    m, t = (int(each[0]) for each in grid_of(scale))
    steps = Fraction(2) ** m if m >= 0 else 0  # of the bit
    for charged in (exact(epsilon), Fraction(epsilon)):
        assert steps / t <= charged
    assert t <= 2**52 + 1
    wider = t / (Fraction(float(scale[0])) * Fraction(2) ** m)
    assert wider > 1
    if epsilon <= 2**12:
        assert wider <= 1 + Fraction(2, 2**40)


def test_the_bit_does_not_reach_the_grid_of_the_smallest_losses() -> None:
    for epsilon, reached in ((2.0**-51, True), (2.0**-53, False), (1e-300, False)):
        scale = np.full(500, 1 / epsilon)
        noughts, ones = (
            laplace(tap(500), np.full(500, bit), scale, whole=False) for bit in (0.0, 1.0)
        )
        doubles = np.abs(noughts) < 2**52  # beyond, the sum itself is rounded
        assert (ones - noughts == (1.0 if reached else 0.0))[doubles].all()
        assert doubles.any() == (epsilon > 1e-20)


def test_a_draw_beyond_64_bits_is_exact() -> None:
    """One in e^512 draws: a run of luck that only a script has."""
    runs = 5000
    t = 2**52 - 6  # the T of scale 2^52 - 8
    # U = 7 below T, kept at once (a die of T shows more than 7); then lucky coins: one of 2 and
    # not one of 3; at last an unlucky one (not one of 2); and a sign
    words = [7, 8, *[0, 1] * runs, 1, 1]
    drawn = laplace(
        Tap(Script(*words), only([0])), np.ones(1), np.array([2.0**52 - 8]), whole=False
    )
    assert drawn.tolist() == [float(1 - (7 + t * runs))]
    assert drawn[0] < -(2.0**64)


# ---- Laplace through a curator: support, repetition, no logarithm

DATA = one_column(range(12), lower=0, upper=20)


CONTROLS = {
    "dp-laplace": claim_named("dp-laplace"),
    "dp-laplace + 0.5": claim_named("dp-laplace", offset=0.5),
    "dp-laplace-cauchy": claim_named("dp-laplace", noise=Cauchy()),
    "dp-laplace-discrete": claim_named("dp-laplace", noise=DiscreteLaplace()),
    "dp-smooth": claim_named("dp-smooth"),
    "dp-smooth + 0.5": claim_named("dp-smooth", offset=0.5),
}


def answers(claim: Claim, count: int, epsilon: float, many: int = 2000, seed: int = 1) -> Any:
    """Ask many times whether more than 5 records lie below `count`."""
    batch = ranges([0], [-1], [count], [5], repeats=many).stamped(KEY, epsilon)
    return Curator(DATA, claim, seed=seed).answer(batch).values


def on_the_grid(values: Any, epsilon: float) -> Any:
    steps = np.ldexp(values, grid_of(np.array([1 / epsilon]))[0])
    return steps == np.rint(steps)


@pytest.mark.parametrize("epsilon", [1e-10, 1e-3, 1.0, 50.0])
@pytest.mark.parametrize("count", [2, 5, 6, 12])
def test_both_bits_have_the_same_answers(count: int, epsilon: float) -> None:
    values = answers(claim_named("dp-laplace"), count, epsilon)
    for shift in (0, -1, 1):  # noise of 1 less or 1 more is on the grid, and thus possible
        assert on_the_grid(values + shift, epsilon).all()
    assert len(np.unique(values)) > 1900
    # and as textbooks do it, most answers belong to no grid
    assert on_the_grid(answers(claim_named("dp-textbook"), count, epsilon), epsilon).mean() < 0.1


def test_no_logarithm_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any, **more: Any) -> Any:
        raise AssertionError("a rounded function")

    for module, names in ((np, ("log", "log1p", "log2", "exp", "expm1", "tan", "arctan")),
                          (math, ("log", "log1p", "log2", "exp", "expm1", "tan"))):  # fmt: skip
        for name in names:
            monkeypatch.setattr(module, name, refused)
    assert len(answers(claim_named("dp-laplace"), 3, 0.7)) == 2000
    assert len(answers(claim_named("dp-laplace", noise=DiscreteLaplace()), 3, 0.7)) == 2000
    with pytest.raises(AssertionError, match="rounded"):
        answers(claim_named("dp-textbook"), 3, 0.7)


def test_the_files_of_exact_draws_name_no_logarithm() -> None:
    for module in (taps, laplace_steps, cauchy_cells):
        tree = ast.parse(inspect.getsource(module))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"log", "log1p", "log2", "log10", "tan", "arctan", "sqrt", "random"}
        assert "exp" not in names or module is cauchy_cells


@pytest.mark.parametrize("claim", list(CONTROLS.values()), ids=list(CONTROLS))
@pytest.mark.parametrize("cache", [False, True])
def test_noise_hangs_on_seed_and_ordinal_alone(claim: Claim, cache: bool) -> None:
    def curator() -> Curator:
        return Curator(DATA, claim, seed=7, policies=Policies(cache=cache))

    def batch(start: int, end: int) -> Any:
        every = range(start, end)
        high = [each % 13 for each in every]
        threshold = [each // 13 % 14 - 1 for each in every]
        return ranges([0] * len(high), [-1] * len(high), high, threshold).stamped(KEY, 0.4)

    whole = curator().answer(batch(0, 150)).values
    parts, one = [], curator()
    for start, end in ((0, 1), (1, 60), (60, 150)):
        parts.append(one.answer(batch(start, end)).values)
    assert np.concatenate(parts).tolist() == whole.tolist()
    resumed = curator()
    resumed.restore(60, [])
    assert resumed.answer(batch(60, 150)).values.tolist() == parts[2].tolist()


def test_many_answers_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(claim_named("dp-laplace"), 3, 0.5, 300)
    monkeypatch.setattr("thinveil.curator.drawing._TOGETHER", 7)
    assert answers(claim_named("dp-laplace"), 3, 0.5, 300).tolist() == whole.tolist()
    assert answers(claim_named("dp-smooth"), 3, 0.5, 300)[:7].tolist() == (
        answers(claim_named("dp-smooth"), 3, 0.5, 7).tolist()
    )


def test_system_entropy_never_repeats_itself() -> None:
    source, words = SystemEntropy(), only([0, 0, 0])
    drawn = {tuple(source.further(words, only([1, 1, 1])).tolist()) for _ in range(20)}
    assert len(drawn) == 20
    truth = Truth(np.zeros(64), np.ones(64))
    one, two = (
        draw(claim_named("dp-laplace"), source, np.zeros(64, np.uint64), truth, 1.0)
        for _ in range(2)
    )
    assert not (one == two).all()


# ---- Cauchy


def fade(far: Any, epsilon: float, size: float = 1.0, offset: float = 0.0) -> Fade:
    far = np.atleast_1d(np.asarray(far, np.int64))
    return Fade(size, offset, far, np.full(len(far), epsilon), {epsilon: exact(epsilon)})


@pytest.mark.parametrize("digits", [8, 63, 200])
@pytest.mark.parametrize("x", ["1e-300", "1e-9", "0.3", "1", "1.7", "40", "62.9", "700"])
def test_bounds_of_exp_hold_its_true_value(x: str, digits: int) -> None:
    low, high = exp_bounds(Fraction(x), digits)
    with localcontext() as context:
        context.prec = 400  # an exp of correct digits, from the standard library
        true = Fraction((-Decimal(x)).exp())
    assert low <= true <= high
    assert high - low <= Fraction(1, 2**digits)


def test_exp_is_as_good_as_the_bound_takes_it_to_be() -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [rng.uniform(0, 700, 400), rng.uniform(0, 2, 400), 10.0 ** -rng.uniform(0, 20, 200)]
    )
    for value, told in zip(x.tolist(), np.exp(-x).tolist(), strict=True):
        low, high = exp_bounds(Fraction(value), 1200)
        assert abs(Fraction(told) - (low + high) / 2) <= Fraction(1, 2**51) * low  # half of it


LOSSES = [1e-300, 1e-16, 1e-10, 1e-3, 1.0, 50.0, 1e6, 1e300]


@pytest.mark.parametrize("epsilon", LOSSES)
@pytest.mark.parametrize("offset", [0.0, 1e-4, 2.0])
def test_doubles_and_integers_decide_alike(epsilon: float, offset: float) -> None:
    many = 60
    rng = np.random.default_rng(3)
    far = np.concatenate([rng.integers(0, 4, many // 3), rng.integers(0, 10**9, many // 3),
                          np.full(many // 3, 0 if not offset else -1)])  # fmt: skip
    bits = rng.integers(0, 2, many).astype(float)
    one = fade(far, epsilon, offset=offset)
    quick = cauchy(tap(many, 9), bits, one)
    slow = cauchy(tap(many, 9), bits, one, quick=False)
    assert quick.tolist() == slow.tolist()
    assert np.isfinite(quick).all()
    steps = np.ldexp(quick, -one.grid())
    assert (steps == np.rint(steps)).all()


def test_near_the_edges_of_cells_doubles_leave_it_to_integers() -> None:
    """Points beside an edge: what doubles decide is right, and what they leave is often wrong."""
    rng = random.Random(5)
    decided = misled = 0
    for _ in range(900):
        epsilon, offset = 10 ** rng.uniform(-20, 1), rng.choice([0.0, 0.7])
        one = fade(rng.choice([0, 1, rng.randrange(100)]), epsilon, offset=offset)
        bit, minus = rng.randrange(2), rng.randrange(2)
        step = Fraction(2) ** int(one.grid()[0])
        scale = Fraction(float(one.scale()[0][0])) / step
        part = bit / step if step > 1 else Fraction(0)
        edge = int(abs(rng.gauss(0, 1)) * scale) + HALF + (part if minus else -part)
        b = rng.getrandbits(63) or 1
        a = round(edge / scale * b) + round(rng.gauss(0, 1) * 2 ** rng.uniform(0, 25))
        if not (0 <= a < 2**63 and a * a + b * b < 2**125):
            continue
        words = [a << 1 | minus, b << 1, *(rng.getrandbits(64) for _ in range(20))]
        bits = np.array([float(bit)])
        told = [
            cauchy(Tap(Script(*words), only([0])), bits, one, quick=quick)[0]
            for quick in (True, False)
        ]
        assert told[0] == told[1]
        _, cell, sure = cauchy_cells._quickly(
            only([a]), only([b]), np.array([minus == 1]), bits, one, one.grid()
        )
        decided += int(sure[0])
        misled += int(cell[0] * float(step) != told[1])
        assert not (sure[0] and cell[0] * float(step) != told[1])
    assert decided > 100
    assert misled > 10


def test_doubles_decide_nearly_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    cell = Point.cell

    def counted(self: Point, tap: Tap, who: int, *more: Any) -> Any:
        asked.append(who)
        return cell(self, tap, who, *more)

    monkeypatch.setattr(Point, "cell", counted)
    many = 100_000
    for epsilon in (1e-300, 1e-10, 1.0):
        cauchy(tap(many), np.ones(many), fade(np.zeros(many), epsilon))
    assert 0 < len(asked) < 3 * many / 2000


@pytest.mark.parametrize("epsilon", LOSSES[1:-2])
@pytest.mark.parametrize("far", [0, 3])
def test_draws_follow_the_law(epsilon: float, far: int) -> None:
    many = 40_000
    scale = 6 * math.exp(-epsilon / 6 * far) / epsilon
    one = fade(np.full(many, far), epsilon)
    step = 2.0 ** float(one.grid()[0])
    x = np.sort(cauchy(tap(many, 2), np.ones(many), one) - 1)
    high = 0.5 + np.arctan((x + step / 2) / scale) / np.pi
    low = 0.5 + np.arctan((x - step / 2) / scale) / np.pi
    at = np.arange(many + 1) / many
    away = max((at[1:] - high).max(), (low - at[:-1]).max())
    assert away < math.sqrt(math.log(2e6) / (2 * many))
    if step < scale / 100:
        other = 0.5 + np.arctan(x / scale / 1.1) / np.pi
        assert np.abs(other - at[1:]).max() > away


def written(a: int, b: int, words: int) -> Script:
    """Return a script of the digits of a point: 63 of each, then 64 of each, and so on."""
    said = []
    for nth in range(words):
        for digits in (a, b):
            down = 64 * (words - 1 - nth)
            part = digits >> down
            said.append((part % 2**63) << 1 if nth == 0 else part % 2**64)
    return Script(*said)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-18, 1e-9])
def test_the_scale_is_not_rounded(epsilon: float) -> None:
    """A point whose cell hangs on whether d is 0 or 1, far below what doubles can tell apart."""
    here, there = fade(0, epsilon), fade(1, epsilon)
    step = Fraction(2) ** int(here.grid()[0])
    scale = 6 / exact(epsilon)
    words = 20
    # (scale / step) ratio is above 12345678.5 by half of what d = 1 takes away
    ratio = (12_345_678 + HALF) * step / scale * (1 + exact(epsilon) / 12)
    b = 2 ** (63 + 64 * (words - 1)) // 3
    a = round(ratio * b)
    cells = [
        cauchy(Tap(written(a, b, words), only([0])), np.zeros(1), each)[0] / float(step)
        for each in (here, there)
    ]
    assert cells == [12_345_679.0, 12_345_678.0]
    if epsilon < 1e-17:
        assert here.scale()[0] == there.scale()[0]  # doubles know no difference


def test_a_point_on_the_edge_of_the_disc_gets_more_digits() -> None:
    edge = 2**63 - 1
    for more, inside in (([0, 0], True), ([2**64 - 1, 2**64 - 1], None)):
        # V1 is about 1, V2 is 0 but for further digits; the second point is (1/2, 1/2)
        outside = [] if inside else [2**63, 2**63]
        script = Script(edge << 1, 0, *more, *outside, *[2**62] * 8)
        told = cauchy(Tap(script, only([0])), np.zeros(1), fade(0, 6.0))
        assert np.isfinite(told).all()
        assert (told[0] > 1e15) == bool(inside)


def test_distances_fade_as_the_sensitivity_says() -> None:
    count, threshold = np.arange(13), np.full(13, 5)
    far = Smooth().distance(count, threshold)
    assert far.tolist() == [5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6]
    assert Smooth().at(count, threshold, 12, 0.6).tolist() == np.exp(-0.6 / 6 * far).tolist()
    assert (Global().distance(count, threshold) == 0).all()


@pytest.mark.parametrize("count", [0, 12])
def test_noise_too_small_for_a_double_is_noise_all_the_same(count: int) -> None:
    """exp(-(3000 / 6) 6) is 0 in doubles: the textbook way gives exact answers there alone."""
    told = answers(claim_named("dp-smooth"), count, 3000.0)
    assert (told == float(count > 5)).all()
    near = answers(claim_named("dp-smooth"), 5, 3000.0)
    for values in (told, near):
        steps = np.ldexp(values, -fade(0, 3000.0).grid())
        assert (steps == np.rint(steps)).all()
    assert not Truth(np.zeros(1), np.zeros(1)).noisy(claim_named("dp-smooth")).size
    assert (
        Truth(np.zeros(1), np.zeros(1), np.ones(1, np.int64)).noisy(claim_named("dp-smooth")).size
    )


# ---- who draws


class Growing:
    """A sensitivity that hangs on the data, by somebody else."""

    title: ClassVar = "mine"

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return 1.0 + count / records

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return np.broadcast_to(np.arange(records), (len(threshold), records))


@pytest.mark.parametrize("sensitivity", [Growing(), KLocal(1)])
@pytest.mark.parametrize("law", [Laplace(), Cauchy(), DiscreteLaplace()])
def test_what_cannot_say_its_scale_exactly_is_refused(sensitivity: Any, law: Any) -> None:
    with pytest.raises(LawError, match="without rounding"):
        Claim("mine", sensitivity, law, sampler="exact")
    assert Claim("mine", sensitivity, law).sampler == "own"
    assert Claim("mine", Global(), law, sampler="exact").control


@dataclass(frozen=True)
class Steeper(Smooth):
    """One that fades in another way than it says to those who draw it."""

    how: str = "twice"

    def distance(self, count: Any, threshold: Any) -> Any:
        far = Smooth.distance(self, count, threshold)
        return {"twice": 2 * far, "halves": far / 1.0, "below": far - 1, "same": far}[self.how]

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return Smooth().at(count, threshold, records, epsilon)


@pytest.mark.parametrize("how", ["twice", "halves", "below"])
def test_a_plug_in_draws_what_its_law_says(how: str) -> None:
    check_claim(Claim("mine", Steeper("same"), Cauchy(), sampler="exact"))
    with pytest.raises(UsageError, match="draws exactly"):
        check_claim(Claim("mine", Steeper(how), Cauchy(), sampler="exact"))


def test_smooth_sensitivity_needs_cauchy_noise() -> None:
    with pytest.raises(LawError, match="without rounding"):
        Claim("mine", Smooth(), Laplace(), sampler="exact")


@pytest.mark.parametrize("name", ["dp-laplace", "dp-smooth"])
def test_the_service_draws_the_same_way(name: str, tmp_path: Any) -> None:
    asked = asking("first", [{"boxes": [{"age": [30, 50]}], "more_than": 5, "repeats": 400}], 0.001)
    with served(people(80), claim_named(name), tmp_path, {"analyst": "1"}) as service:
        values = np.array(service.ask(asked).json()["answers"][0])
    assert service.accounts.facts.claim.sampler == "exact"
    if name == "dp-laplace":
        assert on_the_grid(values, 0.001).all()
    else:
        steps = np.ldexp(values, -fade(0, 0.001).grid())
        assert (steps == np.rint(steps)).all()
    assert len(np.unique(values)) > 390
