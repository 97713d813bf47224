"""What of a run may stand in a report: the report itself must not give anybody away.

A report is handed on to people who must not see the table. So nothing of a run gets past this
module unless it is known to be harmless: keys and options that are not on a list are masked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.html.spelling import many, spelled
from thinveil.report.html.targets import FEW, TARGETED, entries_of, is_settled, learned

MASK: Final = "\u2022\u2022\u2022"
"""What stands where a value is not shown."""

_HARMLESS: Final = (
    "mechanism", "k", "universe", "strategy", "attack", "records", "attributes", "queries",
    "questions", "rounds", "trivial_questions", "questions_by_attribute", "bits", "bits_basis",
    "bounds", "epsilon_claimed", "budget", "epsilons", "error_probability", "noise_test",
    "error_wanted", "answers_a_question", "records_recovered", "records_guessed", "exact",
    "distinct_only", "precision", "by_attribute", "ended", "seconds", "seed", "assumed_public",
    "trace", "doubts",
)  # fmt: skip
"""Figures about the run and the columns, none about single records."""
_AS_THEY_ARE: Final = (
    "mechanism", "k", "offset", "post", "universe", "min-epsilon", "max-queries", "epsilons",
    "epsilon-per-query", "epsilon", "split", "answers", "cap", "strategy", "effort", "windows",
    "attack", "column", "columns", "precision", "order", "seed", "error", "most-repeats", "test",
    "repeats", "trials", "confidence", "engine", "patience", "table",
)  # fmt: skip
"""Options whose values say how was asked, and nothing about anybody."""
_FLAGS: Final = (
    "cache", "boxes-only", "present", "force", "show-records", "comparison", "no-comparison",
)  # fmt: skip
_FILES: Final = (
    "schema", "json", "output", "transcript", "resume", "truth", "report", "source",
)  # fmt: skip
_FOLDERS: Final = re.compile(
    r"(?<![\w/\\])(?:[A-Za-z]:)?[/\\~](?=\S)(?:[^/\\'\"]*[/\\])*|[^\s/\\'\"]+[/\\](?=\S*\.\w)"
)
"""A whole path up to its last slash, or a folder before something that ends like a file."""
_ADDRESS: Final = re.compile(r"\b(?P<kind>[A-Za-z][\w+.-]*)://[^\s'\",;]*")


def shown(run: Mapping[str, Any], records: bool) -> dict[str, Any]:
    """Return a run as a report may show it.

    Args:
        run: What `thinveil audit --json` wrote.
        records: Whether values of people may be shown.
    """
    masked = not records
    return {
        **{name: run.get(name) for name in _HARMLESS},
        "verdict": _sentence(run) if masked else without_places(run.get("verdict") or ""),
        "reason": without_places(run.get("reason") or ""),
        "notice": without_places(run.get("notice") or ""),
        "transcript": _name(run.get("transcript")),
        "network": _network(run.get("network")),
        "provenance": _provenance(run.get("provenance"), masked),
        "staircase": _staircase(run, masked),
        "result": _result(run, masked),
        "accuracy": _accuracy(run, masked),
        "membership": _trial(run.get("membership")),
        "records_shown": None if masked else run.get("records_shown"),
        "masked": masked,
    }


def without_places(text: str) -> str:
    """Return a text whose paths are cut to the file's name, and addresses to their kind.

    >>> without_places("cannot read /home/eve/people.csv from http://census.example:80/x")
    'cannot read people.csv from http://•••'
    """
    parts, end = [], 0
    for found in _ADDRESS.finditer(text):
        parts += [_FOLDERS.sub("", text[end : found.start()]), f"{found['kind']}://{MASK}"]
        end = found.end()
    return "".join([*parts, _FOLDERS.sub("", text[end:])])


def _name(path: object) -> str | None:
    return None if path is None else re.split(r"[/\\]", str(path))[-1]


def _sentence(run: Mapping[str, Any]) -> str:
    """Return the verdict; of attacks on people, said again without what was found."""
    attack, result, reason = run.get("attack"), _result(run, True), run.get("reason") or ""
    if attack not in TARGETED or not result or not result["settled"]:
        return without_places(run.get("verdict") or "")
    claimed, said = run.get("epsilon_claimed"), learned(run)
    if run.get("precision"):
        said += " (at the chosen precision)"
    claim = (
        "and the mechanism claims no protection"
        if claimed is None
        else f"while the mechanism claims a privacy loss of {spelled(claimed)}"
    )
    asked = many(run.get("queries") or 0, "answer")
    parts = [f"An outsider learned {said} from {asked}, {claim}."]
    if result["right"] < result["checked"]:
        parts.append("Checked against the table, part of this is wrong.")
    if run.get("ended") == "undecided":
        parts.insert(0, f"{reason[:1].upper()}{reason[1:]}.")
    elif run.get("ended") != "complete":
        parts.append(f"The run ended early: {reason}.")
    return without_places(" ".join(parts))


def _accuracy(run: Mapping[str, Any], masked: bool) -> dict[str, Any] | None:
    """Return the shares; of few people without those of guessers, which tell what is true.

    Whoever knows how a guess was made and whether it was right knows the answer.
    """
    found = run.get("accuracy")
    targeted = run.get("attack") in TARGETED and run.get("result")
    if not found or not masked or not targeted or len(entries_of(run)) >= FEW:
        return dict(found) if found else None
    hidden = dict.fromkeys(("nothing", "marginals", "nothing_share", "marginals_share"))
    return {
        **found,
        "records": {**found["records"], **hidden},
        "attributes": [
            {**each, **hidden, "inferred": {**each["inferred"], **hidden}}
            if each.get("inferred")
            else {**each, **hidden}
            for each in found["attributes"]
        ],
        "baselines": [],
        "guesses_masked": True,
    }


def _trial(trial: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not trial:
        return None
    reason = without_places(str(trial.get("reason") or ""))
    return {**trial, "reason": reason, "sentence": without_places(str(trial["sentence"]))}


def _result(run: Mapping[str, Any], masked: bool) -> dict[str, Any] | None:
    """Return how many people or columns a result is about, and the values only on request."""
    attack = run.get("attack")
    if not run.get("result"):
        return None
    entries = entries_of(run)
    judged = [each.get("exact" if attack == "column" else "correct") for each in entries]
    known = [each.get("known") or each.get("predicate") or {} for each in entries]
    found = [each.get("values") for each in entries]
    return {
        "people": len(entries),
        "settled": sum(is_settled(run, each) for each in entries),
        "known": list(dict.fromkeys(name for each in known for name in each)),
        "found": list(
            dict.fromkeys(name for each in found if isinstance(each, Mapping) for name in each)
        )
        or [each["column"] for each in entries if "column" in each],
        "checked": sum(each is not None for each in judged),
        "right": sum(each is True for each in judged),
        "entries": None if masked else entries,
    }


def _staircase(run: Mapping[str, Any], masked: bool) -> dict[str, Any] | None:
    """Return the staircase; masked, thresholds count from the count, which is not said.

    Where no count was found, thresholds are given as parts of the number of records.
    """
    staircase = run.get("staircase")
    if not staircase or not staircase.get("points"):
        return None
    count, records = staircase.get("count"), max(run.get("records") or 1, 1)
    return {
        "predicate": None if masked else staircase.get("predicate"),
        "count": None if masked else count,
        **{
            name: staircase.get(name)
            for name in ("k", "epsilon", "repeats", "queries", "epsilon_claimed")
        },
        "points": [
            {
                "step": None if count is None else each["threshold"] - count,
                "threshold": None if masked else each["threshold"],
                "part": each["threshold"] / records if count is None else None,
                "answers": [float(answer) for answer in each["answers"]],
                "kind": str(each["kind"]),
            }
            for each in staircase["points"]
        ],
    }


def _network(network: Mapping[str, Any] | None) -> dict[str, Any] | None:
    names = ("trips", "median_ms", "p95_ms", "slowest_ms", "retries")
    return None if network is None else {name: network.get(name) for name in names}


def _provenance(provenance: Mapping[str, Any] | None, masked: bool) -> dict[str, Any]:
    given = provenance or {}
    names = ("thinveil", "python", "numpy", "system", "finished", "transcript_sha256")
    return {
        **{name: given.get(name) for name in names},
        "command": None if given.get("command") is None else command(given["command"], masked),
        "options": _options(given.get("options") or {}, masked),
    }


def _options(options: Mapping[str, Any], masked: bool) -> dict[str, str]:
    """Return the options that were set, those that tell of people masked."""
    kept = {}
    for name, value in options.items():
        if value in (None, "", [], {}, ()) or value is False:
            continue
        plain = str(name).replace("_", "-")
        if plain in _FILES:
            kept[plain] = _place(str(value))
        elif plain in _AS_THEY_ARE or plain in _FLAGS or not masked:
            kept[plain] = without_places(_written(value))
        else:
            kept[plain] = MASK
    return kept


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_written(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_written(each) for each in value)
    return "yes" if value is True else str(value)


def _place(text: str) -> str:
    """Return a file's name without its folders, or the kind of an address or of a plug-in."""
    if found := _ADDRESS.match(text):
        return f"{found['kind']}://{MASK}"
    # One letter before a colon is a drive; more are a plug-in, whose address follows.
    if plugin := re.match(r"[A-Za-z][\w.+-]+:", text):
        return f"{plugin[0]}{MASK}"
    return _name(text) or ""


def command(line: str, masked: bool = True) -> str:
    """Return a command line whose files are named without folders, and whose people are masked.

    >>> command("thinveil audit /data/people.csv --attack membership --known age=44 --seed 7")
    'thinveil audit people.csv --attack membership --known ••• --seed 7'
    """
    try:
        words = shlex.split(line)
    except ValueError:
        return MASK
    kept: list[str] = []
    option = ""
    for word in words:
        if word.startswith("-") and not option:
            name, equals, value = word.partition("=")
            plain = name.lstrip("-")
            kept.append(f"{name}={_value(plain, value, masked)}" if equals else name)
            option = "" if equals or plain in _FLAGS or not name.startswith("--") else plain
        elif option:
            kept.append(_value(option, word, masked))
            option = ""
        else:
            kept.append(_place(word))
    return " ".join(word if word == MASK or MASK in word else shlex.quote(word) for word in kept)


def _value(option: str, value: str, masked: bool) -> str:
    if option in _FILES:
        return _place(value)
    if option in _AS_THEY_ARE:
        return value
    return MASK if masked else without_places(value)
