"""Audits of libraries that nobody here wrote: every answer is drawn by them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil.errors import BudgetError, QueryError, ThinveilError, UsageError

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "examples" / "thinveil-foreign"
DOCS = (ROOT / "docs" / "foreign.md").read_text("utf-8")
OPENDP = pytest.mark.skipif(
    importlib.util.find_spec("opendp") is None, reason="opendp is not installed"
)


def diffprivlib(test: Any) -> Any:
    """Mark a test that needs diffprivlib."""
    missing = importlib.util.find_spec("diffprivlib") is None
    skip = pytest.mark.skipif(missing, reason="diffprivlib is not installed")
    return pytest.mark.foreign(skip(test))


SCHEMA = thinveil.Schema(
    (thinveil.Grid("age", lower=0, upper=15), thinveil.Categories("job", ("a", "b", "c")))
)
ROWS = [[3, 0], [3, 0], [7, 1], [12, 2], [12, 0], [0, 1], [15, 2], [7, 1]]
DATA = thinveil.Dataset(SCHEMA, np.array(ROWS, np.int64))
RUN = ("run", 1)


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))


def of_low_ages(counts_and_thresholds: list[tuple[int, int]]) -> thinveil.QueryBatch:
    """Ask about ranges of ages that hold so many records: 0, 1, 3 or all 8 of them."""
    end = {0: -3, 1: 1, 3: 4, 8: 16}
    return thinveil.batch_of([([{0: (-9, end[c])}], b) for c, b in counts_and_thresholds])


# ---- OpenDP's Laplace measurement, scaled by local sensitivity


@OPENDP
def test_opendp_measures_at_scale_zero_and_returns_its_input() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    assert dp.m.make_laplace(*space, scale=0.0)([0.0, 1.0, 1.0]) == [0.0, 1.0, 1.0]


@OPENDP
def test_every_answer_comes_out_of_a_measurement_at_local_sensitivity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from thinveil_foreign.local import LocalLaplace

    target, scales = LocalLaplace(DATA), []
    real = target._dp.m.make_laplace

    def watched(*space: Any, scale: float) -> Any:
        scales.append(scale)
        return real(*space, scale=scale)

    monkeypatch.setattr(target._dp.m, "make_laplace", watched)
    asked = [(3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (0, 0), (8, 6), (8, 7)]
    values = target.answer(of_low_ages(asked).stamped(RUN, 1e-6))
    assert scales == [0.0, 1e6]
    assert [float(each) in (0.0, 1.0) for each in values] == [
        abs(c - b - 0.5) > 1 for c, b in asked
    ]
    assert values[[0, 1, 4, 6]].tolist() == [1, 1, 0, 1]
    assert (target.exact, target.noisy) == (4, 4)
    with pytest.raises(BudgetError):
        target.answer(of_low_ages([(3, 0)]))


@OPENDP
def test_the_whole_table_comes_back_through_opendp() -> None:
    from thinveil_foreign.local import LocalLaplace

    data = thinveil.people(40)
    target = LocalLaplace(data)
    verdict = thinveil.audit(target, truth=data)
    assert verdict.score is not None
    assert verdict.score.exact
    assert target.exact + target.noisy == verdict.run.meter.drawn
    assert target.exact > 100
    assert target.noisy > 100
    assert float(verdict.run.spent) < 1e-5


# ---- diffprivlib's mean without bounds


@diffprivlib
@pytest.mark.parametrize("c", [0, 1, 3, 8])
def test_the_law_of_a_mean_without_bounds(c: int) -> None:
    """0 with probability exp(-c eps) / 2 and 1 with exp(-(n - c) eps) / 2, unless none or all."""
    from diffprivlib.tools import mean
    from diffprivlib.utils import PrivacyLeakWarning

    n, many, eps = 8, 4000, 0.05
    indicator = np.array([1.0] * c + [0.0] * (n - c))
    with pytest.warns(PrivacyLeakWarning, match="additional privacy leakage"):
        drawn = np.array(
            [mean(indicator, epsilon=eps, bounds=None, random_state=i) for i in range(many)]
        )
    low, high = 0.5 * np.exp(-c * eps), 0.5 * np.exp(-(n - c) * eps)
    if c in (0, n):
        assert (drawn == c / n).all()
        return
    for share, expected in ((np.mean(drawn == 0), low), (np.mean(drawn == 1), high)):
        assert abs(share - expected) < 5 * np.sqrt(0.25 / many)


@diffprivlib
def test_each_answer_is_a_call_and_each_call_warns() -> None:
    from thinveil_foreign.means import Means

    target = Means(DATA)
    assert "warns" in target.warning
    asked = [(0, 0), (0, 5), (8, 0), (8, 7), *[(3, b) for b in range(8)] * 25]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # heard and counted, not passed on
        values = target.answer(of_low_ages(asked).stamped(RUN, 1e-9))
    assert values[:4].tolist() == [0, 0, 1, 1]
    assert 50 < values[4:].sum() < 150
    assert target.calls == target.warned == len(asked)
    assert target.spent == pytest.approx(len(asked) * 1e-9)
    with pytest.raises(BudgetError, match="fair coin"):
        target.answer(of_low_ages([(3, 0)]).stamped(RUN, 0.1))
    with pytest.raises(BudgetError):
        target.answer(of_low_ages([(3, 0)]))
    with pytest.raises(QueryError, match="no threshold"):
        target.answer(of_low_ages([(3, 8)]).stamped(RUN, 1e-9))


@diffprivlib
def test_unions_and_repeats_are_answered() -> None:
    from thinveil_foreign.means import Means

    target = Means(DATA)
    ages = [{0: (0, 8)}, {0: (8, 16)}]
    batch = thinveil.batch_of([(ages, 0), (ages[:1], 0)])
    object.__setattr__(batch, "repeats", np.array([3, 60]))
    values = target.answer(batch.stamped(RUN, 1e-9))
    assert values[:3].tolist() == [1, 1, 1]
    assert 0 < values[3:].sum() < 60


@diffprivlib
@pytest.mark.parametrize("strategy", ["adaptive", "thrifty"])
def test_the_distinct_records_come_back_through_diffprivlib(strategy: str) -> None:
    from thinveil_foreign.means import Means

    target = Means(DATA)
    verdict = thinveil.audit(target, truth=DATA, strategy=strategy)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.score.distinct
    assert verdict.score.records == 6
    assert target.calls == target.warned == verdict.run.meter.drawn
    assert target.spent == pytest.approx(float(verdict.run.spent), rel=1e-6)
    assert target.spent < 1e-6


# ---- as packages, and on the page


@OPENDP
@diffprivlib
def test_the_installed_targets_are_audited_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder),
         str(PACKAGE)],
        check=True, capture_output=True,
    )  # fmt: skip
    lines = ["age,job", *(f"{age},{'abc'[job]}" for age, job in ROWS)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    (tmp_path / "people.toml").write_text(thinveil.write_schema(SCHEMA))
    for name, said in (("opendp", "all 8 records"), ("diffprivlib", "distinct set of 6 records")):
        done = subprocess.run(
            [sys.executable, "-m", "thinveil", "audit", f"{name}:people.csv", "--truth", "self",
             "--schema", "people.toml", "--json", f"{name}.json"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert said in " ".join(re.sub("[│╭╰]", "", done.stdout).split())
        assert json.loads((tmp_path / f"{name}.json").read_text())["exact"]
        assert ("warns at every call" in done.stderr) == (name == "diffprivlib")
        assert "PrivacyLeakWarning" not in done.stderr


def test_addresses_are_files_or_numbers_of_embedded_people(tmp_path: Path) -> None:
    from thinveil_foreign import table_at

    assert table_at("30").digest() == thinveil.people(30).digest()
    (tmp_path / "30.csv").write_text("x\n1\n2\n")
    assert table_at(str(tmp_path / "30.csv")).records == 2
    with pytest.raises(UsageError, match="own schema"):
        table_at("30", SCHEMA)


@pytest.mark.parametrize("module", ["local", "means"])
def test_a_missing_library_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opendp", "opendp.prelude", "diffprivlib"):
        monkeypatch.setitem(sys.modules, name, None)
    made = importlib.import_module(f"thinveil_foreign.{module}")
    kind = made.LocalLaplace if module == "local" else made.Means
    with pytest.raises(ThinveilError, match="is not installed: pip install"):
        kind(DATA)


def test_the_page_names_both_audits_and_says_that_the_library_warns() -> None:
    for command in ("thinveil audit opendp:", "thinveil audit diffprivlib:"):
        assert command in DOCS
    assert "PrivacyLeakWarning" in DOCS
