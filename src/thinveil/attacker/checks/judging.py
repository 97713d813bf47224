"""Holding answers against the laws that they must follow, and saying what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from thinveil.attacker.checks.fit import Fit, possible
from thinveil.attacker.checks.found import EXACT, PUBLIC, Checked, Evidence, Kind, broken
from thinveil.attacker.checks.kept import Kept, Told, lead_of_another_table
from thinveil.attacker.checks.known import Sure
from thinveil.attacker.checks.passing import Passing
from thinveil.attacker.evidence.likelihood import loglik
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.normal import Normal
from thinveil.language.queries import Answers, Codes, Flags, Floats, Loss, QueryBatch
from thinveil.language.texts import many

Test = Literal["known", "fit", "totals", "kept"]
PARTS: Final = {"known": 2, "fit": 4, "totals": 8, "kept": 8}
"""One part in so many of the chance of a false alarm belongs to each running test."""


class Judge:
    """The running tests of one run, each with its share of the chance of a false alarm."""

    def __init__(self, facts: PublicFacts, checked: Checked) -> None:
        self.facts, self.checked = facts, checked
        self._constants = Constants(Extent.of(facts.schema, facts.claim.universe))
        self._fits = {"known": Fit(facts.claim), "totals": Fit(facts.claim)}
        self._passing, self._kept = Passing(facts), Kept()
        self._normal = Normal(Extent.of(facts.schema, facts.claim.universe), facts.records)
        self._passed: dict[str, str] = {}
        self._heard: set[tuple[int, ...]] = set()
        self.exact = self.noisy = 0  # known answers without noise; most of one question with it

    def alpha(self, test: Test) -> float:
        """Return the chance of a false alarm that a test has."""
        return self.checked.alarm / PARTS[test]

    def law(self, count: Codes, batch: QueryBatch, epsilon: Loss) -> tuple[Flags, Floats]:
        """Return the true bits and what epsilon divides to scale noise, given the counts."""
        constant = self._constants.among(batch)
        facts = self.facts
        return facts.claim.law(count, batch.threshold, constant, facts.records, epsilon)

    def known(self, sures: Sequence[Sure], batch: QueryBatch, answers: Answers) -> None:
        """Judge answers to questions that were asked because theirs are known."""
        self._judge("known", _counts(sures), batch, answers, sures, 0.0)
        scale = self.law(_counts(sures), batch, answers.epsilon)[1]
        repeats = np.broadcast_to(answers.repeats, len(scale))
        self.exact += int(repeats[scale == 0].sum())
        self.noisy = max(self.noisy, int(repeats[scale > 0].max(initial=0)))
        said = many(self.checked.questions, "question was", "questions were")
        self.passed("known", f"{said} answered as known beforehand")

    def fresh(
        self, sures: Sequence[Sure], batch: QueryBatch, answers: Answers, risk: float
    ) -> None:
        """Judge answers to fresh questions, whose counts follow from what was found."""
        self._judge("totals", _counts(sures), batch, answers, sures, risk)
        said = f"what was found foretold the answers to {len(sures):,} fresh questions"
        self.passed("fresh", said)

    def explained(self, found: object, risk: float) -> None:
        """Judge answers of the attack that were kept, by what was found in the end."""
        asked = 0
        leads: list[Floats] = []
        keys = [np.empty((2, 0), np.uint64)]
        zones = self.facts.claim.offset > 0 and self.facts.claim.leaks
        for told in self._kept.against(found, self.facts.records):
            if zones:  # single rows tell little
                leads.append(self._other_zone(told))
                keys.append(self._normal.keys(told.batch))
            else:
                self._judge("totals", told.count, told.batch, told.answers, (), risk)
            asked += told.batch.questions
        if leads:
            question = np.unique(np.concatenate(keys, axis=1), axis=1, return_inverse=True)[1]
            nats = lead_of_another_table(np.concatenate(leads), question.reshape(-1))
            if nats >= -math.log(self.alpha("kept")):
                said = "Its first answers do not fit what its last ones show: another table."
                self.broken("totals", said, math.exp(-nats) + risk)
        if asked:
            said = f"what was found explains the answers to {many(asked, 'question')} of the attack"
            self.passed("kept", said)

    def _other_zone(self, told: Told) -> Floats:
        """Return by how many nats each row speaks for the noise of the other zone."""
        claim, answers = self.facts.claim, told.answers
        epsilon = 1.0 if answers.epsilon is None else answers.epsilon
        bit, scale = self.law(told.count, told.batch, epsilon)
        narrow = claim.offset * (1.0 if claim.noise is None else claim.noise.widen(epsilon))
        other = np.where(scale > narrow, narrow, scale * (1 + 1 / claim.offset))
        row = np.repeat(np.arange(len(bit)), np.broadcast_to(answers.repeats, len(bit)))
        told_of = [
            loglik(claim, answers.values, bit[row], each[row], (epsilon / each)[row])
            for each in (other, scale)
        ]
        lead: Floats = np.bincount(row, told_of[0] - told_of[1], minlength=len(bit)).astype(float)
        return lead

    def _judge(
        self,
        test: Literal["known", "totals"],
        count: Codes,
        batch: QueryBatch,
        answers: Answers,
        sures: Sequence[Sure],
        risk: float,
    ) -> None:
        """Hold answers against the laws of their counts; these are wrong at a risk."""
        claim, epsilon = self.facts.claim, answers.epsilon
        bit, scale = self.law(count, batch, epsilon)
        row = np.repeat(np.arange(len(count)), np.broadcast_to(answers.repeats, len(count)))
        loss = 1.0 if epsilon is None else epsilon
        rate = np.divide(loss, scale, out=np.ones(len(scale)), where=scale > 0)
        can = possible(claim, answers.values, bit[row], scale[row], rate[row])
        wrong = np.unique(row[~can]).tolist()
        if wrong:
            said = _otherwise(batch, bit, scale, wrong, sures)
            self.broken(test, said, risk)
        noisy = scale[row] > 0
        values, row = answers.values[noisy], row[noisy]
        if self.facts.policies.cache:  # the same question has the same noise
            new = self._unheard(batch)[row] & (np.diff(row, prepend=-1) > 0)
            values, row = values[new], row[new]
        fit = self._fits[test]
        fit.learn(values, row, bit[row], rate[row])
        if fit.nats >= -math.log(self.alpha(test)):
            what = "questions with known answers" if test == "known" else _FOUND
            said = f"Answers to {what} scatter otherwise than claimed: rather like {fit.best()}."
            self.broken("fit" if test == "known" else "totals", said, fit.chance + risk)

    def _unheard(self, batch: QueryBatch) -> Flags:
        """Tell which questions were never judged before, however they are worded."""
        keys = [tuple(each) for each in self._normal.keys(batch).T.tolist()]
        new = np.array([key not in self._heard for key in keys])
        new[1:] &= [key not in keys[:at] for at, key in enumerate(keys)][1:]
        self._heard.update(keys)
        return new

    def look(self, batch: QueryBatch, answers: Answers) -> None:
        """Look at answers of the attack in passing, and keep some."""
        claim = self.facts.claim
        if self.facts.policies.cache and claim.reads_exactly:
            return  # the same noise may come again, and means nothing
        self._kept.keep(batch, answers)
        values = answers.values
        if claim.noise is None or claim.post != "none":
            odd = values != (np.rint(values) if claim.post == "integer" else values == 1)
            if (odd & ~np.isnan(values)).any():
                kind = "a whole number" if claim.post == "integer" else "0 or 1"
                self.broken("support", f"It answered something other than {kind}.", 0.0)
        if not self._passing.look(batch, answers):
            return
        weight, self.checked.watched = self._passing.weight, self._passing.looked
        if weight >= -math.log(self.alpha("fit")):
            said = (
                f"Its answers scatter otherwise than claimed: rather like {self._passing.best()}."
            )
            self.broken("fit", said, math.exp(-min(weight, 700.0)))
        watched = many(self.checked.watched, "answer", "answers")
        self.passed("fit", f"nothing was odd in the scatter of {watched} of the attack")

    @property
    def scattered(self) -> int:
        """How many answers of the attack had noise for certain, and were weighed."""
        return self._passing.noisy

    @property
    def explains(self) -> bool:
        """Whether what was found was held against fresh questions or against earlier answers."""
        return "fresh" in self._passed or "kept" in self._passed

    def passed(self, what: str, said: str) -> None:
        """Note what was found as claimed so far."""
        self._passed[what] = said
        self.checked.passed[:] = self._passed.values()

    def broken(self, kind: Kind, said: str, chance: float) -> None:
        """End the run: the target does not do what it claims."""
        claim = self.facts.claim
        only_size = kind == "fit" and claim.reads_exactly and claim.protected and self.exact > 0
        still = EXACT if only_size else PUBLIC
        evidence = Evidence(kind, said, min(chance, 1.0), still)
        self.checked.broken.append(evidence)
        raise broken([evidence])


_FOUND: Final = "questions whose counts follow from what was found"


def _counts(sures: Sequence[Sure]) -> Codes:
    return np.array([each.count for each in sures], np.int64)


def _otherwise(
    batch: QueryBatch, bit: Flags, scale: Floats, wrong: Sequence[int], sures: Sequence[Sure]
) -> str:
    """Say that answers came which their laws cannot give."""
    first = wrong[0]
    what = sures[first].what if sures else "a range whose count follows from what was found"
    must = f"only be {int(bit[first])}" if scale[first] == 0 else "never be what came"
    return (
        f"Asked whether more than {int(batch.threshold[first]):,} of the records lie in {what}, "
        f"where the answer can {must}, it answered otherwise; so it did in {len(wrong):,} of "
        f"{batch.questions:,} such questions."
    )
