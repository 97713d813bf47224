#!/usr/bin/env python3
"""Fetches the charting library of the report, and checks that the package has just that.

    python tools/vega.py             # after changing a version in tools/vega.json
    python tools/vega.py --check     # what CI does

`tools/vega.json` names the scripts that are not ours: the package of npm that each is from, its
version, its licence, npm's own hash of the package, the hash of the script as it is shipped, and
what other packages are inside of it. Without npm, a check compares the scripts with their hashes;
with it, also with what npm has, byte for byte. In CI npm may not be missing.

After fetching, look at a report in a browser, and commit what has changed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "vega.json"
_INSIDE = re.compile(r"vega|d3|topojson|internmap|delaunator|robust-predicates")
"""What Vega depends on and has inside; the rest are tools of a command line."""


def record() -> dict[str, Any]:
    """Return what is known of the scripts."""
    known: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return known


def sha256(content: bytes) -> str:
    """Return the hash of a file as it is recorded."""
    return hashlib.sha256(content).hexdigest()


def script(content: bytes) -> bytes:
    """Return a script that can stand inside a page: it must not end its own element."""
    lines = content.decode().splitlines()
    kept = (line for line in lines if not line.startswith("//# sourceMappingURL"))
    joined = "\n".join(kept).strip() + "\n"
    if "</script" in joined.lower() or "<!--" in joined:
        raise SystemExit("this bundle cannot stand inside a page as it is")
    return joined.encode()


def changed(known: dict[str, Any], source: Path) -> list[str]:
    """Return which files below a folder do not have the hashes that are recorded."""
    listed = [*known["scripts"], known["licences"]]
    return [
        each["file"]
        for each in listed
        if not (source / each["file"]).is_file()
        or sha256((source / each["file"]).read_bytes()) != each["sha256"]
    ]


def packed(each: dict[str, Any], folder: Path) -> tuple[str, bytes]:
    """Let npm fetch the package of a script; return npm's hash of it, and the script."""
    wanted = f"{each['name']}@{each['version']}"
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), wanted]
    if subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL).returncode:
        raise SystemExit(f"npm could not fetch {wanted}: see that it reaches its registry")
    [package] = folder.glob(f"{each['name']}-[0-9]*.tgz")
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    with tarfile.open(package) as archive:
        found = archive.extractfile(f"package/{each['taken']}")
        assert found is not None
        return f"sha512-{digest}", script(found.read())


def check(known: dict[str, Any]) -> None:
    """Stop where a script is not the one that is recorded, or not the one that npm has."""
    if wrong := changed(known, ROOT / "src"):
        raise SystemExit(f"{', '.join(wrong)}: not as in tools/vega.json; see tools/vega.py")
    print(f"{len(known['scripts'])} scripts and their licences have the hashes recorded")
    if shutil.which("npm") is None:
        print("npm is missing: they are not compared with what npm has", file=sys.stderr)
        raise SystemExit(os.environ.get("CI") == "true")
    with tempfile.TemporaryDirectory() as folder:
        for each in known["scripts"]:
            integrity, content = packed(each, Path(folder))
            here = (ROOT / "src" / each["file"]).read_bytes()
            if (integrity, content) != (each["integrity"], here):
                raise SystemExit(f"{each['file']}: npm has another {each['name']}")
            print(f"{each['name']} {each['version']}: {len(here):,} bytes, the same as npm has")


def fetch(known: dict[str, Any]) -> None:
    """Write scripts, their licences and the record anew, for the versions that this names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = [f"{each['name']}@{each['version']}" for each in known["scripts"]]
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--ignore-scripts", *wanted],
            cwd=folder, check=True, stdout=sys.stderr,
        )  # fmt: skip
        modules = folder / "node_modules"
        for each in known["scripts"]:
            each["integrity"], content = packed(each, folder)
            (ROOT / "src" / each["file"]).write_bytes(content)
            each["licence"] = about(modules / each["name"])["license"]
            each["sha256"] = sha256(content)
            each["inside"] = {
                other: about(modules / other)["license"]
                for other in inside(modules, each["name"], each["taken"])
            }
        names = {other for each in known["scripts"] for other in (each["name"], *each["inside"])}
        found = sorted(each.parent for each in modules.glob("**/package.json"))
        text = licences([
            each for each in found if each.parent.name == "node_modules" and each.name in names
        ])  # fmt: skip
    (ROOT / "src" / known["licences"]["file"]).write_text(text, "utf-8")
    known["licences"]["sha256"] = sha256(text.encode())
    RECORD.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", "utf-8")


def about(package: Path) -> dict[str, Any]:
    """Return what an installed package says of itself."""
    said: dict[str, Any] = json.loads((package / "package.json").read_text("utf-8"))
    return said


def inside(modules: Path, name: str, taken: str) -> list[str]:
    """Return the other packages of which a script has code: by its map, or all it depends on."""
    written = modules / name / f"{taken}.map"
    if written.is_file():
        sources = " ".join(json.loads(written.read_text("utf-8"))["sources"])
        return sorted(set(re.findall(r"node_modules/((?:@[^/ ]+/)?[^/ ]+)", sources)))
    found, wanted = set[str](), [name]
    while wanted:
        for each in about(modules / wanted.pop()).get("dependencies", {}):
            if each not in found and _INSIDE.match(each):
                found.add(each)
                wanted.append(each)
    return sorted(found)


def licences(packages: list[Path]) -> str:
    """Return the licences of installed packages, each text once under all who share it."""
    shared: dict[str, list[str]] = {}
    for package in packages:
        said_of = about(package)
        texts = sorted(each for each in package.iterdir() if each.name.lower().startswith("licen"))
        said = texts[0].read_text("utf-8") if texts else f"Licence: {said_of.get('license')}"
        said = "\n".join(line.rstrip() for line in said.strip().splitlines())
        shared.setdefault(said, []).append(f"{said_of['name']} {said_of['version']}")
    rule = "\n\n" + "-" * 72 + "\n\n"
    return rule.join(f"{', '.join(names)}\n\n{said}" for said, names in shared.items()) + "\n"


def main() -> None:
    """Fetch or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, and write nothing")
    (check if parser.parse_args().check else fetch)(record())


if __name__ == "__main__":
    main()
