"""Hostile content: bytes with damage in them, and trees of plain values with odd leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

TEXTS = (
    b"", b'"', b'""', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff\xfe",
    b"\xef\xbb\xbf", b"NaN", b"inf", b"-inf", b"1e999", b"1e-999", b"0x1F", b"9" * 24, b"-0",
    b"+1", b"2024-02-30", b"2024-12-31T23:59:60", b"0001-01-01", b"99999-01-01", b"=1+1",
    b"\xf0\x9f\x99\x82", b"1,5", b"1.5.5", b"--", b" ", b"\\", b"NULL", b"null", b"true",
    b"\xd9\xa3", b"1_000", b"e", b".", b"1e999999999", b"1e-999999999", b"9" * 5000, b"0000-01-01",
    b"9999-12-31T23:59:59-23:59", b"0001-01-01T00:00:00+23:59", b"24:00:00", b"\x1b]0;x\x07",
    b"\xed\xa0\x80", b"\xc2\x85", b"\xe2\x80\xae", b"{", b"}", b"[", b"]", b":", b"#", b"=",
    b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\x80\x80\x80\x80\x80\x80\x01",
)  # fmt: skip
"""Bits of text and of numbers that have broken readers before."""

_DEEP = "\ue000deep"
_LONG = "\ue000long"
_TWICE = "\ue000twice"
_LONE = "\ue000lone"
_RAW = {
    f'"{_DEEP}"': "[" * 100_000 + "]" * 100_000,
    f'"{_LONG}"': "9" * 5_000,
    f'"{_LONE}"': r'"\ud800\u0000\u001b[2J"',
}
"""What no writer of JSON writes, put in after it has written."""
LEAVES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2, -0.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"),
    float("-inf"), 2**31, 2**53 + 1, 2**62, 2**63, -(2**63), -(2**63) - 1, 10**30, 10**400, "",
    "a", "\0", "NaN", "1e999999999", "1e-999999999", "1" * 600, "9" * 5_000, "x" * 100_000,
    "../../x", "0", "-1", "1/0", "1/3", [], {}, [[]], [None], [1, "a", None], {"a": 1}, {"": None},
    _DEEP, _LONG, _LONE,
)  # fmt: skip
"""What a reader of plain values may meet where it expects something else."""


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with a few changes: flipped, cut, doubled, swapped or put in."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(data) + 1))
        more = int(rng.integers(1, 40))
        kind = rng.integers(6)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at : at + more]
        elif kind == 2:
            data[at:at] = TEXTS[rng.integers(len(TEXTS))]
        elif kind == 3:
            data[at:at] = data[at : at + more]
        elif kind == 4 and rng.integers(4) == 0:
            del data[at:]
        else:
            data[at : at + more] = rng.integers(0, 256, more, np.uint8).tobytes()
    return bytes(data)


def overwritten(content: bytes, rng: np.random.Generator) -> bytes:
    """Return as many bytes, a few of them others: what is found by its place stays there."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(0, len(data)))
        new = [
            bytes([data[at] ^ (1 << int(rng.integers(8)))]),
            rng.integers(0, 256, int(rng.integers(1, 9)), np.uint8).tobytes(),
            b"\xff" * int(rng.integers(1, 9)),
            b"\0" * int(rng.integers(1, 9)),
            b"\x7f",
        ][rng.integers(5)]
        data[at : at + len(new)] = new[: len(data) - at]
    return bytes(data)


def bent(tree: Any, rng: np.random.Generator) -> Any:
    """Return a tree of plain values in which a few places are others."""
    tree = deepcopy(tree)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(tree))
        if not places:
            return LEAVES[rng.integers(len(LEAVES))]
        holder, key = places[rng.integers(len(places))]
        _CHANGES[rng.integers(len(_CHANGES))](holder, key, rng)
    return tree


def _places(tree: Any) -> Any:
    """Yield all places of a tree: what holds a value, and its key there."""
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in list(items):
        yield tree, key
        yield from _places(value)


def _leaf(holder: Any, key: Any, rng: np.random.Generator) -> None:
    holder[key] = deepcopy(LEAVES[rng.integers(len(LEAVES))])


def _gone(holder: Any, key: Any, rng: np.random.Generator) -> None:
    del holder[key]


def _other(holder: Any, key: Any, rng: np.random.Generator) -> None:
    value = holder[key]
    if type(value) in (int, float):
        near = float(value) if abs(value) < 2**1023 else value
        holder[key] = [value + 1, -value, value * 10**9, near, str(value)][rng.integers(5)]
    elif isinstance(value, str):
        text = TEXTS[rng.integers(len(TEXTS))].decode("utf-8", "replace")
        holder[key] = [value + text, text + value, value[: len(value) // 2], value * 2][
            rng.integers(4)
        ]
    else:
        holder[key] = [value]


def _moved(holder: Any, key: Any, rng: np.random.Generator) -> None:
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    other = keys[rng.integers(len(keys))]
    holder[key], holder[other] = holder[other], holder[key]


def _more(holder: Any, key: Any, rng: np.random.Generator) -> None:
    if isinstance(holder, list):
        holder.extend(deepcopy(holder) * int(rng.integers(1, 4)))
    else:
        holder[f"{key}{_TWICE}" if rng.integers(2) else f"{key} "] = deepcopy(holder[key])


_CHANGES: tuple[Callable[[Any, Any, np.random.Generator], None], ...] = (
    _leaf, _leaf, _leaf, _gone, _other, _other, _moved, _more,
)  # fmt: skip


def in_json(tree: Any) -> bytes:
    """Write a tree as JSON, with what no writer writes; a key may stand twice."""
    text = json.dumps(tree).replace(json.dumps(_TWICE)[1:-1], "")
    for token, raw in _RAW.items():
        text = text.replace(json.dumps(token[1:-1]), raw)
    return text.encode()


def in_toml(tree: Any) -> bytes:
    """Write a tree as TOML by hand, so that anything can stand anywhere."""
    lines: list[str] = []
    for name, value in tree.items() if isinstance(tree, dict) else ():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            for table in value:
                lines.append(f"[[{_key(name)}]]")
                lines += [f"{_key(key)} = {_toml(each)}" for key, each in table.items()]
        else:
            lines.insert(0, f"{_key(name)} = {_toml(value)}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _key(name: object) -> str:
    return json.dumps(str(name).replace(_TWICE, ""), ensure_ascii=False)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value == _DEEP:
        return "[" * 100_000 + "]" * 100_000
    if value == _LONG:
        return "9" * 5_000
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, int | float):
        return repr(value)
    return '"null"' if value is None else json.dumps(str(value))
