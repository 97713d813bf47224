"""A table of codes and the public schema that says what they mean."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import Counter
from thinveil.curator.tables.coding import NO_VALUE
from thinveil.curator.tables.reading import NO_REMARKS, Remarks
from thinveil.errors import DataError
from thinveil.language.queries import Codes
from thinveil.language.schema import LIMIT, MISSING, Attribute, Schema, Value


class Held(Protocol):
    """A confidential table, wherever it is. Conforms: `Dataset`, `DatabaseTable`."""

    @property
    def schema(self) -> Schema:
        """What is public about the columns."""
        ...

    @property
    def records(self) -> int:
        """How many records the table has."""
        ...

    def digest(self) -> str:
        """Return a fingerprint that changes with the content."""
        ...

    def counter(self) -> Counter:
        """Return what counts the records of this table."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """The confidential table: a row a record, a column an attribute, codes in the cells.

    The codes are kept read-only and column by column (Fortran order).

    Args:
        schema: What the codes stand for.
        codes: The table. An array that is still writable elsewhere is copied.
        remarks: What was assumed when it was read.

    Raises:
        DataError: The table is empty or does not fit its schema.

    >>> from thinveil.language.schema import Grid
    >>> table = Dataset(Schema((Grid("age"),)), np.array([[31], [57]]))
    >>> table.records, table.rows()
    (2, [(31,), (57,)])
    """

    schema: Schema
    codes: Codes
    remarks: Remarks = NO_REMARKS

    def __post_init__(self) -> None:
        given = np.asarray(self.codes)
        if given.ndim != 2 or given.shape[1] != len(self.schema):
            raise DataError(
                f"the schema has {len(self.schema)} columns and the table of codes has the "
                f"shape {given.shape}: give one row a record and one column an attribute"
            )
        if given.shape[0] == 0:
            raise DataError("the table has no records: give one with at least one row of data")
        if given.dtype.kind not in "iu":
            raise DataError(f"codes must be whole numbers, not {given.dtype}")
        if given.dtype == np.int64 and given.flags.f_contiguous and not _writable(given):
            codes = given
        else:
            codes = np.array(given, dtype=np.int64, order="F")
            codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        for position, attribute in enumerate(self.schema):
            _check(attribute, codes[:, position])

    @property
    def records(self) -> int:
        """How many records the table has."""
        return int(self.codes.shape[0])

    def column(self, position: int) -> Codes:
        """Return the codes of one attribute, a code a record."""
        return self.codes[:, position]

    def sample(self, rows: npt.ArrayLike) -> Dataset:
        """Return a table of the given rows only, counted from zero or as a mask."""
        return Dataset(self.schema, self.codes[np.asarray(rows)], self.remarks)

    def digest(self) -> str:
        """Return a fingerprint of the columns' names and all codes."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(repr((self.schema.names, self.codes.shape)).encode())
        for position in range(len(self.schema)):
            hasher.update(np.ascontiguousarray(self.column(position), dtype="<i8").data)
        return hasher.hexdigest()

    def counter(self) -> Counter:
        """Return an index in memory that counts the records of this table."""
        return IndexCounter(self.codes)

    def rows(self) -> list[tuple[Value, ...]]:
        """Return the decoded values, a tuple a record."""
        columns = []
        for position, attribute in enumerate(self.schema):
            distinct, index = np.unique(self.column(position), return_inverse=True)
            values = [attribute.decode(code) for code in distinct.tolist()]
            columns.append([values[place] for place in index.tolist()])
        return list(zip(*columns, strict=True))


def _writable(array: npt.NDArray[Any]) -> bool:
    """Tell whether somebody may still write into the memory of an array."""
    layer: object = array
    while isinstance(layer, np.ndarray):
        if layer.flags.writeable:
            return True
        layer = layer.base
    return False


def bounds_of(attribute: Attribute) -> tuple[int, int]:
    """Return the lowest and the highest code that an attribute allows."""
    if attribute.lower is None or attribute.upper is None:
        return -LIMIT + 1, LIMIT - 1
    return attribute.lower, attribute.upper


def _check(attribute: Attribute, column: Codes) -> None:
    """Refuse a column with a code that its attribute does not allow."""
    gap = column == MISSING
    if not attribute.missing and gap.any():
        where = f"row {int(gap.argmax()) + 1} of column {attribute.name!r}"
        raise DataError(f"{where} has {NO_VALUE}")
    lower, upper = bounds_of(attribute)
    outside = ((column < lower) | (column > upper)) & ~gap
    if outside.any():
        advice = "widen the bounds (or the list of values) of this attribute in the schema"
        if attribute.lower is None:
            advice = "use a coarser step in the schema"
        raise DataError(
            f"row {int(outside.argmax()) + 1} of column {attribute.name!r} lies outside the "
            f"bounds of the schema: {advice}, or correct the row"
        )
