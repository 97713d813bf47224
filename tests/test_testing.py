"""The shipped conformance suites: ours pass, broken mechanisms, laws and targets fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import thinveil
from services import served
from thinveil.auditing.http import HttpTarget
from thinveil.errors import QueryError
from thinveil.language.claims import MECHANISMS, Claim, Global, KLocal, claim_named
from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace
from thinveil.language.mechanisms import BUILT_IN
from thinveil.language.shapes import Shape
from thinveil.testing import check_law, check_mechanism, check_target
from worlds import sweep

LAWS = [Laplace(), Cauchy(), Gaussian(1e-6), Gaussian(0.01), DiscreteLaplace()]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_our_laws_conform(law):
    check_law(law)


@pytest.mark.parametrize("name", MECHANISMS)
def test_our_mechanisms_conform_and_are_as_honest_as_they_say(name):
    claim = claim_named(name)
    check_mechanism(claim)
    assert claim.leaks is BUILT_IN[name].leaks
    honest = claim.protected and not BUILT_IN[name].leaks
    assert (claim.control, claim.textbook) == (
        honest and name != "dp-textbook",
        name == "dp-textbook",
    )
    assert BUILT_IN[name].title


@pytest.mark.parametrize("noise", [Gaussian(1e-3), DiscreteLaplace()], ids=repr)
@pytest.mark.parametrize("name", ["idp", "dp-laplace"])
def test_mechanisms_with_other_noise_conform(name, noise):
    check_mechanism(claim_named(name, noise=noise))


@pytest.mark.parametrize(
    "name", ["unprotected", "idp", "idp-binary", "idp-noisy", "bdp", "dp-laplace"]
)
def test_our_curators_conform(name):
    check_target(thinveil.Curator(thinveil.people(9), claim_named(name)))


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("name", sweep(["idp", "unprotected", "idp-noisy", "bdp"], 4))
def test_targets_over_http_conform(tmp_path, name, arrow):
    with served(thinveil.people(9), claim_named(name), tmp_path) as service:
        target = HttpTarget(service.url, service.tokens["analyst"], arrow=arrow)
        check_target(target)
        target.close()


@dataclass(frozen=True)
class Broken:
    """Laplace noise with one member spoilt."""

    what: str
    name = "broken"

    def __getattr__(self, name):
        if name.startswith("_") or name == self.what == "tail":
            raise AttributeError(name)
        return getattr(Laplace(), name)

    def loglik(self, value, bit, rate, post, exact):
        rate = rate * 2 if self.what == "density" else rate
        told = Laplace().loglik(value, bit, rate, post, exact)
        return told + 0.1 if self.what == "sum" and post == "integer" else told

    def draw(self, words, bit, scale):
        if self.what == "order":
            return Laplace().draw(np.roll(words, 1), bit, scale)
        answers = Laplace().draw(words, bit, scale * (1.2 if self.what == "draws" else 1))
        return np.where(words % 50 == 0, np.nan, answers) if self.what == "silence" else answers

    def overlap(self, one, other, apart):
        return Laplace().overlap(one, other, apart) * (0.5 if self.what == "overlap" else 1)


@pytest.mark.parametrize(("what", "said"), [
    ("density", "the density is not that of the quantiles"), ("sum", "masses add up to"),
    ("draws", "draws do not follow"), ("order", "not drawn from word i"), ("tail", "lacks tail"),
    ("silence", "is silent and does not say so"), ("overlap", "overlaps itself"),
])  # fmt: skip
def test_broken_laws_fail_with_clear_words(what, said):
    whole: Any = Broken("nothing")
    broken: Any = Broken(what)
    check_law(whole)
    with pytest.raises(AssertionError, match=said):
        check_law(broken)


@dataclass(frozen=True)
class WrongBreakpoint(KLocal):
    def breakpoints(self, threshold, records):
        return super().breakpoints(threshold, records)[:, :2]


@dataclass(frozen=True)
class Half(Global):
    """Half of the noise that differential privacy needs, wherever it is."""

    shape = Shape(leaks=False, even=True)

    def at(self, count, threshold, records, epsilon):
        return np.full(count.shape, 0.5)


@pytest.mark.parametrize("noise", [Laplace(), Gaussian(1e-3), DiscreteLaplace()], ids=repr)
def test_broken_mechanisms_fail(noise):
    with pytest.raises(AssertionError, match="changes between breakpoints"):
        check_mechanism(Claim("wrong", WrongBreakpoint(1), noise))
    with pytest.raises(AssertionError, match="says it is a control"):
        check_mechanism(Claim("half", Half(), noise))


def test_a_plug_in_called_dp_that_leaks_is_called_leaking():
    claim = Claim("dp-mine", KLocal(1), Laplace())
    assert claim.leaks
    assert not claim.control


class Foreign:
    """A target around a curator, with one fault."""

    def __init__(self, fault):
        self._curator = thinveil.Curator(thinveil.people(9), thinveil.idp())
        self.facts: Any = None if fault == "facts" else self._curator.facts
        self.fault = fault

    def answer(self, batch):
        if self.fault == "repeats":
            batch = replace(batch, repeats=1)
        if self.fault == "overlap":
            try:
                return self._curator.answer(batch).values
            except QueryError:
                return np.zeros(batch.queries)
        values = self._curator.answer(batch).values
        return {
            "drops": values[:-1], "order": values[::-1], "number": values * np.nan,
            "trivial": values + 0.5,
        }.get(self.fault, values)  # fmt: skip


@pytest.mark.parametrize(("fault", "said"), [
    ("drops", "gave 7 answers where 8"), ("repeats", "gave 8 answers where 24"),
    ("order", "in another order"), ("number", "no number"), ("trivial", "trivial thresholds"),
    ("overlap", "counts boxes of one question twice"), ("facts", "needs `facts`"),
])  # fmt: skip
def test_broken_targets_fail(fault, said):
    check_target(Foreign("none"))
    with pytest.raises(AssertionError, match=said):
        check_target(Foreign(fault))
