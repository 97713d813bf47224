"""Results as JSON and back: what a class declares is what a file holds.

A generic serialiser over frozen dataclasses. Fields are written under their names; a type may
carry a mark that says otherwise, and a class may list in `DERIVED` what is written beside its
fields and not read: properties and methods, as "exact", or "exact:score.exact" for what is
found further inside. What does not fit is one error that names the place, and never a value.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union

from thinveil.errors import RecordError

_T = TypeVar("_T")
_WRONG: Final = "is not what it should be"
_LARGEST: Final = 10**300
"""No whole number is larger: doubles can still be computed from it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How a field stands in files, as `Annotated[int, Mark("in")]`.

    It may have another key there. The fields of what is `flat` stand among those around it, None
    is left out with `omit`, and what is `harmless` tells nothing about single records, so that a
    report may show it.
    """

    key: str = ""
    flat: bool = False
    omit: bool = False
    harmless: bool = False


FLAT: Final = Mark(flat=True)
OMIT: Final = Mark(omit=True)
Harmless = Annotated[_T, Mark(harmless=True)]


class Plain:
    """Whatever can be written to a file as a whole."""

    __slots__ = ()

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        plain: dict[str, Any] = to_json(self)
        return plain


class Part(NamedTuple):
    """A field of a class: its name here and in files, its type, and whether it must be there."""

    name: str
    key: str
    kind: Any
    mark: Mark
    needed: bool


@cache
def parts_of(kind: Any) -> tuple[Part, ...]:
    """Return how the fields of a class stand in files."""
    hints = typing.get_type_hints(kind, include_extras=True)
    parts = []
    for each in fields(kind):
        hint, mark = hints[each.name], Mark()
        if typing.get_origin(hint) is Annotated:
            hint, mark = typing.get_args(hint)
        parts.append(Part(each.name, mark.key or each.name, hint, mark, each.default is MISSING))
    return tuple(parts)


def _derived(kind: Any) -> dict[str, str]:
    """Return what is written beside the fields: a name, or a name and where it is found."""
    pairs = (each.partition(":") for each in getattr(kind, "DERIVED", ()))
    return {name: path or name for name, _, path in pairs}


def _needed(kind: Any) -> set[str]:
    return {each.key for each in parts_of(kind) if each.needed}


def _class(kind: Any) -> Any:
    """Return the class of a field that may be None."""
    return next((each for each in typing.get_args(kind) if is_dataclass(each)), kind)


def to_json(value: Any) -> Any:
    """Return a result as plain JSON values."""
    if isinstance(value, Mapping):
        return {str(name): to_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if not is_dataclass(value):
        return value
    written: dict[str, Any] = {}
    mine: Any = type(value)
    for each in parts_of(mine):
        inner = getattr(value, each.name)
        if each.mark.flat and inner is None:
            kind = _class(each.kind)
            written |= dict.fromkeys([part.key for part in parts_of(kind)] + [*_derived(kind)])
        elif each.mark.flat:
            written |= to_json(inner)
        elif inner is not None or not each.mark.omit:
            written[each.key] = to_json(inner)
    for name, path in _derived(mine).items():
        more: Any = value
        for step in path.split("."):
            more = getattr(more, step, None)
        written[name] = to_json(more() if callable(more) else more)
    return written


def from_json(kind: type[_T], content: Any, where: str = "it") -> _T:
    """Return a value of some type from plain JSON values.

    Raises:
        RecordError: It is not what such a value is written as.
    """
    value: _T = _read(kind, content, where)
    return value


def _read(kind: Any, content: Any, where: str) -> Any:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return content
    if origin in (Union, UnionType):
        return _one_of(parts, content, where)
    if is_dataclass(kind):
        return _object(kind, content, where)
    if origin is tuple and isinstance(content, list):
        every = parts[-1] is Ellipsis
        if every or len(parts) == len(content):
            kinds = parts[:1] * len(content) if every else parts
            pairs = enumerate(zip(kinds, content, strict=True))
            return tuple(_read(one, each, f"{where}[{at}]") for at, (one, each) in pairs)
    if origin is Mapping and isinstance(content, dict):
        return {name: _read(parts[1], each, f"{where}.{name}") for name, each in content.items()}
    if type(content) is int and abs(content) > _LARGEST:
        raise RecordError(f"{where} {_WRONG}")
    if kind is float and type(content) in (int, float):
        return float(content)
    if type(content) is kind:
        return content
    raise RecordError(f"{where} {_WRONG}")


def _one_of(parts: tuple[Any, ...], content: Any, where: str) -> Any:
    """Return a value of the first of some types that fits; of classes, by the keys they need."""
    if content is None and NoneType in parts:
        return None
    kinds = [each for each in parts if each is not NoneType]
    if len(kinds) == 1:
        return _read(kinds[0], content, where)
    for each in kinds:
        if is_dataclass(each):
            if isinstance(content, dict) and _needed(each) <= content.keys():
                return _read(each, content, where)
        else:
            try:
                return _read(each, content, where)
            except RecordError:
                continue
    raise RecordError(f"{where} {_WRONG}")


def _object(kind: Any, content: Any, where: str) -> Any:
    if not isinstance(content, dict):
        raise RecordError(f"{where} {_WRONG}")
    given = {}
    for each in parts_of(kind):
        if each.mark.flat:
            inner = _class(each.kind)
            gone = inner is not each.kind and all(content.get(k) is None for k in _needed(inner))
            given[each.name] = None if gone else _read(inner, content, where)
        elif each.key in content:
            given[each.name] = _read(each.kind, content[each.key], f"{where}.{each.key}")
        elif each.needed:
            raise RecordError(f"{where}.{each.key} is missing")
    try:
        return kind(**given)
    except (ValueError, OverflowError) as error:
        raise RecordError(f"{where}: {error}") from None
