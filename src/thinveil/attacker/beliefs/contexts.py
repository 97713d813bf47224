"""Predicting an attribute of records from those that are known already.

Each known attribute (and some pairs of them) is a *context*: a table of how often each value
was found beside it. A prediction multiplies what the contexts say, each raised to a weight of
its own, with how much of each value is left in the whole table. Weights are learned from
predictions of records that were found afterwards, by Newton steps that remember earlier ones.

Of very many attributes those are contexts that told most of a part of the records, each one left
out in turn (filter selection); the weights are learned from the other part.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import Triple, joined, rounded
from thinveil.attacker.fixed_order import shares, shuffled
from thinveil.language.queries import Codes, Floats

_STRENGTH: Final = 1.0  # records added to both what was found and what was to be expected
_START: Final = 0.1  # the weight of a context before anything is learned
_HOLD: Final = 12.0  # how firmly the first weights are held
_FADING: Final = 0.97  # how fast earlier records are forgotten by the weights
_SAMPLE: Final = 1500
_STEPS: Final = 5
_RANGE: Final = (-0.2, 1.2)
_WIDE: Final = 24  # cells from which on it may help to smooth tables
_LEARN: Final = 0.6  # the share of records whose tables are tried on the others
_ENOUGH: Final = 1000  # records before pairs are looked for
_PAIR_LEVELS: Final = 1024
_LEAST: Final = 1e-6  # no value is believed to be rarer than this among those that are left
_CHUNK: Final = 4096
_MANY: Final = 64  # of more attributes, the best are contexts,
_BEST: Final = 32  # so many at most,
_LOOKED: Final = 1024  # by so many findings at most


class Mixer:
    """Predicts in which cell of one attribute the records of each group lie.

    A context is a known attribute: for each group, the number of its value. So many records of
    the table lie in each cell.
    """

    pairs = 8  # how many pairs of attributes are contexts, at most

    def __init__(self, contexts: list[Codes], cells: Codes) -> None:
        self._cells = len(cells)
        self._share = (cells / cells.sum()).astype(np.float32)
        self._left = cells.astype(np.float64)
        self._all = contexts
        self.chosen = list(range(len(contexts))) if len(contexts) <= _MANY else []
        self._contexts = [contexts[each] for each in self.chosen]
        self._tables = [self._counted(each, joined([])) for each in self._contexts]
        self._logs = [np.zeros_like(table) for table in self._tables]
        self._weight = np.full(len(self._contexts), _START)
        self._hessian = np.eye(len(self._contexts)) * _HOLD
        self._waiting: list[Triple] = []
        self._found: list[Triple] = []
        self.records = 0  # how many the predictions rest on
        self._next_fit = 1
        self._smooth = [False] * len(self._contexts)
        self._samples = 0  # how many samples were taken
        self._base = self._log_left()

    def _counted(self, context: Codes, found: Triple) -> Floats:
        """Return how often each cell was found beside each value of a context."""
        groups, cells, counts = found
        levels = int(context.max(initial=0)) + 1
        flat = np.bincount(context[groups] * self._cells + cells, counts, levels * self._cells)
        table: Floats = flat.reshape(levels, self._cells).astype(np.float32)
        return table

    @property
    def waiting(self) -> int:
        """How many records were found since the last refresh."""
        return sum(int(counts.sum()) for _, _, counts in self._waiting)

    def _log_left(self) -> Floats:
        left = np.maximum(self._left, 0.0)
        total = max(float(left.sum()), 1.0)
        logs: Floats = np.log(np.where(left > 0, np.maximum(left / total, _LEAST), 1e-30))
        return logs.astype(np.float32)

    def predict(self, groups: Codes) -> Floats:
        """Return for each group how likely each cell is, a row a group."""
        rows = [
            self._mixed(groups[start : start + _CHUNK]) for start in range(0, len(groups), _CHUNK)
        ]
        return np.concatenate(rows) if rows else np.empty((0, self._cells), np.float32)

    def _mixed(self, groups: Codes) -> Floats:
        logit = np.repeat(self._base[None, :], len(groups), axis=0)
        for weight, context, logs in zip(self._weight, self._contexts, self._logs, strict=True):
            if abs(weight) > 1e-3:
                logit += (np.float32(weight) * logs)[context[groups]]
        logit -= logit.max(axis=1, keepdims=True)
        chance = np.exp(logit, dtype=np.float64)
        chance /= chance.sum(axis=1, keepdims=True)
        return chance.astype(np.float32)

    def learn(self, groups: Codes, cells: Codes, counts: Codes) -> None:
        """Note records that were found; `refresh` takes them in."""
        self._waiting.append((groups, cells, counts))

    def refresh(self) -> None:
        """Take in what was found since: weights first, then tables."""
        if not self._waiting:
            return
        groups, cells, counts = found = joined(self._waiting)
        self._waiting = []
        self._found.append(found)
        self.records += int(counts.sum())
        np.subtract.at(self._left, cells, counts)
        if self._all and self.records >= self._next_fit:
            self._fit()
            self._next_fit = 2 * self.records
        elif self._contexts:
            self._hessian *= _FADING
            self._hessian[np.diag_indices(len(self._weight))] += (1 - _FADING) * _HOLD
            self._weigh(groups, cells, counts, 1)
            for context, table in zip(self._contexts, self._tables, strict=True):
                table += self._counted(context, found)
        self._logs = self._ratios()
        self._base = self._log_left()

    def _ratios(self) -> list[Floats]:
        return [self._ratio(*each) for each in zip(self._tables, self._smooth, strict=True)]

    def _ratio(self, table: Floats, smooth: bool) -> Floats:
        """Return by how much each context changes the chance of each cell, as logarithms.

        Counts are compared with what they would be if the context did not matter.
        """
        expected = table.sum(axis=1, keepdims=True) * self._share
        if smooth:
            table, expected = _smoothed(table), _smoothed(expected)
        ratio: Floats = np.log((table + _STRENGTH) / (expected + _STRENGTH), dtype=np.float64)
        return ratio.astype(np.float32)

    def _weigh(self, groups: Codes, cells: Codes, counts: Codes, steps: int) -> None:
        """Improve the weights by how well they would have predicted these records."""
        most = _SAMPLE if steps == _STEPS else _SAMPLE // 3
        if len(groups) > most:
            self._samples += 1
            some = shuffled(len(groups), self._samples)[:most]
            groups, cells, counts = groups[some], cells[some], counts[some]
        many = np.sqrt(counts.astype(np.float64))  # records of a group resemble each other
        features = np.empty((len(self._contexts), len(groups), self._logs[0].shape[1]))
        for place, (context, logs) in enumerate(zip(self._contexts, self._logs, strict=True)):
            features[place] = logs[context[groups]]
        rows = np.arange(len(groups))
        seen = features[:, rows, cells]
        start, hessian = self._weight.copy(), self._hessian
        weight = start.copy()
        room = np.empty_like(features)  # large: made once, not in each step
        scaled = room.reshape(len(features), -1)
        for _ in range(steps):
            chance = np.tensordot(weight, features, 1)
            chance += self._base
            chance -= chance.max(axis=1, keepdims=True)
            np.exp(chance, out=chance)
            chance /= chance.sum(axis=1, keepdims=True)
            expected = np.einsum("qnb,nb->qn", features, chance)
            gradient = ((seen - expected) * many).sum(axis=1) - hessian @ (weight - start)
            np.multiply(features, np.sqrt(chance * many[:, None]), out=room)
            curvature = scaled @ scaled.T - (expected * many) @ expected.T
            step = np.linalg.solve(curvature + hessian, gradient)
            weight = np.clip(weight + np.clip(step, -0.5, 0.5), *_RANGE)
        self._weight = rounded(weight)
        self._hessian = rounded(hessian + curvature)

    def _fit(self) -> None:
        """Choose pairs and learn all weights anew, from records that the tables do not know."""
        groups, cells, counts = found = joined(self._found)
        self._samples += 1
        learn = shares(len(groups), self._samples) < _LEARN
        if learn.any() and not learn.all():
            learned = groups[learn], cells[learn], counts[learn]
            rest = groups[~learn], cells[~learn], counts[~learn]
            self._choose(learned, rest)
            self._tables = [self._counted(each, learned) for each in self._contexts]
            self._logs = self._ratios()
            if self._contexts:
                self._weigh(*rest, _STEPS)
        self._tables = [self._counted(each, found) for each in self._contexts]

    def _choose(self, learned: Triple, rest: Triple) -> None:
        """Choose what predicted best what was found: smooth tables or plain ones, and pairs."""
        if len(self._all) > _MANY:
            self._filter(*learned)
        keep = len(self.chosen)
        self._contexts = [self._all[each] for each in self.chosen]
        tried = [self._trial(each, learned, rest) for each in self._contexts]
        self._smooth = [smooth for _, smooth in tried]
        best: list[tuple[float, bool, int, int]] = []
        if keep > 1 and self.pairs and self.records >= _ENOUGH:
            for a, b in combinations(range(keep), 2):
                if (pair := self._pair(a, b)) is not None:
                    cost, smooth = self._trial(pair, learned, rest)
                    best.append((min(tried[a][0], tried[b][0]) - cost, smooth, a, b))
        for gain, smooth, a, b in sorted(best, reverse=True)[: self.pairs]:
            if gain > 0 and (pair := self._pair(a, b)) is not None:
                self._contexts.append(pair)
                self._smooth.append(smooth)
        more = len(self._contexts) - keep
        if more or len(self._weight) > keep:
            self._weight = np.concatenate([self._weight[:keep], np.zeros(more)])
            self._hessian = np.eye(len(self._weight)) * _HOLD

    def _filter(self, groups: Codes, cells: Codes, counts: Codes) -> None:
        """Take the attributes as contexts that predict each of some findings by the others."""
        if len(groups) > _LOOKED:
            some = shuffled(len(groups), self._samples)[:_LOOKED]
            groups, cells, counts = groups[some], cells[some], counts[some]
        level = np.stack([each[groups] for each in self._all])
        row = level + (int(level.max()) + 1) * np.arange(len(level))[:, None]
        at, flat = row * self._cells + cells, np.tile(counts, len(level))
        both = np.bincount(at.ravel(), flat)[at] - counts
        expected = (np.bincount(row.ravel(), flat)[row] - counts) * self._share[cells]
        told = (np.log((both + _STRENGTH) / (expected + _STRENGTH)) * counts).sum(axis=1)
        told = rounded(told)
        best = np.argsort(-told, kind="stable")[:_BEST]
        before = dict(zip(self.chosen, self._weight.tolist(), strict=False))
        self.chosen = np.sort(best[told[best] > 0]).tolist()
        self._weight = np.array([before.get(each, _START) for each in self.chosen])
        self._hessian = np.eye(len(self.chosen)) * _HOLD

    def _pair(self, a: int, b: int) -> Codes | None:
        """Return two contexts as one; None where that would be too large."""
        first, second = self._contexts[a], self._contexts[b]
        levels = int(second.max()) + 1
        return first * levels + second if (first.max() + 1) * levels <= _PAIR_LEVELS else None

    def _trial(self, context: Codes, learned: Triple, rest: Triple) -> tuple[float, bool]:
        """Return what the rest costs if one context alone predicts it, and whether smoothed."""
        groups, cells, counts = rest
        table, mine = self._counted(context, learned), context[groups]
        told = [
            -float((self._ratio(table, smooth)[mine, cells] * counts).sum())
            for smooth in ((False, True) if self._cells >= _WIDE else (False,))
        ]
        told = rounded(np.array(told)).tolist()
        return min(told) / max(int(counts.sum()), 1), told[-1] < told[0]


def _smoothed(table: Floats) -> Floats:
    """Spread what was counted over neighbouring cells, so that sparse tables tell more."""
    cells = table.shape[1]
    wide = np.zeros((len(table), cells + 4), table.dtype)
    wide[:, 2:-2] = table
    near = wide[:, 1 : cells + 1] + wide[:, 3 : cells + 3]
    smoothed: Floats = (3 * table + 2 * near + wide[:, :cells] + wide[:, 4:]) / 9
    return smoothed
