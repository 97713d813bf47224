"""Proof that a move moved nothing: small audits, each with a hash of every question and answer.

Run it with the same interpreter and packages on two commits, then compare:

    PYTHONPATH=src python tools/guard.py run before.json
    PYTHONPATH=src python tools/guard.py run after.json
    python tools/guard.py compare before.json after.json

It reaches every mechanism, strategy and attack, and corners that few audits see. Names that moved
between commits are looked up in `MOVED`, so that one copy of this file serves both. The hashes
are for one machine: exp and log differ in the last bit between processors. What is committed are
counts: tests/test_guard.py holds them, and this writes them anew:

    PYTHONPATH=src python tools/guard.py counts tests/frozen/guard.json
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

import thinveil
from thinveil.errors import ThinveilError
from thinveil.language.claims import Claim, claim_named
from thinveil.language.schema import Categories, Grid, Schema

MOVED: Final = {
    "wide": (
        "thinveil.attacker.beliefs.count_limits",
        "thinveil.attacker.beliefs.count_bins",
        "thinveil.attacker.wide",
    ),
    "drawing": ("thinveil.curator.drawing", "thinveil.curator.noise"),
    "dataset": ("thinveil.curator.tables.dataset", "thinveil.curator.dataset"),
    "accounts": ("thinveil.curator.service.accounts", "thinveil.curator.accounts"),
    "service": ("thinveil.curator.service.app", "thinveil.curator.service"),
}
"""Where a module is, the newest name first."""
MECHANISMS: Final = ("unprotected", "idp", "idp-integer", "idp-binary", "idp-noisy", "bdp")
STRATEGIES: Final = ("published", "linear", "posterior", "adaptive", "thrifty")
SEED: Final = 20_260_101  # any number, but always the same
PARTS: Final = ("usual", "corners", "larger", "over_http")

Row = tuple[Any, ...]


def module(name: str) -> Any:
    """Import a module under whichever of its names this commit has."""
    for each in MOVED[name]:
        with suppress(ModuleNotFoundError):
            return import_module(each)
    raise ModuleNotFoundError(f"none of {', '.join(MOVED[name])}")


@dataclass(frozen=True)
class Two:
    """A law of nobody's: noise of two scales."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        """Return the scale of the noise."""
        return np.where(np.abs(count - threshold) <= 1, 1.0, 0.3)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        """Return where the scale changes."""
        return np.stack([threshold - 2, threshold, threshold + 1], axis=1)


def structured(records: int = 300) -> Any:
    """A table whose columns depend on each other, with a heavy value and missing ones."""
    rng = np.random.default_rng(SEED)
    group = rng.choice(4, records, p=[0.5, 0.3, 0.15, 0.05])
    size = np.where(rng.random(records) < 0.6, 0, rng.integers(1, 400, records))
    twin = (7 * group + rng.integers(0, 3, records)) % 20
    schema = Schema(
        (
            Categories("group", tuple("abcd")),
            Grid("size", lower=0, upper=399),
            Grid("twin", lower=0, upper=19),
        )
    )
    return module("dataset").Dataset(schema, np.column_stack([group, size, twin]))


@contextmanager
def patched(owner: Any, **values: Any) -> Iterator[None]:
    """Put other values in place of attributes for a while."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextmanager
def served(data: Any, mechanism: str) -> Iterator[tuple[str, str]]:
    """Serve a table in this process, with noise that can be repeated; yield address and token."""
    import uvicorn

    stream = np.random.Philox(key=SEED)
    entropy = module("drawing").SystemEntropy
    listener = socket.create_server(("127.0.0.1", 0))
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),  # where the transcript of a service is kept
        patched(entropy, take=lambda _, count: stream.random_raw(count)),
    ):
        claim = claim_named(mechanism)
        accounts = module("accounts").Accounts(data, claim, Path(folder) / "ledger")
        tokens = accounts.admit([("guard", Fraction(1))])
        app = module("service").app_of(accounts, None)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", tokens["guard"]
        finally:
            server.should_exit = True
            thread.join(60)
            listener.close()
            accounts.close()


class Guard:
    """All audits, or some of them, and what came of each."""

    def __init__(self, wanted: Callable[[str], bool] = lambda key: True) -> None:
        self.wanted = wanted  # by the key of an audit
        self.rows: dict[str, Row] = {}
        self.data = thinveil.people(16)
        self.names = self.data.schema.names
        people = [dict(zip(self.names, row, strict=True)) for row in self.data.rows()[:6]]
        known = [{name: who[name] for name in self.names[:2]} for who in people]
        self.column = {"attack": "column", "columns": [self.names[0]]}
        self.attacks: dict[str, dict[str, Any]] = {
            "dataset": {},
            "column": {"columns": [self.names[0]]},
            "count": {"known": {self.names[0]: people[0][self.names[0]]}},
            "membership": {"known": known},
            "uniqueness": {"known": known},
            "attribute": {"known": known},
        }

    def one(self, key: str, target: Any = None, **settings: Any) -> None:
        """Run one audit and note its numbers, how it ended, and the hash of all that was said."""
        if not self.wanted(key):
            return
        try:
            verdict = thinveil.audit(self.data if target is None else target, **settings)
        except ThinveilError as error:
            self.rows[key] = ("refused", type(error).__name__)
            return
        meter = verdict.run.meter
        assert verdict.provenance is not None
        hashed = verdict.provenance.transcript
        self.rows[key] = (meter.queries, meter.rounds, verdict.run.ending, hashed)

    def usual(self) -> None:
        """Every mechanism, strategy and attack that go together."""
        for mechanism, strategy, attack in product(MECHANISMS, STRATEGIES, self.attacks):
            noisy = mechanism == "idp-noisy"
            if strategy == "linear" and (attack in ("dataset", "column", "attribute") or noisy):
                continue
            if strategy == "thrifty" and attack in ("count", "membership", "uniqueness"):
                continue
            if noisy and strategy == "published" and attack == "dataset":
                continue
            settings: dict[str, Any] = {"mechanism": mechanism, "strategy": strategy}
            if strategy == "thrifty":
                settings["effort"] = 32
            key = f"{mechanism}/{strategy}/{attack}"
            self.one(key, attack=attack, **settings, **self.attacks[attack])

    def corners(self) -> None:
        """Caches, offsets, rounding, larger groups, the paper's tests, laws of nobody's."""
        for mechanism in ("idp", "idp-integer", "idp-binary", "bdp"):
            self.one(f"{mechanism}/cache/dataset", mechanism=mechanism, cache=True)
        for attack in ("dataset", "attribute", "membership"):
            settings = self.attacks[attack]
            key = f"bdp always noisy/{attack}"
            self.one(key, mechanism="bdp", offset=1.0, attack=attack, **settings)
        self.one("bdp binary/dataset", mechanism="bdp", post="binary")
        self.one("idp k=3/dataset", mechanism="idp", k=3)
        for strategy in ("published", "linear"):
            fixed = {"strategy": strategy, "attack": "count", **self.attacks["count"]}
            key = f"identical/{strategy}/count"
            self.one(key, mechanism="idp-binary", test="identical", **fixed)
            self.one(f"mean/{strategy}/count", mechanism="idp-noisy", test="mean", **fixed)
        published = {"strategy": "published", **self.column}
        self.one(
            "identical/published/column", mechanism="idp-binary", test="identical", **published
        )
        self.one("mean/published/column", mechanism="idp-noisy", test="mean", **published)
        self.one("idp-integer at 0.5/dataset", mechanism="idp-integer", epsilon_per_query=0.5)
        self.one(
            "dp-laplace at 2/column", mechanism="dp-laplace", epsilon_per_query=2, **self.column
        )
        smooth = {"mechanism": "dp-smooth", "epsilon_per_query": 2, "attack": "membership"}
        self.one("dp-smooth at 2/membership", **smooth, **self.attacks["membership"])
        for attack, settings in self.attacks.items():
            target = thinveil.Curator(self.data, Claim("two", Two(), "laplace"), seed=0)
            self.one(f"a law of nobody's/{attack}", target, attack=attack, **settings)

    def larger(self) -> None:
        """A structured table of 300 records, a bounded cached one, wide counts made small."""
        table = structured()
        for mechanism, strategy in product(MECHANISMS, ("published", "adaptive", "thrifty")):
            if (mechanism, strategy) in (("idp-noisy", "published"), ("bdp", "published")):
                continue
            settings = {"effort": 32} if strategy == "thrifty" else {}
            key = f"structured/{mechanism}/{strategy}"
            self.one(key, table, mechanism=mechanism, strategy=strategy, **settings)
        self.one("structured/idp k=2/thrifty", table, strategy="thrifty", k=2, effort=32)
        for mechanism, strategy in product(("idp", "idp-integer", "bdp"), ("adaptive", "thrifty")):
            bounded = {"universe": "bounded", "cache": True, "strategy": strategy}
            self.one(
                f"bounded cached/{mechanism}/{strategy}", table, mechanism=mechanism, **bounded
            )
        with patched(module("wide"), _LARGE=0, MOST=64):
            for mechanism in ("unprotected", "idp", "idp-integer"):
                self.one(f"wide counts/{mechanism}", table, mechanism=mechanism)

    def over_http(self) -> None:
        """Each leaking mechanism through a service."""
        for mechanism in MECHANISMS:
            with served(self.data, mechanism) as (url, token):
                os.environ["THINVEIL_TOKEN"] = token
                # the attack alone: checks take a part of its error, and it then asks more
                self.one(f"http/{mechanism}", url, checks="off")


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say which rows differ, and how."""
    return [
        f"{key}: {before.get(key)} -> {after.get(key)}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def main(arguments: list[str]) -> int:
    """Run all audits into a file, or compare two files."""
    if arguments[:1] == ["compare"] and len(arguments) == 3:
        lines = compare(*(json.loads(Path(each).read_text("utf-8")) for each in arguments[1:]))
        print("\n".join(lines) or "equal: nothing moved")
        return int(bool(lines))
    if arguments[:1] not in (["run"], ["counts"]) or len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    guard = Guard()
    start = time.monotonic()
    for part in PARTS:
        getattr(guard, part)()
        seconds = time.monotonic() - start
        print(f"{len(guard.rows)} audits in {seconds:.1f} s", file=sys.stderr)
    kept = 3 if arguments[0] == "counts" else 4  # a hash is the fourth
    lines = [f"{json.dumps(key)}: {json.dumps(row[:kept])}" for key, row in guard.rows.items()]
    Path(arguments[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
