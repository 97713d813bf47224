"""All mechanisms against the same three attacks, beside an attacker who asks nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from thinveil.attacker.findings import Found, PeopleFound, TableFound
from thinveil.attacker.strategies import strategy_for
from thinveil.auditing.attempt import curator_of, once
from thinveil.auditing.driver import Observer, Run
from thinveil.auditing.entries import confidence_of
from thinveil.auditing.options import Options
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import Counter
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import MissingExtra, UsageError
from thinveil.language.claims import claim_named
from thinveil.verdicts.comparing.candidates import AttributeTrial, Skipped, attribute_trial
from thinveil.verdicts.comparing.outcomes import Comparison, Line, Outcome
from thinveil.verdicts.comparing.shared import Settings, in_order, within
from thinveil.verdicts.judging.accuracy import by_marginals
from thinveil.verdicts.judging.possible import Possible, possible
from thinveil.verdicts.judging.scoring import score
from thinveil.verdicts.limits.bounds import largest_loss
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.results import knowledge_of
from thinveil.verdicts.said_of_trials import HOW_DRAWN
from thinveil.verdicts.trials import membership_trials, possible_targets


def compare(
    data: Dataset,
    settings: Settings | None = None,
    observer: Observer = lambda meter, about: None,
) -> Comparison:
    """Try membership, attribute inference and full reconstruction on every mechanism.

    A mechanism that needs a library which is not there is skipped with its reason, unless
    it is the only one asked for. Interrupted, the comparison holds what was done so far.

    Raises:
        MissingExtra: The only mechanism asked for needs a library that is not installed.
        UsageError: The settings do not fit the table.

    >>> from thinveil.curator.tables.people import people
    >>> compare(people(40), Settings(mechanisms=("idp",), people=4)).lines[0].everything
    True
    """
    settings = Settings() if settings is None else settings
    wanted = in_order(settings.mechanisms)
    settings = replace(settings, mechanisms=wanted)
    for name in wanted:
        with suppress(MissingExtra):  # it is missed, and said so, when its turn comes
            Curator(data, settings.facts(name, data).claim, seed=settings.seed)
    trials = (
        _members(data),
        attribute_trial(data, settings.people, settings.seed, settings.linking),
    )
    counter = IndexCounter(data.codes)
    lines: list[Line] = []
    interrupted = False
    try:
        for place, name in enumerate(wanted):
            line = Line(ClaimRecord.of(claim_named(name, settings.k)), ())
            lines.append(line)
            try:
                tasks = _tasks(data, settings, name, trials)
                lines[-1] = line = replace(line, possible=_law(settings, name, data))
                for number, task in enumerate(tasks):
                    done = (place + number / len(tasks)) / len(wanted)
                    part = 1 / len(tasks) / len(wanted)
                    outcome = task(within(observer, name, done, part), counter)
                    if isinstance(outcome, Outcome) and outcome.ended == "interrupted":
                        raise KeyboardInterrupt
                    lines[-1] = line = replace(line, outcomes=(*line.outcomes, outcome))
            except MissingExtra as missing:
                if wanted == (name,):
                    raise
                lines[-1] = replace(line, outcomes=(), missing=str(missing))
    except KeyboardInterrupt:  # whenever it comes, what was done until then counts
        interrupted = True
        lines = [each for each in lines if each.outcomes or each.missing]
    return Comparison(
        lines=tuple(lines),
        settings=settings,
        records=data.records,
        columns=tuple(f"{each.name}: {each.describe()}" for each in data.schema),
        drawn=tuple(
            each.describe() if isinstance(each, AttributeTrial) else each for each in trials
        ),
        interrupted=interrupted,
        read_as=data.remarks.assumed,
        doubts=data.remarks.doubts,
        numbers_public=data.remarks.numbers,
        rounded_away=data.remarks.rounded_away,
    )


def _law(settings: Settings, name: str, data: Dataset) -> Possible | None:
    """Return what the law of a mechanism says; of a control, for as many answers as are tried."""
    options = settings.options(name)
    claim = options.claim()
    loss = largest_loss(options.schedule(claim)) if claim.protected else None
    honest = claim.protected and not claim.leaks
    return possible(claim, data.records, loss, settings.most_repeats if honest else None)


def _members(data: Dataset) -> str | Skipped:
    """Say how targets of membership are drawn, or why they cannot be."""
    try:
        possible_targets(data)
    except UsageError as error:
        return Skipped("membership", str(error))
    return HOW_DRAWN


_Task = Callable[[Observer, Counter], Outcome | Skipped]


def _tasks(
    data: Dataset,
    settings: Settings,
    mechanism: str,
    trials: tuple[str | Skipped, AttributeTrial | Skipped],
) -> list[_Task]:
    """Return the three attacks on one mechanism, ready to be run."""
    members, targets = trials

    def membership(observer: Observer, counter: Counter) -> Outcome | Skipped:
        if isinstance(members, Skipped):
            return members
        options = settings.options(mechanism, attack="membership", trials=settings.people)
        start = time.perf_counter()
        tried = membership_trials(data, options, observer, counter=counter)
        ended = "interrupted" if tried.interrupted else "complete"
        return Outcome(
            task="membership",
            unit="trials",
            recovered=tried.guessed_right,
            stated=tried.trials,
            of=max(tried.trials, 1),
            baseline=tried.trials / 2,
            strategy=options.strategy_for(options.claim()),
            queries=tried.queries,
            questions=tried.questions,
            epsilon_claimed=tried.epsilon_claimed,
            error_probability=tried.error,
            ended=ended,
            reason=tried.reason,
            seconds=round(time.perf_counter() - start, 3),
            confidence=tried.confidence,
            trials=tried.trials,
            trial=tried,
            marginals=tried.trials / 2,
            transcript=tried.transcripts,
        )

    def attribute(observer: Observer, counter: Counter) -> Outcome | Skipped:
        if isinstance(targets, Skipped):
            return targets
        options = settings.options(mechanism, attack="attribute", people=targets.people)
        tried = once(curator_of(data, options, counter=counter), options, observer)
        found = tried.found
        # where the attack had not begun, nothing is said of anybody
        people = found.people if isinstance(found, PeopleFound) else ()
        said = [
            each.values == [(int(data.codes[row, each.column]), 1)]
            for row, person in zip(targets.rows, people, strict=bool(people))
            for each in person.values
        ]
        return _outcome(
            options,
            tried,
            unit="values",
            stated=len(said),
            recovered=sum(said),
            of=len(targets.rows) * len(targets.wanted),
            baseline=targets.baseline(data),
            marginals=targets.marginals(data),
            others=targets.others,
            trials=len(targets.rows),
        )

    def dataset(observer: Observer, counter: Counter) -> Outcome | Skipped:
        options = settings.options(mechanism)
        tried = once(curator_of(data, options, counter=counter), options, observer)
        found = tried.found
        assert isinstance(found, TableFound)
        scored = score(found, data)
        known = knowledge_of(found, data.schema, data)
        return _outcome(
            options,
            tried,
            unit="different records" if scored.distinct else "records",
            stated=int(found.counts[found.known == len(found.columns)].sum()),
            recovered=scored.recovered,
            of=scored.records,
            baseline=scored.guessed,
            marginals=by_marginals(data.codes, scored.distinct),
            bits_known=0.0 if known is None else known.bits,
        )

    return [membership, attribute, dataset]


def _outcome(options: Options, ended: Run[Found], **counted: Any) -> Outcome:
    claim = options.claim()
    return Outcome(
        task=options.attack,
        strategy=strategy_for(options.strategy, claim),
        queries=ended.meter.queries,
        questions=ended.meter.questions,
        epsilon_claimed=float(ended.spent) if claim.protected else None,
        error_probability=min(1.0, ended.meter.error.total + ended.meter.risk),
        ended=ended.ending,
        reason=ended.reason,
        seconds=round(ended.seconds, 3),
        confidence=confidence_of(options.confidence),
        transcript=ended.transcript,
        **counted,
    )
