"""Whether a target does what it claims, for people at a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table

from thinveil.errors import EXIT_EARLY
from thinveil.report.text.screen import Text
from thinveil.verdicts.judging.claim_check import LOOKED_AT, ClaimCheck
from thinveil.verdicts.judging.possible import up
from thinveil.verdicts.phrases import many
from thinveil.verdicts.verdict import Verdict


def show(console: Console, verdict: Verdict, check: ClaimCheck, figures: RenderableType) -> None:
    """Print what was seen of a claim, and nothing of what the answers seem to say."""
    console.print(figures)
    if check.broken:
        console.print(_evidence(check))
    style = "yellow" if check.doubtful or verdict.exit_code == EXIT_EARLY else "red"
    style = style if check.broken or verdict.exit_code else "green"
    console.print(Panel(Text(verdict.sentence()), title="Verdict", border_style=style))


def _evidence(check: ClaimCheck) -> Table:
    table = Table(title=Text("Evidence"), title_justify="left", header_style="bold")
    for heading in ("what was looked at", "what came", "chance"):
        table.add_column(heading, overflow="fold")
    for each in check.broken:
        table.add_row(LOOKED_AT[each.kind], Text(each.said), f"at most {up(each.chance)}")
    return table


def checks(verdict: Verdict) -> list[tuple[str, str]]:
    """Say how many answers checked the claim, beside those of the attack."""
    meter, check = verdict.run.meter, verdict.claim_check
    if check is None or (check.broken and not meter.checks):
        unchecked = check is None and not verdict.ours and not verdict.options.trials_only
        return [("checks of the claim", "none (--checks on makes some)")] if unchecked else []
    asked = f"{many(meter.checks, 'answer')} in {many(meter.check_rounds, 'round')}"
    seen = f"; {check.watched:,} of the attack held against the law" if check.watched else ""
    return [("checks of the claim", f"{asked}{seen}")]
