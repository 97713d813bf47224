"""What the inner loops of the windows work on: named tuples of arrays.

The plain loops and the compiled ones take the same tuples. They stand in a module of their own
because `compiling` loads the loops a second time, and these must stay the same types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thinveil.attacker.fixed_order import drawn

Array = Any  # typed arrays would have to be spelled twice, for numpy and for numba

SLOTS = 64
"""The bits of a word: how many a window's variables share, and so how many variables it has."""


class Lists(NamedTuple):
    """All windows side by side, a row each: hypotheses, the variables they are about, a question.

    Slots are the places of variables in a window; there is a column for each.
    """

    state: Array  # the hypotheses, a word each
    weight: Array  # how likely each is
    size: Array  # how many there are
    used: Array  # the bits that variables own
    slots: Array  # how many variables there are
    mask: Array  # the bits that each variable owns
    node: Array  # which node it is
    base: Array  # what it counts for whatever its value
    boxes: Array  # how many boxes it names
    slack: Array  # how far it may lie beyond its largest value, or (negative) below 0
    seed: Array  # where the window's generator stands
    chosen: Array  # the subset that is asked about, a bit a variable
    threshold: Array  # what its total is compared with; -1 where nothing is asked

    @staticmethod
    def empty(windows: int, states: int) -> Lists:
        """Return windows without variables: one hypothesis each."""
        node, base, boxes, slack = (np.zeros((windows, SLOTS), np.int64) for _ in range(4))
        return Lists(
            np.zeros((windows, states), np.uint64),
            np.ones((windows, states)),
            np.ones(windows, np.int64),
            np.zeros(windows, np.uint64),
            np.zeros(windows, np.int64),
            np.zeros((windows, SLOTS), np.uint64),
            *(node, base, boxes, slack),
            drawn(windows) | np.uint64(1),
            np.zeros(windows, np.uint64),
            np.full(windows, -1, np.int64),
        )


class Task(NamedTuple):
    """What questions may be, and how hard to think about them."""

    n: int  # records of the table
    k: int  # the group size of the claim, 0 if unprotected
    hidden: bool  # whether far above looks like far below
    boxes: int  # that a question names at most
    tries: int = 24  # subsets that are drawn for a question
    flips: int = 32  # changes to the best of them that are tried


class Told(NamedTuple):
    """The answers of a round, and for each window what they settle."""

    question: Array  # the number of its question, or -1
    fits: Array  # for each question, whether its total may lie below, be noisy, or lie above
    dropped: Array  # how many hypotheses were ruled out
    many: Array  # how many variables are settled, or -1 where nothing explains the answer
    node: Array  # which nodes they are
    value: Array  # and their values

    @staticmethod
    def of(asked: Array, fits: Array, windows: int) -> Told:
        """Return answers to what these windows asked, in this order."""
        question = np.full(windows, -1, np.int64)
        question[asked] = np.arange(len(asked))
        dropped, many = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
        node, value = (np.zeros((windows, SLOTS), np.int64) for _ in range(2))
        return Told(question, fits, dropped, many, node, value)


class Listed(NamedTuple):
    """Hypotheses of one window by which subsets are compared: all of them, or a sample."""

    state: Array
    weight: Array
    size: int


class Desk(NamedTuple):
    """Room in which one window after the other is worked on."""

    weight: Array  # of all hypotheses
    some: Array  # a sample of them
    even: Array  # and its weights
    sums: Array  # what each total weighs
    order: Array  # in which variables are tried


class Subset(NamedTuple):
    """Variables to ask about together."""

    bits: Array  # that they own
    base: Any
    boxes: Any
    members: Array  # a bit for each


class Choice(NamedTuple):
    """A question: how many bits its answer tells, its threshold, and what it is about."""

    score: float
    threshold: Any
    subset: Subset
