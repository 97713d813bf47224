#!/usr/bin/env python3
"""Builds the sdist and the wheel, checks them, and tries them as somebody would who installs them.

    python -m pip install --group package
    python tools/package.py                           # build and check only
    python tools/package.py --try newest --try lowest # and tests in new environments
    python tools/package.py --output dist             # keep what was built
    python tools/package.py --tag v0.2.0              # only if this is that release

The wheel's bill of materials is held to its schema and to what the wheel has (`materials.py`). A
trial installs the wheel in a new environment, with the newest versions of everything or with the
lowest that pyproject.toml allows, and nothing may come along that the bill does not lead to. Then
it adds the extra `test` and runs a quick part of the tests that the sdist brings. The sources of
the sdist are put away before: what is tested is the wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import Any

from materials import bill_of, check_environment, compare, installed

ROOT = Path(__file__).resolve().parents[1]
QUICK = (
    "attacks", "claims", "cli", "counts", "curator", "dataset", "frozen", "guard", "intervals",
    "last_bit", "laws", "ledger", "materials", "mechanisms", "package", "project", "reading",
    "transcript", "verdicts", "wall",
)  # fmt: skip
"""Modules of tests that a trial runs: each part of an audit once."""


def call(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command, show it, and stop where it fails."""
    print("+", *command, flush=True)
    done = subprocess.run([str(each) for each in command], cwd=cwd, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with code {done.returncode}")


def build(output: Path) -> tuple[Path, Path]:
    """Build an sdist, a wheel from it, and let twine check both."""
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise SystemExit(f"{output} is not empty")
    call(sys.executable, "-m", "build", "--outdir", output)
    [sdist], [wheel] = output.glob("*.tar.gz"), output.glob("*.whl")
    call(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def contents(sdist: Path, wheel: Path) -> None:
    """Check that nothing is missing, and that the wheel has the package alone."""
    with tarfile.open(sdist) as archive:
        packed = {each.name.partition("/")[2] for each in archive.getmembers() if each.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        installed = {each for each in archive.namelist() if ".dist-info/" not in each}
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        committed = {each for each in listed.stdout.split("\0") if (ROOT / each).is_file()}
        compare("the sdist", packed - {"PKG-INFO"}, committed)
    sources = {each.removeprefix("src/") for each in packed if each.startswith("src/")}
    compare("the wheel", installed, sources)
    print(f"{sdist.name}: {len(packed)} files; {wheel.name}: {len(installed)} files")


def released(wheel: Path, tag: str) -> None:
    """Stop where a tag does not name the version that was built, or that is no release."""
    version = wheel.name.split("-")[1]
    if tag != f"v{version}" or not re.fullmatch(r"\d+(\.\d+)+", version):
        raise SystemExit(f"the tag {tag} does not release version {version}")


def trial(sdist: Path, wheel: Path, bill: dict[str, Any], versions: str, work: Path) -> None:
    """Run a quick part of the sdist's tests on the wheel, in a new environment."""
    began = time.monotonic()
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    [tests] = (each for each in work.iterdir() if each.is_dir())
    shutil.rmtree(tests / "src")
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    before = installed(python)
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
    if versions == "lowest":
        lowest = work / "lowest.txt"
        text = subprocess.check_output([sys.executable, tests / "tools" / "lowest.py"], text=True)
        lowest.write_text(text)
        install += ["--constraint", lowest]
    call(*install, wheel)
    there = installed(python)
    check_environment(bill, {name: there[name] for name in there if name not in before})
    call(*install, f"{wheel}[test]")
    call(python, "-m", "pip", "check")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    where = "import thinveil; from pathlib import Path; print(Path(thinveil.__file__).resolve())"
    found = subprocess.check_output([python, "-c", where], cwd=tests, env=env, text=True).strip()
    if not Path(found).is_relative_to((work / "venv").resolve()):
        raise SystemExit(f"the tests would read {found} instead of the installed wheel")
    ready = time.monotonic()
    quick = [f"tests/test_{each}.py" for each in QUICK]
    call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *quick, cwd=tests, env=env)
    if versions == "lowest":  # frozen counts hold there, too: all of them
        frozen = ("-m", "nightly", "tests/test_frozen.py", "tests/test_guard.py")
        call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *frozen, cwd=tests, env=env)
    ended = time.monotonic()
    print(f"{versions} versions: install {ready - began:.0f} s, tests {ended - ready:.0f} s")


def main() -> None:
    """Build, check and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="keep what was built here")
    parser.add_argument("--tag", help="stop unless this tag releases the version that is built")
    parser.add_argument("--try", dest="trials", action="append", choices=("newest", "lowest"),
                        default=[], help="run tests on the wheel with these versions")  # fmt: skip
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sdist, wheel = build((chosen.output or work / "dist").resolve())
        contents(sdist, wheel)
        bill = bill_of(wheel)
        if chosen.tag:
            released(wheel, chosen.tag)
        for versions in chosen.trials:
            (work / versions).mkdir()
            trial(sdist, wheel, bill, versions, work / versions)


if __name__ == "__main__":
    main()
