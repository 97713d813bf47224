"""Noise laws: each is a value, and one file.

What a law must have is in `contracts.Law`. Names are read here and nowhere else; one that is
not known is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, cast

from thinveil.errors import LawError
from thinveil.language.contracts import Law
from thinveil.language.laws.cauchy import Cauchy
from thinveil.language.laws.discrete_laplace import DiscreteLaplace
from thinveil.language.laws.gaussian import Gaussian
from thinveil.language.laws.laplace import Laplace

__all__ = [
    "LAWS", "Cauchy", "DiscreteLaplace", "Gaussian", "Laplace", "law_from_plain", "law_named",
    "law_to_plain",
]  # fmt: skip

LAWS: Final[Mapping[str, type[Law]]] = {
    each.name: each for each in (Cauchy, DiscreteLaplace, Gaussian, Laplace)
}
"""All laws of ours, by their names on the wire and on the command line."""


def law_named(name: object, **parameters: Any) -> Law:
    """Return a law by its name and parameters; a LawError says what does not fit."""
    make = LAWS.get(name) if isinstance(name, str) else None
    if make is None:
        raise LawError(f"there is no noise law {name!r}; choose from {', '.join(LAWS)}")
    known = {each.name: each.default is MISSING for each in fields(cast(Any, make))}
    for each in parameters:
        if each not in known:
            raise LawError(f"{name} noise has no {each}")
    for each, needed in known.items():
        if needed and each not in parameters:
            raise LawError(f"{name} noise needs a {each}")
    return make(**parameters)


def law_to_plain(law: Law | None) -> Any:
    """Write a law of ours for JSON: its name, with its parameters where it has any.

    A LawError says that it is not one of ours, so that other programs cannot know it.
    """
    if law is None:
        return "none"
    if type(law) is not LAWS.get(law.name):
        raise LawError(f"the noise law {law.name} is not one that other programs know")
    parameters = asdict(cast(Any, law))
    return {"law": law.name, **parameters} if parameters else law.name


def law_from_plain(plain: object) -> Law | None:
    """Read back what `law_to_plain` wrote, or raise a LawError."""
    if plain == "none":
        return None
    given = dict(plain) if isinstance(plain, Mapping) else {"law": plain}
    return law_named(given.pop("law", None), **given)
