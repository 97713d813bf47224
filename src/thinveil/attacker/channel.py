"""Reading the doubles themselves: a simpler attack runs inside, and is sent what they settle.

Where noise is drawn as textbooks draw it, an answer often can come from one true answer only
(`evidence.doubles`; a side channel, Mironov 2012). The attack inside believes in a target without
that noise. Each of its questions is really asked, as often as it takes until all laws that could
have given these very doubles mean the same; then it is sent a clean answer.

A target that says it draws safely, or by another library, might not draw so at all. A double of
its answers then is possible from 0, from 1 or from both by mere chance, so nothing is believed
before the answers to a few questions were all possible, each question's from one law, so often
that chance explains it no better than the error of the attack allows. How often a double is
possible by chance is measured (`doubles.chance`): 0.36 for Laplace noise, so about 30 answers do.
One that is impossible widens what counts as possible; where that is not enough, noise alone is
weighed, as without all this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from thinveil.attacker.checks.found import PUBLIC, Evidence, broken
from thinveil.attacker.evidence import doubles
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.possible_laws import Impossible, Questions, Told
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.terms import Attack
from thinveil.errors import Undecided, UsageError
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.mechanisms.unprotected import unprotected
from thinveil.language.queries import Answers, Codes, QueryBatch
from thinveil.language.texts import many

_T = TypeVar("_T")

FIRST: Final = 64
"""Answers that doubles are first judged by: other Laplace noise passes by (2 x 0.36^16)^4."""
AGREEING: Final = 3
"""Answers that must settle a question alike where others than we draw the noise.

One of them may be drawn otherwise, and then mislead. If a share s of settling answers does, and N
questions have m such answers each, then none of them disagrees with probability exp(-s m N), and
some question is misread by all m with probability N s^m: both together at most e^-m N^(1 - m),
which is 2e-7 for 500 questions and m = 3, whatever s is.
"""
_FEW: Final = 4  # questions that these are shared over
_SINGLY: Final = 1.5  # answers come singly until so many should have settled (measured: 1 to 2)
_MOST_DOUBTS: Final = 512  # answers to a question that are worth being sure of how noise is drawn
_SELDOM: Final = 0.01  # a share of settled answers below which the noise is too wide
_NEVER: Final = 1e-12  # what is less likely does not come of itself
_TOO_FEW: Final = "a question may have too few answers to be sure of them"
_MOST_LAWS: Final = 4096  # laws that an answer can follow; of more, one question alone is judged


@dataclass(slots=True)
class Looked:
    """What came of looking at doubles, while a run lasts and after it.

    Args:
        used: Whether what was found rests on them.
        answers: How many answers were looked at.
        settled: How many questions their doubles settled.
        ulps: How many doubles off ours the noise at scale 1 may lie.
        outcomes: How many laws an answer can follow, all told apart.
        why: Where they were of no use, the reason.
    """

    used: bool = False
    answers: int = 0
    settled: int = 0
    ulps: int = 0
    outcomes: int = 0
    why: str = ""


class _Useless(Exception):
    """Doubles tell nothing here; the text says why."""


def simpler(facts: PublicFacts) -> PublicFacts:
    """Return what a target looks like to an attack that is sent what doubles settle.

    Raises:
        UsageError: They settle nothing that a search has a use for; the text says why.
    """
    claim, law = facts.claim, facts.claim.noise
    why = ""
    if law is None:
        why = "adds no noise: its answers are what they are"
    elif law.discrete:
        why = "answers whole numbers, which can come from 0 and from 1 alike"
    elif claim.post != "none":
        why = "rounds its answers, so the doubles before that are not seen"
    elif not doubles.tells(law):
        why = "has a noise law of its own, and how that is drawn is not known here"
    elif claim.reads_exactly and not claim.shape.presence:
        why = "tells noise from no noise by any answer; no search here has a use for more"
    elif facts.policies.cache and claim.universe == "bounded":
        why = "caches its answers in a bounded universe: no question can be asked in new words"
    elif not claim.control and _laws(facts) > _MOST_LAWS:
        why = f"has more than {_MOST_LAWS:,} laws of noise, too many to tell apart"
    if why:
        raise UsageError(f"--channel doubles: the mechanism {claim.name} {why}")
    if claim.reach and claim.offset:
        return replace(facts, claim=replace(claim, offset=0.0))
    bare = replace(unprotected(claim.universe), name=claim.name)
    return replace(facts, claim=bare, policies=replace(facts.policies, min_epsilon=None))


def by_doubles(
    facts: PublicFacts,
    care: Care,
    inside: Callable[[PublicFacts], Attack[_T]],
    otherwise: Callable[[], Attack[_T]],
    looked: Looked,
) -> Attack[_T]:
    """Run an attack on what doubles settle; where they do not, another one on noise alone.

    `inside` makes the attack for the target as doubles show it. Where a double turns out to be
    impossible after others were believed, it starts over, with more allowed for.
    """
    clean = simpler(facts)
    while True:
        reader = _Reader(facts, clean, care, looked)
        try:
            return (yield from _carried(reader, inside(clean)))
        except Impossible:
            if not _widened(looked):
                looked.why = "some of them cannot come from noise that is drawn in doubles"
                break
        except _Useless as useless:
            looked.why = str(useless)
            break
    looked.used, looked.settled = False, 0
    return (yield from otherwise())


def _widened(looked: Looked) -> bool:
    """Allow for more; False where there is no more."""
    more = [each for each in doubles.SLACKS if each > looked.ulps]
    looked.ulps = more[0] if more else looked.ulps
    return bool(more)


def _carried(reader: _Reader, attack: Attack[_T]) -> Attack[_T]:
    """Carry the batches of an attack to the target and clean answers back."""
    try:
        batch = next(attack)
        while True:
            answers = yield from reader.read(batch)
            batch = attack.send(answers)
    except StopIteration as stop:
        found: _T = stop.value
        return found


def _refuse_bare(told: Told) -> None:
    """Refuse answers that all are a true bit and nothing else, where each should have noise.

    Noise of scale 1/epsilon leaves a bit as it is where it lies within half a double, or on a grid
    of 2^-20 of its scale, far coarser than any in use.

    Raises:
        ClaimBroken: No noise gives so many.
    """
    if not np.isin(told.value, (0.0, 1.0)).all():
        return
    each = max(2.0**-20, -math.expm1(-float(told.epsilon.max()) * 2.0**-52))
    chance = max(each ** len(told.value), 1e-300)
    if chance < _NEVER:
        said = (
            f"All of {len(told.value):,} answers were exactly 0 or 1, and noise is claimed on each."
        )
        raise broken([Evidence("fit", said, chance, PUBLIC)])


def _laws(facts: PublicFacts) -> int:
    """Return how many laws the answer to a question can follow."""
    cuts = facts.claim.sensitivity.breakpoints(np.array([0]), facts.records)
    return len(cuts[0]) + 1


class _Reader:
    """Asks until doubles settle what was asked, after making sure that they can be believed."""

    def __init__(self, facts: PublicFacts, clean: PublicFacts, care: Care, looked: Looked) -> None:
        self._facts, self._clean, self._care, self._looked = facts, clean, care, looked
        self._constants = Constants(Extent.of(facts.schema, facts.claim.universe))
        self._laws, self._believed = _laws(facts), False
        self._needed = AGREEING if looked.ulps else 1
        self._share = 1.0  # of answers that settle a question, about
        self._epsilon = 0.0  # the smallest loss of an answer so far

    def read(self, batch: QueryBatch) -> Attack[Answers]:
        """Settle a batch and return clean answers.

        Raises:
            Undecided: A question is not settled after as many answers as it may have.
            Impossible: A double can come from no law.
            _Useless: Doubles tell nothing here.
        """
        self._looked.outcomes = self._laws
        if self._laws > _MOST_LAWS:
            yield from self._doubt_one(batch)
            raise _Useless("too many laws of noise could have given them")
        questions = Questions(self._facts, self._clean, batch, self._needed)
        asked = np.zeros(batch.questions, np.int64)
        if not self._believed:
            yield from self._doubt(batch, questions, asked)
        left = np.flatnonzero((asked == 0) | ~questions.settled)
        while len(left):
            had = int(asked[left].max())
            if had >= self._care.most_repeats:
                raise self._undecided()
            few = had * self._share < _SINGLY * self._needed
            more = self._needed if few else had // 2 + 1
            more = min(more, self._care.most_repeats - had)
            questions.learn((yield from self._ask(batch, left, more)), self._looked.ulps)
            asked[left] += more
            left = left[~questions.settled[left]]
        self._looked.used = True
        self._looked.settled += int(np.count_nonzero(~questions.exact))
        return Answers(np.repeat(questions.clean(), batch.repeats), batch.repeats, self._epsilon)

    def _ask(self, batch: QueryBatch, rows: Codes, each: int) -> Attack[Told]:
        """Ask some questions for so many answers each."""
        part = batch.some(rows) if len(rows) < batch.questions else batch
        risk = self._care.risk
        about = replace(batch.about, risk=risk, channel=self._looked)
        part = replace(part, repeats=np.full(len(rows), each), about=about)
        if self._facts.policies.cache:
            part = varied(self._facts, part, np.full(len(rows), each), self._care)
        answers = yield part
        self._looked.answers += len(answers.values)
        drawn = answers.repeats if isinstance(answers.repeats, int) else each
        epsilon = np.broadcast_to(np.asarray(answers.epsilon, np.float64), part.threshold.shape)
        constant = self._constants.among(part)
        self._epsilon = min(self._epsilon or math.inf, float(epsilon.min()))
        return Told(
            np.repeat(rows, each), answers.values, np.repeat(epsilon, drawn),
            np.repeat(constant, drawn),
        )  # fmt: skip

    def _doubt_one(self, batch: QueryBatch) -> Attack[None]:
        """Look at one question alone: the laws of all together would fill the memory."""
        apart = ~self._constants.among(batch) & (batch.threshold >= 0)
        rows = np.flatnonzero(apart & (batch.threshold < self._facts.records))[:1]
        if len(rows):
            one = batch.some(rows)
            questions = Questions(self._facts, self._clean, one)
            yield from self._doubt(one, questions, np.zeros(1, np.int64))

    def _doubt(self, batch: QueryBatch, questions: Questions, asked: Codes) -> Attack[None]:
        """Ask a few questions until it is sure that noise is drawn so, and no chance."""
        rows = questions.noisy(self._constants.among(batch))
        if self._facts.claim.reads_exactly and len(rows):
            # some answers are exact: they need no belief, and tell nothing of how noise is drawn
            once = yield from self._ask(batch, rows, 1)
            exact = np.isin(once.value, (0.0, 1.0))
            questions.learn(once.some(exact), self._looked.ulps)
            asked[rows[exact]] += 1
            rows = rows[~exact]
        if not len(rows):
            return
        rows = rows[:_FEW]
        told: Told | None = None
        wanted, law, most = self._care.nats(1), self._facts.claim.noise, self._care.most_repeats
        assert doubles.tells(law)
        while True:
            each = -(-FIRST // len(rows)) if told is None else int(asked[rows[0]])
            each = min(each, most - int(asked[rows[0]]))
            if each <= 0:
                raise _Useless(_TOO_FEW)
            more = yield from self._ask(batch, rows, each)
            asked[rows] += each
            told = more if told is None else told.and_then(more)
            if questions.scales(told)[1]:
                _refuse_bare(told)
            while not self._possible(questions, rows, told):
                if not _widened(self._looked):
                    raise Impossible
                wanted = self._care.nats(1)
            wide = questions.scales(told)[1]
            if not wide:
                raise _Useless("there is no noise in them")
            self._share = doubles.settled_share(law, wide, self._looked.ulps)
            if self._share * most < self._needed:
                if self._share > _SELDOM:
                    raise _Useless(_TOO_FEW)
                raise _Useless("the noise is so wide that adding 1 changes next to none of them")
            if self._nats(questions, told, wanted) >= wanted:
                self._believed = True
                return

    def _possible(self, questions: Questions, rows: Codes, told: Told) -> bool:
        """Judge all answers kept, with as much allowed for as now is."""
        questions.again(rows)
        try:
            questions.learn(told, self._looked.ulps)
        except Impossible:
            return False
        return True

    def _nats(self, questions: Questions, told: Told, wanted: float) -> float:
        """Bound how surely these possible doubles are no chance: a question's laws, each.

        Raises:
            _Useless: Other noise gives such doubles so often that it would take too long.
        """
        law, nats, rows = self._facts.claim.noise, 0.0, np.unique(told.row).tolist()
        assert doubles.tells(law)
        least = math.inf
        for row in rows:
            by_chance = max(
                doubles.chance(law, scale, bit, self._looked.ulps)
                for scale in questions.scales(told)
                for bit in questions.bits(row)
            )
            different = len(np.unique(told.value[told.row == row]))
            each, laws = max(-math.log(by_chance), 1e-9), math.log(questions.laws)
            nats += max(0.0, different * each - laws)
            least = min(least, (wanted / len(rows) + laws) / each)
        if least > _MOST_DOUBTS:
            raise _Useless("at this loss, noise drawn otherwise gives such doubles about as often")
        return nats

    def _undecided(self) -> Undecided:
        claim = self._facts.claim
        assert doubles.tells(claim.noise)
        wide = (1 + claim.offset) * float(claim.noise.widen(self._epsilon)) / self._epsilon
        alone = doubles.settled_share(claim.noise, wide, self._looked.ulps)
        return Undecided(
            f"the doubles of {many(self._care.most_repeats, 'answer')} to one question do not "
            "settle it (--most-repeats allows more); one answer alone tells 0 from 1 in "
            f"about {100 * alone:.0f} % of cases"
        )
