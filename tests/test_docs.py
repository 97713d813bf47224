"""The docs are true: their blocks run, show what they print, and the site builds by itself."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thinveil
from browser import chromium, page_of
from pages import BANK, DOCS, PAGES, QUICK, ROOT, Reader, blocks, reading

README = ROOT / "README.md"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
pytestmark = pytest.mark.docs


def with_blocks(*, of_bank: bool) -> list[Any]:
    """Return the pages that have something to run, on the bank table or not."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if page not in [README, *(DOCS / name for name in QUICK)]
        and any((BANK in each.text) is of_bank and not each.left_out for each in blocks(page))
    ]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Somebody in an empty folder."""
    with reading(tmp_path, monkeypatch) as reader:
        yield reader


def run_page(page: Path, reader: Reader, *, of_bank: bool) -> None:
    for block in blocks(page):
        if block.left_out is None and (BANK in block.text) is of_bank:
            reader.runs(block)
    if reader.service is not None:
        assert reader.service.ledger()["spent"] > 0


def test_the_readme_runs_and_its_report_says_what_it_shows(reader: Reader):
    run_page(README, reader, of_bank=False)
    report = (reader.folder / "audit.html").read_text("utf-8")
    for said in ("recovered all 2,000 records exactly", "0.0000070482"):
        assert said in report
    assert "0.0000070482" in README.read_text("utf-8")


@pytest.mark.parametrize("page", with_blocks(of_bank=False))
def test_blocks_run_and_print_what_the_page_shows(page: Path, reader: Reader):
    run_page(page, reader, of_bank=False)


@pytest.mark.parametrize("page", with_blocks(of_bank=True))
def test_blocks_on_the_bank_table_run(page: Path, reader: Reader, bank_path: Path):
    (reader.folder / BANK).symlink_to(bank_path)
    run_page(page, reader, of_bank=True)


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
