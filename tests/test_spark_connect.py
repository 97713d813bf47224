"""Whole tables over Spark Connect: its own server, with Java, and Sail, without."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import HOSTILE, check_hostile, mixed, records_of
from servers import sail
from thinveil import Curator, audit, idp, load
from thinveil.commands.main import run
from thinveil.curator.database.engines import spark
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.parquet_files import parquet_in
from thinveil.curator.database.session import Session
from thinveil.curator.database.spark.parts import ConnectParts
from thinveil.curator.database.table import open_database
from thinveil.curator.database.words import Rows
from thinveil.errors import DataError, TargetError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
LAKES = ["delta", "iceberg"]


@pytest.fixture(scope="module", params=["connect_address", "sail_address"])
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("connect") / "few.parquet"
    pq.write_table(mixed(20).select([0, 2]), path)
    return path


def test_a_table_of_every_kind(address: str, tmp_path: Path) -> None:
    pq.write_table(mixed(60), tmp_path / "mixed.parquet")
    expected = load(mixed(60))
    with open_database(address, str(tmp_path / "mixed.parquet")) as table:
        assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ  # others may want a Spark with Java
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)


@pytest.mark.parametrize("way", ["auto", "sql"])
def test_the_same_questions_as_in_memory(address: str, few: Path, way: str) -> None:
    said: list[str] = []
    with open_database(address, str(few), spark=way, say=said.append) as table:
        found = audit(Curator(table, idp()), truth=table.to_dataset(), rounds="usual")
    assert any("plain job" in each for each in said) == (way == "auto")
    assert found.score is not None
    assert found.score.exact
    expected = audit(load(pq.read_table(few)), rounds="usual").run.meter
    meter = found.run.meter
    assert (meter.queries, meter.rounds) == (expected.queries, expected.rounds)


def test_the_command(address: str, few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", address, "--table", str(few), "--truth", "self"]) == 0
    assert "recovered all 20 records exactly" in " ".join(capsys.readouterr().out.split())


def test_names_and_texts_are_nothing_but_themselves(address: str, tmp_path: Path) -> None:
    engine = Spark.connect(address, address.removeprefix("sc://"), "here")
    session = Session(engine)

    def place(content: pa.Table) -> tuple[Session, Rows]:
        pq.write_table(content, tmp_path / "hostile.parquet")
        return session, engine.table(str(tmp_path / "hostile.parquet"), "here")

    check_hostile(place, HOSTILE)
    session.close()


def test_a_data_frame_and_a_table_of_the_catalogue(
    address: str, few: Path, request: pytest.FixtureRequest
) -> None:
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(address).create()
    request.addfinalizer(session.client.close)
    expected = records_of(load(pq.read_table(few)))
    session.read.parquet(str(few)).write.mode("overwrite").saveAsTable("some_people")
    found = audit(session.table("some_people"), truth="self")
    assert found.score is not None
    assert found.score.exact
    if "sail" not in request.node.name:  # its catalogue belongs to a session
        with open_database(address, "some_people") as table:
            assert records_of(table.to_dataset()) == expected
    session.sql("DROP TABLE some_people")
    with pytest.raises(DataError, match="'some_people'"):
        open_database(address, "some_people")


@pytest.mark.parametrize("way", ["auto", "jobs"])
def test_executors_that_cannot_count(
    address: str, few: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where they have no NumPy: by SQL then, unless something else was asked for."""

    def nobody(*_: Any) -> None:
        raise RuntimeError("ModuleNotFoundError: secret values")

    monkeypatch.setattr(ConnectParts, "keep", nobody)
    said: list[str] = []
    with open_database(address, str(few), spark=way, say=said.append) as table:
        if way == "auto":
            verdict = audit(Curator(table, idp()), truth=table.to_dataset())
            assert verdict.score is not None
            assert verdict.score.exact
            assert any("cannot count (RuntimeError): counting goes by SQL" in one for one in said)
        else:
            with pytest.raises(TargetError, match=r"have Python with NumPy.*--spark sql") as told:
                Curator(table, idp())
            assert "secret" not in str(told.value)


def test_a_server_that_dies(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called for some seconds once, not for each thing that is to be done."""
    with sail() as address:
        table = open_database(address, str(few))
        curator = Curator(table, idp())
        table.digest()
    monkeypatch.setattr(ConnectParts, "renew", None)
    run_of = audit(curator).run
    assert run_of.ending == "target"
    assert "failed while it counted (Gone)" in str(run_of.reason)
    monkeypatch.setattr(spark, "_LEAVING", 0.5)
    table.close()


class Hanging:
    """A session of Spark Connect whose server says nothing any more."""

    __module__ = "a.connect.one"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.over = threading.Event()
        self.conf = self.catalog = self

    def get(self, name: str) -> str:
        return name

    def set(self, name: str, value: str) -> None:
        return

    def dropTempView(self, name: str) -> None:  # noqa: N802 - as PySpark calls it
        self.asked.append(name)
        self.over.wait()

    def stop(self) -> None:
        self.asked.append("stop")


def test_who_leaves_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_LEAVING", 0.5)
    there: Any = Hanging()
    session = Session(Spark(there, owned=True))
    session._names |= {"one": None, "two": None}
    session.close()
    assert there.asked == ["one"]
    there.over.set()


# ---- tables whose folder holds more than counts


@pytest.fixture(scope="module")
def lake(sail_address: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Tables of Delta and Iceberg from which most records were removed since."""
    from pyspark.sql.connect.session import SparkSession

    folder = tmp_path_factory.mktemp("lakes")
    pq.write_table(mixed(60).select([0, 2]), folder / "all.parquet")
    session = SparkSession.builder.remote(sail_address).create()
    frame = session.read.parquet(str(folder / "all.parquet"))
    for kind in LAKES:
        for part in (frame, frame.limit(20)):
            part.write.format(kind).mode("overwrite").save(str(folder / kind))
    session.client.close()
    return lambda kind: folder / kind


@pytest.mark.parametrize("kind", LAKES)
def test_records_that_were_removed_are_not_read(
    sail_address: str, lake: Callable[[str], Path], kind: str
) -> None:
    path = lake(kind)
    for name in (str(path), f"{kind}:{path}"):
        with open_database(sail_address, name) as table:
            assert table.records == 20
            verdict = audit(Curator(table, idp()), truth=table.to_dataset())
            assert verdict.score is not None
            assert verdict.score.exact


@pytest.mark.parametrize("kind", LAKES)
def test_elsewhere_their_files_are_refused(lake: Callable[[str], Path], kind: str) -> None:
    path = lake(kind)
    for name in (path, path.parent, path / "**" / "*.parquet"):
        one = "Delta" if name == path.parent else kind.title()  # the first of both
        with pytest.raises(DataError, match=rf"a table of {one}.*open it with Spark"):
            parquet_in(str(name))
    if kind == "delta":
        assert run(["audit", str(path)]) == 1


@pytest.mark.parametrize("kind", LAKES)
def test_spark_does_not_read_their_files_one_by_one(
    address: str, lake: Callable[[str], Path], kind: str
) -> None:
    """Also where their folder is none of this machine's, as far as their names tell."""
    path = lake(kind)
    one = next(path.rglob("*.parquet"))
    for name in (one, path / "**" / "*.parquet", one.parent / "*.parquet", path.parent):
        which = "Delta" if name == path.parent else kind.title()
        with pytest.raises(DataError, match=f"a table of {which}, some of which may hold"):
            open_database(address, str(name))
    for place in (path, one, path / "*.parquet"):
        with pytest.raises(DataError, match=f"{kind.title()}.*give --table {kind}:file:"):
            open_database(address, f"file://{place}")
    plain = path.parents[1] / f"plain-{kind}" / "part.parquet"
    plain.parent.mkdir(exist_ok=True)
    pq.write_table(mixed(20).select([0, 2]), plain)
    for place in (plain, plain.parent, plain.parent / "*.parquet"):
        with open_database(address, f"file://{place}") as table:
            assert table.records == 20


def test_a_server_that_reads_no_such_tables(
    connect_address: str, lake: Callable[[str], Path]
) -> None:
    with pytest.raises(DataError, match="has what reads tables of Delta"):
        open_database(connect_address, str(lake("delta")))
