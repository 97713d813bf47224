"""The bench on real tables notices what is wrong; `python -m bench tables` has the tables."""

from datetime import date
from decimal import Decimal

import pytest
from bench.tables.comparing import Cells, Differs, Found, compare, public_numbers, read
from bench.tables.gathering import Layout, Table
from bench.tables.sheet import Outcome, tables
from bench.tables.whole import one


def cells_of(header: str, *rows: str) -> Cells:
    columns = zip(*(row.split(",") for row in rows), strict=True)
    return Cells(header.split(","), [list(column) for column in columns])


def found_of(*rows, kinds="", names="a b", steps=(None, None), **said):
    return Found(names.split(), steps, kinds.split() or ["integer"] * 2, rows, **said)


FILE = cells_of("a,b", "1,5", "2,6", "2,7")


def test_records_in_any_order_are_exact():
    assert compare(FILE, found_of((2, 7), (1, 5), (2, 6)))[0] == "exact"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(2, 7), (1, 5)], "2 records instead of 3"),
        ([(2, 7), (1, 5), (2, 8)], "column 'b' differs"),
        ([(1, 7), (2, 5), (2, 6)], "the records are not"),
        ([(2, 7), (1, 5), (2, None)], "column 'b' differs"),
        ([(2, 7), (1, 5), (2, "?")], "column 'b' differs"),
    ],
)
def test_what_differs_is_noticed(rows, why):
    with pytest.raises(Differs, match=why):
        compare(FILE, found_of(*rows))


def test_numbers_are_equal_in_value_and_texts_in_every_character():
    file = cells_of("a,b", "1.50,1.50", "2e1,x ", "NA,NA")
    kinds = "decimal category"
    right = [(Decimal("1.5"), "1.50"), (Decimal(20), "x "), (None, "NA")]
    assert compare(file, found_of(*right, kinds=kinds))[0] == "exact"
    with pytest.raises(Differs, match="column 'b'"):
        compare(file, found_of(*right[:1], (Decimal(20), "x"), right[2], kinds=kinds))
    with pytest.raises(Differs, match="column 'a'"):
        compare(file, found_of(*right[:2], (Decimal(0), "NA"), kinds=kinds))


def test_fewer_digits_need_a_note():
    file = cells_of("a,b", "0.30000000000000004,1.26", "0.1,1.24")
    exact = [(0.30000000000000004, Decimal("1.26")), (0.1, Decimal("1.24"))]
    kinds, note = "double decimal", "the column 'a' has 15 digits, 'b' steps of 0.1"
    assert compare(file, found_of(*exact, kinds=kinds))[0] == "exact"
    short = [(Decimal("0.3"), Decimal("1.26")), (Decimal("0.1"), Decimal("1.24"))]
    assert compare(file, found_of(*short, kinds=kinds, notes=[note]))[0] == "15 digits"
    steps = (None, Decimal("0.1"))
    rounded = [(Decimal("0.3"), Decimal("1.2")), (Decimal("0.1"), Decimal("1.2"))]
    assert compare(file, found_of(*rounded, kinds=kinds, steps=steps, notes=[note])) == (
        "rounded",
        ["b"],
    )
    for rows in (short, rounded):
        with pytest.raises(Differs):
            compare(file, found_of(*rows, kinds=kinds, steps=steps))


def test_dates_in_other_forms_and_missing_words():
    file = cells_of("a,b", "Jan 2 2000,13/02/1990", ".,-")
    rows = [(date(2000, 1, 2), "1990-02-13"), (None, None)]
    assert compare(file, found_of(*rows, kinds="date date"))[0] == "exact"
    with pytest.raises(Differs, match="column 'b'"):
        compare(file, found_of((rows[0][0], "1990-02-12"), rows[1], kinds="date date"))


def test_the_century_of_a_year_of_two_digits_is_not_in_the_file():
    file = cells_of("a,b", "14/10/63,1", "7/5/64,2")
    rows = [("1963-10-14", 1), ("1964-05-07", 2)]
    assert compare(file, found_of(*rows, kinds="date integer"))[0] == "exact"
    with pytest.raises(Differs, match="column 'a'"):
        compare(file, found_of(("1963-10-15", 1), rows[1], kinds="date integer"))


def test_only_a_column_that_counts_the_rows_may_be_left_out():
    counted = cells_of(",a", "1,5", "2,6")
    assert compare(counted, found_of((6,), (5,), names="a", kinds="integer"))[0] == "exact"
    named = cells_of(",a", "x,5", "y,6")
    with pytest.raises(Differs, match="column 1 of the file was left out"):
        compare(named, found_of((6,), (5,), names="a", kinds="integer"))
    rows = [(5, "x"), (6, "y")]
    both = Found(["a", "column 1"], [None] * 2, ["integer", "category"], rows)
    assert compare(cells_of(",a,b", "x,5,0", "y,6,1"), both)[0] == "exact"  # b counts them, too


def test_numbers_in_a_public_list_are_noticed():
    file = cells_of("a,b", "1,x", "2,y", "none,3")
    rows = [("1", "x"), ("2", "y"), ("none", "3")]
    assert public_numbers(file, found_of(*rows, kinds="category category")) == ["a"]
    said = ["the column 'a' ..."]
    for how, public in (({"notes": said}, ["a"]), ({"doubts": said}, [])):
        assert public_numbers(file, found_of(*rows, kinds="category category", **how)) == public


def test_files_are_read_by_their_layout(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("a title\n1  2.5\n3 4\n")
    assert read(path, Layout(" ", header=False, skip=1)) == Cells(None, [["1", "3"], ["2.5", "4"]])
    path.write_text("'a'\t'b'\n1\t\n")
    assert read(path, Layout("\t", quote="'")) == Cells(["a", "b"], [["1"], [""]])


def test_a_file_is_audited_and_its_outcome_counted(tmp_path):
    outcomes = []
    for name, text in {"good": "a,b\n1,x\n2,y\n2,y\n", "few": "a,b\n1,x\n"}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        outcomes.append(one(Table("p", "raw", name, path)))
    assert [each.kind for each in outcomes] == ["exact", "few records"]
    assert [each.records for each in outcomes] == [3, 1]
    bad = Outcome("p", "raw", "bad", "refused", "no such thing")
    rows = [{name: getattr(each, name) for name in each.__slots__} for each in (*outcomes, bad)]
    sheet = tables(rows, judge=True)
    assert {len(row) for row in sheet.rows} == {len(sheet.headings)}
    assert sheet.rows[0][:6] == ("p, raw", "3", "1", "0", "1", "0")
    assert sheet.rows[2][-2:] == ("66.67%", "no")
    few, refused = (row[0] for row in sheet.rows[3:])
    assert few.startswith("p, raw: few: few records (the number of records is 1")
    assert refused == "p, raw: bad: refused (no such thing)"
