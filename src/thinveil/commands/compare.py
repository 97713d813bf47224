"""thinveil compare: the same attacks on all mechanisms, side by side."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from thinveil.auditing.entries import MOST_TRIED
from thinveil.auditing.provenance import Provenance
from thinveil.auditing.schedule import DEFAULT
from thinveil.commands.shared.common import (
    check_outputs,
    command_line,
    consoles,
    json_option,
    known_mechanism,
    load_table,
    note,
    overwrite_option,
    reading_options,
    refuse_left_out,
    schema_option,
    setting,
    settings,
    write_json,
)
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import deferring, overwriting
from thinveil.errors import EXIT_EARLY
from thinveil.language.texts import many
from thinveil.report.charts.files import check_figure, save_pictures
from thinveil.report.charts.mechanisms import compared as mechanisms_compared
from thinveil.report.charts.pictures import Picture
from thinveil.report.charts.risk import against_answers, against_loss
from thinveil.report.text.comparison import show_comparison, show_risk
from thinveil.report.text.progress import progress
from thinveil.report.text.screen import Text
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.risk import USUAL_RECORDS, risk, sampled
from thinveil.verdicts.comparing.shared import USUAL_PEOPLE, Settings, all_in_order


@click.command("compare", cls=Command)
@click.argument("table", required=False)
@click.option(
    "--mechanism",
    multiple=True,
    callback=known_mechanism,
    help="Some mechanisms only, perhaps a plug-in's. [all, plug-ins included]",
)
@click.option(
    "--people",
    type=click.IntRange(min=2, max=MOST_TRIED),
    default=USUAL_PEOPLE,
    show_default=True,
    help="How many people membership and attribute inference are tried on.",
)
@click.option(
    "--link", multiple=True, metavar="COLUMN", help="What people are known by. [found out]"
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Use N records only.")
@setting(
    "epsilon_per_query", default=DEFAULT, show_default=True, help="Claimed loss of each answer."
)
@setting("k")
@setting("universe")
@schema_option
@setting("seed", type=click.IntRange(min=0), help="The seed of trials and noise.")
@settings("error", "most_repeats")
@setting("confidence", help="How sure all intervals and bounds are together.")
@click.option("--figure", metavar="FILE", help="Draw the comparison (png, svg, pdf; extra plots).")
@click.option("--risk", "with_risk", is_flag=True, help="Risk curves as well; about a minute more.")
@click.option(
    "--risk-records",
    type=click.IntRange(min=2),
    default=USUAL_RECORDS,
    show_default=True,
    help="Records of the curve against the claimed loss.",
)
@click.option(
    "--risk-figure", metavar="FILE", help="Draw the risk curves, too; needs the extra plots."
)
@reading_options
@json_option
@overwrite_option
@click.pass_context
def command(ctx: click.Context, /, table: str | None, **given: Any) -> int:
    """Try membership, attribute inference and full reconstruction on all mechanisms.

    Without TABLE, on the embedded synthetic people. Each figure stands beside what an attacker
    gets right who asks nothing.

    \b
    Examples:
      thinveil compare
      thinveil people --records 60 --output people.csv
      thinveil compare people.csv --mechanism idp --mechanism dp-laplace
      thinveil compare people.csv --sample 30 --link age --link postcode
      thinveil compare people.csv --figure compare.png --risk-figure risk.png
    """
    json_file = given["json_file"]
    pictures = {"figure": given["figure"], "risk-figure": given["risk_figure"]}
    drawings = {name: (path, "picture") for name, path in pictures.items()}
    check_outputs([table, given["schema"]], json=(json_file, "comparison"), **drawings)
    for name, path in pictures.items():
        check_figure(f"--{name}", path)
    console, notices = consoles(json_file)
    mechanisms = given["mechanism"]
    if not mechanisms:
        mechanisms, wrong = all_in_order()
        for each in wrong:
            note(notices, each)
    same = (
        "people",
        "epsilon_per_query",
        "k",
        "universe",
        "seed",
        "error",
        "most_repeats",
        "confidence",
    )
    told = {name: given[name] for name in same}
    shared = Settings(mechanisms=mechanisms, linking=given["link"], **told)
    whole = load_table({"table": table, **given}, notices, console)
    refuse_left_out("--link", given["link"], whole.schema.names, given)
    data = sampled(whole, given["sample"] or whole.records, shared.seed)
    if data is not whole:
        said = (
            f"A sample of {data.records:,} of the table's {many(whole.records, 'record')} is used."
        )
        notices.print(Text(said))
    with progress(notices) as observer:
        compared = compare(data, shared, observer)
    drawn = None
    if (given["with_risk"] or given["risk_figure"]) and not compared.interrupted:
        with progress(notices) as observer:
            drawn = risk(data, shared, observer, records=given["risk_records"])
    compared = replace(
        compared,
        sampled_from=None if data is whole else whole.records,
        risk=drawn,
        provenance=Provenance.now(command_line(ctx), None).to_plain(asdict(shared)),
    )
    write_json(json_file, compared.to_plain(), "comparison")
    if given["figure"] and any(each.tried for each in compared.lines):
        _save([mechanisms_compared(compared)], given["figure"], 420)
    if given["risk_figure"] and drawn is not None:
        _save([against_loss(drawn), against_answers(drawn)], given["risk_figure"], 560)
    if drawn is not None:
        show_risk(console, drawn)
    show_comparison(console, compared)
    return EXIT_EARLY if drawn is not None and drawn.interrupted else compared.exit_code


def _save(pictures: list[Picture], path: str, width: int) -> None:
    with deferring():
        save_pictures(pictures, path, width, overwrite=overwriting(), spare=True)
