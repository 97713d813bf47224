"""A comparison of mechanisms and its risk curves, for people at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from thinveil.report.charts.risk import SHARES
from thinveil.report.text.remarks import how_it_was_read, listed
from thinveil.report.text.screen import Text, lines
from thinveil.verdicts.comparing.candidates import Skipped
from thinveil.verdicts.comparing.outcomes import TASKS, Comparison, Line, Outcome
from thinveil.verdicts.comparing.risk import Known, Risk
from thinveil.verdicts.phrases import loss, many, mean, out_of, upper

_WIDE: Final = 112
_TOTALS: Final = (1e-6, 0.1, 1.0, 3.16, 10.0, 100.0)  # of which is printed what they tell of one
HEADINGS: Final = {
    "membership": "membership",
    "attribute": "attribute inference",
    "dataset": "full reconstruction",
}
"""How the attacks are called in tables and pictures."""


def show_comparison(console: Console, compared: Comparison) -> None:
    """Print all mechanisms against all attacks, and last the sentence to remember."""
    how_it_was_read(console, compared.read_as, compared.doubts)
    console.print(Text("What the attacker was assumed to know", style="bold"))
    listed(console, compared.assumed_public())
    console.print(Text("How the trials were made", style="bold"))
    listed(console, compared.trials())
    console.print(_laws(compared))
    console.print(_table(compared, console.width))
    listed(console, _notes(compared), style="dim")
    calm = compared.lines and all(each.at_baseline or each.missing for each in compared.lines)
    style = "yellow" if compared.interrupted else "green" if calm else "red"
    console.print(Panel(Text(compared.sentence()), title="Verdict", border_style=style))


def _laws(compared: Comparison) -> Table:
    """Return what the laws alone say, a line a mechanism: nothing was asked for that."""
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mechanism", overflow="fold")
    table.add_column(
        "by its law alone, of one question on two neighbouring tables", overflow="fold"
    )
    for line in compared.lines:
        if line.possible is not None:
            table.add_row(Text(line.mechanism), Text(line.possible.brief()))
    return table


def _table(compared: Comparison, width: int) -> Table:
    """Return the table; where there is little room, answers and loss stand on two lines."""
    comma, usual = ", " if width >= _WIDE else "\n", _usual(compared)
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mechanism", overflow="fold")
    guessers = ("asking nothing", "knowing marginals", "knowing all others")
    nothing, marginals, others = ([Text(each, "italic")] for each in guessers)
    for task in TASKS:
        table.add_column(HEADINGS[task], justify="right", overflow="fold")
        one = usual.get(task)
        guess = one and f"{out_of(mean(one.baseline), one.of, one.unit)}\n0 answers{comma}loss 0"
        nothing.append(lines((guess or "").split("\n")))
        marginals.append(Text(f"{mean(one.marginals)} of {one.of:,}" if one else ""))
        known = None if one is None else one.others
        others.append(Text("" if one is None or known is None else f"{mean(known)} of {one.of:,}"))
    table.add_row(*nothing)
    table.add_row(*marginals)
    table.add_row(*others, end_section=True)
    for place, line in enumerate(compared.lines):
        later = compared.lines[place + 1 :]
        last = bool(later) and later[0].claim.kind != line.claim.kind
        table.add_row(Text(line.mechanism), *_cells(usual, line, comma), end_section=last)
    return table


def _usual(compared: Comparison) -> dict[str, Outcome]:
    """Return an outcome of each attack whose baseline stands for the column."""
    outcomes = [each for line in compared.lines for each in line.tried]
    return {each.task: each for each in reversed(outcomes) if each.unit != "different records"}


def _cells(usual: Mapping[str, Outcome], line: Line, comma: str) -> list[Text]:
    if line.missing:
        return [Text("not tried", "dim")] * len(TASKS)
    cells = []
    word = "" if comma == ", " else "loss "
    for each in line.outcomes:
        if isinstance(each, Skipped):
            cells.append(Text("not tried", "dim"))
            continue
        same = each.task in usual and usual[each.task].unit == each.unit
        parts = [_recovered(each, "" if same else f" {each.unit}")]
        if each.task not in usual or usual[each.task].of != each.of:
            parts.append(f"(asking nothing: {mean(each.baseline)})")
        claimed = each.epsilon_claimed
        said = "no claim" if claimed is None else f"{word}{loss(claimed)}"
        parts += f"{many(each.queries, 'answer')}{comma}{said}".split("\n")
        style = "red" if each.everything else "green" if each.at_baseline else "yellow"
        text = lines(parts)
        text.stylize(style, 0, len(parts[0]))
        cells.append(text)
    return cells + [Text("not reached", "dim")] * (len(TASKS) - len(cells))


def _recovered(outcome: Outcome, unit: str) -> str:
    """Write what was recovered; the unit where it is not that of the whole column."""
    if outcome.silent:
        return "nothing usable"
    wrong = outcome.stated - outcome.recovered
    said = f"{outcome.recovered:,} of {outcome.of:,}{unit}"
    return f"{said}, {wrong:,} wrong" if wrong else said


def _notes(compared: Comparison) -> list[str]:
    """Return, once each, why attacks ended early or were not run."""
    notes = []
    for line in compared.lines:
        if line.missing:
            notes.append(f"{line.mechanism}: not tried. {line.missing}")
        notes += [f"{upper(each.reason)}." for each in line.tried if each.reason]
    return list(dict.fromkeys(notes))


def show_risk(console: Console, drawn: Risk) -> None:
    """Print both risk curves as short tables; pictures and JSON have all points."""
    totals, answers = drawn.against_loss, drawn.against_answers
    if totals.runs:
        names = totals.mechanisms
        seeds = len({each.seed for each in totals.runs})
        table = _curves(
            "Where this search succeeds: records recovered against the total claimed loss, of "
            f"{many(totals.records, 'record')}, the total split equally over "
            f"{many(totals.answers_allowed, 'answer')}, {many(seeds, 'run')} a point",
            ["total claimed loss", *names],
        )
        curves = {name: dict(drawn.loss_curve(name)) for name in names}
        for epsilon in sorted({each.epsilon for each in totals.runs}):
            spreads = (_spread(curves[name].get(epsilon, [])) for name in names)
            table.add_row(f"{epsilon:g}", *spreads)
        console.print(table)
        console.print(Text(f"  Guessing without asking: {totals.baseline_records:.1%}"))
    if totals.one_person:
        table = _curves(
            "Is one person in the table? Right guesses of the best attack, which spends the whole "
            "total on that",
            ["total claimed loss", *totals.mechanisms],
        )
        for epsilon in _TOTALS:
            told = (drawn.advantage_at(name, epsilon) for name in totals.mechanisms)
            table.add_row(f"{epsilon:g}", *(f"{each.right:.1%}" if each else "" for each in told))
        console.print(table)
    if answers.points:
        table = _curves(
            f"Answers after which so much of {many(answers.records, 'record')} is known, at "
            f"{answers.epsilon_per_query} an answer",
            ["mechanism", *(f"{share:.0%}" for share in SHARES), "half of the records"],
        )
        for name in answers.mechanisms:
            firsts = (_first(drawn, name, share) for share in SHARES)
            table.add_row(name, *firsts, _first(drawn, name, 0.5, records=True))
        console.print(table)
        said = (
            "  Shares are of all bits, by even chances; columns known by themselves count. "
            f"Guessing without asking: {answers.baseline_records:.1%} of records"
        )
        console.print(Text(said))
    if drawn.interrupted:
        console.print(Text("  The curves were interrupted: this is what was done so far."))
    console.print(Panel(Text(drawn.sentence()), title="Risk", border_style="red"))


def _curves(title: str, headings: list[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _spread(known: list[Known]) -> str:
    """Write the mean of some runs, and their range where they differ."""
    if not known:
        return ""
    shares = [each.records for each in known]
    mean, low, high = sum(shares) / len(shares), min(shares), max(shares)
    return f"{mean:.0%}" if low == high else f"{mean:.0%} ({low:.0%} to {high:.0%})"


def _first(drawn: Risk, name: str, share: float, records: bool = False) -> str:
    """Write after how many answers so much was first seen to be known."""
    answers = drawn.answers_for(name, share, records)
    return "never" if answers is None else f"{answers:,}"
