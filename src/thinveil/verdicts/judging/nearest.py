"""Columns that tell most of each other.

Mutual information of pairs of columns, and the dependence tree of Chow and Liu (1968). Of very
many columns not all pairs are worth a closer look. Counts of all pairs, each column in a few
steps, are products of matrices; the closer look is at the nearest pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from thinveil.language.numbers.different import placed
from thinveil.language.queries import Codes

MANY: Final = 64
"""Of more columns than this, only the nearest are looked at closely."""
NEAR: Final = 32
"""So many are the nearest, as in `attacker.beliefs.contexts`."""
_PARENTS: Final = 8  # of the nearest, those that may be a parent in a tree
_COARSE: Final = 8  # steps in which pairs are compared first
_LOOKED: Final = 1024  # rows that this first look is at, at most
_BLOCK: Final = 4_000_000  # counts of pairs at a time: 32 MB


def numbered(values: Codes) -> Codes:
    """Number values from 0 on, in their order."""
    return placed(values)[1]


def stepped(ids: Codes, most: int) -> Codes:
    """Return numbered values in at most so many steps that hold about equally many people."""
    often = np.bincount(ids, minlength=1)
    if len(often) <= most:
        return ids
    below = np.cumsum(often) - often
    return numbered(below * most // len(ids))[ids]


def nearest(ids: Sequence[Codes], most: int = NEAR) -> Codes:
    """Return for each of some numbered columns those that tell most of it, a row a column."""
    rows = slice(None, None, -(-len(ids[0]) // _LOOKED))
    steps = np.column_stack([stepped(numbered(each[rows]), _COARSE) for each in ids])
    n, columns = steps.shape
    wide = int(steps.max()) + 1
    hot = np.zeros((n, columns * wide), np.float32)
    hot[np.arange(n)[:, None], steps + wide * np.arange(columns)] = 1
    times = np.arange(n + 1)
    nats = times * np.log(np.maximum(times, 1))
    alone = nats[hot.sum(axis=0).astype(np.int64)].reshape(columns, wide).sum(axis=1)
    free = steps.max(axis=0)
    near = np.empty((columns, min(most, columns - 1)), np.int64)
    block = max(1, _BLOCK // (columns * wide * wide))
    for start in range(0, columns, block):
        some = slice(start, start + block)
        joint = hot[:, start * wide : (start + block) * wide].T @ hot
        both = nats[joint.astype(np.int64)].reshape(-1, wide, columns, wide).sum(axis=(1, 3))
        told = both - alone[some, None] - alone - free[some, None] * free / 2
        told = np.round(told, 6)
        mine = np.arange(len(told))
        told[mine, start + mine] = -np.inf
        near[some] = np.argsort(-told, axis=1, kind="stable")[:, : near.shape[1]]
    return near


def tree(steps: Sequence[Codes]) -> list[int | None]:
    """Return for each column which one it depends on: the tree with most information in it.

    Two columns have as much in common as they show, less what chance shows (Miller, 1955).
    """
    many = len(steps)
    common = np.zeros((many, many))
    for one, others in enumerate(parents(steps)):
        for other in others:
            if not common[one, other]:
                common[one, other] = common[other, one] = _information(steps[one], steps[other])
    found: list[int | None] = [None] * many
    best, source = np.full(many, -np.inf), np.zeros(many, np.int64)
    left = np.arange(many)
    while len(left):
        at = int(np.argmax(best[left]))
        column = int(left[at])
        left = np.delete(left, at)
        if best[column] > 0:
            found[column] = int(source[column])
        closer = common[column] > best
        best, source = np.where(closer, common[column], best), np.where(closer, column, source)
    return found


def parents(ids: Sequence[Codes]) -> Sequence[Sequence[int]]:
    """Return for each of some numbered columns which others it may depend on in a tree."""
    if len(ids) <= MANY:
        return [[other for other in range(len(ids)) if other != one] for one in range(len(ids))]
    found: list[list[int]] = nearest(ids, _PARENTS).tolist()
    return found


def _information(one: Codes, other: Codes) -> float:
    """Return the mutual information of two columns in nats, less its bias."""
    sizes = int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1
    joint = np.bincount(one * sizes[1] + other, minlength=sizes[0] * sizes[1]).reshape(sizes)
    share = joint / max(len(one), 1)
    alone = np.outer(share.sum(axis=1), share.sum(axis=0))
    some = joint > 0
    shown = float((share[some] * np.log(share[some] / alone[some])).sum())
    return shown - (sizes[0] - 1) * (sizes[1] - 1) / (2 * max(len(one), 1))
