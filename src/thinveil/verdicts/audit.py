"""One function that audits: a table, or anything that answers batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from thinveil.attacker.channel import simpler
from thinveil.attacker.code_length import code_length
from thinveil.attacker.findings import Found, TableFound
from thinveil.auditing.attacks import planned
from thinveil.auditing.attempt import Attempt, attempt_on, checked, checks_of, curator_of, paced
from thinveil.auditing.driver import Ending, Meter, Observer, Run
from thinveil.auditing.entries import confidence_of
from thinveil.auditing.options import Options
from thinveil.auditing.provenance import Provenance
from thinveil.auditing.settings import held_of, options_of
from thinveil.auditing.sources import elsewhere, truth_of
from thinveil.auditing.targets import Target, fingerprint, is_target
from thinveil.auditing.trace import Tracer
from thinveil.auditing.transcript import Header, Transcript
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset, Held
from thinveil.curator.tables.reading import NO_REMARKS
from thinveil.errors import ThinveilError, TooManyQueries, TranscriptError, UsageError
from thinveil.language import mechanisms
from thinveil.language.laws import LAWS
from thinveil.language.schema import Schema
from thinveil.language.texts import quoted
from thinveil.verdicts.canaries import canary_runs
from thinveil.verdicts.judging.accuracy import accuracy_of
from thinveil.verdicts.judging.scoring import score
from thinveil.verdicts.limits.bounds import Given, bounds_of
from thinveil.verdicts.results import knowledge_of, result_of
from thinveil.verdicts.staircase import staircase_of
from thinveil.verdicts.trials import membership_trials
from thinveil.verdicts.verdict import Verdict

_log = logging.getLogger(__name__)
_RUN_OUT: Final = ("complete", "undecided", "cap")
"""Endings after which trials have their turn: each of them has a cap of its own."""


def audit(  # noqa: PLR0913, keywords of the public interface
    source: Any = None,
    *,
    schema: Schema | None = None,
    table: str | None = None,
    truth: Any = None,
    options: Options | None = None,
    transcript: str | Path | None = None,
    resume: str | Path | None = None,
    origin: Mapping[str, Any] | None = None,
    command: str | None = None,
    exhibits: bool = False,
    observer: Observer = lambda meter, about: None,
    **settings: Any,
) -> Verdict:
    """Attack a table or a target, and say what was learned.

    Args:
        source: A `Dataset`, a path, anything that speaks Arrow, an Ibis table, the address of
            a database or of a service, or a target with `facts` and `answer(batch)`. Without
            one, the embedded synthetic people.
        schema: What is public about a table given as a path or as a data frame.
        table: The name of a table in a database that is given by its address.
        truth: The true table, for scoring what was learned of a target or a database: a
            `Dataset`, a path, or "self" to fetch the rows of a database.
        options: All settings at once, instead of `settings`.
        transcript: A file to keep the transcript in.
        resume: The transcript of an interrupted run to go on with; it brings its options.
        origin: Where the source came from, kept in the transcript for the command line.
        command: The command line, for the result to name.
        exhibits: Whether to ask a little more of a table at hand, for the pictures of a report.
        observer: Called after each round with the meter and what the round was about.
        **settings: The fields of `Options`; `known` may be one person or a list of people.

    Returns:
        A verdict. `print(verdict.sentence())` says it in a sentence.

    >>> audit(attack="membership", known={"age": 34, "job": "nurse"}).exit_code
    0
    """
    recorded = Transcript.resume(Path(resume)) if resume is not None else None
    with ExitStack() as stack:
        held = held_of(source, schema, table, _steps(options, settings, recorded))
        if held is not source and (close := getattr(held, "close", None)) is not None:
            stack.callback(close)
        if recorded is not None:
            force = settings.pop("force", False)
            if options is not None or settings:
                raise UsageError("a resumed run brings its own options: give none but force")
            options = _recorded_options(recorded)
            options = replace(options, force=options.force or bool(force))
        else:
            options = options_of(options, settings, held)
        truth = truth if isinstance(truth, Dataset) else truth_of(truth, held, origin or {})
        if truth is None and (options.trials or options.canaries):
            what = "trials need the table, to make its neighbours from"
            if not options.trials:
                what = "canaries need the table, to plant them in"
            raise UsageError(
                f"{what}: give --truth FILE (or self, for a database), or none of them"
            )
        derived = _derived(source, schema, origin or {})
        remarks = getattr(held, "remarks", NO_REMARKS)
        if options.trials_only:
            verdict = _trials_alone(held, options, truth, observer, command)
            verdict = replace(verdict, derived=derived, remarks=remarks)
            return _with_canaries(verdict, truth, observer, isinstance(held, Target))
        target = held if isinstance(held, Target) else curator_of(held, options)
        options = planned(options, target.facts, checked(target, options))
        mark = fingerprint(target)
        if recorded is not None and recorded.header.fingerprint != mark:
            raise TranscriptError(
                f"{resume} was recorded on another table or target, or on this one before it "
                "was changed; its answers mean nothing here"
            )
        if recorded is None:
            options = paced(options, target)
            header = Header(mark, {**options.plain(), "origin": dict(origin or {})})
            if transcript is None and getattr(held, "remote", False):
                transcript = _usual_name(header)  # a run of hours survives whatever happens
            recorded = Transcript(header, None if transcript is None else Path(transcript))
        named = (origin or {}).get("table") if not isinstance(source, str) else source
        verdict = _run(options, target, truth, recorded, observer, command, elsewhere(named))
        verdict = replace(verdict, derived=derived, remarks=remarks)
        if verdict.run.ending in _RUN_OUT and options.trials and truth is not None:
            verdict = _with_trials(verdict, truth, observer, isinstance(held, Target))
        verdict = _with_canaries(verdict, truth, observer, isinstance(held, Target))
        drawn = options.attack == "dataset" and not verdict.record().only_claim
        if exhibits and drawn and not isinstance(held, Target):
            verdict = replace(verdict, staircase=staircase_of(held, options, verdict.run.found))
        return verdict


def _recorded_options(recorded: Transcript) -> Options:
    """Return the options of a run that is resumed."""
    try:
        return Options.from_plain(recorded.header.options)
    except UsageError as error:
        raise TranscriptError(
            f"{recorded.path}: its options cannot be used by this version: {error}"
        ) from None


def _steps(
    options: Options | None, settings: Mapping[str, Any], recorded: Transcript | None
) -> Mapping[str, Any]:
    """Return the precision that is wanted, for columns that have no even steps of their own."""
    if recorded is not None:
        options = _recorded_options(recorded)
    steps = settings.get("precision") if options is None else options.precision
    return steps if isinstance(steps, Mapping) else {}


def _run(
    options: Options,
    target: Target,
    truth: Dataset | None,
    recorded: Transcript,
    observer: Observer,
    command: str | None,
    address: str,
) -> Verdict:
    """Run the attack that the options ask for, and keep its transcript whatever happens."""
    try:
        attempt: Attempt[Any] = (checks_of if options.check_claim else attempt_on)(target, options)
        tracer = Tracer(observer, target.facts.schema)
        how = attempt.schedule.describe()
        _log.info("asking under %s, with %s", target.facts.claim.name, how)
        traced = options.attack == "dataset" and not options.check_claim
        ended = attempt.run(tracer if traced else observer, recorded)
        counted = (ended.meter.rounds, ended.meter.queries, ended.seconds)
        _log.info("ended (%s) after %d rounds and %d answers in %.3f s", ended.ending, *counted)
        if ended.ending in ("interrupted", "target") and ended.resumable:
            _keep(recorded)
        verdict = _verdict(options, target, truth, ended, recorded)
        asked = ended.transcript if ended.meter.drawn else None
        looks = tracer.looks(ended.found) if traced and ended.ending != "broken" else ()
        return replace(verdict, looks=looks, provenance=Provenance.now(command, asked))
    except BaseException as error:
        with suppress(TranscriptError):
            _keep(recorded)
        if recorded.path is not None and not recorded.empty:
            more = " --force" if isinstance(error, TooManyQueries) else ""
            error.add_note(how_to_go_on(str(recorded.path), address) + more)
        raise
    finally:
        recorded.close()


def _derived(source: Any, schema: Schema | None, origin: Mapping[str, Any]) -> bool:
    """Tell whether what counts as public was taken from the table itself."""
    if is_target(source):
        return False
    if "table" in origin:
        return origin["table"] is not None and not origin.get("schema")
    return source is not None and schema is None and not hasattr(type(source), "counter")


def _with_trials(verdict: Verdict, truth: Dataset, observer: Observer, simulated: bool) -> Verdict:
    """Add trials of membership; where the table has nobody to ask about, say so."""
    return _with("membership", membership_trials, verdict, truth, observer, simulated)


def _with_canaries(
    verdict: Verdict, truth: Dataset | None, observer: Observer, simulated: bool
) -> Verdict:
    """Add planted values, unless none are wanted, or somebody stopped the run before."""
    trial, options = verdict.membership, verdict.options
    stopped = verdict.run.ending not in _RUN_OUT or (trial is not None and trial.interrupted)
    if not options.canaries or truth is None or stopped:
        return verdict
    return _with("canaries", canary_runs, verdict, truth, observer, simulated)


def _with(
    name: str,
    runs: Callable[..., Any],
    verdict: Verdict,
    truth: Dataset,
    observer: Observer,
    simulated: bool,
) -> Verdict:
    """Add what further runs showed; where the table does not fit them, say so."""
    claim = verdict.facts.claim
    try:
        found = runs(truth, verdict.options, observer, claim=claim, simulated=simulated)
    except UsageError as error:
        said = filter(None, (verdict.notice, str(error)))
        return replace(verdict, notice=". ".join(dict.fromkeys(each.rstrip(".") for each in said)))
    return replace(verdict, **{name: found})


def _trials_alone(
    held: Held | Target,
    options: Options,
    truth: Dataset | None,
    observer: Observer,
    command: str | None,
) -> Verdict:
    """Run trials of membership and nothing else."""
    assert truth is not None
    elsewhere = isinstance(held, Target)
    facts = held.facts if isinstance(held, Target) else curator_of(held, options).facts
    meter = Meter(len(facts.schema))
    start = time.perf_counter()
    trial = membership_trials(
        truth, options, observer, claim=facts.claim, meter=meter, simulated=elsewhere
    )
    if trial.simulated:
        meter = Meter(len(facts.schema))  # of the target, nothing was asked
    _log.info("trials of %d answers in %.3f s", meter.queries, time.perf_counter() - start)
    ending: Ending = "interrupted" if trial.interrupted else "complete"
    reason = "the trials were interrupted" if trial.interrupted else ""
    if not trial.queries and trial.reason:
        ending, reason = "cap", trial.reason
    ended: Run[Found | None] = Run(None, ending, reason, meter, meter.spent, resumable=False)
    return Verdict(
        options=options,
        facts=facts,
        run=ended,
        score=None,
        findings=None,
        seconds=time.perf_counter() - start,
        seed=options.seed,
        membership=trial,
        provenance=Provenance.now(command, trial.transcripts),
    )


def how_to_go_on(transcript: str, address: str = "") -> str:
    """Say how a run that ended early is resumed from the command line.

    Args:
        transcript: The file with its answers.
        address: What else must be named there: a service, or whatever gets a token or password.
    """
    source = f"{quoted(address)} " if address else ""
    return f"Nothing is lost. To go on:  thinveil audit {source}--resume {quoted(transcript)}"


def _keep(transcript: Transcript) -> None:
    """Make sure that answers paid for are on disk."""
    if transcript.path is None and not transcript.empty:
        transcript.save(_usual_name(transcript.header))


def _usual_name(header: Header) -> Path:
    return Path(f"thinveil-{header.run}.transcript")


def _verdict(
    options: Options,
    target: Target,
    truth: Dataset | None,
    ended: Run[Any],
    transcript: Transcript,
) -> Verdict:
    facts, asked = target.facts, ended.meter.queries > 0
    if ended.ending == "broken" or options.check_claim:  # what answers seem to show is not said
        ended, truth = replace(ended, found=None), None
    looked, believed = ended.meter.channel, options.believed(facts.schema)
    by_doubles = looked is not None and looked.used
    seen = simpler(facts) if by_doubles else facts  # what the attack was an attack on
    code = code_length(ended.found, seen, believed, options.present, asked=asked)
    found: Found | None = code.found
    scored = bounds = accuracy = None
    if truth is not None:
        if isinstance(found, TableFound):
            scored = score(found, truth)
        outcomes = looked.outcomes if looked is not None and by_doubles else 0
        chance = round(1 - confidence_of(options.confidence), 12)
        given = Given(facts.claim, options.schedule(facts.claim), outcomes, chance)
        bounds = bounds_of(found, code.total, given, truth)
        accuracy = accuracy_of(found, options, seen, truth, scored)
    return Verdict(
        options=options,
        facts=facts,
        run=replace(ended, found=found),
        score=scored,
        findings=result_of(found, options, seen, truth),
        seconds=ended.seconds,
        seed=target.seed if isinstance(target, Curator) else None,
        transcript=None if transcript.path is None or transcript.empty else str(transcript.path),
        notice=transcript.notice,
        code=code,
        bounds=bounds,
        network=_network(target, ended),
        accuracy=accuracy,
        knowledge=knowledge_of(found, facts.schema, truth),
        ours=_ours(target),
    )


def _ours(target: Target) -> bool:
    """Tell whether a curator of ours runs a mechanism of ours, so that it does what it claims."""
    claim = target.facts.claim
    law = claim.noise is None or type(claim.noise) is LAWS.get(claim.noise.name)
    scale = type(claim.sensitivity).__module__.startswith(mechanisms.__name__)
    return type(target) is Curator and law and scale


def _network(target: Target, ended: Run[Any]) -> dict[str, Any] | None:
    """Return how the way to a target was, and how its own account stands if it is alive."""
    trips = getattr(target, "trips", None)
    if trips is None:
        return None
    found: dict[str, Any] = trips.to_plain()
    ask = getattr(target, "ledger", None)
    if callable(ask) and ended.ending not in ("broken", "target"):
        with suppress(ThinveilError):
            found["ledger"] = ask()
    return found
