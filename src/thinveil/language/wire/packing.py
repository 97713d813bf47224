"""Answers in as few bytes as hold them, for transcripts and ledgers."""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.language.queries import Floats

DOUBLES: Final = b"d"
"""The tag of answers that are doubles."""
_TAGS: Final = {DOUBLES: "<f8", b"i": "<i4", b"b": "<i1"}


def packed(values: Floats) -> bytes:
    """Return a tag, and answers in as few bytes as hold them exactly (-0 becomes 0)."""
    if len(values) and (low := values.min()) >= -(2**31) and (high := values.max()) < 2**31:
        tag = b"b" if low >= -(2**7) and high < 2**7 else b"i"
        whole = values.astype(_TAGS[tag])
        if (whole == values).all():
            return tag + whole.tobytes()
    return DOUBLES + values.astype("<f8", copy=False).tobytes()


def unpacked(data: bytes, tag: bytes | None = None) -> Floats:
    """Read answers back; the tag stands in front unless it is given.

    A ValueError says that there is no such tag, or that the last answer is cut.
    """
    kind, start = (data[:1], 1) if tag is None else (tag, 0)
    if kind not in _TAGS:
        raise ValueError("not answers that were packed here")
    return np.frombuffer(data[start:], _TAGS[kind]).astype(np.float64)
