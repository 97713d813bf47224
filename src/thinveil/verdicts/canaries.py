"""Canaries: planted values, so many of them possible that no guess could bring one back.

Auditing by canaries. The table gets one more attribute. In each run a record that is alone in all
others gets a value of it, drawn evenly from N public possibilities, and the attack, which knows
the other attributes, looks for it. A coin has two sides; a canary has N, so a few runs show a
loss that no number of coins at hand could. Each run has a curator of its own and fresh noise; of
all other records the value stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from thinveil.attacker.findings import PeopleFound
from thinveil.auditing.attempt import curator_of, once
from thinveil.auditing.driver import Meter, Observer, Run
from thinveil.auditing.entries import USUAL_CANARIES, USUAL_CONFIDENCE, confidence_of
from thinveil.auditing.options import TABLE, Options, usual
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import Claim
from thinveil.language.queries import About, Codes
from thinveil.language.schema import Grid, Schema
from thinveil.verdicts import said_of_trials
from thinveil.verdicts.judging.guesses import epsilon_by_canaries, seen_share
from thinveil.verdicts.judging.intervals import checked, clopper_pearson
from thinveil.verdicts.membership import SEEN
from thinveil.verdicts.names import sense_of
from thinveil.verdicts.trials import Totals, alone_in, at_hand, known_by
from thinveil.verdicts.typed import Mark, Plain

MANY: Final = 40
"""Canaries of a run from Python, unless told otherwise: at 99.9 % all of them show 29."""
_PLANTED: Final = 5  # so that canaries are drawn apart from worlds and samples
_SEEDS: Final = 2**62
_NAME: Final = "canary"


@dataclass(frozen=True, slots=True)
class Canaries(Plain):
    """What became of planted values; figures are of all runs together unless said otherwise.

    Args:
        planted: How many were planned; one that was not reached counts as not recovered.
        reached: How many runs there were.
        right: How many came back exactly.
        silent: Of how many the attack said nothing.
        values: From how many equally likely values each was drawn.
        epsilon_claimed: The largest claimed loss of one run; None where nothing is claimed.
        delta_claimed: The largest claimed delta of one run; the bound is at this delta.
        sense: In which sense that is claimed.
        most_queries: The most answers that one run drew.
        alone: How many records they were planted in.
        transcripts: A hash over what was asked and answered.
        cut: How many runs ended early.
        reason: Why they did.
        simulated: Whether a target elsewhere is audited, which the canaries did not ask.
    """

    DERIVED: ClassVar = (
        "share", "interval", "epsilon_at_least", "ceiling", "seen_share", "seen_loss",
        "seen_chance", "baseline_share", "interrupted", "sentence",
    )  # fmt: skip

    planted: int
    reached: int
    right: int
    silent: int
    values: int
    confidence: float
    epsilon_claimed: float | None
    delta_claimed: float
    sense: Annotated[str, Mark("claimed_sense")]
    queries: int
    questions: int
    most_queries: int
    alone: int
    seed: int
    transcripts: Annotated[str, Mark("transcripts_sha256")]
    cut: int = 0
    reason: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        checked(self.reached, self.planted, self.confidence)
        checked(self.right + self.silent, self.reached, self.confidence)
        checked(self.cut, self.reached, self.confidence)
        if self.values < 2:
            raise ValueError("a planted value needs others that it could have been")

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it."""
        return self.reached < self.planted

    @property
    def share(self) -> float:
        """The share of all planted values that came back."""
        return self.right / max(self.planted, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of that share."""
        return clopper_pearson(self.right, self.planted, self.confidence)

    @property
    def baseline_share(self) -> float:
        """The share of somebody who asks nothing."""
        return 1 / self.values

    @property
    def epsilon_at_least(self) -> float:
        """A lower bound on epsilon in the sense of differential privacy, at the confidence."""
        return self._shown(self.right)

    @property
    def ceiling(self) -> float:
        """The most that so many canaries could have shown."""
        return self._shown(self.planted)

    @property
    def seen_share(self) -> float | None:
        """The least share that would have shown a bound above 0 with a chance of `SEEN`.

        None where no share would have.
        """
        of = (self.planted, self.values, self.confidence, SEEN)
        least = seen_share(*of, delta=self.delta_claimed)
        return None if least == math.inf else least

    @property
    def seen_loss(self) -> float | None:
        """The loss that it takes at least to bring back such a share."""
        share = self.seen_share
        if share is None or not self.delta_claimed < share < 1:
            return None
        odds = (share - self.delta_claimed) / (1 - share)
        return max(0.0, math.log(self.values - 1) + math.log(odds))

    @property
    def seen_chance(self) -> float:
        """The chance with which that share would have been seen."""
        return SEEN

    def _shown(self, right: int) -> float:
        of = (self.planted, self.values, self.confidence)
        return epsilon_by_canaries(right, *of, delta=self.delta_claimed)

    def sentence(self) -> str:
        """Say what came back, and what that shows beside the claim."""
        return said_of_trials.canaries(self)


@dataclass(frozen=True, slots=True)
class _Canary:
    """One planted value: in which row, which value, and the seed of the noise."""

    row: int
    value: int
    seed: int


def canary_runs(
    data: Dataset,
    options: Options,
    observer: Observer = lambda meter, about: None,
    *,
    claim: Claim | None = None,
    simulated: bool = False,
) -> Canaries:
    """Plant as many values as the options say, one after the other, and look for each.

    The observer is called after each run. The claim is given where the options do not name it.
    Canaries are simulated where what is audited is elsewhere, and not asked by them.

    Raises:
        UsageError: No record of the table is alone in its values.
    """
    alone = alone_in(data, range(len(data.schema)))
    if not len(alone):
        raise UsageError(
            "no record of the table is alone in its values, so no planted value has somebody who "
            "is known by the rest"
        )
    claim = options.claim() if claim is None else claim
    whole, drawn = _planted(data, alone, options)
    totals = Totals(Meter(len(whole.schema)))
    right = silent = 0
    with suppress(KeyboardInterrupt):  # what was done until then counts
        for number, (each, world) in enumerate(_worlds(whole, drawn), start=1):
            mine = _options(options, data, whole.schema.names[-1], each)
            ended = once(curator_of(world, mine, claim), mine).or_interrupt()
            said = _said(ended)
            right += said == each.value
            silent += said is None
            totals.add(ended)
            observer(totals.meter, About("canaries", number / options.canaries))
    return Canaries(
        planted=options.canaries,
        reached=totals.runs,
        right=right,
        silent=silent,
        values=options.canary_values,
        confidence=confidence_of(options.confidence),
        epsilon_claimed=float(totals.meter.spent) if claim.protected else None,
        delta_claimed=float(totals.delta),
        sense=sense_of(claim),
        queries=totals.meter.queries,
        questions=totals.meter.questions,
        most_queries=totals.most,
        alone=len(alone),
        seed=options.seed,
        transcripts=totals.digest,
        cut=totals.cut,
        reason=totals.reason,
        simulated=simulated,
    )


def _planted(data: Dataset, alone: Codes, options: Options) -> tuple[Dataset, list[_Canary]]:
    """Return the table with one more attribute, and the values to plant in it."""
    rng, most = np.random.default_rng((options.seed, _PLANTED)), options.canary_values
    name = _NAME
    while name in data.schema.names:
        name += "_"
    schema = Schema((*data.schema, Grid(name, lower=0, upper=most - 1)))
    others = rng.integers(most, size=(data.records, 1))
    rows, values = rng.choice(alone, options.canaries), rng.integers(most, size=options.canaries)
    seeds = rng.integers(_SEEDS, size=options.canaries)
    each = zip(rows.tolist(), values.tolist(), seeds.tolist(), strict=True)
    return Dataset(schema, np.hstack([data.codes, others])), [_Canary(*one) for one in each]


def _worlds(whole: Dataset, drawn: list[_Canary]) -> Iterator[tuple[_Canary, Neighbour]]:
    """Return each canary with its world: the table in which it is planted."""
    counter, mark = whole.counter(), whole.digest()
    for each in drawn:
        taken = np.ascontiguousarray(whole.codes[[each.row]])
        given = taken.copy()
        given[0, -1] = each.value
        name = f"{mark} with {each.value} in {each.row}"
        yield each, Neighbour(whole.schema, whole.records, counter, taken, given, name)


def _options(options: Options, data: Dataset, name: str, canary: _Canary) -> Options:
    """Return the options of one run; what has no meaning in it is as usual."""
    known = known_by(data, range(len(data.schema)), data.codes[canary.row].tolist())
    told: dict[str, Any] = {each: usual(each) for each, entry in TABLE.items() if entry.attacks}
    told |= {"attack": "attribute", "people": (known,), "columns": (name,)}
    return replace(options, **told, seed=canary.seed, trials=0, canaries=0)


def _said(ended: Run[Any]) -> int | None:
    """Return the value that the attack names; None where it names none, or several."""
    found = ended.found
    people = found.people if isinstance(found, PeopleFound) else ()
    values = [code for each in people for one in each.values for code, _ in one.values]
    return values[0] if len(values) == 1 else None


def canaries(
    source: Any = None,
    *,
    schema: Schema | None = None,
    table: str | None = None,
    canaries: int = MANY,
    values: int = USUAL_CANARIES,
    confidence: object = USUAL_CONFIDENCE,
    observer: Observer = lambda meter, about: None,
    **settings: Any,
) -> Canaries:
    """Plant values in a table, let the attack look for them, and bound epsilon from below.

    Args:
        source: A `Dataset`, a path, or anything else that holds a table; the embedded people
            without one. The rows of a database are fetched.
        schema: What is public about a table given as a path or as a data frame.
        table: The name of a table in a database that is given by its address.
        canaries: How many values to plant, each in a table of its own.
        values: From how many equally likely values each is drawn.
        confidence: How sure the interval and the bound are to be.
        observer: Called after each run.
        **settings: The fields of `Options` that say how to attack: `mechanism`, `k`, `seed`, ...

    >>> from thinveil.curator.tables.people import people
    >>> canaries(people(50), mechanism="idp", canaries=4).right
    4
    """
    wanted = {"canaries": canaries, "canary_values": values, "confidence": confidence}
    told = at_hand("a planted value", source, schema, table, {**settings, **wanted})
    return canary_runs(*told, observer)
