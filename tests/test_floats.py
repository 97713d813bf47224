"""Floats of full precision: exact codes of doubles, grids for columns, rounding that is said."""

from __future__ import annotations

import csv
import json
import math
import random
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thinveil
from thinveil.commands.main import run
from thinveil.curator.tables.coding import coder
from thinveil.curator.tables.drafting import draft_schema
from thinveil.curator.tables.number_grids import grid_of_numbers
from thinveil.errors import DataError, SchemaError, UsageError
from thinveil.language.numbers.digits import digits_of, held, without_noise
from thinveil.language.numbers.double_codes import GREATEST, SMALLEST, around, value_of
from thinveil.language.schema import LIMIT, Grid, Schema
from thinveil.language.schema_file import parse_schema, write_schema
from thinveil.language.wire.facts import facts_from_plain, facts_to_plain

DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
STEPS = [5e-324, 1e-300, float(SMALLEST), 1e-5, 1.0, 1e300]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")


def table(**columns: Any) -> str:
    with Path("t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return "t.csv"


def measured(seed: int, many: int) -> list[float]:
    """Return floats as standardised measurements are: 16 and 17 digits, both signs."""
    chosen = random.Random(seed)
    return [chosen.gauss(0, 0.0476) for _ in range(many)]


def wide(seed: int, many: int) -> list[float]:
    chosen = random.Random(seed)
    return [chosen.gauss(0, 1) * 10.0 ** chosen.randint(-30, 90) for _ in range(many)]


# ---- codes of doubles


@given(DOUBLES, DOUBLES, st.sampled_from(STEPS))
@example(5e-324, -5e-324, 5e-324)
@example(GREATEST, 0.0, 1e300)
@example(math.nextafter(1e-38, 0), 1e-38, 1e-38)
def test_codes_of_doubles_keep_their_order_and_come_back(a: float, b: float, step: float) -> None:
    for each in (a, b):
        low, high = around(each, step)
        assert low <= high <= low + 1
        assert value_of(low, step) <= each <= value_of(high, step)
        assert (low == high) == (each == 0 or abs(each) >= step)
        assert around(-each, step) == (-high, -low)
    if around(a, step)[0] != around(a, step)[1] or around(b, step)[0] != around(b, step)[1]:
        return
    assert (around(a, step) < around(b, step)) == (a < b)


def test_codes_of_doubles_count_one_by_one() -> None:
    for start in (1e-38, 0.1, 1.0, 2.0**52, 1e200):
        code = around(start, 1e-38)[0]
        assert around(math.nextafter(start, math.inf), 1e-38)[0] == code + 1
        assert value_of(-code, 1e-38) == -start
    assert value_of(0, 1e-38) == 0
    assert math.copysign(1, value_of(around(-0.0, 1.0)[0], 1.0)) == 1
    assert value_of(LIMIT - 1, 1e300) == math.inf
    assert Grid("x", "double", Decimal("1e300")).decode(LIMIT - 1) == "a number beyond all doubles"


@given(DOUBLES.filter(lambda each: each == 0 or 1e-38 <= abs(each) < 1e200))
def test_a_grid_of_doubles_reads_each_as_it_is_written(value: float) -> None:
    grid = Grid("x", "double")
    code = grid.encode(value)
    assert -LIMIT < code < LIMIT
    assert grid.decode(code) == value
    for text in (repr(value), f"{value:.16e}", f"{value:.18e}", str(Decimal(value))):
        assert grid.encode(text) == code == coder(grid)(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.10000000000000000001", "not a double"),
        ("1e-50", "too close to zero"),
        ("1e400", "too large"),
        ("-1e300", "too large"),
        ("inf", "not a number"),
        ("1_0", "not a number"),
    ],
)
def test_what_is_no_double_is_told(text: str, words: str) -> None:
    grid = Grid("x", "double")
    for read in (grid.encode, coder(grid)):
        with pytest.raises(ValueError, match=words):
            read(text)


def test_numbers_between_two_doubles_have_both_as_neighbours() -> None:
    grid, tenth = Grid("x", "double"), Grid("x", "double").encode("0.1")
    assert grid.around("0.10000000000000000001") == (tenth - 1, tenth)
    assert grid.around("-0.10000000000000000001") == (-tenth, 1 - tenth)
    assert grid.around("1e-50") == (0, 1)
    assert grid.around("-1e-50") == (-1, 0)
    down = Grid("x", "double", rounded=True)
    assert [down.encode(text) for text in ("1e-50", "-1e-50")] == [0, -1]
    assert down.encode("0.10000000000000000001") == tenth


@pytest.mark.parametrize("step", ["1e-400", "1e400"])
def test_the_smallest_size_is_a_double(step: str) -> None:
    with pytest.raises(SchemaError, match="must be a double above zero"):
        Grid("x", "double", Decimal(step))


# ---- digits


@given(DOUBLES, st.integers(-30, 30))
def test_steps_of_ten_around_a_number_are_exact(value: float, exponent: int) -> None:
    text = repr(value)
    try:
        low, high = digits_of(text).around(exponent)
    except ValueError:
        assert abs(value) >= 10.0 ** (exponent + 38)
        return
    steps = Fraction(Decimal(text)) / Fraction(10) ** exponent
    assert (low, high) == (math.floor(steps), math.ceil(steps))


@given(DOUBLES, st.integers(0, 25))
def test_doubles_hold_what_they_are_written_as(value: float, digits: int) -> None:
    text = f"{value:.{digits}e}"
    assert held(Decimal(text), float(text)) or not 1e-300 < abs(value) < 1e300 or digits in (15, 16)
    assert held(Decimal(repr(value)), value)


def test_noise_is_what_arithmetic_leaves_behind() -> None:
    for value, plain in ((0.1 + 0.2, "0.3"), (1.1 * 3, "3.3"), (4.35 * 100, "435")):
        assert str(without_noise(Decimal(repr(value)))) == str(Decimal(plain).normalize())
    for text in ("0.1234567890123456", "0.3" + "0" * 40 + "1", "0.3"):
        assert str(without_noise(Decimal(text))) == text


# ---- which grid a column gets


@pytest.mark.parametrize(
    ("texts", "kind", "step", "rounded"),
    [
        ("0.1 0.25 12", "decimal", "0.01", False),
        ("0.038075906433423026 -0.044641636506989144", "decimal", "1e-18", False),
        ("0.1 0.2 0.30000000000000004", "decimal", "0.1", False),
        ("0.3 0.30000000000000004", "decimal", "1e-17", False),
        ("5 10000000000000001", "integer", "1", False),
        ("1.510000000000000000e+02 7.500000000000000000e+01", "integer", "1", False),
        ("1e-10 1e12", "double", "1e-38", False),
        ("0 -0.0 1e-10 1e12", "double", "1e-38", False),
        ("4611686018427387904 1", "double", "1e-38", False),
        ("1.000000000000000056e-01 1e13 3.3333333333333331e-01", "double", "1e-38", False),
        ("1e-300 1", "double", "1e-300", False),
        ("5e-324 1", "double", "5e-324", False),
        ("1.7976931348623157e308 2e307", "double", "1e307", False),
        ("1e-300 1e300", "double", "1e-7", True),
        ("12345678901234567890 3", "integer", "10", True),
        ("0 1.234567890123456789012e-30", "decimal", "1e-48", True),
        ("0.12345678901234567891234 5", "decimal", "1e-17", True),
        ("1e-500 1", "decimal", "1e-18", True),
    ],
)
def test_the_grid_of_a_column(texts: str, kind: str, step: str, rounded: bool) -> None:
    found = grid_of_numbers("x", texts.split(), gaps=False)
    assert (found.grid.kind, found.grid.rounded) == (kind, rounded)
    assert found.grid.step == Decimal(step)
    noisy = kind == "decimal" and step == "0.1"
    assert [each.startswith("read to 15 significant digits") for each in found.assumed] == (
        [True] if noisy else [False] * rounded
    )
    assert all("rounded down" in each for each in found.assumed) or noisy
    code = coder(found.grid)
    for text in texts.split():
        value = Fraction(found.grid.decode(code(text)))  # type: ignore[arg-type]
        assert code(text) == found.grid.encode(text)
        raw = Fraction(float(text) if kind == "double" else Decimal(text))
        assert value <= raw if rounded else value == raw or noisy


@given(st.lists(DOUBLES, min_size=1, max_size=6), st.sampled_from([repr, "{:.17e}".format]))
def test_every_column_of_doubles_has_a_grid(values: list[float], write: Any) -> None:
    texts = list(dict.fromkeys(map(write, values)))
    grid, told = grid_of_numbers("x", texts, gaps=False)
    read = [grid.decode(grid.encode(text)) for text in texts]
    exact = [float(each) == float(text) for each, text in zip(read, texts, strict=True)]  # type: ignore[arg-type]
    assert all(exact) or told
    if grid.rounded:
        pairs = zip(read, texts, strict=True)
        assert all(float(each) <= float(text) for each, text in pairs)  # type: ignore[arg-type]
    codes = [grid.encode(text) for text in texts]
    order = sorted(range(len(texts)), key=lambda place: Decimal(texts[place]))
    assert [codes[place] for place in order] == sorted(codes)


@given(st.lists(st.decimals(-1000, 1000, places=25), min_size=1, max_size=5, unique=True))
def test_rounding_answers_questions_on_the_grid_as_the_raw_values_do(values: list[Decimal]) -> None:
    grid, _ = grid_of_numbers("x", [str(each) for each in values], gaps=False)
    codes = [grid.encode(each) for each in values]
    if grid.kind == "double":
        return
    for cut in {*codes, *(code + 1 for code in codes)}:
        at = Decimal(cut) * grid.step
        assert [code >= cut for code in codes] == [each >= at for each in values]


# ---- audits


@pytest.mark.parametrize(
    "how",
    [
        {"mechanism": "idp", "k": 1},
        {"mechanism": "idp", "k": 3},
        {"mechanism": "bdp"},
        pytest.param({"mechanism": "idp", "strategy": "thrifty"}, marks=pytest.mark.nightly),
        pytest.param({"mechanism": "idp-binary", "k": 1}, marks=pytest.mark.nightly),
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_an_audit_rebuilds_the_very_doubles(how: dict[str, Any]) -> None:
    columns = {
        "bmi": measured(1, 9),
        "sex": [
            random.Random(n).choice([0.05068011873981862, -0.044641636506989144]) for n in range(9)
        ],
        "wide": [*wide(2, 6), 0.0, 1e-10, -1e12],
    }
    path = table(**columns)
    kinds = [each.kind for each in thinveil.load(path).schema]
    assert kinds == ["decimal", "decimal", "double"]
    verdict = thinveil.audit(path, **how)
    assert verdict.exit_code == 0
    rows = [[float(value) for value in row] for row in verdict.rows()]
    assert sorted(rows) == sorted(map(list, zip(*columns.values(), strict=True)))
    assert "at the stated precision" not in verdict.sentence()


def test_iris_needs_nothing_new() -> None:
    path = table(sepal=["5.1", "4.9", "7.0"], petal=["1.4", "1.4", "4.7"])
    data = thinveil.load(path)
    assert [each.describe() for each in data.schema] == ["decimal, step 0.1, bounds not public"] * 2
    assert not data.remarks.assumed


def test_questions_for_doubles_stay_near_the_bits_of_a_code() -> None:
    values = wide(3, 40)
    verdict = thinveil.audit(table(x=values))
    assert verdict.record().queries <= 68 * len(values)  # 62 bits a code, and the bounds
    assert sorted(value for (value,) in verdict.rows()) == sorted(values)


def test_doubles_wherever_values_are_given_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = table(x=[0.1, 1 / 3, 1e-9, 2e15], n=[1, 2, 3, 4])
    assert thinveil.load(path).schema[0].describe() == "double, bounds not public"
    one = thinveil.audit(path, attack="attribute", known={"x": 0.1})
    assert one.exit_code == 0
    assert "learned 1 attribute of the person" in one.sentence()
    count = thinveil.audit(path, attack="count", known={"x": "0.05..0.34"})
    assert "2 records match" in count.sentence()
    prior = thinveil.audit(path, attack="attribute", known={"n": 2}, priors={"x": "0.25..0.5"})
    assert prior.exit_code == 0
    assert run(["audit", path, "--output", "out.csv", "--json", "out.json", "--show-records"]) == 0
    assert sorted(Path("out.csv").read_text().split()[1:]) == sorted(
        ["0.1,1", "0.3333333333333333,2", "1e-09,3", "2000000000000000.0,4"]
    )
    assert json.loads(Path("out.json").read_text())["exact"] is True


def test_facts_with_doubles_travel() -> None:
    facts = thinveil.audit(table(x=[0.1, 1e15, 1 / 3])).facts
    assert facts.schema[0].kind == "double"
    assert facts_from_plain(json.loads(json.dumps(facts_to_plain(facts)))) == facts


# ---- schema files


def test_a_draft_has_powers_of_ten_as_bounds() -> None:
    draft = draft_schema(table(x=[0.1, -1e15, 1 / 3], y=[1e-9, 1e15, 2.0], z=[-1e-9, -1e15, -2.0]))
    assert [each.describe() for each in draft] == [
        "double, from -1e+16 to 1.0",
        "double, from 0.0 to 1e+16",
        "double, from -1e+16 to 0.0",
    ]
    assert parse_schema(write_schema(draft)) == draft
    assert "step" not in write_schema(draft)
    assert thinveil.load("t.csv", draft).rows()[0] == (0.1, 1e-9, -1e-9)


def test_kind_double_reads_any_column_of_numbers() -> None:
    path = table(age=[31, 44, 58], pay=["1.50", "2.25", "1e3"])
    schema = parse_schema(
        '[[attribute]]\nname = "age"\nkind = "double"\n[[attribute]]\nname = "pay"\n'
        'kind = "double"\nlower = 0.5\nupper = "1e6"\n'
    )
    assert thinveil.load(path, schema).rows() == [(31.0, 1.5), (44.0, 2.25), (58.0, 1000.0)]
    assert schema[1].describe() == "double, from 0.5 to 1000000.0"


SCHEMA = '[[attribute]]\nname = "x"\nkind = "decimal"\nstep = "{step}"\n{more}\n'


def test_a_coarser_step_needs_rounded_as_the_message_says() -> None:
    path = table(x=[0.1234, -0.1234, 2.5])
    with pytest.raises(DataError, match=r"or set (rounded = true), which") as caught:
        thinveil.load(path, parse_schema(SCHEMA.format(step="0.01", more="")))
    words = re.search(r"set (rounded = true)", str(caught.value))
    assert words is not None
    data = thinveil.load(path, parse_schema(SCHEMA.format(step="0.01", more=words[1])))
    assert [value for (value,) in data.rows()] == [
        Decimal("0.12"),
        Decimal("-0.13"),
        Decimal("2.5"),
    ]
    verdict = thinveil.audit(data)
    assert "exactly (at the stated precision)" in verdict.sentence()
    assert verdict.record().precision == {"x": "0.01"}
    assert "0.1234" not in str(caught.value)


def test_what_is_too_large_for_a_schema_is_read_as_the_message_says() -> None:
    path = table(x=["1e15", "0.00001"])
    with pytest.raises(DataError, match=r'too large .* kind = "double"'):
        thinveil.load(path, parse_schema(SCHEMA.format(step="0.00001", more="")))
    double = SCHEMA.format(step="1e-20", more="").replace("decimal", "double")
    assert thinveil.load(path, parse_schema(double)).rows() == [(1e15,), (1e-05,)]
    coarser = SCHEMA.format(step="0.01", more="rounded = true")
    assert thinveil.load(path, parse_schema(coarser)).rows()[1] == (Decimal("0.00"),)
    tiny = SCHEMA.format(step="0.001", more="").replace("decimal", "double")
    with pytest.raises(DataError, match=r"not a double of at least 0\.001.*rounded = true"):
        thinveil.load(path, parse_schema(tiny))
    down = SCHEMA.format(step="0.001", more="rounded = true").replace("decimal", "double")
    assert thinveil.load(path, parse_schema(down)).rows() == [(1e15,), (0.0,)]


def test_floats_of_noise_fit_the_step_that_is_meant() -> None:
    schema = parse_schema(SCHEMA.format(step="0.1", more=""))
    data = thinveil.load(table(x=[0.1 + 0.2, 0.1, 1.1 * 3]), schema)
    assert [str(value) for (value,) in data.rows()] == ["0.3", "0.1", "3.3"]


# ---- --precision


def test_precision_on_doubles_reads_them_on_that_grid(capsys: pytest.CaptureFixture[str]) -> None:
    path = table(x=[0.126, -0.126, 1e12, 1 / 3], n=[1, 2, 3, 4])
    assert run(["audit", path, "--precision", "x=0.01", "--json", "out.json"]) == 0
    told = capsys.readouterr()
    assert "column 'x': rounded down to steps of 0.01, as asked" in told.out + told.err
    assert "exactly (at the stated precision)" in told.out
    assert json.loads(Path("out.json").read_text())["precision"] == {"x": "0.01"}
    verdict = thinveil.audit(path, precision={"x": 0.01})
    assert sorted(float(value) for value, _ in verdict.rows()) == [-0.13, 0.12, 0.33, 1e12]
    own = draft_schema(path)
    again = thinveil.audit(path, schema=own, precision={"x": "0.25"})
    assert sorted(float(value) for value, _ in again.rows()) == [-0.25, 0.0, 0.25, 1e12]
    assert again.remarks.assumed == ("column 'x': rounded down to steps of 0.25, as asked",)


def test_messages_about_precision_can_be_followed() -> None:
    path = table(x=[0.126, -0.126, 1e12, 1 / 3])
    with pytest.raises(UsageError, match="doubles have no even steps") as caught:
        thinveil.audit(thinveil.load(path), precision={"x": "0.5"})
    steps = re.search(r"steps=\{'(\w+)': '([\d.]+)'\}", str(caught.value))
    keys = re.search(r'(kind = "\w+"), (step = "[\d.]+") and (rounded = true)', str(caught.value))
    assert steps is not None
    assert keys is not None
    told = "\n".join(keys.groups())
    ways = [
        thinveil.load(path, steps={steps[1]: steps[2]}),
        thinveil.load(path, parse_schema(f'[[attribute]]\nname = "x"\n{told}\n')),
    ]
    for data in ways:
        assert thinveil.audit(data, precision={"x": "0.5"}).exit_code == 0
    for wrong in ("abc", "0", "-1"):
        with pytest.raises(UsageError, match="must be a number above zero"):
            thinveil.audit(path, precision={"x": wrong})
    with pytest.raises(UsageError, match="there is no column 'y'; the columns are 'x'"):
        thinveil.load(path, steps={"y": "0.5"})
    with pytest.raises(DataError, match=r"too fine .* --precision x=STEP"):
        thinveil.load(path, steps={"x": "1e-30"})


def test_precision_on_a_plain_grid_is_as_before() -> None:
    path = table(x=["0.2", "0.4", "1.6"])
    data = thinveil.load(path, steps={"x": "0.4"})
    assert data.schema[0].describe() == "decimal, step 0.1, bounds not public"
    assert thinveil.audit(path, precision={"x": "0.4"}).exit_code == 0
    with pytest.raises(UsageError, match=r"a multiple of its step 0\.1"):
        thinveil.audit(path, precision={"x": "0.25"})
    fine = thinveil.load(table(x=measured(4, 5)), steps={"x": "0.3"})
    assert fine.schema[0].describe() == "decimal, step 0.3, rounded down, bounds not public"


# ---- frames and databases


def test_floats_of_frames_and_databases_are_those_of_files() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    from thinveil.curator.database.table import open_database

    columns: dict[str, Any] = {
        "wide": (*wide(5, 8), None),
        "unit": measured(6, 9),
        "noise": [0.1 + 0.2, 0.1, 1.1 * 3] * 3,
        "large": [1e17, 3.5, -0.0] * 3,
    }
    single = pa.array(np.array(measured(7, 9), np.float32))
    frame = pa.table({**columns, "single": single})
    pq.write_table(frame, "t.parquet")
    expected = thinveil.load("t.parquet")
    assert expected.schema[0].kind == "double"
    assert expected.rows()[0][0] == columns["wide"][0]
    assert "column 'noise': read to 15 significant digits" in expected.remarks.assumed[0]
    assert [np.float32(str(row[4])) for row in expected.rows()] == single.to_pylist()
    with open_database("t.parquet") as inside:
        assert inside.schema == expected.schema
        assert inside.remarks == expected.remarks
        assert sorted(inside.to_dataset().codes.tolist()) == sorted(expected.codes.tolist())
    with open_database("t.parquet", schema=expected.schema) as inside:
        assert sorted(inside.to_dataset().codes.tolist()) == sorted(expected.codes.tolist())
    steps = {"wide": "1e80"}
    with open_database("t.parquet", steps=steps) as inside:
        rounded = thinveil.load("t.parquet", steps=steps)
        assert inside.schema == rounded.schema
        assert sorted(inside.to_dataset().codes.tolist()) == sorted(rounded.codes.tolist())
    with closing(sqlite3.connect("t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (wide REAL, unit REAL, noise REAL, large REAL)")
        rows = list(zip(*columns.values(), strict=True))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    with open_database("sqlite://t.db") as inside:
        four = Schema(expected.schema.attributes[:4])
        assert inside.schema == four
        codes = inside.to_dataset().codes.tolist()
        assert sorted(codes) == sorted(expected.codes[:, :4].tolist())


def test_a_database_elsewhere_says_what_to_do_about_floats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    duckdb = pytest.importorskip("thinveil.curator.database.engines.duckdb")
    from thinveil.curator.database.table import open_database

    monkeypatch.setattr(duckdb.DuckDB, "here", False)  # as if it were a server
    pq.write_table(pa.table({"x": [1 / 3, 0.5]}), "t.parquet")
    with pytest.raises(DataError, match=r"more than 15 decimals.*round the column"):
        open_database("t.parquet")
    for grid in (Grid("x", "double"), Grid("x", "decimal", Decimal("0.1"), rounded=True)):
        with pytest.raises(DataError, match=r"cannot be counted exactly.*round the column there"):
            open_database("t.parquet", schema=Schema((grid,)))
    pq.write_table(pa.table({"x": [round(1 / 3, 9), 0.5]}), "rounded.parquet")
    fine = Schema((Grid("x", "decimal", Decimal("1e-15")),))
    for schema in (None, fine):
        with open_database("rounded.parquet", schema=schema) as table:
            rows = [str(value).rstrip("0") for (value,) in table.to_dataset().rows()]
            assert sorted(rows) == ["0.333333333", "0.5"]


@pytest.mark.parametrize(
    "how",
    [
        {"mechanism": "idp"},
        {"mechanism": "bdp"},
        pytest.param({"mechanism": "idp-binary", "k": 1}, marks=pytest.mark.nightly),
    ],
    ids=lambda how: how["mechanism"],
)
def test_codes_as_far_as_they_go_and_missing_values(how: dict[str, Any]) -> None:
    # their domain has 2^63 values: one more than eight bytes count
    path = table(p=["", 1e-149, 3.7e157, -2.3e-20, 1 / 3, ""], n=[1, 2, 3, 4, 5, 6])
    verdict = thinveil.audit(path, **how)
    assert verdict.score is not None
    assert verdict.score.exact
    assert sum(value is None for value, _ in verdict.rows()) == 2


@pytest.mark.nightly
def test_many_distinct_floats_are_read() -> None:
    values = np.random.default_rng(0).standard_normal(200_000) * 1e-3
    path = table(x=[*map(repr, values.tolist())])
    data = thinveil.load(path)
    assert data.schema[0].kind == "double"
    assert [value for (value,) in data.rows()] == values.tolist()
