"""What is known of somebody from everybody else's records, without asking anything.

The leave-one-out baseline of attribute inference, and predicate singling out.

Whoever has all other records learns what holds of people in general: that a ward goes with a
diagnosis, a salary with a job. Naming a value from that takes nothing from the person it belongs
to, and an attack deserves no credit for it. So for each person the row of that person is left out
of every count. There are three ways to guess: the most common value; the most common one among
those who agree in up to three attributes, and fewer where nobody else does; naive Bayes with the
smoothing of Krichevsky and Trofimov (1981). Which way, and which attributes, is chosen on one half
of the people for the other half, so no row has a say in how its own value is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from thinveil.language.queries import Codes, Flags, Floats
from thinveil.verdicts.phrases import many, percent

_HALF: Final = 0.5  # what Krichevsky and Trofimov add to each count
_BINS: Final = 64  # what naive Bayes reads: steps of equally many people
_STEPS: Final = 16  # what other ways read, beside exact values
_DEPTH: Final = 3  # in how many attributes others agree, at most
_BEST: Final = 8  # how many attributes are tried for the second and the third
_VALUES: Final = 512  # naive Bayes names one of so many values, the most common ones
_WORK: Final = 400_000_000  # and of fewer where people, columns and values would be more: a second
_CHOOSING: Final = 4096  # of how many people of a half a way is chosen on
_CELLS: Final = 2_000_000  # how many scores are held at a time
_TIE: Final = 1e-9  # far below what one row more or less does to a score, far above rounding


def named_by_others(rows: Codes, place: int, given: Sequence[int]) -> Flags:
    """Tell whose value in one column somebody names who knows all other rows.

    Of the person itself only the given columns are known.
    """
    answer, asked = _ids(rows[:, place]), [_ids(rows[:, column]) for column in given]
    # a value that most have for themselves finds nobody else
    exact = [each for each in asked if each.max(initial=0) < len(rows) / 2]
    steps = [_steps(each, _STEPS) for each in asked if each.max(initial=0) >= _STEPS]
    task = _Task(answer, (*exact, *steps), tuple(_steps(each, _BINS) for each in asked))
    named = np.zeros(len(rows), np.bool_)
    sides = np.arange(len(rows)) % 2
    done: dict[_Way, Flags] = {}
    for side in (0, 1):
        way = _chosen(task.only(np.flatnonzero(sides != side)))
        if way not in done:
            done[way] = task.named(way)
        named[sides == side] = done[way][sides == side]
    return named


class _Way(NamedTuple):
    """How to guess: by naive Bayes, or by those who agree in some attributes, in this order."""

    bayes: bool
    agree: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Task:
    """Values to be named, and what is known beside them: to agree in, and for naive Bayes."""

    answer: Codes
    agree: tuple[Codes, ...]
    bins: tuple[Codes, ...]

    def only(self, people: Codes) -> _Task:
        """Return the task on some of the people, spread evenly over them."""
        some = people[:: max(1, -(-len(people) // _CHOOSING))]
        parts = (tuple(_ids(each[some]) for each in kind) for kind in (self.agree, self.bins))
        return _Task(_ids(self.answer[some]), *parts)

    def named(self, way: _Way) -> Flags:
        """Tell whose value is named in one of the ways."""
        if way.bayes:
            return _by_bayes(self.answer, self.bins)
        cell = np.zeros(len(self.answer), np.int64)
        right, _ = _by_agreeing(cell, self.answer)
        for each in way.agree:
            cell = _both(cell, self.agree[each])
            closer, some = _by_agreeing(cell, self.answer)
            right = np.where(some, closer, right)
        return right


def _chosen(task: _Task) -> _Way:
    """Return the way that names most values among some people, the simplest of equals."""
    cell = np.zeros(len(task.answer), np.int64)
    right, _ = _by_agreeing(cell, task.answer)
    agree: tuple[int, ...] = ()
    tried = list(range(len(task.agree)))
    for _ in range(_DEPTH):
        scores = []
        for each in tried:
            deeper = _both(cell, task.agree[each])
            closer, some = _by_agreeing(deeper, task.answer)
            closer = np.where(some, closer, right)
            scores.append((int(np.count_nonzero(closer)), -each, deeper, closer))
        scores.sort(key=lambda score: score[:2], reverse=True)
        if not scores or scores[0][0] <= np.count_nonzero(right):
            break
        _, best, cell, right = scores[0]
        agree = (*agree, -best)
        tried = [-each for _, each, *_ in scores[1 : _BEST + 1]]
    way = _Way(bayes=True)
    better = np.count_nonzero(task.named(way)) > np.count_nonzero(right)
    return way if better else _Way(bayes=False, agree=agree)


def _by_agreeing(cell: Codes, answer: Codes) -> tuple[Flags, Flags]:
    """Tell whose value is the most common one of all others in the same cell, and who has others.

    Of values that are equally common the smallest is named.
    """
    if not len(answer):
        return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    values = int(answer.max()) + 1
    keys, counts = np.unique(cell * values + answer, return_counts=True)
    order = np.lexsort((keys, -counts, keys // values))
    cells, counts, kinds = (keys // values)[order], counts[order], (keys % values)[order]
    start = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    end = np.append(start[1:], len(cells))
    next_one = np.minimum(start + 1, len(cells) - 1)
    two = end - start > 1
    second = np.where(two, counts[next_one], 0)
    most, usual = counts[start] - 1, kinds[start]  # of the others, for whoever has that value
    stays = (most > second) | ((most == second) & two & (usual < kinds[next_one]))
    mine = np.searchsorted(cells[start], cell)
    several = np.add.reduceat(counts, start) > 1
    return (answer == usual[mine]) & stays[mine], several[mine]


def _by_bayes(answer: Codes, asked: Sequence[Codes]) -> Flags:
    """Tell whose value naive Bayes names from all other rows."""
    right = np.zeros(len(answer), np.bool_)
    if not len(answer):
        return right
    often = np.bincount(answer)
    most = min(_VALUES, max(2, _WORK // (len(answer) * max(len(asked), 1))))
    shown = np.sort(np.argsort(-often, kind="stable")[:most])
    rest = np.delete(often, shown).max(initial=0)
    place = np.full(len(often), -1)
    place[shown] = np.arange(len(shown))
    kept, width = place[answer], len(shown)
    counts = often[shown].astype(np.float64)
    tables = []
    for each in asked:
        size = int(each.max()) + 1
        inside = kept >= 0
        joint = np.bincount(each[inside] * width + kept[inside], minlength=size * width)
        tables.append((each, size, joint.reshape(size, width)))

    def prior(count: Floats) -> Floats:
        total = np.log(count + _HALF)
        for _, size, _ in tables:
            total = total - np.log(count + _HALF * size)
        return total

    base, without = prior(counts), prior(np.maximum(counts - 1, 0.0))
    logs = [np.log(joint + _HALF) for *_, joint in tables]
    step = max(1, _CELLS // width)
    for start in range(0, len(answer), step):
        rows = slice(start, start + step)
        scores = np.repeat(base[None], len(answer[rows]), axis=0)
        for (each, *_), log in zip(tables, logs, strict=True):
            scores += log[each[rows]]
        # whose value others have too, and often enough to be among those that are named
        who = np.flatnonzero((kept[rows] >= 0) & (often[answer[rows]] - 1 > rest))
        value = kept[rows][who]
        own = without[value]
        for each, _, joint in tables:
            own = own + np.log(joint[each[rows][who], value] - 1 + _HALF)
        scores[who, value] = -np.inf
        scores = scores[who]
        top = scores.max(axis=1)
        best = (scores >= top[:, None] - _TIE).argmax(axis=1)
        right[start + who] = (own > top + _TIE) | ((own >= top - _TIE) & (value < best))
    return right


def _ids(values: Codes) -> Codes:
    """Number values from 0 on, in their order."""
    _, place = np.unique(values, return_inverse=True)
    return place


def _steps(ids: Codes, most: int) -> Codes:
    """Return numbered values in at most so many steps that hold about equally many people."""
    often = np.bincount(ids, minlength=1)
    if len(often) <= most:
        return ids
    below = np.cumsum(often) - often
    return _ids(below * most // len(ids))[ids]


def _both(one: Codes, other: Codes) -> Codes:
    """Number the pairs of two numberings."""
    return _ids(one * (int(other.max(initial=0)) + 1) + other)


# Singling out

_RARE: Final = 1000
"""A predicate is rare where one record in so many tables of this size is expected to meet it."""


@dataclass(frozen=True, slots=True)
class SinglingOut:
    """Who is singled out by what an attack said, beside chance.

    Predicate singling out (Cohen and Nissim, "Towards formalizing the GDPR's notion of singling
    out", 2020). Each different record that was rebuilt is a predicate, and so is what is known of
    each person who was said to be alone. It isolates where exactly one record of the table meets
    it. It is rare where a new record meets it with a chance of at most `weight_at_most`, as
    estimated from all other records (`weights`).

    Whoever knows only how records are distributed, and not the table, isolates by a predicate of
    weight w with the chance n w (1 - w)^(n - 1): at most `by_chance`, about 1/e, at w = 1/n.
    """

    DERIVED: ClassVar = ("weight_at_most", "share", "by_chance", "by_chance_if_rare", "sentence")

    records: int
    predicates: int
    isolating: int
    rare: int
    people: bool = False

    @property
    def weight_at_most(self) -> float:
        """How likely a new record meets a rare predicate, at most."""
        return 1 / (_RARE * self.records)

    @property
    def share(self) -> float:
        """The share of the predicates that isolate and are rare."""
        return self.rare / max(self.predicates, 1)

    @property
    def by_chance(self) -> float:
        """The largest chance to isolate without having seen the table."""
        return self._chance(1 / self.records)

    @property
    def by_chance_if_rare(self) -> float:
        """The largest chance to isolate by a rare predicate without having seen the table."""
        return self._chance(self.weight_at_most)

    def _chance(self, weight: float) -> float:
        return float(self.records * weight * (1 - weight) ** (self.records - 1))

    def brief(self) -> str:
        """Say how many are singled out, in a few words."""
        return (
            f"{self.rare:,} of {self.predicates:,} by something rare; by chance at best "
            f"{percent(self.by_chance)}, by something so rare {percent(self.by_chance_if_rare)}"
        )

    def sentence(self) -> str:
        """Say how many are singled out, beside chance."""
        are = "is" if self.isolating == 1 else "are"
        if self.people:
            said = (
                f"Of {many(self.predicates, 'person', 'people')} said to be alone, "
                f"{self.isolating:,} {are}. What is known of {self.rare:,} of these is rare"
            )
        else:
            said = (
                f"Of {many(self.predicates, 'different record')} that the attack stated, "
                f"{self.isolating:,} {are} in the table exactly once. Rare "
                f"{'is' if self.rare == 1 else 'are'} {self.rare:,} of these"
            )
        return (
            f"{said}: another record is estimated to be like it with a chance of at most "
            f"{self.weight_at_most:.2g}, in one of {_RARE:,} tables of this size. Whoever has not "
            f"seen the table singles one record out with a chance of {percent(self.by_chance)} at "
            f"best (about 1/e), and by something so rare with {percent(self.by_chance_if_rare)}."
        )


def singled_out(said: Codes, actual: Codes) -> SinglingOut:
    """Return how many different records that were rebuilt single somebody out."""
    rows, first, often = np.unique(actual, axis=0, return_index=True, return_counts=True)
    stated = np.unique(said, axis=0)
    _, place, met = np.unique(
        np.concatenate([rows, stated]), axis=0, return_inverse=True, return_counts=True
    )
    alone = (met[place.reshape(-1)[: len(rows)]] == 2) & (often == 1)
    return lone(actual, first[alone], len(stated))


def lone(actual: Codes, rows: Codes, said: int, people: bool = False) -> SinglingOut:
    """Return how rare some rows are that are alone in some columns, of so many said to be."""
    rare = weights(actual)[rows] * len(actual) <= 1 / _RARE
    return SinglingOut(len(actual), said, len(rows), int(np.count_nonzero(rare)), people)


def weights(rows: Codes) -> Floats:
    """Return how likely each row is to turn up again, by all other rows: an estimate.

    A tree of columns (Chow and Liu, "Approximating discrete probability distributions with
    dependence trees", 1968): each column depends on at most one other, read in 16 steps. Each
    share is that among the other rows, smoothed. The tree itself is chosen on all rows.
    """
    ids = [_ids(column) for column in rows.T]
    steps = [_steps(each, _STEPS) for each in ids]
    weight = np.ones(len(rows))
    for column, parent in enumerate(_tree(steps)):
        mine = ids[column]
        often = np.bincount(mine)
        total = max(len(rows) - 1, 0) + _HALF * len(often)
        share = ((often - 1 + _HALF) / total)[mine]
        if parent is not None:
            beside = steps[parent]
            _, pair, both = np.unique(
                beside * len(often) + mine, return_inverse=True, return_counts=True
            )
            # N - 1 others in the step, and one more that is spread like all others
            share = (both[pair] - 1 + share) / np.bincount(beside)[beside]
        weight = weight * share
    return weight


def _tree(steps: Sequence[Codes]) -> list[int | None]:
    """Return for each column which one it depends on: the tree with most information in it.

    Two columns have as much in common as they show, less what chance shows (Miller, 1955).
    """
    common = np.zeros((len(steps), len(steps)))
    for one, left in enumerate(steps):
        for other in range(one):
            common[one, other] = common[other, one] = _information(left, steps[other])
    parents: list[int | None] = [None] * len(steps)
    best, source = np.full(len(steps), -np.inf), np.zeros(len(steps), np.int64)
    left_over = set(range(len(steps)))
    while left_over:
        column = max(left_over, key=lambda each: (best[each], -each))
        left_over.discard(column)
        if best[column] > 0:
            parents[column] = int(source[column])
        closer = common[column] > best
        best, source = np.where(closer, common[column], best), np.where(closer, column, source)
    return parents


def _information(one: Codes, other: Codes) -> float:
    """Return the mutual information of two columns in nats, less its bias."""
    sizes = int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1
    joint = np.bincount(one * sizes[1] + other, minlength=sizes[0] * sizes[1]).reshape(sizes)
    share = joint / max(len(one), 1)
    alone = np.outer(share.sum(axis=1), share.sum(axis=0))
    some = joint > 0
    shown = float((share[some] * np.log(share[some] / alone[some])).sum())
    return shown - (sizes[0] - 1) * (sizes[1] - 1) / (2 * max(len(one), 1))
