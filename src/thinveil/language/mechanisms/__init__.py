"""The built-in mechanisms, one file each: adding a file here adds a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from thinveil.language.claim import Mechanism

BUILT_IN: Final[Mapping[str, Mechanism]] = {
    made.name: made
    for made in sorted(
        (import_module(f"{__name__}.{each.name}").MECHANISM for each in iter_modules(__path__)),
        key=lambda made: made.name,
    )
}
"""All of them by name, sorted."""
