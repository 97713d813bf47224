"""What is made for a release: the README of a package index, groups, workflows, citation."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import thinveil

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PLACE = "https://forge.example/owner/thinveil"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    pytest.importorskip("hatchling")
    return importlib.import_module("hatch_build")


def targets(text: str) -> list[str]:
    """All addresses of links and pictures outside of code blocks, however they are written."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    ways = (r"\]\(([^)\s]+)", r'(?:src|srcset|href)="([^"]*)"', r"(?m)^\[[^\]]+\]:\s*(\S+)")
    return [each for way in ways for each in re.findall(way, text)]


def test_without_an_address_pictures_and_links_become_text(hook: ModuleType) -> None:
    shown = hook.description(README, None, "0.2.0")
    assert all("://" in each for each in targets(shown))
    assert "<!--" not in shown
    assert "<img" not in shown
    pictures = re.findall(r"!\[([^\]]+)\]\(docs/", README)
    assert pictures
    assert all(each in shown for each in pictures)
    assert hook.addresses(None, "0.2.0") == {}


def test_with_an_address_they_lead_to_the_tag(hook: ModuleType) -> None:
    shown = hook.description(README, PLACE, "0.2.0")
    assert all("://" in each for each in targets(shown))
    assert "<!--" not in shown
    before = [each for each in targets(README) if "://" not in each]
    after = [each for each in targets(shown) if each.startswith(PLACE)]
    assert len(after) == len(before) > 3
    for each in after:
        kind, tag, path = each.removeprefix(f"{PLACE}/").split("/", 2)
        assert tag == "v0.2.0"
        assert (ROOT / path.partition("#")[0]).exists(), path
        assert kind == ("raw" if path.endswith((".png", ".svg")) else "blob")
    for each in hook.addresses(PLACE, "0.2.0").values():
        assert each.startswith(PLACE)


@pytest.mark.parametrize(
    ("written", "plain", "placed"),
    [
        ("![a b](c.png)", "a b", "![a b](P/raw/v1/c.png)"),
        ("[`a`](docs/b.md#c)", "`a`", "[`a`](P/blob/v1/docs/b.md#c)"),
        ("[a](#b)", "a", "[a](P/blob/v1/README.md#b)"),
        ("[![a](b.svg)](./c.md)", "a", "[![a](P/raw/v1/b.svg)](P/blob/v1/c.md)"),
        ("[a](https://x.example/b)", "[a](https://x.example/b)", "[a](https://x.example/b)"),
        ("<!-- a -->\n```sh\nx [a](b)\n```", "```sh\nx [a](b)\n```", "```sh\nx [a](b)\n```"),
    ],
)
def test_each_way_to_write_a_link(hook: ModuleType, written: str, plain: str, placed: str) -> None:
    place = "https://p.example"
    assert hook.description(written, None, "1") == plain
    assert hook.description(written, place, "1") == placed.replace("P/", f"{place}/")


def test_the_build_calls_the_hook(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINVEIL_REPOSITORY", PLACE + "/")
    metadata: dict[str, object] = {"version": thinveil.__version__}
    hook.ReadmeHook(str(ROOT), {}).update(metadata)
    assert metadata["urls"] == hook.addresses(PLACE, thinveil.__version__)
    assert metadata["readme"] == {
        "content-type": "text/markdown",
        "text": hook.description(README, PLACE, thinveil.__version__),
    }


# ---- what workflows, scripts and pages name


def naming() -> list[Path]:
    """All files that tell somebody or something what to install or run."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".pre-commit-config.yaml"]
    scripts = [ROOT / ".ci" / "run", ROOT / "tools" / "lint", ROOT / "tools" / "package.py"]
    return [*pages, *scripts, *ROOT.glob(".github/**/*.yml"), *ROOT.glob(".github/*.md")]


@pytest.mark.parametrize("path", naming(), ids=lambda path: str(path.relative_to(ROOT)))
def test_extras_groups_and_scripts_that_are_named_are_there(path: Path) -> None:
    text = path.read_text("utf-8")
    extras, groups = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    for named in re.findall(r"['\"](?:\.|thinveil)\[([a-z,]+)\]", text):
        assert set(named.split(",")) <= set(extras)
    for named in re.findall(r"--group ([a-z]+)", text):
        assert named in groups
    for named in re.findall(r"(?:bash|python) ((?:\.ci|tools|docs)/[\w./]+)", text):
        assert (ROOT / named).is_file(), named


def test_the_group_dev_has_all_groups() -> None:
    groups = PROJECT["dependency-groups"]
    beside = {"dev", "tables"}  # the data sets are for one benchmark alone
    assert [each["include-group"] for each in groups["dev"]] == sorted(set(groups) - beside)
    assert groups["spark"] == [
        each
        for each in PROJECT["project"]["optional-dependencies"]["spark"]
        if not each.startswith("thinveil")
    ]


def test_the_test_command_needs_nothing_heavy() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted, seen = ["thinveil[test]"], set[str]()
    while wanted:
        name = wanted.pop()
        seen.add(re.split(r"[<>=;\[ ]", name)[0])
        if inner := re.fullmatch(r"thinveil\[(.+)\]", name):
            wanted += [each for extra in inner[1].split(",") for each in extras[extra]]
    assert {"duckdb", "numba", "pytest"} <= seen
    heavy = {"diffprivlib", "ipykernel", "mkdocs", "playwright", "pyspark", "scikit-learn"}
    assert not heavy & seen


def test_workflows_test_all_versions_that_the_package_names() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    named = [each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"]
             if re.search(r":: 3\.\d+$", each)]  # fmt: skip
    assert f"python: {json.dumps(named)}\n" in workflow
    command = re.search(r"<!-- command: test -->\n```sh\n(.+)\n```", README)
    assert command
    assert f"run: {command[1]}\n" in workflow


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {thinveil.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation
