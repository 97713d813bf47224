"""Colours, tables and bars at a terminal: texts are made safe first, and styled then.

`Text` and cells of tables show their control characters before they are laid out, so that columns
are as wide as what they show. Segments, the last form before the stream, are looked at once more:
only control codes that rich itself makes pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any, TextIO, cast

from rich import text as rich_text
from rich.console import Console, ConsoleOptions, RenderableType, RenderHook
from rich.file_proxy import FileProxy
from rich.segment import Segment

from thinveil.language.texts import one_line, visible
from thinveil.report.text.streams import Guarded


class Text(rich_text.Text):
    """A styled text on one line: a line break in a name is shown, not made."""

    def __init__(self, text: str = "", style: str = "", **more: Any) -> None:
        super().__init__(one_line(text), style, **more)


def lines(texts: Iterable[str]) -> Text:
    """Return a text of several lines."""
    found = Text()
    for number, each in enumerate(texts):
        found.append(f"\n{one_line(each)}" if number else one_line(each))
    return found


class Screen(Console):
    """A console through which no control character of a text passes, and no markup."""

    @property
    def file(self) -> IO[str]:
        """The stream behind the door, which takes the codes of colours."""
        stream: Any = super().file
        bare: IO[str] = getattr(stream, "bare", stream)
        return bare

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def push_render_hook(self, hook: RenderHook) -> None:
        """Put the door before a bar that is shown, too: it reads escapes of what others print."""
        super().push_render_hook(hook)
        for name in ("stdout", "stderr"):
            if isinstance(stream := getattr(sys, name), FileProxy):
                setattr(sys, name, Guarded(cast("TextIO", stream)))

    def render_str(self, text: str, **more: Any) -> rich_text.Text:
        """Return a cell or a line as a text."""
        return super().render_str(one_line(text), **more)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the pieces of what is printed."""
        return map(_safe, super().render(renderable, options))


def _safe(segment: Segment) -> Segment:
    text, style, control = segment
    if control or (text.isascii() and text.isprintable() and not (style and style.link)):
        return segment
    return Segment(visible(text), style.update_link(None) if style else None)


def screen(*, stderr: bool, soft_wrap: bool = False) -> Screen:
    """Return a console that keeps to what the user and the terminal say.

    With NO_COLOR, and where the output is no terminal, there are no escape codes. FORCE_COLOR
    asks for colours alone: bars and spinners that move need a real terminal.
    """
    stream = sys.stderr if stderr else sys.stdout
    moving = stream is not None and stream.isatty()
    return Screen(
        stderr=stderr,
        soft_wrap=soft_wrap,
        markup=False,
        emoji=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        force_interactive=None if moving else False,
    )
