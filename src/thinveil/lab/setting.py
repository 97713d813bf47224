"""What the page may ask for, and what that means for one table."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from thinveil.attacker.strategies import STRATEGIES, USUAL
from thinveil.auditing.options import TABLE, Options, usual
from thinveil.auditing.schedule import DEFAULT
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError, to_install
from thinveil.lab.pace import HASTE, QUICK, speed_of
from thinveil.lab.tables import INCOMES, OWN, Table, Tables
from thinveil.language.claims import MECHANISMS, claim_named
from thinveil.language.schema import MISSING
from thinveil.verdicts.names import LINES
from thinveil.verdicts.trials import known_by

SPEED: Final = 100.0
"""Questions a second at first: thirty people take about ten seconds."""
FASTER: Final = {"from": QUICK, "times": HASTE}
"""How the page goes through the first part of an attack, of which no cell can tell."""
AT_FIRST: Final = {"epsilon": DEFAULT, "strategy": USUAL, "speed": SPEED, "haste": FASTER}
"""What the page begins with."""

ATTACK_LINES: Final = {
    "dataset": "Whole table",
    "column": "One column",
    "membership": "One person: in it?",
    "uniqueness": "One person: alone?",
    "attribute": "One person: attributes",
}
"""A line for each attack that the page offers."""

STRATEGY_LINES: Final = {
    "adaptive": "learns while it asks",
    "linear": "tries every threshold (Algorithms 1 and 2 of the paper)",
    "posterior": "carries beliefs about each group",
    "published": "the paper's binary searches",
    "thrifty": "fewest questions, about unions of groups",
}
"""A line for each strategy."""

PEOPLE: Final = (30, 60, 200)
"""How many made-up people the page offers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run, as chosen; perhaps against a person, whom what is known of him fits beside others.

    The speed is in questions a second; a paused run waits for the first step.
    """

    table: Table
    options: Options
    person: int | None = None
    fitting: tuple[int, ...] = ()
    speed: float = SPEED
    paused: bool = False

    @property
    def code(self) -> str:
        """The same run in a line of Python."""
        named = {"people": "known"}
        told = []
        for name in TABLE:
            value = getattr(self.options, name)
            if name in ("mechanism", "seed") or value not in (usual(name), DEFAULT):
                value = value[0] if name == "people" else value
                told.append(f"{named.get(name, name)}={value!r}")
        return f"thinveil.audit({self.table.code}, {', '.join(told)})"


def choices(tables: Tables) -> dict[str, Any]:
    """Return everything that the page offers."""
    offered = [{"name": f"people-{each}", "title": f"{each} made-up people"} for each in PEOPLE]
    offered.append({"name": INCOMES, "title": "The paper's six incomes"})
    if tables.own is not None:
        offered.insert(0, {"name": OWN, "title": tables.own.title})
    return {
        "tables": offered,
        "mechanisms": [
            {"name": each, "line": LINES[each], "group": k is not None, "missing": missing(each)}
            for each in sorted(MECHANISMS, key=_shown_first)
            for k in [claim_named(each).k]
        ],
        "attacks": [{"name": name, "line": line} for name, line in ATTACK_LINES.items()],
        "strategies": [{"name": each, "line": STRATEGY_LINES[each]} for each in STRATEGIES],
        "usual": {"k": 1, "seed": 0, **AT_FIRST},
    }


def _shown_first(name: str) -> tuple[bool, str]:
    """Sort the broken mechanisms before the honest ones."""
    return claim_named(name).control, "" if name == "idp" else name


def missing(mechanism: str) -> str:
    """Say what a mechanism lacks on this machine; "" where nothing."""
    if mechanism == "dp-opendp" and find_spec("opendp") is None:
        return f"needs the OpenDP library: {to_install('opendp')}"
    return ""


def setting_of(asked: Mapping[str, Any], tables: Tables) -> Setting:
    """Read what the page asks for."""
    table = tables[_text(asked, "table")]
    attack = _one_of(asked, "attack", "dataset", ATTACK_LINES)
    told = _mechanism(asked)
    columns = asked.get("columns", [])
    if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
        raise UsageError("columns: a list of names is needed")
    person: int | None = None
    fitting: tuple[int, ...] = ()
    if attack == "column":
        told["columns"] = tuple(columns)
    elif attack != "dataset":
        person = _whole(asked, "person", 0)
        known, fitting = _known(table.data, person, columns, asked.get("absent") is True)
        told["people"] = (known,)
    options = Options(
        attack=attack,
        strategy=_text(asked, "strategy", USUAL),
        seed=_whole(asked, "seed", 0),
        **told,
    )
    if options.seed < 0:
        raise UsageError("the seed is a whole number from 0 on")
    speed = speed_of(asked.get("speed", SPEED))
    return Setting(table, options, person, fitting, speed, asked.get("paused") is True)


def _one_of(asked: Mapping[str, Any], what: str, usual: str, known: Container[str]) -> str:
    name = _text(asked, what, usual)
    if name not in known:
        raise UsageError(f"there is no {what} {name[:40]!r} on this page")
    return name


def _mechanism(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Read the mechanism, and those of its settings that it has."""
    mechanism = _one_of(asked, "mechanism", "idp", MECHANISMS)
    if lacks := missing(mechanism):
        raise UsageError(f"{mechanism} {lacks}")
    claim = claim_named(mechanism)
    told: dict[str, Any] = {"mechanism": mechanism}
    if claim.protected:
        told["epsilon_per_query"] = _text(asked, "epsilon", DEFAULT)
    if claim.k is not None:
        told["k"] = _whole(asked, "k", 1)
    return told


def _known(
    data: Dataset, person: int, columns: list[str], absent: bool
) -> tuple[dict[str, str], tuple[int, ...]]:
    """Return what is known of a person, or of somebody like him who is absent; and who fits."""
    if not columns:
        raise UsageError("choose at least one column that the outsider knows of the person")
    if not 0 <= person < data.records:
        raise UsageError(f"there are people 1 to {data.records}: choose one of them")
    places = [data.schema.column(name) for name in columns]
    codes = [int(data.codes[person, place]) for place in places]
    if absent:
        codes = _somebody_else(data, places, codes)
    fits = (data.codes[:, places] == np.array(codes)).all(axis=1)
    return known_by(data, places, codes), tuple(np.flatnonzero(fits).tolist())


def _somebody_else(data: Dataset, places: list[int], codes: list[int]) -> list[int]:
    """Return a record like the given one that nobody has: one value is another."""
    there = set(map(tuple, data.codes[:, places].tolist()))
    for at, place in enumerate(places):
        attribute = data.schema[place]
        lower, upper = attribute.lower, attribute.upper
        for step in range(1, data.records + 2):
            code = (0 if codes[at] == MISSING else codes[at]) + step
            if lower is not None and upper is not None and upper >= lower:
                code = lower + (code - lower) % (upper - lower + 1)
            other = [*codes[:at], code, *codes[at + 1 :]]
            if tuple(other) not in there:
                return other
    raise UsageError(
        "everybody who could be made of these values is in the table: choose further columns"
    )


def _text(asked: Mapping[str, Any], name: str, usual: str | None = None) -> str:
    value = asked.get(name, usual)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > 100:
        raise UsageError(f"{name}: a short text is needed")
    return value


def _whole(asked: Mapping[str, Any], name: str, usual: int) -> int:
    value = asked.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise UsageError(f"{name}: a whole number is needed")
    return value
