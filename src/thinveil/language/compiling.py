"""Plain loops over arrays, compiled by numba where that can be used.

Numba is an extra (`pip install 'thinveil[fast]'`). The same source runs without it, to the same
results, some hundred times slower. It is imported when it is first needed and not before.
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
def loops(name: str, plain: bool = False) -> Any:
    """Return a module of loops, as it is or as a compiled copy.

    Args:
        name: The module; every function in it must be one that numba can compile.
        plain: Whether to leave it as it is in any case.
    """
    if plain or not compiled():
        return import_module(name)
    numba: Any = import_module("numba")
    spec = util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    copy = util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    for called, loop in getmembers(copy, isfunction):
        try:
            fast = numba.njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # no place to keep compiled code
            fast = numba.njit(nogil=True)(loop)
        setattr(copy, called, fast)
    return copy


def threads() -> int:
    """Return how many threads compiled loops may use on this machine."""
    if not compiled():
        return 1
    numba: Any = import_module("numba")
    return int(numba.config.NUMBA_DEFAULT_NUM_THREADS)
