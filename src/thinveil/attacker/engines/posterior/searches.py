"""Searches for the values of groups, side by side: guess, count, prove, and begin anew."""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.count_beliefs import CountBeliefs
from thinveil.attacker.beliefs.count_parts import MOST, LargeBeliefs, is_large
from thinveil.attacker.engines.posterior.state import (
    COUNTING,
    GUESSING,
    PROVING,
    Finds,
    Guesses,
    Manner,
    Questions,
    State,
)
from thinveil.attacker.evidence.error_budget import Care, undecided
from thinveil.attacker.evidence.likelihood import cut_up
from thinveil.attacker.evidence.proofs import Paces, Proofs
from thinveil.attacker.terms import Axis, Values, contradiction
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes

_SURE: Final = 0.97  # how likely a guess must be before it is worth a proof
_MANY: Final = {False: 4, True: 8}  # records that make a group large, by hidden direction
_WIDE: Final = 4  # and how many values it must have room for
_TRIES: Final = 100  # how often one search may begin anew before its target is disbelieved
_DOUBTED: Final = -6.0  # nats at which a proof is given up
_SPARE: Final = 4096  # windows of a round, in a large table, up to which more answers matter little
_BOOST: Final = 4  # times as many as usual
_LIKELY: Final = 0.8  # how likely the value of one record, where a failed check is not lost
_ODDS: Final = 10.4  # nats by which it must lead all others in the end, in haste
_HASTY_TRIES: Final = 15  # how often, where what cannot be found may be looked for elsewhere


class Searches:
    """Searches for all values of groups of records on one axis with known limits, side by side.

    No record misses a value. What is found already, if anything, is added to.
    """

    def __init__(
        self,
        facts: PublicFacts,
        axis: Axis,
        sizes: Codes,
        care: Care,
        manner: Manner | None = None,
        found: list[Values] | None = None,
    ) -> None:
        manner = manner or Manner()
        self._facts, self._care = facts, care
        self._prior, self._hasty, self._patience = manner.prior, manner.nats, manner.patience
        self._singly = manner.singly
        self.epsilon = manner.epsilon if facts.claim.protected else 1.0  # exact at any
        groups = len(sizes)
        self.finds = Finds(sizes, found)
        self.lost = np.zeros(groups, np.bool_)
        low, top = np.full(groups, axis.limits[0]), np.full(groups, axis.limits[1] + 1)
        self.state = State.zeros(
            groups, group=np.arange(groups), left=sizes.copy(), low=low, top=top
        )
        self.state.give_up[:] = _DOUBTED
        self._guesses = Guesses(facts, low, top, manner.prior)
        beliefs = LargeBeliefs if is_large(facts) else CountBeliefs
        self._scans = is_large(facts) and facts.claim.hides_direction
        self._beliefs = beliefs(facts.claim, facts.records)
        self._proof = Proofs.zeros()
        self._end(np.flatnonzero(sizes == 0))
        self._fresh(np.flatnonzero(sizes > 0))
        if manner.prior is not None:
            self._nominate()

    @property
    def running(self) -> bool:
        """Whether any search has something left to find."""
        return bool((self.state.left > 0).any())

    # -- what is asked -------------------------------------------------------------------

    def questions(self) -> Questions:
        """Return everything worth asking now."""
        state, proof, most = self.state, self._proof, self._care.most_repeats
        paces = Paces(self._facts, self.epsilon)
        self._step = counting = min(paces.step, most)
        if self._patience != 1.0 and self.epsilon is not None:
            self._step = max(round(counting * self._patience), 1)
            counting = max(self._step, counting)
        guess = np.flatnonzero((state.phase == GUESSING) & (state.left > 0))
        asked = b = np.empty(0, np.int64)
        if len(self._beliefs.owner):
            asked, b = self._beliefs.ask()
            if self._scans and self.epsilon is not None:  # a few answers more cost less than rounds
                spare = max(_SPARE, self._beliefs.held)
                counting = min(counting * min(max(spare // len(b), 1), _BOOST), most)
        counted = self._beliefs.owner[asked]
        gap = state.nats[proof.owner] - proof.led
        proving = paces.answers(proof, gap, max(2, self._step // 2), most)
        parts = [
            *self._guesses.ask(guess, state, self._step, most),
            (counted, state.value[counted], state.ends(counted), b, np.full(len(b), counting)),
            (proof.owner, proof.low, proof.high, proof.threshold, proving),
        ]
        self._counted = asked, b
        self._ends = np.cumsum([len(part[0]) for part in parts])
        owner, low, high, threshold, self._drawn = map(np.concatenate, zip(*parts, strict=True))
        return owner, low, high, threshold, self._drawn

    # -- what is learned -----------------------------------------------------------------

    def learn(self, answers: Answers) -> None:
        """Take in the answers to all questions of a round."""
        self._notice(answers)
        usual, second, counted, proved = cut_up(answers, self._drawn, self._ends)
        if usual is not None:
            self._guesses.learn(usual, second)
        if counted is not None:
            self._beliefs.weigh(*self._counted, *counted)
        if proved is not None:
            self._proof.led += self._proof.lead(self._facts, *proved)
        self._judge_proofs()
        self._nominate()
        if self.lost.any():
            self._let_go()

    def _notice(self, answers: Answers) -> None:
        """Remember what answers cost, and give up where they can tell nothing."""
        if answers.epsilon is not None:
            self.epsilon = float(np.median(answers.epsilon))
        most = self._care.most_repeats
        needed = Paces(self._facts, self.epsilon).step
        if needed > most and self._step >= int(most * min(self._patience, 1.0)):
            raise undecided(self._care, self._facts.claim.noise)

    def _judge_proofs(self) -> None:
        """Accept what is proved, give up what is doubted."""
        state, proof = self.state, self._proof
        if not len(proof.owner):
            return
        doubted = proof.led <= state.give_up[proof.owner]
        failed = np.unique(proof.owner[doubted])
        if len(failed):
            self._doubt(failed, np.unique(proof.owner[doubted & proof.of_value]))
        open_tests = proof.led < state.nats[proof.owner]
        stuck = np.isin(proof.owner, failed)
        pending = np.unique(proof.owner[open_tests | stuck])
        done = np.setdiff1d(proof.owner, pending)
        self._proof = proof.some(open_tests & ~stuck)
        if len(done):
            self._accept(done)

    def _doubt(self, failed: Codes, by_value: Codes) -> None:
        """Count again, or guess again where the value itself is doubted."""
        state = self.state
        if self._prior is not None:  # the guess had much for it: doubt the count first
            again = (state.value[failed] == state.low[failed]) | (state.tries[failed] % 3 == 0)
            by_value = failed[again]
            state.tries[failed] += ~again
        miscounted = np.setdiff1d(failed[~state.halving[failed]], by_value)
        # counted alike twice, it is the guess that is wrong: larger values were missed
        miscounted = miscounted[state.doubted[miscounted] != state.count[miscounted]]
        state.doubted[miscounted] = state.count[miscounted]
        several = miscounted[state.left[miscounted] > 1]
        self._recount(several)
        self._fresh(np.setdiff1d(failed, several), failed=True)

    def _accept(self, done: Codes) -> None:
        """Note what is proved: values, or how many records lie in each half."""
        state = self.state
        halved = state.halving[done]
        values, halves = done[~halved], done[halved]
        state.tries[done] = 0
        if self._prior is not None and len(halves):
            self._prior.learn(state.left[halves], state.chance[halves], state.count[halves])
        self.finds.note(state.group[values], state.value[values], state.count[values])
        state.left[values] -= state.count[values]
        state.top[values] = state.value[values]
        self._begin_with(halves[state.count[halves] > 0])
        state = self.state
        state.left[halves] -= state.count[halves]
        state.top[halves] = state.value[halves]
        self._end(done[state.left[done] == 0])
        self._fresh(done[state.left[done] > 0])

    def _begin_with(self, halved: Codes) -> None:
        """Add new searches for the upper halves of others."""
        if not len(halved):
            return
        state, first = self.state, len(self.state.left)
        low, top = state.value[halved], state.top[halved]
        group, left = state.group[halved], state.count[halved]
        new = State.zeros(len(halved), group=group, left=left, low=low, top=top)
        self.state = State.joined([state, new])
        self._guesses.add(low, top)
        self._fresh(np.arange(first, first + len(halved)))

    def _fresh(self, searches: Codes, failed: bool = False) -> None:
        """Begin anew: halve a large group, or guess the largest value of a small one.

        What has room for a single value is known. Where a proof failed, its count is doubted.
        """
        state = self.state
        state.doubted[searches] = -1
        state.tries[searches] += 1
        over = state.tries[searches] > (_TRIES if self._hasty is None else _HASTY_TRIES)
        if over.any():
            if self._hasty is None:
                raise contradiction()
            self.lost[state.group[searches[over]]] = True
        room = state.top[searches] - state.low[searches]
        known = searches[room <= 1]
        self.finds.note(state.group[known], state.low[known], state.left[known])
        state.left[known] = 0
        self._end(known)
        many = _MANY[self._facts.claim.hides_direction]
        wide = np.full(len(searches), _WIDE)
        if self._scans and self._prior is not None:  # a prior predicts halves, not single values
            wide[state.left[searches] > MOST] = 2
        halving = (state.left[searches] >= many) & (room >= wide) & (not self._singly)
        state.halving[searches] = halving
        if halving.any():
            self._halve(searches[halving], failed)
        rest = searches[~halving & (room > 1)]
        state.phase[rest] = GUESSING
        low, top, left = state.low[rest], state.top[rest], state.left[rest]
        guesses, start = self._guesses, None
        if self._prior is not None and failed:
            nats = state.give_up[rest] * np.where(left > 1, np.minimum(state.tries[rest], 4), 1)
            guesses.ladders.doubt(guesses.row[rest], state.value[rest], nats)
            return
        if self._prior is not None:
            start = self._prior.start(state.group[rest], low, top, left)
        guesses.ladders.begin(guesses.row[rest], low, top, start)

    def _halve(self, large: Codes, failed: bool) -> None:
        """Begin to count upper halves: of belief, where there is a prior, else of ranges."""
        state, prior = self.state, self._prior
        low, top, left = state.low[large], state.top[large], state.left[large]
        state.phase[large] = COUNTING
        if prior is None:
            state.value[large] = (low + top) // 2
        if prior is None or failed:  # where it misled, the prior is not asked again
            doubted = state.count[large] if failed else None
            self._beliefs.begin(large, left, True, doubted)
            return
        state.value[large], state.chance[large] = prior.halves(state.group[large], low, top)
        self._beliefs.begin(large, left, prior=prior, chance=state.chance[large])

    def _let_go(self) -> None:
        """Stop searching groups that are lost."""
        state = self.state
        gone = self.lost[state.group] & (state.left > 0)
        if gone.any():
            state.left[gone] = 0
            self.finds.give_up(self.lost)
            self._beliefs.keep(~gone[self._beliefs.owner])
            self._proof = self._proof.some(~gone[self._proof.owner])
            self._end(np.flatnonzero(gone))

    def _end(self, searches: Codes) -> None:
        """Let go of what is remembered of searches that are over."""
        if len(searches):
            self._guesses.keep(np.flatnonzero(self.state.left > 0))

    def _recount(self, searches: Codes) -> None:
        """Begin to count how many records have the value guessed."""
        if len(searches):
            state = self.state
            state.phase[searches] = COUNTING
            doubted = None if self._prior is None else state.doubted[searches]
            self._beliefs.begin(searches, state.left[searches], doubted=doubted)

    def _nominate(self) -> None:
        """Move guesses that are likely enough on to counting, and counts on to proofs."""
        state = self.state
        guess = np.flatnonzero((state.phase == GUESSING) & (state.left > 0))
        sure = guess[:0]
        if len(guess):
            value, share = self._guesses.ladders.best(self._guesses.row[guess])
            enough = np.full(len(guess), _SURE)
            if self._hasty is not None:
                enough[state.left[guess] == 1] = _LIKELY
            likely = share >= enough
            sure = guess[likely]
            state.value[sure], state.share[sure] = value[likely], share[likely]
            alone = (state.left[sure] == 1) | (state.value[sure] == state.low[sure])
            self._recount(sure[~alone])
            sure = sure[alone]
            state.count[sure] = state.left[sure]
        if len(self._beliefs.owner):
            count, share = self._beliefs.best()
            settled = share >= _SURE
            owner = self._beliefs.owner[settled]
            state.count[owner] = count[settled]
            self._beliefs.keep(~settled)
            wrong = (state.count[owner] == 0) & ~state.halving[owner]
            self._fresh(owner[wrong], failed=self._prior is not None)
            sure = np.concatenate([sure, owner[~wrong]])
        if len(sure):
            self._prove(sure)

    def _prove(self, searches: Codes) -> None:
        """Begin to prove, with fresh answers, that as many records have the value as found."""
        state = self.state
        state.phase[searches] = PROVING
        if self._hasty is None:
            state.nats[searches] = self._care.nats(len(searches))
            state.give_up[searches] = _DOUBTED
        else:
            one = state.left[searches] == 1
            share = np.minimum(np.maximum(state.share[searches], 1e-9), 1 - 1e-9)
            odds = np.log(share / (1 - share))
            nats = np.where(one, np.maximum(_ODDS - odds, 1.0), self._hasty)
            state.nats[searches] = nats
            state.give_up[searches] = np.where(one, -1.0 - np.maximum(odds, 0.0), _DOUBTED)
        self._proof = Proofs.joined([self._proof, *state.proofs(self._facts, searches)])
