"""Files that are often given and not read: what they are, and what to do instead."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class _Other:
    """A kind that is not read: how it is known, what it is, and what to do."""

    what: str
    todo: str = ""
    endings: tuple[str, ...] = ()
    starts: tuple[bytes, ...] = ()
    holds: str = ""


_SAVE: Final = "save the table as CSV or Parquet where it was made, and give that"
_OFFICE: Final = "open it in a spreadsheet program, save it as .xlsx, and give that"
_UNPACK: Final = "unpack it, and give the table"
_R: Final = 'in R, write.csv(TABLE, "table.csv", row.names = FALSE) writes one that is read here'
_JSON: Final = (
    'pandas.read_json(FILE).to_csv("table.csv", index=False) often makes a table of it (with '
    "lines=True for lines of JSON)"
)
_OTHERS: Final = (
    _Other("a file of R", _R, (".rds", ".rda", ".rdata")),
    _Other("a pickle, which is a program and not opened here", _SAVE, (".pkl", ".pickle")),
    _Other(
        "JSON, not a table", _JSON, (".json", ".jsonl", ".ndjson"), (b'{"', b"[{", b"{\n", b"[\n")
    ),
    _Other("a binary workbook", _OFFICE, (".xlsb",), (), "xl/workbook.bin"),
    _Other("a file of Numbers", _OFFICE, (".numbers",), (), "index/document.iwa"),
    _Other(
        "a document", "save its table as CSV, and give that", (".docx",), (), "word/document.xml"
    ),
    _Other("a presentation", _SAVE, (".pptx",), (), "ppt/presentation.xml"),
    _Other("a web page or XML", _OFFICE, (".html", ".htm", ".xml")),
    _Other("a PDF", _SAVE, (".pdf",), (b"%PDF-",)),
    _Other(
        "a picture",
        _SAVE,
        (".png", ".jpg", ".jpeg", ".gif"),
        (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"),
    ),
    _Other(
        "a database of SQLite",
        "give its address, sqlite://PATH, and --table NAME",
        (),
        (b"SQLite format 3\0",),
    ),
    _Other(
        "a database of Access",
        "export the table as CSV there, and give that",
        (".mdb", ".accdb"),
        (b"\0\1\0\0Standard",),
    ),
    _Other("a file of HDF5", _SAVE, (".h5", ".hdf5"), (b"\x89HDF\r\n",)),
    _Other("a file of Matlab", _SAVE, (".mat",), (b"MATLAB 5.0 MAT",)),
    _Other("arrays of NumPy", _SAVE, (".npy", ".npz"), (b"\x93NUMPY",)),
    _Other("ORC", _SAVE, (".orc",)),
    _Other("Avro", _SAVE, (".avro",), (b"Obj\1",)),
    _Other("an archive", _UNPACK, (".tar", ".7z", ".rar"), (b"7z\xbc\xaf", b"Rar!\x1a\x07")),
)
"""What is often given and not read."""
_DUCKDB: Final = (8, b"DUCK")  # the mark of its files, and where it stands
_MARKUP: Final = (b"<!doctype", b"<html", b"<?xml", b"<table", b"<head", b"<meta")


def refusal(ending: str, head: bytes, members: Collection[str]) -> str:
    """Say what a file is that is not read, and what to do; empty where it may be read.

    Args:
        ending: How its name ends, in small letters.
        head: How its content begins.
        members: The names of the files in it, where it is an archive.
    """
    place, mark = _DUCKDB
    if head[place : place + len(mark)] == mark:
        return "this is a database of DuckDB: give its address, duckdb://PATH, and --table NAME"
    if _is_markup(head):
        named = f", though its name ends in {ending}" if ending in (".xls", ".xlsx", ".csv") else ""
        return f"this is a web page or XML{named}: {_OFFICE}"
    for each in _OTHERS:
        if each.starts and head.startswith(each.starts):
            return f"this is {each.what}: {each.todo}"
        if ending in each.endings or (each.holds and each.holds in members):
            return f"this is {each.what}: {each.todo}"
    return ""


def _is_markup(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return text.startswith(_MARKUP)
