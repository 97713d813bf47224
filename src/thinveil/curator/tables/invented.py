"""The lists that the made-up people are drawn from. They are public: they stand here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from thinveil.language.schema import Categories

POSTCODES: Final = tuple(f"{(number * 2477 + 1067) % 99_991:05d}" for number in range(40))
WARDS: Final = {
    "": "observation",
    "anxiety": "psychiatry",
    "asthma": "pneumology",
    "depression": "psychiatry",
    "diabetes": "internal",
    "fracture": "surgery",
    "hip arthrosis": "surgery",
    "hypertension": "internal",
    "stroke": "neurology",
}
"""The ward that treats each diagnosis; the empty text is a missing one."""
JOBS: Final = {
    # name: (weight, monthly salary in cents at 18, more a year of age, insured in 100)
    "carpenter": (12, 210_000, 3_100, 88),
    "cashier": (14, 165_000, 900, 72),
    "driver": (12, 180_000, 1_500, 81),
    "engineer": (14, 330_000, 6_200, 97),
    "lawyer": (5, 410_000, 9_900, 98),
    "nurse": (14, 240_000, 2_600, 96),
    "physician": (6, 470_000, 8_700, 99),
    "self-employed": (9, 150_000, 4_400, 35),
    "teacher": (12, 290_000, 3_700, 99),
}
NO_INCOME: Final = {"pupil": 99, "unemployed": 58}

_LISTS: Final[Mapping[str, frozenset[str]]] = {
    "postcode": frozenset(POSTCODES),
    "job": frozenset((*JOBS, *NO_INCOME, "retired")),
    "diagnosis": frozenset(WARDS),
    "ward": frozenset(WARDS.values()),
}


def invented(attribute: Categories) -> bool:
    """Tell whether a list of texts is one of the made-up people's, whole or in part."""
    return frozenset(attribute.values) <= _LISTS.get(attribute.name, frozenset())
