"""Code that travels with a job: executors need NumPy and Arrow, but no thinveil.

The modules that count are sent as text and loaded under a private name, so that another version
of thinveil at an executor is neither used nor disturbed.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import re
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from json import dumps
from pathlib import Path
from types import FunctionType
from typing import Any, Final

_ENTRY: Final = "thinveil.curator.database.spark.executors"
_IMPORT: Final = re.compile(r"^(\s*)(from|import) thinveil\b", re.MULTILINE)


def shipped(function: str, *arguments: Any) -> Callable[..., Any]:
    """Return a function that calls one of `executors`, over there, with these arguments first."""
    name, sources = _bundle()
    # A function of a module that nobody can import is pickled with its code.
    boot = FunctionType(
        _boot.__code__, {"__builtins__": builtins, "__name__": "thinveil_boot"}, "boot"
    )
    boot.__module__ = "thinveil_boot"
    return partial(boot, name, sources, function, arguments)


def _boot(name: str, sources: bytes, function: str, arguments: Any, *more: Any) -> Any:
    """Load the modules unless they are there, and call a function of the last one."""
    import json
    import sys
    import threading
    import types
    import zlib

    # Tasks may be threads of one process, which all find this first lock.
    with sys.__dict__.setdefault("_thinveil_boot", threading.RLock()):
        if name not in sys.modules:
            try:
                for each, text in json.loads(zlib.decompress(sources)):
                    module = sys.modules[each] = types.ModuleType(each)
                    exec(compile(text, f"<{each}>", "exec"), module.__dict__)
            except BaseException:
                sys.modules.pop(name, None)
                raise
    return getattr(sys.modules[name], function)(*arguments, *more)


@cache
def _bundle() -> tuple[str, bytes]:
    """Return the private name of the last module, and all of them in the order of their imports."""
    ordered: dict[str, str] = {}
    _gather(_ENTRY, ordered)
    digest = hashlib.blake2b(repr(ordered).encode(), digest_size=6).hexdigest()
    private = f"thinveil_{digest}"
    renamed = [
        (private + name.removeprefix("thinveil"), _IMPORT.sub(rf"\1\2 {private}", text))
        for name, text in ordered.items()
    ]
    return renamed[-1][0], zlib.compress(dumps(renamed).encode(), 9)


def _gather(name: str, ordered: dict[str, str]) -> None:
    """Put the text of a module after those of all modules that it imports."""
    found = importlib.util.find_spec(name)
    if name in ordered or found is None or found.origin is None:
        return
    text = Path(found.origin).read_text("utf-8")
    for each in _imported(ast.parse(text)):
        if each != name:
            _gather(each, ordered)
    ordered[name] = text


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of thinveil that a module imports; packages have nothing in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("thinveil."):
            assert node.module is not None
            yield node.module
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if _is_package(node.module) and importlib.util.find_spec(inner) is not None:
                    yield inner


def _is_package(name: str) -> bool:
    found = importlib.util.find_spec(name)
    return found is not None and found.submodule_search_locations is not None
