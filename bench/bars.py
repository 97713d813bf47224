"""The sheet of how few questions there are, held against the bars that the project set itself.

Nothing here needs numpy: the process that starts all others stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.figures import MIB
from bench.sheets import MEMORY_BAR, Sheet

HIGH_EFFORT = 4096
SEEDS = (0, 1, 2)
_WHOLE = (
    *(("published", mechanism) for mechanism in ("idp", "unprotected")),
    *(("adaptive", "idp", f"seed={seed}") for seed in SEEDS),
    ("adaptive", "unprotected"),
    *(("adaptive", "idp", f"k={k}") for k in (2, 3)),
    *(("thrifty", "idp", f"seed={seed}") for seed in SEEDS),
    ("thrifty", "unprotected"),
    *(("thrifty", "idp", f"k={k}") for k in (2, 3)),
    ("thrifty", "idp", "boxes_only=true"),
    ("thrifty", "idp", f"effort={HIGH_EFFORT}"),
)
PARTS = (
    *(("person", strategy) for strategy in ("published", "adaptive", "thrifty")),
    *(("whole", *settings) for settings in _WHOLE),
)
"""What is run, each in a process of its own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole table reconstructed.

    Args:
        strategy: The strategy's name.
        mechanism: The mechanism's name.
        k: The group size.
        variant: What differs from the usual dials, in words; empty for none.
        seed: The seed of the curator's noise.
        questions: Questions in all.
        rounds: Batches.
        seconds: The whole audit with scoring.
        memory: The most bytes that the process held.
        bits: The bits of the table under the attack's own beliefs.
        wrong: Records that are wrong or missing.
    """

    strategy: str
    mechanism: str
    k: int
    variant: str
    seed: int
    questions: int
    rounds: int
    seconds: float
    memory: int
    bits: float
    wrong: int


@dataclass(frozen=True, slots=True)
class Person:
    """The same found out about each of many people.

    Args:
        strategy: The strategy's name.
        what: What was found out.
        people: How many people there were.
        questions: Questions in all.
        rounds: Batches.
        seconds: The attack, without setting up.
        wrong: People of whom anything is wrong or missing.
    """

    strategy: str
    what: str
    people: int
    questions: int
    rounds: int
    seconds: float
    wrong: int

    @property
    def mean(self) -> float:
        """Questions a person."""
        return self.questions / self.people


@dataclass(frozen=True, slots=True)
class _Bar:
    """What must be reached, what is aimed at, and how figures are written."""

    form: Callable[[float], str]
    must: float | None = None
    aim: float | None = None

    def text(self, values: Sequence[float]) -> str:
        """Write one figure, or the smallest and the largest of several."""
        shown = list(dict.fromkeys(self.form(value) for value in sorted(values)))
        return " to ".join(shown if len(shown) < 3 else [shown[0], shown[-1]])

    def met(self, values: Sequence[float]) -> str:
        """Judge the worst figure."""
        worst = max(values)
        if self.aim is not None and worst <= self.aim:
            return "yes, the aim too"
        return "" if self.must is None else "yes" if worst <= self.must else "no"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _mib(value: float) -> str:
    return f"{value:,.0f} MiB"


def _ratio(value: float) -> str:
    return f"{value:.3f}"


def _mean(value: float) -> str:
    return f"{value:.2f}"


_TABLE_BARS = {
    "adaptive": (
        _Bar(_count, 1_600_000, 1_500_000),
        _Bar(_seconds, 20, 5),
        _Bar(_count, 3_000, 1_000),
    ),
    "thrifty": (
        _Bar(_count, 1_050_000, 950_000),
        _Bar(_seconds, 180, 60),
        _Bar(_count, 10_000, 3_000),
    ),
    "thrifty, high effort": (_Bar(_count, 980_000, 900_000), _Bar(_seconds), _Bar(_count)),
    "thrifty, boxes only": (_Bar(_count), _Bar(_seconds), _Bar(_count)),
}
_MEMORY_BAR = _Bar(_mib, MEMORY_BAR // MIB)
_LIMIT = _Bar(_ratio)
_RATIO_BARS = {("thrifty", 1): (0.72, 0.66), ("adaptive", 1): (None, None)}
_LARGER_GROUPS = (1.0, 0.9)
_PERSON_BARS = {"balance": (12.5, 11), "all 12": (42, 36), "membership": (1, 1)}
_PERSON = {
    "balance": "one person's balance",
    "all 12": "all 12 unknown attributes of one person",
    "membership": "membership of one person",
}


def questions(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet; the published search of the same run is the measure."""
    runs = [Asked(**row) for row in rows if "mechanism" in row]
    people = [Person(**row) for row in rows if "people" in row]
    lines = [*_tables(runs, judge), *_ratios(runs, judge), *_people(people, judge)]
    return Sheet(
        "How few questions",
        ("what", "published search", "measured", "ratio", "must reach", "aim", "met", "exact"),
        frozenset(range(1, 6)),
        tuple(lines),
    )


Line = tuple[str, ...]


def _line(
    what: str,
    bar: _Bar,
    values: Sequence[float],
    published: float | None,
    exact: bool | None,
    judge: bool,
) -> Line:
    met = bar.met(values) if judge else ""
    return (
        what,
        "" if published is None else bar.form(published),
        bar.text(values),
        "" if published is None else f"{max(values) / published:.3f}",
        "" if bar.must is None or not judge else bar.form(bar.must),
        "" if bar.aim is None or not judge else bar.form(bar.aim),
        "no" if met and exact is False else met,
        "" if exact is None else "yes" if exact else "no",
    )


def _chosen(
    runs: list[Asked], strategy: str, mechanism: str, k: int = 1, variant: str = ""
) -> list[Asked]:
    wanted = (strategy, mechanism, k, variant)
    return [
        each for each in runs if (each.strategy, each.mechanism, each.k, each.variant) == wanted
    ]


def _tables(runs: list[Asked], judge: bool) -> list[Line]:
    """Return what whole tables cost under IDP with k = 1, for each strategy."""
    published = _chosen(runs, "published", "idp")[0]
    lines = []
    for name, (asked, seconds, rounds) in _TABLE_BARS.items():
        strategy, _, variant = name.partition(", ")
        mine = _chosen(runs, strategy, "idp", variant=variant)
        exact = not any(each.wrong for each in mine)
        seeds = f"{len(mine)} seeds" if len(mine) > 1 else "1 seed"
        figures: list[tuple[str, _Bar, list[float], float | None]] = [
            ("questions", asked, [e.questions for e in mine], published.questions),
            ("seconds", seconds, [e.seconds for e in mine], published.seconds),
            ("rounds", rounds, [e.rounds for e in mine], published.rounds),
            (
                "peak memory",
                _MEMORY_BAR,
                [e.memory / MIB for e in mine],
                published.memory / MIB,
            ),
            ("questions a bit", _LIMIT, [e.questions / e.bits for e in mine], None),
        ]
        lines += [
            _line(f"{name}, IDP: {what} ({seeds})", bar, values, beside, exact, judge)
            for what, bar, values, beside in figures
        ]
    return lines


def _ratios(runs: list[Asked], judge: bool) -> list[Line]:
    """Return questions without protection and for larger groups, and IDP beside them."""
    lines = []
    plain = _chosen(runs, "published", "unprotected")[0]
    protected = _chosen(runs, "published", "idp")[0]
    usual = protected.questions / plain.questions
    for strategy in ("adaptive", "thrifty"):
        beside = _chosen(runs, strategy, "unprotected")[0]
        what = f"{strategy}, unprotected"
        mine: list[Asked] = [beside]
        lines += [
            _line(
                f"{what}: questions (1 seed)",
                _Bar(_count),
                [beside.questions],
                plain.questions,
                not beside.wrong,
                judge,
            ),
            _line(
                f"{what}: seconds (1 seed)",
                _Bar(_seconds),
                [beside.seconds],
                plain.seconds,
                None,
                judge,
            ),
        ]
        for k in (1, 2, 3):
            mine = _chosen(runs, strategy, "idp", k)
            exact = not any(each.wrong for each in [*mine, beside])
            if k > 1:
                lines.append(
                    _line(
                        f"{strategy}, IDP, k = {k}: questions (1 seed)",
                        _Bar(_count),
                        [each.questions for each in mine],
                        None,
                        exact,
                        judge,
                    )
                )
            bar = _Bar(_ratio, *_RATIO_BARS.get((strategy, k), _LARGER_GROUPS))
            shares = [each.questions / beside.questions for each in mine]
            of = f"{strategy}, IDP / unprotected, k = {k}"
            lines.append(_line(of, bar, shares, usual if k == 1 else None, exact, judge))
    return lines


def _rounds(many: int) -> str:
    return f"{many:,} round{'' if many == 1 else 's'}"


def _people(found: list[Person], judge: bool) -> list[Line]:
    """Return what one person costs, on average."""
    lines = []
    for what, said in _PERSON.items():
        published = next(e for e in found if (e.strategy, e.what) == ("published", what))
        for each in found:
            if each.what != what or each is published:
                continue
            bar = _Bar(_mean, *_PERSON_BARS[what])
            of = f"{said}, {each.strategy} (mean of {each.people:,}; {_rounds(each.rounds)})"
            lines.append(_line(of, bar, [each.mean], published.mean, not each.wrong, judge))
    return lines
