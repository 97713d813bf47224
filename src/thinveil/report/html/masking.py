"""What of a run may stand in a report: the report itself must not give anybody away.

A report is handed on to people who must not see the table. So nothing of a run gets past this
module unless it is known to be harmless: fields that are not marked so, and options that are
not on a list, are masked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from thinveil.report.charts.thresholds import Stairs
from thinveil.verdicts import sentences
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.judging.accuracy import Accuracy
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.record import Made, Record
from thinveil.verdicts.results import CountResult
from thinveil.verdicts.sentences import MASK, TARGETED
from thinveil.verdicts.typed import parts_of

_Share = TypeVar("_Share", Share, Share | None)
FEW: Final = 30
"""Of fewer people, what guessing gets right would tell what is true of them."""
HARMLESS: Final = tuple(each.name for each in parts_of(Record) if each.mark.harmless)
"""Figures about the run and the columns, none about single records."""
_AS_THEY_ARE: Final = (
    "mechanism", "k", "offset", "post", "noise", "delta", "universe", "min-epsilon",
    "max-queries", "epsilons", "epsilon-per-query", "epsilon", "split", "answers", "cap",
    "strategy", "effort", "windows", "attack", "column", "columns", "precision", "order", "seed",
    "error", "most-repeats", "test", "repeats", "trials", "confidence", "engine", "spark",
    "patience", "table", "most-each", "channel", "checks", "canaries", "canary-values", "only",
    "drop", "header", "dates", "encoding",
)  # fmt: skip
"""Options whose values say how was asked, and nothing about anybody."""
_FLAGS: Final = (
    "cache", "boxes-only", "present", "force", "show-records", "comparison", "no-comparison",
    "no-temporary-tables",
)  # fmt: skip
_FILES: Final = (
    "schema", "json", "output", "transcript", "resume", "truth", "report", "source",
)  # fmt: skip
_FOLDERS: Final = re.compile(
    r"(?<![\w/\\~])(?:[A-Za-z]:)?[/\\~](?=\S)(?:[^/\\'\"]*[/\\])*"
    r"|(?<![^\s/\\'\"])[^\s/\\'\"]+[/\\](?=\S*\.\w)"
)
"""A whole path up to its last slash, or a folder before something that ends like a file."""
_HINTS: Final = re.compile(r" \(--[^)]*\)")
"""Which option would help: of use at a terminal, and not to whoever is handed a report."""
_ADDRESS: Final = re.compile(r"\b(?P<kind>[A-Za-z][\w+.-]{,200})://[^\s'\",;]*")


@dataclass(frozen=True, slots=True)
class Summary:
    """What an attack on people, a count or columns is about, without any value.

    How many there are, of how many the attack said what it was after, which columns were known,
    how many were held against the truth, and how many of these were right.
    """

    people: int
    settled: int
    known: tuple[str, ...]
    checked: int
    right: int


@dataclass(frozen=True, slots=True)
class View:
    """A run as a report may show it, with what stands beside it.

    What is masked is not in `run`; what may be said of it instead is in `result` and `stairs`.
    """

    run: Record
    verdict: str
    masked: bool
    only_trials: bool
    result: Summary | None
    stairs: Stairs | None
    comparison: Comparison | None
    risk: Risk | None

    @property
    def is_one(self) -> bool:
        """Whether one person or one count was attacked."""
        return self.run.attack in TARGETED and self.result is not None and self.result.people == 1

    @property
    def unsettled(self) -> bool:
        """Whether an attack on people, a count or columns ended before it settled anything."""
        if self.run.attack == "dataset" or self.only_trials:
            return False
        return not self.result.settled if self.result else self.run.ended != "complete"


def shown(run: Record, records: bool, comparison: Comparison | None = None) -> View:
    """Return a run as a report may show it.

    Values of people stay in it only with `records`; the comparison may have been made apart.
    """
    masked = not records
    trial, canaries = run.membership, run.canaries
    compared = comparison or run.comparison
    if compared and not compared.sampled_from and compared.records != run.records:
        compared = replace(compared, sampled_from=run.records)
    told = Record(
        **{name: getattr(run, name) for name in HARMLESS},
        reason=for_readers(run.reason),
        notice=for_readers(run.notice),
        transcript=_name(run.transcript),
        network=None if run.network is None else replace(run.network, ledger=None),
        provenance=_provenance(run.provenance, masked),
        staircase=None,
        result=None if masked else run.result,
        accuracy=_accuracy(run, masked),
        membership=None if trial is None else replace(trial, reason=for_readers(trial.reason)),
        records_shown=None if masked else run.records_shown,
        canaries=canaries and replace(canaries, reason=for_readers(canaries.reason)),
    )
    return View(
        told,
        for_readers(sentences.outcome(run, masked)),
        masked,
        run.only_trials,
        _summary(run),
        None if run.staircase is None else Stairs.of(run.staircase, run.records, masked),
        compared,
        (comparison.risk if comparison else None)
        or run.risk
        or (compared.risk if compared else None),
    )


def for_readers(text: str) -> str:
    """Return a text without places, and without the options of a command line."""
    return without_places(_HINTS.sub("", text))


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


def _accuracy(run: Record, masked: bool) -> Accuracy | None:
    """Return the shares; of few people without those of guessers, which tell what is true.

    Whoever knows how a guess was made and whether it was right knows the answer.
    """
    found = run.accuracy
    targeted = run.attack in TARGETED and bool(run.result)
    if found is None or not masked or not targeted or len(run.entries) >= FEW:
        return found
    hidden = (
        replace(each, column=_hidden(each.column), inferred=_hidden(each.inferred))
        for each in found.attributes
    )
    return replace(found, whole=_hidden(found.whole), attributes=tuple(hidden), singling_out=None)


def _hidden(share: _Share) -> _Share:
    return None if share is None else replace(share, nothing=None, marginals=None, others=None)


def _summary(run: Record) -> Summary | None:
    """Return how many people or columns a result is about, and nothing of them."""
    if not run.result:
        return None
    judged = [each.judged for each in run.entries]
    known: dict[str, None] = {}
    for each in (run.count, *run.people):
        if each is not None:
            known |= dict.fromkeys(each.predicate if isinstance(each, CountResult) else each.known)
    return Summary(
        people=len(run.entries),
        settled=run.settled,
        known=tuple(known),
        checked=sum(each is not None for each in judged),
        right=sum(each is True for each in judged),
    )


def _provenance(made: Made | None, masked: bool) -> Made | None:
    if made is None:
        return None
    line = None if made.command is None else command(made.command, masked)
    return replace(made, command=line, options=_options(made.options, masked))


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
