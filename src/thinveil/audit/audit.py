"""One function that audits: a table, or anything that answers batches."""

from __future__ import annotations

import operator
import shlex
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from thinveil.attacker.codelength import Span, code_length
from thinveil.attacker.found import Found, TableFound
from thinveil.audit.attacks import attack_on
from thinveil.audit.bounds import bounds_of
from thinveil.audit.driver import Observer, Run, run
from thinveil.audit.options import Options, own_settings, people_of
from thinveil.audit.scoring import score
from thinveil.audit.sources import opened, truth_of
from thinveil.audit.targets import Target, fingerprint
from thinveil.audit.transcript import Header, Transcript
from thinveil.audit.verdict import Verdict, result_of
from thinveil.curator.curator import Curator
from thinveil.curator.dataset import Dataset, Held
from thinveil.errors import ThinveilError, TooManyQueries, TranscriptError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import NO_POLICIES
from thinveil.language.schema import Schema


def audit(
    source: Any = None,
    *,
    schema: Schema | None = None,
    table: str | None = None,
    truth: Any = None,
    options: Options | None = None,
    transcript: str | Path | None = None,
    resume: str | Path | None = None,
    origin: Mapping[str, Any] | None = None,
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
        observer: Called after each round with the meter and what the round was about.
        **settings: The fields of `Options`; `known` may be one person or a list of people.

    Returns:
        A verdict. `print(verdict.sentence())` says it in a sentence.

    >>> audit(attack="membership", known={"age": 34, "job": "nurse"}).exit_code
    0
    """
    recorded = Transcript.resume(Path(resume)) if resume is not None else None
    with ExitStack() as stack:
        held = held_of(source, schema, table)
        if held is not source and (close := getattr(held, "close", None)) is not None:
            stack.callback(close)
        if recorded is not None:
            force = settings.pop("force", False)
            if options is not None or settings:
                raise UsageError("a resumed run brings its own options: give none but force")
            options = Options.from_plain(recorded.header.options)
            options = replace(options, force=options.force or bool(force))
        else:
            options = _options(options, settings, held)
        truth = truth if isinstance(truth, Dataset) else truth_of(truth, held, origin or {})
        target = held if isinstance(held, Target) else _curator(held, options)
        mark = fingerprint(target)
        if recorded is not None and recorded.header.fingerprint != mark:
            raise TranscriptError(
                f"{resume} was recorded on another table or target; its answers mean nothing here"
            )
        if recorded is None:
            header = Header(mark, {**options.plain(), "origin": dict(origin or {})})
            if transcript is None and getattr(held, "remote", False):
                transcript = _usual_name(header)  # a run of hours survives whatever happens
            recorded = Transcript(header, None if transcript is None else Path(transcript))
        return _run(options, target, truth, recorded, observer)


def _run(
    options: Options,
    target: Target,
    truth: Dataset | None,
    recorded: Transcript,
    observer: Observer,
) -> Verdict:
    """Run the attack that the options ask for, and keep its transcript whatever happens."""
    try:
        attack = attack_on(options, target.facts)
        schedule = options.schedule(target.facts.claim)
        start = time.perf_counter()
        ended = run(
            attack,
            target,
            schedule,
            transcript=recorded,
            cap=options.cap_value(),
            observer=observer,
        )
        seconds = time.perf_counter() - start
        if ended.ending in ("interrupted", "target") and ended.resumable:
            _keep(recorded)
        return _verdict(options, target, truth, ended, seconds, recorded)
    except BaseException as error:
        with suppress(TranscriptError):
            _keep(recorded)
        if recorded.path is not None and not recorded.empty:
            more = " --force" if isinstance(error, TooManyQueries) else ""
            error.add_note(how_to_go_on(str(recorded.path)) + more)
        raise
    finally:
        recorded.close()


def how_to_go_on(transcript: str) -> str:
    """Say how a run that ended early is resumed from the command line."""
    return f"Nothing is lost. To go on:  thinveil audit --resume {shlex.quote(transcript)}"


def _options(options: Options | None, settings: dict[str, Any], held: Held | Target) -> Options:
    """Return all settings; what a target says of itself stands in them."""
    if options is not None and settings:
        raise UsageError("give options or settings, not both")
    if not isinstance(held, Target):
        return Options(**_settings(settings)) if options is None else options
    own = own_settings(held.facts)
    if options is None:
        wanted = _settings(settings)
        _check_settings(Options(**{**own, **wanted}), held)
        return Options(**{**wanted, **own})
    _check_settings(options, held)
    return replace(options, **own)


def _check_settings(options: Options, target: Target) -> None:
    """Refuse settings that contradict what a target brings with it."""
    usual, claim = Options(), target.facts.claim
    own = {
        "mechanism": claim.name,
        "k": claim.k,
        "universe": claim.universe,
        "seed": getattr(target, "seed", options.seed),
    }
    if options.mechanism == own_settings(target.facts).get("mechanism"):
        own["mechanism"] = options.mechanism  # the same claim, composed of parts
    for name, value in own.items():
        asked = options.group()[0] if name == "k" else getattr(options, name)
        if asked != value and asked != getattr(usual, name):
            raise UsageError(f"{name}: the target has its own, {value}; leave it out")
    if options.policies() not in (NO_POLICIES, target.facts.policies):
        raise UsageError("the target has its own policies: leave min_epsilon and the like out")


def _keep(transcript: Transcript) -> None:
    """Make sure that answers paid for are on disk."""
    if transcript.path is None and not transcript.empty:
        transcript.save(_usual_name(transcript.header))


def _usual_name(header: Header) -> Path:
    return Path(f"thinveil-{header.run}.transcript")


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Turn what is natural in Python into plain options."""
    plain = dict(settings)
    if "known" in plain:
        if "people" in plain:
            raise UsageError("give known or people, not both")
        plain["people"] = people_of(plain.pop("known"))
    elif "people" in plain:
        plain["people"] = people_of(plain["people"])
    for name in ("columns", "order", "epsilons"):
        if name in plain:
            value = plain[name]
            if isinstance(value, str):
                value = value.split(",") if name == "epsilons" else [value]
            plain[name] = tuple(map(str, value))
    for name in ("k", "seed", "answers", "max_queries", "most_repeats", "repeats"):
        if name in plain:
            with suppress(TypeError):  # what is no whole number is refused with the rest
                plain[name] = operator.index(plain[name])
    for name in ("priors", "precision"):
        if name in plain:
            plain[name] = {column: _text(value) for column, value in plain[name].items()}
    for name in ("epsilon", "epsilon_per_query", "cap", "min_epsilon", "offset", "error"):
        if plain.get(name) is not None:
            plain[name] = str(plain[name])
    unknown = set(plain) - set(Options.__slots__)
    if unknown:
        raise UsageError(f"there is no setting {sorted(unknown)[0]!r}")
    return plain


def _text(value: object) -> str:
    """Write a value, or a pair of bounds as low..high."""
    return "..".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def held_of(source: Any, schema: Schema | None = None, table: str | None = None) -> Held | Target:
    """Return the table or target that a source stands for.

    Raises:
        UsageError: A target or an address is given what it cannot use.
    """
    if isinstance(source, Target):
        if not isinstance(source.facts, PublicFacts):
            raise UsageError("the facts of a target must be thinveil.PublicFacts")
        if schema is not None:
            raise UsageError("a target brings its own schema")
        return source
    if hasattr(type(source), "counter"):  # a table of ours; a data frame may have such a column
        held: Held = source
        return held
    return opened(source, schema, table)


def _curator(held: Held, options: Options) -> Curator:
    """Return the curator of a table, as the options describe it."""
    return Curator(
        held,
        options.claim(),
        seed=options.seed,
        cap=options.cap_value(),
        policies=options.policies(),
    )


def _verdict(
    options: Options,
    target: Target,
    truth: Dataset | None,
    ended: Run[Any],
    seconds: float,
    transcript: Transcript,
) -> Verdict:
    facts = target.facts
    code = code_length(
        ended.found,
        facts,
        _priors(options, facts.schema),
        options.present,
        asked=ended.meter.queries > 0,
    )
    found: Found | None = code.found
    whole = isinstance(found, TableFound) and truth is not None
    schedule = options.schedule(facts.claim)
    return Verdict(
        options=options,
        facts=facts,
        run=replace(ended, found=found),
        score=score(found, truth, options.seed) if whole else None,  # type: ignore[arg-type]
        result=result_of(found, options, facts, truth),
        seconds=seconds,
        seed=target.seed if isinstance(target, Curator) else None,
        transcript=None if transcript.path is None or transcript.empty else str(transcript.path),
        notice=transcript.notice,
        code=code,
        bounds=None
        if truth is None
        else bounds_of(found, code.total, facts.claim, schedule, truth),
        network=_network(target, ended),
    )


def _network(target: Target, ended: Run[Any]) -> dict[str, Any] | None:
    """Return how the way to a target was, and how its own account stands if it is alive."""
    trips = getattr(target, "trips", None)
    if trips is None:
        return None
    found: dict[str, Any] = trips.to_plain()
    ask = getattr(target, "ledger", None)
    if callable(ask) and ended.ending != "target":
        with suppress(ThinveilError):
            found["ledger"] = ask()
    return found


def _priors(options: Options, schema: Schema) -> dict[int, Span]:
    """Return in codes the bounds that the attack was told to believe in."""
    priors = {}
    for name, text in options.priors.items():
        column = schema.column(name)
        low, _, high = text.partition("..")
        around = schema[column].around
        priors[column] = around(low.strip())[0], around(high.strip())[1]
    return priors
