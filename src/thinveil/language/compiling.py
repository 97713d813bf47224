"""Plain loops over arrays, compiled by numba where that can be used.

Numba is an extra (`pip install 'thinveil[fast]'`). The same source runs without it, to the same
results, many times slower; loops that take most of the time may be written once more, over
whole arrays (vectorised). It is imported when it is first needed and not before.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, util
from inspect import getmembers, isfunction
from typing import Any


@cache
def refusal() -> str:
    """Return why loops are not compiled: nothing if they are."""
    try:
        import_module("numba")
    except ModuleNotFoundError as error:
        if error.name == "numba":
            return "numba is not installed"
        return f"numba cannot be used here ({error})"
    # what it raises with a NumPy or a Python that it does not know differs between versions
    except (ImportError, AttributeError, RuntimeError, SystemError) as error:
        return f"numba cannot be used here ({error})"
    return ""


def compiled() -> bool:
    """Return whether loops are compiled."""
    return not refusal()


@cache
def loops(name: str, plain: bool = False, whole: str | None = None) -> Any:
    """Return a module of loops as a compiled copy, or not compiled.

    Args:
        name: The module; every function in it must be one that numba can compile.
        plain: Whether not to compile it in any case.
        whole: A module of functions over whole arrays: where loops are not compiled, each takes
            the place of the one that has its name.
    """
    if plain or not compiled():
        return import_module(name) if whole is None else _over_arrays(name, whole)
    numba: Any = import_module("numba")
    copy = _copy(name)
    for called, loop in getmembers(copy, isfunction):
        try:
            fast = numba.njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # no place to keep compiled code
            fast = numba.njit(nogil=True)(loop)
        setattr(copy, called, fast)
    return copy


def _copy(name: str) -> Any:
    """Return a module once more, so that functions in it can be replaced."""
    spec = util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    copy = util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def _over_arrays(name: str, whole: str) -> Any:
    copy, instead = _copy(name), import_module(whole)
    for called, _ in getmembers(copy, isfunction):
        if getattr(getattr(instead, called, None), "__module__", None) == whole:
            setattr(copy, called, getattr(instead, called))
    return copy


def threads() -> int:
    """Return how many threads compiled loops may use on this machine."""
    if not compiled():
        return 1
    numba: Any = import_module("numba")
    return int(numba.config.NUMBA_DEFAULT_NUM_THREADS)
