"""What thinveil is made of: its requirements, what is installed of them, and whether it works.

Requirements come from the package's own metadata, so that bounds are written in one place. What is
installed is imported in a process of its own: a library that takes the interpreter down with it is
named, and takes nothing else down.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any, Final, Literal

from thinveil.errors import to_install

if TYPE_CHECKING:
    from packaging.requirements import Requirement

State = Literal["there", "missing", "broken"]
HIDDEN: Final = ("all", "dev", "docs")
"""Extras that only gather others, or are for those who work on thinveil."""
_PATIENCE: Final = 120  # seconds for all imports of one process
_IMPORTS: Final = """
import importlib, json, os, sys
said = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever a library prints when it is imported
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        problem = ""
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print(json.dumps([name, problem]), file=said, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One package that thinveil or an extra needs.

    Args:
        name: The package's name.
        wanted: The versions that will do, such as ">=1.2,<1.5".
        version: The installed version; None where it is not installed.
        fits: Whether the installed version is one that will do.
        problem: What went wrong when it was imported; empty where nothing did.
    """

    name: str
    wanted: str
    version: str | None
    fits: bool = True
    problem: str = ""

    @property
    def sound(self) -> bool:
        """Whether it is installed, in a version that will do, and can be imported."""
        return self.version is not None and self.fits and not self.problem

    def describe(self) -> str:
        """Say what there is."""
        if self.version is None:
            return f"no {self.name}"
        wrong = [] if self.fits else [f"needs {self.wanted}"]
        wrong += [f"cannot be imported ({self.problem})"] if self.problem else []
        return f"{self.name} {self.version}" + (f": {', '.join(wrong)}" if wrong else "")


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra and its parts; the one without a name is thinveil itself."""

    name: str
    parts: tuple[Part, ...]

    @property
    def state(self) -> State:
        """Whether it can be used. Where parts are missing, the others are nobody's concern."""
        if all(part.sound for part in self.parts):
            return "there"
        if self.name and any(part.version is None for part in self.parts):
            return "missing"
        return "broken"

    @property
    def command(self) -> str:
        """The command that makes it whole; empty where it is."""
        if self.state == "there":
            return ""
        again = [
            f"'{part.name}{part.wanted}'"
            for part in self.parts
            if part.version is not None and part.fits and part.problem
        ]
        if again:  # it is there in the right version, so that a plain install would do nothing
            return f"pip install --force-reinstall {' '.join(again)}"
        return to_install(self.name, bare=True)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "name": self.name or "thinveil",
            "state": self.state,
            "parts": [
                {
                    "name": part.name,
                    "version": part.version,
                    "wanted": part.wanted,
                    "fits": part.fits,
                    "problem": part.problem,
                }
                for part in self.parts
            ],
            "command": self.command,
        }


def extras() -> list[Extra]:
    """Return thinveil itself and all its extras, with what is installed of them.

    Raises:
        PackageNotFoundError: thinveil runs from a folder of sources and was never installed.
    """
    mine = distribution("thinveil")
    names = ["", *sorted(set(mine.metadata.get_all("Provides-Extra") or ()) - {*HIDDEN})]
    found = [Extra(name, tuple(_parts(mine, name))) for name in names]
    installed = {
        part.name: module
        for extra in found
        for part in extra.parts
        if part.version is not None and (module := _module(distribution(part.name)))
    }
    problems = problems_of(list(dict.fromkeys(installed.values())))
    return [
        replace(
            extra,
            parts=tuple(
                replace(part, problem=problems.get(installed.get(part.name, ""), ""))
                for part in extra.parts
            ),
        )
        for extra in found
    ]


def _parts(mine: Distribution, extra: str) -> Iterator[Part]:
    """Yield what an extra needs, each package once; the extra "" is thinveil itself."""
    from packaging.specifiers import SpecifierSet

    wanted: dict[str, SpecifierSet] = {}
    for each in _requirements(mine, extra):
        wanted[each.name] = wanted.get(each.name, SpecifierSet()) & each.specifier
    for name, bounds in sorted(wanted.items()):
        try:
            version = distribution(name).version
        except PackageNotFoundError:
            yield Part(name, str(bounds), None)
        else:
            yield Part(name, str(bounds), version, bounds.contains(version, prereleases=True))


def _requirements(mine: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, and of the extras that it names in turn."""
    from packaging.requirements import Requirement

    for text in mine.requires or ():
        each = Requirement(text)
        here = each.marker is None or each.marker.evaluate({"extra": extra})
        always = each.marker is None or each.marker.evaluate({"extra": ""})
        if not here or (extra and always):
            continue
        if each.name == "thinveil":
            for other in sorted(each.extras):
                yield from _requirements(mine, other)
        else:
            yield each


def _module(found: Distribution) -> str:
    """Return the name under which a package is imported; empty where it brings no module."""
    said = (found.read_text("top_level.txt") or "").split()
    packages = [
        file.parts[0]
        for file in found.files or ()
        if len(file.parts) == 2 and file.parts[1] in ("__init__.py", "__init__.pyi")
    ]
    names = [each for each in dict.fromkeys([*said, *packages]) if not each.startswith("_")]
    usual = found.name.lower().replace("-", "_")
    return min(names, key=lambda each: (each != usual, not usual.startswith(each)), default="")


def problems_of(modules: Sequence[str]) -> Mapping[str, str]:
    """Import modules in processes of their own; return what went wrong with each."""
    found: dict[str, str] = {}
    left = list(modules)
    while left:
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", _IMPORTS, *left],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_PATIENCE,
                check=False,
            )
            said, ended = done.stdout, f"it ends the interpreter (code {done.returncode})"
        except subprocess.TimeoutExpired as late:
            said, ended = late.stdout or b"", f"it takes more than {_PATIENCE} seconds"
        found |= dict(json.loads(line) for line in said.splitlines())
        left = [each for each in left if each not in found]
        if left:
            found[left.pop(0)] = ended
    return found
