"""The sheet of tables as people have them: how many came back exactly, and what became of the rest.

Nothing here needs numpy: the process that starts all others stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from bench.sheets import Sheet

Kind = Literal["exact", "15 digits", "rounded", "few records", "refused", "wrong", "not finished"]
KINDS: Final[tuple[Kind, ...]] = (
    "exact", "15 digits", "few records", "rounded", "refused", "wrong", "not finished",
)  # fmt: skip
GOOD: Final = frozenset(KINDS[:3])
"""What a user accepts; where a double's last digits were left out, a note has said so."""
LEAST, ROUNDED = 0.98, 0.02
"""The share of tables that must be good, and the most that may have a rounded column."""
LONGEST: Final = 160
"""Characters of a reason that are shown."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of auditing one file.

    Args:
        package: Whose data set it is.
        form: How it was written.
        name: The data set's name.
        kind: How well it came back, or that it did not.
        why: The error's message, or what differs.
        public: Columns of numbers that became public lists without a note.
        records: How many records the file has.
        columns: How many columns it has.
        seconds: How long the audit took, in processor time.
        notes: How many notes there were.
    """

    package: str
    form: str
    name: str
    kind: Kind
    why: str = ""
    public: Sequence[str] = ()
    records: int = 0
    columns: int = 0
    seconds: float = 0.0
    notes: int = 0


def tables(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet: a row for each package and form, the sums, and all that is not exact."""
    found = [Outcome(**row) for row in rows]
    groups: dict[str, list[Outcome]] = {}
    for each in found:
        groups.setdefault(f"{each.package}, {each.form}", []).append(each)
    for each in found:
        groups.setdefault(f"all, {each.form}", []).append(each)
    groups["all"] = found
    return Sheet(
        "Tables as people have them",
        (
            "package, form", "files", *KINDS, "public without a note", "seconds",
            f"good (bar {LEAST:.0%})", "met",
        ),
        frozenset(range(1, 12)),
        (
            *(_sums(name, group, judge) for name, group in groups.items()),
            *_listed(found),
        ),
    )  # fmt: skip


def _sums(name: str, found: Sequence[Outcome], judge: bool) -> tuple[str, ...]:
    counts = [sum(each.kind == kind for each in found) for kind in KINDS]
    good = sum(each.kind in GOOD for each in found) / len(found)
    rounded = sum(each.kind == "rounded" for each in found) / len(found)
    public = sum(len(each.public) for each in found)
    met = good >= LEAST and rounded <= ROUNDED and not public
    return (
        name,
        f"{len(found):,}",
        *(f"{count:,}" for count in counts),
        f"{public:,}",
        f"{sum(each.seconds for each in found):,.0f}",
        f"{good:.2%}",
        ("yes" if met else "no") if judge and name.startswith("all") else "",
    )


def _listed(found: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return a row for each table that is not exact: in which forms, and why."""
    others: dict[tuple[str, str, str, str], list[str]] = {}
    for each in found:
        if each.kind != "exact" or each.public:
            why = each.why or (f"public: {', '.join(each.public)}" if each.public else "")
            key = (each.package, each.name, each.kind, why)
            others.setdefault(key, []).append(each.form)
    blank = ("",) * (len(KINDS) + 5)
    return [
        (f"{package}, {', '.join(forms)}: {name}: {kind}{_because(why)}", *blank)
        for (package, name, kind, why), forms in sorted(
            others.items(), key=lambda item: (KINDS.index(item[0][2]), item[0])
        )
    ]


def _because(why: str) -> str:
    shown = " ".join(why.split()).replace("|", "\\|")
    return "" if not why else f" ({shown if len(shown) <= LONGEST else shown[:LONGEST] + ' ...'})"
