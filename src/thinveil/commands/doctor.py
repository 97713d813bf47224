"""thinveil doctor: what is installed, what is missing, and what is broken.

Requirements come from the package's own metadata, so that bounds are written in one place. What is
installed is imported in a process of its own: a library that takes the interpreter down with it is
named, and takes nothing else down.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from thinveil import __version__
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import (
    check_outputs,
    json_option,
    overwrite_option,
    write_json,
)
from thinveil.errors import (
    EXIT_ERROR,
    IN_THE_FOLDER,
    ThinveilError,
    UsageError,
    from_folder,
    to_install,
)
from thinveil.report.text.streams import pour, say

if TYPE_CHECKING:
    from packaging.requirements import Requirement

OLDEST_JAVA: Final = 17
"""What PySpark 4 runs on."""
HIDDEN: Final = ("all", "test")
"""Extras that only gather others, or are for those who work on thinveil."""
_PATIENCE: Final = 120  # seconds for all imports of one process


@dataclass(frozen=True, slots=True)
class Part:
    """A package that is needed: the versions that will do, the one there is, and what it lacks."""

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
        unfit = "" if self.fits else f"needs {self.wanted}"
        failed = f"cannot be imported ({self.problem})" if self.problem else ""
        wrong = ", ".join(filter(None, (unfit, failed)))
        return f"{self.name} {self.version}" + (f": {wrong}" if wrong else "")


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra and its parts; the one without a name is thinveil itself."""

    name: str
    parts: tuple[Part, ...]

    @property
    def state(self) -> Literal["there", "missing", "broken"]:
        """Whether it can be used. Where parts are missing, the others are nobody's concern."""
        if all(part.sound for part in self.parts):
            return "there"
        gone = any(part.version is None for part in self.parts)
        return "missing" if self.name and gone else "broken"

    @property
    def command(self) -> str:
        """The command that makes it whole; empty where it is."""
        if self.state == "there":
            return ""
        again = [f"'{each.name}{each.wanted}'" for each in self.parts if each.fits and each.problem]
        if again:  # it is there in the right version, so that a plain install would do nothing
            return f"pip install --force-reinstall {' '.join(again)}"
        return to_install(self.name, bare=True)


@click.command("doctor", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("source", required=False)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[AUDIT OPTIONS]")
@json_option
@overwrite_option
@click.pass_context
def command(
    ctx: click.Context, source: str | None, options: tuple[str, ...], json_file: str | None
) -> int:
    """Say what is installed, missing or broken; of SOURCE, whether it does what it claims.

    Without SOURCE: what is installed, what is missing with the command that installs it, and what
    is broken. Missing extras are no error. The exit code is 1 where something that is installed
    cannot be imported, or is there in a version that thinveil does not work with.

    With SOURCE, as thinveil audit SOURCE --check-claim: some questions whose answers are known are
    asked of a service (http://), a plug-in's target (NAME:ADDRESS), or a curator of ours over a
    table, and nobody is attacked. The exit code is 1 where it does not do what it claims. Options
    of thinveil audit may follow.

    \b
    Examples:
      thinveil doctor
      thinveil doctor --json health.json
      thinveil people --records 60 --output people.csv
      thinveil doctor people.csv --mechanism idp-noisy
      thinveil doctor http://127.0.0.1:8321
    """
    if source is not None:
        return _of_claim(ctx, source, options, json_file)
    check_outputs([], json=(json_file, "health"))
    if sys.stderr.isatty():
        say("Importing what is installed, piece by piece ...", err=True)
    parts, found = examine()
    write_json(json_file, found, "health")
    pour(_said(parts, found), err=json_file == "-")
    return EXIT_ERROR if found["broken"] else 0


def _of_claim(
    ctx: click.Context, source: str, options: tuple[str, ...], json_file: str | None
) -> int:
    """Check what a target claims: the audit that attacks nobody."""
    if source.startswith("-"):
        raise UsageError(f"{source}: there is no such option; options of an audit follow a SOURCE")
    from thinveil.commands.audit import command as audit

    written = [] if json_file is None else ["--json", json_file]
    with audit.make_context("doctor", [source, "--check-claim", *written, *options], ctx) as inner:
        code: int = audit.invoke(inner)
    return code


def examine() -> tuple[list[Extra], dict[str, Any]]:
    """Look at everything once; return the extras, and all that was found as plain values."""
    broken: list[str] = []
    parts: list[Extra] = []
    try:
        parts = extras()
        if version("thinveil") != __version__:
            broken.append("this code and the installed package differ: pip install it again")
    except PackageNotFoundError:
        broken.append("thinveil runs from its sources and is not installed: pip install it")
    except ImportError:
        broken.append("the package 'packaging' is missing: pip install packaging")
    for extra in parts:
        if extra.state == "broken":
            said = "; ".join(part.describe() for part in extra.parts if not part.sound)
            broken.append(f"{extra.name or 'thinveil itself'}: {said}")
    plugins = list(_plugins())
    broken += [each["problem"] for each in plugins if each["problem"]]
    java = java_version()
    return parts, {
        "thinveil": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sound": not broken,
        "broken": broken,
        "notes": list(_notes(parts, java)),
        "extras": [
            asdict(each)
            | {"name": each.name or "thinveil", "state": each.state, "command": each.command}
            for each in parts
        ],
        "plugins": plugins,
        "java": java,
    }


def extras() -> list[Extra]:
    """Return thinveil itself, where it was ever installed, and all its extras with their parts."""
    mine = distribution("thinveil")
    names = ["", *sorted(set(mine.metadata.get_all("Provides-Extra") or ()) - {*HIDDEN})]
    tried = cache(problem_of)
    return [Extra(name, tuple(_parts(mine, name, tried))) for name in names]


def _parts(mine: Distribution, extra: str, tried: Callable[[str], str]) -> Iterator[Part]:
    """Yield what an extra needs, each package once; the extra "" is thinveil itself."""
    from packaging.specifiers import SpecifierSet

    wanted: dict[str, SpecifierSet] = {}
    for each in _requirements(mine, extra):
        wanted[each.name] = wanted.get(each.name, SpecifierSet()) & each.specifier
    for name, bounds in sorted(wanted.items()):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            yield Part(name, str(bounds), None)
        else:
            fits = bounds.contains(found.version, prereleases=True)
            problem = tried(module) if (module := _module(found)) else ""
            yield Part(name, str(bounds), found.version, fits, problem)


def _requirements(mine: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, and of the extras that it names in turn."""
    from packaging.requirements import Requirement

    for each in map(Requirement, mine.requires or ()):
        marker = each.marker
        always, here = (marker is None or marker.evaluate({"extra": name}) for name in ("", extra))
        if not here or (extra and always):
            continue
        if each.name == "thinveil":
            for other in sorted(each.extras):
                yield from _requirements(mine, other)
        else:
            yield each


def _module(found: Distribution) -> str:
    """Return the name under which a package is imported; empty where it brings no module."""
    names = (found.read_text("top_level.txt") or "").split()
    packages = (each.parts for each in found.files or () if each.stem == "__init__")
    names += [parts[0] for parts in packages if len(parts) == 2]
    usual = found.name.lower().replace("-", "_")
    public = [each for each in names if not each.startswith("_")]
    return min(public, key=lambda each: (each != usual, not usual.startswith(each)), default="")


def problem_of(module: str) -> str:
    """Import a module in a process of its own; return what went wrong."""
    command = [sys.executable, "-P", "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"it takes more than {_PATIENCE} seconds"
    if done.returncode == 1 and "Traceback" in done.stderr:
        return done.stderr.splitlines()[-1][:200]
    return f"it ends the interpreter (code {done.returncode})" if done.returncode else ""


def _notes(parts: Sequence[Extra], java: str | None) -> Iterator[str]:
    """Yield what is known to go wrong with what is installed here."""
    states = {extra.name: extra.state for extra in parts}
    if states.get("fast") == "missing":
        yield "without numba the thrifty strategy runs uncompiled, some four times slower"
    if states.get("spark") == "there":
        if java is None:
            yield f"Spark needs Java {OLDEST_JAVA} or later: on Debian, apt install default-jre"
        elif int(java.partition(".")[0]) < OLDEST_JAVA:
            yield f"Spark needs Java {OLDEST_JAVA} or later, and finds {java}: set JAVA_HOME"


def _plugins() -> Iterator[dict[str, str]]:
    """Yield the mechanisms, targets and strategies that other packages bring, all loaded."""
    try:
        from thinveil.attacker.strategies import plugged
        from thinveil.language import plugins
    except ImportError:
        return  # NumPy is broken, and that is said already
    for kind, group, load in (
        ("mechanism", plugins.MECHANISM_GROUP, plugins.mechanism),
        ("target", plugins.TARGET_GROUP, plugins.target_maker),
        ("strategy", plugins.STRATEGY_GROUP, plugged),
    ):
        for name, packages in plugins.found(group):
            problem = ""
            try:
                load(name)
            except ThinveilError as error:
                problem = str(error)
            yield {"name": name, "kind": kind, "package": packages, "problem": problem}


def java_version() -> str | None:
    """Return the version of the Java that Spark would start; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin" if home else None)
    if program is None:
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
        said = re.search(r'version "(?:1\.)?(\d[\d.]*)', done.stderr)
        return said[1] if said else None
    return None


def _said(parts: Sequence[Extra], found: Mapping[str, Any]) -> str:
    """Write everything down: a table, the commands that help, and what is wrong."""
    page = click.HelpFormatter(width=shutil.get_terminal_size().columns)
    page.write_text(f"thinveil {__version__}, Python {found['python']}, {found['system']}")
    rows = [
        (f"{extra.name or 'thinveil'}: {extra.state}", ", ".join(map(Part.describe, extra.parts)))
        for extra in parts
    ]
    rows += [("Java: there", found["java"])] if found["java"] else []
    for each in found["plugins"]:
        state = "broken" if each["problem"] else "there"
        rows.append((f"plug-in {each['name']}: {state}", f"a {each['kind']} of {each['package']}"))
    if rows:
        page.write_dl(rows)
    where = f" ({IN_THE_FOLDER})" if from_folder() else ""
    for heading, state in (("To mend what is broken", "broken"), ("To add an extra", "missing")):
        commands = {each.command: None for each in parts if each.state == state}
        if commands:  # each on a line of its own, however long, to be copied
            page.write("\n  ".join([f"{heading}{where}:", *commands]) + "\n")
    broken = [f"Broken: {each}" for each in found["broken"]]
    sound = ["Nothing that is installed is broken."]
    for line in (*(f"Note: {each}" for each in found["notes"]), *(broken or sound)):
        page.write_text(line)
    return page.getvalue()
