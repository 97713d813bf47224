"""What is shipped and not ours, and the bill of materials: hashes, licences, requirements."""

from __future__ import annotations

import doctest
import hashlib
import importlib
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import thinveil
from thinveil.report.html import page
from thinveil.report.html.document import _SCRIPTS
from thinveil.verdicts.record import read_run

ROOT = Path(__file__).parent.parent
INSTALLED = Path(thinveil.__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import materials  # noqa: E402 # tools, not packages
import vega  # noqa: E402

KNOWN = vega.record()
SHIPPED = [each["file"] for each in (*KNOWN["scripts"], KNOWN["licences"])]
METADATA = "thinveil-1.dist-info/METADATA"
LICENCES = "thinveil-1.dist-info/licenses/LICENCES.txt"


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    pytest.importorskip("hatchling")
    return importlib.import_module("sbom")


@pytest.fixture(scope="module")
def bill(sbom: ModuleType) -> dict[str, Any]:
    made: dict[str, Any] = sbom.bill(ROOT, "1")
    return made


# ---- scripts


def test_what_is_shipped_has_the_hashes_recorded() -> None:
    assert vega.changed(KNOWN, INSTALLED) == []


@pytest.mark.parametrize("file", SHIPPED)
def test_a_byte_more_or_a_file_less_is_noticed(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in SHIPPED:
        (tmp_path / "src" / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(INSTALLED / each, tmp_path / "src" / each)
    monkeypatch.setattr(vega, "ROOT", tmp_path)
    path = tmp_path / "src" / file
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SystemExit, match=re.escape(file)):
        vega.check(KNOWN)
    path.unlink()
    assert vega.changed(KNOWN, tmp_path / "src") == [file]


@pytest.mark.parametrize(("ci", "code"), [("true", True), ("", False)])
def test_without_npm_a_check_fails_in_ci_alone(
    ci: str, code: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(vega, "changed", lambda known, source: [])
    with pytest.raises(SystemExit) as caught:
        vega.check(KNOWN)
    assert caught.value.code == code
    assert "npm is missing" in capsys.readouterr().err


def test_what_npm_has_is_compared_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(vega, "changed", lambda known, source: [])
    monkeypatch.setattr(vega, "ROOT", tmp_path)
    known = {"scripts": [{"name": "a", "version": "1", "file": "a.js", "integrity": "sha512-x"}]}
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.js").write_bytes(b"a\n")
    monkeypatch.setattr(vega, "packed", lambda each, folder: ("sha512-x", b"a\n"))
    vega.check(known)
    for other in (("sha512-y", b"a\n"), ("sha512-x", b"b\n")):
        monkeypatch.setattr(vega, "packed", lambda each, folder, other=other: other)
        with pytest.raises(SystemExit, match="npm has another a"):
            vega.check(known)


def test_a_report_has_these_scripts_and_no_other_of_somebody_else() -> None:
    made = page(read_run(ROOT / "tests" / "golden" / "run.json"))
    scripts = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    found = [hashlib.sha256(each.encode()).hexdigest() for each in scripts]
    assert found[:-1] == [each["sha256"] for each in KNOWN["scripts"]]
    assert not materials.is_foreign(scripts[-1].encode())
    assert [Path(each["file"]).name for each in KNOWN["scripts"]] == [*_SCRIPTS]


def test_everything_else_is_ours() -> None:
    places = [INSTALLED / "thinveil", ROOT / "docs"]
    kinds = {".css", ".html", ".js", ".json", ".py", ".svg", ".toml", ".txt"}
    files = [
        each
        for place in places
        for each in place.rglob("*")
        if each.suffix in kinds and "images" not in each.parts
    ]
    assert len(files) > 300
    found = [each for each in files if materials.is_foreign(each.read_bytes())]
    assert sorted(found) == sorted(INSTALLED / each for each in SHIPPED)


def test_every_package_inside_has_its_licence_along() -> None:
    texts = (INSTALLED / KNOWN["licences"]["file"]).read_text("utf-8")
    for script in KNOWN["scripts"]:
        for name, licence in {script["name"]: script["licence"], **script["inside"]}.items():
            assert re.search(rf"(?m)(^|, ){name} \d", texts), name
            assert licence


# ---- the bill


def test_the_bill_is_the_same_each_time_and_names_no_place(sbom: ModuleType) -> None:
    text = sbom.written(ROOT, "1")
    assert text == sbom.written(ROOT, "1")
    assert str(ROOT) not in text
    assert set(re.findall(r"\w+://[^/\"]+", text)) == {"http://cyclonedx.org"}


def wheel(project: dict[str, Any]) -> dict[str, bytes]:
    """What matters of a wheel that is made of these sources."""
    lines = ["Name: thinveil", "Version: 1"]
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    lines += [
        f"Requires-Dist: {each}; extra == '{extra}'"
        for extra, needs in project["optional-dependencies"].items()
        for each in needs
    ]
    files = {each: (INSTALLED / each).read_bytes() for each in SHIPPED}
    licences = {LICENCES: files[KNOWN["licences"]["file"]]}
    return files | licences | {METADATA: "\n".join(lines).encode(), "thinveil/a.py": b"x = 1\n"}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_bill_says_what_the_wheel_has(bill: dict[str, Any]) -> None:
    materials.check(bill, wheel(PROJECT))
    always = {each["name"] for each in bill["components"] if each["scope"] == "required"}
    assert {"click", "numpy", "vega"} <= always
    assert "duckdb" not in always
    assert ("postgres", "duckdb>=2.0") in materials.required(bill)  # an extra of an extra


def test_a_wheel_that_the_bill_does_not_describe_is_noticed(bill: dict[str, Any]) -> None:
    plain = wheel(PROJECT)
    script = SHIPPED[0]
    needs_click = b"Requires-Dist: click>=8.1.7\n"
    assert needs_click in plain[METADATA]
    changes: dict[str, dict[str, bytes]] = {
        r"lacks left-pad>1": {METADATA: plain[METADATA] + b"\nRequires-Dist: left-pad>1"},
        r"should not have click": {METADATA: plain[METADATA].replace(needs_click, b"")},
        r"lacks 2": {METADATA: plain[METADATA].replace(b"Version: 1", b"Version: 2")},
        r"lacks thinveil/x\.js": {"thinveil/x.js": b"/* Copyright 2026 Somebody Else */"},
        r"lacks thinveil/y\.js": {"thinveil/y.js": b"packed();" * 100},
        rf"lacks {re.escape(script)}": {script: plain[script] + b"evil()"},
        r"licences of the wheel lacks": {LICENCES: b"none"},
    }
    for words, files in changes.items():
        with pytest.raises(SystemExit, match=words):
            materials.check(bill, plain | files)


def test_a_new_requirement_or_script_is_in_the_next_bill(
    sbom: ModuleType, bill: dict[str, Any], tmp_path: Path
) -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "pyproject.toml").write_text(text.replace('  "click', '  "left-pad",\n  "click'))
    known = {**KNOWN, "scripts": [*KNOWN["scripts"], {**KNOWN["scripts"][0], "name": "new"}]}
    (tmp_path / "tools" / "vega.json").write_text(json.dumps(known))
    after = sbom.bill(tmp_path, "1")
    names = [{each["name"] for each in every["components"]} for every in (bill, after)]
    assert names[1] - names[0] == {"left-pad", "new"}


def test_the_examples_of_the_tools_hold(sbom: ModuleType) -> None:
    for module in (materials, sbom):
        failed, tried = doctest.testmod(module)
        assert tried
        assert not failed


def test_an_environment_is_held_to_the_bill(bill: dict[str, Any]) -> None:
    there: dict[str, tuple[str, list[str]]] = {
        "click": ("8.2", ["colorama; platform_system == 'Windows'"]),
        "numpy": ("2.0", []),
        "packaging": ("25.0", []),
        "rich": ("14.0", ["Markdown_It.py>=2", "ipywidgets; extra == 'jupyter'"]),
        "markdown-it-py": ("3.0", []),
        "tomli-w": ("1.2", []),
        "thinveil": ("1", []),
    }
    materials.check_environment(bill, there)
    with pytest.raises(SystemExit, match="does not lead to ipywidgets"):
        materials.check_environment(bill, there | {"ipywidgets": ("8", [])})
    with pytest.raises(SystemExit, match=r"requires click>=8\.1\.7, and 7\.0 is installed"):
        materials.check_environment(bill, there | {"click": ("7.0", [])})
    del there["rich"]
    with pytest.raises(SystemExit, match=r"requires rich.*none is installed"):
        materials.check_environment(bill, there)


def test_the_build_puts_the_bill_into_the_wheel(sbom: ModuleType, tmp_path: Path) -> None:
    hook = sbom.BillHook(str(ROOT), {}, None, _Metadata(), str(tmp_path), "wheel")
    data: dict[str, list[str]] = {"sbom_files": []}
    hook.initialize("standard", data)
    [path] = map(Path, data["sbom_files"])
    assert path.name == "thinveil.cdx.json"
    assert path.read_text("utf-8") == sbom.written(ROOT, "1")
    hook.finalize("standard", data, "")
    assert not path.parent.exists()


class _Metadata:
    version = "1"
