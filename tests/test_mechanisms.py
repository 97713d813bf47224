"""One contract for every mechanism, and for each that its noise is what its claim says."""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.evidence.likelihood import loglik
from thinveil.attacker.findings import TableFound
from thinveil.commands.main import run as command
from thinveil.curator.curator import Curator
from thinveil.curator.ledger import Spend
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import BudgetError, BudgetSpent, MissingExtra, QueryError, UsageError
from thinveil.language.claims import CAUCHY, MECHANISMS, Claim, Universe, claim_named
from thinveil.language.laws.cauchy import Cauchy
from thinveil.language.queries import Answers, QueryBatch
from thinveil.language.schema import Grid, Schema
from worlds import as_a, boxes_of, domain_of, one_column, ranges, sweep, told

N = 12
KEY = ("run", 1)
DATA = one_column(list(range(N)), lower=-5, upper=20)
"""Values 0 to 11, so that c = high for the range [-1, high)."""


def composed(universe: Universe = "unbounded") -> dict[str, Claim]:
    """Every mechanism by name, and every sensible composition."""
    names: dict[str, dict[str, Any]] = {name: {"name": name} for name in MECHANISMS}
    names |= {
        "idp k=3": {"name": "idp", "k": 3},
        "idp-binary k=3": {"name": "idp-binary", "k": 3},
        "idp-noisy k=3": {"name": "idp-noisy", "k": 3},
        "idp + 0.5": {"name": "idp", "offset": 0.5},
        "idp + 3": {"name": "idp", "offset": 3.0},
        "idp-noisy-integer": {"name": "idp-noisy", "post": "integer"},
        "idp-noisy-binary": {"name": "idp-noisy", "post": "binary"},
        "bdp-integer": {"name": "bdp", "post": "integer"},
        "bdp-binary": {"name": "bdp", "post": "binary"},
        "bdp + 1": {"name": "bdp", "offset": 1.0},
        "dp-laplace-integer": {"name": "dp-laplace", "post": "integer"},
        "dp-laplace-binary": {"name": "dp-laplace", "post": "binary"},
        "dp-smooth-integer": {"name": "dp-smooth", "post": "integer"},
        "dp-smooth-binary": {"name": "dp-smooth", "post": "binary"},
    }
    return {label: claim_named(**parts, universe=universe) for label, parts in names.items()}


UNIVERSES: tuple[Universe, ...] = ("unbounded", "bounded")
CLAIMS = {
    (label, universe): claim
    for universe in UNIVERSES
    for label, claim in composed(universe).items()
}
OPENDP = pytest.mark.skipif(
    importlib.util.find_spec("opendp") is None, reason="opendp is not installed: thinveil[opendp]"
)


def over(claims: dict[Any, Claim]) -> Any:
    """Run a test for each of these claims."""
    return pytest.mark.parametrize(
        "claim",
        [
            pytest.param(claim, id=str(label), marks=OPENDP if claim.sampler == "opendp" else ())
            for label, claim in claims.items()
        ],
    )


every_claim = over(CLAIMS)
protected_claim = over({label: claim for label, claim in CLAIMS.items() if claim.protected})
seeded_claim = over({label: claim for label, claim in CLAIMS.items() if claim.sampler != "opendp"})


def cost(claim: Claim, epsilon: Any = 0.5) -> Any:
    return epsilon if claim.protected else None


def asking(many: int, repeats: Any = 1) -> QueryBatch:
    """Questions with counts and thresholds of all kinds, trivial ones among them."""
    counts = [each % (N + 1) for each in range(many)]
    thresholds = [each * 5 % (N + 3) - 1 for each in range(many)]
    return ranges([0] * many, [-1] * many, counts, thresholds, repeats=repeats)


# ---- the contract


@every_claim
def test_facts_are_public(claim: Claim) -> None:
    curator = Curator(DATA, claim, seed=99)
    assert curator.facts == Curator(DATA, claim, seed=3).facts
    assert (curator.facts.records, curator.facts.claim) == (N, claim)
    said = "\n".join(curator.facts.assumed_public())
    assert claim.name in said
    assert claim.universe in said
    assert claim.describe() == replace(claim, universe="unbounded").describe()


@every_claim
@pytest.mark.parametrize("epsilon", [1e-300, 1e-10, 1.0, 1e6])
def test_answers_are_finite_and_of_the_right_number(claim: Claim, epsilon: float) -> None:
    batch = asking(40, repeats=np.arange(40) % 4 + 1)
    answers = Curator(DATA, claim).answer(batch.stamped(KEY, cost(claim, epsilon)))
    assert answers.values.shape == (batch.queries,)
    assert np.isfinite(answers.values).all()
    assert [len(answers.row(each)) for each in range(40)] == [each % 4 + 1 for each in range(40)]


@seeded_claim
def test_the_same_seed_gives_the_same_answers_however_they_are_batched(claim: Claim) -> None:
    whole = Curator(DATA, claim, seed=6).answer(asking(30, 2).stamped(KEY, cost(claim))).values
    curator, batch, parts = Curator(DATA, claim, seed=6), asking(30, 2), []
    for start, end in ((0, 1), (1, 14), (14, 30)):
        some = (each[start:end] for each in (batch.column, batch.low, batch.high, batch.threshold))
        parts.append(curator.answer(ranges(*some, repeats=2).stamped(KEY, cost(claim))).values)
    assert np.concatenate(parts).tolist() == whole.tolist()
    other = Curator(DATA, claim, seed=7).answer(asking(30, 2).stamped(KEY, cost(claim))).values
    assert (other.tolist() == whole.tolist()) == (not claim.protected)


@every_claim
def test_trivial_thresholds_and_constant_predicates_are_not_sensitive(claim: Claim) -> None:
    batch = ranges([0] * 6, [-1, -1, 3, -9, -5, 4], [5, 5, 3, -5, 21, 4], [-1, N, 4, 0, 4, -7])
    constant = np.array([False, False, True, claim.universe == "bounded"] * 1 + [False, True])
    if claim.universe == "bounded":
        constant[4] = True
    bits, scale = claim.law(np.array([5, 5, 0, 0, N, 0]), batch.threshold, constant, N, 0.5)
    times = CAUCHY if isinstance(claim.noise, Cauchy) else 1.0
    trivial = np.array([True, True, *constant[2:5], True])
    assert (scale[trivial] == claim.offset * times).all()
    answers = Curator(DATA, claim).answer(batch.stamped(KEY, cost(claim))).values
    if not claim.offset:
        assert answers[trivial].tolist() == bits[trivial].astype(float).tolist()


@protected_claim
@pytest.mark.parametrize("epsilon", [1e-10, 0.3, 7.0])
def test_the_ledger_is_charged_exactly(claim: Claim, epsilon: float) -> None:
    curator = Curator(DATA, claim)
    curator.answer(asking(7, 3).stamped(KEY, epsilon))
    curator.answer(asking(2).stamped(KEY, epsilon))
    exact = Fraction(repr(epsilon))
    assert curator.ledger.events == (Spend(21, 21 * exact), Spend(2, 2 * exact))
    assert curator.ledger.spent == 23 * exact


@protected_claim
def test_a_refusal_changes_nothing(claim: Claim) -> None:
    curator = Curator(DATA, claim, seed=4, cap=Fraction(3))
    fine = asking(5).stamped(KEY, 0.5)
    for batch, error in (
        (asking(7).stamped(KEY, 0.5), BudgetSpent),
        (asking(3).stamped(KEY, None), BudgetError),
        (asking(3).stamped(KEY, 0.0), BudgetError),
        (asking(3).stamped(KEY, math.nan), BudgetError),
        (asking(3).stamped(KEY, np.array([1.0, 0.0, 1.0])), BudgetError),
        (ranges([3], [0], [1], [0]).stamped(KEY, 0.5), QueryError),
    ):
        with pytest.raises(error):
            curator.answer(batch)
    assert curator.ledger.events == ()
    answers = curator.answer(fine).values
    if claim.sampler != "opendp":
        assert answers.tolist() == Curator(DATA, claim, seed=4).answer(fine).values.tolist()


@every_claim
@pytest.mark.parametrize("epsilon", [1e-10, 0.5, 30.0])
def test_what_rounding_leaves(claim: Claim, epsilon: float) -> None:
    values = Curator(DATA, claim).answer(asking(200).stamped(KEY, cost(claim, epsilon))).values
    if claim.post == "binary" or not claim.protected:
        assert set(values.tolist()) <= {0.0, 1.0}
    elif claim.post == "integer":
        assert (values == np.rint(values)).all()
    elif claim.sampler != "exact" or epsilon > 1e-9:  # an exact one has whole steps below that
        assert not (values == np.rint(values)).all()


@every_claim
def test_each_question_may_have_its_own_loss(claim: Claim) -> None:
    epsilon = cost(claim, np.array([1e-10, 0.5, 20.0]))
    curator = Curator(DATA, claim)
    answers = curator.answer(asking(3, np.array([2, 1, 3])).stamped(KEY, epsilon))
    assert len(answers.values) == 6
    assert float(curator.ledger.spent) == pytest.approx(60.5 if claim.protected else 0)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("unprotected", {"offset": 1.0}),
        ("unprotected", {"post": "binary"}),
        ("idp-noisy", {"offset": 0.0}),
        ("idp-binary", {"post": "integer"}),
        ("idp", {"offset": -1.0}),
        ("idp", {"offset": math.inf}),
        ("idp", {"offset": math.nan}),
        ("idp", {"offset": 1e7}),
        ("idp", {"k": 0}),
        ("magic", {}),
    ],
    ids=str,
)
def test_parts_that_do_not_go_together(name: str, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        claim_named(name, **more)


@pytest.mark.parametrize("universe", ["bounded", "unbounded"])
def test_names_of_compositions_are_unique(universe: Universe) -> None:
    names = {label: claim.name for label, claim in composed(universe).items()}
    assert set(MECHANISMS) <= set(names.values())
    assert names["idp + 0.5"] == "idp-noisy"
    assert names["bdp + 1"] == "bdp-noisy"
    assert names["idp-noisy-integer"] == "idp-noisy-integer"


# ---- which unions are constant


@settings(max_examples=150)
@given(st.data())
def test_unions_that_fill_the_universe_are_constant(data: st.DataObject) -> None:
    """The fast judgement by shares equals a count of all possible records."""
    schema = Schema((Grid("x", lower=0, upper=3, missing=data.draw(st.booleans())),
                     Grid("y", lower=-1, upper=1)))  # fmt: skip
    boxes = [{0: (-(2**63), 2), 1: (-1, 2)}, {0: (2, 4), 1: (-1, 1)}, {0: (2, 9), 1: (1, 5)}]
    chosen = data.draw(st.lists(st.sampled_from(boxes), unique_by=str, min_size=1))
    batch = thinveil.batch_of([(chosen, 0), (chosen[:1], 0)])
    claim = claim_named("idp", universe="bounded")
    rows = np.array([[0, 0], [3, 1], [2, 0]])
    told = Curator(Dataset(schema, rows), claim)._constants.among(batch)
    every = [(x, y) for x in domain_of(schema[0]) for y in domain_of(schema[1])]
    for constant, union in zip(told.tolist(), boxes_of(batch), strict=True):
        inside = {
            any(all(low <= record[c] < high for c, (low, high) in box.items()) for box in union)
            for record in every
        }
        assert constant == (len(inside) == 1)


# ---- the noise


def draws(claim: Claim, count: int, b: int, epsilon: float, many: int = 20_000) -> Any:
    """Draw many answers to one question about `count` records."""
    if claim.sampler == "opendp":
        many //= 5  # it is exact, and slow
    batch = ranges([0], [-1], [count], [b], repeats=many)
    return Curator(DATA, claim, seed=count + 20 * b).answer(batch.stamped(KEY, epsilon)).values


def scale_of(claim: Claim, count: int, b: int, epsilon: float) -> float:
    """Return the scale of the noise, worked out from the definitions of the mechanisms."""
    kind = type(claim.sensitivity).__name__
    sensitivity = {
        "KLocal": lambda: float(b - (claim.k or 0) < count <= b + (claim.k or 0)),
        "Bootstrap": lambda: float(0 < count < N),
        "Global": lambda: 1.0,
        "Smooth": lambda: math.exp(-(epsilon / 6) * max(b - count, count - b - 1, 0)),
    }[kind]()
    return (claim.offset + sensitivity) * (6 if isinstance(claim.noise, Cauchy) else 1) / epsilon


def below(claim: Claim, x: Any, scale: float) -> Any:
    """Return how likely noise of at most x is."""
    x = np.asarray(x, float) / scale
    if isinstance(claim.noise, Cauchy):
        return 0.5 + np.arctan(x) / np.pi
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def distance(values: Any, law: Any) -> float:
    """Return the Kolmogorov-Smirnov distance of a sample from a continuous law."""
    x = np.sort(values)
    at, steps = law(x), np.arange(len(x) + 1) / len(x)
    return float(max(np.abs(at - steps[:-1]).max(), np.abs(at - steps[1:]).max()))


def critical(many: int, p: float = 1e-6) -> float:
    """Return the distance that a sample of the law itself passes with probability p."""
    return math.sqrt(math.log(2 / p) / (2 * many))


ZONES = [(2, 5), (5, 5), (6, 5), (9, 5), (0, 0), (N, 0), (N, N - 1), (1, 11)]
CONTINUOUS = {
    label: claim for label, claim in composed().items() if claim.protected and claim.post == "none"
}
ROUNDED = {label: claim for label, claim in composed().items() if claim.post != "none"}


@over(CONTINUOUS)
@pytest.mark.parametrize("epsilon", sweep([1e-10, 0.3, 2.0, 20.0], 2))
def test_noise_has_the_law_that_the_claim_states(claim: Claim, epsilon: float) -> None:
    for count, b in ZONES:
        values, bit = draws(claim, count, b, epsilon), float(count > b)
        scale = scale_of(claim, count, b, epsilon)
        if scale == 0:
            assert (values == bit).all()
            continue
        if scale < 1e-9:
            continue  # drowned in the rounding of doubles near 1
        noise = values - bit
        assert distance(noise, lambda x, s=scale: below(claim, x, s)) < critical(len(values))
        # three times as wide would be noticed
        assert distance(noise * 3, lambda x, s=scale: below(claim, x, s)) > critical(len(values))


@over(ROUNDED)
@pytest.mark.parametrize("epsilon", [1e-10, 0.3, 2.0, 20.0])
def test_rounded_answers_have_the_law_that_the_claim_states(claim: Claim, epsilon: float) -> None:
    for count, b in ZONES:
        values, bit = draws(claim, count, b, epsilon), float(count > b)
        scale = scale_of(claim, count, b, epsilon)
        if scale == 0:
            assert (values == bit).all()
            continue
        many = len(values)
        if claim.post == "binary":
            one = 1 - float(below(claim, 0.5 - bit, scale))
            assert abs(values.mean() - one) < 5 * math.sqrt(one * (1 - one) / many) + 2 / many
            continue
        # cells of whole numbers that each hold about a twentieth of the law
        quantiles = np.unique(np.rint(np.quantile(values, np.linspace(0.05, 0.95, 19))))
        edges = np.concatenate([[-np.inf], quantiles + 0.5, [np.inf]])
        expected = np.diff(below(claim, edges - bit, scale)) * many
        seen = np.histogram(values, np.nan_to_num(edges))[0]
        kept = expected > 5
        chi = float((((seen - expected) ** 2)[kept] / expected[kept]).sum())
        assert chi < quantile_of_chi_square(int(kept.sum()))


def quantile_of_chi_square(freedom: int) -> float:
    """Return what chi-square passes with a probability of about 1e-6 (Wilson and Hilferty)."""
    spread = 2 / (9 * max(freedom, 1))
    return max(freedom, 1) * (1 - spread + 4.75 * math.sqrt(spread)) ** 3


@pytest.mark.parametrize("far", [0, 1, 5, 40])
@pytest.mark.parametrize("above", [False, True])
def test_smooth_noise_narrows_with_distance(far: int, above: bool) -> None:
    epsilon, claim = 0.5, claim_named("dp-smooth")
    data = one_column(list(range(100)))
    count = 50 + 1 + far if above else 50 - far
    batch = ranges([0], [-1], [count], [50], repeats=20_000)
    values = Curator(data, claim, seed=far).answer(batch.stamped(KEY, epsilon)).values - above
    scale = 6 * math.exp(-(epsilon / 6) * far) / epsilon
    assert distance(values, lambda x: below(claim, x, scale)) < critical(len(values))


def test_cauchy_draws_are_finite_at_both_ends_of_the_words() -> None:
    ends = Cauchy().standard(np.array([0, 1, 2**63, 2**64 - 1, 2**64 - 2], np.uint64))
    assert np.isfinite(ends).all()
    assert abs(ends[2]) < 1e-15


# ---- the evidence agrees


@over({label: claim for label, claim in composed().items() if claim.protected})
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2.0])
def test_likelihoods_are_the_laws_that_are_drawn(claim: Claim, epsilon: float) -> None:
    facts = Curator(DATA, claim).facts
    for count, b in ZONES:
        scale, bit = scale_of(claim, count, b, epsilon), float(count > b)
        if scale == 0:
            continue
        if claim.post == "binary":
            values = np.array([0.0, 1.0])
        elif claim.post == "integer":
            values = np.arange(-60.0, 61.0)
        else:
            values = np.linspace(-30, 30, 61) * scale + 0.123
        many = len(values)
        batch = ranges([0] * many, [-1] * many, [count] * many, [b] * many)
        stated = np.exp(told(facts, batch, Answers(values, 1, epsilon), [count])[:, 0])
        if claim.post == "none":
            half = 1e-4 * scale
            law = below(claim, values - bit + half, scale) - below(
                claim, values - bit - half, scale
            )
            assert np.allclose(stated, law / (2 * half), rtol=1e-3, atol=1e-9 / scale)
        else:
            edges = values - bit
            high = (
                np.where(values == 1, np.inf, 0.5 - bit) if claim.post == "binary" else edges + 0.5
            )
            low = (
                np.where(values == 0, -np.inf, 0.5 - bit) if claim.post == "binary" else edges - 0.5
            )
            law = below(claim, high, scale) - below(claim, low, scale)
            assert np.allclose(stated, law, rtol=1e-6, atol=1e-12)


@over(ROUNDED)
@pytest.mark.parametrize("rate", [1e-2, 0.5, 3.0, 40.0])
def test_likelihoods_of_rounded_answers_sum_to_one(claim: Claim, rate: float) -> None:
    values = np.array([0.0, 1.0]) if claim.post == "binary" else np.arange(-20_000.0, 20_001.0)
    for bit in (False, True):
        told = loglik(claim, values, np.array([bit]), np.array([1.0]), np.array([rate]))
        tail = 2 * 0.5 / (np.pi * rate * 20_000) if isinstance(claim.noise, Cauchy) else 0.0
        off = 0.0 if claim.post == "binary" else tail
        assert np.exp(told).sum() + off * 2 == pytest.approx(1, abs=1e-3)


# ---- honest mechanisms, and what is not installed


@over({label: claim for label, claim in composed().items() if claim.control})
def test_honest_mechanisms_leak_nothing(claim: Claim) -> None:
    assert not claim.leaks
    assert not claim.hides_direction
    assert not claim.reads_exactly
    verdict = thinveil.audit(
        DATA,
        mechanism=claim.name.removesuffix("-integer").removesuffix("-binary"),
        post=claim.post,
        epsilon_per_query="1e-6",
        most_repeats=64,
    )
    assert verdict.run.ending == "undecided"
    assert as_a(TableFound, verdict.run.found).known.tolist() == [0]


def test_opendp_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(MissingExtra, match=r"pip install '(thinveil|\.)\[opendp\]'"):
        Curator(DATA, claim_named("dp-opendp"))
    code = command(["audit", "--mechanism", "dp-opendp"])
    said = capsys.readouterr()
    assert code == 1
    assert str(MissingExtra("The mechanism dp-opendp", "opendp")) in said.out + said.err


@OPENDP
def test_opendp_draws_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claim_named("dp-opendp")
    batch = asking(30).stamped(KEY, 0.5)
    first, second = (Curator(DATA, claim, seed=1).answer(batch).values for _ in range(2))
    assert first.tolist() != second.tolist()
