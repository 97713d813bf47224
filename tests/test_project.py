"""Tests that guard the project itself."""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from bench.__main__ import GROUPS
from bench.page import PAGE

import thinveil
from thinveil.attacker.strategies import STRATEGIES
from thinveil.auditing.options import ATTACKS
from thinveil.commands.main import _COMMANDS, run
from thinveil.errors import ThinveilError
from thinveil.language.claims import MECHANISMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = ("house.md", "lab/recorded.html")
"""What is made while the site is built."""
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_public_names_are_listed_sorted_and_there():
    assert sorted(thinveil.__all__) == sorted(set(thinveil.__all__))
    for name in thinveil.__all__:
        assert getattr(thinveil, name) is not None
    assert list(ATTACKS) == sorted(ATTACKS)
    assert list(MECHANISMS) == sorted(MECHANISMS)
    assert list(STRATEGIES) == sorted(STRATEGIES)


def test_every_command_mechanism_and_strategy_is_documented():
    commands, mechanisms, attacks = (
        (DOCS / f"{name}.md").read_text("utf-8") for name in ("commands", "mechanisms", "attacks")
    )
    for command in _COMMANDS:
        assert f"\n## thinveil {command}\n" in commands, command
    for name in MECHANISMS:
        assert f"[`{name}`](mechanisms/{name}.md)" in mechanisms
    for name in STRATEGIES:
        assert f"| `{name}` |" in attacks


def test_the_readme_is_one_page():
    # Each later issue may add five lines, and says so here.
    assert 95 <= len(README.splitlines()) <= 120
    assert README.count("![") == 1


def test_the_pages_stay_within_their_words():
    # Each later issue may add 2,000 words, and says so here.
    words = {
        str(page.relative_to(DOCS)): len(page.read_text("utf-8").split())
        for page in DOCS.rglob("*.md")
    }
    assert sum(words.values()) <= 36_904, sorted(words.items(), key=lambda each: -each[1])[:5]


ROLES = ("I hold a table", "I teach", "I research", "I build a mechanism", "I have to decide")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_role_finds_its_page_in_one_click(page):
    text = (ROOT / page).read_text("utf-8")
    for role in ROLES:
        assert re.search(rf"^\| {role} \| \[", text, re.MULTILINE), role


def test_the_reference_says_what_help_says(capsys, monkeypatch):
    made = runpy.run_path(str(ROOT / "tools" / "reference.py"))["reference"]()
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert page == made, "python tools/reference.py writes it anew"
    assert page.count("```text\n") == len(_COMMANDS) + 1
    monkeypatch.setenv("COLUMNS", "80")
    for command in _COMMANDS:
        assert run([command, "--help"]) == 0
        said = capsys.readouterr().out.partition("  -v, --verbose")[0]
        assert said.removesuffix("\n\nOptions:\n").rstrip("\n") in page


def test_every_error_is_in_the_tree():
    import thinveil.errors as errors

    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, ThinveilError):
            assert name in errors.__doc__


def test_types_are_strict_in_all_but_tests():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    strict = next(each["module"] for each in settings["overrides"] if "bench.*" in each["module"])
    for folder in (".", "docs", "tests", "tools"):
        for path in (ROOT / folder).glob("*.py"):
            assert path.name.startswith("test_") or path.stem in strict, path


def test_ci_runs_the_commands_as_the_readme_prints_them():
    for name in ("run", "test"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.+)\n```", README)
        assert block
        assert block[1].startswith("python -m pip install")
    assert "printed run" in (ROOT / ".ci" / "run").read_text()


def block_of(section: str, language: str) -> str:
    found = re.search(
        rf"^## {section}$.*?^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL
    )
    assert found, section
    return found[1]


def test_the_lines_for_your_own_table_run_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made, *audits = block_of("Your own table", "sh").splitlines()
    assert run(shlex.split(made)[1:]) == 0
    told = []
    for line in audits:
        words = shlex.split(line, comments=True)
        assert words[0] == "thinveil"
        assert run(words[1:]) == 0, line
        told.append(re.sub(r"[│\s]+", " ", capsys.readouterr().out))
    table, person, control = told
    assert "recovered all 60 records exactly" in table
    assert "learned 1 attribute of the person" in person
    assert "No usable difference was found" in control
    assert "12,354 answers" in control
    assert "12,354 answers" in README
    code = block_of("Your own table", "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("An outsider recovered all 60 records exactly")


def test_every_picture_is_shown():
    pages = "".join(each.read_text("utf-8") for each in DOCS.rglob("*.md"))
    for picture in (DOCS / "images").iterdir():
        assert f"images/{picture.name})" in pages, picture.name


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "bench" / "RESULTS.md", *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in link and link not in MADE:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_bench_has_its_place_among_the_results():
    text = PAGE.read_text("utf-8")
    places = re.findall(r"<!-- end of (\w+) -->", text)
    assert re.findall(r"<!-- (\w+): written by python -m bench --write -->", text) == places
    assert sorted(places) == sorted(GROUPS)


def announced(version: str, changelog: str) -> bool:
    """A release has a section with its date; what will be one stands under Unreleased."""
    release, development, _ = version.partition(".dev")
    ready = rf"\[{re.escape(release)}\] - \d{{4}}-\d\d-\d\d"
    heading = rf"\[Unreleased\] - {re.escape(release)}" if development else ready
    return re.search(f"^## {heading}$", changelog, re.MULTILINE) is not None


def pytest_on(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, with the options of this project."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("COV", "PYTEST"))}
    tests = os.pathsep.join([str(ROOT / "tests"), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p",
         "conftest", "-c", ROOT / "pyproject.toml", "--rootdir", folder, "test_these.py", *words],
        cwd=folder, env={**env, "PYTHONPATH": tests}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.nightly
def test_a_part_of_the_long_tests_is_drawn_by_a_seed(tmp_path: Path):
    (tmp_path / "test_these.py").write_text(
        "import pytest\n"
        "@pytest.mark.nightly\n@pytest.mark.parametrize('x', range(60))\ndef test_long(x): pass\n"
        "@pytest.mark.soak\ndef test_frozen_counts(): pass\n"
        "@pytest.mark.docs\ndef test_page(): pass\n"
        "def test_quick(): pass\n"
    )
    drawn = []
    for words in (["--seed", "a"], ["--seed", "a"], ["--seed", "b"]):
        found = pytest_on(tmp_path, "--co", "-m", "nightly or soak or docs", "--part", "4", *words)
        assert found.returncode == 0, found.stdout + found.stderr
        drawn.append([line for line in found.stdout.splitlines() if "::" in line])
    assert drawn[0] == drawn[1] != drawn[2]
    for each in drawn:
        assert 4 < sum("test_long" in line for line in each) < 30
        assert sum("test_frozen_counts" in line or "test_page" in line for line in each) == 2
        assert not any("test_quick" in line for line in each)


@pytest.mark.nightly
def test_where_all_must_run_a_skip_is_an_error(tmp_path: Path):
    (tmp_path / "test_these.py").write_text(
        "import pytest\ndef test_a(): pytest.skip('no server')\n"
        "@pytest.mark.skipif(True, reason='no disk')\ndef test_b(): pass\n"
        "@pytest.mark.xfail\ndef test_c(): assert False\n"
    )
    assert pytest_on(tmp_path).returncode == 0
    refused = pytest_on(tmp_path, "--no-skips")
    assert refused.returncode == 1
    assert "no server" in refused.stdout
    assert "no disk" in refused.stdout
    assert "1 failed, 1 xfailed, 1 error" in refused.stdout


def test_changelog_names_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert announced(thinveil.__version__, changelog)


def test_a_release_needs_its_date_in_the_changelog() -> None:
    before = "## [Unreleased] - 0.2.0\n\n## [0.1.0] - 2026-11-15\n"
    assert announced("0.2.0.dev0", before)
    assert announced("0.1.0", before)
    assert not announced("0.2.0", before)
    assert not announced("0.3.0.dev0", before)
    after = before.replace("[Unreleased] - 0.2.0", "[0.2.0] - 2026-12-01")
    assert announced("0.2.0", after)
    assert not announced("0.2.0.dev0", after)
    assert not announced("0.2.0", after.replace(" - 2026-12-01", ""))


def test_the_command_line_starts_without_the_heavy_parts():
    code = "import sys, thinveil.commands.main; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("matplotlib", "vl_convert", "pyarrow", "pandas", "polars"):
        assert f"'{heavy}'" not in done.stdout
