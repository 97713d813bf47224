"""Small files that unpack to a great deal: tests and measurements share them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from bench.soaks.fuzzing.tables import archived, workbook

ROWS = 1_000_000
"""So many rows have the tables, of 8 bytes and more once they are read."""


def _parquet(table: Any, **how: Any) -> bytes:
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", row_group_size=len(table), **how)
    return file.getvalue()


def zeros() -> bytes:
    """Whole numbers, all the same: a run of a dictionary's only entry."""
    import pyarrow as pa

    return _parquet(pa.table({"a": np.zeros(ROWS, np.int64)}))


def pages() -> bytes:
    """The same without a dictionary: one page that unpacks to all of it."""
    import pyarrow as pa

    table = pa.table({"a": np.zeros(ROWS, np.int64)})
    return _parquet(table, use_dictionary=False, data_page_size=2**30)


def texts() -> bytes:
    """Long texts, all the same: one page."""
    import pyarrow as pa

    return _parquet(pa.table({"a": ["x" * 100_000] * 200}), use_dictionary=False)


def counting() -> bytes:
    """Whole numbers, all different: each a step of one after the other."""
    import pyarrow as pa

    table = pa.table({"a": np.arange(ROWS // 2)})
    return _parquet(table, use_dictionary=False, column_encoding={"a": "DELTA_BINARY_PACKED"})


def prefixes() -> bytes:
    """Long texts, each one character longer than the one before."""
    import pyarrow as pa

    texts = ["x" * (100_000 + number) for number in range(500)]
    return _parquet(
        pa.table({"a": texts}),
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
        write_statistics=False,
    )


def repeated() -> bytes:
    """Two thousand million rows: many row groups that are all the same bytes of the file."""
    import pyarrow.parquet as pq

    one = zeros()
    metadata, first = (pq.ParquetFile(io.BytesIO(one)).metadata for _ in range(2))
    for _ in range(2_000_000_000 // ROWS - 1):
        metadata.append_row_groups(first)
    footer = io.BytesIO()
    metadata.write_metadata_file(footer)
    start = len(one) - 8 - int.from_bytes(one[-8:-4], "little")
    return one[:start] + footer.getvalue()[4:]


def lists() -> bytes:
    """Lists in lists in lists, of nothing."""
    import pyarrow as pa

    kind: Any = pa.int64()
    for _ in range(40):
        kind = pa.list_(kind)
    return _parquet(pa.table({"a": pa.nulls(ROWS, kind)}))


def _arrow(table: Any, compression: str | None = None) -> bytes:
    import pyarrow as pa

    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue()


def arrow() -> bytes:
    """A file of Arrow with a compressed buffer."""
    import pyarrow as pa

    return _arrow(pa.table({"a": np.zeros(ROWS, np.int64)}), "zstd")


def arrow_nulls() -> bytes:
    """A file of Arrow with columns that have no content, and so any length."""
    import pyarrow as pa

    return _arrow(pa.table({name: pa.nulls(2**31 - 1) for name in "ab"}))


def arrow_dictionary() -> bytes:
    """A file of Arrow with a compressed dictionary of one long text."""
    import pyarrow as pa

    texts = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["x" * 2**25]))
    return _arrow(pa.table({"a": texts}), "zstd")


def _text() -> bytes:
    return b"a\n" + b"1\n" * ROWS


def zipped() -> bytes:
    """A text in an archive."""
    return archived({"a.csv": _text()})


def sheet() -> bytes:
    """A sheet of many rows."""
    return workbook('<row><c t="str"><v>a</v></c><c><v>1</v></c></row>' * 100_000)


def far_sheet() -> bytes:
    """A sheet with a cell far away from the first one; no cell says where it stands."""
    cell = "<c><v>1</v></c>"
    return workbook(
        f"<row>{cell}</row>" + "<row/>" * 20_000 + f"<row>{'<c/>' * 16_000}{cell}</row>"
    )


def spss() -> bytes:
    """A compressed file of SPSS with long texts."""
    import tempfile

    import pandas as pd
    import pyreadstat

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.zsav"
        pyreadstat.write_sav(pd.DataFrame({"a": ["x" * 30_000] * 2_000}), path, compress=True)
        return path.read_bytes()


BOMBS: Mapping[str, Callable[[], bytes]] = {
    "zeros.parquet": zeros,
    "pages.parquet": pages,
    "counting.parquet": counting,
    "prefixes.parquet": prefixes,
    "repeated.parquet": repeated,
    "zeros.arrow": arrow,
    "nulls.arrow": arrow_nulls,
    "dictionary.arrow": arrow_dictionary,
    "text.csv.gz": lambda: gzip.compress(_text(), 6),
    "text.csv.bz2": lambda: bz2.compress(_text()),
    "text.csv.xz": lambda: lzma.compress(_text()),
    "text.csv.zip": zipped,
    "line.csv.gz": lambda: gzip.compress(b"1" * 2**25),
    "commas.csv.gz": lambda: gzip.compress((b"," * 30_000 + b"\n") * 300),
    "sheet.xlsx": sheet,
    "far.xlsx": far_sheet,
    "texts.zsav": spss,
}
"""What makes each of the files."""
