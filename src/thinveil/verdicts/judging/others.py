"""What is known of somebody from everybody else's records, without asking anything.

The leave-one-out baseline of attribute inference, and predicate singling out.

Whoever has all other records learns what holds of people in general: that a ward goes with a
diagnosis, a salary with a job. Naming a value from that takes nothing from the person it belongs
to, and an attack deserves no credit for it. So for each person the row of that person is left out
of every count. There are three ways to guess: the most common value; the most common one among
those who agree in up to three attributes, and fewer where nobody else does; naive Bayes with the
smoothing of Krichevsky and Trofimov (1981). Which way, and which attributes, is chosen on one half
of the people for the other half, so no row has a say in how its own value is guessed. Of more than
64 attributes the 32 are looked at that tell most of the one to be named (filter selection).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes, Flags, Floats
from thinveil.verdicts.judging.nearest import MANY, nearest, numbered, stepped, tree
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
    return Others(rows).named(place, given)


class Others:
    """A table whose columns are named one after the other, by those who know all other rows."""

    def __init__(self, rows: Codes) -> None:
        ids = [numbered(column) for column in rows.T]
        self._whole = _Columns(
            ids,
            # a value that most have for themselves finds nobody else
            [each if each.max(initial=0) < len(rows) / 2 else None for each in ids],
            [stepped(each, _STEPS) if each.max(initial=0) >= _STEPS else None for each in ids],
            [stepped(each, _BINS) for each in ids],
        )
        self._sides = np.arange(len(rows)) % 2
        self._others = [self._whole.only(np.flatnonzero(self._sides != side)) for side in (0, 1)]
        self._near: list[Codes] = []

    def named(self, place: int, given: Sequence[int]) -> Flags:
        """Tell whose value in one column is named by these others."""
        named = np.zeros(len(self._sides), np.bool_)
        done: dict[tuple[_Way, tuple[int, ...]], Flags] = {}
        for side, others in enumerate(self._others):
            near = self._nearest(side, place, given)
            way = _chosen(others.task(place, near))
            if (way, near) not in done:
                done[way, near] = self._whole.task(place, near).named(way)
            mine = self._sides == side
            named[mine] = done[way, near][mine]
        return named

    def _nearest(self, side: int, place: int, given: Sequence[int]) -> tuple[int, ...]:
        """Return the given columns, of many those that tell people of the other half most."""
        if len(given) <= MANY:
            return tuple(given)
        if not self._near:
            self._near = [nearest(others.ids) for others in self._others]
        return tuple(sorted({*given} & {*self._near[side][place].tolist()}))


@dataclass(frozen=True, slots=True)
class _Columns:
    """All columns of some people: as they are, to agree in exactly or in steps, for Bayes."""

    ids: Sequence[Codes]
    exact: Sequence[Codes | None]
    steps: Sequence[Codes | None]
    bins: Sequence[Codes]

    def only(self, people: Codes) -> _Columns:
        """Return the columns of some of the people, spread evenly over them."""
        some = people[:: max(1, -(-len(people) // _CHOOSING))]
        exact, steps = (
            [None if each is None else numbered(each[some]) for each in kind]
            for kind in (self.exact, self.steps)
        )
        ids, bins = ([numbered(each[some]) for each in kind] for kind in (self.ids, self.bins))
        return _Columns(ids, exact, steps, bins)

    def task(self, place: int, given: Sequence[int]) -> _Task:
        """Return what is to be named, and what is known beside it."""
        agree = (kind[column] for kind in (self.exact, self.steps) for column in given)
        known = tuple(each for each in agree if each is not None)
        return _Task(self.ids[place], known, tuple(self.bins[column] for column in given))


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

    @property
    def hopeful(self) -> bool:
        """Whether any value occurs twice: others name no value that none of them has."""
        return bool(self.answer.max(initial=-1) + 1 < len(self.answer))

    def named(self, way: _Way) -> Flags:
        """Tell whose value is named in one of the ways."""
        if not self.hopeful:
            return np.zeros(len(self.answer), np.bool_)
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
    for _ in range(_DEPTH if task.hopeful else 0):
        if not tried:
            break
        deeper = _each(cell, [task.agree[each] for each in tried])
        closer, some = (
            flags.reshape(deeper.shape)
            for flags in _by_agreeing(deeper.ravel(), np.tile(task.answer, len(tried)))
        )
        closer = np.where(some, closer, right)
        scores = np.count_nonzero(closer, axis=1)
        order = np.argsort(-scores, kind="stable").tolist()
        if scores[order[0]] <= np.count_nonzero(right):
            break
        cell, right = numbered(deeper[order[0]]), closer[order[0]]
        agree = (*agree, tried[order[0]])
        tried = sorted(tried[each] for each in order[1 : _BEST + 1])
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
    # whose value others have too, and often enough to be among those that are named
    people = np.flatnonzero((kept >= 0) & (often[answer] - 1 > rest))
    if not len(people):
        return right
    counts = often[shown].astype(np.float64)
    sizes = np.array([int(each.max()) + 1 for each in asked], np.int64)[:, None]
    row = np.array(asked, np.int64).reshape(-1, len(answer)) + np.cumsum(sizes, axis=0) - sizes
    inside = kept >= 0
    pairs = (row[:, inside] * width + kept[inside]).ravel()
    joint = np.bincount(pairs, minlength=int(sizes.sum()) * width).reshape(-1, width)

    def prior(count: Floats) -> Floats:
        total: Floats = np.log(count + _HALF) - np.log(count + _HALF * sizes).sum(axis=0)
        return total

    base, without = prior(counts), prior(np.maximum(counts - 1, 0.0))
    logs = np.log(joint + _HALF)
    step = max(1, _CELLS // (width * max(len(row), 1)))
    for start in range(0, len(people), step):
        who = people[start : start + step]
        value, mine = kept[who], row[:, who]
        scores = base + logs[mine].sum(axis=0)
        own = without[value] + np.log(joint[mine, value] - 1 + _HALF).sum(axis=0)
        scores[np.arange(len(who)), value] = -np.inf
        top = scores.max(axis=1)
        best = (scores >= top[:, None] - _TIE).argmax(axis=1)
        right[who] = (own > top + _TIE) | ((own >= top - _TIE) & (value < best))
    return right


def _both(one: Codes, other: Codes) -> Codes:
    """Number the pairs of two numberings."""
    return numbered(one * (int(other.max(initial=0)) + 1) + other)


def _each(one: Codes, others: Sequence[Codes]) -> Codes:
    """Number the pairs of one numbering with each of others, none with a number of another."""
    size = 1 + max(int(other.max(initial=0)) for other in others)
    stacked = np.stack(others) + size * one
    apart: Codes = stacked + size * (int(one.max(initial=0)) + 1) * np.arange(len(others))[:, None]
    return apart


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
    there, stated = Different.of(actual), Different.of(said).rows
    both = Different.of(np.concatenate([there.rows, stated]))
    alone = (both.often[both.place[: len(there.rows)]] == 2) & (there.often == 1)
    return lone(actual, there.first[alone], len(stated))


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
    ids = [numbered(column) for column in rows.T]
    steps = [stepped(each, _STEPS) for each in ids]
    weight = np.ones(len(rows))
    for column, parent in enumerate(tree(steps)):
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
