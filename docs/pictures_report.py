"""Takes the pictures of docs/report.md: the report on the embedded people, in a real browser.

Run `python docs/pictures_report.py`; it needs Debian's Chromium, Playwright and Pillow. The first
picture is the README's, too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import chromium, page_of
from thinveil.commands.main import run

IMAGES = Path(__file__).parent / "images"


def shot(tab: Any, first: str, last: str, room: int = 0) -> Image.Image:
    """Return the page from the top of one element to the bottom of another."""
    where = """names => names.map(name => {
      const box = document.querySelector(name).getBoundingClientRect();
      return [box.top + scrollY, box.bottom + scrollY];
    })"""
    (top, _), (_, bottom) = tab.evaluate(where, [first, last])
    width = tab.viewport_size["width"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shot.png")
        clip = {"x": 0, "y": max(0, top - room), "width": width, "height": bottom - top + 2 * room}
        tab.screenshot(path=path, full_page=True, clip=clip)
        with Image.open(path) as picture:
            return picture.convert("RGB")


def one_below_the_other(pictures: list[Image.Image], gap: int = 2) -> Image.Image:
    """Return several pictures of one width in a column."""
    height = sum(each.height for each in pictures) + gap * (len(pictures) - 1)
    column = Image.new("RGB", (pictures[0].width, height), "#dddddd")
    at = 0
    for each in pictures:
        column.paste(each, (0, at))
        at += each.height + gap
    return column


def side_by_side(pictures: list[Image.Image], gap: int = 24) -> Image.Image:
    """Return several pictures in a row."""
    size = (
        sum(each.width for each in pictures) + gap * (len(pictures) - 1),
        max(each.height for each in pictures),
    )
    row = Image.new("RGB", size, "#dddddd")
    at = 0
    for each in pictures:
        row.paste(each, (at, 0))
        at += each.width + gap
    return row


def save(picture: Image.Image, name: str) -> None:
    """Save a picture with few colours, which is all that it has."""
    path = IMAGES / f"report-{name}.png"
    few = picture.quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"{path.name}: {picture.width} x {picture.height}, {path.stat().st_size:,} bytes")


def main() -> None:
    """Make the report, open it in light, in dark and on a phone, and save what is seen."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        report = Path(folder, "report.html")
        assert run(["audit", "--report", str(report)]) == 0
        for width, dark in ((1100, False), (1100, True), (360, False)):
            with page_of(browser, width=width, dark=dark) as tab:
                tab.goto(report.as_uri())
                tab.wait_for_selector("html[data-drawn]")
                if width == 360:
                    parts = (
                        ("header", "#verdict"),
                        ("#staircase", "#staircase"),
                        ("#rebuilt", "#rebuilt"),
                    )
                    save(side_by_side([shot(tab, *each, room=16) for each in parts]), "phone")
                elif dark:
                    save(shot(tab, "#progress", "#accuracy", 24), "dark")
                else:
                    both = (("header", "#verdict"), ("#answers", "#staircase .drawn"))
                    save(one_below_the_other([shot(tab, *each, 12) for each in both]), "light")
                    save(shot(tab, "#membership", "#mechanisms", 24), "evidence")


if __name__ == "__main__":
    main()
