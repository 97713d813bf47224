"""The guided tour: every result of the theory, computed in one small world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from thinveil.paper import lessons_printed
from thinveil.paper.theory import lessons_neighbours, lessons_privacy, lessons_sensitivity
from thinveil.paper.theory.chapters import Chapter, Setting

CHAPTERS: Final[tuple[Callable[[Setting], Chapter], ...]] = (
    lessons_sensitivity.neighbours,
    lessons_sensitivity.sensitivities,
    lessons_sensitivity.median,
    lessons_sensitivity.k_laplace,
    lessons_sensitivity.zones,
    lessons_privacy.definitions,
    lessons_privacy.readings,
    lessons_privacy.combining,
    lessons_neighbours.hints,
    lessons_neighbours.recovery,
    lessons_neighbours.empty_hint,
    lessons_privacy.smooth,
    lessons_privacy.instance,
    lessons_printed.decision,
    lessons_printed.letter,
)
"""The chapters in the order in which they build on each other."""


def tour(setting: Setting) -> Iterator[Chapter]:
    """Compute one chapter after the other.

    >>> first = next(tour(Setting.of(records=4, domain=2)))
    >>> first.rows[0]
    ('data sets in this world', 16, None)
    """
    for chapter in CHAPTERS:
        yield chapter(setting)
