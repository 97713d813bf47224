"""Watching a target while an attack runs, or by itself: does it do what it claims?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeVar, cast

import numpy as np

from thinveil.attacker.checks.fit import Rows, possible
from thinveil.attacker.checks.found import PUBLIC, Checked, Evidence, broken
from thinveil.attacker.checks.known import Known, Sure, asked
from thinveil.attacker.checks.lots import Lots
from thinveil.attacker.checks.passing import Passing
from thinveil.attacker.checks.totals import crowded, predicted
from thinveil.attacker.terms import Attack
from thinveil.errors import BudgetError
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Box, Flags, QueryBatch

_T = TypeVar("_T")

MOST: Final = 64
"""Questions that checks ask at most, besides one in a hundred of what the attack asks."""
SHARE: Final = 8
"""Checks take one part in so many of the wanted error, and of a public limit of answers."""
_FIRST_LOOK: Final = 2000  # questions of the attack before the first look in between
_SELDOM: Final = 4  # the next look comes after so many times as many
_PREDICTED: Final = 32  # fresh questions whose answers follow from what was found
_NOISE: Final = 4096  # answers to one question at most, to see how wide noise is
_SIGMAS: Final = 3.2  # a likelihood ratio falls short of its mean by more in 1 of 1,000 runs


@dataclass(frozen=True, slots=True)
class Plan:
    """How a target is watched.

    Args:
        seed: What questions are drawn by; public.
        alarm: The chance that all tests together may have of calling an honest target broken.
        most: How many answers checks may take, where there is a limit.
        boxes: What an attack on people or on a count is about.
        early: Whether answers before those of the attack take nothing from it.
    """

    seed: int = 0
    alarm: float = 1e-7
    most: int | None = None
    boxes: Sequence[Box] = ()
    early: bool = True


def watched(attack: Attack[_T], facts: PublicFacts, checked: Checked, plan: Plan) -> Attack[_T]:
    """Run an attack, and check in passing that its target does what it claims.

    Questions with known answers are asked at the start, now and then, and at the end, in batches
    of their own; the attack's answers are held against the claimed law; what was found must
    predict the answers to fresh questions. A refused batch ends the checks, not the attack.

    Raises:
        ClaimBroken: The target does not do what it claims.
    """
    watch = _Watch(facts, checked, plan)
    try:
        batch = next(attack)  # what does not fit is said before anything is asked
    except StopIteration as stop:
        return cast(_T, stop.value)  # there was nothing to ask
    if plan.early:
        yield from watch.ask(watch.first(), batch.about)
    while True:
        about = batch.about
        answers = yield replace(batch, about=replace(about, checked=checked))
        watch.look(batch, answers)
        if watch.due:
            yield from watch.ask(watch.again(), about)
        try:
            batch = attack.send(answers)
        except StopIteration as stop:
            found: _T = stop.value
            break
    about = replace(about, done=1.0, so_far=lambda: found)
    yield from watch.ask([] if plan.early else watch.first(), about)
    yield from watch.last(found, about)
    return found


def claim_alone(facts: PublicFacts, checked: Checked, plan: Plan) -> Attack[None]:
    """Check that a target does what it claims, and attack nobody.

    Raises:
        ClaimBroken: It does not.
    """
    watch = _Watch(facts, checked, plan)
    about = About("checking the claim")
    yield from watch.ask(watch.first(2), about)
    yield from watch.ask(watch.again(MOST - checked.questions, whole=False), about)


class _Watch:
    """What was seen of a target so far, and the running tests."""

    def __init__(self, facts: PublicFacts, checked: Checked, plan: Plan) -> None:
        self._facts, self._checked, self._plan = facts, checked, plan
        lots = Lots(plan.seed)
        self._known, self._lots = Known(facts, lots), lots
        self._edges = self._known.edges()
        self._constants = Constants(Extent.of(facts.schema, facts.claim.universe))
        self._rows, self._totals = Rows(facts.claim), Rows(facts.claim)
        self._passing = Passing(facts)
        self._questions, self._mark = 0, _FIRST_LOOK
        self._refused = False

    # what to ask

    def first(self, times: int = 1) -> list[Sure]:
        """Return the questions to begin with: trivial ones, and the edges of all zones."""
        many = 14 if self._facts.claim.offset == 0 else 4
        sures = [*self._known.trivial(), *islice(self._edges, many)]
        return self._repeated(sures, times)

    def again(self, many: int = 4, *, whole: bool = True) -> list[Sure]:
        """Return a few questions for a look in between, or many, in other words."""
        edges = self._edges if whole else self._known.edges(whole=False)
        sures = list(islice(edges, max(many, 0)))
        return [replace(each, repeats=min(each.repeats, 48)) for each in self._repeated(sures)]

    @property
    def due(self) -> bool:
        """Whether the attack has asked so much that the target is looked at again."""
        if self._questions < self._mark:
            return False
        self._mark *= _SELDOM
        return True

    def _repeated(self, sures: list[Sure], times: int = 1) -> list[Sure]:
        """Give each question as many answers as it takes to see a lie."""
        claim = self._facts.claim
        if claim.noise is None or not sures:
            return sures
        many = {"none": 16, "integer": 16, "binary": 48}[claim.post]
        if claim.offset and claim.leaks:
            many = self._enough()
        noisy = self._law(sures, asked(sures), 1.0)[1] > 0
        still = 4 if claim.post == "binary" else 1
        many *= times
        if self._facts.policies.cache:
            many = still = 1  # the same again would tell nothing
        return [
            replace(each, repeats=many if noise else still)
            for each, noise in zip(sures, noisy.tolist(), strict=True)
        ]

    def _enough(self) -> int:
        """Return how many answers tell one zone's noise from the other's, 999 times in 1,000.

        For Laplace noise of widths 1 and r the log likelihood ratio has mean log r + 1/r - 1 and
        deviation 1 - 1/r under the narrow law, r - 1 - log r and r - 1 under the wide one.
        """
        offset = self._facts.claim.offset
        wide = (1 + offset) / offset
        nats = math.log(2 * 12 * 2**4 / self._alpha("known"))
        most = 1.0
        for mean, deviation in (
            (math.log(wide) + 1 / wide - 1, 1 - 1 / wide),
            (wide - 1 - math.log(wide), wide - 1),
        ):
            spread = _SIGMAS * deviation
            root = (spread + math.sqrt(spread * spread + 4 * mean * nats)) / (2 * mean)
            most = max(most, root * root)
        return min(math.ceil(most), _NOISE)

    # asking

    def ask(self, sures: list[Sure], about: About, *, totals: bool = False) -> Attack[None]:
        """Ask questions with known answers, as many as may be asked, and judge what comes."""
        sures = self._within(sures)
        if not sures or self._refused:
            return
        batch = asked(sures)
        label = "checking the claim"
        mine = replace(about, label=label, check=True, checked=self._checked)
        try:
            answers = yield replace(batch, about=mine)
        except BudgetError:
            self._refused = True
            return
        self._checked.questions += batch.questions
        self._checked.answers += batch.queries
        self._judge(sures, batch, answers, about.risk if totals else None)

    def _within(self, sures: list[Sure]) -> list[Sure]:
        """Return as much of it as the limits of checks leave."""
        left = MOST + self._questions // 100 - self._checked.questions
        sures = sures[: max(left, 0)]
        if self._plan.most is None or not sures:
            return sures
        answers = self._plan.most - self._checked.answers
        sures = sures[: max(answers, 0)]
        each = answers // max(len(sures), 1)
        return [replace(sure, repeats=min(sure.repeats, each)) for sure in sures]

    def _law(self, sures: Sequence[Sure], batch: QueryBatch, epsilon: Any) -> tuple[Flags, Any]:
        count, b = (np.array(each, np.int64) for each in zip(
            *((sure.count, sure.threshold) for sure in sures), strict=True))  # fmt: skip
        constant = self._constants.among(batch)
        return self._facts.claim.law(count, b, constant, self._facts.records, epsilon)

    # judging

    def _alpha(self, test: str) -> float:
        return self._plan.alarm / {"known": 2, "fit": 4, "totals": 4}[test]

    def _judge(
        self, sures: list[Sure], batch: QueryBatch, answers: Answers, risk: float | None
    ) -> None:
        """Hold answers against the laws of their questions; where a risk is given, as found."""
        claim, epsilon = self._facts.claim, answers.epsilon
        bit, scale = self._law(sures, batch, epsilon)
        row = np.repeat(np.arange(len(sures)), np.broadcast_to(batch.repeats, len(sures)))
        loss = 1.0 if epsilon is None else epsilon
        rate = np.divide(loss, scale, out=np.ones(len(scale)), where=scale > 0)
        can = possible(claim, answers.values, bit[row], scale[row], rate[row])
        totals = risk is not None
        wrong = np.unique(row[~can])
        if len(wrong):
            self._break([_otherwise(sures, wrong.tolist(), scale, risk)])
        test, alpha = (
            (self._totals, self._alpha("totals")) if totals else (self._rows, self._alpha("known"))
        )
        noisy = scale[row] > 0
        values, row = answers.values[noisy], row[noisy]
        test.learn(values, row, bit[row], rate[row])
        if test.nats >= -math.log(alpha):
            self._break([_misfit(test, "totals" if totals else "fit", test.chance + (risk or 0.0))])

    def look(self, batch: QueryBatch, answers: Answers) -> None:
        """Look at the answers of the attack in passing."""
        claim = self._facts.claim
        self._questions += batch.questions
        if self._facts.policies.cache and claim.reads_exactly:
            return  # the same noise may come again, and means nothing
        values = answers.values
        if claim.noise is None or claim.post != "none":
            odd = values != (np.rint(values) if claim.post == "integer" else values == 1)
            if (odd & ~np.isnan(values)).any():
                self._break([_unrounded(claim.post)])
        self._passing.look(batch, answers)
        self._checked.watched = self._passing.looked
        if self._passing.weight >= -math.log(self._alpha("fit")):
            chance = math.exp(-min(self._passing.weight, 700.0))
            self._break([_scattered(self._passing.best(), chance)])

    def last(self, found: object, about: About) -> Attack[None]:
        """Hold what was found against fresh questions, and against the size of the table."""
        if wrong := crowded(found, self._facts, about.risk):
            self._break(wrong)
        yield from self.ask(self.again(), about)
        claim = self._facts.claim
        if claim.leaks or not claim.protected:
            boxes = self._plan.boxes
            sures = predicted(found, self._facts, boxes, self._lots, _PREDICTED)
            sures = [replace(each, repeats=self._light()) for each in sures]
            yield from self.ask(sures, about, totals=True)

    def _light(self) -> int:
        """Return how many answers each of many fresh questions gets."""
        claim = self._facts.claim
        if not claim.protected or self._facts.policies.cache:
            return 1
        return 48 if claim.offset else {"none": 2, "integer": 2, "binary": 12}[claim.post]

    def _break(self, evidence: list[Evidence]) -> None:
        self._checked.broken += evidence
        raise broken(evidence)


def _otherwise(
    sures: Sequence[Sure], wrong: Sequence[int], scale: Any, risk: float | None
) -> Evidence:
    """Say that answers came which their laws cannot give."""
    what = sures[wrong[0]].what
    exact = scale[wrong[0]] == 0
    came = "otherwise than exactly as it must be" if exact else "by what its law cannot give"
    said = f"Asked about {what}, it answered {came}, in {len(wrong):,} of {len(sures):,} questions."
    return Evidence("known" if risk is None else "totals", said, risk or 0.0, PUBLIC)


def _misfit(test: Rows, kind: Any, chance: float) -> Evidence:
    said = (
        "Answers to questions whose law is known scatter otherwise than claimed: rather like "
        f"{test.best()}."
    )
    return Evidence(kind, said, min(chance, 1.0), PUBLIC)


def _scattered(best: str, chance: float) -> Evidence:
    said = f"The answers to the attack scatter otherwise than claimed: rather like {best}."
    return Evidence("fit", said, chance, PUBLIC)


def _unrounded(post: str) -> Evidence:
    kind = "whole numbers" if post == "integer" else "0 or 1"
    return Evidence("support", f"It answered something other than {kind}.", 0.0, PUBLIC)
