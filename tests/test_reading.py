"""Reading tables: every source alike, every mistake named, no value shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.drafting import draft_schema
from thinveil.curator.tables.files import load
from thinveil.errors import DataError, MissingExtra, ThinveilError, UsageError
from thinveil.language.schema import MISSING, Categories, Grid, Schema


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a table and returns its path."""

    def write(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def only(content: Dataset) -> list[object]:
    """Return the values of the only column."""
    return [value for (value,) in content.rows()]


Write = Callable[..., Path]


# Text files ------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_finds_the_separator(table: Write, separator: str, end: str, start: bytes) -> None:
    rows = [["a", "b, c", "d;|\t"], ["1", "x,;\t|y", "ü"], ["2", 'say ""no""', "two\nlines"]]
    text = end.join(separator.join(f'"{field}"' for field in row) for row in rows) + end
    read = load(table(start + text.encode()))
    assert read.schema.names == ("a", "b, c", "d;|\t")
    assert read.rows() == [(1, "x,;\t|y", "ü"), (2, 'say "no"', "two\nlines")]


def test_separator_in_numbers_does_not_mislead(table: Write) -> None:
    assert load(table("a;b\n1,5;x\n2,5;y\n")).schema.names == ("a", "b")
    assert load(table("Income, yearly;age\n1;2\n3;4\n")).schema.names == ("Income, yearly", "age")


def test_given_marks(table: Write) -> None:
    assert load(table("a:b\n1:'x:y'\n"), separator=":", quote="'").rows() == [(1, "x:y")]
    assert load(table('a,b\n1,"x\n'), quote="").rows() == [(1, '"x')]
    assert load(table("a\tb\n1\t2\n"), separator="tab").rows() == [(1, 2)]
    assert load(table("a b\n1 2\n"), separator=" ").rows() == [(1, 2)]


def test_one_column(table: Write) -> None:
    assert only(load(table("a\n1\n2"))) == [1, 2]
    assert only(load(table("a\n1\n\n2\n"))) == [1, None, 2]
    assert only(load(table("remark\nwell, yes\nno\n"))) == ["well, yes", "no"]


def test_blank_lines_are_skipped(table: Write) -> None:
    assert load(table("\n\na,b\n\n1,2\n  \n3,4\n\n")).rows() == [(1, 2), (3, 4)]


def test_long_fields_and_many_lines(table: Write) -> None:
    long = "x" * 1_000_000
    assert only(load(table(f'a\n"{long}"\ny\n'))) == [long, "y"]
    numbers = "\n".join(map(str, range(50_000)))
    assert load(table(f"a\n{numbers}\n")).column(0).tolist() == list(range(50_000))


def test_other_encodings(table: Write) -> None:
    assert only(load(table("a\né\n".encode("latin-1")), encoding="latin-1")) == ["é"]
    assert only(load(table("a\né\n".encode("utf-16")), encoding="utf-16")) == ["é"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("\ufeff", "the file is empty"),
        ("a,b\n", "no records"),
        ("a,b", "no records"),
        ("a,b\n1,2\n3\n", "line 3 has 1 field, and the header has 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 fields, and the header has 2"),
        ('a,b\n"1\n\n",2\n\n1,2,3\n', "line 6 has 3 fields"),
        ('a,b\n1,2\n1,"2\n3,4\n', "line 3 opens a quotation mark"),
        ('a,b\n1,"2"3\n', "line 2 opens a quotation mark"),
        ("a,b\n1,\x00\n", "line 2 holds a NUL"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "not utf-16 text.*--encoding"),
        (b"\x01a,b\n1,2\n3,\xe9\n", "line 3 is not UTF-8.*--encoding"),
    ],
)
def test_bad_text_files(table: Write, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(table(content))
    assert "table.csv" in str(caught.value)


def test_bad_bytes_in_a_named_encoding(table: Write) -> None:
    with pytest.raises(DataError, match="not ascii text"):
        load(table(b"a\n\xe9\n"), encoding="ascii")


def test_files_that_cannot_be_opened(table: Write, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet"):
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        with pytest.raises(DataError, match="no such file"):
            load(tmp_path / f"none.{suffix}")
        (tmp_path / f"folder.{suffix}").mkdir()
        with pytest.raises(DataError, match="directory"):
            load(tmp_path / f"folder.{suffix}")


def test_no_permission(table: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = table("a\n1\n")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match="no permission"):
        load(path)


@pytest.mark.parametrize(
    "options",
    [
        {"separator": ""},
        {"separator": ",,"},
        {"separator": "\n"},
        {"quote": "''"},
        {"separator": "'", "quote": "'"},
        {"encoding": "klingon"},
        {"encoding": "hex"},
        {"encoding": "a\0b"},
    ],
)
def test_bad_options(table: Write, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load(table("a,b\n1,2\n"), **options)


@pytest.mark.parametrize("source", [3, None, [[1]], b"table.csv", "a\0b", {"a": [1]}])
def test_bad_sources(source: object) -> None:
    with pytest.raises(UsageError):
        load(source)


# Inference -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "attribute"),
    [
        ("1 -2 0 +3", Grid("a")),
        ("1.0 2.00 3", Grid("a")),
        ("1e3 20e-1", Grid("a")),
        ("1.5 2.25 3.000", Grid("a", "decimal", Decimal("0.01"))),
        ("-.5 1.", Grid("a", "decimal", Decimal("0.1"))),
        ("1e-3 5", Grid("a", "decimal", Decimal("0.001"))),
        ("5e-324", Grid("a", "decimal", Decimal("1e-324"))),
        ("01234 12345", Categories("a", ("01234", "12345"))),
        ("00.5 1", Categories("a", ("00.5", "1"))),
        ("1_000 1", Categories("a", ("1", "1_000"))),
        ("٣ 1", Categories("a", ("1", "٣"))),
        ("true false", Categories("a", ("false", "true"))),
        ("b B a", Categories("a", ("B", "a", "b"))),
        ("2020-02-29 1999-12-31", Grid("a", "date")),
        ("2021-02-29", Categories("a", ("2021-02-29",))),
        ("20200229 19991231", Grid("a")),
        ("2020-01-01T00:00:00 2020-01-02", Grid("a", "date")),
        ("2020-01-01T05:00 2020-01-02", Grid("a", "datetime", Decimal(3600))),
        ("2020-01-01T05:01Z", Grid("a", "datetime", Decimal(60))),
        ("1890-01-01T05:01:02+01:00", Grid("a", "datetime", Decimal(1))),
        ("2020-01-01T05:01:02.250", Grid("a", "datetime", Decimal("0.001"))),
        ("2020-01-01T05:01:02.250001", Grid("a", "datetime", Decimal("0.000001"))),
        (
            "2020-01-01T05:01:02.2500011",
            Categories("a", ("2020-01-01T05:01:02.2500011",)),
        ),
        (
            "2020-01-01T05:00Z 2020-01-01T05:00",
            Categories("a", ("2020-01-01T05:00", "2020-01-01T05:00Z")),
        ),
        ("0001-01-01T00:00+10:00", Categories("a", ("0001-01-01T00:00+10:00",))),
        ("NULL null NaN nan", Categories("a", (), missing=True)),
        ("1 NULL", Grid("a", missing=True)),
        ("None NA", Categories("a", (), missing=True)),
        ("none NA x", Categories("a", ("NA", "none", "x"))),
        ("1 inf. ", Categories("a", ("1", "inf."))),
    ],
)
def test_infers(table: Write, texts: str, attribute: Grid | Categories) -> None:
    read = load(table("a\n" + "\n".join(texts.split()) + "\n"), separator=",")
    assert read.schema == Schema((attribute,))


def test_named_missing_texts(table: Write) -> None:
    path = table("a\n1\n?\n-99\n")
    assert only(load(path, missing=("?", "-99"))) == [1, None, None]
    assert only(load(path, missing="?")) == [1, None, -99]


def test_decodes_times(table: Write) -> None:
    assert only(load(table("a\n1969-12-31T23:00\n"))) == [datetime(1969, 12, 31, 23)]
    assert only(load(table("a\n1969-12-31\n"))) == [date(1969, 12, 31)]
    assert only(load(table("a\n2020-01-01T05:01+01:00\n"))) == [datetime(2020, 1, 1, 4, 1)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("1 inf", "row 2 of column 'a' is infinite"),
        ("1 2 -Infinity", "row 3 of column 'a' is infinite"),
        (
            "1 1e999999999",
            r"column 'a' has numbers beyond 10\^400.*\(--drop a; in Python drop=\['a'\]\)",
        ),
        ("1 1e99999999999999999999999", r"column 'a' has numbers beyond 10\^400"),
        (f"1 1e{'9' * 5000}", r"column 'a' has numbers beyond 10\^400"),
        (f"1 {'9' * 5000}", r"column 'a' has numbers beyond 10\^400"),
        ("0 1e-999999998 1e-999999999", r"column 'a' has numbers .* none above 10\^-400"),
    ],
)
def test_numbers_beyond_any_grid(table: Write, texts: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(table("a\n" + "\n".join(texts.split()) + "\n"))


# A given schema --------------------------------------------------------------------------

SCHEMA = Schema(
    (
        Grid("pay", "decimal", Decimal("0.5"), -10, 10, missing=True),
        Categories("job", ("z", "a")),
        Grid("day", "date", Decimal(7)),
        Grid("at", "datetime", Decimal(60)),
        Grid("age"),
    )
)
HEADER = "age,at,day,job,pay\n"


def test_follows_the_schema(table: Write) -> None:
    read = load(table(HEADER + " 007 ,1970-01-01 00:02,1970-01-08,a,1.50\n1e1,1970-01-01,"
                               "1970-01-15,z,\n"), SCHEMA)  # fmt: skip
    assert read.schema is SCHEMA
    assert read.codes.tolist() == [[3, 1, 1, 2, 7], [MISSING, 0, 2, 0, 10]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1.5,1970-01-01,1970-01-08,a,1", "row 2 of column 'age' is not of kind integer"),
        ("x,1970-01-01,1970-01-08,a,1", "row 2 of column 'age' is not of kind integer"),
        ("1_0,1970-01-01,1970-01-08,a,1", "row 2 of column 'age' is not of kind integer"),
        ("inf,1970-01-01,1970-01-08,a,1", "row 2 of column 'age' is not of kind integer"),
        (f"{2**62},1970-01-01,1970-01-08,a,1", "row 2 of column 'age' is too large"),
        (",1970-01-01,1970-01-08,a,1", "row 2 of column 'age' has no value"),
        ("1,1970-01-01 00:00:01,1970-01-08,a,1", "row 2 of column 'at' .* step 60 seconds"),
        ("1,noon,1970-01-08,a,1", "row 2 of column 'at'"),
        ("1,1970-01-01,1970-01-09,a,1", "row 2 of column 'day' .* step 7 days"),
        ("1,1970-01-01,1970-01-08T01:00,a,1", "row 2 of column 'day'"),
        ("1,1970-01-01,1970-01-08,A,1", "row 2 of column 'job' .* list of values"),
        ("1,1970-01-01,1970-01-08,a,0.25", "row 2 of column 'pay' .* step 0.5"),
        ("1,1970-01-01,1970-01-08,a,5.5", "row 2 of column 'pay' lies outside the bounds"),
        ("1,1970-01-01,1970-01-08,a,1." + "0" * 40 + "1", "row 2 of column 'pay'"),
    ],
)
def test_values_that_do_not_fit(table: Write, row: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(table(HEADER + "1,1970-01-01,1970-01-08,a,1\n" + row + "\n"), SCHEMA)


def test_columns_that_do_not_match(table: Write) -> None:
    with pytest.raises(DataError, match=r"no column 'at'.* 'age', 'day', 'job', 'pay'"):
        load(table("age,day,job,pay\n1,1970-01-08,a,1\n"), SCHEMA)
    with pytest.raises(DataError, match="column 'more' that the schema does not"):
        load(table("age,more\n1,2\n"), Schema((Grid("age"),)))


def test_category_list_takes_numbers_as_text(table: Write) -> None:
    read = load(table("a\n2\n1\n"), Schema((Categories("a", ("2", "1")),)))
    assert read.column(0).tolist() == [0, 1]


# Everything that speaks Arrow ------------------------------------------------------------

CSV = """id,pay,job,day,at,ok,gone,part
1,10.5,nurse,2020-01-01,2020-01-01T00:00:01,true,,1
2,,"a, b",,2020-01-01T12:00:00,false,,
3,-0.25,,2019-05-05,1960-01-01T00:00:00,true,,3
"""
VALUES: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "pay": [10.5, None, -0.25],
    "job": ["nurse", "a, b", None],
    "day": [date(2020, 1, 1), None, date(2019, 5, 5)],
    "at": [datetime(2020, 1, 1, 0, 0, 1), datetime(2020, 1, 1, 12), datetime(1960, 1, 1)],
    "ok": [True, False, True],
    "gone": [None, None, None],
    "part": [1.0, float("nan"), 3.0],
}


def same(one: Dataset, other: Dataset) -> None:
    """Check that two tables are equal in all respects."""
    assert one.schema == other.schema
    assert np.array_equal(one.codes, other.codes)
    assert one.digest() == other.digest()


def test_every_source_alike(table: Write, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    truth = load(table(CSV))
    arrow = pa.table(VALUES)
    same(load(arrow), truth)
    same(load(pa.concat_tables([arrow[:1], arrow[1:]])), truth)
    same(load(arrow.to_batches()[0]), truth)
    for name in ("a.parquet", "b.pq", "C.PARQUET"):
        parquet.write_table(arrow, tmp_path / name)
        same(load(tmp_path / name), truth)
        same(load(str(tmp_path / name)), truth)


def test_pandas_alike(table: Write) -> None:
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(VALUES, index=[5, 7, 9])
    same(load(frame), load(table(CSV)))
    frame["job"] = frame["job"].astype("category").cat.add_categories(["never"])
    frame["part"] = frame["part"].astype("Int64")
    same(load(frame), load(table(CSV)))


@pytest.mark.foreign
def test_polars_alike(table: Write) -> None:
    pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(VALUES)
    same(load(frame), load(table(CSV)))
    same(load(frame.with_columns(pl.col("job").cast(pl.Categorical))), load(table(CSV)))


def test_one_method_is_enough(table: Write) -> None:
    pa = pytest.importorskip("pyarrow")
    arrow = pa.table(VALUES)

    class Stream:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return arrow.__arrow_c_stream__(requested)

    class Array:
        def __arrow_c_array__(self, requested: object = None) -> object:
            return arrow.to_batches()[0].__arrow_c_array__(requested)

    same(load(Stream()), load(table(CSV)))
    same(load(Array()), load(table(CSV)))


def test_arrow_types() -> None:
    pa = pytest.importorskip("pyarrow")

    def values(data: list[Any], kind: Any) -> list[object]:
        return only(load(pa.table({"a": pa.array(data, kind)})))

    assert values([0.1, 2.0], pa.float32()) == [Decimal("0.1"), Decimal("2.0")]
    halves = [np.float16(0.5), np.float16(2.0)]
    assert values(halves, pa.float16()) == [
        Decimal("0.5"),
        Decimal("2.0"),
    ]
    assert values([1, 2**61], pa.uint64()) == [1, 2**61]
    assert values([Decimal("1.10"), None], pa.decimal128(9, 2)) == [Decimal("1.1"), None]
    assert values([date(2020, 1, 1)], pa.date64()) == [date(2020, 1, 1)]
    assert values([1_000_000], pa.timestamp("ns")) == [datetime(1970, 1, 1, 0, 0, 0, 1000)]
    assert values([3600], pa.timestamp("s", "Europe/Berlin")) == [datetime(1970, 1, 1, 1)]
    assert values(["01", ""], pa.large_string()) == ["01", None]
    assert values(["a", "b", "a"], pa.dictionary(pa.int8(), pa.string())) == ["a", "b", "a"]
    assert values([3], pa.time32("s")) == [time(0, 0, 3)]


def test_codes_in_the_order_of_the_dictionary_do_not_matter() -> None:
    pa = pytest.importorskip("pyarrow")
    array = pa.DictionaryArray.from_arrays([2, 1, None], ["unused", "b", "a"])
    read = load(pa.table({"x": array}))
    assert read.schema == Schema((Categories("x", ("a", "b"), missing=True),))
    assert only(read) == ["a", "b", None]
    with pytest.raises(DataError, match="row 2 of column 'x'"):
        load(pa.table({"x": array}), Schema((Categories("x", ("a",), missing=True),)))


def test_bad_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    for kind, data in [
        (pa.list_(pa.int8()), [[1]]),
        (pa.struct([("f", pa.int8())]), [{"f": 1}]),
        (pa.binary(), [b"x"]),
        (pa.duration("s"), [1]),
        (pa.timestamp("ns"), [1]),
    ]:
        with pytest.raises(DataError, match="column 'a' has the type"):
            load(pa.table({"a": pa.array(data, kind)}))
    with pytest.raises(DataError, match="is infinite"):
        load(pa.table({"a": [1.0, float("-inf")]}))
    with pytest.raises(DataError, match="no records"):
        load(pa.table({"a": pa.array([], pa.int8())}))
    with pytest.raises(DataError, match="at least one column"):
        load(pa.table({}))
    with pytest.raises(DataError, match="holds no table"):
        load(pa.array([1]))


def test_bad_pandas() -> None:
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="column 'a' mixes"):
        load(pd.DataFrame({"a": [1, "canary", object()]}))
    with pytest.raises(UsageError, match="to_frame"):
        load(pd.Series([1]))


def test_damaged_parquet(table: Write) -> None:
    pytest.importorskip("pyarrow")
    for content in (b"", b"PAR1 canary PAR1"):
        with pytest.raises(DataError, match="not a Parquet file") as caught:
            load(table(content, "a.parquet"))
        assert "canary" not in str(caught.value)


def test_without_pyarrow(table: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    class Frame:
        def __arrow_c_stream__(self) -> None:
            raise AssertionError("not called")

    assert only(load(table("a\n1\n"))) == [1]
    with pytest.raises(MissingExtra, match=r"Reading Parquet.*\[arrow\]'"):
        load(table(b"", "a.parquet"))
    with pytest.raises(MissingExtra, match=r"\[arrow\]'"):
        load(Frame())


# Drafts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "lower", "upper"),
    [
        ("18 95", 0, 100),
        ("-8019 102127", -9000, 200_000),
        ("-1 871", -10, 900),
        ("-31 -20", -40, 0),
        ("0 0", 0, 10),
        ("3 4000000000000000001", 0, 2**62 - 1),
        ("0.25 17.5", Decimal(0), Decimal(20)),
        ("-0.03", Decimal("-0.1"), Decimal(0)),
        ("2019-05-05 2021-01-01", date(2019, 1, 1), date(2021, 12, 31)),
        ("1960-05-05T10:00", datetime(1960, 1, 1), datetime(1960, 12, 31, 23)),
        (
            "9999-05-05T10:00:00.000001",
            datetime(9999, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999_999),
        ),
    ],
)
def test_drafts_roomy_bounds(table: Write, texts: str, lower: object, upper: object) -> None:
    path = table("a\n" + "\n".join(texts.split()) + "\n")
    draft = draft_schema(path)
    grid = draft[0]
    assert isinstance(grid, Grid)
    assert grid.lower is not None
    assert grid.upper is not None
    assert (grid.decode(grid.lower), grid.decode(grid.upper)) == (lower, upper)
    assert np.array_equal(load(path, draft).codes, load(path).codes)


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1))
def test_drafts_hold_the_table(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int]
) -> None:
    path = tmp_path_factory.mktemp("draft") / "a.csv"
    path.write_text("a\n" + "\n".join(map(str, numbers)) + "\n")
    assert load(path, draft_schema(path)).column(0).tolist() == numbers


# There and back --------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
VALUE = {
    "integer": st.integers(-(2**62) + 1, 2**62 - 1),
    "decimal": st.decimals(-(10**6), 10**6, places=3),
    "date": st.dates(),
    "datetime": st.datetimes(),
    "category": TEXT.map(lambda text: "x" + text),
}


@st.composite
def columns(draw: st.DrawFn) -> list[list[Any]]:
    """Draw some columns of equal length, each of one kind, some values missing."""
    length = draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from(sorted(VALUE)), min_size=1, max_size=4))
    return [
        draw(st.lists(st.none() | VALUE[kind], min_size=length, max_size=length)) for kind in kinds
    ]


def as_text(value: object) -> str:
    """Write a value as a CSV field."""
    if isinstance(value, date):
        return value.isoformat()
    return "" if value is None else '"' + str(value).replace('"', '""') + '"'


@settings(deadline=None)
@given(columns(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]))
def test_there_and_back(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[list[Any]],
    separator: str,
    end: str,
) -> None:
    path = tmp_path_factory.mktemp("back") / "a.csv"
    names = [f"c{position}" for position in range(len(content))]
    rows = [names, *([as_text(value) for value in row] for row in zip(*content, strict=True))]
    lines = [separator.join(row) or '""' for row in rows]  # a blank line may be no record
    path.write_bytes((end.join(lines) + end).encode())
    read = load(path)
    expected = list(zip(*content, strict=True))
    for (got_row, row), position in (
        (pair, at) for pair in zip(read.rows(), expected, strict=True) for at in range(len(names))
    ):
        got, value = got_row[position], row[position]
        if isinstance(value, datetime) and type(got) is date:
            got = datetime(got.year, got.month, got.day)
        assert got == value
    assert [each.missing for each in read.schema] == [None in column for column in content]


# No value in any message -----------------------------------------------------------------

CANARY = "c4n4ry"
NUMBER = "73313377331337"


@pytest.mark.parametrize(
    ("content", "schema", "options"),
    [
        (f"a,b\n{CANARY},{CANARY},{CANARY}\n", None, {}),
        (f'a,b\n{CANARY},"{CANARY}\n', None, {}),
        (f'a,b\n{CANARY},"{CANARY}"{CANARY}\n', None, {}),
        (f"a,b\n{CANARY},{CANARY}\0\n", None, {}),
        (f"a,b\n{CANARY},{CANARY}\n".encode() + b"\x01\xff", None, {}),
        (f"a\n{CANARY}é\n", None, {"encoding": "ascii"}),
        (f"a\n{NUMBER}{NUMBER}\n", Schema((Grid("a"),)), {}),
        (f"a\n{NUMBER}{NUMBER}\n", Schema((Grid("a", "double"),)), {}),
        (f"a\n{NUMBER}e{NUMBER}\n", None, {}),
        (f"a\n{NUMBER}\ninf\n", None, {}),
        (f"a\n{NUMBER}e-{NUMBER}\n", None, {}),
        (f"a\n{CANARY}\n", Schema((Grid("a"),)), {}),
        (f"a\n{CANARY}\n", Schema((Grid("b"),)), {}),
        (f"a\n{CANARY}\n", Schema((Categories("a", ("x",)),)), {}),
        (f"a\n{CANARY}\n", Schema((Grid("a", "date"),)), {}),
        (f"a\n{CANARY}\n", Schema((Grid("a", "datetime"),)), {}),
        (f"a\n{NUMBER}\n", Schema((Grid("a", lower=0, upper=9),)), {}),
        (f"a\n{NUMBER}.5\n", Schema((Grid("a"),)), {}),
        (f"a\n{NUMBER}\n", Schema((Grid("a", "date"),)), {}),
        (f"a\n\n{NUMBER}\n", Schema((Grid("a"),)), {}),
        (f"a,b\n{CANARY},1\n", Schema((Grid("b"),)), {}),
    ],
)
def test_no_value_is_shown(
    table: Write, content: str | bytes, schema: Schema | None, options: dict[str, str]
) -> None:
    with pytest.raises(ThinveilError) as caught:
        load(table(content), schema, **options)
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in str(error)
        assert NUMBER not in str(error)
        error = None if error.__suppress_context__ else error.__context__


# Real data -------------------------------------------------------------------------------


def test_bank(bank: Dataset, bank_path: Path) -> None:
    assert bank.records == 45_211
    guessed = load(bank_path)
    assert bank.schema.names == guessed.schema.names
    assert guessed.schema == Schema(
        tuple(
            replace(each, lower=None, upper=None) if isinstance(each, Grid) else each
            for each in bank.schema
        )
    )
    assert np.array_equal(guessed.codes, bank.codes)
    job = bank.schema[bank.schema.column("job")]
    assert isinstance(job, Categories)
    assert list(job.values) == sorted(job.values)
    first = (58, "management", "married", "tertiary", "no", 2143, "yes", "no", "unknown")
    assert bank.sample([0]).rows()[0][:9] == first
    assert bank.column(1)[0] == 4
