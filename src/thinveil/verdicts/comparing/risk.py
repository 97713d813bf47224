"""Risk curves: how much is recovered as the claimed loss or the allowed answers grow.

Every point is a run of an attack, or a look at what a run had found by then: nothing is
interpolated. What is told of one person follows from the law of answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.auditing.attempt import curator_of, once
from thinveil.auditing.driver import Meter, Observer
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import claim_named
from thinveil.language.queries import About
from thinveil.language.texts import one_line
from thinveil.verdicts.comparing import said_of_risk
from thinveil.verdicts.comparing.one_person import ONE_PERSON, Advantage, advantages
from thinveil.verdicts.comparing.shared import Settings, within
from thinveil.verdicts.judging.chance import expected_overlap
from thinveil.verdicts.judging.scoring import coarse, counted, evenly, overlap
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.results import knowledge_of
from thinveil.verdicts.typed import FLAT, Plain

AGAINST_LOSS: Final = ("idp", "idp-noisy", "dp-textbook", "dp-laplace")
"""The mechanisms whose total loss is varied; the last one is honest, and drawn so."""
AGAINST_ANSWERS: Final = ("unprotected", "idp", "idp-integer", "idp-binary", "idp-noisy", "bdp")
"""The mechanisms whose number of answers is varied."""
PILOT: Final = "idp-noisy"
"""The mechanism that takes most answers: what it takes decides how many all are allowed."""
SEARCH: Final = "posterior"
"""The strategy of all runs against the claimed loss."""
USUAL_RECORDS: Final = 60
"""How many records the runs against the claimed loss attack."""
SEEDS: Final = 3
"""How many runs, with different noise, a point has."""
TOTALS: Final = tuple(f"1e{power}" for power in range(-12, 3)) + tuple(
    f"{10 ** (power / 4):.3g}" for power in range(12, 25)
)
"""Total losses from 1e-12 to 1e6: one a decade, and four where honest answers begin to tell."""
_SPARSE: Final = 2  # only every second total, where none is known to make a difference
_LOOKS: Final = 1.08  # the next look at a run is due after so many times the answers
_SAMPLE: Final = 3  # so that samples and trials draw apart
_ROOM: Final = 2  # the allowance, in runs against the always-noisy mechanism


@dataclass(frozen=True, slots=True)
class Known:
    """How much of a table is known: which share of records entirely, and of values.

    For Bootstrap DP, records are different ones. A value counts together with all values before
    it in the same record, in the order of the search.
    """

    records: float
    values: float


@dataclass(frozen=True, slots=True)
class LossPoint:
    """One run with a total loss to spend, split equally over the allowed answers.

    `epsilon` is the total that was granted, `epsilon_claimed` how much of it was used.
    """

    mechanism: str
    epsilon: float
    seed: int
    known: Annotated[Known, FLAT]
    queries: int
    epsilon_claimed: float
    ended: str
    reason: str


@dataclass(frozen=True, slots=True)
class AnswersPoint:
    """What is known to an attacker after so many answers, if the curator allows no more.

    `bits` is the share of all bits that is known (`attacker.known_bits`), columns by themselves
    included.
    """

    mechanism: str
    queries: int
    known: Annotated[Known, FLAT]
    bits: float


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Runs with a total loss to spend: on how many records, with how many answers allowed.

    The runs search for whole records. What the same total tells of one person, by the best
    attack there is, stands in `one_person`.
    """

    records: int
    answers_allowed: int
    strategy: str
    baseline_records: float
    baseline_values: float
    runs: tuple[LossPoint, ...]
    one_person: tuple[Advantage, ...] = ()

    @property
    def mechanisms(self) -> list[str]:
        """Whom they attacked."""
        return list(dict.fromkeys(each.mechanism for each in self.runs))


@dataclass(frozen=True, slots=True)
class AnswersCurve:
    """What is known after so many answers, at a claimed loss each, of how many records."""

    records: int
    epsilon_per_query: str
    baseline_records: float
    baseline_values: float
    points: tuple[AnswersPoint, ...]

    @property
    def mechanisms(self) -> list[str]:
        """Whom the attacks were on."""
        return list(dict.fromkeys(each.mechanism for each in self.points))


@dataclass(frozen=True, slots=True)
class Risk(Plain):
    """Both risk curves, beside what guessing knows.

    `kinds` has the kind of each mechanism: grey, red, pink or blue, as in `names.KINDS`.
    """

    DERIVED: ClassVar = ("verdict",)

    against_loss: LossCurve
    against_answers: AnswersCurve
    kinds: Mapping[str, str]
    seed: int
    interrupted: bool

    def loss_curve(self, mechanism: str) -> list[tuple[float, list[Known]]]:
        """Return, for each total loss, what the runs with different seeds found."""
        mine: dict[float, list[Known]] = {}
        for each in self.against_loss.runs:
            if each.mechanism == mechanism:
                mine.setdefault(each.epsilon, []).append(each.known)
        return sorted(mine.items())

    def least_loss(self, mechanism: str) -> float | None:
        """Return the smallest total at which every run found everything."""
        for epsilon, known in self.loss_curve(mechanism):
            if all(each.records == 1 for each in known):
                return epsilon
        return None

    def idle_loss(self, mechanism: str) -> float | None:
        """Return the largest total up to which no run found any record."""
        idle = None
        for epsilon, known in self.loss_curve(mechanism):
            if any(each.records for each in known):
                break
            idle = epsilon
        return idle

    def one_person(self, mechanism: str) -> list[Advantage]:
        """Return, for each total loss, how well the best attack tells of one person."""
        return [each for each in self.against_loss.one_person if each.mechanism == mechanism]

    def advantage_at(self, mechanism: str, total: float) -> Advantage | None:
        """Return that of the largest total up to this one."""
        within = [each for each in self.one_person(mechanism) if each.epsilon <= total]
        return within[-1] if within else None

    def answers_curve(self, mechanism: str) -> list[AnswersPoint]:
        """Return what is known after so many answers of one mechanism."""
        return [each for each in self.against_answers.points if each.mechanism == mechanism]

    def answers_for(self, mechanism: str, share: float, records: bool = False) -> int | None:
        """Return after how many answers such a share of bits, or records, was first seen known."""
        for each in self.answers_curve(mechanism):
            if (each.known.records if records else each.bits) >= share - 1e-12:
                return each.queries
        return None

    def verdict(self) -> str:
        """Say what the curves show."""
        return one_line(said_of_risk.shown(self))

    sentence = verdict


def known_of(found: TableFound, data: Dataset) -> Known:
    """Return how much of a table a reconstruction knows, each value in its record.

    A value counts where the same record is known up to it: so the share of values is the
    mean, over depths of the search, of the share of records known up to there.
    """
    truth = coarse(data.codes[:, found.columns], found.widths)
    shares = []
    for depth in range(1, len(found.columns) + 1):
        deep = found.known >= depth
        mine = (found.codes[deep][:, :depth], found.counts[deep])
        if found.distinct:
            mine = counted(mine[0], distinct=True)
        actual = counted(truth[:, :depth], found.distinct)
        shares.append(overlap(*actual, *mine) / len(actual[0]))
    return Known(shares[-1], float(np.mean(shares)))


def guessed(data: Dataset, columns: Sequence[int]) -> Known:
    """Return how much guessing from public facts knows on average, by the same measure."""
    truth, even = (each[:, columns] for each in (data.codes, evenly(data.schema, data.records)))
    shares = [
        expected_overlap(truth[:, :depth], even[:, :depth], distinct=False) / data.records
        for depth in range(1, len(columns) + 1)
    ]
    return Known(shares[-1], float(np.mean(shares)))


def risk(
    data: Dataset,
    settings: Settings | None = None,
    observer: Observer = lambda meter, about: None,
    *,
    records: int = USUAL_RECORDS,
    totals: Sequence[str] = TOTALS,
    seeds: int = SEEDS,
) -> Risk:
    """Run the attacks behind both risk curves; interrupted, return those that ended.

    Against the claimed loss: a sample of the table, the same search and the same allowance
    of answers for every mechanism, the total split equally over the allowance; only the honest
    one at every total. Beside it the best attack on one person. Against the
    number of answers: the whole table, one run a mechanism, looked at again and again.

    Args:
        data: The table.
        settings: Seeds, group size, error and so on; the mechanisms are those of this module.
        observer: Called after each round.
        records: How many records the first curve is drawn on.
        totals: The total losses of the first curve.
        seeds: How many runs, with different noise, each of its points has.
    """
    settings = Settings() if settings is None else settings
    sample = sampled(data, records, settings.seed)
    losses: list[LossPoint] = []
    allowances: list[AnswersPoint] = []
    interrupted, answers = False, 0
    columns = tuple(range(len(data.schema)))
    try:
        pilot = settings.options(PILOT, strategy=SEARCH)
        watch = within(observer, "how many answers it takes", 0.0, 0.0)
        first = once(curator_of(sample, pilot), pilot, watch)
        columns = _table(first.found).columns
        answers = _round_up(_ROOM * first.meter.queries)
        losses.extend(_loss_runs(sample, settings, answers, totals, seeds, observer))
        part = 0.5 / len(AGAINST_ANSWERS)
        for place, name in enumerate(AGAINST_ANSWERS):
            watch = within(observer, name, 0.5 + place * part, part)
            allowances += _looks(data, settings, name, watch)
    except KeyboardInterrupt:
        interrupted = True
    alone = _one_person(losses, sample.records, settings, answers)
    blind, even = (guessed(each, columns) for each in (sample, data))
    each_answer = settings.epsilon_per_query
    return Risk(
        LossCurve(
            sample.records, answers, SEARCH, blind.records, blind.values, tuple(losses), alone
        ),
        AnswersCurve(data.records, each_answer, even.records, even.values, tuple(allowances)),
        kinds={
            name: ClaimRecord.of(claim_named(name)).kind
            for name in dict.fromkeys((*AGAINST_LOSS, *AGAINST_ANSWERS))
        },
        seed=settings.seed,
        interrupted=interrupted,
    )


def _loss_runs(
    sample: Dataset,
    settings: Settings,
    answers: int,
    totals: Sequence[str],
    seeds: int,
    observer: Observer,
) -> Iterator[LossPoint]:
    """Run every mechanism with every total and every seed."""
    counter = IndexCounter(sample.codes)
    runs = [
        (total, name, settings.seed + more)
        for place, total in enumerate(totals)
        for name in AGAINST_LOSS
        if claim_named(name).control or place % _SPARSE == 0
        for more in range(seeds)
    ]
    for place, (total, name, seed) in enumerate(runs):
        shared = {"split": "equal", "answers": answers, "most_repeats": answers}
        mine = replace(settings, seed=seed)
        options = mine.options(name, strategy=SEARCH, epsilon=total, **shared)
        step = 0.5 / len(runs)
        watch = within(observer, f"{name}, total {total}", place * step, step)
        curator = curator_of(sample, options, counter=counter)
        ended = once(curator, options, watch).or_interrupt()
        yield LossPoint(
            mechanism=name,
            epsilon=float(total),
            seed=seed,
            known=known_of(_table(ended.found), sample),
            queries=ended.meter.queries,
            epsilon_claimed=float(ended.spent),
            ended=ended.ending,
            reason=ended.reason,
        )


def _one_person(
    runs: Sequence[LossPoint], records: int, settings: Settings, answers: int
) -> tuple[Advantage, ...]:
    """Return what every total of the runs, and some between, tells of one person."""
    totals = {each.epsilon for each in runs}
    between = {float(each) for each in ONE_PERSON if min(totals, default=1e9) <= float(each)}
    told: list[Advantage] = []
    for name in dict.fromkeys(each.mechanism for each in runs):
        mine: dict[float, list[bool]] = {}
        for each in runs:
            if each.mechanism == name:
                mine.setdefault(each.epsilon, []).append(each.known.records == 1)
        found = [total for total, whole in mine.items() if all(whole)]
        claim = settings.options(name).claim()
        told += advantages(name, claim, records, totals | between, answers, found)
    return tuple(told)


def _looks(data: Dataset, settings: Settings, name: str, observer: Observer) -> list[AnswersPoint]:
    """Run one attack, looking at what it knows again and again.

    When the driver calls, the attack has not seen the last answers yet: what it knows is
    what a curator leaves it with who refuses this batch.
    """
    points: list[AnswersPoint] = []
    before, due = 0, 1.0

    def look(meter: Meter, about: About) -> None:
        nonlocal before, due
        observer(meter, about)
        if before >= due:
            points.append(_after(name, before, _table(about.so_far()), data))
            due = before * _LOOKS
        before = meter.queries

    options = settings.options(name)
    ended = once(curator_of(data, options), options, look).or_interrupt()
    found = _table(ended.found)
    return [*points, _after(name, ended.meter.queries, found, data)]


def _after(name: str, queries: int, found: TableFound, data: Dataset) -> AnswersPoint:
    """Return what is known after so many answers."""
    known = knowledge_of(found, data.schema, data)
    assert known is not None
    bits = min(1.0, known.bits / known.of_all) if known.of_all else 1.0
    return AnswersPoint(name, queries, known_of(found, data), bits)


def _table(found: object) -> TableFound:
    assert isinstance(found, TableFound)
    return found


def _round_up(number: float) -> int:
    """Round up to two digits: a number to remember.

    >>> _round_up(163_254)
    170000
    """
    unit: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


def sampled(data: Dataset, records: int, seed: int) -> Dataset:
    """Return so many records of a table, drawn by a seed, or all if there are no more."""
    if records >= data.records:
        return data
    rows = np.random.default_rng((seed, _SAMPLE)).permutation(data.records)[:records]
    return data.sample(np.sort(rows))
