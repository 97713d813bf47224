"""What --help looks like: options under headings, and no word broken in two.

Nothing heavy is imported here, so that --help is there at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import click

HEADINGS: Final = {
    "Mechanism": (
        "mechanism", "k", "offset", "post", "noise", "delta", "universe", "min_epsilon",
        "max_queries", "cache", "seed",
    ),
    "Budget": (
        "epsilons", "epsilon_per_query", "epsilon", "split", "answers", "most_each", "cap",
        "budget", "analyst",
    ),
    "Attack": (
        "attack", "columns", "known", "people_file", "present", "priors", "precision", "order",
        "people", "link", "sample",
    ),
    "Search": (
        "strategy", "rounds", "effort", "windows", "boxes_only", "error", "most_repeats", "test",
        "repeats", "channel", "force",
    ),
    "Checks and limits": (
        "trials", "canaries", "canary_values", "confidence", "checks", "check_claim", "truth",
    ),
    "Table": ("schema", "engine", "inside", "spark", "no_temporary_tables", "patience"),
    "Reading the file": (),
    "Service": (
        "new_token", "token_file", "ledger", "host", "port", "no_browser", "rate", "largest_batch",
        "answer_after",
    ),
    "Output": (
        "transcript", "resume", "output", "report", "comparison", "show_records", "figure",
        "with_risk", "risk_records", "risk_figure", "json_file", "safe_csv", "overwrite",
    ),
    "Options": ("version", "verbose", "help"),
}  # fmt: skip
"""The headings in their order, each with the names of its options. The fields of a `Reading` stand
under "Reading the file"."""
FEW: Final = 10
"""So many options need no headings."""
_WIDEST: Final = 30
"""The widest column of names, as click has it: longer names have a line of their own."""
_HYPHEN, _SPACE = "\u2011", "\u00a0"
_LONG: Final = 24
"""A longer remark in brackets may be broken at a space."""


def heading_of(name: str) -> str:
    """Return the heading that an option stands under; empty where nobody gave it one."""
    from thinveil.curator.tables.reading import READING

    if name in READING:
        return "Reading the file"
    return next((each for each, names in HEADINGS.items() if name in names), "")


class Formatter(click.HelpFormatter):
    """Breaks lines at spaces only, and not within short remarks in brackets."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_whole(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = _WIDEST, col_spacing: int = 2
    ) -> None:
        """Write names beside what they mean."""
        whole = [(name, _whole(meaning)) for name, meaning in rows]
        super().write_dl(whole, col_max, col_spacing)

    def write(self, string: str) -> None:
        """Write a text that is broken into lines already."""
        super().write(string.replace(_HYPHEN, "-").replace(_SPACE, " "))


def _whole(text: str) -> str:
    """Return a text in which hyphens and short brackets hold lines together."""
    return re.sub(
        r"\[[^]]*\]",
        lambda found: found[0] if len(found[0]) > _LONG else found[0].replace(" ", _SPACE),
        text,
    ).replace("-", _HYPHEN)


class Context(click.Context):
    """A context whose help is written by our formatter."""

    formatter_class = Formatter


class Command(click.Command):
    """A command whose --help puts many options under headings."""

    context_class = Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: under headings where there are many."""
        if len(self.params) <= FEW:
            super().format_options(ctx, formatter)
            return
        sections = dict(self._sections(ctx))
        widest = max(len(name) for rows in sections.values() for name, _ in rows)
        width = min(widest, _WIDEST)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), meaning) for name, meaning in rows])

    def _sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield headings with their options, as rows of name and meaning."""
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if row is not None:
                found.setdefault(heading_of(param.name or "") or "Options", []).append(row)
        for heading in HEADINGS:
            if heading in found:
                yield heading, found[heading]
