"""thinveil doctor: what is installed, what is missing, and what is broken."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from thinveil import __version__
from thinveil.commands.outputs import check_outputs, consoles, json_option, write_json
from thinveil.commands.parts import Extra, extras
from thinveil.errors import EXIT_COMPLETE, EXIT_ERROR, IN_THE_FOLDER, ThinveilError, from_folder

if TYPE_CHECKING:
    from rich.console import Console

OLDEST_JAVA: Final = 17
"""What PySpark 4 runs on."""
COMPLETIONS: Final = {
    "bash": "~/.local/share/bash-completion/completions/thinveil",
    "zsh": "~/.zfunc/_thinveil",
    "fish": "~/.config/fish/completions/thinveil.fish",
}
"""Where `thinveil completion --help` advises to put the scripts."""
_WHY: Final = {
    "duckdb": "DuckDB 1.5 warns at every call that Ibis 12 makes",
    "pandas": "PySpark below 4.1 converts data frames of pandas 2 only",
    "sqlglot": "Ibis 12 breaks with sqlglot 28",
}
"""Why a package has an upper bound."""
_PLAIN: Final = "without numba the thrifty strategy runs uncompiled, some hundred times slower"
_STYLES: Final = {"there": "green", "missing": "yellow", "broken": "bold red"}


@dataclass(frozen=True, slots=True)
class Plugin:
    """A mechanism or a target that another package brings."""

    name: str
    kind: str
    package: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was looked at."""

    extras: Sequence[Extra]
    plugins: Sequence[Plugin]
    java: str | None
    tools: Mapping[str, str | None]
    completions: Mapping[str, str | None]
    terminal: Mapping[str, Any]
    wrong: Sequence[str]
    notes: Sequence[str]

    @property
    def sound(self) -> bool:
        """Whether nothing that is installed is broken."""
        return not self.wrong

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "thinveil": __version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "sound": self.sound,
            "broken": list(self.wrong),
            "notes": list(self.notes),
            "extras": [each.to_plain() for each in self.extras],
            "plugins": [asdict(each) for each in self.plugins],
            "java": self.java,
            "developers": dict(self.tools),
            "completions": dict(self.completions),
            "terminal": dict(self.terminal),
        }


@click.command("doctor")
@json_option
def command(json_file: str | None) -> int:
    """Say what is installed, what is missing with the command that installs it, and what is broken.

    Missing extras are no error. The exit code is 1 where something that is installed cannot be
    imported, or is there in a version that thinveil does not work with.

    \b
    Examples:
      thinveil doctor
      thinveil doctor --json health.json
    """
    check_outputs([], json=json_file)
    try:
        console, notices = consoles(json_file)
    except ImportError:  # rich itself is what is broken
        found = examine({})
        lines = [f"{name}: {state}: {what}" for name, state, what in _rows(found)]
        click.echo("\n".join([*lines, *found.wrong]), err=json_file == "-")
        write_json(json_file, found.to_plain())
        return EXIT_ERROR
    with notices.status("importing what is installed") if notices.is_interactive else nullcontext():
        found = examine(_terminal(console))
    write_json(json_file, found.to_plain())
    _show(console, found)
    return EXIT_COMPLETE if found.sound else EXIT_ERROR


def examine(terminal: Mapping[str, Any]) -> Findings:
    """Look at everything once."""
    wrong: list[str] = []
    parts: list[Extra] = []
    try:
        parts = extras()
        if version("thinveil") != __version__:
            wrong.append("this code and the installed package differ: pip install it again")
    except PackageNotFoundError:
        wrong.append("thinveil runs from its sources and is not installed: pip install it")
    except ImportError:
        wrong.append("the package 'packaging' is missing: pip install packaging")
    for extra in parts:
        if extra.state == "broken":
            said = "; ".join(part.describe() for part in extra.parts if not part.sound)
            wrong.append(f"{extra.name or 'thinveil itself'}: {said}")
    plugins = list(_plugins())
    wrong += [each.problem for each in plugins if each.problem]
    java = java_version()
    return Findings(
        extras=parts,
        plugins=plugins,
        java=java,
        tools={
            "chromium": _first("chromium", "chromium-browser", "google-chrome"),
            "postgresql server": _first("postgres") or _newest_postgres(),
        },
        completions={shell: _there(path) for shell, path in COMPLETIONS.items()},
        terminal=terminal,
        wrong=wrong,
        notes=list(_notes(parts, java)),
    )


def _notes(parts: Sequence[Extra], java: str | None) -> Iterator[str]:
    """Yield what is known to go wrong with what is installed here."""
    states = {extra.name: extra.state for extra in parts}
    late = {part.name for extra in parts for part in extra.parts if not part.fits}
    for name in sorted(late & _WHY.keys()):
        yield f"{_WHY[name]}, so its version is bounded"
    if states.get("fast") == "missing":
        yield _PLAIN
    if states.get("spark") == "there":
        if java is None:
            yield f"Spark needs Java {OLDEST_JAVA} or later: on Debian, apt install default-jre"
        elif int(java.partition(".")[0]) < OLDEST_JAVA:
            yield f"Spark needs Java {OLDEST_JAVA} or later, and finds {java}: set JAVA_HOME"


def _plugins() -> Iterator[Plugin]:
    """Yield the plug-ins that there are, each of them loaded."""
    try:
        from thinveil.language import plugins
    except ImportError:
        return  # NumPy is broken, and that is said already
    groups = (
        ("mechanism", plugins.MECHANISM_GROUP, plugins.mechanism),
        ("target", plugins.TARGET_GROUP, plugins.target_maker),
    )
    for kind, group, load in groups:
        for name, packages in plugins.found(group):
            try:
                load(name)
            except ThinveilError as error:
                yield Plugin(name, kind, packages, str(error))
            else:
                yield Plugin(name, kind, packages)


def java_version() -> str | None:
    """Return the version of the Java that Spark would start; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r'version "(?:1\.)?(\d[\d.]*)', done.stderr)
    return said[1] if said else None


def _terminal(console: Console) -> dict[str, Any]:
    """Return what is written to, and what it can show."""
    return {
        "terminal": sys.stdout.isatty(),
        "columns": console.width,
        "colours": console.color_system or "none",
        "encoding": sys.stdout.encoding,
    }


def _first(*names: str) -> str | None:
    return next((found for name in names if (found := shutil.which(name))), None)


def _newest_postgres() -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return str(found[-1]) if found else None


def _there(path: str) -> str | None:
    return path if Path(path).expanduser().is_file() else None


def _rows(found: Findings) -> Iterator[tuple[str, str, str]]:
    """Yield what was found as rows: what it is, its state, and what there is."""
    for extra in found.extras:
        parts = ", ".join(part.describe() for part in extra.parts)
        yield extra.name or "thinveil", extra.state, parts
    wanted = any(extra.name == "spark" and extra.state == "there" for extra in found.extras)
    if found.java is not None or wanted:
        yield "Java", "missing" if found.java is None else "there", found.java or "for Spark"
    for each in found.plugins:
        state = "broken" if each.problem else "there"
        yield f"plug-in {each.name}", state, f"a {each.kind} of {each.package}"
    scripts = [f"{shell}: {path}" for shell, path in found.completions.items() if path]
    yield (
        "completion",
        "there" if scripts else "missing",
        ", ".join(scripts) or "thinveil completion --help",
    )
    if found.terminal:
        said = "a terminal" if found.terminal["terminal"] else "no terminal"
        columns, colours, encoding = (
            found.terminal[each] for each in ("columns", "colours", "encoding")
        )
        yield "output", "there", f"{said}, {columns} columns, colours: {colours}, {encoding}"
    tools = [f"{name}: {'there' if path else 'no'}" for name, path in found.tools.items()]
    yield "to develop", "", f"{', '.join(tools)} (only tests use them)"


def _show(console: Console, found: Findings) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    plain = found.to_plain()
    console.print(
        Text(f"thinveil {__version__}, Python {plain['python']}, {plain['system']}", style="bold")
    )
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", collapse_padding=True)
    table.add_column("part", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("what there is", overflow="fold")
    for name, state, what in _rows(found):
        table.add_row(Text(name), Text(state, style=_STYLES.get(state, "")), Text(what))
    console.print(table)
    for heading, state in (("To mend what is broken:", "broken"), ("To add an extra:", "missing")):
        commands = [each.command for each in found.extras if each.state == state]
        if commands:
            console.print(Text(f"{heading[:-1]} ({IN_THE_FOLDER}):" if from_folder() else heading))
            for each in dict.fromkeys(commands):
                console.print(Text(f"  {each}"), soft_wrap=True)
    for note in found.notes:
        console.print(Text(f"Note: {note}", style="yellow"))
    for each in found.wrong:
        console.print(Text(f"Broken: {each}", style="red"))
    if found.sound:
        console.print(Text("Nothing that is installed is broken.", style="bold"))
