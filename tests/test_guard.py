"""What the guard's small audits ask, frozen: rounded, always noisy, cached, foreign and fixed.

Where a change moves a count on purpose, `tools/guard.py` says how to write them anew; say why
in the commit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from guard import PARTS, Guard, compare  # noqa: E402 # a tool, not a package

FROZEN: dict[str, list[Any]] = json.loads((ROOT / "tests/frozen/guard.json").read_text("utf-8"))

OFTEN = (
    "bdp binary/dataset", "idp k=3/dataset", "idp/cache/dataset", "structured/idp/adaptive",
    "wide counts/idp",
)  # fmt: skip


def often(key: str) -> bool:
    """Say whether an audit is run each time: the default strategy, and a corner of each kind."""
    return "/adaptive/" in key or key in OFTEN


@pytest.mark.parametrize("part", ["usual", "corners", "larger"])
def test_what_the_default_strategy_asks_is_as_frozen(part: str) -> None:
    check(Guard(often), part)


@pytest.mark.nightly
@pytest.mark.parametrize("part", PARTS)
def test_counts_are_as_frozen(part: str) -> None:
    if part == "over_http":
        pytest.importorskip("uvicorn", reason="serving needs the extra service")
    check(Guard(lambda key: not often(key)), part)


def check(guard: Guard, part: str) -> None:
    getattr(guard, part)()
    assert guard.rows
    for key, row in guard.rows.items():
        expected = FROZEN[key]
        if row[0] == "refused":
            assert list(row) == expected, key
            continue
        # logarithms differ in their last digits from machine to machine, and so do stops
        assert row[0] == pytest.approx(expected[0], rel=0.01, abs=8), key
        assert row[1] == pytest.approx(expected[1], rel=0.02, abs=8), key
        assert row[2] == expected[2], key


def test_what_has_no_other_frozen_count_has_one_here() -> None:
    wanted = (
        "idp-noisy/adaptive/dataset", "structured/idp-binary/adaptive", "idp-binary/cache/dataset",
        "bdp always noisy/dataset", "identical/published/column", "mean/published/column",
        "a law of nobody's/dataset",
    )  # fmt: skip
    for key in wanted:
        assert FROZEN[key][2] == "complete", key


def test_the_guard_sees_a_moved_answer() -> None:
    before = {"a": [3, 1, "complete", "x"], "b": [4, 1, "complete", "y"]}
    assert compare(before, before) == []
    assert len(compare(before, {**before, "b": [4, 1, "complete", "z"]})) == 1
    assert len(compare(before, {"a": before["a"]})) == 1
