"""Spreadsheets, files of Stata, SPSS and SAS, Arrow files, and all that is not read."""

from __future__ import annotations

import base64
import csv
import gzip
import random
import sys
import zipfile
import zlib
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.auditing.sources import kind_of, opened
from thinveil.commands.main import run
from thinveil.curator.tables.files import read_columns
from thinveil.curator.tables.kinds import cells, registry, statistics
from thinveil.curator.tables.kinds.cells import text_of
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.errors import DataError, MissingExtra
from thinveil.lab.tables import from_file
from worlds import examples, sweep

SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
DATE, MOMENT, CLOCK, SPAN = 1, 2, 3, 4  # places in the list of styles below
STYLES = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 21, 46))
OLD = zlib.decompress(
    base64.b85decode(
        "c-rk)O-NKx6#nj=r_M||j;56sG6-3jE}~5c_AD&jj9L=?5R~Q+VT>`js1{|J%OGe~v=J-_!fMkG71XXMFpLO-K#f"
        "+df`S(6>$~T@(a{PVC?k2_<D7fXx%ZrV-u-{?^+?g!;N9|Z%)?d$Fztkpo1s&rP+EwB<&I;r=`=`keEe4k1v!wpI"
        "e1j?D$k6e8Simu+_9dK0~4f!IDwX)WFoeR*e)@2C=)|HxxzJSA}EuniiIB$zFhcisrguVgJ>=auV>vcbpRuFOZ66"
        "S7Vp!QQWk;ndtYqci)Ir_@!ZVfvzL@xHwW8N$2yKLm4XT@A4A|sHzksZl#vT@9bsTUQ5%ofHa1pRt8jz8nxTp{H`"
        "m4Eb?xnADB%nl!Z#-dd`)i!Ph-A*arFw+f1j(*`;9)x0sfUf#8IBFzpO2w56)p(aRXR}R?CzG(3(t4VhyJeggC2`"
        "q?4phQWvQ=Y>o%nPNH+RlLA?0`Q%+FlzfpawkSiJy!mA`-q~g!5>1~RA?`u5)`S8F=Zpo7BX9$O7eTdHY!rT8ysn"
        "mfx$qL!VOrHz>ScEJOPvc+TE%uY3*Ol4GV<%0ANaiMLB+sFdjs>sP2;CahTqwPsAP9_(cV1$s8KcQ>J@{Bb~;twr"
        "u0F0*-sl(P)EJk9q%+P#FSZiM3Hb;GQFc_B<=N;D+MS8W+aP}<#|@~JU?MHN<8NZf9Y-lI!Laig)=%#9$>wRTN(l"
        "Ouc9}``l4>7b@Wq%@v5cGS+B-Mi$94*N4(M8BY0~Y|62U>0-=j>&s64iJc}@V`0(MwhYue<eEd@=xn#N*Ys<S@n="
        "50U_g`m<H0}Q;S+dxT9zMPN4%~qx(-cl+HGfthN2PtK1=^(l7aHtk>nU`jQ{w2(dj9gGOJ%;#f(@g8ZV6@E{&Y5R"
        "{^j<60M_&6K>"
    )
)
"""A small workbook in the format of Excel 97, as written by the library xlwt."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")


def letters(number: int) -> str:
    return letters((number - 1) // 26) + chr(65 + (number - 1) % 26) if number else ""


def cell(place: str, value: Any) -> str:
    """Write a cell: a text, a number, True, an error, a formula, or (number, style)."""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, tuple):
        return f'<c r="{place}" s="{value[1]}"><v>{value[0]}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    if value.startswith("="):
        return f'<c r="{place}"><f>{value[1:]}</f><v>42</v></c>'
    if value.startswith("#"):
        return f'<c r="{place}" t="e"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'


def excel(path: str, hidden: int = 0, more: str = "", **sheets: dict[int, list[Any]]) -> str:
    """Write a workbook: for each sheet the rows by number; the first ones may be hidden."""
    types = (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/></Types>'
    )
    listed, related = "", f'<Relationship Id="s" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, rows) in enumerate(sheets.items(), start=1):
            state = ' state="hidden"' if number <= hidden else ""
            listed += f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="r{number}"{state}/>'
            target = f"worksheets/sheet{number}.xml"
            related += (
                f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="{target}"/>'
            )
            data = "".join(
                f'<row r="{row}">'
                + "".join(
                    cell(f"{letters(at)}{row}", value)
                    for at, value in enumerate(values, start=1)
                    if value is not None
                )
                + "</row>"
                for row, values in rows.items()
            )
            archive.writestr(
                f"xl/{target}",
                f'<worksheet xmlns="{SPREADSHEET}"><sheetData>{data}{more}</sheetData></worksheet>',
            )
        archive.writestr("[Content_Types].xml", types)
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="b" Type='
            f'"{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{SPREADSHEET}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
        )
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{SPREADSHEET}"><cellXfs count="5">{STYLES}</cellXfs></styleSheet>',
        )
    return path


def open_document(path: str, rows: str) -> str:
    spaces = " ".join(f'xmlns:{each}="{OPEN}:{each}:1.0"' for each in ("office", "table", "text"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{OPEN}:manifest:1.0"><m:file-entry m:full-path="/" m:media-type='
            '"application/vnd.oasis.opendocument.spreadsheet"/></m:manifest>',
        )
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet><table:table "
            f'table:name="S">{rows}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    return path


def office(kind: str, value: str = "", more: str = "") -> str:
    if kind == "string":
        return (
            f'<table:table-cell {more} office:value-type="string"><text:p>{value}</text:p>'
            "</table:table-cell>"
        )
    key = {"boolean": "boolean-value", "date": "date-value"}.get(kind, "value")
    return f'<table:table-cell {more} office:value-type="{kind}" office:{key}="{value}"/>'


def texts(raw: Raw) -> dict[str, list[str | None]]:
    return {each.name: [each.texts[place] for place in each.index] for each in raw.columns}


def read(path: str, **how: Any) -> dict[str, list[str | None]]:
    return texts(read_columns(path, Reading(**how)))


ROWS: dict[int, list[Any]] = {
    1: ["n", "x", "name", "yes", "day", "at", "clock", "span", "sum"],
    2: [1, 0.1, "Ann", True, (36526, DATE), (36526.5, MOMENT), (0.25, CLOCK), (1.25, SPAN), "=A2"],
    3: [
        -2,
        1 / 3,
        "a, &quot;b&quot;",
        False,
        (43831, DATE),
        (36526.75, MOMENT),
        None,
        None,
        "#N/A",
    ],
    4: [
        12345678901,
        2.5,
        " 007",
        True,
        None,
        (36527, MOMENT),
        (0.5, CLOCK),
        (0.5, SPAN),
        "#DIV/0!",
    ],
}


def test_cells_of_a_sheet_become_the_texts_of_a_csv():
    pytest.importorskip("python_calamine")
    assert read(excel("t.xlsx", people=ROWS)) == {
        "n": ["1", "-2", "12345678901"],
        "x": ["0.1", repr(1 / 3), "2.5"],
        "name": ["Ann", 'a, "b"', " 007"],
        "yes": ["true", "false", "true"],
        "day": ["2000-01-01", "2020-01-01", ""],
        "at": ["2000-01-01T12:00:00", "2000-01-01T18:00:00", "2000-01-02"],
        "clock": ["06:00:00", "", "12:00:00"],
        "span": ["30:00:00", "", "12:00:00"],
        "sum": ["42", "", ""],  # what was saved; nothing is computed
    }


def test_a_workbook_and_a_csv_make_the_same_table(capsys):
    pytest.importorskip("python_calamine")
    people = thinveil.people(20)
    rows = [["" if each is None else str(each) for each in row] for row in people.rows()]
    Path("t.csv").write_text("\n".join(",".join(row) for row in [people.schema.names, *rows]))
    numbers = [
        [float(text) if text and at in (0, 3) else text for at, text in enumerate(row)]
        for row in rows
    ]
    excel("t.xlsx", people=dict(enumerate([list(people.schema.names), *numbers], start=1)))
    assert thinveil.load("t.xlsx").digest() == thinveil.load("t.csv").digest()
    for words in (["audit"], ["schema"], ["audit", "--check-claim"], ["doctor"]):
        assert run([words[0], "t.xlsx", *words[1:]]) == 0, capsys.readouterr().err


def test_an_old_workbook_and_an_open_document_are_read():
    pytest.importorskip("python_calamine")
    Path("t.xls").write_bytes(OLD)
    found = read("t.xls")
    assert found["n"] == ["1", "2"]
    assert found["x"] == ["0.5", repr(1 / 3)]
    assert found["b"] == ["true", "false"]
    assert found["d"] == ["2020-01-02", ""]
    assert found["t"] == ["2020-01-02T03:04:05", ""]
    empty = '<table:table-cell table:number-columns-repeated="16380"/>'
    rows = [
        office("string", "a") + office("string", "b") + office("string", "c") + empty,
        office("float", "1") + office("boolean", "true") + office("date", "2020-01-02") + empty,
        office("percentage", "0.5") + empty,
    ]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    rest = f'<table:table-row table:number-rows-repeated="1048573">{empty}</table:table-row>'
    assert read(open_document("t.ods", table + rest)) == {
        "a": ["1", "0.5"], "b": ["true", ""], "c": ["2020-01-02", ""],
    }  # fmt: skip


def test_the_first_sheet_that_is_shown_is_read_and_told(capsys):
    pytest.importorskip("python_calamine")
    rows: dict[int, list[Any]] = {2: [1, 2], 3: [3, 4]}
    one, two, three = ({1: [name, "x"], **rows} for name in "abc")
    excel("t.xlsx", hidden=1, Secret=one, People=two, Other=three)
    raw = read_columns("t.xlsx", Reading())
    assert list(texts(raw)) == ["b", "x"]
    [said] = raw.assumed
    assert "of 3 sheets the first, 'People', is read (--sheet chooses another: 'Secret'" in said
    chosen = read_columns("t.xlsx", Reading(sheet="Other"))
    assert (list(texts(chosen)), chosen.assumed) == (["c", "x"], ())
    assert list(read("t.xlsx", sheet="Secret", drop="x")) == ["a"]
    with pytest.raises(
        DataError, match=r"no sheet 'people' \(did you mean 'People'\?\); the sheets"
    ):
        read("t.xlsx", sheet="people")
    assert run(["schema", "t.xlsx", "--sheet", "Other", "--output", "s.toml"]) == 0
    assert "--sheet Other" in capsys.readouterr().err


def test_a_sheet_is_laid_out_as_a_text_file_is():
    pytest.importorskip("python_calamine")
    rows: dict[int, list[Any]] = {
        2: [None, "Our people"],
        4: [None, None, "age", "job", None],
        5: [None, 1, 44, "nurse", None],
        6: [None, 2, 31, "clerk", None],
        8: [None, 3, 60, "judge", None],
    }
    raw = read_columns(excel("t.xlsx", people=rows), Reading())
    assert texts(raw) == {"age": ["44", "31", "60"], "job": ["nurse", "clerk", "judge"]}
    said = " ".join(raw.assumed)
    assert "line 2 is taken as a title" in said
    assert "counts the rows" in said
    kept = read("t.xlsx", keep_unnamed=True)
    assert list(kept) == ["column 1", "age", "job"]
    bare = excel("bare.xlsx", s={1: [1, 2.5], 2: [3, 4.5], 3: [3, 5.5]})
    assert list(read(bare)) == ["column 1", "column 2"]
    with pytest.raises(DataError, match="no records"):
        read(excel("short.xlsx", s={1: ["a", "b"]}))
    with pytest.raises(DataError, match="is empty"):
        read(excel("none.xlsx", s={}))


def test_errors_of_cells_are_missing_and_counted():
    pytest.importorskip("python_calamine")
    raw = read_columns(excel("t.xlsx", people=ROWS), Reading())
    assert raw.assumed == ("2 cells hold an error, such as #N/A, and count as missing",)
    excel("t.xlsx", s={1: ["a"], 2: [1], 3: ["#REF!"]})
    [said] = read_columns("t.xlsx", Reading()).assumed
    assert said.startswith("1 cell holds an error, such as #N/A, and counts as missing")


def test_a_spreadsheet_that_would_fill_the_memory_is_refused(monkeypatch):
    pytest.importorskip("python_calamine")
    far = excel("far.xlsx", s={1: ["a", 1]}, more='<row><c r="XFD1048576"><v>1</v></c></row>')
    odd = excel("odd.xlsx", s={1: ["a", 1]}, more="<row><c\tr = 'XFD1048576'><v>1</v></c></row>")
    for path in (far, odd):
        with pytest.raises(
            DataError, match=r"row 1,048,57[67] and column 16,384.*delete what stands"
        ):
            read(path)
    times = 'table:number-columns-repeated="16384"'
    row = f'<table:table-row table:number-rows-repeated="1000000">{office("float", "1", times)}'
    with pytest.raises(DataError, match="more than 100,000,000 cells"):
        read(open_document("far.ods", f"{row}</table:table-row>"))
    number = OLD.index(b"\x03\x02\x0e\x00") + 4  # a cell with a number: its row, its column
    Path("far.xls").write_bytes(OLD[:number] + b"\xff\xff\xff\xff" + OLD[number + 4 :])
    with pytest.raises(DataError, match="a damaged one"):
        read("far.xls")
    # a part that is larger than it says, as its true size is what counts
    with zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/sharedStrings.xml", bytes(100_000))
    content = Path("bomb.xlsx").read_bytes()
    Path("bomb.xlsx").write_bytes(content.replace((100_000).to_bytes(4, "little"), b"\1\0\0\0"))
    monkeypatch.setenv("THINVEIL_MOST_UNPACKED", str(2 * 65_536 / 2**30))
    with pytest.raises(DataError, match="unpacks to more than"):
        read("bomb.xlsx")


def test_cells_without_a_value_and_odd_names_of_parts_do_no_harm():
    pytest.importorskip("python_calamine")
    far = '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    excel("far.xlsx", s={1: ["a", "b"], 2: [1, "x\0y"]}, more=far)
    with zipfile.ZipFile("far.xlsx") as old, zipfile.ZipFile("odd.xlsx", "w") as new:
        for each in old.namelist():
            new.writestr(each.replace("/", "\\"), old.read(each))
    for name in ("far.xlsx", "odd.xlsx"):
        assert read(name) == {"a": ["1"], "b": ["xy"]}


def test_locked_and_damaged_spreadsheets_are_told():
    pytest.importorskip("python_calamine")
    locked = OLD[:512] + "EncryptedPackage".encode("utf-16-le") + OLD[512:]
    Path("locked.xlsx").write_bytes(locked)
    with pytest.raises(DataError, match="a password locks it"):
        read("locked.xlsx")
    whole = Path(excel("t.xlsx", people=ROWS)).read_bytes()
    for name, content in {
        "cut.xls": OLD[:1500],
        "cut.xlsx": whole[: len(whole) // 2],
        "odd.xlsx": _without(whole, "xl/_rels/workbook.xml.rels"),
    }.items():
        Path(name).write_bytes(content)
        with pytest.raises(DataError) as refused:
            read(name)
        assert name in str(refused.value)


def _without(content: bytes, member: str) -> bytes:
    Path("whole.zip").write_bytes(content)
    with zipfile.ZipFile("whole.zip") as old, zipfile.ZipFile("less.zip", "w") as new:
        for each in old.infolist():
            if each.filename != member:
                new.writestr(each, old.read(each))
    return Path("less.zip").read_bytes()


def test_texts_that_are_called_spreadsheets_are_read():
    for name in ("t.xls", "t.xlsx"):
        Path(name).write_text("a\tb\n1\t2\n3\t4\n")
        assert read(name) == {"a": ["1", "3"], "b": ["2", "4"]}
    for page in ("<html><table>", '\ufeff  <?xml version="1.0"?><Workbook>', "<TABLE><tr>"):
        Path("t.xls").write_text(page, encoding="utf-8")
        with pytest.raises(DataError, match=r"web page or XML, though its name ends in .xls: open"):
            read("t.xls")


def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "whole": [1.0, 2.0, None],
            "real": [0.1, 0.2, 1 / 3],
            "text": ["x", "", "\u00fc"],
            "day": [date(2020, 1, 2), None, date(1950, 1, 1)],
            "moment": [datetime(2020, 1, 2, 3, 4, 5), None, datetime(1950, 1, 1)],
            "sex": [1.0, 2.0, 9.0],
            "scale": [1.0, 5.0, 7.0],
        }
    )


WRITTEN = {
    "whole": ["1", "2", None],
    "real": ["0.1", "0.2", repr(1 / 3)],
    "text": ["x", "", "\u00fc"],
    "day": ["2020-01-02", None, "1950-01-01"],
    "moment": ["2020-01-02T03:04:05", None, "1950-01-01T00:00:00"],
    "sex": ["1", "2", "9"],
    "scale": ["1", "5", "7"],
}


@pytest.mark.parametrize("ending", ["dta", "sav", "zsav", "por", "xpt"])
def test_files_of_stata_spss_and_sas_are_read(ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    data, expected = frame(), dict(WRITTEN)
    write = {"zsav": "write_sav", "xpt": "write_xport"}.get(ending, f"write_{ending}")
    how: dict[str, Any] = {"compress": True} if ending == "zsav" else {}
    if ending == "por":  # knows ASCII and capitals only
        data, expected = (
            data.drop(columns="text"),
            {key.upper(): value for key, value in expected.items() if key != "text"},
        )
    getattr(pyreadstat, write)(data, f"t.{ending}", **how)
    assert read(f"t.{ending}") == expected
    name = list(expected)[1]
    assert read(f"t.{ending}", only=name) == {name: expected[name]}
    assert kind_of(f"t.{ending}") == "file"
    if ending != "por":
        Path("table").write_bytes(Path(f"t.{ending}").read_bytes())  # by its first bytes
        assert read("table") == expected
    schema = thinveil.load(f"t.{ending}").schema
    assert [each.kind for each in schema][-3:] == ["datetime", "integer", "integer"]


def test_labels_take_the_place_of_codes_and_what_counts_as_missing_is():
    pyreadstat = pytest.importorskip("pyreadstat")
    labels = {"sex": {1: "male", 2: "female", 9: "unknown"}, "scale": {5: "often"}}
    pyreadstat.write_sav(
        frame(), "t.sav", variable_value_labels=labels, missing_ranges={"sex": [9]}
    )
    raw = read_columns("t.sav", Reading())
    assert texts(raw)["sex"] == ["male", "female", None]
    assert texts(raw)["scale"] == ["1", "5", "7"]
    assert raw.assumed == (
        "the column 'sex' is read by the labels of values, not by their codes",
        "the column 'scale' is read by codes, as most of the values have no label",
    )
    pyreadstat.write_dta(frame(), "t.dta", variable_value_labels={"sex": {1: "m", 2: "m"}})
    assert read("t.dta")["sex"] == ["m (1)", "m (2)", "9"]


def test_floats_of_single_precision_show_no_digits_that_were_never_there():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyreadstat")
    pandas.DataFrame({"x": [28.98, 1e-7]}).astype("float32").to_stata("t.dta", write_index=False)
    assert read("t.dta") == {"x": ["28.98", "1e-07"]}


def test_statistics_that_cannot_be_read_are_told(monkeypatch):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(frame(), "t.sav")
    with pytest.raises(DataError, match=r"--only: there is no column 'Sex' \(did you mean"):
        read("t.sav", only="Sex")
    monkeypatch.setattr(statistics, "most_cells", lambda: 12)
    with pytest.raises(DataError, match="cells, which this kind of file is not read with"):
        read("t.sav")
    assert read("t.sav", only="sex")["sex"] == ["1", "2", "9"]
    pyreadstat.write_sav(frame()[:0], "none.sav")
    with pytest.raises(DataError, match="no records"):
        read("none.sav")
    for name in ("t.dta", "t.sas7bdat", "t.por", "t.xpt"):
        Path(name).write_bytes(b"r\2\1\0" + b"x" * 200)
        with pytest.raises(DataError, match=r"not a file of (Stata|SPSS|SAS), or a damaged one"):
            read(name)


def _sample(kind: str) -> Path:
    """Write a sound file of a kind."""
    path = Path(f"sound.{kind}")
    if kind in ("xls", "xlsx", "ods"):
        pytest.importorskip("python_calamine")
        row = f"<table:table-row>{office('string', 'a')}{office('float', '1')}</table:table-row>"
        if kind == "xls":
            path.write_bytes(OLD)
        else:
            _ = excel(str(path), s=ROWS) if kind == "xlsx" else open_document(str(path), row * 3)
        return path
    pyreadstat = pytest.importorskip("pyreadstat")
    name = {"zsav": "sav", "xpt": "xport"}.get(kind, kind)
    how: dict[str, Any] = {"compress": True} if kind == "zsav" else {}
    data = frame().drop(columns="text") if kind == "por" else frame()
    getattr(pyreadstat, f"write_{name}")(data, path, **how)
    return path


@pytest.mark.parametrize(
    ("kind", "seed"),
    sweep(
        [
            (kind, seed)
            for seed in range(20)
            for kind in ("xlsx", "xls", "ods", "sav", "zsav", "dta", "por", "xpt")
        ],
        160,
    ),
)
def test_damaged_files_are_read_or_refused(kind, seed):
    rng, sound = random.Random(seed), _sample(kind).read_bytes()
    for _ in range(10):
        content = bytearray(sound)
        for _ in range(rng.choice((1, 2, 5, 20))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        Path(f"t.{kind}").write_bytes(
            content[: rng.choice((len(sound), rng.randrange(len(sound))))]
        )
        with suppress(DataError):
            read(f"t.{kind}")


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.sampled_from("ab ,;\"'\n\u00fc=<"), max_size=5).map(lambda text: f"x{text}"),
)


@pytest.mark.nightly
@examples(400)
@given(st.lists(st.tuples(st.integers(0, 9), CELLS, CELLS), min_size=2, max_size=6))
def test_a_sheet_holds_what_a_csv_holds(tmp_path_factory, rows):
    pytest.importorskip("python_calamine")
    folder = tmp_path_factory.mktemp("same")
    rows = [(1, "x", 2.5), *rows]  # an empty row of a sheet is no record
    written = [[escape(each) if isinstance(each, str) else each for each in row] for row in rows]
    numbered = enumerate([["a", "b", "c"], *written], start=1)
    book = excel(str(folder / "t.xlsx"), s={number: list(row) for number, row in numbered})
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["a", "b", "c"], *([text_of(each) or "" for each in row] for row in rows)]
        )
    assert read(book, header=1) == read(str(folder / "t.csv"), header=1, separator=",", comment="")


def test_arrow_files_are_read():
    feather = pytest.importorskip("pyarrow.feather")
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    for name, how in (("t.feather", {}), ("t.arrow", {"compression": "uncompressed"})):
        feather.write_feather(table, name, **how)
        assert read(name) == {"a": ["1", "2"], "b": ["x", None]}
    Path("bad.arrow").write_bytes(b"ARROW1\0\0nothing")
    with pytest.raises(DataError, match="not a file of Arrow, or a damaged one"):
        read("bad.arrow")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.rds", b"\x1f\x8b\x08", r"a file of R: in R, write.csv"),
        ("t.RData", b"RDX3", r"a file of R: in R, write.csv"),
        ("t.pkl", b"\x80\x04", "a pickle, which is a program and not opened here: save"),
        ("t.json", b"[]", r"JSON, not a table: pandas.read_json"),
        ("t.jsonl", b'{"a": 1}\n', r"JSON, not a table: pandas.read_json"),
        ("t.csv", b'[{"a": 1}]', r"JSON, not a table"),
        ("t.html", b"<p>", "a web page or XML: open it in a spreadsheet program"),
        ("t.csv", b"<!DOCTYPE html><html>", "a web page or XML, though its name ends in .csv"),
        ("t", b"%PDF-1.7", "a PDF"),
        ("t.csv", b"\x89PNG\r\n\x1a\n", "a picture"),
        ("t.mdb", b"\0\1\0\0Standard Jet DB", "a database of Access: export"),
        ("t.db", b"SQLite format 3\0", "a database of SQLite: give its address, sqlite://PATH"),
        ("t.db", bytes(8) + b"DUCK", "a database of DuckDB: give its address, duckdb://PATH"),
        ("t.orc", b"ORC", "ORC: save the table as CSV or Parquet"),
        ("t.xlsb", b"x", "a binary workbook: open it"),
        ("t.npz", b"PK\3\4", "arrays of NumPy"),
        ("t.7z", b"7z\xbc\xaf", "an archive: unpack it, and give the table"),
    ],
)
def test_what_is_not_read_is_named_with_what_to_do(name, content, match, capsys):
    Path(name).write_bytes(content)
    with pytest.raises(DataError, match=match):
        thinveil.load(name)
    assert run(["audit", name]) == 1
    assert "--encoding" not in capsys.readouterr().err


def test_packed_files_of_other_kinds_are_to_be_unpacked():
    Path("t.xls.gz").write_bytes(gzip.compress(OLD))
    with pytest.raises(DataError, match="a packed file of old Excel: unpack it, and give that"):
        read("t.xls.gz")


def test_archives_of_other_programs_are_named():
    for member, what in (("word/document.xml", "a document"), ("xl/workbook.bin", "a binary")):
        with zipfile.ZipFile("t.zip", "w") as archive:
            archive.writestr(member, "x")
        with pytest.raises(DataError, match=what):
            read("t.zip")


def test_duckdb_is_not_asked_for_what_it_does_not_read(monkeypatch):
    pytest.importorskip("sqlglot")
    Path("t.xls").write_bytes(OLD)
    with pytest.raises(DataError, match=r"one of old Excel: use --engine memory, or save"):
        opened("t.xls", engine="duckdb")
    import os

    monkeypatch.setattr(os, "sysconf", lambda _: 1, raising=False)  # hardly any memory
    assert kind_of("t.xls") == "file"


@pytest.mark.parametrize(
    ("library", "extra", "name", "content"),
    [
        ("python_calamine", "excel", "t.xls", OLD),
        ("pyreadstat", "statistics", "t.sav", b"$FL2"),
        ("pyarrow", "arrow", "t.feather", b"ARROW1\0\0"),
    ],
)
def test_a_library_that_is_missing_is_named_by_its_extra(
    monkeypatch, library, extra, name, content
):
    Path(name).write_bytes(content)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"\[{extra}\]'"):
        read(name)


def test_the_page_opens_what_the_command_line_reads():
    pytest.importorskip("python_calamine")
    opened_there = from_file(OLD, "people.xls")
    assert opened_there.title == "people.xls"
    assert opened_there.data.records == 2
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_por(frame().drop(columns="text"), "t.por")
    assert from_file(Path("t.por").read_bytes(), "T.POR").data.records == 3


def test_every_kind_has_a_reader():
    for kind in registry.KINDS:
        module, _, name = kind.reader.partition(":")
        assert hasattr(__import__(f"thinveil.curator.tables.{module}", fromlist=["x"]), name)
    assert len(set(registry.ENDINGS)) == len(registry.ENDINGS)


def test_cells_are_written_in_one_way():
    assert text_of(float("nan")) is None
    assert text_of(time(1, 2, 3)) == "01:02:03"
    assert text_of(-timedelta(hours=1, seconds=0.5)) == "-01:00:00.500000"
    assert text_of(1e22) == "1e+22"
    assert cells.column_of("a", [1.0, None, 1.0]).texts == ["1", None]
