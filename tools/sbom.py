#!/usr/bin/env python3
"""Says what a wheel ships and needs, and puts that into the wheel while it is built.

Software bill of materials: CycloneDX 1.6, in `.dist-info/sboms/` (PEP 770). It is made from
`pyproject.toml` and `tools/vega.json` alone, has no date, and so is the same each time.

    python tools/sbom.py             # print it; needs hatchling
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "thinveil.cdx.json"
_CHANGED = "as it is in the package of npm, without the line that names a source map"


def bill(root: Path, version: str) -> dict[str, Any]:
    """Return what the wheel of a version ships and needs, read from a folder of sources."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    known = json.loads((root / "tools" / "vega.json").read_text("utf-8"))
    own = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{project['name']}@{version}",
        "name": project["name"],
        "version": version,
        "description": project["description"],
        "licenses": _licence(project["license"]),
        "purl": f"pkg:pypi/{project['name']}@{version}",
    }
    text = {
        "type": "license",
        "url": known["licences"]["file"],
        "hashes": [{"alg": "SHA-256", "content": known["licences"]["sha256"]}],
    }
    scripts = [_script(each) | {"externalReferences": [text]} for each in known["scripts"]]
    inner = [*scripts, *_distributions(project)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "authors": [{"name": each["name"]} for each in project["authors"]],
            "component": own,
        },
        "components": inner,
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": [each["bom-ref"] for each in inner]},
            *({"ref": each["bom-ref"]} for each in inner),
        ],
    }


def written(root: Path, version: str) -> str:
    """Return the bill as the text of its file."""
    return json.dumps(bill(root, version), indent=2, ensure_ascii=False) + "\n"


def requirements(project: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each extra with what it needs, extras of extras followed; "" is no extra.

    >>> list(requirements({"name": "a", "dependencies": ["b>1"],
    ...     "optional-dependencies": {"x": ["c"], "y": ["a[x]", "d<2"]}}))
    [('', 'b>1'), ('x', 'c'), ('y', 'c'), ('y', 'd<2')]
    """
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})

    def needed(wanted: list[str]) -> Iterator[str]:
        for each in wanted:
            parsed = Requirement(each)
            if parsed.name == project["name"]:
                for extra in sorted(parsed.extras):
                    yield from needed(extras[extra])
            else:
                yield each

    for extra, wanted in {"": project["dependencies"], **extras}.items():
        yield from ((extra, each) for each in dict.fromkeys(needed(wanted)))


def _licence(name: str) -> list[dict[str, Any]]:
    return [{"license": {"id": name, "acknowledgement": "declared"}}]


def _script(known: dict[str, Any]) -> dict[str, Any]:
    """Describe a script that is not ours: as it is shipped, where it is from, what is inside."""
    where = f"pkg:npm/{known['name']}@{known['version']}"
    about = {
        "type": "library",
        "name": known["name"],
        "version": known["version"],
        "licenses": _licence(known["licence"]),
        "purl": where,
    }
    package = base64.b64decode(known["integrity"].removeprefix("sha512-")).hex()
    return about | {
        "bom-ref": where,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": known["sha256"]}],
        "evidence": {"occurrences": [{"location": known["file"]}]},
        "pedigree": {
            "ancestors": [about | {"hashes": [{"alg": "SHA-512", "content": package}]}],
            "notes": f"{known['taken']}, {_CHANGED}",
        },
        # Bundlers do not say which versions they put in.
        "components": [
            {
                "type": "library",
                "bom-ref": f"{where}#{name}",
                "name": name,
                "licenses": _licence(licence),
                "purl": f"pkg:npm/{name}",
            }
            for name, licence in known["inside"].items()
        ],
    }


def _distributions(project: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Describe what pip installs beside the wheel: a name, and what is required of it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for extra, each in requirements(project):
        found.setdefault(canonicalize_name(Requirement(each).name), []).append((extra, each))
    for name, needs in sorted(found.items()):
        always = any(not extra for extra, _ in needs)
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "scope": "required" if always else "optional",
            "purl": f"pkg:pypi/{name}",
            "properties": [
                {"name": f"thinveil:requires{extra and f':{extra}'}", "value": each}
                for extra, each in needs
            ],
        }


class BillHook(BuildHookInterface[Any]):
    """Adds the bill to each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bill where hatchling takes it from."""
        self._folder = Path(tempfile.mkdtemp(prefix="thinveil-"))
        path = self._folder / NAME
        path.write_text(written(Path(self.root), self.metadata.version), "utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take away what was written for the build alone."""
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[1]
    about = (here / "src/thinveil/__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', about, re.MULTILINE)
    assert found
    print(written(here, found[1]), end="")
