"""Synthetic people: the same on every machine, and not independent."""

from __future__ import annotations

import numpy as np
import pytest

from thinveil.curator.tables.invented import WARDS
from thinveil.curator.tables.people import people
from thinveil.errors import UsageError
from thinveil.language.schema import MISSING, Categories, Grid


def test_same_seed_same_table() -> None:
    assert people().digest() == "48c0a41e2a0f2c3a8533ac3f54486a19"
    assert people(50, seed=1).digest() == people(50, seed=1).digest()
    assert people(50, seed=1).digest() != people(50, seed=2).digest()


def test_schema_is_what_loading_would_infer() -> None:
    table = people()
    assert table.records == 2000
    kinds = {each.name: each.kind for each in table.schema}
    assert kinds == {
        "age": "integer",
        "postcode": "category",
        "job": "category",
        "salary": "decimal",
        "diagnosis": "category",
        "insured": "category",
        "admitted": "date",
        "ward": "category",
    }
    for each in table.schema:
        if isinstance(each, Grid):
            assert each.lower is None
        if isinstance(each, Categories):
            assert list(each.values) == sorted(each.values)
    assert {each.name for each in table.schema if each.missing} == {"salary", "diagnosis"}
    postcodes = table.schema[1]
    assert isinstance(postcodes, Categories)
    assert len(postcodes.values) == 40
    assert all(len(code) == 5 and code.isdigit() for code in postcodes.values)
    assert any(code.startswith("0") for code in postcodes.values)


def test_ward_follows_from_diagnosis() -> None:
    for row in people().rows():
        assert row[7] == WARDS[str(row[4] or "")]


def test_salary_and_insurance_depend_on_the_job() -> None:
    rows = people().rows()
    for age, _, job, salary, _, _, _, _ in rows:
        assert isinstance(age, int)
        assert 0 <= age < 104
        assert (salary is None) == (job in ("pupil", "unemployed"))
        assert (job == "retired") <= (age > 60)
    pay = {job: [float(str(r[3])) for r in rows if r[2] == job] for job in ("cashier", "lawyer")}
    assert np.median(pay["lawyer"]) > 2 * np.median(pay["cashier"])
    cover = {
        job: np.mean([r[5] == "yes" for r in rows if r[2] == job])
        for job in ("self-employed", "teacher")
    }
    assert cover["self-employed"] < 0.6 < 0.9 < cover["teacher"]


def test_one_person_is_enough() -> None:
    assert people(1).records == 1
    assert (people(1).codes != MISSING).any()


@pytest.mark.parametrize(("records", "seed"), [(0, 1), (-3, 1), (10, -1)])
def test_refuses_nonsense(records: int, seed: int) -> None:
    with pytest.raises(UsageError):
        people(records, seed)
