"""The docs are true: their blocks run, show what they print, and the site builds by itself."""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import thinveil
from browser import chromium, page_of
from thinveil.commands.main import run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
BANK = "bank-full.csv"

pytestmark = pytest.mark.docs

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^;]+); covered by (?P<tests>tests/[^>]+) -->\n*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what is run, what the page shows of it, or why it is not run."""

    where: str
    language: str
    text: str
    shown: str | None
    left_out: str | None


def blocks(page: Path) -> list[Block]:
    """Read the blocks of a page that can be run."""
    text = page.read_text("utf-8")
    found = list(FENCE.finditer(text))
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
        reason = NOT_RUN.search(text[: match.start()])
        named = reason["tests"] if reason else None
        where = f"{page.relative_to(ROOT)}:{line}"
        read.append(Block(where, match[2], match[3], shown, named))
    return read


def with_blocks(*, of_bank: bool) -> list[Any]:
    """Return the pages that have something to run, on the bank table or not."""
    return [
        pytest.param(page, id=str(page.relative_to(DOCS)))
        for page in PAGES
        if any((BANK in each.text) is of_bank and not each.left_out for each in blocks(page))
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with what the pages take for granted: 60 people, their schema, three of them."""
    data = thinveil.people(60)
    rows = data.rows()
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([data.schema.names, *rows])
    with (tmp_path / "targets.csv").open("w", newline="") as file:
        csv.writer(file).writerows([data.schema.names[:2], *(row[:2] for row in rows[:3])])
    (tmp_path / "people.toml").write_text(thinveil.write_schema(data.schema), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


def run_python(block: Block, names: dict[str, Any]) -> str:
    """Run a block in the names of its page; one that starts with `# name.py` is that file."""
    if named := re.match(r"# (\w+\.py)(, continued)?\n", block.text):
        with Path(named[1]).open("a", encoding="utf-8") as file:
            file.write(block.text)
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block.text, block.where, "exec", dont_inherit=True), names)
    return out.getvalue()


def run_shell(block: Block) -> str:
    """Run the commands of a block: ours in this process, all others by a shell."""
    out = StringIO()
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "thinveil":
            if words[1] == "people":  # it writes over nothing, and the folder has one already
                Path(words[-1]).unlink(missing_ok=True)
            with redirect_stdout(out):
                code = run(words[1:])
            assert code == 0, f"{block.where}: exit code {code} of {line}"
        elif words:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, check=False,
                env={**os.environ, "PATH": path},
            )  # fmt: skip
            assert done.returncode == 0, f"{block.where}: {line}: {done.stderr}"
            out.write(done.stdout)
    return out.getvalue()


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


def run_page(page: Path, *, of_bank: bool) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.left_out is None and (BANK in block.text) is of_bank:
            python = block.language == "python"
            check_shown(block, run_python(block, names) if python else run_shell(block))


@pytest.mark.parametrize("page", with_blocks(of_bank=False))
def test_blocks_run_and_print_what_the_page_shows(page: Path, folder: Path):
    run_page(page, of_bank=False)


@pytest.mark.parametrize("page", with_blocks(of_bank=True))
def test_blocks_on_the_bank_table_run(page: Path, folder: Path, bank_path: Path):
    (folder / BANK).symlink_to(bank_path)
    run_page(page, of_bank=True)


def test_the_page_on_the_service_runs(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Its blocks as they stand, but for the port and the token of the service that is there."""
    from services import Process

    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    served, asked = (each for each in blocks(DOCS / "service.md") if each.left_out)
    lines = [shlex.split(line, comments=True) for line in served.text.splitlines()]
    serve, audit = (next(each for each in lines if word in each) for word in ("serve", "audit"))
    with Process(folder, *serve[2:]) as service:
        monkeypatch.setenv("THINVEIL_TOKEN", service.tokens[0])
        assert run([each.replace("http://127.0.0.1:8321", service.url) for each in audit[1:]]) == 0
        done = subprocess.run(
            ["bash", "-c", asked.text.replace("http://127.0.0.1:8321", service.url)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers = json.loads(done.stdout)["answers"]
        assert [len(each) for each in answers] == [1, 3]
        assert service.ledger()["spent"] > 0


def test_blocks_that_are_not_run_are_covered_elsewhere():
    left_out = [each for page in PAGES for each in blocks(page) if each.left_out]
    assert left_out
    for block in left_out:
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
    block = Block("here", "python", "", "one\n...\nfour\n", None)
    check_shown(block, "one\ntwo\nthree\nfour\n")
    with pytest.raises(AssertionError, match="here shows"):
        check_shown(block, "one\nfour and more\n")


def test_every_mechanism_and_attack_has_a_page_with_a_picture_and_a_command():
    from thinveil.language.claims import MECHANISMS

    for kind, names in (("mechanism", MECHANISMS), ("attack", thinveil.ATTACKS)):
        for name in names:
            page = DOCS / f"{kind}s" / f"{name}.md"
            text = page.read_text("utf-8")
            assert re.search(rf"!\[[^]]{{30,}}\]\(\.\./images/{kind}-{name}\.png\)", text), page
            assert f"--{kind} {name}" in text or name in ("idp", "dataset"), page
            assert (DOCS / "images" / f"{kind}-{name}.png").stat().st_size < 80_000


def test_the_page_on_the_paper_has_its_figures_attribute_by_attribute():
    from thinveil.paper import figures

    text = (DOCS / "reproduce.md").read_text("utf-8")
    for name in figures.ORDER:
        asked = figures.COLUMNS[True][name], figures.COLUMNS[False][name]
        row = (figures.DISTINCT[name], *asked, figures.DATASET_BY_ATTRIBUTE[name])
        assert f"| {name} | {' | '.join(f'{each:,}' for each in row)} |\n" in text


def test_pictures_have_alternative_texts():
    for page in PAGES:
        for text in re.findall(r"!\[([^]]*)\]\(", page.read_text("utf-8")):
            assert len(text) > 20, f"{page.name}: {text!r}"


ELSEWHERE = r"""["']?(?:https?:)?//"""
LOADS = re.compile(
    rf"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|data|srcset)={ELSEWHERE}
      | <link\b(?![^>]*rel=["']?(?:canonical|next|prev|alternate))[^>]*\bhref={ELSEWHERE}
      | @import\s*(?:url\()?{ELSEWHERE}
      | url\(\s*{ELSEWHERE}""",
    re.VERBOSE,
)


@pytest.mark.browser
def test_the_site_loads_nothing_from_elsewhere(tmp_path: Path):
    """Built strictly: a broken link, or a page without a place, is an error. Opened from disk."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
    assert len(pages) > 40
    for page in pages:
        found = LOADS.search(page.read_text("utf-8"))
        assert not found, f"{page.relative_to(tmp_path)}: {found[0]}"
    assert "Six incomes" in (tmp_path / "search" / "search_index.json").read_text("utf-8")
    for notebook in NOTEBOOKS:
        shown = (tmp_path / "tutorials" / f"{notebook.stem}.html").read_text("utf-8")
        assert "Output" in shown
        assert f"{notebook.stem}-1.png" in shown
        assert (tmp_path / "tutorials" / f"{notebook.stem}-1.png").exists()
    assert (tmp_path / "lab" / "recorded.html").exists()
    assert (tmp_path / "lab" / "recordings" / "idp-k1.js").exists()
    reference = (tmp_path / "api.html").read_text("utf-8")
    for name in thinveil.__all__:
        assert re.search(rf'id="thinveil\.[\w.]*\b{name}"', reference), name
    assert "noise_tests" in (tmp_path / "house.html").read_text("utf-8")
    with chromium() as browser, page_of(browser) as page:
        for at in ("index.html", "attacks/count.html"):
            found_from_disk(page, tmp_path / at, "uniqueness", tmp_path / "attacks/uniqueness.html")
        assert page.watched.hosts == {""}
        assert page.watched.complaints == []


def found_from_disk(page: Any, start: Path, word: str, wanted: Path) -> None:
    """Search for a word on a page that no server serves, and go to the first page found."""
    page.goto(start.as_uri())
    page.locator(".md-search__input").press_sequentially(word)
    page.locator(".md-search-result__item a").first.click()
    page.wait_for_url(f"{wanted.as_uri()}*")


@pytest.mark.parametrize(
    "html",
    [
        '<script defer src="https://cdn.example/a.js">',
        '<link rel="stylesheet" href=//fonts.example/css>',
        '<img alt="x" src="http://a.example/x.png">',
        "<style>@import 'https://a.example/x.css'</style>",
        "a { background: url(https://a.example/x.png) }",
    ],
)
def test_what_would_be_loaded_is_noticed(html: str):
    assert LOADS.search(html)
    assert not LOADS.search('<a href="https://example.org">read</a> <img src="images/x.png">')


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_print_the_same_again(path: Path, tmp_path: Path):
    nbformat = pytest.importorskip("nbformat")
    tools = runpy.run_path(str(DOCS / "notebooks.py"))
    committed = nbformat.read(path, as_version=4)
    source = tools["built"](path.with_suffix(".py"))
    assert [each.source for each in source.cells] == [each.source for each in committed.cells]
    fresh = tools["executed"](source, tmp_path)
    for number, (old, new) in enumerate(zip(committed.cells, fresh.cells, strict=True)):
        if old.cell_type == "code":
            assert tools["texts"](new) == tools["texts"](old), f"{path.name}, cell {number}"


def test_there_are_three_tutorials():
    assert [each.stem for each in NOTEBOOKS] == ["fix", "neighbour", "six-incomes"]
    assert all(each.stat().st_size < 300_000 for each in NOTEBOOKS)
