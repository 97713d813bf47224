"""Everything that can go wrong, as one tree.

::

    ThinveilError
    ├── UsageError            the request itself makes no sense
    │   ├── LawError          noise that is no law that is known here
    │   ├── TooManyQueries    it makes sense, but needs an explicit go-ahead
    │   └── EpsilonError      an epsilon that cannot be used (also a BudgetError)
    ├── SchemaError           a schema cannot be read or contradicts itself
    ├── DataError             a table cannot be read or does not fit its schema
    ├── QueryError            a batch of questions is malformed
    │   ├── FieldError        one field of it is; says which
    │   ├── TooLarge          it is larger than the target takes at once
    │   └── KeyTaken          another batch was answered under its key
    ├── BudgetError           a privacy budget cannot be used as asked
    │   └── BudgetSpent       the cap or a limit refuses a batch; nothing of it was answered
    ├── EvidenceError         an answer cannot come from the claimed mechanism
    │   ├── ClaimBroken       checks found that the target does not do what it claims
    │   └── Undecided         the answers that may be had do not decide; the reason says why
    ├── TargetError           a target failed or answered nonsense
    ├── PluginError           somebody's plug-in cannot be used
    ├── TranscriptError       a transcript is damaged or belongs elsewhere
    ├── LedgerError           a ledger file cannot be used, or cannot record now
    ├── RecordError           a result in a file is foreign, damaged or of another version
    ├── OutputError           a result cannot be written
    └── MissingExtra          an optional dependency is not installed

A message says what was wrong, where, and what to do next. It never holds a
confidential value: columns are named, rows are numbered, contents are not shown.
"""

import json
from typing import Final

EXIT_COMPLETE: Final = 0
"""The exit code of a command that ran to its end."""
EXIT_ERROR: Final = 1
"""The exit code of an error."""
EXIT_USAGE: Final = 2
"""The exit code of wrong usage."""
EXIT_EARLY: Final = 3
"""The exit code of a run that ended early with what was found so far."""


IN_THE_FOLDER: Final = "in the folder of the repository"
"""Where thinveil is installed from, if it was not found by its name."""


def printable(text: str) -> str:
    r"""Write what cannot be printed as Python does, as `repr` would without its quotes.

    >>> printable("it's \x1b]52")
    "it's \\x1b]52"
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class ThinveilError(Exception):
    """The root of all errors that thinveil raises on purpose."""

    exit_code = EXIT_ERROR

    def __str__(self) -> str:
        """Return the message; where Python prints it, a name in it sends nothing to a terminal."""
        return printable(super().__str__())


class UsageError(ThinveilError):
    """The request itself makes no sense; changing the call helps."""

    exit_code = EXIT_USAGE


class LawError(UsageError):
    """Noise is named that is not known here, or something stands for noise that is no law."""


class TooManyQueries(UsageError):
    """An attack would ask more than ten million queries and wants a go-ahead."""


class SchemaError(ThinveilError):
    """A schema cannot be read, or contradicts itself."""


class DataError(ThinveilError):
    """A table cannot be read, or does not fit its schema."""


class QueryError(ThinveilError):
    """A batch of questions is malformed."""


class FieldError(QueryError):
    """One field of a batch is malformed.

    Args:
        field: Where it stands, such as questions[3].boxes[0].
        problem: What is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class TooLarge(QueryError):
    """A batch is larger than the target takes at once. Split it."""


class KeyTaken(QueryError):
    """Another batch was answered under the key of this one."""


class BudgetError(ThinveilError):
    """A privacy budget cannot be used as asked."""


class BudgetSpent(BudgetError):
    """The cap or a limit refuses a batch. Nothing of the batch was answered."""


class EpsilonError(UsageError, BudgetError):
    """An epsilon is not a number, not above zero, or too small or large for doubles."""


class EvidenceError(ThinveilError):
    """An answer cannot come from the claimed mechanism."""


class ClaimBroken(EvidenceError):
    """Checks found that the target does not do what it claims.

    Args:
        message: What it did, in sentences.
        evidence: The same as values (`attacker.checks.found`).
    """

    def __init__(self, message: str, evidence: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.evidence = evidence


class Undecided(EvidenceError):
    """As many answers as may be had do not decide; what would have been seen is said with it."""


class TargetError(ThinveilError):
    """A target failed, or answered something that is not an answer."""


class PluginError(ThinveilError):
    """A plug-in cannot be found once, cannot be loaded, or is not what it should be."""


class TranscriptError(ThinveilError):
    """A transcript is damaged, or belongs to another run or target."""


class LedgerError(ThinveilError):
    """A ledger file cannot be used, or cannot record anything now."""


class RecordError(ThinveilError):
    """A result in a file cannot be read: foreign, damaged, or of another version."""


class OutputError(ThinveilError):
    """A result cannot be written where it should go."""


class MissingExtra(ThinveilError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra part: run  {to_install(extra)}")


def to_install(extra: str = "", *, bare: bool = False) -> str:
    """Say how thinveil is installed with an extra, in the way in which it was installed here.

    Where it came from a folder, an index may have nothing under its name, or something else.

    Args:
        extra: The name of the extra; thinveil alone without one.
        bare: Whether to leave out where the command is to be run.
    """
    wanted = f"[{extra}]" if extra else ""
    if not from_folder():
        return f"pip install 'thinveil{wanted}'"
    where = "" if bare else f"  {IN_THE_FOLDER}"
    return f"python -m pip install '.{wanted}'{where}"


def from_folder() -> bool:
    """Tell whether thinveil was installed from a folder of sources."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("thinveil").read_text("direct_url.json") or "{}")
        return str(origin.get("url")).startswith("file:") and "dir_info" in origin
    except (PackageNotFoundError, ValueError, AttributeError):
        return False
