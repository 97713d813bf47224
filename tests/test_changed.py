"""What is told of values that change when a table is read."""

from pathlib import Path
from typing import Any

import pytest

import thinveil
from thinveil.curator.database.table import open_database
from thinveil.curator.tables.reading import Remarks


def remarks(path: Path, text: str, **how: Any) -> Remarks:
    path.write_text(text, "utf-8")
    return thinveil.load(path, **how).remarks


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("2020-01-01T00:00:00+01:00", "2020-01-02T00:00:00Z"), "counted in UTC"),
        (("2020-01-01T00:00:00Z", "2020-01-02T00:00:00+00:00"), ""),
        (("1.10", "1.1", "1.2"), "as 1.10 and 1.1 do"),
        (("1e5", "100000"), "as 1.10 and 1.1 do"),
        (("1e5", "12e4", "3e7"), "numbers like 12e4"),
        (("5", "5.0", "3", "0", "0e0", "2.50", "2.75", "1e-05", "1e+05"), ""),
    ],
)
def test_what_becomes_another_text_or_the_same_number_is_told(
    texts: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    said = remarks(tmp_path / "t.csv", "\n".join(["x", *texts]) + "\n").assumed
    assert [told in each for each in said] == ([True] if told else [])


def test_zones_of_frames_and_parquet_files_are_told(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    at = pd.to_datetime(["2020-01-01 00:00", "2020-01-02 05:00"])
    frame = pd.DataFrame({"t": at.tz_localize("Europe/Berlin"), "u": at.tz_localize("UTC")})
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        (said,) = thinveil.load(source).remarks.assumed
        assert said == "column 't': times with an offset or in a zone are counted in UTC"


@pytest.mark.parametrize(
    ("texts", "told", "away"),
    [
        (("12345678901234567890", "12345678901234567891", "5"), "steps of 10,", True),
        (("1.7976931348623157e308", "0.5", "0.3333333333333333", "2.25"), "0 and 10 in", True),
        (("1234567890123.1234567", "2.0000005", "3.5", "4.5"), "steps of 0.000001,", False),
    ],
)
def test_rounding_says_what_is_left(
    texts: tuple[str, ...], told: str, away: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    found = remarks(path, "\n".join(["x", *texts]) + "\n")
    (said,) = found.assumed
    assert told in said
    assert f"of {len(texts)} different values " in said
    assert f" of {len(texts)} records change" in said
    assert found.rounded_away == (("x",) if away else ())
    text = thinveil.audit(path).sentence()
    assert ("most different values became one" in text) == away
    with open_database(str(path)) as table:  # which does not count the records that change
        assert table.remarks.rounded_away == found.rounded_away
        assert table.remarks.assumed == (said.partition(", and ")[0],)


def test_what_is_left_out_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = ",x,x\n10,1,2\n11,2,2\n13,3,4\n"
    assert len(remarks(path, text).assumed) == 2
    assert remarks(path, text, drop=("column 1", "x (2)")).assumed == ()
