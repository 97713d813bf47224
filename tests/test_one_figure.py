"""One statement has one figure; densities hold, without warnings, where squares overflow."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import thinveil
from thinveil.attacker.evidence.power import power, weakest
from thinveil.language.laws import Cauchy, Laplace
from thinveil.report.charts.mechanisms import compared
from thinveil.report.text.comparison import show_comparison
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.shared import Settings
from worlds import as_a


def two(folder):
    path = folder / "two.csv"
    path.write_text("a\n1\n2\n", "utf-8")
    return thinveil.load(path)


# What would have been seen


def test_a_comparison_names_one_loss_for_each_law(tmp_path):
    """The notes are the attacks' own words, the verdict is beside them: of `a` = 1, 2."""
    settings = Settings(mechanisms=("dp-laplace", "dp-smooth"), people=2, most_repeats=64)
    found = compare(two(tmp_path), settings)
    lucky = found.lines[0].tried[0]
    assert (lucky.recovered, lucky.of) == (2, 2)  # by two coins, which show nothing
    assert all(each.at_baseline for each in found.lines)
    console = Console(width=4000, file=StringIO())
    show_comparison(console, found)
    shown = as_a(StringIO, console.file).getvalue()
    for law in ("Laplace", "Cauchy"):
        losses = re.findall(rf"of honest {law} noise, a loss of (\S+) an answer", shown)
        assert len(losses) == 2  # a note and the verdict
        assert len(set(losses)) == 1


def test_the_verdict_names_the_largest_of_several_losses():
    small, large = power(64, 14.0), power(64, 20.0)
    cauchy = power(64, 14.0, Cauchy())
    said = [f"none; {small}", "", f"none; {cauchy}", f"none; {large}", f"none; {small}"]
    assert weakest(said) == [large, cauchy]
    assert weakest(["the cap was reached"]) == []
    assert power(64, 20.0, Laplace()) == large


@pytest.mark.parametrize(
    ("right", "told", "place", "at"),
    [
        (25, 20, "after", 0.625),  # on the bar it would stand on the mark
        (10, 20, "after", 0.5),
        (40, 20, "last", 1.0),
        (40, 36, "first", 0.0),
        (5, 36, "after", 0.125),
    ],
)
def test_a_figure_stands_clear_of_the_marks(tmp_path, right, told, place, at):
    found = compare(two(tmp_path), Settings(mechanisms=("idp",), people=2))
    line = found.lines[0]
    first = replace(line.tried[0], recovered=right, of=40, stated=40, baseline=20.0, marginals=told)
    shown = replace(found, lines=(replace(line, outcomes=(first, *line.outcomes[1:])),))
    [row] = compared(shown).panels[0].spec["data"]["values"]
    assert (row["place"], row["at"]) == (place, at)


# Cauchy noise at the smallest losses


@pytest.mark.parametrize("rate", [1e-300, 1e-200, 1e-9, 1.0, 1e9])
@pytest.mark.parametrize("far", [0.0, 1.0, 3e15, 1e17, 1e155, 1e300, 1.7e308])
def test_the_density_and_mass_of_cauchy_noise_hold_far_out(rate, far):
    where, how = np.array([far]), np.array([rate])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density = float(Cauchy().density(where, how)[0])
        mass = float(Cauchy().whole(where, how)[0])
    beyond = 2 * (math.log(rate) + math.log(far)) if far else -math.inf
    beyond = beyond if beyond > 100 else math.log1p(math.exp(beyond))
    right = math.log(rate / math.pi) - beyond
    assert density == pytest.approx(right, rel=1e-12)
    if far >= 1e15 or rate < 1e-8:  # a mass is the density there, as nothing changes within 1
        assert mass == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("mechanism", ["bdp", "idp-integer"])
def test_a_run_at_the_smallest_losses_warns_of_nothing(tmp_path, mechanism):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = thinveil.audit(
            two(tmp_path),
            mechanism=mechanism,
            noise="cauchy",
            epsilon=1e-200,
            checks="on",
        )
    assert verdict.exit_code == 0
