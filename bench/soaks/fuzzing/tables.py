"""Tables in files: texts, Parquet, Arrow, spreadsheets; damaged, of odd types, with odd cells."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.soaks.fuzzing.cases import CANARY, Case, broken, commanded, written
from bench.soaks.fuzzing.mutating import TEXTS, damaged
from thinveil import load


def whole_csv(rng: np.random.Generator) -> bytes:
    """Return a small table with all kinds of columns, as text."""
    separator = [",", ";", "\t"][rng.integers(3)]
    lines = [["id", "name", "born", "seen", "pay", "kids"]]
    lines += [
        [
            str(number - 5),
            ["ann", '"b, c"', "", "d d", "é"][rng.integers(5)],
            f"19{rng.integers(10, 99)}-0{rng.integers(1, 9)}-11",
            f"2024-01-0{rng.integers(1, 9)}T0{rng.integers(0, 9)}:00:00",
            ["", f"{rng.integers(0, 9999) / 100}"][rng.integers(2)],
            str(rng.integers(0, 4)),
        ]
        for number in range(int(rng.integers(2, 30)))
    ]
    end = ["\n", "\r\n"][rng.integers(2)]
    return (end.join(separator.join(line) for line in lines) + end).encode()


def arrow_table(rng: np.random.Generator) -> Any:
    """Return a small table with all kinds of columns, as one of Arrow; some types are odd."""
    import pyarrow as pa

    rows = int(rng.integers(1, 40))
    whole = rng.integers(-5, 5, rows)
    columns = {
        "whole": pa.array(whole, [pa.int8(), pa.int64()][rng.integers(2)]),
        "text": pa.array([None if each < -3 else f"t{each}" for each in whole]),
        "real": pa.array(whole / 4, [pa.float32(), pa.float64()][rng.integers(2)]),
        "day": pa.array(whole.astype(np.int32)).cast(pa.date32()),
    }
    odd: list[Any] = [
        pa.array([[1, 2]] * rows), pa.array([{"a": 1}] * rows), pa.nulls(rows),
        pa.array([b"\xff"] * rows), pa.array(["x"] * rows).dictionary_encode(),
        pa.array(whole * 2**45, pa.timestamp("s")), pa.array(whole, pa.duration("s")),
        pa.array(whole * 2**40, pa.timestamp("ms", "Asia/Kolkata")), pa.array([True] * rows),
        pa.array(np.float16(whole)), pa.array([10**30] * rows, pa.decimal128(38, 4)),
        pa.array([float("nan")] * rows), pa.array(whole * 10**9, pa.date64()),
        pa.array(["\ud7ff\x1b[2J"] * rows, pa.large_string()),
        pa.array([0] * rows, pa.time64("ns")),
        pa.array([[]] * rows, pa.list_(pa.null())), pa.array([2**63] * rows, pa.uint64()),
    ]  # fmt: skip
    names = ["odd", "", "whole", "a.b", "\0", "x" * 300, "text "]
    for name in rng.choice(names, int(rng.integers(0, 3)), replace=False).tolist():
        columns[name] = odd[rng.integers(len(odd))]
    return pa.table(columns)


def whole_parquet(rng: np.random.Generator) -> bytes:
    """Return a small table as Parquet, in one of the ways in which it is written."""
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(
        arrow_table(rng), file,
        compression=["none", "snappy", "zstd", "gzip"][rng.integers(4)],
        use_dictionary=bool(rng.integers(2)), data_page_size=int(rng.choice([64, 2**20])),
        data_page_version=["1.0", "2.0"][rng.integers(2)], row_group_size=int(rng.integers(3, 50)),
    )  # fmt: skip
    return file.getvalue()


def whole_arrow(rng: np.random.Generator) -> bytes:
    """Return a small table as a file of Arrow."""
    import pyarrow as pa

    table = arrow_table(rng)
    options = pa.ipc.IpcWriteOptions(compression=[None, "zstd", "lz4"][rng.integers(3)])
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=int(rng.integers(3, 50)))
    return file.getvalue()


def csv_bytes(rng: np.random.Generator, folder: Path) -> Case:
    """A text file with damage in it, some compressed, some damaged after that."""
    content = damaged(whole_csv(rng), rng)
    packing = rng.integers(6)
    if packing == 0:
        content = gzip.compress(content)
    elif packing == 1:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", content)
        content = file.getvalue()
    if packing < 2 and rng.integers(2):
        content = broken(content, rng)
    return partial(load, written(folder, "table.csv", content))


def csv_cells(rng: np.random.Generator, folder: Path) -> Case:
    """A sound text file with odd cells, a value of which no message may show."""
    rows = [
        [f"{CANARY} {number % 3}", str(number), f"{number}.5", f"2024-01-{number + 1:02}"]
        for number in range(28)
    ]
    for _ in range(int(rng.integers(1, 6))):
        text = TEXTS[rng.integers(len(TEXTS))].decode("utf-8", "replace")
        rows[rng.integers(1, 28)][rng.integers(4)] = '"' + text.replace('"', '""') + '"'
    lines = ["name,number,real,day", *(",".join(row) for row in rows)]
    path = written(folder, "table.csv", "\n".join(lines).encode())
    if rng.integers(2):
        return partial(load, path)
    engine = ["memory", "duckdb"][int(rng.integers(8) == 0)]
    words = ["--max-queries", "200", "--engine", engine, "--transcript", str(folder / "t")]
    return partial(commanded, ["audit", str(path), *words])


def parquet_bytes(rng: np.random.Generator, folder: Path) -> Case:
    """A Parquet file, damaged or of odd types."""
    content = whole_parquet(rng)
    if rng.integers(5):
        content = broken(content, rng)
    path = written(folder, "table.parquet", content)
    if rng.integers(10) == 0:
        words = ["--max-queries", "100", "--engine", "duckdb", "--transcript", str(folder / "t")]
        return partial(commanded, ["audit", str(path), *words])
    return partial(load, path)


def arrow_bytes(rng: np.random.Generator, folder: Path) -> Case:
    """A file of Arrow, damaged or of odd types."""
    content = whole_arrow(rng)
    if rng.integers(5):
        content = broken(content, rng)
    return partial(load, written(folder, "table.arrow", content))


def sheets(rng: np.random.Generator, folder: Path) -> Case:
    """A spreadsheet, damaged in its archive or in the XML of a part."""
    name = ["t.xlsx", "t.ods"][rng.integers(2)]
    source = _sheet(name.endswith("ods"))
    if rng.integers(2):
        return partial(load, written(folder, name, broken(source, rng)))
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(source)) as old, zipfile.ZipFile(file, "w") as new:
        chosen = rng.integers(len(old.namelist()))
        for number, part in enumerate(old.namelist()):
            content = old.read(part)
            new.writestr(part, damaged(content, rng) if number == chosen else content)
    return partial(load, written(folder, name, file.getvalue()))


@cache
def _sheet(open_document: bool) -> bytes:
    """Return a small spreadsheet, written by hand."""
    rows: list[tuple[object, object]] = [("name", "age")]
    rows += [(f"a{n % 3}", n) for n in range(8)]
    if not open_document:
        return workbook(
            "".join(
                f'<row r="{at}"><c r="A{at}" t="str"><v>{a}</v></c>'
                f'<c r="B{at}" t="str"><v>{b}</v></c></row>'
                for at, (a, b) in enumerate(rows, start=1)
            )
        )
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{each}</text:p>'
            "</table:table-cell>"
            for each in row
        )
        + "</table:table-row>"
        for row in rows
    )
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    return archived(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{urn}:manifest:1.0"><m:file-entry '
            'm:full-path="/" m:media-type="application/vnd.oasis.opendocument.spreadsheet"/>'
            "</m:manifest>",
            "content.xml": f'<office:document-content xmlns:office="{urn}:office:1.0" '
            f'xmlns:table="{urn}:table:1.0" xmlns:text="{urn}:text:1.0"><office:body>'
            f'<office:spreadsheet><table:table table:name="s">{cells}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def workbook(cells: str) -> bytes:
    """Return an Excel file of one sheet, of which the rows are given."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    return archived(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default '
            'Extension="xml" ContentType="application/xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
            '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
            "</Relationships>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}'
            "</sheetData></worksheet>",
        }
    )


def archived(parts: Mapping[str, str | bytes]) -> bytes:
    """Return an archive (ZIP) of some parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()
