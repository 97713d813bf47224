"""The result of a run as a file holds it: typed, with a format, and with nothing else in it.

`thinveil audit --json` writes it; the report and whoever else reads such a file read this.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

from thinveil.errors import RecordError, ThinveilError
from thinveil.files import read_up_to
from thinveil.language.schema import UNBOUNDED
from thinveil.language.texts import one_line
from thinveil.verdicts import sentences
from thinveil.verdicts.canaries import Canaries
from thinveil.verdicts.comparing.outcomes import FORMAT as COMPARISON_FORMAT
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.judging.accuracy import Accuracy
from thinveil.verdicts.judging.claim_check import ClaimCheck
from thinveil.verdicts.judging.possible import Possible
from thinveil.verdicts.judging.scoring import Score
from thinveil.verdicts.limits.bounds import Bounds
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.results import ColumnResult, CountResult, Example, PersonResult, Result
from thinveil.verdicts.staircase import Staircase
from thinveil.verdicts.typed import OMIT, Harmless, Plain, from_json, to_json

FORMAT: Final = 1
"""The format of a file that holds a run; another number is another set of keys."""
MOST_RESULT: Final = 2**26
"""The most bytes of a result that is read, 64 MiB: that of a run on a thousand people has 0.3."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Made:
    """What made a result: versions, the command, and a hash of all questions and answers."""

    thinveil: str
    python: str
    numpy: str
    system: str
    command: str | None
    options: Mapping[str, Any]
    finished: str
    transcript_sha256: str | None


@dataclass(frozen=True, slots=True)
class Network:
    """How long round trips to a target took, and what its own ledger says."""

    trips: int
    median_ms: float
    p95_ms: float
    slowest_ms: float
    retries: int
    ledger: Annotated[Mapping[str, Any] | None, OMIT] = None


@dataclass(frozen=True, slots=True)
class Channel:
    """What came of looking at which doubles came, beside their values (`attacker.channel`).

    `wanted` says that somebody asked for it, `used` that what was found rests on it: the doubles
    of so many answers settled so many questions. Noise at scale 1 may lie `ulps` doubles off ours,
    and an answer can follow so many laws, its `outcomes`. Else it says why not.
    """

    wanted: bool
    used: bool
    answers: int
    settled: int
    ulps: int
    outcomes: int
    why: str


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known after so many answers: shares of all records, values and bits."""

    queries: int
    questions: int
    rounds: int
    epsilon_claimed: float
    records: float
    values: float
    bits: float | None = None


@dataclass(frozen=True, slots=True)
class Record(Plain):
    """Everything that a run has to say; docs/verdicts.md explains each part.

    Beside what `Verdict` has: `records_rebuilt` and `values_rebuilt` count what was settled in an
    attack on the whole table, right or wrong; `present` says that presence was taken as given;
    `trials_wanted` how many trials were asked for; `possible` what the claim's law says before any
    question is asked; `checks` and `checks_questions` count answers and questions that checked
    the claim, beside the others, and `claim_check` says what they found; `comparison` and `risk`
    stand beside the run in its report; `bits_known`, `bits_of_all`, `columns_known` and
    `columns_begun` are the `Knowledge` of an attack on the whole table; `records_shown` is there
    only where somebody asked for records. A field that is not marked as harmless is masked in
    reports.
    """

    DERIVED: ClassVar = (
        "mechanism:claim.name", "k:claim.k", "universe:claim.universe", "answers_a_question",
        "records_recovered:score.recovered", "records_guessed:score.guessed",
        "exact:score.exact", "distinct_only", "by_attribute", "verdict",
    )  # fmt: skip

    format: Harmless[int]
    claim: Harmless[ClaimRecord]
    strategy: Harmless[str]
    attack: Harmless[str]
    records: Harmless[int]
    attributes: Harmless[tuple[str, ...]]
    queries: Harmless[int]
    questions: Harmless[int]
    rounds: Harmless[int]
    trivial_questions: Harmless[int]
    questions_by_attribute: Harmless[Mapping[str, int]]
    bits: Harmless[float | None]
    bits_basis: Harmless[str | None]
    bits_by_attribute: Harmless[Mapping[str, float]]
    questions_per_bit: Harmless[float | None]
    questions_per_bit_by_attribute: Harmless[Mapping[str, float | None]]
    bounds: Harmless[Bounds | None]
    epsilon_claimed: Harmless[float | None]
    delta_claimed: Harmless[float | None]
    budget: Harmless[str]
    epsilons: Harmless[tuple[float, ...] | None]
    error_probability: Harmless[float]
    noise_test: Harmless[str | None]
    error_wanted: Harmless[float | None]
    channel: Harmless[Channel | None]
    precision: Harmless[Mapping[str, Any]]
    present: Harmless[bool]
    records_rebuilt: Harmless[int | None]
    values_rebuilt: Harmless[int | None]
    score: Harmless[Score | None]
    result: Result
    ended: Harmless[str]
    reason: str
    notice: str
    seconds: Harmless[float]
    seed: Harmless[int | None]
    transcript: str | None
    network: Network | None
    assumed_public: Harmless[tuple[str, ...]]
    doubts: Harmless[tuple[str, ...]]
    accuracy: Accuracy | None
    trials_wanted: Harmless[int]
    membership: Trial | None
    trace: Harmless[tuple[Moment, ...] | None]
    staircase: Staircase | None
    provenance: Made | None
    possible: Harmless[Possible | None] = None
    comparison: Comparison | None = None
    risk: Risk | None = None
    records_shown: tuple[Example, ...] | None = None
    canaries: Canaries | None = None
    checks: Harmless[int] = 0
    checks_questions: Harmless[int] = 0
    claim_check: Harmless[ClaimCheck | None] = None
    bits_known: Harmless[float | None] = None
    bits_of_all: Harmless[float | None] = None
    columns_known: Harmless[tuple[str, ...]] = ()
    columns_begun: Harmless[tuple[str, ...]] = ()
    read_as: Harmless[tuple[str, ...]] = ()
    numbers_public: Harmless[tuple[str, ...]] = ()
    rounded_away: Harmless[tuple[str, ...]] = ()

    @property
    def answers_a_question(self) -> float:
        """How often questions were repeated, on average."""
        return self.queries / max(self.questions, 1)

    @property
    def distinct_only(self) -> bool:
        """Whether different records are found, and not how often each occurs."""
        return not self.claim.counts and not (self.channel is not None and self.channel.used)

    def by_attribute(self) -> list[dict[str, Any]] | None:
        """Return how many values of each attribute are right, by guessing too, and their cost."""
        if self.score is None:
            return None
        bits, cost = self.bits_by_attribute, self.questions_per_bit_by_attribute
        return [
            to_json(each) | {"bits": bits.get(each.name), "questions_per_bit": cost.get(each.name)}
            for each in self.score.attributes
        ]

    def verdict(self) -> str:
        """Say the outcome in a plain sentence or two."""
        return one_line(sentences.outcome(self))

    @property
    def entries(self) -> tuple[ColumnResult | CountResult | PersonResult, ...]:
        """What was found, person by person or column by column."""
        result = self.result
        return (result,) if isinstance(result, CountResult) else tuple(result or ())

    @property
    def columns(self) -> tuple[ColumnResult, ...]:
        """What was found of columns."""
        return tuple(each for each in self.entries if isinstance(each, ColumnResult))

    @property
    def people(self) -> tuple[PersonResult, ...]:
        """What was found of people."""
        return tuple(each for each in self.entries if isinstance(each, PersonResult))

    @property
    def count(self) -> CountResult | None:
        """What was found of one count."""
        return self.result if isinstance(self.result, CountResult) else None

    @property
    def only_trials(self) -> bool:
        """Whether the run consists of trials of membership, and attacked nobody else."""
        return self.attack == "membership" and self.membership is not None and not self.result

    @property
    def only_claim(self) -> bool:
        """Whether nothing is said of the table: the claim is broken, or was all that was asked."""
        check = self.claim_check
        return check is not None and (check.alone or bool(check.broken))

    @property
    def bits_share(self) -> float | None:
        """The share of all bits that is known; of a run that knows all, 1."""
        if self.bits_known is None or not self.bits_of_all:
            return None
        return min(1.0, self.bits_known / self.bits_of_all)

    @property
    def limits_found(self) -> bool:
        """Whether all bits rest on limits that the attack found, since they are not public."""
        return any(UNBOUNDED in each for each in self.assumed_public)

    @property
    def settled(self) -> int:
        """Of how many people, columns or counts the attack said what it was after."""
        return sum(map(self.is_settled, self.entries))

    @property
    def is_nothing(self) -> bool:
        """Whether nothing at all was settled, not even in part."""
        if self.attack == "dataset":
            return not self.values_rebuilt and not self.columns_begun
        said = (
            each.present is not None or each.unique is not None or each.values
            for each in self.people
        )
        return not self.settled and not self.present and not any(said)

    def is_settled(self, entry: ColumnResult | CountResult | PersonResult) -> bool:
        """Tell whether an entry says what the attack was after."""
        if isinstance(entry, ColumnResult):
            return bool(entry.values)
        if isinstance(entry, CountResult):
            known = (entry.count, entry.exists, entry.between)
            return any(each is not None for each in known)
        if self.distinct_only:
            return self.present or entry.present is not None or bool(entry.values)
        said = {"membership": entry.present, "uniqueness": entry.unique}
        return said.get(self.attack, entry.matches) is not None


def read_run(path: str | Path) -> Record:
    """Read the result of a run.

    Raises:
        RecordError: There is no such file, or it is not what this version writes.
    """
    wanted = "the result of an audit: write one with  thinveil audit --json FILE"
    content = _content(path, wanted)
    if not {"mechanism", "attack", "queries", "verdict"} <= content.keys():
        also = ". This is a comparison: give it as --comparison, beside the result of an audit"
        raise RecordError(f"{path} is not {wanted}{also if 'mechanisms' in content else ''}")
    return _typed(Record, content, path, FORMAT, "run the audit again with --json")


def read_comparison(path: str | Path) -> Comparison:
    """Read a comparison of mechanisms.

    Raises:
        RecordError: There is no such file, or it is not what this version writes.
    """
    wanted = "a comparison: write one with  thinveil compare --risk --json FILE"
    content = _content(path, wanted)
    if not {"mechanisms", "epsilon_per_query", "verdict"} <= content.keys():
        raise RecordError(f"{path} is not {wanted}")
    again = "run thinveil compare again with --json"
    return _typed(Comparison, content, path, COMPARISON_FORMAT, again)


@contextmanager
def fitting(path: str | Path) -> Iterator[None]:
    """Say that a result contradicts itself, where nothing can be made of it inside.

    Each figure of it is of the right kind, but somebody may have written any.
    """
    try:
        yield
    except ThinveilError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        if os.environ.get("THINVEIL_DEBUG"):
            raise
        raise RecordError(
            f"{path}: its figures do not fit together, so nothing can be made of it: run the audit "
            "again with --json"
        ) from None


def _content(path: str | Path, wanted: str) -> dict[str, Any]:
    try:
        content = json.loads(read_up_to(path, MOST_RESULT, RecordError))
        json.dumps(content, ensure_ascii=False).encode()  # refuses halves of characters
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such file: check the path") from None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise RecordError(f"{path} is not JSON; wanted is {wanted}") from None
    if not isinstance(content, dict):
        raise RecordError(f"{path} is not {wanted}")
    return content


def _typed(
    kind: type[_T], content: Mapping[str, Any], path: str | Path, mine: int, again: str
) -> _T:
    if "format" not in content:
        raise RecordError(f"{path} was written by an earlier version of thinveil: {again}")
    if content["format"] != mine:
        said = f"not in the format {mine}, which this version of thinveil reads"
        raise RecordError(f"{path} is {said}: {again}")
    try:
        return from_json(kind, content, "its content")
    except RecordError as error:
        said = f"not as this version writes results ({error})"
        raise RecordError(f"{path} is {said}: {again}") from None
