"""thinveil ledger: check, back up or seal anew what a service keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from thinveil.commands.shared.grouped import Command
from thinveil.errors import UsageError
from thinveil.language.texts import many
from thinveil.report.text.streams import say

_DOING: Final = ("check", "backup", "reseal")


@click.command("ledger", cls=Command)
@click.argument("doing", metavar="|".join(_DOING), type=click.Choice(_DOING))
@click.argument("ledger")
@click.argument("copy", required=False)
def command(doing: str, ledger: str, copy: str | None) -> None:
    """Look after LEDGER, the file in which thinveil serve keeps what was spent and answered.

    check tells whether it was cut or edited, and what was spent; backup copies it with its seal to
    COPY. Both work while the service runs. reseal takes a ledger as it is, where its seal is
    lost, say: from then on, only later edits are told.

    \b
    Examples:
      thinveil people --records 60 --output people.csv
      thinveil serve people.csv --ledger people.ledger
      thinveil ledger check people.ledger
      thinveil ledger backup people.ledger copy.ledger
      thinveil ledger check copy.ledger
      thinveil ledger reseal copy.ledger
    """
    from thinveil.curator.service.ledger import care

    if (copy is None) == (doing == "backup"):
        needs = "names the copy, too" if copy is None else "takes one file"
        raise UsageError(f"thinveil ledger {doing} {needs}: see thinveil ledger --help")
    if copy is not None:
        standing = care.backup(Path(ledger), Path(copy))
        said = f"Copied to {copy} and {copy}-seal, which belong together: "
    elif doing == "check":
        standing = care.check(Path(ledger))
        said = "Neither cut nor edited: "
    else:
        standing = care.reseal(Path(ledger))
        said = "Sealed as it is; what was cut or edited before cannot be told any more: "
    lines = [said + many(standing.entries, "entry", "entries")]
    for each in standing.accounts:
        spent = f"spent {float(each.spent):.6g} of {float(each.budget):g}"
        lines.append(f"  {each.name}: {spent} in {many(each.batches, 'batch', 'batches')}")
    if standing.log:
        lines.append(f"{standing.log:,} bytes of it are in {ledger}-wal, which belongs to it")
    say(*lines)
