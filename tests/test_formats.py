"""Numbers, dates and times as people write them, words for missing values, and what is said."""

from __future__ import annotations

import csv
import json
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil import Dataset, load
from thinveil.commands.main import run
from thinveil.curator.database.table import open_database
from thinveil.curator.tables.drafting import draft_schema
from thinveil.curator.tables.reading import MISSING_TEXTS, WORDS
from thinveil.errors import DataError, SchemaError
from thinveil.lab.tables import from_file
from thinveil.language.formats import Numeral, Pattern, format_of
from thinveil.language.schema import Attribute, Categories, Grid, Schema
from thinveil.language.schema_file import parse_schema, write_schema
from worlds import as_a, sweep


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(**columns: list[str]) -> str:
    with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return "t.csv"


def read(texts: list[str], schema: Schema | None = None, **how: Any) -> Dataset:
    return load(table(x=texts, y=["1"] * len(texts)), schema, **how)


def values(data: Dataset) -> list[object]:
    return [row[0] for row in data.rows()]


def described(attribute: Attribute) -> tuple[str, str]:
    return attribute.kind, getattr(attribute, "format", "")


def dec(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


def days(*texts: str) -> list[date]:
    return [date.fromisoformat(text) for text in texts]


def moments(*texts: str) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in texts]


CASES: list[tuple[str, str, str, list[Any]]] = [
    # texts, kind, format, values
    ("1,5|2,25", "decimal", "1234,56", dec("1.5", "2.25")),
    ("1.234,56|7,1", "decimal", "1.234,56", dec("1234.56", "7.1")),
    ("1,234.56|7", "decimal", "1,234.56", dec("1234.56", "7")),
    ("1.234|1.234.567", "integer", "1.234,56", [1234, 1234567]),
    ("1 234|567", "integer", "1 234.56", [1234, 567]),
    ("1\u202f234,5|567", "decimal", "1 234,56", dec("1234.5", "567")),
    ("1'234.5|567", "decimal", "1'234.56", dec("1234.5", "567")),
    ("1\u2019234.5|567", "decimal", "1'234.56", dec("1234.5", "567")),
    ("$1,200|$5", "integer", "$1,234.56", [1200, 5]),
    ("-$1,200.50|$5|$-3", "decimal", "$1,234.56", dec("-1200.5", "5", "-3")),
    ("1.200 €|5 €", "integer", "1.234,56 €", [1200, 5]),
    ("6,5 €|5€", "decimal", "1234,56 €", dec("6.5", "5")),
    ("EUR 5|EUR 6", "integer", "EUR 1234.56", [5, 6]),
    ("CHF 1'200.50|CHF 3", "decimal", "CHF 1'234.56", dec("1200.5", "3")),
    ("12 %|13%|-1 %", "integer", "1234.56 %", [12, 13, -1]),
    ("12.345 %|1.234 %", "decimal", "1234.56 %", dec("12.345", "1.234")),
    ("(5)|6", "integer", "1234.56 or (1)", [-5, 6]),
    ("5.5-|6", "decimal", "1234.56 or 1-", dec("-5.5", "6")),
    ("\u22125|6", "integer", "1234.56", [-5, 6]),
    ("1,5e3|2,5", "decimal", "1234,56", dec("1500", "2.5")),
    ("<5|6|7.5", "decimal", "1234.56 or <1", dec("4.95", "6", "7.5")),
    ("90+|6", "decimal", "1234.56 or 1+", dec("90.5", "6")),
    (">100|5|<1", "decimal", "1234.56 or <1 or >1", dec("100.5", "5", "0.5")),
    ("31.12.1990|1.2.1991", "date", "DD.MM.YYYY", days("1990-12-31", "1991-02-01")),
    ("12/31/1990|3/4/1991", "date", "MM/DD/YYYY", days("1990-12-31", "1991-03-04")),
    ("31/12/1990|3/4/1991", "date", "DD/MM/YYYY", days("1990-12-31", "1991-04-03")),
    ("1990/12/31|1990/1/1", "date", "YYYY/MM/DD", days("1990-12-31", "1990-01-01")),
    ("1990-1-5|1991-12-31", "date", "YYYY-MM-DD", days("1990-01-05", "1991-12-31")),
    ("31.12.45|1.1.29", "date", "DD.MM.YY", days("1945-12-31", "2029-01-01")),
    ("31 Dec 1990|1 January 2000", "date", "DD MMM YYYY", days("1990-12-31", "2000-01-01")),
    ("Dec 31, 1990|Sept. 1, 2000", "date", "MMM DD, YYYY", days("1990-12-31", "2000-09-01")),
    ("Jan-1-1995|Feb-1-1995", "date", "MMM-DD-YYYY", days("1995-01-01", "1995-02-01")),
    ("31dec1990|01JAN2000", "date", "DDMMMYYYY", days("1990-12-31", "2000-01-01")),
    ("1990-12|1991-01", "date", "YYYY-MM", days("1990-12-01", "1991-01-01")),
    ("Jan 1990|Feb 1991", "date", "MMM YYYY", days("1990-01-01", "1991-02-01")),
    (
        "12/31/1990 11:59 PM|1/1/2000 12:00 AM", "datetime", "MM/DD/YYYY HH:MM AM",
        moments("1990-12-31T23:59", "2000-01-01"),
    ),
    (
        "31.12.1990 00:00|1.1.1991 00:00", "datetime", "DD.MM.YYYY HH:MM",
        moments("1990-12-31", "1991-01-01"),
    ),
    ("12:30|9:05", "time", "", [time(12, 30), time(9, 5)]),
    ("12:30:15|09:05:00.5", "time", "", [time(12, 30, 15), time(9, 5, 0, 500_000)]),
    ("9:05 PM|12:00 am", "time", "HH:MM AM", [time(21, 5), time(0)]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "kind", "form", "expected"), CASES)
def test_a_column_is_read_by_the_format_that_all_its_texts_have(
    texts: str, kind: str, form: str, expected: list[Any]
) -> None:
    listed = texts.split("|")
    data = read(listed)
    assert described(data.schema[0]) == (kind, form)
    assert values(data) == expected
    (note,) = data.remarks.assumed
    assert note.startswith("column 'x': read as ")
    assert form in note
    assert not data.remarks.doubts
    # and the same by the drafted schema file, and with words for missing values
    drafted = draft_schema("t.csv")
    assert values(load("t.csv", parse_schema(write_schema(drafted)))) == expected
    gaps = read([*listed, "NA", " . ", "n/a"])
    assert values(gaps) == [*expected, None, None, None]
    assert described(gaps.schema[0]) == (kind, form)
    assert "--not-missing NA" in gaps.remarks.assumed[1]


ODD = ["xqz", "12.34.56", "1,2,3", "32.13.1990", "12:75", "$-", "5 5"]


@pytest.mark.parametrize(("texts", "odd"), sweep(product([case[0] for case in CASES], ODD), 3))
def test_what_almost_fits_is_never_misread(texts: str, odd: str) -> None:
    listed = texts.split("|") * 2
    data = read([*listed, odd])
    assert data.schema[0].kind == "category"
    assert values(data) == [*listed, odd]
    assert data.remarks.numbers == ("x",)
    (doubt,) = data.remarks.doubts
    assert "the column 'x' became a public list" in doubt
    assert not any(text in said for text in [*listed, odd] for said in data.remarks.all())


@pytest.mark.parametrize(
    "texts",
    [
        "00123|00456", "$5|6", "$5|€6", "5 %|6", "(5)|(6)", "<5|<6", "<5|<=5|6", "1,5|2.5",
        "1,23,456|1", "1,2345,678|1", "12:30|12:30:15", "25:10|1:10", "1.2.1990|1/2/1990",
        "1.2.1990|2-1-1990 10:00", "31.12.1990|12.31.1990", "1|2|X", "12 kg|13 kg",
        "Jan 1 2000|Foo 1 2000",
    ],
)  # fmt: skip
def test_columns_without_one_format_stay_lists_and_are_doubted(texts: str) -> None:
    data = read(texts.split("|"))
    assert data.schema[0].kind == "category"
    assert values(data) == texts.split("|")
    assert data.remarks.numbers == ("x",)


@pytest.mark.parametrize("texts", ["A|NA|B", "1-4|5-9|10-14", "a1|b2", "1st|2nd", "-|+"])
def test_lists_of_words_are_as_they_were(texts: str) -> None:
    data = read(texts.split("|") * 9)
    assert set(values(data)) == set(texts.split("|"))
    assert data.remarks == thinveil.load("t.csv").remarks
    assert data.remarks.all() == ()


# several formats fit


def test_three_digits_after_a_comma_are_thousands_unless_another_column_decides() -> None:
    alone = read(["1,234", "12,345"])
    assert values(alone) == [1234, 12345]
    assert 'step = 0.001 and format = "1234,56"' in alone.remarks.assumed[0]
    assert values(read(["0,123", "2,345"])) == dec("0.123", "2.345")
    assert values(read(["1,234", "12345"])) == dec("1.234", "12345")
    both = load(table(x=["1,234", "12,345"], y=["1,5", "2"]))
    assert values(both) == dec("1.234", "12.345")
    assert "as in other columns" in both.remarks.assumed[0]
    points = load(table(x=["1.234", "12.345"], y=["1,5", "2"]))
    assert values(points) == [1234, 12345]
    assert "1.234,56" in points.remarks.assumed[0]
    assert values(read(["1.234", "12.345"])) == dec("1.234", "12.345")
    other = as_a(Grid, draft_schema(table(x=["1,234", "12,345"]))[0])
    mended = Schema((Grid("x", "decimal", Decimal("0.001"), format="1,5"),))
    assert other.format == "1,234.56"
    assert [row[0] for row in load("t.csv", mended).rows()] == dec("1.234", "12.345")


def test_day_and_month_are_told_where_they_could_be_swapped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = ["1/2/1990", "3/4/1991"]
    first = read(texts)
    assert values(first) == days("1990-01-02", "1991-03-04")
    assert "MM/DD/YYYY" in first.remarks.assumed[0]
    assert "--dates day-first" in first.remarks.assumed[0]
    swapped = read(texts, dates="day-first")
    assert values(swapped) == days("1990-02-01", "1991-04-03")
    assert "--dates month-first" in swapped.remarks.assumed[0]
    assert values(read(["12/31/1990", "1/2/1991"], dates="day-first"))[0] == date(1990, 12, 31)
    assert values(read(["1.2.1990", "3.4.1991"])) == days("1990-02-01", "1991-04-03")
    assert run(["audit", table(x=texts * 3), "--dates", "day-first"]) == 0
    assert "DD/MM/YYYY" in capsys.readouterr().out
    by_other = load(table(x=texts, y=["31/12/1990", "1/1/1990"]))
    assert values(by_other) == days("1990-02-01", "1991-04-03")


# words for missing values


@pytest.mark.parametrize("word", ["NA", "N/A", "NULL", "-", ".", "?", "nan", "#N/A", "..", "*"])
def test_words_for_missing_values_among_numbers(word: str) -> None:
    for texts, expected in ((["5", "7"], [5, 7]), (["2020-01-31"], days("2020-01-31"))):
        data = read([*texts, word])
        assert values(data) == [*expected, None]
        always = word in ("NULL", "nan")
        assert bool(data.remarks.assumed) is not always
        assert all(f"{word} means missing" in each for each in data.remarks.assumed)
        kept = read([*texts, word], not_missing=word)
        assert kept.schema[0].kind == "category"
        assert kept.remarks.numbers == ("x",)


def test_words_are_missing_by_a_schema_that_allows_it_and_named_where_it_does_not() -> None:
    texts = ["5", "NA", "7"]
    assert values(read(texts, Schema((Grid("x", missing=True), Grid("y"))))) == [5, None, 7]
    with pytest.raises(DataError, match=r"row 2 of column 'x' holds 'NA'.*missing = true"):
        read(texts, Schema((Grid("x"), Grid("y"))))
    with pytest.raises(DataError) as told:
        read(["5", "secret"], Schema((Grid("x"), Grid("y"))))
    assert "secret" not in str(told.value)


def test_a_column_of_nothing_but_such_words_is_missing() -> None:
    data = read(["NA", "-", "NA"])
    assert data.schema[0] == Categories("x", (), missing=True)
    assert values(data) == [None] * 3
    assert "- and NA mean missing" in data.remarks.assumed[0]
    assert "--not-missing=-" in data.remarks.assumed[0]


def test_zeros_without_a_digit_before_the_point() -> None:
    assert values(read([".0", "-.00", "5"])) == [0, 0, 5]
    assert values(read([",0", "-,50", "5"])) == dec("0", "-0.5", "5")


def test_one_note_serves_many_columns() -> None:
    data = load(table(**{f"c{n}": ["1", "NA"] for n in range(3)}))
    assert len(data.remarks.assumed) == 1
    assert data.remarks.assumed[0].startswith("columns 'c0', 'c1', 'c2': NA means missing")


def test_no_word_is_a_number_or_a_date() -> None:
    for word in sorted(WORDS - MISSING_TEXTS):
        assert values(read(["x1", word])) == ["x1", word]


# limits, truths, times


def test_limits_are_kept_apart_and_in_order() -> None:
    texts = ["<5", "5", "4", ">9", "9", "10", "<4", "3"]
    data = read(texts)
    found = [Decimal(str(each)) for each in values(data)]
    assert len(set(found)) == len(texts)
    ordered = sorted(zip(found, texts, strict=True))
    assert [text for _, text in ordered] == ["3", "<4", "4", "<5", "5", "9", ">9", "10"]
    with pytest.raises(SchemaError, match="limits such as <5"):
        Grid("x", "double", format="1234 or <1")
    with pytest.raises(DataError, match="row 2 of column 'x'"):
        read(
            ["<5", "4.5"],
            Schema((Grid("x", "decimal", Decimal("0.5"), format="1 or <1"), Grid("y"))),
        )


def test_truths_are_two_values_in_any_spelling() -> None:
    assert set(values(read(["Yes", "YES", "n", "yes"]))) == {"yes", "no"}
    assert set(values(read(["TRUE", "True", "f"]))) == {"true", "false"}
    merged = read(["TRUE", "True", "f"])
    assert as_a(Categories, merged.schema[0]).values == ("false", "true")
    assert "in several spellings" in merged.remarks.assumed[0]
    alone = read(["TRUE", "TRUE"])
    assert as_a(Categories, alone.schema[0]).values == ("FALSE", "TRUE")
    assert "only one occurs" in alone.remarks.assumed[0]
    for plain in (["yes", "no"], ["T", "F"], ["F", "F"], ["Y", "n"], ["yes", "TRUE"]):
        data = read(plain)
        assert as_a(Categories, data.schema[0]).values == tuple(sorted(set(plain)))
        assert data.remarks.all() == ()
    assert read(["0", "1"]).schema[0].kind == "integer"
    given = Schema((Categories("x", ("no", "yes")), Grid("y")))
    assert values(read(["No", "Y"], given)) == ["no", "yes"]
    with pytest.raises(DataError, match="row 1 of column 'x'"):
        read(["TRUE"], given)


def test_times_of_the_day() -> None:
    grid = Grid("x", "time", Decimal(60), 0, 1439)
    assert grid.encode("23:59") == grid.encode(time(23, 59)) == 1439
    assert grid.decode(61) == time(1, 1)
    assert grid.describe() == "time, step 60 seconds, from 00:00:00 to 23:59:00"
    assert grid.decode(1440) == "86400 seconds from 00:00:00"
    for wrong in ("24:00", "12:60", "noon", "12:00+01:00", "12:00:30"):
        with pytest.raises(ValueError, match=r"time of the day|multiple"):
            grid.encode(wrong)
    data = read(["23:59", "00:00", "?", "12:30"])
    assert data.schema[0].upper == 1439
    verdict = thinveil.audit(data)
    assert verdict.score is not None
    assert verdict.score.exact
    assert sorted(str(row[0]) for row in verdict.rows()) == [
        "00:00:00", "12:30:00", "23:59:00", "None",
    ]  # fmt: skip


# formats in schema files


@pytest.mark.parametrize("text", ["", "x", "1,23,4", "1.2,3.4", "5 or 6", "1 or <1 or <=1", "DD"])
def test_formats_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"example|mark"):
        Numeral.of(text)


@pytest.mark.parametrize("text", ["", "x", "DD", "DD.MM", "DD.MM.DD", "HH", "MM:SS", "HH:MM DD"])
def test_patterns_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give a pattern"):
        Pattern.of(text)
    if text:
        with pytest.raises(SchemaError, match="attribute 'x': the format cannot be used"):
            parse_schema(f'[[attribute]]\nname = "x"\nkind = "date"\nformat = "{text}"')


def test_a_format_is_of_one_kind() -> None:
    with pytest.raises(SchemaError, match="is one of kind time, not date"):
        Grid("x", "date", format="HH:MM")
    assert format_of("date", "YYYYMMDD").plain("19901231") == "1990-12-31"
    texts = ["19901231", "20000101"]
    schema = Schema((Grid("x", "date", format="YYYYMMDD"), Grid("y")))
    assert values(read(texts, schema)) == days("1990-12-31", "2000-01-01")
    assert format_of("integer", "12 kg").plain("1234 kg") == "1234"


MARKS = st.sampled_from([("", "."), ("", ","), (",", "."), (".", ","), (" ", ","), ("'", ".")])


@given(
    MARKS,
    st.lists(st.decimals(-(10**7), 10**7, places=2), min_size=1, max_size=5, unique=True),
    st.sampled_from(["", "$", "EUR"]),
    st.sampled_from(["", "%"]),
    st.sampled_from(["-", "(", "after"]),
)
def test_numbers_in_any_format_are_read_as_they_are(
    marks: tuple[str, str], numbers: list[Decimal], before: str, after: str, minus: str
) -> None:
    thousands, decimal = marks
    special = {"(": frozenset({"(1)"}), "after": frozenset({"1-"})}.get(minus, frozenset())
    form = Numeral(decimal, thousands, before, after, special)
    assert Numeral.of(str(form)) == form
    for number in numbers:
        swap = str.maketrans({",": thousands or None, ".": decimal})
        body = f"{abs(number):,.2f}".translate(swap)
        body = f"{before}{' ' if before == 'EUR' else ''}{body}{' ' + after if after else ''}"
        if number < 0:
            body = {"-": f"-{body}", "(": f"({body})", "after": f"{body}-"}[minus]
        assert Decimal(form.plain(body)) == number
        with pytest.raises(ValueError, match="format"):
            form.plain(body + "0x")


@given(
    st.dates(date(1931, 1, 1), date(2028, 12, 31)),
    st.times(),
    st.sampled_from(["DD.MM.YYYY", "MM/DD/YY", "YYYY-MM-DD", "DD MMM YYYY", "MMM DD, YYYY"]),
)
def test_dates_in_any_format_are_read_as_they_are(day: date, at: time, pattern: str) -> None:
    codes = {"YYYY": "%Y", "YY": "%y", "MMM": "%b", "MM": "%m", "DD": "%d"}
    write = pattern
    for token, code in codes.items():
        write = write.replace(token, code)
    assert Pattern.of(pattern).plain(day.strftime(write)) == day.isoformat()
    whole = Pattern.of(f"{pattern} HH:MM:SS")
    text = f"{day.strftime(write)} {at.isoformat()}"
    assert datetime.fromisoformat(whole.plain(text)) == datetime.combine(day, at)


# databases agree


@pytest.mark.parametrize("part", sweep(range(5), 5))
def test_databases_read_texts_as_files_are_read(part: int) -> None:
    columns = {f"c{n}": case[0].split("|") for n, case in enumerate(CASES) if n % 5 == part}
    filled = {name: [*texts, "NA", *texts][:5] for name, texts in columns.items()}
    filled = {name: (texts * 5)[:5] for name, texts in filled.items()}
    filled |= {
        "truth": ["TRUE", "true", "F", "f", "True"],
        "none": ["NA", "-", "NA", "-", "NA"],
        "text": ["NA", "EU", "AS", "EU", "NA"],
        "odd": ["1", "2", "X", "3", "4"],
    }
    data = load(table(**filled))
    with open_database("t.csv") as held:
        assert held.schema == data.schema
        assert held.remarks == data.remarks
        assert data.remarks.numbers == ("odd",)
        assert data.remarks.assumed[-1].startswith("column 'odd': row 3 is the first that")
        assert sorted(map(repr, held.to_dataset().rows())) == sorted(map(repr, data.rows()))
    with open_database("t.csv", schema=data.schema) as held:
        assert sorted(map(repr, held.to_dataset().rows())) == sorted(map(repr, data.rows()))


def test_times_in_a_database_are_counted_there() -> None:
    with duckdb.connect("d.duckdb") as connection:
        connection.execute(
            "create table t as select * from (values (time '12:30:00', 1), (null, 2), "
            "(time '23:59:00', 3)) v(x, y)"
        )
    with open_database("duckdb://d.duckdb") as held:
        assert held.schema[0] == Grid("x", "time", Decimal(60), 0, 1439, missing=True)
        assert set(values(held.to_dataset())) == {time(12, 30), None, time(23, 59)}
    with pytest.raises(DataError, match="the schema says date"):
        open_database("duckdb://d.duckdb", schema=Schema((Grid("x", "date"), Grid("y"))))


# what is said


def test_public_numbers_stand_at_the_top_of_the_verdict_however_long_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = table(pay=["1", "2", "lost"] * 30, age=["NA", "5", "7"] * 30)
    assert run(["audit", path, "--json", "r.json", "--report", "r.html", "--no-comparison"]) == 0
    told = capsys.readouterr()
    out, err = (" ".join(each.replace("│", " ").split()) for each in told)
    assert out.startswith("How the table was read column 'age': NA means missing")
    assert out.index("the column 'pay' became a public list of 3 texts") < out.index("What the")
    assert "But the column pay seemed to hold numbers or dates" in out
    assert "Note: the column 'pay' became a public list" in err
    record = json.loads(Path("r.json").read_text("utf-8"))
    assert record["numbers_public"] == ["pay"]
    assert "NA means missing" in record["read_as"][0]
    assert "the column pay seemed to hold numbers" in record["verdict"]
    page = Path("r.html").read_text("utf-8")
    top = page.partition('id="verdict"')[2].partition("</section>")[0]
    assert "seemed to hold numbers" in top
    assumed = page.partition('id="assumptions"')[2].partition("</section>")[0]
    assert "NA means missing" in assumed
    clean = thinveil.audit(table(pay=["1", "2", "3"] * 30), seed=1)
    assert "seemed to hold" not in clean.sentence()
    assert clean.to_plain()["numbers_public"] == []


def test_a_comparison_says_how_the_table_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    path = table(pay=["1", "2", "x", "4", "5", "6"], age=["NA", "5", "7", "8", "9", "10"])
    assert run(["compare", path, "--mechanism", "unprotected", "--json", "c.json"]) == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert out.startswith("How the table was read column 'age': NA means missing")
    assert "the column pay seemed to hold numbers or dates" in out
    written = json.loads(Path("c.json").read_text("utf-8"))
    assert written["numbers_public"] == ["pay"]
    assert (len(written["read_as"]), len(written["doubts"])) == (2, 1)


def test_people_are_written_as_in_the_table() -> None:
    rows = ["1.200,50 €;31.12.1990;Yes;5", "-;1.2.1985;no;7", "980,10 €;3.4.2001;YES;9"]
    Path("t.csv").write_text("\n".join(["pay;born;paid;age", *rows]), "utf-8")
    Path("who.csv").write_text("pay;born;paid\n1.200,50 €;31.12.1990;yes\n-;1.2.1985;no\n", "utf-8")
    words = ["audit", "t.csv", "--attack", "attribute", "--people", "who.csv", "--json", "r.json"]
    assert run(words) == 0
    found = json.loads(Path("r.json").read_text("utf-8"))["result"]
    ages = [each["values"]["age"] for each in found]
    assert ages == [[{"value": 5, "records": 1}], [{"value": 7, "records": 1}]]


def test_the_lab_shows_it_on_its_page() -> None:
    content = b"pay,age\n1,NA\n2,5\nlost,7\n"
    note = from_file(content, "t.csv").note
    assert "Column 'age': NA means missing, as all else is numbers or dates." in note
    assert "The column 'pay' became a public list of 3 texts, of which 2 look like" in note
    assert "--" not in note


def test_a_draft_says_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", table(pay=["1,5", "2"], x=["1", "X"]), "--output", "t.toml"]) == 0
    err = capsys.readouterr().err
    assert "column 'pay': read as numbers written like 1234,56" in err
    assert "the column 'x' became a public list" in err
    assert 'format = "1234,56"' in Path("t.toml").read_text("utf-8")
