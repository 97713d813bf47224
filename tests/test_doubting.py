"""Which public lists of texts are doubted, since they hold numbers or dates to all appearance."""

from pathlib import Path

import pytest

from thinveil.curator.tables.doubting import like_values, ranges_in
from thinveil.curator.tables.files import load

WIDE = "".join(chr(0xFF10 + n) for n in range(10))  # the digits of full width
VALUES = (
    ("40K", "41K", "1.2M", "3M", "57K"), ("5kg", "6kg", "7kg", "8.5kg", "12kg"),
    ("$5k", "$6k", "$7k", "$9k", "$12k"), tuple(f"{n} months" for n in range(1, 7)),
    tuple(f"{n}°C" for n in range(5)), tuple(f"{n} °C" for n in range(5)),
    tuple(f"R{n}" for n in range(500, 506)), tuple(f"Rp{n}000" for n in range(5, 12)),
    tuple(f"{n}_000" for n in range(1, 6)), ("120/80", "130/85", "110/70", "125/80", "140/90"),
    tuple(f"USD {n}k" for n in range(5)), tuple(f"kg {n}.5" for n in range(5)),
    ("~5", "~7", "~9", "~12", "~30"), ("1:23.45", "1:24.00", "1:30.12", "2:01.99", "1:59.10"),
    ("5h 30m", "6h 10m", "7h 45m", "1h 5m", "2h 2m"), ("١٢", "١٣", "٢٥", "٣٠", "٤٤"),
    tuple(one + "\uff15" for one in WIDE), ("2020Q1", "2020Q2", "2020Q3", "2020Q4", "2021Q1"),
    ("Mär 1992", "Mai 1993", "Okt 1994", "Dez 1995", "févr. 1990"),
    ("1. Januar 1990", "3. März 1991", "4. Mai 1992", "5. Juli 1993", "6. Mai 1994"),
    ("555-1234", "555-2345", "555-8765", "556-1111", "557-9000"),
    ("12345-6789", "12346-1000", "23456-0001", "34567-1111", "45678-2222"),
)  # fmt: skip
LABELS = (
    tuple(f"group {n}" for n in range(1, 9)), tuple(f"A{n}" for n in range(1, 20)),
    tuple(f"P{n:03}" for n in range(1, 200)), tuple(f"[{n},]" for n in range(1, 50)),
    ("1st grade", "2nd grade", "3rd grade", "4th grade", "5th grade"),
    ("1 - never", "2 - rarely", "3 - often", "4 - mostly", "5 - always"),
    ("Mazda RX4", "Datsun 710", "Hornet 4 Drive", "Valiant", "Merc 240D", "Merc 230"),
    ("18-24", "25-34", "35-44", "45-54", "65+"), ("(0,5]", "(5,10]", "(10,15]", "(15,20]", "x"),
    ("5kg", "6kg", "7kg"),
)  # fmt: skip


@pytest.mark.parametrize("texts", VALUES, ids=lambda texts: texts[0])
def test_numbers_beside_what_others_share_are_values(texts: tuple[str, ...]) -> None:
    assert like_values(texts) == set(texts)


@pytest.mark.parametrize("texts", LABELS, ids=lambda texts: texts[0])
def test_labels_and_ranges_are_none(texts: tuple[str, ...]) -> None:
    assert 2 * len(like_values(texts)) < len(texts)


def test_a_list_of_units_is_doubted_in_the_verdict_and_one_of_ranges_mildly(tmp_path: Path) -> None:
    ages = ("18-24", "25-34", "35-44", "45-54", "65+")
    lines = [f"{40 + n % 9}K,{ages[n % 5]},group {n % 7}" for n in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["wage,age,arm", *lines]), "utf-8")
    remarks = load(path).remarks
    assert remarks.numbers == ("wage",)
    assert [each.split("'")[1] for each in remarks.doubts] == ["wage", "age"]
    assert "holds ranges of numbers" in remarks.doubts[1]


def test_ranges_that_overlap_are_no_ranges() -> None:
    assert ranges_in(["1-5", "3-9"]) == set()
    assert ranges_in(["$10,000 to $19,999", "$20,000 to $29,999"])
