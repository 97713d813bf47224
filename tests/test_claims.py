"""Claims as compositions: the curator draws what they say, the evidence agrees with it."""

from collections import Counter

import numpy as np
import pytest

import thinveil
from thinveil.attacker.terms import Rules
from thinveil.errors import UsageError
from thinveil.language.claims import Claim, KLocal, bdp, claim_named
from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.claim import composed
from worlds import told

EPSILON = 0.7
DATA = thinveil.Dataset(thinveil.Schema((thinveil.Grid("a"),)), np.arange(9)[:, None])


def drawn(claim, count, threshold, many=20_000):
    """Draw many answers to one question about `count` records."""
    curator = thinveil.Curator(DATA, claim, seed=5)
    batch = thinveil.batch_of([([{0: (0, count)}], threshold)], repeats=many)
    answers = curator.answer(batch.stamped(("t", 1), EPSILON))
    return curator.facts, batch, answers


@pytest.mark.parametrize("offset", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("count", [2, 5, 8])
def test_scale_is_offset_plus_sensitivity(offset, count):
    _, _, answers = drawn(Claim("x", KLocal(1), "laplace", offset=offset), count, 5)
    sensitivity = 1.0 if count == 5 else 0.0
    noise = answers.values - (count > 5)
    assert np.abs(noise).mean() * EPSILON == pytest.approx(offset + sensitivity, rel=0.03)
    assert np.median(noise) == pytest.approx(0, abs=0.15)


@pytest.mark.parametrize("post", ["integer", "binary"])
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("count", [2, 5, 6, 8])
def test_rounded_answers_have_the_probabilities_that_the_evidence_states(post, offset, count):
    many = 20_000
    claim = Claim("x", KLocal(1), "laplace", offset=offset, post=post)
    facts, _, answers = drawn(claim, count, 5, many)
    assert set(np.unique(answers.values)) <= (
        {0.0, 1.0} if post == "binary" else set(np.arange(-200.0, 200.0))
    )
    seen = Counter(answers.values.tolist())
    total = 0.0
    for value, times in seen.items():
        one = thinveil.Answers(np.array([value]), 1, EPSILON)
        single = thinveil.batch_of([([{0: (0, count)}], 5)])
        chance = np.exp(told(facts, single, one, [count])[0, 0])
        total += chance
        assert times / many == pytest.approx(chance, abs=4 * np.sqrt(0.25 / many))
    assert total == pytest.approx(1, abs=0.01)


def test_evidence_of_repeats_adds_up():
    claim = Claim("x", KLocal(2), "laplace", offset=1.0)
    facts, batch, answers = drawn(claim, 5, 5, many=40)
    single = thinveil.batch_of([([{0: (0, 5)}], 5)])
    parts = [
        told(facts, single, thinveil.Answers(np.array([value]), 1, EPSILON), range(10))[0]
        for value in answers.values.tolist()
    ]
    assert told(facts, batch, answers, range(10))[0] == pytest.approx(sum(parts))


def test_repeats_tell_the_scale_apart():
    claim = Claim("x", KLocal(1), "laplace", offset=1.0)
    for count, noisy in ((5, True), (2, False)):
        facts, batch, answers = drawn(claim, count, 5, many=400)
        five, two = told(facts, batch, answers, [5, 2])[0].tolist()
        assert (five > two) is noisy


def test_searches_refuse_what_they_cannot_read():
    with pytest.raises(UsageError, match="not counts"):
        Rules.of(thinveil.PublicFacts(9, DATA.schema, bdp()))
    with pytest.raises(UsageError, match="offset"):
        Claim("x", KLocal(1), "laplace", offset=-1.0)


def test_textbook_noise_rounded_to_whole_numbers_is_no_control():
    """At a loss of 1e-16, four of ten whole numbers can come from one true bit only."""
    claim = composed(claim_named("dp-textbook"), None, "integer")
    assert claim.textbook
    assert not claim.control
    scale, width = 1e16, 2.0**53
    words = np.random.default_rng(1).integers(2**64, size=500, dtype=np.uint64)
    drawn = np.rint(Laplace().draw(words, np.zeros(500), scale))
    noise = (drawn - 1) / scale
    word = np.rint(Laplace().undrawn(noise) * width)
    from_one = np.zeros(500, np.bool_)
    for step in range(-400, 401):
        tried = Laplace().drawn(np.clip(word + step, 1, width) / width) * np.sign(noise)
        from_one |= np.rint(1 + tried * scale) == drawn
    assert 0.3 < 1 - from_one.mean() < 0.5
