"""thinveil audit: attack a table through a mechanism, and say what was learned."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from thinveil.attacker.care import TESTS
from thinveil.attacker.strategies import STRATEGIES, USUAL
from thinveil.audit.audit import audit, how_to_go_on
from thinveil.audit.options import ATTACKS, UNIVERSES, Options
from thinveil.audit.schedule import SPLITS
from thinveil.audit.transcript import Transcript
from thinveil.audit.verdict import Verdict
from thinveil.commands.common import (
    care_options,
    check_outputs,
    consoles,
    json_option,
    load_table,
    pairs,
    reading_options,
    write_json,
)
from thinveil.curator.dataset import Dataset
from thinveil.curator.delimited import Dialect
from thinveil.curator.inference import doubts
from thinveil.curator.reading import missing_texts, read_columns
from thinveil.errors import TranscriptError, UsageError
from thinveil.language.claims import MECHANISMS, POSTS
from thinveil.language.compiling import COMPILED
from thinveil.report.progress import progress
from thinveil.report.table import write_table
from thinveil.report.terminal import show_verdict

_PLAIN = (
    "Note: numba is not installed, so the thrifty strategy runs uncompiled, to the same result but "
    "some hundred times slower: pip install 'thinveil[fast]'"
)
_BESIDE_RESUME = {"table", "resume", "json_file", "output", "force"}


@click.command("audit")
@click.argument("table", required=False)
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    metavar="NAME",
    default="idp",
    show_default=True,
    help=f"One of {', '.join(MECHANISMS)}.",
)
@click.option("--k", default=1, show_default=True, help="The group size of IDP.")
@click.option("--offset", metavar="A", help="Noise at scale (A + sensitivity) / epsilon.")
@click.option("--post", type=click.Choice(POSTS), help="Round noisy answers.")
@click.option("--epsilons", metavar="E1,..,EK", help="The original Group IDP losses, for the run.")
@click.option("--epsilon-per-query", metavar="EPS", help="Claimed loss of each answer. [1e-10]")
@click.option("--epsilon", metavar="EPS", help="Claimed loss of all answers together.")
@click.option("--split", type=click.Choice(SPLITS), help="How --epsilon is shared. [shrinking]")
@click.option("--answers", type=int, metavar="N", help="Over how many, for --split equal.")
@click.option("--cap", metavar="EPS", help="Refuse what would pass this claimed loss.")
@click.option("--min-epsilon", metavar="EPS", help="Refuse answers with a smaller share.")
@click.option("--max-queries", type=int, metavar="N", help="Give at most so many answers.")
@click.option("--cache", is_flag=True, help="Give the same question the same answer, charged once.")
@click.option(
    "--universe", type=click.Choice(UNIVERSES[::-1]), default="unbounded", show_default=True
)
@click.option("--strategy", type=click.Choice(STRATEGIES), default=USUAL, show_default=True)
@click.option("--effort", type=int, metavar="N", help="Thrifty: hypotheses in a window. [1024]")
@click.option("--windows", type=int, metavar="N", help="Thrifty: windows side by side. [512]")
@click.option("--boxes-only", is_flag=True, help="Thrifty: no unions of boxes.")
@click.option("--attack", type=click.Choice(ATTACKS), default="dataset", show_default=True)
@click.option("--column", multiple=True, help="A column to find (column, attribute).")
@click.option("--known", multiple=True, metavar="COLUMN=VALUE", help="Known about the person.")
@click.option("--people", "people_file", metavar="FILE", help="A CSV of what is known of many.")
@click.option("--present", is_flag=True, help="Uniqueness: the person is known to be there.")
@click.option("--prior", multiple=True, metavar="COLUMN=LOW..HIGH", help="Believed bounds.")
@click.option("--precision", multiple=True, metavar="COLUMN=STEP", help="A coarser step.")
@click.option("--order", metavar="A,B,..", help="The order of attributes, or its beginning.")
@click.option("--schema", metavar="FILE", help="A schema file, or bank. (thinveil schema TABLE)")
@click.option("--seed", default=0, show_default=True, help="The seed of the noise.")
@care_options
@click.option("--test", type=click.Choice(TESTS), help="How repeated answers are read.")
@click.option("--repeats", type=int, metavar="M", help="Answers that the test gets. [planned]")
@click.option("--force", is_flag=True, help="Go ahead with more than ten million queries.")
@click.option("--transcript", metavar="FILE", help="Keep every batch and its answers there.")
@click.option("--resume", metavar="FILE", help="Go on with an interrupted run.")
@click.option("--output", metavar="FILE", help="Write the reconstructed table there as CSV.")
@reading_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, table: str | None, **given: Any) -> int:
    """Attack TABLE (CSV or Parquet) through a mechanism, and say what was learned.

    Without TABLE, the embedded synthetic people are attacked.

    \b
    Examples:
      thinveil audit
      thinveil audit people.csv --mechanism idp --k 3
      thinveil audit people.csv --attack attribute --known age=44 --known job=nurse
      thinveil audit people.csv --attack column --column salary --precision salary=1000
    """
    json_file, output = given["json_file"], given["output"]
    inputs = [table, given["schema"], given["people_file"], given["resume"]]
    check_outputs(inputs, transcript=given["transcript"], output=output, json=json_file)
    if output and not given["resume"] and given["attack"] != "dataset":
        raise UsageError("--output: only the attack on the data set reconstructs a table")
    console, notices = consoles(json_file)
    if given["resume"]:
        _only_resume(ctx)
        path = Path(given["resume"])
        origin = Transcript.read_header(path).options.get("origin")
        if not isinstance(origin, Mapping):
            raise TranscriptError(f"{path} does not say which table it was recorded on")
        if table is not None:
            origin = {**origin, "table": table}
        data = load_table(origin, notices)
        how: dict[str, Any] = {"resume": path, "force": given["force"]}
    else:
        origin = {
            "table": _lasting(table),
            "schema": _lasting(given["schema"]),
            **{name: given[name] for name in ("separator", "quote", "encoding")},
            "missing": list(given["missing"]),
        }
        data = load_table(origin if table is None else {**origin, "table": table}, notices)
        how = {
            "options": _options(data, given),
            "transcript": given["transcript"],
            "origin": origin,
        }
    if not origin.get("schema"):
        for doubt in doubts(data.schema, data.records):
            notices.print(Text(f"Note: {doubt}", style="yellow"))
    if given["strategy"] == "thrifty" and not COMPILED:
        notices.print(Text(_PLAIN, style="yellow"))
    with progress(notices) as observer:
        verdict = audit(data, observer=observer, **how)
    if output:
        write_table(verdict, output)
    write_json(json_file, verdict.to_plain())
    show_verdict(console, verdict)
    _say_how_it_ended(verdict, notices)
    return verdict.exit_code


def _lasting(path: str | None) -> str | None:
    """Return a path that a later run finds from any folder; other names stay as they are."""
    return str(Path(path).absolute()) if path and Path(path).exists() else path


def _only_resume(ctx: click.Context) -> None:
    """Refuse options beside --resume: the transcript brings its own."""
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if name not in _BESIDE_RESUME and source == ParameterSource.COMMANDLINE:
            option = name.replace("_", "-").removesuffix("-file")
            raise UsageError(f"--{option}: a resumed run brings its own options; leave it out")


def _options(data: Dataset, given: Mapping[str, Any]) -> Options:
    """Turn the words of the command line into options."""
    names = data.schema.names
    known: tuple[Mapping[str, str], ...] = ()
    if given["known"] and given["people_file"]:
        raise UsageError("--known and --people exclude each other: give one of them")
    if given["known"]:
        known = (pairs(given["known"], names, "--known"),)
    elif given["people_file"]:
        known = _people(given)
    order = tuple(next(csv.reader([given["order"]]), [])) if given["order"] else ()
    return Options(
        mechanism=given["mechanism"],
        k=given["k"],
        offset=given["offset"],
        post=given["post"],
        epsilons=() if given["epsilons"] is None else tuple(given["epsilons"].split(",")),
        epsilon_per_query=given["epsilon_per_query"],
        epsilon=given["epsilon"],
        split=given["split"],
        answers=given["answers"],
        cap=given["cap"],
        min_epsilon=given["min_epsilon"],
        max_queries=given["max_queries"],
        cache=given["cache"],
        universe=given["universe"],
        strategy=given["strategy"],
        effort=given["effort"],
        windows=given["windows"],
        boxes_only=given["boxes_only"],
        attack=given["attack"],
        columns=given["column"],
        people=known,
        priors=pairs(given["prior"], names, "--prior"),
        precision=pairs(given["precision"], names, "--precision"),
        order=order,
        seed=given["seed"],
        error=given["error"],
        most_repeats=given["most_repeats"],
        test=given["test"],
        repeats=given["repeats"],
        present=given["present"],
        force=given["force"],
    )


def _people(given: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    """Read what is known about many people: a column for each attribute, a row a person."""
    columns = read_columns(
        given["people_file"], Dialect(given["separator"], given["quote"], given["encoding"])
    )
    gaps = missing_texts(given["missing"])
    texts = [[each.texts[place] for place in each.index.tolist()] for each in columns]
    return tuple(
        {
            each.name: "" if text is None or text in gaps else text
            for each, text in zip(columns, row, strict=True)
        }
        for row in zip(*texts, strict=True)
    )


def _say_how_it_ended(verdict: Verdict, notices: Console) -> None:
    ended, kept = verdict.run.ending, verdict.transcript
    if ended in ("complete", "undecided"):
        return
    if ended == "target":
        notices.print(Text(f"Error: {verdict.run.reason}", style="red"))
    if kept and ended != "cap" and verdict.run.resumable:
        notices.print(Text(how_to_go_on(kept)))
