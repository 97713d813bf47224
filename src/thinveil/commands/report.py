"""thinveil report: a run, written by thinveil audit --json, as a page to hand on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from thinveil.commands.common import check_outputs, consoles
from thinveil.errors import DataError, UsageError
from thinveil.files import write_file
from thinveil.report.html import page

_RUN: Final = ("mechanism", "attack", "queries", "verdict", "assumed_public")
_COMPARISON: Final = ("mechanisms", "trials", "epsilon_per_query", "verdict")


@click.command("report")
@click.argument("run", metavar="RUN.json")
@click.option(
    "--comparison",
    metavar="FILE",
    help="What thinveil compare --risk --json FILE wrote, to be shown beside the run.",
)
@click.option(
    "--show-records",
    is_flag=True,
    help="Show recovered records and what was known of people; else all values are masked.",
)
@click.option("--output", metavar="FILE", help="Where the page goes. [RUN.html]")
def command(run: str, comparison: str | None, show_records: bool, output: str | None) -> int:
    """Turn RUN.json, which thinveil audit --json wrote, into a page to hand on.

    The page is one HTML file that loads nothing: it opens from disk, prints, and is readable on a
    phone. It holds no value of any record unless --show-records is given.

    \b
    Examples:
      thinveil audit people.csv --json run.json
      thinveil report run.json
      thinveil report run.json --comparison compare.json --output handout.html
    """
    target = output or str(Path(run).parent / f"{Path(run).stem or 'report'}.html")
    check_outputs([run, comparison], output=target)
    found = _read(run, _RUN, "the result of an audit: write one with  thinveil audit --json FILE")
    beside = None
    if comparison is not None:
        wanted = "a comparison: write one with  thinveil compare --risk --json FILE"
        beside = _read(comparison, _COMPARISON, wanted, "--comparison ")
    if show_records and not found.get("records_shown") and not found.get("result"):
        raise UsageError(
            f"--show-records: {run} holds no records. Run the audit again with --show-records "
            "and --json, where the true table is at hand"
        )
    try:
        text = page(found, comparison=beside, show_records=show_records)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise DataError(
            f"{run} is not as this version writes results: run the audit again with --json"
        ) from None
    write_file(target, text, f"--output {target}", private=show_records)
    consoles(None)[1].print(Text(f"The report is in {target}; it opens in any browser."))
    return 0


def _read(path: str, keys: tuple[str, ...], wanted: str, option: str = "") -> Mapping[str, Any]:
    """Read a result; what it is must show in its keys."""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{option}{path}: there is no such file: check the path") from None
    except OSError as error:
        raise DataError(f"{option}{path}: {error.strerror}") from None
    except ValueError:
        raise DataError(f"{option}{path} is not JSON; wanted is {wanted}") from None
    if isinstance(content, dict) and all(key in content for key in keys):
        return content
    said = f"{option}{path} is not {wanted}"
    if isinstance(content, dict) and not option and all(key in content for key in _COMPARISON):
        said += ". This is a comparison: give it as --comparison, beside the result of an audit"
    raise DataError(said)
