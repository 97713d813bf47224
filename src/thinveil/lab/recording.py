"""Runs recorded for a page that needs no server: the same events, the same front end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from thinveil.lab.app import static_files
from thinveil.lab.pace import NO_LIMIT
from thinveil.lab.session import Session
from thinveil.lab.setting import MECHANISM_LINES, SPEED, setting_of
from thinveil.lab.tables import Tables

PEOPLE: Final = 30
RUNS: Final = (
    ("idp-k1", "idp, k = 1", {"mechanism": "idp"}),
    ("idp-k3", "idp, k = 3", {"mechanism": "idp", "k": 3}),
    ("idp-binary", "idp-binary", {"mechanism": "idp-binary"}),
    ("idp-noisy", "idp-noisy", {"mechanism": "idp-noisy"}),
    ("bdp", "bdp", {"mechanism": "bdp"}),
    ("unprotected", "unprotected", {"mechanism": "unprotected"}),
    ("dp-laplace", "dp-laplace (honest)", {"mechanism": "dp-laplace"}),
)
"""What is recorded: a name, a title and the setting."""
NOTE: Final = (
    "These are recordings of real runs, with seed 0. To choose a table, an attack and a seed "
    "yourself, install thinveil[lab] and run: thinveil lab"
)
PAGE: Final = "recorded.html"


def record(**asked: Any) -> list[str]:
    """Run an attack to its end, as fast as it goes, and return its events as JSON."""
    asked = {"table": f"people-{PEOPLE}", **asked, "speed": NO_LIMIT}
    session = Session(setting_of(asked, Tables()))
    session.start()
    session.join()
    return session.since(0)


def recordings() -> dict[str, str]:
    """Return the recordings and the list of them, by file name."""
    runs = {
        f"{name}.json": "[\n" + ",\n".join(record(**setting)) + "\n]\n" for name, _, setting in RUNS
    }
    listed = {
        "tables": [{"name": f"people-{PEOPLE}", "title": f"{PEOPLE} made-up people"}],
        "mechanisms": [
            {
                "name": name,
                "title": title,
                "line": MECHANISM_LINES[str(setting["mechanism"])],
                "file": f"{name}.json",
            }
            for name, title, setting in RUNS
        ],
        "attacks": [],
        "strategies": [],
        "usual": {"epsilon": "1e-10", "strategy": "adaptive", "speed": SPEED},
        "note": NOTE,
    }
    return {"index.json": json.dumps(listed, indent=1) + "\n", **runs}


def page() -> dict[str, bytes]:
    """Return the files of the page that plays recordings, by path."""
    found = {f"static/{name}": content for name, content in static_files().items()}
    live = found.pop("static/index.html")
    return {PAGE: live.replace(b'data-mode="live"', b'data-mode="recorded"'), **found}


def write(folder: Path) -> int:
    """Write the page and its recordings to a folder; return how many bytes that is."""
    files = page() | {f"recordings/{name}": text.encode() for name, text in recordings().items()}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return sum(map(len, files.values()))
