"""Runs pages as a reader would: block after block, with nothing but what earlier lines made."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

from services import Process
from thinveil.commands.main import cli, run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
BANK = "bank-full.csv"
SERVED = "http://127.0.0.1:8321"
"""Where pages say that a service is."""
NOT_HERE: Mapping[str, str] = {
    r"\bpip install\b": "it installs packages; .ci/run does so, in environments of its own",
    r"^thinveil lab\b": "it serves a page until somebody ends it; tests/test_lab.py",
    r"\bpostgresql://": "it needs a PostgreSQL server; tests/test_postgres.py",
    r"\bspark://": "it needs Spark; tests/test_spark.py",
    r"\bsc://": "it needs a server of Spark Connect; tests/test_spark_counting.py",
}
"""The lines that are not run, why, and what tries them instead."""
QUICK = (
    *(f"attacks/{each}.md" for each in ("attribute", "column", "count", "dataset", "membership")),
    "attacks/uniqueness.md", "mechanisms/dp-opendp.md", "verdicts.md",
)  # fmt: skip
"""Pages that take a moment: they run with the quick tests, all others with the mark docs."""
SILLY = re.compile(
    r"nobody (in the table|who) fits|\b0 (records|of \d+ people)|no record matches|outside --prior"
    r"|Note: .*\bcolumn\b"
)
"""What a run says that shows nothing, or that doubts the made-up people's own columns."""

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^;]+); covered by (?P<tests>tests/[^>]+) -->\n*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what is run, what the page shows of it, or why it is not run."""

    where: str
    language: str
    text: str
    shown: str | None = None
    reason: str | None = None
    left_out: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield the commands of a shell block; a command may go on over several lines."""
        waiting = ""
        for line in self.text.replace("\\\n", " ").splitlines():
            waiting += line
            try:
                words = shlex.split(waiting, comments=True)
            except ValueError:  # a quotation mark is open still
                waiting += "\n"
                continue
            if words:
                yield waiting
            waiting = ""
        assert not waiting, f"{self.where}: {waiting}"


def blocks(page: Path) -> list[Block]:
    """Read the blocks of a page that can be run."""
    text = page.read_text("utf-8")
    found = list(_FENCE.finditer(text))
    read = []
    for place, match in enumerate(found):
        if match[2] not in ("python", "sh"):
            continue
        line = text.count("\n", 0, match.start()) + 1
        assert not match[1], f"{page}:{line}: a block in a list would not be found by readers"
        after = found[place + 1] if place + 1 < len(found) else None
        shown = None
        if after and after[2] == "text" and not text[match.end() : after.start()].strip():
            shown = after[3]
        said = _NOT_RUN.search(text[: match.start()])
        why = (said["reason"], said["tests"]) if said else (None, None)
        where = f"{page.relative_to(ROOT)}:{line}"
        read.append(Block(where, match[2], match[3], shown, *why))
    return read


def examples(name: str) -> Block:
    """Return the examples that a command's --help has, as a block."""
    command = cli.get_command(click.Context(cli), name) if name else cli
    assert command is not None
    _, _, after = (command.help or "").partition("Examples:\n")
    text = "\n".join(line.strip() for line in after.partition("\n\n")[0].splitlines())
    return Block(f"thinveil {name} --help".replace("  ", " "), "sh", text)


def not_here(line: str) -> str:
    """Return why a line is not run here; nothing where it is."""
    return next((why for each, why in NOT_HERE.items() if re.search(each, line)), "")


@dataclass
class Reader:
    """Somebody who goes through a page in an empty folder."""

    folder: Path
    patch: pytest.MonkeyPatch
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    stack: ExitStack = field(default_factory=ExitStack)
    service: Process | None = None

    def runs(self, block: Block) -> str:
        """Run a block, and compare what it prints with what the page shows."""
        printed = self._python(block) if block.language == "python" else self._shell(block)
        check_shown(block, printed)
        return printed

    def _python(self, block: Block) -> str:
        """Run a block in the names of its page; one that starts with `# name.py` is that file."""
        if named := re.match(r"# (\w+\.py)(, continued)?\n", block.text):
            with Path(named[1]).open("a", encoding="utf-8") as file:
                file.write(block.text)
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(block.text, block.where, "exec", dont_inherit=True), self.names)
        return out.getvalue()

    def _shell(self, block: Block) -> str:
        return "".join(self.line(each, block.where) for each in block.lines() if not not_here(each))

    def line(self, line: str, where: str) -> str:
        """Run one command: ours in this process, all others by a shell; return what it prints."""
        words = shlex.split(line, comments=True)
        if words[:2] == ["thinveil", "serve"]:
            self._serve(words[2:])
            return ""
        if words[0] == "export":
            assert self.service is not None, f"{where}: {line}: nothing is served"
            self.patch.setenv(words[1].partition("=")[0], self.service.tokens[0])
            return ""
        if SERVED in line:
            assert self.service is not None, f"{where}: {line}: nothing is served"
            line = line.replace(SERVED, self.service.url)
            words = shlex.split(line, comments=True)
        if words[0] == "thinveil" and not re.search(r"[|<>]|&&", re.sub(r"#.*", "", line)):
            out, err = StringIO(), StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = run(words[1:])
            printed, noted = out.getvalue(), err.getvalue()
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True,
                check=False, env={**os.environ, "PATH": path, "HOME": str(self.folder)},
            )  # fmt: skip
            code, printed, noted = done.returncode, done.stdout, done.stderr
        assert code == 0, f"{where}: exit code {code} of {line}: {noted}"
        said = " ".join(re.sub(r"[│┃]", " ", printed + noted).split())
        assert not SILLY.search(said), f"{where}: {line} shows little: {SILLY.search(said)}"
        return printed

    def _serve(self, words: list[str]) -> None:
        """Start a service in the background; one after another, as a terminal does."""
        if self.service is not None:
            self.service.stop()
        self.service = self.stack.enter_context(Process(self.folder, *words))


def check_shown(block: Block, printed: str) -> None:
    """Compare output with what the page shows; a line of three dots stands for any lines."""
    if block.shown is None:
        return
    pattern = ".*".join(
        re.escape(part.strip("\n")) for part in re.split(r"^\.\.\.$", block.shown, flags=re.M)
    )
    lines = "\n".join(line.rstrip() for line in printed.splitlines())
    assert re.fullmatch(rf"{pattern}\s*", lines, re.DOTALL), (
        f"{block.where} shows\n{block.shown}\nand prints\n{printed}"
    )


@contextmanager
def reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Go to an empty folder, and forget in the end what was imported from there."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    before = set(sys.modules)
    reader = Reader(folder, monkeypatch)
    with reader.stack:
        yield reader
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(folder / f"{name}.py"):
            del sys.modules[name]
