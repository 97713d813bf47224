"""Noise laws as values: densities, atoms, tails, overlaps, draws, silence."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, special, stats

import thinveil
from thinveil.auditing.options import Options
from thinveil.curator.drawing import NoiseStream
from thinveil.errors import FieldError, LawError, UsageError
from thinveil.language.claims import Claim, Global, KLocal, claim_named, idp
from thinveil.language.laws import LAWS, Cauchy, DiscreteLaplace, Gaussian, Laplace, law_named
from thinveil.language.laws.additive import rounded
from thinveil.language.laws.gaussian import calibrated
from thinveil.language.wire.facts import facts_from_plain, facts_to_plain
from thinveil.verdicts.limits.bounds import bits_an_answer
from worlds import as_a, sure

ALL = [Laplace(), Cauchy(), Gaussian(1e-6), DiscreteLaplace()]
SMOOTH = [law for law in ALL if not law.discrete]
RATES = [1e-3, 0.2, 1.0, 5.0, 30.0]


def named(values):
    return [pytest.param(each, id=each.name) for each in values]


def loglik(law, value, bit, rate, post="none", exact=False):
    with np.errstate(divide="ignore"):
        return law.loglik(
            np.asarray(value, float), np.asarray(bit), np.asarray(rate, float), post, exact
        )


@pytest.mark.parametrize("law", named(SMOOTH))
@pytest.mark.parametrize("rate", RATES)
def test_densities_integrate_to_one_and_agree_with_tails_and_quantiles(law, rate):
    def density(x):
        return math.exp(float(loglik(law, x, True, rate)))

    points = [1 + law.quantile(np.array([u]), 1 / rate)[0] for u in (0.001, 0.2, 0.5, 0.9, 0.999)]
    inside = sum(integrate.quad(density, *pair, epsabs=1e-11)[0] for pair in pairwise(points))
    assert inside == pytest.approx(0.998, abs=1e-8)
    for x in (0.1 / rate, 0.5, 2 / rate):
        beyond = integrate.quad(density, 1 + x, 1 + x + 40 / rate, limit=200)[0]
        far = float(law.tail(x + 40 / rate, rate))
        assert float(law.tail(x, rate)) == pytest.approx(beyond + far, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("law", named([*ALL]))
@pytest.mark.parametrize("rate", [0.01, *RATES[1:]])
@pytest.mark.parametrize("post", ["integer", "binary"])
def test_atoms_sum_to_one_and_are_those_of_the_tails(law, rate, post):
    most = 1 if post == "binary" else int(60 / rate) + 50
    whole = np.arange(0, 2) if post == "binary" else np.arange(-most, most + 1)
    for bit in (False, True):
        mass = np.exp(loglik(law, whole, bit, np.full(len(whole), rate), post))
        left = 0.0 if post == "binary" else 2 * float(law.tail(most + 0.5, rate))
        assert mass.sum() + left == pytest.approx(1, rel=1e-3 if law.name == "cauchy" else 1e-9)
    if post == "integer":
        for far in (1, 3):
            wanted = float(law.tail(far - 0.5, rate) - law.tail(far + 0.5, rate))
            got = math.exp(float(loglik(law, far, False, rate, post)))
            assert got == pytest.approx(wanted, rel=1e-7, abs=1e-13)
        assert float(law.still(np.array([rate]), post)[0]) == pytest.approx(
            math.exp(float(loglik(law, 1, True, rate, post)))
        )


@pytest.mark.parametrize("rate", [1e-9, 1e-5, 1.01e-4, 0.99e-4])
def test_rounded_gaussian_masses_neither_cancel_nor_jump(rate):
    law = Gaussian(1e-6)
    for far in (0, 1, int(2 / rate), int(9 / rate)):
        got = float(loglik(law, far, False, rate, "integer"))
        assert got == pytest.approx(stats.norm.logpdf(far * rate) + math.log(rate), abs=1e-7)


@pytest.mark.parametrize("law", named([Laplace(), Gaussian(1e-6), DiscreteLaplace()]))
@pytest.mark.parametrize(("one", "other"), [(1.0, 1.0), (0.3, 0.9), (4.0, 2.0), (30.0, 7.0)])
@pytest.mark.parametrize("apart", [False, True])
def test_overlaps_are_bhattacharyya_coefficients(law, one, other, apart):
    if law.discrete:
        x = np.arange(-3000, 3000)
        first = np.exp(loglik(law, x, False, 1 / one, "integer") / 2)
        overlap = float((first * np.exp(loglik(law, x, apart, 1 / other, "integer") / 2)).sum())
    else:
        overlap, _ = integrate.quad(
            lambda x: math.exp(
                float(loglik(law, x, False, 1 / one) + loglik(law, x, apart, 1 / other)) / 2
            ),
            -60 * max(one, other), 60 * max(one, other), limit=500, points=[0, 1],
        )  # fmt: skip
    got = float(law.overlap(np.array(one), np.array(other), np.array(apart)))
    close = law.name == "laplace" and apart and one != other  # taken at the larger scale
    assert got == pytest.approx(overlap, rel=0.2 if close else 1e-6)


@pytest.mark.parametrize("law", named(ALL))
@pytest.mark.parametrize(("one", "other"), [(1.0, 2.0), (5.0, 4.0), (0.5, 3.0)])
def test_distances_are_total_variations_and_bits_bound_the_capacity(law, one, other):
    if law.discrete:
        x: npt.NDArray[Any] = np.arange(-2000, 2000)
        gap = np.abs(
            np.exp(loglik(law, x, False, 1 / one, "integer"))
            - np.exp(loglik(law, x, False, 1 / other, "integer"))
        )
        total = gap.sum() / 2
    else:
        x = np.linspace(-4000, 4000, 800_001)
        gap = np.abs(
            np.exp(loglik(law, x, False, 1 / one)) - np.exp(loglik(law, x, False, 1 / other))
        )
        total = integrate.trapezoid(gap, x) / 2
    assert law.distance(one, other) == law.distance(other, one) == pytest.approx(total, abs=2e-4)
    assert law.distance(one, one) == 0
    post = "integer" if law.discrete else "none"
    x = np.arange(-400, 400) if law.discrete else np.linspace(-400, 400, 80_001)
    zero, first = (np.exp(loglik(law, x, bit, 1 / one, post)) for bit in (False, True))
    mean = np.maximum((zero + first) / 2, 1e-300)
    told = sum(p * np.log2(np.maximum(p, 1e-300) / mean) for p in (zero, first)) / 2
    capacity = told.sum() if law.discrete else integrate.trapezoid(told, x)
    assert capacity <= law.bits(1 / one) * (1 + 1e-6) + 1e-9
    if law.discrete:
        assert capacity == pytest.approx(law.bits(1 / one), rel=1e-6)


@pytest.mark.parametrize("law", named(ALL))
@pytest.mark.parametrize("scale", [0.2, 1.0, 40.0])
def test_draws_follow_the_law(law, scale):
    """Kolmogorov-Smirnov, or chi-squared for atoms, at a false alarm of 1e-6 each."""
    many = 200_000
    noise = law.draw(NoiseStream(5).take(many), np.ones(many), scale) - 1
    if law.discrete:
        assert (noise == np.rint(noise)).all()
        edge = max(1, int(3 * scale))
        inside = np.abs(noise) <= edge
        seen = np.bincount((noise[inside] + edge).astype(int), minlength=2 * edge + 1)
        mass = np.exp(loglik(law, np.arange(-edge, edge + 1), False, 1 / scale, "integer"))
        seen, mass = np.append(seen, many - seen.sum()), np.append(mass, 1 - mass.sum())
        chi = ((seen - many * mass) ** 2 / (many * mass)).sum()
        assert stats.chi2.sf(chi, len(mass) - 1) > 1e-6
    else:
        upper = np.sort(noise[noise > 0])
        expected = 1 - 2 * law.tail(upper, 1 / scale)
        gap = np.abs(expected - np.arange(len(upper)) / len(upper)).max()
        assert gap < 2.7 / math.sqrt(len(upper))
    assert abs((noise > 0).sum() - (noise < 0).sum()) < 5 * math.sqrt(many)


@pytest.mark.parametrize("law", named(ALL))
def test_answer_number_i_depends_on_word_i_alone_and_is_finite_at_both_ends(law):
    words = NoiseStream(3).take(1000)
    whole = law.draw(words, np.zeros(1000), 2.0)
    parts = [law.draw(words[i : i + 1], np.zeros(1), 2.0)[0] for i in range(0, 1000, 97)]
    assert parts == whole[::97].tolist()
    ends = np.array([0, 1, 2**64 - 1, 2**64 - 2], np.uint64)
    assert np.isfinite(law.draw(ends, np.ones(4), 1e290)).all()


def test_quantiles_of_the_discrete_law_are_the_least_whole_numbers():
    law, scale = DiscreteLaplace(), 3.0
    u = np.linspace(0.0005, 0.9995, 2000)
    got = law.quantile(u, scale)
    whole = np.arange(-200, 201)
    below = np.cumsum(np.exp(loglik(law, whole, False, 1 / scale, "integer")))
    assert np.abs(got - whole[np.searchsorted(below, u)]).max() <= 1  # ties at exact quantiles
    assert (got == whole[np.searchsorted(below, u)]).mean() > 0.99


@pytest.mark.parametrize("epsilon", [1e-300, 1e-10, 1e-3, 0.5, 1.0, 10.0, 800.0, 1e6])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.3])
def test_gaussian_noise_is_calibrated_to_the_least_that_holds(epsilon, delta):
    """Balle and Wang's condition by the scaled complementary error function."""

    def least(deviation):
        x, y = 0.5 / deviation, epsilon * deviation
        scaled = special.erfcx((y - x) / math.sqrt(2)) - special.erfcx((y + x) / math.sqrt(2))
        return math.exp(-((x - y) ** 2) / 2) / 2 * scaled

    found, blurred = calibrated(epsilon, delta), 1e-15 / delta
    assert least(found) <= delta * (1 + blurred)
    assert least(found * (1 - 1e-6 - blurred)) > delta * (1 - blurred)


def test_deltas_add_up_exactly_and_in_the_shares_of_epsilon():
    assert Gaussian(1e-6).deltas(3, Fraction(7)) == Fraction(3, 10**6)
    shared = Gaussian(1e-6, per=2.0)
    assert shared.deltas(3, Fraction(1, 3)) == Fraction(1, 6 * 10**6)
    assert shared.deviation(0.5) == calibrated(0.5, 0.25e-6)
    assert Laplace().deltas(9, Fraction(1)) == DiscreteLaplace().deltas(9, Fraction(1)) == 0


def test_each_answer_has_the_width_of_its_own_loss():
    law, losses = Gaussian(1e-6), np.array([1e-10, 0.5, 1e-10, 2.0])
    wide = as_a(np.ndarray, law.widen(losses))
    assert wide.tolist() == [loss * law.deviation(loss) for loss in losses.tolist()]
    assert np.shape(law.widen(losses[:, None])) == (4, 1)


@pytest.mark.parametrize("law", named(ALL))
def test_sums_over_rows_are_sums_of_single_answers(law):
    if not hasattr(law, "row_loglik"):
        return
    rng = np.random.default_rng(1)
    repeats = np.array([1, 4, 2])
    values, starts = rng.normal(size=7) * 3, np.array([0, 1, 5])
    bit, rate = rng.random((3, 4)) > 0.5, rng.random((3, 4)) + 0.1
    row = np.repeat(np.arange(3), repeats)
    each = law.loglik(values[:, None], bit[row], rate[row], "none", False)
    got = law.row_loglik(values, starts, repeats, bit, rate)
    np.testing.assert_allclose(got, np.add.reduceat(each, starts, axis=0), rtol=1e-12)


def test_unknown_laws_are_errors_wherever_a_name_is_read():
    with pytest.raises(LawError, match="no noise law 'gauss'"):
        Claim("x", KLocal(1), "gauss")
    with pytest.raises(LawError, match="not a law"):
        Claim("x", KLocal(1), 5)  # type: ignore[arg-type]
    with pytest.raises(LawError, match="OpenDP draws Laplace noise"):
        Claim("x", KLocal(1), Gaussian(1e-6), sampler="opendp")
    with pytest.raises(LawError, match="gaussian noise needs a delta"):
        Claim("x", KLocal(1), "gaussian")
    with pytest.raises(LawError, match="no noise law"):
        law_named(None)
    with pytest.raises(UsageError, match="no noise law 'students'"):
        Options(noise="students")
    facts = thinveil.Curator(thinveil.people(9), idp()).facts
    for bad in (
        "gauss",
        {"law": "gauss"},
        {"law": "laplace", "b": 1},
        {"law": "gaussian"},
        7,
        None,
    ):
        plain = facts_to_plain(facts)
        plain["claim"]["noise"] = bad
        with pytest.raises(FieldError):
            facts_from_plain(plain)


@pytest.mark.parametrize("law", named([*ALL, Gaussian(1e-3, per=0.5)]))
def test_claims_with_any_law_travel(law):
    claim = Claim("mine", KLocal(2), law, offset=0.5)
    data = thinveil.people(9)
    facts = thinveil.PublicFacts(data.records, data.schema, claim)
    assert facts_from_plain(facts_to_plain(facts)) == facts


def test_options_name_the_noise_and_its_delta():
    claim = Options(noise="gaussian", delta="1e-6").claim()
    assert claim == claim_named("idp", noise=Gaussian(1e-6))
    assert claim.name == "idp-gaussian"
    shared = Options(noise="gaussian", delta="1e-6", epsilon="2").claim()
    assert shared.noise == Gaussian(1e-6, per=2.0)
    assert Options(mechanism="dp-laplace", noise="discrete-laplace").claim().control
    assert Options(mechanism="idp-noisy", noise="discrete-laplace").claim().name == (
        "idp-discrete-laplace-noisy"
    )
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"delta": "1e-6"}, "--delta goes with --noise gaussian"),
        ({"delta": "1e-6", "noise": "laplace"}, "laplace noise has no delta"),
        ({"noise": "gaussian"}, "gaussian noise needs a delta"),
        ({"noise": "gaussian", "delta": "0"}, "delta must lie between"),
        ({"noise": "gaussian", "delta": "x"}, "--delta must be a number"),
        ({"noise": "gaussian", "delta": "1e-6", "mechanism": "dp-smooth"}, "brings its own"),
        ({"noise": "gaussian", "delta": "1e-6", "mechanism": "unprotected"}, "takes none"),
        ({"noise": "discrete-laplace", "mechanism": "dp-textbook"}, "draws whole numbers exactly"),
        (
            {"noise": "discrete-laplace", "test": "psi", "mechanism": "idp-noisy"}
            | {"strategy": "published"},
            "the paper's",
        ),
    )
    for wrong, said in refused:
        with pytest.raises(UsageError, match=said):
            Options(**wrong)


SLOW: list[dict[str, Any]] = [
    {"post": "binary"}, {"strategy": "thrifty"},
    {"mechanism": "idp-noisy", "epsilon_per_query": "0.01"},
]  # fmt: skip


@pytest.mark.parametrize("noise", ["gaussian", "discrete-laplace"])
@pytest.mark.parametrize("settings", [
    {}, {"strategy": "posterior"}, {"epsilon": "1"}, {"post": "integer"}, {"mechanism": "bdp"},
    {"k": 2}, *(pytest.param(each, marks=pytest.mark.nightly) for each in SLOW),
], ids=str)  # fmt: skip
def test_audits_rebuild_a_small_table_through_both_new_laws(noise, settings):
    delta: dict[str, Any] = {"delta": "1e-6"} if noise == "gaussian" else {}
    verdict = thinveil.audit(thinveil.people(6), noise=noise, **delta, **settings)
    assert sure(verdict.score).exact, verdict.run.reason
    if not delta:
        assert verdict.run.delta == 0
    elif "epsilon" in settings:
        assert verdict.run.delta == verdict.run.spent * Fraction(1, 10**6) <= Fraction(1, 10**6)
    else:
        assert verdict.run.delta == verdict.run.meter.queries * Fraction(1, 10**6)
    assert verdict.to_plain()["delta_claimed"] == float(verdict.run.delta)


@pytest.mark.parametrize("noise", ["gaussian", "discrete-laplace"])
def test_honest_noise_of_either_law_gives_nothing_away(noise):
    more: dict[str, Any] = {"channel": "noise"}  # the doubles of a Gaussian would give it away
    more |= {"delta": "1e-6"} if noise == "gaussian" else {}
    verdict = thinveil.audit(
        thinveil.people(6), mechanism="dp-laplace", noise=noise, most_repeats=200, **more
    )
    assert verdict.run.ending == "undecided"
    # no Gaussian is drawn exactly here, so that one is drawn as textbooks do it
    assert verdict.facts.claim.textbook == (noise == "gaussian")
    assert verdict.facts.claim.control == (noise != "gaussian")
    assert not verdict.facts.claim.leaks


@pytest.mark.parametrize("law", named(ALL))
@pytest.mark.parametrize("post", ["none", "integer", "binary"])
def test_bounds_on_an_answer_know_the_law(law, post):
    claim = Claim("x", KLocal(1), law, post=post)
    assert 1 <= bits_an_answer(claim, 100, 1e-10) <= 1.5850001
    noisy = Claim("x", KLocal(1), law, offset=1.0, post=post)
    assert 0 < bits_an_answer(noisy, 100, 1e-10) < 0.5


# -- silence -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Silent:
    """A law of a stranger's: where there would be noise, half of the time there is no answer."""

    name = title = "silent"
    discrete = False
    silent = True
    level = False

    def __getattr__(self, name):
        if name.startswith("_") or name == "row_loglik":
            raise AttributeError(name)
        return getattr(Laplace(), name)

    def loglik(self, value, bit, rate, post, exact):
        said = Laplace().loglik(np.nan_to_num(value), bit, rate, post, exact)
        return np.where(np.isnan(value), 0.0, said) + math.log(0.5)

    def draw(self, words, bit, scale):
        noisy = Laplace().draw(words, bit, scale)
        return np.where(words & np.uint64(2), np.nan, noisy)


SILENT: Any = Silent()  # what it lacks it takes from Laplace noise


@pytest.mark.parametrize(
    "post", ["none", "integer", pytest.param("binary", marks=pytest.mark.nightly)]
)
def test_silence_passes_curator_transcript_and_likelihood(post, tmp_path):
    data = thinveil.people(5)
    claim = Claim("silent", KLocal(1), SILENT, post=post)
    curator = thinveil.Curator(data, claim, seed=2)
    kept = tmp_path / "run.transcript"
    verdict = thinveil.audit(curator, truth=data, transcript=kept)
    assert sure(verdict.score).exact, verdict.run.reason
    again = thinveil.audit(thinveil.Curator(data, claim, seed=2), truth=data, resume=kept)
    assert sure(again.score).exact
    assert again.run.meter.replayed == verdict.run.meter.rounds


def test_silence_is_null_on_the_wire_and_refused_where_the_law_has_none():
    from thinveil.language.wire import arrow, json

    batch = thinveil.batch_of([([{0: (0, 5)}], 0)], repeats=3)
    reply = json.Reply("k", np.array([0.5, np.nan, 1.0]), "0", "1", False)
    written = json.encode_reply(reply, batch)
    assert b"[0.5,null,1.0]" in written
    for back in (json.decode_reply(written), arrow.decode_reply(bytes(arrow.encode_reply(reply)))):
        np.testing.assert_array_equal(back.values, reply.values)
    silent = Claim("silent", KLocal(1), SILENT)
    assert silent.may_answer(reply.values)
    assert not silent.may_answer(np.array([np.inf]))
    assert not idp().may_answer(reply.values)
    assert np.isnan(rounded(reply.values, "binary")[1])


# -- no module asks for a law by name ------------------------------------------------------

ROOT = Path(thinveil.__file__).parent


def test_no_module_asks_for_a_law_by_name():
    """Outside the folder of laws no text in a comparison, a lookup or a match names one."""
    found = []
    for path in ROOT.rglob("*.py"):
        if ROOT / "language" / "laws" in path.parents:
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source if any(map(source.__contains__, LAWS)) else "")):
            texts = []
            if isinstance(node, ast.Compare):
                texts = [node.left, *node.comparators]
            elif isinstance(node, ast.Subscript):
                texts = [node.slice]
            elif isinstance(node, ast.MatchValue):
                texts = [node.value]
            elif isinstance(node, ast.Dict):
                texts = [key for key in node.keys if key is not None]
            for each in texts:
                found += [
                    f"{path.relative_to(ROOT)}:{part.lineno}"
                    for part in ast.walk(each)
                    if isinstance(part, ast.Constant) and part.value in LAWS
                ]
    assert not found


def test_whole_parts_of_floating_logarithms_are_no_control() -> None:
    drawn = Claim("x", Global(), DiscreteLaplace())
    assert drawn.textbook
    assert not drawn.control
    assert replace(drawn, sampler="exact").control
    found = thinveil.audit(thinveil.Curator(thinveil.people(20), drawn))
    assert found.run.ending == "undecided"
    assert "drawn in doubles" in sure(found.possible).sentence()
