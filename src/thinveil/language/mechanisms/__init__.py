"""The built-in mechanisms: adding a file here adds its mechanisms.

A file has the sensitivity that its noise is scaled by, and what is made of it; variants that
differ in rounding, offset or sampler alone stand together.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from thinveil.language.mechanisms.claim import Mechanism

_FOUND: Final = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
BUILT_IN: Final[Mapping[str, Mechanism]] = dict(
    sorted((made.name, made) for file in _FOUND for made in getattr(file, "MECHANISMS", ()))
)
"""All of them by name, sorted."""
