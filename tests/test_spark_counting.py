"""Counting at Spark's executors: by plain jobs, a standing job and Spark Connect.

The cluster has two executors whose Python does not find thinveil.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from databases import batches_for
from servers import needs_java
from test_counting import (  # the contract of every counter, on this one
    TABLE,
    test_a_union_is_the_sum_of_its_boxes,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_empty_ranges_hold_nothing,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_single_ranges,
    test_unknown_values_hold_nothing,
    test_whole_cells_and_several_columns_in_one_batch,
)
from thinveil import Curator, audit, idp, people
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.database.spark.executors import GAP
from thinveil.curator.database.spark.jobs import JobsCounter
from thinveil.curator.database.spark.parts import ClassicParts, ConnectParts
from thinveil.curator.database.spark.picking import Wish, slots_of, spark_counter
from thinveil.curator.database.spark.standing import Lost, StandingCounter
from thinveil.curator.database.spark.starting import _leave_no_settings
from thinveil.curator.database.spark.tuning import QUICK
from thinveil.errors import TargetError, UsageError
from thinveil.language.queries import Codes
from thinveil.language.schema import MISSING

CONTRACT = (
    test_a_union_is_the_sum_of_its_boxes,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_empty_ranges_hold_nothing,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_single_ranges,
    test_unknown_values_hold_nothing,
    test_whole_cells_and_several_columns_in_one_batch,
)
PATIENCE = 300.0  # seconds until a server must answer
BLOCKED = """import sys
class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "thinveil":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nobody())
"""

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets for Python to close, and warns of new versions of pandas:
    pytest.mark.filterwarnings("ignore"),
]


def some_codes(records: int = 200, columns: int = 4) -> Codes:
    rng = np.random.default_rng(5)
    codes = rng.integers(-20, 50, (records, columns))
    codes[rng.random(codes.shape) < 0.05] = MISSING
    return codes


def frame_of(session: Any, codes: Codes) -> Any:
    codes = np.where(codes == MISSING, GAP, codes)
    columns = {f"c{place}": codes[:, place] for place in range(codes.shape[1])}
    return session.createDataFrame(pa.table(columns))


def check(counter: Counter, codes: Codes, number: int = 4, seed: int = 1) -> None:
    """Hold a counter to a scan."""
    scan = ScanCounter(codes)
    for batch in batches_for(codes, seed, number):
        for _ in range(2):
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


# ---- sessions


@pytest.fixture(scope="module")
def java() -> None:
    needs_java()


@pytest.fixture(scope="module")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of two executors on this machine; their Python finds no thinveil."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("cluster")
    (folder / "sitecustomize.py").write_text(BLOCKED)
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    settings = {
        **QUICK,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local-cluster[2,2,512]").appName("thinveil")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_PYTHON", str(python))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    application = session.sparkContext.applicationId
    last = time.monotonic() + PATIENCE
    while slots_of(session.sparkContext) < 4 and time.monotonic() < last:
        time.sleep(0.1)  # executors are on their way
    yield session
    _leave_no_settings(session.sparkContext, settings)  # a test of such looks what is left
    session.stop()
    shutil.rmtree(Path(_find_spark_home()) / "work" / application, ignore_errors=True)


OPEN: list[Any] = []
"""Counters of the contract."""


def remote(address: str) -> Any:
    """Return a session of Spark Connect beside the classic one."""
    pytest.importorskip("grpc")
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(address).create()
    # Sail answers with a word that PySpark 4.3 takes for a number.
    session.conf.set("spark.sql.session.localRelationSizeLimit", str(2**31))
    return session


@pytest.fixture(scope="module")
def connect_server(connect_address: str) -> Iterator[Any]:
    session = remote(connect_address)
    yield session
    session.client.close()


@pytest.fixture(scope="module")
def sail_server(sail_address: str) -> Iterator[Any]:
    session = remote(sail_address)
    yield session
    session.client.close()


# ---- the contract, on each way

MAKERS: dict[str, tuple[str, Callable[[Any, int], Counter]]] = {
    "jobs": ("spark", lambda frame, size: spark_counter(frame, size, Wish("jobs", parts=3))),
    "standing": ("spark", lambda frame, size: spark_counter(frame, size, Wish(parts=2))),
    "connect": ("connect_server", lambda frame, size: spark_counter(frame, size, Wish(parts=2))),
    "sail": ("sail_server", lambda frame, size: spark_counter(frame, size, Wish(parts=2))),
}


@pytest.fixture(scope="module", params=MAKERS)
def way(request: pytest.FixtureRequest) -> tuple[Any, Callable[[Any, int], Counter]]:
    name, make = MAKERS[request.param]
    return request.getfixturevalue(name), make


@pytest.fixture(scope="module")
def counter(way: tuple[Any, Callable[[Any, int], Any]]) -> Iterator[Counter]:
    session, make = way
    made = make(frame_of(session, TABLE), len(TABLE))
    OPEN.append(made)
    yield made
    made.close()


@pytest.fixture
def cluster(spark: Any) -> Any:
    """The cluster with all its slots free; a counter that is closed may be asked again."""
    for each in OPEN:
        each.close()
    nothing_runs(spark)
    return spark


def test_counts_are_those_of_a_scan(way: tuple[Any, Callable[[Any, int], Any]]) -> None:
    session, make = way
    codes = some_codes()
    made = make(frame_of(session, codes), len(codes))
    check(made, codes, 8)
    assert 0 < made.round_seconds < 1
    made.close()


# ---- the ways of a cluster


def test_the_same_questions_as_in_memory(cluster: Any) -> None:
    data = people(60)
    counter = spark_counter(frame_of(cluster, data.codes), data.records)
    assert isinstance(counter, StandingCounter)
    found = audit(Curator(data, idp(), counter=counter)).run.meter
    counter.close()
    expected = audit(Curator(data, idp())).run.meter
    assert (found.queries, found.rounds) == (expected.queries, expected.rounds)


def test_the_way_that_is_taken(cluster: Any) -> None:
    frame, said = frame_of(cluster, TABLE), list[str]()
    slots = slots_of(cluster.sparkContext)
    assert slots == 4
    for parts, kind in ((slots - 1, StandingCounter), (slots, JobsCounter), (9, JobsCounter)):
        counter = spark_counter(frame, len(TABLE), Wish(parts=parts), said.append)
        assert isinstance(counter, kind)
        assert ("no standing job" in counter.note) == (kind is JobsCounter)
        check(counter, TABLE, 1)
        counter.close()
    assert any("standing job" in each for each in said)
    with pytest.raises(TargetError, match="changed while they were counted"):
        spark_counter(frame, len(TABLE) + 1)
    with pytest.raises(UsageError, match="cannot run at once"):
        spark_counter(frame, len(TABLE), Wish("standing", parts=9))
    with pytest.raises(UsageError, match="hold every free slot"):
        spark_counter(frame, len(TABLE), Wish("standing", parts=slots))
    with pytest.raises(UsageError, match="not done here"):
        spark_counter(frame, len(TABLE), Wish("sql"))


def test_no_route_to_the_driver(cluster: Any) -> None:
    frame = frame_of(cluster, TABLE)
    unknown = Wish(host="198.51.100.1", patience=5)  # an address that nobody has (RFC 5737)
    counter = spark_counter(frame, len(TABLE), unknown)
    assert isinstance(counter, JobsCounter)
    check(counter, TABLE, 1)
    counter.close()
    with pytest.raises(TargetError, match="no standing job"):
        spark_counter(frame, len(TABLE), Wish("standing", "198.51.100.1", patience=5))
    slow = frame.mapInArrow(asleep, frame.schema).repartition(1)
    with pytest.raises(Lost, match="did not call"):
        StandingCounter(
            slow, 1, "127.0.0.1", lambda: JobsCounter(ClassicParts(frame, 4)), patience=3
        )
    nothing_runs(cluster)


def test_a_killed_executor_costs_a_retry(cluster: Any) -> None:
    codes = some_codes(2000)
    frame = frame_of(cluster, codes).repartition(3)
    for wish, kind in ((Wish("jobs", parts=3), JobsCounter), (Wish(parts=3), StandingCounter)):
        until_there(cluster, 4)
        counter = spark_counter(frame, len(codes), wish)
        assert isinstance(counter, kind)
        check(counter, codes, 2)
        os.kill(executors_of(cluster)[0], signal.SIGKILL)
        check(counter, codes, 3, seed=2)
        last = time.monotonic() + PATIENCE
        while kind is StandingCounter and "was lost" not in counter.note:
            assert time.monotonic() < last  # its Python may answer for a while
            check(counter, codes, 1, seed=3)
            time.sleep(0.2)
        assert counter.round_seconds > 0.01
        counter.close()
    until_there(cluster, 4)


def test_lost_python_workers(cluster: Any) -> None:
    codes = some_codes()
    frame = frame_of(cluster, codes)
    for wish in (Wish("jobs", parts=2), Wish(parts=2)):
        counter = spark_counter(frame, len(codes), wish)
        check(counter, codes, 2)
        for each in python_workers(cluster):
            os.kill(each, signal.SIGKILL)
        check(counter, codes, 2, seed=2)
        counter.close()


def test_what_executors_keep_is_private_and_gone_at_the_end(cluster: Any) -> None:
    parts = ClassicParts(frame_of(cluster, TABLE).repartition(3), 3)
    counter = JobsCounter(parts)
    check(counter, TABLE, 1)
    # executors say where: Java keeps to the folders of the first session that it had
    own = cluster.sparkContext.range(4, numSlices=4).map(lambda _: os.environ["SPARK_LOCAL_DIRS"])
    roots = {Path(each.split(",")[0]).parents[1] for each in own.collect()}
    kept = [each for root in roots for each in root.rglob(f"thinveil-{parts._run}")]
    assert kept
    assert all(each.stat().st_mode & 0o777 == 0o700 for each in kept)
    files = [file for each in kept for file in each.iterdir()]
    assert sum(file.name.startswith("part-") for file in files) >= 3
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    counter.close()
    assert not [each for each in kept if each.exists()]
    check(counter, TABLE, 1)  # what was taken away is made again
    counter.close()


def test_changed_records_are_noticed(cluster: Any) -> None:
    def changing(rows: Iterator[Any]) -> Iterator[Any]:
        import secrets

        for each in rows:
            yield pa.RecordBatch.from_pydict({"c0": [secrets.randbits(40)] * each.num_rows})

    frame = cluster.range(10).repartition(2).mapInArrow(changing, "c0 long")
    parts = ClassicParts(frame, 2)
    counter = JobsCounter(parts)
    batch = batches_for(np.zeros((9, 1), np.int64), 1, 1)[0]
    before = counter.count(batch)
    assert counter.count(batch).tolist() == before.tolist()
    parts.forget()
    with pytest.raises(TargetError, match="changed while they were counted"):
        counter.count(batch)
    counter.close()
    standing = StandingCounter(frame, 2, "127.0.0.1", lambda: JobsCounter(ClassicParts(frame, 2)))
    standing.count(batch)
    standing._job.close()  # type: ignore[union-attr]
    with pytest.raises(TargetError, match="changed while they were counted"):
        standing.count(batch)
    nothing_runs(cluster)


def test_idle_tasks_give_their_slots_back(cluster: Any) -> None:
    frame = frame_of(cluster, TABLE).repartition(2)
    counter = StandingCounter(
        frame, 2, "127.0.0.1", lambda: JobsCounter(ClassicParts(frame, 2)), idle=0.5
    )
    check(counter, TABLE, 1)
    nothing_runs(cluster)
    check(counter, TABLE, 1)
    assert "lost" not in counter.note
    counter.close()


def asleep(rows: Iterator[Any]) -> Iterator[Any]:
    import time

    for each in rows:
        time.sleep(600)
        yield each


asleep.__module__ = "nowhere"  # so that it travels with its code


@pytest.mark.parametrize("standing", [False, True])
def test_ctrl_c_ends_jobs(cluster: Any, standing: bool) -> None:
    frame = frame_of(cluster, TABLE)
    slow = frame.repartition(1).mapInArrow(asleep, frame.schema)

    def start() -> None:
        if standing:
            StandingCounter(slow, 1, "127.0.0.1", lambda: JobsCounter(ClassicParts(frame, 4)))
        else:
            JobsCounter(ClassicParts(slow, 1))

    timer = threading.Timer(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        timer.cancel()
    nothing_runs(cluster)


def test_large_batches_are_cut(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = some_codes()
    counter = spark_counter(frame_of(cluster, codes), len(codes))
    from thinveil.curator.database.spark import messages

    monkeypatch.setattr(messages.parts_of, "__defaults__", (7,))
    check(counter, codes, 3)
    counter.close()


def test_parts_that_are_gone(way: tuple[Any, Any]) -> None:
    """They are kept anew, and the counts stay the same."""
    session, _ = way
    codes = some_codes()
    frame = frame_of(session, codes)
    classic = hasattr(frame, "_jdf")
    parts = ClassicParts(frame, 4) if classic else ConnectParts(frame.repartition(2), 2)
    counter = JobsCounter(parts)
    check(counter, codes, 2)
    parts.forget()
    check(counter, codes, 2, seed=2)
    counter.close()


# ---- what runs


def nothing_runs(spark: Any) -> None:
    """Wait until no job is active."""
    last = time.monotonic() + PATIENCE
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < last, "a job goes on"
        time.sleep(0.1)


def until_there(spark: Any, slots: int) -> None:
    """Wait until a cluster has its executors again."""
    last = time.monotonic() + PATIENCE
    while slots_of(spark.sparkContext) < slots:
        assert time.monotonic() < last, "an executor stays away"
        time.sleep(0.5)


def executors_of(spark: Any) -> list[int]:
    """Return the processes of the executors of this application."""
    name = spark.sparkContext.applicationId.encode()
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if name in words and b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            found.append(int(each.parent.name))
    assert found
    return found


def python_workers(spark: Any) -> list[int]:
    """Return the Python processes below the executors, which do the counting."""
    parents: dict[int, int] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    executors = set(executors_of(spark))
    daemons = {one for one, parent in parents.items() if parent in executors}
    return [one for one, parent in parents.items() if parent in daemons]
