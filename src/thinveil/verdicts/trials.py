"""Membership as a trial that means something: is this person in the table, or a coin says no?

Each trial draws a target from the records of the table and flips a coin for the world that
the attack is shown: the table as it is, or its neighbour in which the target's record was
replaced. Targets are drawn in the same way in both worlds, so whoever asks nothing is right
by chance only. The attack returns a score, how much the answers speak for "in", and so a guess.
How many guesses are right bounds from below the epsilon for which the mechanism could be
epsilon-differentially private.

The experimenter draws the worlds and keeps the coins. The attack is told what the target is
known by, and sees answers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from thinveil.auditing.attempt import curator_of, hashed, trial_of
from thinveil.auditing.driver import Meter, Observer, Run
from thinveil.auditing.entries import USUAL_CONFIDENCE, confidence_of
from thinveil.auditing.options import Options
from thinveil.auditing.settings import held_of, options_of
from thinveil.auditing.sources import truth_of
from thinveil.auditing.targets import Target
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import Counter
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import Claim
from thinveil.language.queries import About, Codes
from thinveil.language.schema import Schema
from thinveil.verdicts.judging.abstaining import choose
from thinveil.verdicts.judging.tradeoff import trade_off
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.names import sense_of
from thinveil.verdicts.phrases import plain

USUAL_TRIALS: Final = 2000
"""Coin flips of a trial, unless told otherwise: about a thousand a side."""
_WORLDS: Final = 4  # so that worlds are drawn apart from samples and other trials
_SEEDS: Final = 2**62
_LARGE: Final = 700.0  # e to more than this is no double
_NOTHING_FOUND: Final = "no usable difference was found: "  # an attack says so; a trial has a score


@dataclass(frozen=True, slots=True)
class Coin:
    """One trial, as the experimenter knows it: whose row, which other row takes its place.

    The world is the table as it is where `inside`, the noise has a seed of its own, and `hunch`
    is what somebody says who asks nothing.
    """

    row: int
    other: int
    inside: bool
    seed: int
    hunch: bool


class Totals:
    """Adds up what runs asked that have a curator each, and why some of them ended early."""

    def __init__(self, meter: Meter) -> None:
        self.meter, self.delta = meter, Fraction(0)
        self.runs = self.most = self.cut = 0
        self.reason = ""
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """A hash over everything asked and answered."""
        return self._digest.hexdigest()

    def add(self, ended: Run[Any]) -> None:
        """Add one run; of claimed losses, the largest of one run counts."""
        one, total = ended.meter, self.meter
        for name in ("queries", "questions", "rounds", "trivial", "by_column"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        total.spent, self.delta = max(total.spent, ended.spent), max(self.delta, ended.delta)
        self.runs += 1
        self.most = max(self.most, one.queries)
        self._digest.update(ended.transcript.encode())
        if ended.ending != "complete":
            self.cut += 1
            self.reason = ended.reason.removeprefix(_NOTHING_FOUND)


def possible_targets(data: Dataset) -> Codes:
    """Return the rows that no other row equals: of those, "in the table" is yes or no.

    Raises:
        UsageError: There is no such row, or nothing to replace it by.
    """
    alone = alone_in(data, range(len(data.schema)))
    if not len(alone):
        raise UsageError(
            "no record of the table is alone in its values, so a trial of membership has nobody "
            "to ask about"
        )
    if data.records < 2:
        raise UsageError("a trial of membership needs at least two records")
    return alone


def coins(data: Dataset, alone: Codes, trials: int, seed: int) -> list[Coin]:
    """Draw targets among some rows, and worlds.

    A replaced record becomes a copy of another record of the table.
    """
    rng = np.random.default_rng((seed, _WORLDS))
    rows = rng.choice(alone, trials)
    others = (rows + rng.integers(1, data.records, trials)) % data.records
    inside, hunch = rng.integers(2, size=(2, trials), dtype=np.int8).astype(bool).tolist()
    seeds = rng.integers(_SEEDS, size=trials).tolist()
    drawn = zip(rows.tolist(), others.tolist(), inside, seeds, hunch, strict=True)
    return [Coin(*each) for each in drawn]


def alone_in(data: Dataset, columns: Sequence[int]) -> Codes:
    """Return the rows that share their values in these columns with no other row."""
    _, first, counts = np.unique(
        data.codes[:, columns], axis=0, return_index=True, return_counts=True
    )
    rows: Codes = np.sort(first[counts == 1])
    return rows


def known_by(data: Dataset, columns: Sequence[int], codes: Sequence[int]) -> dict[str, str]:
    """Return what is known of somebody as texts; a missing value is an empty one."""
    known = {}
    for column, code in zip(columns, codes, strict=True):
        value = plain(data.schema[column].decode(code))
        known[data.schema[column].name] = "" if value is None else str(value)
    return known


def membership_trials(
    data: Dataset,
    options: Options,
    observer: Observer = lambda meter, about: None,
    *,
    claim: Claim | None = None,
    meter: Meter | None = None,
    counter: Counter | None = None,
    simulated: bool = False,
) -> Trial:
    """Score membership in worlds that coins decide, and guess the coins.

    The observer is called after each trial. The claim is given where the options do not name it.
    The meter counts what is asked in all trials; its claimed loss is the largest of one, since
    every trial has a curator of its own. The counter is that of the table, where it is at hand.
    Trials are simulated where what is audited is elsewhere, and not asked by them.

    Raises:
        UsageError: The table has nobody to ask about.
    """
    trials, alone = options.trials, possible_targets(data)
    drawn = coins(data, alone, trials, options.seed)
    claim = options.claim() if claim is None else claim
    totals = Totals(Meter(len(data.schema)) if meter is None else meter)
    scores: list[float] = []
    worlds = _worlds(data, drawn, IndexCounter(data.codes) if counter is None else counter)
    with suppress(KeyboardInterrupt):  # what was tried until then counts
        for number, (coin, world) in enumerate(zip(drawn, worlds, strict=True), start=1):
            target = curator_of(world, options, claim, seed=coin.seed)
            known = dict(enumerate(data.codes[coin.row].tolist()))
            ended = hashed(trial_of(target, options, known), mark=target.fingerprint)
            if ended.ending == "interrupted":
                break
            scores.append(ended.found or 0.0)
            totals.add(ended)
            totals.meter.risk += 1 / (1 + math.exp(min(abs(scores[-1]), _LARGE)))
            observer(totals.meter, About("trials of membership", number / trials))
    return _judged(drawn, scores, totals, options, claim, len(alone), simulated)


def _judged(
    drawn: Sequence[Coin],
    scores: Sequence[float],
    totals: Totals,
    options: Options,
    claim: Claim,
    alone: int,
    simulated: bool,
) -> Trial:
    """Guess by scores, and hold the guesses against the coins."""
    confidence, meter = confidence_of(options.confidence), totals.meter
    planned = len(scores) == options.trials
    drawn = drawn[: len(scores)]
    inside, hunch = (
        np.array([getattr(coin, name) for coin in drawn], np.bool_) for name in ("inside", "hunch")
    )
    # a trial ends when it is sure: what is beyond tells no guess from another
    sure = -math.log(float(options.error))
    weighed = np.clip(np.array(scores, np.float64), -sure, sure)
    said = weighed > 0
    return Trial(
        inside=int(inside.sum()),
        outside=int((~inside).sum()),
        right=int((said & inside).sum()),
        wrong=int((said & ~inside).sum()),
        guesses=choose(
            weighed, inside, confidence=confidence, delta=float(totals.delta), planned=planned
        ),
        curve=trade_off(weighed, inside, confidence) if planned else None,
        hunches=(int((hunch & inside).sum()), int((hunch & ~inside).sum())),
        confidence=confidence,
        epsilon_claimed=float(meter.spent) if claim.protected else None,
        delta_claimed=float(totals.delta),
        sense=sense_of(claim),
        queries=meter.queries,
        questions=meter.questions,
        most_queries=totals.most,
        most_repeats=1 if claim.reads_exactly else options.most_repeats,
        alone=alone,
        seed=options.seed,
        asked_for=options.trials,
        transcripts=totals.digest,
        cut=totals.cut,
        error=min(1.0, meter.risk),
        reason=totals.reason,
        simulated=simulated,
    )


def _worlds(data: Dataset, drawn: Sequence[Coin], counter: Counter) -> Iterator[Neighbour]:
    """Return the world of each trial: the table as it is, or without the target."""
    mark = data.digest()
    for coin in drawn:
        row = coin.row if coin.inside else coin.other
        taken, given = (np.ascontiguousarray(data.codes[[each]]) for each in (coin.row, row))
        name = f"{mark} less {coin.row} plus {row}"
        yield Neighbour(data.schema, data.records, counter, taken, given, name)


def trial(
    source: Any = None,
    *,
    schema: Schema | None = None,
    table: str | None = None,
    trials: int = USUAL_TRIALS,
    confidence: object = USUAL_CONFIDENCE,
    observer: Observer = lambda meter, about: None,
    **settings: Any,
) -> Trial:
    """Try membership on a table and its neighbours, and bound epsilon from below.

    Args:
        source: A `Dataset`, a path, or anything else that holds a table; the embedded people
            without one. The rows of a database are fetched.
        schema: What is public about a table given as a path or as a data frame.
        table: The name of a table in a database that is given by its address.
        trials: How many coins to flip.
        confidence: How sure the intervals and the bound are to be.
        observer: Called after each trial.
        **settings: The fields of `Options` that say how to attack: `mechanism`, `k`, `seed`, ...

    >>> from thinveil.curator.tables.people import people
    >>> trial(people(50), mechanism="idp", trials=60).fpr
    0.0
    """
    wanted = {**settings, "attack": "membership", "trials": trials, "confidence": confidence}
    return membership_trials(*at_hand("a trial", source, schema, table, wanted), observer)


def at_hand(
    what: str, source: Any, schema: Schema | None, table: str | None, wanted: dict[str, Any]
) -> tuple[Dataset, Options]:
    """Return a table whose neighbours can be made, and the options of an attack on it.

    Raises:
        UsageError: There is no table at hand, only something that answers.
    """
    held = held_of(source, schema, table, wanted.get("precision"))
    if isinstance(held, Target):
        raise UsageError(f"{what} needs the table itself, to make its neighbours from")
    data = truth_of("self", held, {})
    assert data is not None
    return data, options_of(None, wanted, held)
