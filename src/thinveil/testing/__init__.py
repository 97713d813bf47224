"""Conformance suites for other people's mechanisms, noise laws and targets.

Plain functions that raise AssertionError and say what is wrong; with pytest or without::

    def test_my_mechanism():
        thinveil.testing.check_mechanism(mine.mechanism(1, "unbounded"))
"""

from thinveil.testing.laws import check_law
from thinveil.testing.mechanisms import check_mechanism
from thinveil.testing.targets import check_target

__all__ = ["check_law", "check_mechanism", "check_target"]
