"""Laws of other people's: what their shape shows, and that attacks on them are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil.attacker.engines.decisions import alike
from thinveil.attacker.findings import ColumnsFound, PeopleFound
from thinveil.attacker.strategies import STRATEGIES, strategy_for
from thinveil.errors import UsageError
from thinveil.language.claims import Bootstrap, Claim, Global, KLocal
from thinveil.language.policies import Policies
from thinveil.language.schema import MISSING
from thinveil.language.shapes import Shape, holds, seen, shape_of
from thinveil.verdicts.limits.bounds import bits_an_answer
from worlds import as_a, sure, sweep

# ---- shapes


@dataclass(frozen=True)
class Steps:
    """1 within k records of the threshold, 1/2 within 2k."""

    k: int = 1

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        far = np.where(count > threshold, count - threshold, threshold - count + 1)
        return np.where(far <= self.k, 1.0, np.where(far <= 2 * self.k, 0.5, 0.0))

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return threshold[:, None] + self.k * np.array([-2, -1, 0, 1, 2])


@dataclass(frozen=True)
class AddOnly:
    """Above zero at c = b alone: no zone is the same on both sides."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return (count == threshold).astype(float)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return np.stack([threshold - 1, threshold], axis=1)


@dataclass(frozen=True)
class Fading:
    """Never zero; falls with the distance from the threshold."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        far = np.maximum(np.maximum(threshold - count, count - threshold - 1), 0)
        return np.exp(-0.5 * far)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return np.broadcast_to(np.arange(records), (len(threshold), records))


@dataclass(frozen=True)
class Constant:
    """The same for all counts."""

    size: float = 2.0

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return np.full(count.shape, self.size)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return threshold[:, None]


@dataclass(frozen=True)
class SomeOfThem:
    """Bootstrap sensitivity of another size."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return 3.0 * ((count > 0) & (count < records))

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return Bootstrap().breakpoints(threshold, records)


@dataclass(frozen=True)
class Growing:
    """A window of 1 in small tables, and of 2 in large ones."""

    above: int = 10_000

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return KLocal(2 if records > self.above else 1).at(count, threshold, records, epsilon)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return threshold[:, None] + np.array([-2, -1, 0, 1, 2])


@pytest.mark.parametrize(
    ("sensitivity", "shape"),
    [
        (Steps(2), Shape(reach=4, level=False)),
        (AddOnly(), Shape()),
        (Fading(), Shape(level=False)),
        (Constant(), Shape(leaks=False, even=True)),
        (Constant(0.0), Shape(reach=0, leaks=False, even=True)),
        (SomeOfThem(), Shape(presence=True)),
        (KLocal(3), Shape(reach=3)),
        (Bootstrap(), Shape(presence=True)),
    ],
    ids=str,
)
def test_shapes_are_seen_in_the_law(sensitivity: Any, shape: Shape) -> None:
    assert seen(sensitivity) == shape
    assert holds(sensitivity, shape, 333)


@pytest.mark.parametrize("sensitivity", [KLocal(1), KLocal(7), Bootstrap()], ids=str)
def test_what_ours_say_of_their_shape_is_what_their_law_shows(sensitivity: Any) -> None:
    assert shape_of(sensitivity) == seen(sensitivity)


def test_a_shape_that_does_not_hold_for_the_table_is_refused() -> None:
    claim = Claim("growing", Growing(100), "laplace")
    assert not holds(claim.sensitivity, Shape(reach=1), 101)
    assert holds(claim.sensitivity, Shape(reach=1), 99)
    big = Claim("growing", Growing(), "laplace")
    assert big.reach == 1
    assert not holds(big.sensitivity, big.shape, 10_001)
    data = thinveil.people(10_001)
    with pytest.raises(UsageError, match="another shape in a table of 10,001"):
        thinveil.audit(thinveil.Curator(data, big))


def test_the_comparison_of_laws_agrees_with_known_cases() -> None:
    claim = Claim("x", Steps(), "laplace")
    bit, scale = np.array([False, True, False, False]), np.array([0.0, 0.0, 1.0, 0.5])
    found = alike(claim, bit, scale, 1e-10)
    assert np.allclose(found, found.T)
    assert np.allclose(np.diag(found), 1)
    assert found[0, 1] == found[0, 2] == 0
    assert found[2, 3] == pytest.approx(2 * np.sqrt(0.5) / 1.5)
    coin = alike(Claim("x", Steps(), "laplace", post="binary"), bit, scale, 1e-10)
    assert coin[0, 2] == pytest.approx(np.sqrt(0.5))


# ---- attacked


FOREIGN = {
    "steps": Claim("steps", Steps(), "laplace"),
    "steps of 2": Claim("steps", Steps(2), "cauchy", "bounded"),
    "add only": Claim("add-only", AddOnly(), "laplace"),
    "some": Claim("some", SomeOfThem(), "laplace"),
    "nothing": Claim("nothing", Constant(0.0), "laplace"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("which", FOREIGN)
def test_every_strategy_recovers_the_table_or_says_which_does(which: str, strategy: str) -> None:
    claim = FOREIGN[which]
    schema = thinveil.Schema(
        (thinveil.Grid("x", lower=0, upper=15), thinveil.Categories("y", ("a", "b", "c"), True))
    )
    rows = [[3, 0], [3, 0], [7, 1], [12, 2], [12, MISSING], [0, 1], [15, 2], [7, 1], [8, 0]]
    data = thinveil.Dataset(schema, np.array(rows, np.int64))
    curator = thinveil.Curator(data, claim, seed=5)
    reading = strategy in ("published", "linear")
    zones_only = reading and not claim.zoned
    if zones_only or (not claim.counts and strategy not in ("adaptive", "thrifty")):
        with pytest.raises(UsageError, match=r"use (posterior|adaptive or thrifty)"):
            thinveil.audit(curator, truth=data, strategy=strategy)
        return
    verdict = thinveil.audit(curator, truth=data, strategy=strategy)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.score.distinct == (not claim.counts)
    assert verdict.strategy == (strategy if claim.zoned else "posterior")


WEAK = {
    "steps rounded to 0 or 1": Claim("steps", Steps(), "laplace", post="binary"),
    "steps rounded": Claim("steps", Steps(), "laplace", post="integer"),
    "steps always noisy": Claim("steps", Steps(), "laplace", offset=0.5),
    "add only rounded": Claim("add-only", AddOnly(), "laplace", post="binary"),
    "add only, always noisy": Claim("add-only", AddOnly(), "cauchy", offset=0.25),
    "fading": Claim("fading", Fading(), "laplace"),
}


@pytest.mark.parametrize("which", sweep(sorted(WEAK, key="steps rounded".__ne__), 6))
def test_a_law_of_its_own_is_weighed(which: str) -> None:
    claim, data = WEAK[which], thinveil.people(12)
    assert not claim.zoned
    assert not claim.reads_exactly
    assert strategy_for("adaptive", claim) == "posterior"
    verdict = thinveil.audit(thinveil.Curator(data, claim, seed=2), truth=data)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.exit_code == 0


def test_all_attacks_on_a_law_of_its_own() -> None:
    data = thinveil.people(60)
    curator = lambda: thinveil.Curator(data, FOREIGN["add only"], seed=1)  # noqa: E731
    first, names = data.rows()[0], data.schema.names
    known = dict(zip(names[:2], map(str, first[:2]), strict=True))
    matching = [row for row in data.rows() if list(map(str, row[:2])) == list(known.values())]

    def told(attack: str, **more: Any) -> Any:
        plain = thinveil.audit(curator(), truth=data, attack=attack, **more).to_plain()
        assert plain["strategy"] == "posterior"
        return plain["result"]

    assert told("count", known=known)["count"] == len(matching)
    (person,) = told("membership", known=known)
    assert person["present"] is True
    (person,) = told("uniqueness", known=known)
    assert person["unique"] == (len(matching) == 1)
    (person,) = told("uniqueness", known=known, present=True)
    assert person["unique"] == (len(matching) == 1)
    verdict = thinveil.audit(curator(), truth=data, attack="attribute", known=known)
    found = as_a(PeopleFound, verdict.run.found)
    rows = [place for place, row in enumerate(data.rows()) if row in matching]
    assert len(found.people[0].values) == len(names) - 2
    for each in found.people[0].values:
        said = [code for code, many in each.values for _ in range(many)]
        assert said == sorted(data.codes[rows, each.column].tolist())
    column = names[2]
    verdict = thinveil.audit(curator(), truth=data, attack="column", columns=column)
    codes, counts = np.unique(data.codes[:, 2], return_counts=True)
    assert as_a(ColumnsFound, verdict.run.found).columns[0].values == list(
        zip(codes.tolist(), counts.tolist(), strict=True)
    )


def test_what_does_not_work_on_a_law_of_its_own_is_said() -> None:
    data, claim = thinveil.people(40), FOREIGN["add only"]
    cached = thinveil.Curator(data, claim, policies=Policies(cache=True))
    with pytest.raises(UsageError, match="caches"):
        thinveil.audit(cached)
    known, column = {"age": "30"}, data.schema.names[1]
    with pytest.raises(UsageError, match="prior bounds"):
        thinveil.audit(
            thinveil.Curator(data, claim), attack="attribute", known=known, columns=column,
            priors={column: "0..9"},
        )  # fmt: skip
    for test in ("sequential", "identical"):
        with pytest.raises(UsageError, match="--test"):
            thinveil.audit(thinveil.Curator(data, WEAK["add only rounded"]), test=test)
    flat = Claim("flat", Constant(), "laplace")
    by_noise = thinveil.audit(thinveil.Curator(data, flat), channel="noise")
    assert by_noise.run.ending == "undecided"
    assert flat.textbook
    assert sure(thinveil.audit(thinveil.Curator(data, flat), truth=data).score).exact


def test_differences_too_small_to_see_end_the_attack() -> None:
    """A law of its own that only a great many answers would tell apart."""

    @dataclass(frozen=True)
    class Faint:
        def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
            return 1.0 + 0.002 * (count == threshold)

        def breakpoints(self, threshold: Any, records: int) -> Any:
            return np.stack([threshold - 1, threshold], axis=1)

    claim = Claim("faint", Faint(), "laplace")
    assert not claim.zoned
    verdict = thinveil.audit(thinveil.Curator(thinveil.people(20), claim), most_repeats=256)
    assert verdict.run.ending == "undecided"


@pytest.mark.parametrize("most", [1, 2, 255, 512])
@pytest.mark.parametrize("strategy", ["adaptive", "posterior", "thrifty"])
@pytest.mark.parametrize("noise", ["laplace", "cauchy"])
def test_constant_noise_that_is_rounded_away_ends_the_attack(
    noise: Any, strategy: str, most: int
) -> None:
    """Nothing is left to see, whatever the strategy; none of them asks for ever."""
    claim = Claim("hidden", KLocal(1), noise, offset=0.5, post="binary")
    curator = thinveil.Curator(
        thinveil.people(8), claim, seed=1, policies=Policies(max_queries=10**6)
    )
    verdict = thinveil.audit(curator, strategy=strategy, most_repeats=most)
    assert verdict.run.ending == "undecided"


def test_a_table_too_small_for_the_reach_is_refused() -> None:
    with pytest.raises(UsageError, match="noise reaches 8 records far: below twice that = 16"):
        thinveil.Curator(thinveil.people(15), Claim("steps", Steps(4), "laplace"))


def test_one_answer_tells_at_most_which_law_it_follows() -> None:
    assert bits_an_answer(FOREIGN["steps"], 100, 1e-10) == pytest.approx(np.log2(6))
    assert bits_an_answer(WEAK["steps rounded to 0 or 1"], 100, 1e-10) == 1
    assert bits_an_answer(Claim("x", Global(), "laplace"), 100, 1e-10) < 1e-9
