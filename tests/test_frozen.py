"""Query counts of our own on the embedded people: whoever changes a search sees it here."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import thinveil
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.schema import MISSING, Grid, Schema
from worlds import sweep

COLUMNS = ("age", "diagnosis")
KNOWN = ("age", "postcode", "job")

FROZEN = {
    # mechanism, k, universe: (queries, rounds) of dataset, columns and attribute
    ("idp", 1, "unbounded"): ((149_826, 946), (2_140, 1_976), (3_173, 124)),
    ("idp", 1, "bounded"): ((129_214, 811), (1_894, 1_750), (2_643, 87)),
    ("idp", 2, "unbounded"): ((150_439, 947), (2_122, 1_980), (3_195, 125)),
    ("idp", 2, "bounded"): ((129_840, 820), (1_878, 1_753), (2_664, 88)),
    ("idp", 3, "unbounded"): ((155_741, 964), (2_121, 1_976), (3_276, 129)),
    ("idp", 3, "bounded"): ((135_052, 834), (1_877, 1_752), (2_738, 90)),
    ("unprotected", 1, "unbounded"): ((143_563, 960), (2_219, 2_060), (3_111, 130)),
    ("unprotected", 1, "bounded"): ((122_968, 821), (1_968, 1_828), (2_575, 84)),
}


@cache
def people(universe: str) -> Dataset:
    """The embedded people; for a bounded universe with the tightest bounds there are."""
    data = thinveil.people()
    if universe == "unbounded":
        return data
    attributes = []
    for column, attribute in enumerate(data.schema):
        if isinstance(attribute, Grid):
            codes = data.column(column)
            codes = codes[codes != MISSING]
            attribute = replace(attribute, lower=int(codes.min()), upper=int(codes.max()))
        attributes.append(attribute)
    return Dataset(Schema(tuple(attributes)), data.codes)


@pytest.mark.parametrize(("setting", "expected"), sweep(FROZEN.items(), 8), ids=str)
def test_frozen_counts(
    setting: tuple[str, int, str], expected: tuple[tuple[int, int], ...]
) -> None:
    mechanism, k, universe = setting
    data = people(universe)
    some = [dict(zip(data.schema.names, row, strict=True)) for row in data.rows()[:40]]
    known = [{name: who[name] for name in KNOWN} for who in some]
    whole, columns, attributes = (
        thinveil.audit(
            data, mechanism=mechanism, k=k, universe=universe, strategy="published", **attack
        )
        for attack in (
            {"attack": "dataset"},
            {"attack": "column", "columns": COLUMNS},
            {"attack": "attribute", "known": known},
        )
    )
    assert whole.score is not None
    assert whole.score.exact
    assert all(each["exact"] for each in columns.result)
    assert all(each["correct"] and each["matches"] for each in attributes.result)
    asked = tuple(
        (each.run.meter.queries, each.run.meter.rounds) for each in (whole, columns, attributes)
    )
    assert asked == expected


def test_the_embedded_people_stay_the_same() -> None:
    assert people("unbounded").digest() == "48c0a41e2a0f2c3a8533ac3f54486a19"
