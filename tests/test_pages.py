"""Every command that a page or a --help prints works, on files that its earlier lines made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import (
    BANK,
    DOCS,
    NOT_HERE,
    PAGES,
    QUICK,
    ROOT,
    SERVED,
    Block,
    Reader,
    blocks,
    check_shown,
    examples,
    not_here,
    reading,
)
from thinveil.commands.main import _COMMANDS

SLOW = {"audit", "doctor", "report", "serve", "theory"}
"""Commands whose examples take more than a moment."""
MINUTES = {"", "compare", "reproduce"}
"""Those whose examples take minutes."""


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Somebody in an empty folder."""
    with reading(tmp_path, monkeypatch) as reader:
        yield reader


@pytest.mark.parametrize("name", QUICK)
def test_a_page_runs_from_an_empty_folder(name: str, reader: Reader):
    for block in blocks(DOCS / name):
        reader.runs(block)


def run_examples(name: str, reader: Reader) -> None:
    block = examples(name)
    lines = list(block.lines())
    assert any(line.startswith(f"thinveil {name}".rstrip()) for line in lines), name
    for line in lines:
        served = SERVED in line and reader.service is None
        if not (not_here(line) or served or BANK in line):
            reader.line(line, block.where)


@pytest.mark.parametrize("name", sorted(set(_COMMANDS) - SLOW - MINUTES))
def test_examples_of_help_run(name: str, reader: Reader):
    run_examples(name, reader)


@pytest.mark.docs
@pytest.mark.parametrize("name", sorted(SLOW))
def test_examples_of_help_that_take_longer_run(name: str, reader: Reader):
    run_examples(name, reader)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(MINUTES))
def test_examples_of_help_that_take_minutes_run(name: str, reader: Reader):
    run_examples(name, reader)


@pytest.mark.nightly
def test_lines_that_take_minutes_run_as_the_page_on_comparing_prints_them(reader: Reader):
    for block in blocks(DOCS / "compare.md"):
        reader.runs(block)


@pytest.mark.nightly
def test_examples_on_the_bank_table_run(reader: Reader, bank_path: Path):
    (reader.folder / BANK).symlink_to(bank_path)
    lines = {line for name in ("", *_COMMANDS) for line in examples(name).lines() if BANK in line}
    assert lines
    for line in sorted(lines):
        reader.line(line, "--help")


def test_pages_take_nothing_for_granted():
    """A file that a command reads is made by a line above it, whether it runs here or not."""
    for page in PAGES:
        made: set[str] = {BANK}
        for block in blocks(page):
            if block.language == "sh":
                for line in block.lines():
                    made |= written(line)
                    missing = wanted(line) - made
                    assert not missing, f"{block.where}: nothing above made {missing}"


def written(line: str) -> set[str]:
    flags = r"(?:--(?:output|json|report|transcript|figure|risk-figure|ledger)|>) (\S+)"
    return set(re.findall(flags, line))


def wanted(line: str) -> set[str]:
    files = re.findall(r"(?<![\w/])[\w-]+\.(?:csv|toml|json|transcript)\b", line)
    return set(files) - written(line)


def test_what_is_not_run_is_tried_elsewhere():
    for why in NOT_HERE.values():
        for path in re.findall(r"(?:tests/\w+\.py|\.ci/run)", why):
            assert (ROOT / path).is_file(), why
        assert "; " in why
    read = [each for page in PAGES for each in blocks(page) if each.language == "sh"]
    read += [examples(name) for name in ("", *_COMMANDS)]
    lines = [line for block in read for line in block.lines()]
    for pattern, why in NOT_HERE.items():
        assert any(not_here(line) == why for line in lines), f"nothing fits {pattern} any more"
    for block in (each for page in PAGES for each in blocks(page) if each.left_out):
        for name in (block.left_out or "").split(" and "):
            path, _, test = name.strip().partition("::")
            assert (ROOT / path).is_file(), f"{block.where}: there is no {path}"
            if test:
                assert f"def {test}(" in (ROOT / path).read_text("utf-8"), block.where


def test_every_reason_is_read():
    for page in PAGES:
        text = page.read_text("utf-8")
        said = [each for each in blocks(page) if each.left_out]
        assert text.count("<!-- not run") == len(said), f"{page.name}: a reason in another form"


def test_output_that_differs_is_noticed():
    block = Block("here", "python", "", "one\n...\nfour\n")
    check_shown(block, "one\ntwo\nthree\nfour\n")
    with pytest.raises(AssertionError, match="here shows"):
        check_shown(block, "one\nfour and more\n")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("thinveil audit people.csv", "exit code 1"),
        ("thinveil audit --attack attribute --known age=0 --known job=nurse", "shows little"),
        ("thinveil audit --attack count --known age=200..300", "shows little"),
        ("curl http://127.0.0.1:8321/health", "nothing is served"),
        ("false", "exit code 1"),
    ],
)
def test_lines_that_do_not_work_are_noticed(line: str, match: str, reader: Reader):
    with pytest.raises(AssertionError, match=match):
        reader.runs(Block("here", "sh", line))
