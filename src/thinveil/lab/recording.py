"""Runs recorded for a page that needs no server: the same events, the same front end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from thinveil.files import write_file
from thinveil.lab.app import static_files
from thinveil.lab.pace import NO_LIMIT
from thinveil.lab.session import Session
from thinveil.lab.setting import AT_FIRST, setting_of
from thinveil.lab.tables import Tables
from thinveil.verdicts.names import LINES

PEOPLE: Final = 30
RUNS: Final = (
    ("idp-k1", "idp, k = 1", {"mechanism": "idp"}),
    ("idp-k3", "idp, k = 3", {"mechanism": "idp", "k": 3}),
    ("idp-binary", "idp-binary", {"mechanism": "idp-binary"}),
    ("idp-noisy", "idp-noisy", {"mechanism": "idp-noisy"}),
    ("bdp", "bdp", {"mechanism": "bdp"}),
    ("unprotected", "unprotected", {"mechanism": "unprotected"}),
    ("dp-textbook", "dp-textbook (in doubles)", {"mechanism": "dp-textbook"}),
    ("dp-laplace", "dp-laplace (honest)", {"mechanism": "dp-laplace"}),
)
"""What is recorded: a name, a title and the setting."""
NOTE: Final = (
    "These are recordings of real runs, with seed 0. To choose a table, an attack and a seed "
    "yourself, run in a clone of the repository: pip install '.[lab]' && thinveil lab"
)
PAGE: Final = "recorded.html"
MODULES: Final = (
    "words",
    "model",
    "gauges",
    "board",
    "drawer",
    "key",
    "stream",
    "live",
    "recorded",
    "main",
)
"""The modules of the page, each after those that it imports."""


def record(**asked: Any) -> list[str]:
    """Run an attack to its end, as fast as it goes, and return its events as JSON."""
    asked = {"table": f"people-{PEOPLE}", **asked, "speed": NO_LIMIT}
    session = Session(setting_of(asked, Tables()))
    session.start()
    session.join()
    return session.since(0)


def recordings() -> dict[str, str]:
    """Return the recordings and the list of them, as scripts by file name.

    A page that was opened from a disk may load scripts, and nothing else.
    """
    listed = {
        "tables": [{"name": f"people-{PEOPLE}", "title": f"{PEOPLE} made-up people"}],
        "mechanisms": [
            {"name": name, "title": title, "line": LINES[str(asked["mechanism"])], "file": name}
            for name, title, asked in RUNS
        ],
        "attacks": [],
        "strategies": [],
        "usual": AT_FIRST,
        "note": NOTE,
    }
    written = {"index": json.dumps(listed, indent=1)}
    for name, _, setting in RUNS:
        written[name] = "[\n" + ",\n".join(record(**setting)) + "\n]"
    return {
        f"{name}.js": f"(globalThis.thinveilRecordings ??= {{}})[{name!r}] = {text};\n"
        for name, text in written.items()
    }


def bundle() -> bytes:
    """Return the page's modules as one plain script, which also runs from a disk."""
    parts = ['"use strict";', "const modules = {};"]
    for name in MODULES:
        source = static_files()[f"{name}.js"].decode()
        exported = re.findall(
            r"^export (?:const|class|(?:async )?function) (\w+)", source, re.MULTILINE
        )
        source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
        source = re.sub(
            r'^import (\{[^}]*\}) from "\./(\w+)\.js";$',
            r"const \1 = modules.\2;",
            source,
            flags=re.MULTILINE,
        )
        told = ", ".join(exported)
        parts.append(f"modules.{name} = (() => {{\n{source}return {{ {told} }};\n}})();")
    return ("\n".join(parts) + "\n").encode()


def page(home: str | None = None) -> dict[str, bytes]:
    """Return the files of the page that plays recordings, by path.

    Where it is part of the documentation, a link leads back to it.
    """
    live = static_files()
    whole = live["index.html"]
    for old, new in (
        (b'data-mode="live"', b'data-mode="recorded"'),
        (b'type="module" src="static/main.js"', b'defer src="static/bundle.js"'),
    ):
        assert old in whole
        whole = whole.replace(old, new)
    if home is not None:
        link = f'<a href="{home}">Documentation</a>\n</header>'
        whole = whole.replace(b"</header>", link.encode(), 1)
    kept = {f"static/{name}": live[name] for name in ("icon.svg", "lab.css")}
    return {PAGE: whole, "static/bundle.js": bundle(), **kept}


def site(home: str | None = None) -> dict[str, bytes]:
    """Return everything that a page without a server needs, by path: recorded anew."""
    return page(home) | {f"recordings/{name}": text.encode() for name, text in recordings().items()}


def write(folder: Path) -> int:
    """Write the page and its recordings to a folder; return how many bytes that is."""
    files = site()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content, overwrite=True)
    return sum(map(len, files.values()))
