"""Pictures as files: the specifications that the report draws, rendered by vl-convert.

vl-convert holds Vega-Lite and a small JavaScript engine: it needs no browser and no network, and
the same picture gives the same bytes.
"""

from __future__ import annotations

import json
import re
import struct
import textwrap
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from thinveil.errors import MissingExtra, UsageError
from thinveil.files import PDF_MARK, write_file
from thinveil.report.charts.pictures import Key, Picture, Spec, clean, layer, words

FORMATS: Final = (".pdf", ".png", ".svg")
"""How the names of pictures may end."""
APART: Final = {"scale": {"color": "independent", "strokeDash": "independent"}}
"""Of pictures side by side: each has colours and lines of its own."""
_PNG_HEAD: Final = 33  # bytes of a PNG's signature and first chunk, before which none may stand
_SCALE: Final = 2  # pixels of a PNG for each of the picture
_LETTER: Final = 6.6  # the width of a letter of 13 pixels, on average and a little more
_HEADLINE: Final = 9.5  # likewise of a headline
_ROOM: Final = 170  # for the names beside a panel, where it has some
_ROW: Final = 24  # the height of a line of a legend
_TICK: Final = "M0,-1V1"  # an upright stroke, as Vega draws shapes
_SHAPES: Final = {
    "bar": "square", "band": "square", "dot": "circle", "ring": "circle", "cross": "cross",
    "diamond": "diamond",
    "triangle": "triangle-up", "tick": _TICK, "stem": _TICK,
}  # fmt: skip
_DASHES: Final = {"line": [1, 0], "dash": [6, 3], "dots": [2, 2]}


def check_figure(option: str, path: str | None) -> None:
    """Make sure before a long run that a picture can be drawn.

    Raises:
        MissingExtra: vl-convert is not installed.
        UsageError: The file's name does not say a known format.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{option} {path}: the name must end in {', '.join(FORMATS)}")
    _converter()


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("Drawing figures", "plots") from None
    return vl_convert


def save_pictures(
    pictures: Sequence[Picture],
    path: str | Path,
    width: int = 480,
    *,
    overwrite: bool = False,
    spare: bool = False,
) -> None:
    """Draw pictures side by side, each with its title, its legend and how it was measured.

    Args:
        pictures: What to draw.
        path: The file; its name says the format.
        width: The width of a panel, with the names beside it.
        overwrite: Whether it may replace a file that is no picture of ours.
        spare: Whether it goes to a name beside where it may not (`files.replacing`).

    Raises:
        MissingExtra: vl-convert is not installed.
        OutputError: The file cannot be written.
    """
    drawn = [_picture(each, width) for each in pictures]
    whole = drawn[0] if len(drawn) == 1 else {"hconcat": drawn, "resolve": APART}
    save(whole, path, overwrite=overwrite, spare=spare)


def save(spec: Spec, path: str | Path, *, overwrite: bool = False, spare: bool = False) -> None:
    """Draw a specification; colours of the style sheet become those of its light theme.

    A picture of ours is replaced, another file only if `overwrite` says so.

    Raises:
        MissingExtra: vl-convert is not installed.
        OutputError: The file cannot be written.
    """
    assets = files("thinveil.report") / "html" / "assets"
    light = re.search(r":root \{(.*?)\}", (assets / "page.css").read_text("utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", light[1] if light else ""))
    config = {**json.loads((assets / "charts.json").read_text("utf-8")), "background": "white"}
    text = clean(json.dumps({"config": config, "padding": 16, **spec}, ensure_ascii=False))
    text = re.sub(r"var\(--([\w-]+)\)", lambda found: colours.get(found[1], found[0]), text)
    kind = Path(path).suffix.lower().removeprefix(".")
    how = {"scale": _SCALE} if kind == "png" else {}
    made = _marked(getattr(_converter(), f"vegalite_to_{kind}")(text, **how))
    named = f"the figure {path}"
    write_file(path, made, named, kind="picture", overwrite=overwrite, spare=spare)


def _marked(picture: str | bytes) -> bytes:
    """Return a picture that says in its first bytes that it is ours; it looks the same."""
    if isinstance(picture, str):
        return re.sub(
            "(<svg [^>]*>)", r"\1<metadata>thinveil</metadata>", picture, count=1
        ).encode()
    if picture.startswith(b"%PDF"):  # the second line is a remark of four bytes that are no text
        return re.sub(rb"(?<=\n%)[\x80-\xff]{4}(?=\n)", PDF_MARK, picture, count=1)
    text = b"tEXtSoftware\0thinveil"
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return picture[:_PNG_HEAD] + chunk + picture[_PNG_HEAD:]


def _picture(picture: Picture, width: int) -> Spec:
    """Return a picture as one specification."""
    whole = width * len(picture.panels)
    charts = []
    for panel in picture.panels:
        named = "labelExpr" in panel.spec.get("encoding", {}).get("y", {}).get("axis", {})
        room = {"width": width - (_ROOM if named else 60)}
        about = {"title": _title(panel.heading, width, 13)} if panel.heading else {}
        charts.append({**panel.spec, **room, **about})
    below = [_legend(picture.legend, whole - 60)] if picture.legend else []
    return {
        "title": {
            **_title(picture.title, whole, 17),
            "subtitle": _lines(picture.note, whole - 60, _LETTER),
            "subtitleFontSize": 13,
            "subtitlePadding": 6,
            "offset": 14,
        },
        "vconcat": [charts[0] if len(charts) == 1 else {"hconcat": charts}, *below],
        "spacing": 22,
    }


def _lines(text: str, width: float, letter: float) -> list[str]:
    return textwrap.wrap(text, max(20, int(width / letter)))


def _title(text: str, width: float, size: int) -> dict[str, Any]:
    lines = _lines(text, width, _HEADLINE * size / 17)
    return {"text": lines, "anchor": "start", "frame": "group", "fontSize": size}


def _legend(keys: Sequence[Key], width: float) -> Spec:
    """Return the legend: signs with their meaning, in as many lines as it takes."""
    layers: list[Spec] = []
    left, row = 0.0, 0
    texts = []
    for key in keys:
        room = 34 + _LETTER * len(key.text) + 24
        if left and left + room > width:
            left, row = 0.0, row + 1
        at = {"x": left, "end": left + 24, "middle": left + 12, "y": _ROW * row + _ROW / 2}
        layers.append(_sign(key, at))
        texts.append({**at, "x": left + 32, "text": clean(key.text)})
        left += room
    named = layer(words(align="left", baseline="middle"), **_places("x"), text={"field": "text"})
    layers.append({"data": {"values": texts}, **named})
    return {"width": width, "height": _ROW * (row + 1), "layer": layers}


def _places(x: str) -> dict[str, Any]:
    """Return places in pixels: the legend has no scales."""
    raw = {"type": "quantitative", "scale": None, "axis": None}
    return {"x": {"field": x, **raw}, "y": {"field": "y", **raw}}


def _sign(key: Key, at: dict[str, float]) -> Spec:
    colour = f"var(--{key.colour})"
    if key.sign in _DASHES:
        dash = {"strokeDash": _DASHES[key.sign], "strokeWidth": 2.5, "color": colour}
        where = {**_places("x"), "x2": {"field": "end"}}
        return {"data": {"values": [at]}, **layer({"type": "rule", **dash}, **where)}
    shape = _SHAPES[key.sign]
    filled = key.sign != "ring" and shape != _TICK
    return {
        "data": {"values": [at]},
        "mark": {
            "type": "point",
            "shape": shape,
            "size": 200 if shape == _TICK else 130,
            "filled": filled,
            "color": colour,
            "strokeWidth": 2.5,
            "opacity": 0.25 if key.sign == "band" else 1,
        },
        "encoding": _places("middle"),
    }
