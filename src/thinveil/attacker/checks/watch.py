"""Watching a target while an attack runs, or by itself: does it do what it claims?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeVar, cast

import numpy as np

from thinveil.attacker.checks.found import Checked
from thinveil.attacker.checks.judging import Judge
from thinveil.attacker.checks.known import Known, Sure, asked
from thinveil.attacker.checks.lots import Lots
from thinveil.attacker.checks.seen import enough, power_of
from thinveil.attacker.checks.totals import crowded, predicted
from thinveil.attacker.terms import Attack
from thinveil.errors import BudgetError, QueryError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Box, QueryBatch

_T = TypeVar("_T")

MOST: Final = 64
"""Questions that checks ask at most, besides one in a hundred of what the attack asks."""
SHARE: Final = 8
"""Checks take one part in so many of the wanted error, and of a public limit of answers."""
_FIRST: Final = 14  # questions about nobody and everybody at the start: 2^-14 of coins pass
_BETWEEN: Final = 4  # of them, for a look in between
_FIRST_LOOK: Final = 2000  # questions of the attack before the first look in between
_SELDOM: Final = 4  # the next look comes after so many times as many
_ALONE: Final = 2048  # noisy answers where nothing but the claim is checked
_PREDICTED: Final = 32  # fresh questions whose answers follow from what was found
_EXISTENCE: Final = 44  # the same, where an answer tells less: that of one point
_NOISE: Final = 4096  # answers to one question at most, to see how wide noise is


@dataclass(frozen=True, slots=True)
class Plan:
    """How a target is watched.

    Args:
        seed: What questions are drawn by; public.
        error: The chance of error that the user allows for in all.
        most: How many answers checks may take, where there is a limit.
        boxes: What an attack on people or on a count is about.
        early: Whether answers before those of the attack take nothing from it.
    """

    seed: int = 0
    error: float = 1e-6
    most: int | None = None
    boxes: Sequence[Box] = ()
    early: bool = True

    @property
    def alarm(self) -> float:
        """The chance that all tests together may have of calling an honest target broken."""
        return self.error / SHARE


def watched(attack: Attack[_T], facts: PublicFacts, checked: Checked, plan: Plan) -> Attack[_T]:
    """Run an attack, and check in passing that its target does what it claims.

    Questions with known answers are asked at the start, now and then, and at the end, in batches
    of their own; the attack's answers are held against the claimed law; what was found must
    explain them, and foretell the answers to fresh questions. A refused batch ends the checks,
    not the attack.

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
            yield from watch.ask(watch.again(_BETWEEN), about)
        try:
            batch = attack.send(answers)
        except StopIteration as stop:
            found: _T = stop.value
            break
    about = replace(about, done=1.0, so_far=lambda: found)
    yield from watch.ask(watch.again(_BETWEEN) if plan.early else watch.first(), about)
    yield from watch.last(found, about)
    yield from watch.ask(watch.trivial(), about)
    watch.say_power()
    return found


def claim_alone(facts: PublicFacts, checked: Checked, plan: Plan) -> Attack[None]:
    """Check that a target does what it claims, and attack nobody.

    Raises:
        ClaimBroken: It does not.
    """
    watch = _Watch(facts, checked, plan)
    about = About("checking the claim")
    yield from watch.ask(watch.first(alone=True), about)
    if facts.claim.reads_exactly and facts.claim.reach:
        yield from watch.halves(about)
    trivial = watch.trivial()
    many = MOST - len(trivial) - checked.questions
    yield from watch.ask(watch.again(many, whole=False), about)
    yield from watch.ask(trivial, about)
    watch.say_power()


class _Watch:
    """What was asked of a target so far, and what to ask it next."""

    def __init__(self, facts: PublicFacts, checked: Checked, plan: Plan) -> None:
        self._facts, self._checked, self._plan = facts, checked, plan
        self._judge, self._lots = Judge(facts, checked), Lots(plan.seed)
        self._known = Known(facts, self._lots)
        self._edges = self._known.edges()
        self._questions, self._mark = 0, _FIRST_LOOK
        self._refused = False

    def first(self, *, alone: bool = False) -> list[Sure]:
        """Return the questions to begin with: the edges of all zones."""
        many = 4 if self._facts.claim.offset else _FIRST
        return self._repeated(list(islice(self._edges, many)), _ALONE if alone else 0)

    def trivial(self) -> list[Sure]:
        """Return the questions to end with: a target may refuse thresholds that nobody crosses."""
        sures = self._repeated(self._known.trivial())
        return [replace(each, repeats=min(each.repeats, 16)) for each in sures]

    def halves(self, about: About) -> Attack[None]:
        """Find how many records lie below a cut, then ask at all edges of both halves."""
        n, k = self._facts.records, self._facts.claim.reach
        box, rest = self._known.half()
        low, high = 0, n  # exactly 0 comes from some threshold on, if below n
        while low < high and not self._refused:
            middle = (low + high) // 2
            found: list[Answers] = []
            sures = [Sure([box], 0, middle, "a range")]
            yield from self.ask(sures, about, found)
            if not found:
                return
            low, high = (low, middle) if found[0].values[0] == 0 else (middle + 1, high)
        count = low - k if low < n else n - k  # above n - k counts look alike from below
        for each, many in ((box, count), (rest, n - count)):
            if low < n and 0 <= many <= n:
                edges = (many + k, many + k - 1, many - k, many - k - 1)
                what = "a range whose count follows from other answers"
                yield from self.ask([Sure([each], many, b, what, 2) for b in edges], about)

    def again(self, many: int, *, whole: bool = True) -> list[Sure]:
        """Return further questions with known answers, with few repeats each."""
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

    def _repeated(self, sures: list[Sure], noise: int = 0) -> list[Sure]:
        """Give each question as many answers as it takes to see a lie; of noise so many in all."""
        claim = self._facts.claim
        if claim.noise is None or not sures or self._facts.policies.cache:
            return sures  # of a cache, the same again would tell nothing
        count = np.array([each.count for each in sures], np.int64)
        noisy = self._judge.law(count, asked(sures), 1.0)[1] > 0
        many = {"none": 16, "integer": 16, "binary": 48}[claim.post]
        if claim.offset and claim.leaks:
            many = self._enough()
        many = max(many, noise // max(int(noisy.sum()), 1))
        still = 4 if claim.post == "binary" else 1
        pairs = zip(sures, noisy.tolist(), strict=True)
        return [replace(each, repeats=many if noise else still) for each, noise in pairs]

    def _enough(self) -> int:
        """Return how many answers tell the noise of one zone from that of the other."""
        wide = 1 + 1 / self._facts.claim.offset
        return min(enough(wide, self._judge.alpha("known")), _NOISE)

    def ask(
        self,
        sures: list[Sure],
        about: About,
        heard: list[Answers] | None = None,
        risk: float | None = None,
    ) -> Attack[None]:
        """Ask questions with known answers, as many as may be asked, and judge what comes.

        Where a risk is given, their counts follow from what was found, and are wrong so likely.
        Where answers are to be `heard` only, nothing is known of them.
        """
        sures = self._within(sures)
        if not sures or self._refused:
            return
        batch = asked(sures)
        mine = replace(about, label="checking the claim", check=True, checked=self._checked)
        try:
            answers = yield replace(batch, about=mine)
        except (BudgetError, QueryError):
            self._refused = True
            return
        self._checked.questions += batch.questions
        self._checked.answers += batch.queries
        if heard is not None:
            heard.append(answers)
        elif risk is None:
            self._judge.known(sures, batch, answers)
            self.say_power()
        else:
            self._judge.fresh(sures, batch, answers, risk)

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

    def look(self, batch: QueryBatch, answers: Answers) -> None:
        """Look at answers of the attack in passing."""
        self._questions += batch.questions
        self._judge.look(batch, answers)

    def last(self, found: object, about: About) -> Attack[None]:
        """Hold what was found against the answers so far, the size of the table, fresh questions.

        Where an attack may have misread more than the user allows for, nothing follows from it.
        """
        risk, claim = about.risk, self._facts.claim
        if risk > self._plan.error:
            return
        if said := crowded(found, self._facts):
            self._judge.broken("contradiction", said, risk)
        self._judge.explained(found, risk)
        if claim.leaks or not claim.protected:
            many = _PREDICTED if claim.counts else _EXISTENCE
            sures = predicted(found, self._facts, self._plan.boxes, self._lots, many)
            sures = [replace(each, repeats=self._light()) for each in sures]
            yield from self.ask(sures, about, risk=risk)

    def _light(self) -> int:
        """Return how many answers each of many fresh questions gets."""
        claim = self._facts.claim
        if not claim.protected or self._facts.policies.cache:
            return 1
        return 48 if claim.offset else {"none": 2, "integer": 2, "binary": 12}[claim.post]

    def say_power(self) -> None:
        """Say which lies would have been seen, and which not."""
        self._checked.power[:] = power_of(self._facts, self._judge)
