"""A table full of unmistakable values: no error, log line or header may hold one of them."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.soaks.processes import Served, finished
from thinveil.commands.main import run

TEXT = "Kanarienvogel"
NUMBER = 918_273_645
RECORDS = 40

SCHEMA = """
[[attribute]]
name = "name"
kind = "{kind}"
{values}
missing = {missing}

[[attribute]]
name = "pay"
kind = "integer"
step = "{step}"
{bounds}
missing = {missing}
"""


@dataclass
class Outcome:
    """How much was searched, and where a value of the table was found."""

    commands: int = 0
    replies: int = 0
    characters: int = 0
    broken: list[str] = field(default_factory=list)

    def search(self, what: str, text: str) -> None:
        """Note whether a text holds a value of the table."""
        self.characters += len(text)
        plain = text.replace(",", "").replace("_", "")
        if TEXT.lower() in plain.lower() or str(NUMBER)[:7] in plain:
            self.broken.append(f"{what}: holds a confidential value")
        if "Traceback" in text:
            self.broken.append(f"{what}: a traceback")


def write(folder: Path) -> Path:
    """Write the table as CSV, Parquet and SQLite; return the CSV file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"{TEXT}-{number:03}" for number in range(RECORDS)]
    pay = [NUMBER + 1000 * number for number in range(RECORDS)]
    path = folder / "canary.csv"
    lines = [f"{name},{value}" for name, value in zip(names, pay, strict=True)]
    path.write_text("\n".join(["name,pay", *lines]) + "\n")
    pq.write_table(pa.table({"name": names, "pay": pay}), folder / "canary.parquet")
    with contextlib.closing(sqlite3.connect(folder / "canary.sqlite")) as base:
        base.execute("CREATE TABLE canary (name TEXT, pay BIGINT)")
        base.executemany("INSERT INTO canary VALUES (?, ?)", zip(names, pay, strict=True))
        base.commit()
    return path


def schemas(folder: Path) -> list[Path]:
    """Write schemas, most of which the table does not fit."""
    found = []
    for number, (kind, step, bounds, missing) in enumerate(
        itertools.product(
            ("category", "integer", "date"),
            ("1", "7"),
            ("", "lower = 0\nupper = 10", f"lower = 0\nupper = {2 * NUMBER}"),
            ("true", "false"),
        )
    ):
        values = 'values = ["a", "b"]' if kind == "category" else ""
        path = folder / f"schema{number}.toml"
        path.write_text(
            SCHEMA.format(kind=kind, values=values, step=step, bounds=bounds, missing=missing)
        )
        found.append(path)
    return found


def wrong_commands(folder: Path) -> Outcome:
    """Run commands that go wrong on the table, and search what they say on the error stream."""
    outcome = Outcome()
    csv = write(folder)
    sources = [
        [str(csv)],
        [str(folder / "canary.parquet")],
        [str(csv), "--engine", "duckdb"],
        [str(folder / "*.parquet")],
        [f"sqlite://{folder / 'canary.sqlite'}"],
    ]
    tries = [["--schema", str(path)] for path in schemas(folder)]
    tries += [
        ["--table", "nothing"], ["--order", "pay,nothing"], ["--attack", "column", "--column", "x"],
        ["--attack", "membership", "--known", "pay=abc"], ["--k", "100"], ["--separator", "q"],
        ["--encoding", "utf-16"], ["--universe", "bounded"],
        ["--missing", f"{TEXT}-001", "--k", "0"],
    ]  # fmt: skip
    for number, (source, words) in enumerate(itertools.product(sources, tries)):
        said, errors = io.StringIO(), io.StringIO()
        transcript = ["--transcript", str(folder / f"{number}.transcript"), "--max-queries", "50"]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = run(["audit", *source, *words, *transcript])
        outcome.commands += 1
        text = errors.getvalue().replace(f"{TEXT}-001", "") if "--missing" in words else ""
        outcome.search(f"audit {number}", text or errors.getvalue())
        if code not in (1, 2, 3) and "--missing" not in words and "unexpected" in errors.getvalue():
            outcome.broken.append(f"audit {number}: exit {code}")
    return outcome


def service_replies(folder: Path) -> Outcome:
    """Ask a service over the table wrongly, and search replies, headers and its log."""
    import httpx

    outcome = Outcome()
    csv = write(folder)
    schema = folder / "public.toml"
    names = ", ".join(f'"{TEXT}-{number:03}"' for number in range(RECORDS))
    schema.write_text(
        SCHEMA.format(
            kind="category", values=f"values = [{names}]", step="1", bounds="", missing="false"
        )
    )
    options = ("--schema", str(schema), "--largest-batch", "100")
    served = Served(folder, csv, (*options, "--rate", "1000000"), {"ann": "0.5"})
    served.start()
    token = {"Authorization": f"Bearer {served.tokens['ann']}"}
    good: dict[str, Any] = {"boxes": [{"pay": [NUMBER, NUMBER + 5000]}], "more_than": 3}
    bodies: list[Any] = [
        {"key": "a", "epsilon": 0.01, "questions": [good]},
        {"key": "a", "epsilon": 0.02, "questions": [good]},
        {"key": "b", "epsilon": 9, "questions": [good]},
        {"key": "c", "questions": [good]},
        {"key": "d", "epsilon": -1, "questions": [good]},
        {"key": "e", "epsilon": 0.01, "questions": [{"boxes": [{"age": [1, 2]}], "more_than": 3}]},
        {"key": "f", "epsilon": 0.01, "questions": [{"boxes": [{"pay": "x"}], "more_than": 3}]},
        {"key": "g", "epsilon": 0.01, "questions": [{"boxes": [], "more_than": 3}]},
        {"key": "h", "epsilon": 0.01, "questions": [{**good, "more_than": "many"}]},
        {"key": "i", "epsilon": 0.01, "repeats": 1000, "questions": [good]},
        {"key": "j", "epsilon": 0.01, "questions": [good] * 200},
        {"key": "k", "epsilon": 0.01, "questions": [{**good, "boxes": good["boxes"] * 2}]},
        {"key": "", "epsilon": 0.01, "questions": [good]},
        {}, [], 1, None, "x", {"questions": {}}, {"key": [], "epsilon": {}, "questions": [[]]},
    ]  # fmt: skip
    sent = [json.dumps(body).encode() for body in bodies] + [b"", b"{", b"\xff", b"[" * 5000]
    try:
        with httpx.Client(base_url=served.url, timeout=20, trust_env=False) as client:
            replies = [
                client.post("/answers", content=body, headers={**token, "Content-Type": kind})
                for body in sent
                for kind in ("application/json", "application/vnd.apache.arrow.stream", "text/x")
            ]
            replies += [client.post("/answers", content=sent[0]), client.get("/facts")]
            replies += [client.get(path, headers=token) for path in ("/ledger", "/health", "/x")]
        served.stop()
        served.options = (*options, "--rate", "0.01")
        served.start()
        with httpx.Client(base_url=served.url, timeout=20, trust_env=False) as client:
            replies += [client.get("/ledger", headers=token) for _ in range(3)]
    finally:
        served.stop()
    for reply in replies:
        outcome.replies += 1
        headers = "\n".join(f"{name}: {value}" for name, value in reply.headers.items())
        outcome.search(f"headers of a reply with status {reply.status_code}", headers)
        if reply.status_code != 200:
            outcome.search(f"body of a reply with status {reply.status_code}", reply.text)
        if reply.status_code >= 500:
            outcome.broken.append(f"status {reply.status_code}")
    statuses = {reply.status_code for reply in replies}
    if missing := {200, 401, 402, 409, 413, 415, 422, 429} - statuses:
        outcome.broken.append(f"these statuses never came: {sorted(missing)}")
    outcome.search("the log", served.log.read_text())
    _, _, errors = finished("audit", served.url, "--patience", "0.3", token=served.tokens["ann"])
    outcome.search("an audit of a service that is gone", errors)
    return outcome
