"""Searches that carry beliefs from answer to answer and prove what they find, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from thinveil.attacker.beliefs.count_beliefs import CountBeliefs
from thinveil.attacker.beliefs.value_beliefs import Ladders, Start
from thinveil.attacker.evidence.error_budget import Care, undecided
from thinveil.attacker.evidence.likelihood import Laws, cut_up, spread, weighed
from thinveil.attacker.evidence.proofs import Proofs, Speed, Test, at_least, speed
from thinveil.attacker.terms import (
    Axis,
    Values,
    contradiction,
)
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags, Floats

_GUESSING, _COUNTING, _PROVING = 0, 1, 2
_SURE: Final = 0.97  # how likely a guess must be before it is worth a proof
_TWICE: Final = 4  # how much longer the step of a guess is that takes two tests
_MANY: Final = {False: 4, True: 8}  # records that make a group large, by hidden direction
_WIDE: Final = 4  # and how many values it must have room for
_TRIES: Final = 100  # how often one search may begin anew before its target is disbelieved
_DOUBTED: Final = -6.0  # nats at which a proof is given up
_LIKELY: Final = 0.8  # how likely the value of one record, where a failed check is not lost
_ODDS: Final = 10.4  # nats by which it must lead all others in the end, in haste
_HASTY_TRIES: Final = 15  # how often, where what cannot be found may be looked for elsewhere


class Prior(Protocol):
    """What is likely of the values of groups before they are searched. Conforms: `Outlook`."""

    def ladders(self, low: Codes, top: Codes) -> Ladders:
        """Return ladders for values from low to top."""
        ...

    def start(self, group: Codes, low: Codes, top: Codes, records: Codes) -> Start:
        """Return what is believed of the largest value of so many records of groups."""
        ...

    def halves(self, group: Codes, low: Codes, top: Codes) -> tuple[Codes, Floats]:
        """Return where to halve ranges, and the chance of the upper half."""
        ...

    def counts(self, records: Codes, chance: Floats) -> Floats:
        """Return how likely each count from 0 up to so many records is, one row after another."""
        ...

    def learn(self, records: Codes, chance: Floats, count: Codes) -> None:
        """Take in how many records lay in upper halves."""
        ...


class Searches:
    """Searches for all values of groups of records on one axis, side by side.

    Args:
        facts: What is public.
        axis: The attribute, with known limits.
        sizes: How many records each group has, none of them missing a value.
        care: How sure proofs must be.
        found: What is known of each group already; values are added there.
        prior: What is likely beforehand; None where all values are.
        nats: How sure proofs must be where they are not the last word: they take no share of
            the error, and a group that contradicts itself is `lost`. None where they are.
        epsilon: What answers cost, where that is known.
        patience: How many answers a guess gets at a time, compared to what is usual.
    """

    def __init__(
        self,
        facts: PublicFacts,
        axis: Axis,
        sizes: Codes,
        care: Care,
        found: list[Values] | None = None,
        prior: Prior | None = None,
        nats: float | None = None,
        epsilon: float | None = None,
        patience: float = 1.0,
    ) -> None:
        self._care, self._prior, self._hasty = care, prior, nats
        self.lost = np.zeros(len(sizes), np.bool_)
        self._claim, self._n, self._k = facts.claim, facts.records, facts.claim.reach
        lower, upper = axis.limits
        self._many = _MANY[facts.claim.hides_direction]
        groups = len(sizes)
        self.found: list[Values] = [[] for _ in range(groups)] if found is None else found
        self._unknown = sizes.copy()  # records of each group without a value yet
        self.group = np.arange(groups)  # the group that each search belongs to
        self._s = sizes.copy()
        self._low = np.full(groups, lower)
        self._top = np.full(groups, upper + 1)
        self._phase = np.full(groups, _GUESSING)
        self._halving = np.zeros(groups, np.bool_)
        self._value = np.zeros(groups, np.int64)
        self._count = np.zeros(groups, np.int64)
        self._doubted = np.full(groups, -1)  # the count that failed to be proved last
        self._nats = np.zeros(groups)
        self._tries = np.zeros(groups, np.int64)  # beginnings since something was proved last
        self._share = np.zeros(groups)  # how likely the value guessed was
        self._chance = np.zeros(groups)  # of a record to lie in the upper half
        make = Ladders if prior is None else prior.ladders
        self._ladders = make(self._low, self._top)
        self._row = np.arange(groups)  # the row of each search among the ladders
        self._beliefs = CountBeliefs(facts.claim, facts.records)
        self._proof = Proofs.none()
        self.epsilon = epsilon if self._claim.protected else 1.0  # exact at any
        self._patience = patience
        self._doubt = np.full(groups, _DOUBTED)  # nats at which proofs are given up
        self._end(np.flatnonzero(self._s == 0))
        self._fresh(np.flatnonzero(self._s > 0))
        if prior is not None:
            self._nominate()

    @property
    def running(self) -> bool:
        """Whether any search has something left to find."""
        return bool((self._s > 0).any())

    def is_done(self, group: int) -> bool:
        """Tell whether all values of one group are found."""
        return bool(self._unknown[group] == 0)

    def finished(self) -> _Finished:
        """Return the values of groups that are done, None for the others, when looked at."""
        return _Finished(self)

    @property
    def left(self) -> int:
        """How many records have no value yet."""
        return int(self._unknown.sum())

    # -- what is asked -------------------------------------------------------------------

    def _speed(self, upper: bool) -> Speed:
        if self.epsilon is None:
            return Speed(0.3, Laws.of(self._claim).first)
        return speed(self._claim, self._n, upper, self.epsilon)

    def questions(self) -> tuple[Codes, Codes, Codes, Codes, Codes]:
        """Return owner, low, high, threshold and repeats of everything worth asking now."""
        most = self._care.most_repeats
        step = min(max(self._speed(True).step, self._speed(False).step), most)
        counting = step
        if self._patience != 1.0 and self.epsilon is not None:
            step = max(round(step * self._patience), 1)
            counting = max(step, counting)
        guess = np.flatnonzero((self._phase == _GUESSING) & (self._s > 0))
        self._guess = guess
        self._cut = self._ladders.cuts(self._row[guess]) if len(guess) else guess
        self._tests = at_least(self._claim, self._n, self._s[guess])
        usual, second, twice = self._tests
        self._twice = np.flatnonzero(twice)
        start = self._low[guess]
        if len(self._beliefs.owner):
            self._asked_row, self._asked_b = self._beliefs.ask()
        else:
            self._asked_row = self._asked_b = np.empty(0, np.int64)
        counted = self._beliefs.owner[self._asked_row]
        proof = self._proof
        gap = self._nats[proof.owner] - proof.led
        pace = np.where(
            self._is_upper(proof.test), self._speed(True).proof, self._speed(False).proof
        )
        proving = np.minimum(np.maximum(np.ceil(0.75 * gap / pace), max(2, step // 2)), most)
        owner = np.concatenate([guess, guess[self._twice], counted, proof.owner])
        low = np.concatenate([start, start[self._twice], self._value[counted], proof.low])
        high = np.concatenate(
            [self._cut, self._cut[self._twice], self._end_of(counted), proof.high]
        )
        threshold = np.concatenate(
            [
                usual.threshold,
                second.threshold[self._twice],
                self._asked_b,
                proof.test.threshold,
            ]
        )
        # two tests in one are only as good as the worse of them: chance must not decide which
        guessing = np.where(twice, min(_TWICE * step, most), step)
        repeats = np.concatenate(
            [
                guessing,
                guessing[self._twice],
                np.full(len(counted), counting),
                proving.astype(np.int64),
            ]
        )
        self._step = step
        return owner, low, high, threshold, repeats

    def _end_of(self, searches: Codes) -> Codes:
        """Return where the range ends whose records are counted: after one value, or the top."""
        ends: Codes = np.where(
            self._halving[searches], self._top[searches], self._value[searches] + 1
        )
        return ends

    def _is_upper(self, test: Test) -> Flags:
        """Tell which tests prove the noisier law (or, without noise zones, the upper bit)."""
        return test.threshold >= test.yes if self._k else np.ones(len(test.yes), np.bool_)

    # -- what is learned -----------------------------------------------------------------

    def learn(self, threshold: Codes, answers: Answers, drawn: Codes) -> None:
        """Take in the answers to all questions of a round."""
        self._notice(answers)
        parts = np.cumsum(
            [len(self._guess), len(self._twice), len(self._asked_row), len(self._proof.owner)]
        )
        pieces = cut_up(answers, drawn, parts)
        told = [
            None if answers is None else (threshold[start:stop], answers, drawn[start:stop])
            for answers, start, stop in zip(pieces, [0, *parts[:-1]], parts, strict=True)
        ]
        if told[0] is not None:
            self._learn_cuts(told[0], told[1])
        if told[2] is not None:
            self._beliefs.weigh(self._asked_row, *told[2])
        if told[3] is not None:
            test = self._proof.test
            self._proof.led += self._lead(test, *told[3])
        self._judge_proofs()
        self._nominate()
        if self.lost.any():
            self._let_go()

    def _notice(self, answers: Answers) -> None:
        """Remember what answers cost, and give up where they can tell nothing."""
        epsilon = answers.epsilon
        if epsilon is not None:
            self.epsilon = float(np.median(epsilon))
        needed = max(self._speed(True).step, self._speed(False).step)
        most = self._care.most_repeats
        if needed > most and self._step >= int(most * min(self._patience, 1.0)):
            raise undecided(self._care)

    def _lead(self, test: Test, threshold: Codes, answers: Answers, drawn: Codes) -> Floats:
        """Return by how many nats answers speak for the first count of each test."""
        yes = spread(test.yes, answers, drawn)
        no = spread(test.no, answers, drawn)
        told = weighed(
            self._claim,
            lambda b: np.stack([yes, no], axis=1),
            threshold,
            self._n,
            answers,
            drawn,
        )
        return told[:, 0] - told[:, 1]

    def _learn_cuts(self, told: Any, again: Any) -> None:
        usual, second, _ = self._tests
        lead = self._lead(usual, *told)
        if again is not None:
            some = self._twice
            test = Test(second.threshold[some], second.yes[some], second.no[some])
            lead[some] = np.minimum(lead[some], self._lead(test, *again))
        self._ladders.lean(self._row[self._guess], self._cut, lead)

    def _judge_proofs(self) -> None:
        """Accept what is proved, give up what is doubted."""
        proof = self._proof
        if not len(proof.owner):
            return
        doubted = proof.led <= self._doubt[proof.owner]
        failed = np.unique(proof.owner[doubted])
        if len(failed):
            by_value = np.unique(proof.owner[doubted & proof.of_value])
            if self._prior is not None:  # the guess had much for it: doubt the count first
                again = (self._value[failed] == self._low[failed]) | (self._tries[failed] % 3 == 0)
                by_value = failed[again]
                self._tries[failed] += ~again
            miscounted = np.setdiff1d(failed[~self._halving[failed]], by_value)
            # counted alike twice, it is the guess that is wrong: larger values were missed
            miscounted = miscounted[self._doubted[miscounted] != self._count[miscounted]]
            self._doubted[miscounted] = self._count[miscounted]
            self._recount(miscounted[self._s[miscounted] > 1])
            self._fresh(np.setdiff1d(failed, miscounted[self._s[miscounted] > 1]), failed=True)
        open_tests = proof.led < self._nats[proof.owner]
        stuck = np.isin(proof.owner, failed)
        pending = np.unique(proof.owner[open_tests | stuck])
        done = np.setdiff1d(proof.owner, pending)
        self._proof = proof.take(open_tests & ~stuck)
        if len(done):
            self._accept(done)

    def _accept(self, done: Codes) -> None:
        """Note what is proved: values, or how many records lie in each half."""
        halved = self._halving[done]
        values, halves = done[~halved], done[halved]
        self._tries[done] = 0
        if self._prior is not None and len(halves):
            self._prior.learn(self._s[halves], self._chance[halves], self._count[halves])
        self._note(values, self._value[values], self._count[values])
        self._s[values] -= self._count[values]
        self._top[values] = self._value[values]
        upper = halves[self._count[halves] > 0]
        self._begin_with(upper)
        self._s[halves] -= self._count[halves]
        self._top[halves] = self._value[halves]
        self._end(done[self._s[done] == 0])
        self._fresh(done[self._s[done] > 0])

    def _note(self, searches: Codes, values: Codes, counts: Codes) -> None:
        """Add values to what is found of the groups."""
        groups = self.group[searches]
        for group, value, count in zip(
            groups.tolist(), values.tolist(), counts.tolist(), strict=True
        ):
            self.found[group].append((value, count))
        np.subtract.at(self._unknown, groups, counts)

    def _begin_with(self, halved: Codes) -> None:
        """Add new searches for the upper halves of others."""
        if not len(halved):
            return
        first, many = len(self._s), len(halved)
        low, top = self._value[halved], self._top[halved]
        self.group = np.concatenate([self.group, self.group[halved]])
        self._s = np.concatenate([self._s, self._count[halved]])
        self._low = np.concatenate([self._low, low])
        self._top = np.concatenate([self._top, top])
        self._row = np.concatenate([self._row, np.arange(many) + self._ladders.rows])
        self._ladders.add(low, top)
        for name in (
            "_phase",
            "_value",
            "_count",
            "_doubted",
            "_halving",
            "_nats",
            "_tries",
            "_chance",
            "_doubt",
            "_share",
        ):
            mine = getattr(self, name)
            setattr(self, name, np.concatenate([mine, np.zeros(many, mine.dtype)]))
        self._fresh(np.arange(first, first + many))

    def _fresh(self, searches: Codes, failed: bool = False) -> None:
        """Begin anew: halve a large group, or guess the largest value of a small one.

        What has room for a single value is known. Where a proof failed, its count is doubted.
        """
        self._doubted[searches] = -1
        self._tries[searches] += 1
        over = self._tries[searches] > (_TRIES if self._hasty is None else _HASTY_TRIES)
        if over.any():
            if self._hasty is None:
                raise contradiction()
            self.lost[self.group[searches[over]]] = True
        room = self._top[searches] - self._low[searches]
        known = searches[room <= 1]
        self._note(known, self._low[known], self._s[known])
        self._s[known] = 0
        self._end(known)
        halving = (self._s[searches] >= self._many) & (room >= _WIDE)
        self._halving[searches] = halving
        large = searches[halving]
        if len(large):
            if self._prior is None:
                self._value[large] = (self._low[large] + self._top[large]) // 2
            self._phase[large] = _COUNTING
            doubted = self._count[large] if failed else None
            if self._prior is None or failed:  # where it misled, the prior is not asked again
                self._beliefs.begin(large, self._s[large], True, doubted)
            else:
                self._beliefs.begin(large, self._s[large], prior=self._halves(large))
        rest = searches[~halving & (room > 1)]
        self._phase[rest] = _GUESSING
        if failed and self._prior is not None:
            nats = self._doubt[rest] * np.where(
                self._s[rest] > 1, np.minimum(self._tries[rest], 4), 1
            )
            self._ladders.doubt(self._row[rest], self._value[rest], nats)
            return
        low, top = self._low[rest], self._top[rest]
        start = None
        if self._prior is not None:
            start = self._prior.start(self.group[rest], low, top, self._s[rest])
        self._ladders.begin(self._row[rest], low, top, start)

    def _halves(self, large: Codes) -> Floats:
        """Halve belief instead of ranges; return what is likely of the upper halves."""
        assert self._prior is not None
        self._value[large], self._chance[large] = self._prior.halves(
            self.group[large], self._low[large], self._top[large]
        )
        return self._prior.counts(self._s[large], self._chance[large])

    def _let_go(self) -> None:
        """Stop searching groups that are lost."""
        gone = self.lost[self.group] & (self._s > 0)
        if gone.any():
            self._s[gone] = 0
            self._unknown[self.lost] = 0
            self._beliefs.keep(~gone[self._beliefs.owner])
            self._proof = self._proof.take(~gone[self._proof.owner])
            self._end(np.flatnonzero(gone))

    def _end(self, searches: Codes) -> None:
        """Let go of the ladders of searches that are done, now and then."""
        running = np.flatnonzero(self._s > 0)
        if len(running) < 0.7 * np.count_nonzero(self._row >= 0) and len(searches):
            self._ladders.keep(self._row[running])
            self._row[:] = -1
            self._row[running] = np.arange(len(running))

    def _recount(self, searches: Codes) -> None:
        """Begin to count how many records have the value guessed."""
        if len(searches):
            self._phase[searches] = _COUNTING
            doubted = None if self._prior is None else self._doubted[searches]
            self._beliefs.begin(searches, self._s[searches], doubted=doubted)

    def _nominate(self) -> None:
        """Move guesses that are likely enough on to counting, and counts on to proofs."""
        guess = np.flatnonzero((self._phase == _GUESSING) & (self._s > 0))
        sure = guess[:0]
        if len(guess):
            value, share = self._ladders.best(self._row[guess])
            enough = np.full(len(guess), _SURE)
            if self._hasty is not None:
                enough[self._s[guess] == 1] = _LIKELY
            likely = share >= enough
            sure = guess[likely]
            self._value[sure] = value[likely]
            self._share[sure] = share[likely]
            lowest = self._value[sure] == self._low[sure]
            alone = (self._s[sure] == 1) | lowest
            self._recount(sure[~alone])
            sure = sure[alone]
            self._count[sure] = self._s[sure]
        if len(self._beliefs.owner):
            count, share = self._beliefs.best()
            settled = share >= _SURE
            owner = self._beliefs.owner[settled]
            self._count[owner] = count[settled]
            self._beliefs.keep(~settled)
            wrong = (self._count[owner] == 0) & ~self._halving[owner]
            self._fresh(owner[wrong], failed=self._prior is not None)
            sure = np.concatenate([sure, owner[~wrong]])
        if len(sure):
            self._prove(sure)

    def _prove(self, searches: Codes) -> None:
        """Begin to prove, with fresh answers, that as many records have the value as found."""
        self._phase[searches] = _PROVING
        if self._hasty is None:
            self._nats[searches] = self._care.nats(len(searches))
            self._doubt[searches] = _DOUBTED
        else:
            one = self._s[searches] == 1
            share = np.minimum(np.maximum(self._share[searches], 1e-9), 1 - 1e-9)
            odds = np.log(share / (1 - share))
            nats = np.where(one, np.maximum(_ODDS - odds, 1.0), self._hasty)
            self._nats[searches] = nats
            self._doubt[searches] = np.where(one, -1.0 - np.maximum(odds, 0.0), _DOUBTED)
        value, count = self._value[searches], self._count[searches]
        some = count > 0
        mine = searches[some]
        here = Proofs.begun(
            self._claim, self._n, mine, value[some], self._end_of(mine), count[some], True
        )
        rest = self._s[searches] - count
        some = rest > 0
        mine = searches[some]
        below = Proofs.begun(
            self._claim, self._n, mine, self._low[mine], value[some], rest[some], False
        )
        self._proof = Proofs.joined([self._proof, *here, *below])


class _Finished(Sequence[Any]):
    """A look at what is finished, made when somebody looks."""

    def __init__(self, searches: Searches) -> None:
        self._searches = searches

    def __len__(self) -> int:
        return len(self._searches.found)

    def __getitem__(self, place: Any) -> Any:
        return self._searches.found[place] if self._searches.is_done(place) else None
