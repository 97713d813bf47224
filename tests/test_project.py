"""Tests that guard the project itself."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

from bench.__main__ import GROUPS
from bench.page import PAGE

import thinveil
from thinveil.attacker.strategies import STRATEGIES
from thinveil.auditing.options import ATTACKS
from thinveil.commands.main import _COMMANDS, run
from thinveil.errors import ThinveilError
from thinveil.language.claims import MECHANISMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_public_names_are_listed_sorted_and_there():
    assert sorted(thinveil.__all__) == sorted(set(thinveil.__all__))
    for name in thinveil.__all__:
        assert getattr(thinveil, name) is not None
    assert list(ATTACKS) == sorted(ATTACKS)
    assert list(MECHANISMS) == sorted(MECHANISMS)
    assert list(STRATEGIES) == sorted(STRATEGIES)


def test_every_command_is_documented():
    for command in _COMMANDS:
        assert f"thinveil {command}" in README
    for name in (*MECHANISMS, *STRATEGIES):
        assert f"`{name}`" in README


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


def test_ci_runs_the_commands_as_the_readme_prints_them():
    for name in ("run", "test"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.+)\n```", README)
        assert block
        assert block[1].startswith("python -m pip install")
    assert "printed run" in (ROOT / ".ci" / "run").read_text()


def test_python_blocks_run(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert re.search("An outsider (recovered|rebuilt)", done.stdout)


def test_the_command_lines_for_your_own_table_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people = thinveil.people(60).rows()
    Path("targets.csv").write_text("age,postcode\n" + "".join(
        f"{row[0]},{row[1]}\n" for row in people[:3]
    ))  # fmt: skip
    section = README.partition("## Your own table")[2]
    lines = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line.partition("#")[0].replace("job=nurse", "insured=yes"))
        assert words[0] == "thinveil"
        assert run(words[1:]) == 0, line
        if words[1] == "people":
            continue
        told = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
        assert re.search("outsider|in the sense of differential privacy", told), line


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "bench" / "RESULTS.md", *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in link and link != "lab/recorded.html":  # made while the site is built
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
