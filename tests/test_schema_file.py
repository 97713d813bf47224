"""Schemas as files: exact there and back, and every mistake named."""

from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.errors import SchemaError
from thinveil.language.numbers.double_codes import GREATEST, around
from thinveil.language.schema import KINDS, Attribute, Categories, Grid, Schema
from thinveil.language.schema_file import (
    parse_schema,
    read_schema,
    shipped_schemas,
    write_schema,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = TEXTS.filter(bool)
BIG = 2**62 - 1
STEPS: dict[str, st.SearchStrategy[Decimal]] = {
    "integer": st.integers(1, 10**6).map(Decimal),
    "date": st.integers(1, 400).map(Decimal),
    "datetime": st.sampled_from(["3600", "60", "1", "0.001", "0.000001", "0.25"]).map(Decimal),
    "time": st.sampled_from(["3600", "60", "1", "0.001", "0.000001", "0.25"]).map(Decimal),
    "decimal": st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent),
        st.integers(1, 9999),
        st.integers(-40, 3),
    ),
}
STEPS["double"] = st.sampled_from(["1e-38", "1", "5e-324", "1e-300", "2.5e200"]).map(Decimal)
FURTHEST = {"date": 20_000, "datetime": 60_000 * 10**6}


@st.composite
def grids(draw: st.DrawFn, name: str) -> Grid:
    """Draw a grid whose bounds, if any, can be written as values."""
    kind = draw(st.sampled_from(KINDS))
    step = draw(STEPS[kind])
    if draw(st.booleans()):
        return Grid(name, kind, step, missing=draw(st.booleans()))
    furthest = BIG
    if kind == "datetime":
        furthest = int(FURTHEST[kind] // step // 10**6)
    if kind == "date":
        furthest = int(FURTHEST[kind] // step)
    if kind == "double":
        furthest = min(BIG, around(GREATEST, float(step))[0])
    codes = st.integers(-furthest, furthest)
    if kind == "time":
        codes = st.integers(0, int(86_400 / step) - 1)
    lower, upper = sorted((draw(codes), draw(codes)))
    return Grid(name, kind, step, lower, upper, draw(st.booleans()))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Draw a schema with any names and categories that Unicode allows."""
    attributes: list[Attribute] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        if draw(st.booleans()):
            attributes.append(draw(grids(name)))
        else:
            values = tuple(draw(st.lists(TEXTS, max_size=5, unique=True)))
            attributes.append(Categories(name, values, not values or draw(st.booleans())))
    return Schema(tuple(attributes))


@given(schemas(), st.lists(TEXTS, max_size=3))
def test_round_trip_is_exact(schema: Schema, comments: list[str]) -> None:
    assert parse_schema(write_schema(schema, comments)) == schema


@given(schemas())
def test_round_trip_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema
) -> None:
    path = tmp_path_factory.mktemp("schema") / "a.toml"
    path.write_bytes(write_schema(schema, ["A comment."]).encode())
    assert read_schema(path) == schema


def test_reads_every_way_to_write_a_value() -> None:
    text = """
        attribute = [
            {name = "a", kind = "integer", lower = -3, upper = "12"},
            {name = "b", kind = "decimal", step = 0.1, lower = 0.3, upper = "1e3"},
            {name = "c", kind = "date", lower = 1970-01-02, upper = "1970-01-31", missing = true},
            {name = "d", kind = "datetime", step = "60", lower = 1970-01-01, upper = 1970-01-01T01:00:00},
            {name = "e", kind = "category", values = [1, true, 2.50, "x", 2020-01-01]},
        ]
    """  # noqa: E501
    assert parse_schema(text) == Schema(
        (
            Grid("a", lower=-3, upper=12),
            Grid("b", "decimal", Decimal("0.1"), 3, 10_000),
            Grid("c", "date", lower=1, upper=30, missing=True),
            Grid("d", "datetime", Decimal(60), 0, 60),
            Categories("e", ("1", "true", "2.50", "x", "2020-01-01")),
        )
    )


def test_writes_for_people() -> None:
    schema = Schema(
        (
            Grid("s", "decimal", Decimal("0.01"), 0, 10_000_000, missing=True),
            Grid("d", "date", lower=0, upper=364),
            Grid("t", "datetime", Decimal("0.5"), 0, 3),
        )
    )
    text = write_schema(schema, ["One.", "Two\nthree."])
    assert text.startswith("# One.\n# Two\n# three.\n\n[[attribute]]\n")
    assert 'step = "0.01"\nlower = "0.00"\nupper = "100000.00"\nmissing = true' in text
    assert f"upper = {date(1970, 12, 31)}" in text
    assert f"upper = {datetime(1970, 1, 1, 0, 0, 1, 500_000)}" in text


def test_refuses_to_write_what_no_file_can_hold() -> None:
    with pytest.raises(SchemaError, match=r"'when'.*between the years"):
        write_schema(Schema((Grid("when", "date", lower=0, upper=10**9),)))
    with pytest.raises(SchemaError, match="not valid Unicode"):
        write_schema(Schema((Grid("a\ud800"),)))


GRID = 'name = "x"\nkind = "integer"\n'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "at least one"),
        ("attribute = 3", r"\[\[attribute\]\]"),
        ("attribute = [3]", r"\[\[attribute\]\]"),
        ("[attribute]\nname = 'x'", r"\[\[attribute\]\]"),
        ("[[attribute]\n", "not a TOML file.*at line 1, column"),
        ("a = [", "not a TOML file.*at end of document"),
        ("title = 3\n[[attribute]]\n" + GRID, "unknown key 'title'"),
        ('[[attribute]]\nkind = "integer"', "attribute 1: needs a name"),
        ('[[attribute]]\nname = 3\nkind = "integer"', "attribute 1: needs a name"),
        ('[[attribute]]\nname = "x"', "'x': needs a kind"),
        ('[[attribute]]\nname = "x"\nkind = "float"', "'x': unknown kind 'float'"),
        ('[[attribute]]\nname = "x"\nkind = []', "'x': unknown kind"),
        ("[[attribute]]\n" + GRID + "lowest = 3", "'x': unknown key 'lowest'"),
        ("[[attribute]]\n" + GRID + "values = []", "'x': unknown key 'values'"),
        ('[[attribute]]\nname = "x"\nkind = "category"\nstep = 1', "unknown key 'step'"),
        ('[[attribute]]\nname = "x"\nkind = "category"', "'x': needs values"),
        ('[[attribute]]\nname = "x"\nkind = "category"\nvalues = "a"', "'x': needs values"),
        ('[[attribute]]\nname = "x"\nkind = "category"\nvalues = [[]]', "'x': values must"),
        ('[[attribute]]\nname = "x"\nkind = "category"\nvalues = []', "'x': no categories"),
        ('[[attribute]]\nname = "x"\nkind = "category"\nvalues = [1, "1"]', "'x'.* twice"),
        ('[[attribute]]\nname = "x"\nkind = "decimal"', "'x': kind decimal needs a step"),
        ("[[attribute]]\n" + GRID + "step = 0", "'x': the step must be above zero"),
        ("[[attribute]]\n" + GRID + "step = 0.5", "'x'.*whole number"),
        ("[[attribute]]\n" + GRID + "step = nan", "'x': the step must be a number"),
        ("[[attribute]]\n" + GRID + "step = 'one'", "'x': the step must be a number"),
        ("[[attribute]]\n" + GRID + "step = true", "'x': the step must be a number"),
        ("[[attribute]]\n" + GRID + "missing = 1", "'x': missing must be true or false"),
        ("[[attribute]]\n" + GRID + "lower = 1", "'x': give both bounds or none"),
        ("[[attribute]]\n" + GRID + "lower = 2\nupper = 1", "'x': the lower bound is above"),
        ("[[attribute]]\n" + GRID + "lower = 0.5\nupper = 1", "'x': lower is not of kind"),
        ("[[attribute]]\n" + GRID + "lower = 0\nupper = inf", "'x': upper is not of kind"),
        ("[[attribute]]\n" + GRID + "lower = true\nupper = 1", "'x': lower must be a number"),
        ("[[attribute]]\n" + GRID + "lower = 2020-01-01\nupper = 1", "lower must be a number"),
        ("[[attribute]]\n" + GRID + f"lower = 0\nupper = {2**62}", "'x': upper.*too large"),
        ("[[attribute]]\n" + GRID + "lower = 0\nupper = 1e999999", "'x': upper.*too large"),
        ('[[attribute]]\nname = "x"\nkind = "date"\nlower = 3\nupper = 4', "'x': lower must"),
        ("[[attribute]]\n" + GRID + "[[attribute]]\n" + GRID, "'x' stands twice"),
    ],
)
def test_names_every_mistake(tmp_path: Path, body: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(body)
    with pytest.raises(SchemaError, match=message) as caught:
        read_schema(path)
    assert "mine.toml" in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_names_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"no such schema file.*bank"):
        read_schema(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="cannot be read"):
        read_schema(tmp_path)
    with pytest.raises(SchemaError, match="cannot be the path"):
        read_schema("a\0b")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(SchemaError, match="UTF-8"):
        read_schema(os.fspath(tmp_path / "latin.toml"))


def test_a_table_given_as_a_schema_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("name,illness\ncanary,cholera\n")
    with pytest.raises(SchemaError, match="not a TOML file") as caught:
        read_schema(path)
    assert "canary" not in str(caught.value)


def test_bank_comes_with_the_package() -> None:
    assert shipped_schemas() == ["bank"]
    bank = read_schema("bank")
    assert len(bank) == 17
    bounds = {each.name: (each.lower, each.upper) for each in bank if isinstance(each, Grid)}
    assert bounds == {
        "age": (0, 125),
        "balance": (-100_000, 1_000_000),
        "day": (0, 31),
        "duration": (0, 10_000),
        "campaign": (0, 100),
        "pdays": (-1, 2000),
        "previous": (0, 2000),
    }
    for each in bank:
        assert not each.missing
        if isinstance(each, Categories):
            assert list(each.values) == sorted(each.values)
