"""thinveil audit: attack a table through a mechanism, and say what was learned."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from thinveil.attacker.strategies import USUAL
from thinveil.auditing.options import TABLE, Options, flag_of
from thinveil.auditing.settings import own_settings
from thinveil.auditing.sources import elsewhere, reading, truth_of
from thinveil.auditing.targets import Target
from thinveil.commands.shared.common import (
    check_outputs,
    command_line,
    consoles,
    json_option,
    note,
    open_table,
    overwrite_option,
    pairs,
    place_options,
    reading_options,
    refuse_left_out,
    schema_option,
    settings,
    write_json,
    write_result,
)
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import (
    NEVER,
    busy,
    deferring,
    overwriting,
    safe_csv_option,
)
from thinveil.commands.shared.resuming import recorded_origin
from thinveil.curator.tables.coding import plainly
from thinveil.curator.tables.dataset import Dataset, Held
from thinveil.curator.tables.files import read_columns
from thinveil.curator.tables.reading import READING, Beside
from thinveil.errors import EXIT_EARLY, UsageError, to_install
from thinveil.language.compiling import refusal
from thinveil.language.schema import Grid, Schema
from thinveil.language.texts import NUMBER
from thinveil.passwords import shown
from thinveil.report.text.progress import progress
from thinveil.report.text.screen import Text
from thinveil.report.text.table import write_table
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.audit import audit, how_to_go_on
from thinveil.verdicts.comparing.evidence import beside
from thinveil.verdicts.record import Record
from thinveil.verdicts.trials import USUAL_TRIALS
from thinveil.verdicts.verdict import Verdict

_FEW_ROUNDS = (
    "each round is a statement or a round trip here, and only the strategy adaptive asks in few "
    "large rounds: expect this run to take many times longer"
)
_PLAIN = (
    "so the thrifty strategy runs uncompiled, to the same result but some four times slower; "
    "--strategy adaptive needs no compiling"
)
_BESIDE_RESUME = {
    "source", "resume", "json_file", "output", "force", "truth", "patience", "report",
    "show_records", "comparison", "safe_csv",
}  # fmt: skip
_ITS_OWN = (
    *(name for name, entry in TABLE.items() if entry.curators), "inside", "engine", "spark",
    "no_temporary_tables", "only", "drop",
)  # fmt: skip
"""Options that describe a curator of ours; a service or a plug-in brings its own."""


@click.command("audit", cls=Command)
@click.argument("source", required=False)
@settings("mechanism", "columns")
@click.option("--known", multiple=True, metavar="COLUMN=VALUE", help="Known about the person.")
@click.option("--people", "people_file", metavar="FILE", help="A table of what is known of many.")
@settings("present", "order")
@schema_option
@settings("seed", "force")
@click.option("--transcript", metavar="FILE", help="Keep every batch and its answers there.")
@click.option("--resume", metavar="FILE", help="Go on with an interrupted run.")
@click.option("--output", metavar="FILE", help="Write the reconstructed table there as CSV.")
@settings("trials", "check_claim")
@click.option("--report", metavar="FILE", help="Write a report there: one HTML file.")
@click.option(
    "--comparison/--no-comparison",
    default=True,
    help="Report: try all mechanisms on a sample, too; about half a minute. [comparison]",
)
@click.option(
    "--show-records", is_flag=True, help="Report, JSON: some records, true and recovered."
)
@click.option(
    "--truth",
    metavar="FILE|self",
    help="Score what was learned against this table; self fetches the rows of a database.",
)
@place_options
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long a service that fails or dawdles is waited for. [120]",
)
@reading_options
@json_option
@safe_csv_option
@overwrite_option
@click.pass_context
def command(ctx: click.Context, /, source: str | None, **given: Any) -> int:
    """Attack SOURCE through a mechanism, and say what was learned.

    SOURCE is a file (CSV, Excel, Stata, SPSS, SAS, Parquet), a database (postgresql://, mariadb://,
    duckdb://, sqlite://, datafusion://, chdb://, spark://, or Parquet files as 'data/*.parquet'), a
    service (http://; its token in THINVEIL_TOKEN), or NAME:ADDRESS for a target of a plug-in.
    Without SOURCE, the embedded synthetic people.

    \b
    Examples:
      thinveil audit
      thinveil people --records 60 --output people.csv
      thinveil audit people.csv --mechanism idp --k 3
      thinveil audit people.csv --attack column --column salary
      thinveil audit people.csv --attack attribute --known age=40 --column salary
      thinveil audit people.csv --attack membership --trials 2000
      thinveil audit people.csv --canaries 40
      thinveil audit people.csv --report people.html
      thinveil audit postgresql://localhost/census --table people
      thinveil audit http://127.0.0.1:8321 --truth people.csv
    """
    json_file, output = given["json_file"], given["output"]
    truth_file = None if given["truth"] == "self" else given["truth"]
    inputs = [source, given["schema"], given["people_file"], given["resume"], truth_file]
    report = given["report"]
    check_outputs(
        inputs,
        transcript=(given["transcript"], NEVER),
        output=(output, ""),
        json=(json_file, "run"),
        report=(report, "report"),
    )
    if output and not given["resume"] and given["attack"] != "dataset":
        raise UsageError("--output: only the attack on the data set reconstructs a table")
    console, notices = consoles(json_file)
    with ExitStack() as stack:
        if given["resume"]:
            own = filter(lambda name: name not in _BESIDE_RESUME, ctx.params)
            _refuse(ctx, own, "a resumed run brings its own options")
            origin = recorded_origin(Path(given["resume"]), source)
            held = _open(stack, {**origin, "patience": given["patience"]}, notices, console)
            how: dict[str, Any] = {"resume": Path(given["resume"]), "force": given["force"]}
        else:
            refuse_left_out("--precision", given["precision"], given["only"], given)
            origin = _origin(source, given)
            here = {"table": source, "patience": given["patience"]}
            held = _open(stack, {**origin, **here}, notices, console)
            if isinstance(held, Target):
                _refuse(ctx, _ITS_OWN, "what is attacked brings its own")
            how = {"transcript": given["transcript"]}
        told = {name: given[name] for name in READING if _is_given(ctx, name)}
        with busy(notices, "reading the truth"):
            truth = truth_of(given["truth"], held, {**origin, **told})
        if truth is not None and truth is not held:
            for each in truth.remarks.assumed:
                note(notices, f"--truth: {each}")
        if not given["resume"]:
            how["options"] = _options(held, given, truth, notices)
        for each in _notes(held, given["strategy"], how.get("options")):
            note(notices, each)
        exhibits = bool(report or json_file)
        how |= {"origin": origin, "command": command_line(ctx), "exhibits": exhibits}
        with progress(notices) as observer:
            verdict = audit(held, truth=truth, observer=observer, **how)
    records = verdict.examples(truth) if given["show_records"] else None
    compared, drawn = None, None
    code = verdict.exit_code
    alone = verdict.options.check_claim
    if report and given["comparison"] and truth is not None and not code and not alone:
        with progress(notices) as observer:
            compared, drawn = beside(truth, verdict.options, observer)
        if compared.interrupted or (drawn is not None and drawn.interrupted):
            code = EXIT_EARLY
            notices.print(Text("The comparison was interrupted: the report has what was done."))
    if output and verdict.run.found is not None:
        with deferring():
            write_table(verdict, output, safe=given["safe_csv"], overwrite=overwriting())
    result = verdict.record(compared, drawn, records)
    write_json(json_file, result.to_plain(), "run")
    show_verdict(console, verdict)
    if report and _write_report(report, result, given["show_records"]):
        notices.print(Text(f"The report is in {report}; it opens in any browser."))
    _say_how_it_ended(verdict, notices, elsewhere(origin.get("table")))
    return code


def _write_report(path: str, result: Record, show_records: bool) -> bool:
    """Write the report; tell whether it is there."""
    from thinveil.report.html import page

    whole = page(result, show_records=show_records)
    return write_result("report", path, whole, "report")


def _origin(source: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the table is, in words that a transcript can keep: without passwords."""
    return {
        "table": None if source is None else shown(_lasting(source) or ""),
        "schema": _lasting(given["schema"]),
        "inside": None if given["inside"] is None else shown(given["inside"]),
        "engine": given["engine"],
        **({} if given["spark"] == "auto" else {"spark": given["spark"]}),
        **({"no_temporary_tables": True} if given["no_temporary_tables"] else {}),
        **reading({**given, "steps": dict(map(_step, given["precision"]))}),
    }


def _open(stack: ExitStack, origin: Mapping[str, Any], *consoles: Console) -> Held | Target:
    """Open a table or a target, and close it in the end."""
    held = open_table(origin, *consoles)
    if (close := getattr(held, "close", None)) is not None:
        stack.callback(close)
    return held


def _notes(held: Held | Target, strategy: str, options: Options | None) -> Iterator[str]:
    """Yield what the user should know before a run."""
    if strategy == "thrifty" and (why := refusal()):
        yield f"{why}, {_PLAIN}: {to_install('fast')}"
    if strategy != USUAL and not isinstance(held, Dataset):
        yield _FEW_ROUNDS
    if warning := getattr(held, "warning", ""):  # of a plug-in's target
        yield warning
    if options is not None:
        claim = held.facts.claim if isinstance(held, Target) else options.claim()
        if (used := options.strategy_for(claim)) != options.strategy:
            yield f"{claim.name} has a law of its own, so the {used} strategy is used"


def _step(text: str) -> tuple[str, str]:
    """Split COLUMN=STEP before the columns are known; a step holds no equals sign."""
    column, _, step = text.rpartition("=")
    return column, step


def _lasting(path: str | None) -> str | None:
    """Return a path that a later run finds from any folder; other names stay as they are."""
    return str(Path(path).absolute()) if path and Path(path).exists() else path


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def _refuse(ctx: click.Context, names: Iterable[str], why: str) -> None:
    """Refuse the first of some options that was given."""
    for name in names:
        if _is_given(ctx, name):
            [option] = [each.opts[0] for each in ctx.command.params if each.name == name]
            raise UsageError(f"{option}: {why}; leave it out")


def _trials(given: Mapping[str, Any], known: bool, truth: Dataset | None) -> int:
    """Return how many trials of membership there are: some where they are the point."""
    if given["trials"] is not None:
        return int(given["trials"])
    alone = given["attack"] == "membership" and not known
    if given["check_claim"]:
        return 0
    return USUAL_TRIALS if alone or (given["report"] and truth is not None) else 0


def _words(text: str) -> tuple[str, ...]:
    """Split A,B,.. as CSV; a line break ends a name, too."""
    rows = csv.reader(io.StringIO(text, newline=""))
    return tuple(word for row in rows for word in row) or ("",)


def _options(
    held: Held | Target, given: Mapping[str, Any], truth: Dataset | None, notices: Console
) -> Options:
    """Turn the words of the command line into options."""
    own = own_settings(held.facts) if isinstance(held, Target) else {}
    schema = held.facts.schema if isinstance(held, Target) else held.schema
    names = schema.names
    told: dict[str, Any] = {}
    for name, entry in TABLE.items():
        value = given.get(name)
        if entry.kind == "pairs":
            refuse_left_out(flag_of(name), value or (), names, given)
            told[name] = pairs(value or (), names, flag_of(name))
            if name == "priors":
                told[name] = _as_written(flag_of(name), told[name], schema, given, notices)
        elif value is not None:
            listed = entry.kind in ("names", "numbers") and isinstance(value, str)
            told[name] = _words(value) if listed else value
        if entry.kind == "names":
            refuse_left_out(flag_of(name), told.get(name, ()), names, given)
    known: tuple[Mapping[str, str], ...] = ()
    if given["known"] and given["people_file"]:
        raise UsageError("--known and --people exclude each other: give one of them")
    if given["known"]:
        refuse_left_out("--known", given["known"], names, given)
        who = pairs(given["known"], names, "--known")
        known = (_as_written("--known", who, schema, given, notices),)
    elif given["people_file"]:
        known = _people(given, schema, notices)
    return Options(**told | own | {"people": known, "trials": _trials(given, any(known), truth)})


def _as_written(
    flag: str,
    texts: Mapping[str, str],
    schema: Schema,
    given: Mapping[str, Any],
    notices: Console,
) -> dict[str, str]:
    """Return values of columns in plain texts: they may be written as in the table, or plainly.

    Where a text can be read both ways, that of the table counts, and a note says so.
    """
    how, found = Beside.of({**given, "header": None, "comment": None}), {}
    for attribute in schema:
        if (text := texts.get(attribute.name)) is None:
            continue
        write, ends = plainly(attribute, how), [text]
        if isinstance(attribute, Grid) and write(text) == text:
            ends = text.split("..")  # a range
        plain = [write(end.strip() if len(ends) > 1 else end) for end in ends]
        found[attribute.name] = "..".join(plain)
        if any(old != new and NUMBER.fullmatch(old) for old, new in zip(ends, plain, strict=True)):
            form = attribute.format if isinstance(attribute, Grid) else ""
            note(notices, f"{flag} {attribute.name}: read as the table writes it, like {form}")
    return {name: found[name] for name in texts}


def _people(
    given: Mapping[str, Any], schema: Schema, notices: Console
) -> tuple[Mapping[str, str], ...]:
    """Read what is known about many people: a column for each attribute, a row a person.

    Values are written as in the table, whose formats and words for missing ones are known.
    """
    how = Beside.of({**given, "header": None, "comment": None})  # those are the table's own
    raw = read_columns(given["people_file"], how)
    for each in raw.assumed:
        note(notices, f"--people: {each}")
    known = {attribute.name: plainly(attribute, how) for attribute in schema}
    columns = []
    for column in raw.columns:
        write = known.get(column.name, str)
        texts = ["" if text is None else write(text) for text in column.texts]
        columns.append([texts[place] for place in column.index.tolist()])
    names = [column.name for column in raw.columns]
    return tuple(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _say_how_it_ended(verdict: Verdict, notices: Console, address: str) -> None:
    ended, kept = verdict.run.ending, verdict.transcript
    if ended in ("broken", "complete", "undecided"):
        if kept and (verdict.network is not None or ended == "broken"):
            notices.print(Text(f"The transcript is in {kept}; it holds all answers."))
        return
    if ended == "target":
        notices.print(Text(f"Error: {verdict.run.reason}", style="red"))
    if kept and ended != "cap" and verdict.run.resumable:
        notices.print(Text(how_to_go_on(kept, address)))
