"""Which way a table of codes in Spark is counted: by a standing job, by plain jobs, or by SQL."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from thinveil.curator.database.spark.jobs import CHANGED, JobsCounter, quiet
from thinveil.curator.database.spark.parts import ClassicParts, ConnectParts
from thinveil.curator.database.spark.standing import PATIENCE, Lost, StandingCounter
from thinveil.errors import TargetError, UsageError
from thinveil.language.texts import many

WAYS: Final = ("auto", "standing", "jobs", "sql")
"""The ways that can be asked for; the last one is none of this package."""

_PART: Final = 250_000  # records that are worth a task of their own (a round figure)
_PART_UNSEEN: Final = 1_000_000  # the same where nobody says how many slots there are
_MOST_UNSEEN: Final = 64

_ENCRYPTS: Final = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
)
"""Settings by which Spark encrypts what it sends."""

SparkCounter = JobsCounter | StandingCounter


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of the way of counting.

    Args:
        way: One of `WAYS`.
        host: The address of this machine that executors reach; found unless given.
        parts: How many parts the codes are cut into; found unless given.
        patience: How many seconds the tasks of a standing job have to call.
    """

    way: str = "auto"
    host: str = ""
    parts: int = 0
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise UsageError(f"{self.way!r} is no way of counting: choose {', '.join(WAYS)}")
        if self.host and self.way not in ("auto", "standing"):
            raise UsageError(f"{self.way} needs no address: only a standing job is called back")


AS_USUAL: Final = Wish()


def wished(text: str) -> Wish:
    """Read what somebody wants of the way of counting: a way, and an address behind a colon.

    >>> wished("auto").way, wished("standing:10.0.0.7").host, wished("auto:[fd00::7]").host
    ('auto', '10.0.0.7', 'fd00::7')
    """
    way, _, host = text.partition(":")
    return Wish(way, host.strip("[]"))


def spark_counter(
    frame: Any, records: int, wish: Wish = AS_USUAL, say: Callable[[str], None] = quiet
) -> SparkCounter:
    """Return what counts a data frame of codes, at its executors.

    Args:
        frame: Columns c0, c1, ... of 64-bit codes, none of them null; best cached by Spark.
        records: How many rows it has.
        wish: What is wanted of the way.
        say: Is told what takes a while.

    Raises:
        UsageError: The way that was asked for cannot be had here.
        TargetError: The executors found another number of records.
    """
    counter = _made(frame, records, wish, say)
    if counter.whole[0] != records:
        counter.close()
        raise TargetError(CHANGED)
    return counter


def _made(frame: Any, records: int, wish: Wish, say: Callable[[str], None]) -> SparkCounter:
    if wish.way == "sql":
        raise UsageError("counting by SQL is not done here")
    if _is_connect(frame):
        if wish.way == "standing":
            raise UsageError("there is no standing job over Spark Connect: choose auto or jobs")
        parts = wish.parts or min(max(records // _PART_UNSEEN, 1), _MOST_UNSEEN)
        return JobsCounter(ConnectParts(frame.repartition(parts), parts), say)
    context = frame.sparkSession.sparkContext
    slots, free = slots_of(context), free_slots_of(context)
    why_not = _why_not(context, free, wish)
    if wish.way == "standing" and why_not:
        raise UsageError(f"no standing job here: {why_not}")
    if wish.way in ("auto", "standing") and not why_not:
        number = wish.parts or _number(records, free - 1)  # statements go on beside it
        cut = _cut(frame, number)
        try:
            return StandingCounter(
                cut,
                number,
                wish.host or _host(context),
                lambda: JobsCounter(ClassicParts(cut, number), say),
                say=say,
                patience=wish.patience,
            )
        except (Lost, OSError) as lost:
            if wish.way == "standing":
                raise TargetError(f"no standing job here: {lost}") from None
            why_not = str(lost)
    number = wish.parts or _number(records, slots)
    counter = JobsCounter(ClassicParts(_cut(frame, number), number), say)
    if why_not:
        counter.note += f" (no standing job: {why_not})"
    return counter


def _is_connect(frame: Any) -> bool:
    return "connect" in type(frame).__module__.split(".")


def _number(records: int, slots: int) -> int:
    return max(1, min(slots, records // _PART))


def _cut(frame: Any, parts: int) -> Any:
    """Return the frame in so many partitions.

    A barrier takes no narrow change of their number, so rows are sent around; Spark sorts them
    first, so that a part that is lost comes back the same.
    """
    return frame if frame.rdd.getNumPartitions() == parts else frame.repartition(parts)


def slots_of(context: Any) -> int:
    """Return how many tasks run at once."""
    with suppress(Exception):  # not part of the public interface
        spark = context._jsc.sc()
        profile = spark.resourceProfileManager().defaultResourceProfile()
        return int(spark.maxNumConcurrentTasks(profile))
    return int(context.defaultParallelism)


def free_slots_of(context: Any) -> int:
    """Return how many of them are free now, as far as this session knows."""
    tracker = context.statusTracker()
    stages = (tracker.getStageInfo(each) for each in tracker.getActiveStageIds())
    busy: int = sum(each.numActiveTasks for each in stages if each is not None)
    return slots_of(context) - busy


def _why_not(context: Any, free: int, wish: Wish) -> str:
    """Say why there can be no standing job; nothing where there can be one."""
    settings = context.getConf()

    def on(name: str) -> bool:
        return str(settings.get(name, "false")).lower() == "true"

    if on("spark.dynamicAllocation.enabled"):
        return "Spark allocates executors dynamically, which its barrier mode does not allow"
    wanted = wish.parts or 1
    if wanted > free:
        return (
            f"{many(wanted, 'task')} cannot run at once, as {many(max(free, 0), 'slot')} can be had"
        )
    if wanted == free:
        return "it would hold every free slot, and other statements would wait for ever"
    if not _local(context) and not wish.host:
        for name in _ENCRYPTS:
            if on(name):
                return f"{name} is on, and its lines would not be encrypted"
    return ""


def _local(context: Any) -> bool:
    return str(context.master).split("[")[0] == "local"


def _host(context: Any) -> str:
    """Return the address of this machine that executors reach."""
    if _local(context):
        return "127.0.0.1"
    host = str(context.getConf().get("spark.driver.host", "127.0.0.1"))
    with suppress(ValueError):
        return str(ipaddress.ip_address(host.strip("[]")))
    return host
