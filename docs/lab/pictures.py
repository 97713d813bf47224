"""Take the pictures of docs/lab.md: python docs/lab/pictures.py (needs Chromium and Playwright)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium, page_of, until  # noqa: E402
from labs import address_of, ended, go, number, serving  # noqa: E402
from thinveil.lab.app import app_of, new_key  # noqa: E402
from thinveil.lab.tables import Tables  # noqa: E402

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Take all pictures."""
    key = new_key()
    with serving(app_of(key, Tables())) as url, chromium() as browser:
        with page_of(browser) as page:
            page.goto(address_of(url, key))
            page.wait_for_selector("body[data-state=idle] tbody tr")
            go(page, speed="1000")
            until(page, lambda: number(page, "values") >= 150)
            page.click("#pause")
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / "lab-running.png")
            page.click("#reset")
            go(page, mechanism="dp-laplace")
            ended(page)
            page.screenshot(path=IMAGES / "lab-honest.png")
        with page_of(browser, dark=True) as page:
            page.goto(address_of(url, key))
            page.wait_for_selector("body[data-state=idle] tbody tr")
            go(page, k="3")
            ended(page)
            page.click("tbody tr >> nth=3 >> button")
            for _ in range(4):
                page.keyboard.press("ArrowRight")
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / "lab-person.png")


if __name__ == "__main__":
    main()
