"""What the plug-in promises about itself; the attacks on it are tested by thinveil."""

import numpy as np
from thinveil_staircase import Hesitant, Staircase, StaircaseTarget, hesitant, staircase

import thinveil
from thinveil.testing import check_law, check_mechanism, check_target


def test_the_steps():
    """1 within k, 1/2 within 2k, 0 beyond."""
    count = np.arange(13)
    height = Staircase(2).at(count, np.full(13, 5), 12, 1e-10)
    assert height.tolist() == [0, 0, 0.5, 0.5, 1, 1, 1, 1, 0.5, 0.5, 0, 0, 0]


def test_the_whole_table_is_recovered():
    """Where it is 0 the answer is exact, and that shows."""
    data = thinveil.people(60)
    curator = thinveil.Curator(data, staircase(2, "unbounded"), seed=1)
    verdict = thinveil.audit(curator, truth=data)
    assert verdict.score is not None
    assert verdict.score.exact


def test_it_conforms():
    """The suites that thinveil ships."""
    check_law(Hesitant())
    check_mechanism(staircase(2, "unbounded"))
    check_target(StaircaseTarget(thinveil.people(9)))


def test_silence_hides_nothing():
    """No answer is an answer, too: noise would be here."""
    data = thinveil.people(8)
    curator = thinveil.Curator(data, hesitant(1, "unbounded"), seed=1)
    verdict = thinveil.audit(curator, truth=data)
    assert verdict.score is not None
    assert verdict.score.exact
