"""Sheets: a table of results each, ready for the screen and for bench/RESULTS.md.

Nothing here needs numpy: the process that starts all others stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.figures import MIB, Figure

USUAL = "adaptive"
"""The default strategy."""
SECONDS_BAR = 300
MEMORY_BAR = 4096 * MIB
ANSWERS_BARS = {"idp-binary": (15, 5), "idp-noisy": (150, 60)}
"""Answers for each question of the published search: at most, and what is aimed at."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: its title, its headings, which of them stand to the right, and its rows."""

    title: str
    headings: tuple[str, ...]
    right: frozenset[int]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A whole table reconstructed through one mechanism.

    Args:
        mechanism: The mechanism's name.
        k: The group size; None where there is none.
        strategy: The strategy's name.
        wrong: Records that are wrong or missing.
        answers: Answers drawn.
        questions: Rows of batches.
        rounds: Batches.
        seconds: The whole audit with scoring.
        memory: The most bytes that the process held.
        claimed: The claimed loss.
        error: The planned chance of any wrong decision.
    """

    mechanism: str
    k: int | None
    strategy: str
    wrong: int
    answers: int
    questions: int
    rounds: int
    seconds: float
    memory: int
    claimed: float
    error: float


@dataclass(frozen=True, slots=True)
class Audits:
    """Many simulated audits of something whose epsilon is known.

    Args:
        what: What is audited, and its epsilon.
        audits: How many audits there were.
        trials: How many trials an audit has.
        missed: How often the bound was above the truth, at each confidence.
        errors: How often it may be.
        held: Whether that many misses do not speak against these errors.
        bound: The mean of the bounds at the last confidence.
        bar: What that should be at least.
        rates: The same mean by two rates.
    """

    what: str
    audits: int
    trials: int
    missed: Sequence[int]
    errors: Sequence[float]
    held: bool
    bound: float | None = None
    bar: float | None = None
    rates: float | None = None


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Many small tables reconstructed through one mechanism.

    Args:
        mechanism: The mechanism's name.
        k: The group size; None where there is none.
        strategy: The strategy's name.
        runs: How many tables there were.
        records: How many records there were in all.
        wrong: Records that are wrong or missing, in all.
        answers: Answers drawn, in all.
        error: The largest planned error of a run.
        seconds: What all runs took.
    """

    mechanism: str
    k: int | None
    strategy: str
    runs: int
    records: int
    wrong: int
    answers: int
    error: float
    seconds: float


def speed(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of figures that are about speed."""
    return _figures("Speed", rows, judge)


def tests(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of figures about tests that tell noise apart."""
    return _figures("Telling noise from noise", rows, judge)


def databases(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of whole tables reconstructed inside databases."""
    return _figures("Tables in databases", rows, judge)


def large(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of large tables through thrifty and always-noisy mechanisms."""
    return _figures("Three attributes of large tables in memory", rows, judge)


def service(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of a service over loopback."""
    return _figures("A service over HTTP", rows, judge)


def evidence(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of trials, bounds, reports and starting times."""
    return _figures("Evidence", rows, judge)


def soak(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of everything that tried to break thinveil."""
    return _figures("Surviving", rows, judge)


@dataclass(frozen=True, slots=True)
class Caught:
    """How often a target was called broken.

    Args:
        what: What it does.
        claim: What it claims.
        runs: Attacks on it.
        broken: How many of them ended because its claim is broken.
        least: The chance of that is at least so high; above it by chance at 5 %.
        most: The same from above.
        checks: Answers that checks took, the mean.
        queries: Answers that the attack took, the mean.
        bar: What the chance must reach: at least for liars, at most for honest targets.
    """

    what: str
    claim: str
    runs: int
    broken: int
    least: float
    most: float
    checks: float
    queries: float
    bar: float


def lies(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of targets that lie, and of honest ones."""
    found = [Caught(**row) for row in rows]
    return Sheet(
        "Targets that lie",
        ("target", "claims", "called broken", "chance, at 95 %", "checks", "attack"),
        frozenset({2, 3, 4, 5}),
        tuple(
            (
                each.what,
                each.claim,
                f"{each.broken:,} of {each.runs:,}",
                f"at most {each.most:.2g}" if each.bar < 0.5 else f"at least {each.least:.4f}",
                f"{each.checks:,.0f}",
                f"{each.queries:,.0f}",
            )
            for each in found
        ),
    )


def trials(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of simulated audits: how often a bound is too high, and how high it is."""
    found = [Audits(**row) for row in rows]
    return Sheet(
        "Bounds of trials",
        (
            "audits of",
            "audits x trials",
            "missed at 95 %",
            "missed at 99.9 %",
            "held",
            "mean bound at 99.9 %",
            "bar",
            "met",
            "by two rates",
        ),
        frozenset({1, 2, 3, 5, 8}),
        tuple(
            (
                each.what,
                f"{each.audits:,} x {each.trials:,}",
                *(
                    f"{missed:,} (at most {error:.3%})"
                    for missed, error in zip(each.missed, each.errors, strict=True)
                ),
                _yes(each.held if judge else None),
                "" if each.bound is None else f"{each.bound:.3f}",
                f"at least {each.bar:.2f}" if judge and each.bar is not None else "",
                _yes(each.bound >= each.bar) if judge and each.bar and each.bound else "",
                "" if each.rates is None else f"{each.rates:.3f}",
            )
            for each in found
        ),
    )


def _figures(title: str, rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    figures = [Figure(**row) for row in rows]
    if not judge:
        figures = [replace(figure, bar="", met=None) for figure in figures]
    return Sheet(
        title,
        ("what", "measured", "bar", "met", "ratio"),
        frozenset({1}),
        tuple((each.what, each.measured, each.bar, _yes(each.met), each.ratio) for each in figures),
    )


def mechanisms(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of whole tables; what the published search asks is the measure."""
    found = {_key(each): each for each in (Reconstruction(**row) for row in rows)}
    return Sheet(
        "Whole table, by mechanism",
        (
            "mechanism, strategy",
            "exact",
            "answers",
            "questions",
            "answers a question",
            "answers a published question",
            "x the default",
            "rounds",
            f"seconds (bar {SECONDS_BAR})",
            f"peak MiB (bar {MEMORY_BAR // MIB:,})",
            "claimed loss",
            "planned error",
            "bar on answers",
            "met",
        ),
        frozenset(range(2, 12)),
        tuple(_reconstruction(each, found, judge) for each in found.values()),
    )


def _key(row: Reconstruction) -> tuple[str, int | None, str]:
    return row.mechanism, row.k, row.strategy


def _reconstruction(
    row: Reconstruction, found: dict[tuple[str, int | None, str], Reconstruction], judge: bool
) -> tuple[str, ...]:
    published = found["idp", row.k or 1, "published"]
    ratio = row.answers / published.answers
    usual = row.strategy == USUAL
    default = found.get((row.mechanism, row.k, USUAL))
    beside = "" if usual or default is None else f"{row.answers / default.answers:.2f}"
    most, aim = ANSWERS_BARS.get(row.mechanism, (None, None))
    bar = "" if most is None or not usual else f"at most {most}, aim {aim}"
    good = (
        not row.wrong
        and row.seconds <= SECONDS_BAR
        and row.memory <= MEMORY_BAR
        and (most is None or ratio <= most)
    )
    met = _yes(good) if usual and judge else ""
    if met == "yes" and aim is not None and ratio <= aim:
        met = "yes, the aim too"
    return (
        f"{_named(row.mechanism, row.k)}, {row.strategy}",
        "yes" if not row.wrong else "no",
        f"{row.answers:,}",
        f"{row.questions:,}",
        f"{row.answers / row.questions:.2f}",
        f"{ratio:.2f}",
        beside,
        f"{row.rounds:,}",
        f"{row.seconds:.1f}",
        f"{row.memory / MIB:,.0f}",
        f"{row.claimed:.2g}",
        f"{row.error:.1g}",
        bar if judge else "",
        met,
    )


def mistakes(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of many small tables: no record may be wrong."""
    found = [Mistakes(**row) for row in rows]
    return Sheet(
        "Many small tables",
        (
            "mechanism, strategy",
            "runs",
            "records",
            "wrong or missing",
            "bar",
            "met",
            "mean answers",
            "largest planned error",
            "seconds",
        ),
        frozenset({1, 2, 3, 6, 7, 8}),
        tuple(
            (
                f"{_named(each.mechanism, each.k)}, {each.strategy}",
                f"{each.runs:,}",
                f"{each.records:,}",
                f"{each.wrong:,}",
                "0" if judge else "",
                _yes(each.wrong == 0) if judge else "",
                f"{each.answers / each.runs:,.0f}",
                f"{each.error:.1g}",
                f"{each.seconds:.0f}",
            )
            for each in found
        ),
    )


def _named(mechanism: str, k: int | None) -> str:
    return mechanism if k is None else f"{mechanism}, k = {k}"


def _yes(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "no"
