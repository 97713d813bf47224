"""The live page in a real browser, and the page that plays recordings."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import page_of, until
from labs import (
    KEY,
    PEOPLE_CSV,
    Labs,
    address_of,
    ended,
    finished,
    go,
    number,
    serving,
    until_watched,
)
from thinveil import people
from thinveil.lab import recording
from thinveil.lab.app import app_of, static_files
from thinveil.lab.sessions import Sessions
from thinveil.lab.tables import Tables

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Any, lab: Labs) -> Iterator[Any]:
    with page_of(browser, width=1024, height=768) as page:
        page.goto(lab.address)
        page.wait_for_selector("body[data-state=idle] tbody tr")
        yield page
        assert page.watched.hosts == {"127.0.0.1"}


def test_everything_is_recovered_before_everybodys_eyes(page: Any) -> None:
    assert page.url.endswith("/")  # the key is not left in the address
    assert page.locator("td.unknown").count() == 240
    assert page.inner_text("td >> nth=0") == "?"
    go(page, k="3")
    assert "recovered all 30 records exactly" in ended(page)
    until(page, lambda: page.locator("td.right").count() == 240)
    assert page.locator("td.wrong, td.unknown").count() == 0
    truth = people(30).rows()
    assert page.inner_text("tbody tr >> nth=1 >> td >> nth=2") == str(truth[1][2])
    assert page.inner_text("#n-people") == "30 of 30"
    assert page.inner_text("#n-guessed").startswith("0 records")
    meter = page.locator("#claimed")
    assert float(meter.get_attribute("aria-valuenow")) < 1e-6
    assert page.locator("#recovered").get_attribute("aria-valuenow") == "1"
    assert "seed=0" in page.inner_text("#provenance")
    with page.expect_download() as download:
        page.click("#save")
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved == [json.loads(each) for each in recording.record(k=3)]
    assert page.watched.complaints == []


def test_a_person_shows_the_questions_that_gave_them_away(page: Any) -> None:
    go(page)
    ended(page)
    page.click("tbody tr >> nth=3 >> button")
    many = int(page.inner_text("#place").split(" of ")[1])
    assert 2 <= many <= 18
    assert page.is_disabled("#previous")
    seen = []
    for _ in range(many):
        words = page.inner_text("#dialogue .question")
        assert re.match(r"(Are there more than \d+ (people|person)|Is there anybody) ", words)
        answer, told = page.inner_text("#dialogue .answer"), page.inner_text("#dialogue .told")
        if "noise" in answer:
            assert told.startswith("Noise only appears where the count is")
            zone = [int(each) for each in re.findall(r"\d+", told)]
            fits = int(re.findall(r"In truth (\d+) of 30", page.inner_text("#dialogue .fine"))[0])
            assert min(zone) <= fits <= max(zone)
        else:
            assert re.search(r"exactly (yes \(1\)|no \(0\))", answer)
        assert page.locator("tr.lit").count() >= 1
        assert page.locator("tr.lit.chosen").count() == 1  # all are about this person
        seen.append(words)
        page.keyboard.press("ArrowRight")
    assert page.is_disabled("#next")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#dialogue .question") == seen[-2]
    page.click("#previous")
    assert page.inner_text("#dialogue .question") == seen[-3]
    page.uncheck("#few")
    assert int(page.inner_text("#place").split(" of ")[1]) > many
    page.keyboard.press("Escape")
    assert page.is_hidden("#drawer")
    assert page.watched.complaints == []


def test_a_run_is_paused_stepped_and_resumed(page: Any) -> None:
    page.click("#step")
    until(page, lambda: number(page, "rounds") == 1)
    asked = number(page, "questions")
    page.click("#one")
    until(page, lambda: number(page, "questions") == asked + 1)
    page.click("#step")  # the rest of this round
    until(page, lambda: number(page, "rounds") == 2)
    assert page.locator("body[data-state=paused]").count() == 1
    page.select_option("#speed", "30")
    page.click("#pause")  # resumes
    until(page, lambda: number(page, "rounds") > 3)
    page.click("#pause")
    page.wait_for_selector("body[data-state=paused]")

    def counters() -> list[int]:
        return [number(page, each) for each in ("questions", "rounds", "answers")]

    def resting() -> bool:
        """Tell whether what was on its way has arrived."""
        last = counters()
        page.wait_for_timeout(300)
        return counters() == last

    until(page, resting)
    before = counters()
    page.wait_for_timeout(500)
    assert counters() == before
    page.click("#step")
    until(page, lambda: number(page, "rounds") == before[1] + 1)
    page.select_option("#speed", "0")
    page.click("#pause")
    assert "recovered all 30" in ended(page)
    page.click("#reset")
    assert page.locator("td.unknown").count() == 240
    assert number(page, "questions") == 0
    assert page.watched.complaints == []


def test_a_run_keeps_its_own_name_whatever_is_chosen(page: Any) -> None:
    page.fill("#k", "3")
    page.click("#step")
    page.wait_for_selector("body[data-state=paused]")
    for each in ("table", "file", "mechanism", "k", "epsilon", "seed", "attack", "strategy"):
        assert page.is_disabled(f"#{each}"), each
    assert "Reset to change" in page.inner_text("#setup")
    until(page, lambda: number(page, "rounds") == 1)
    assert "First it learns" in page.inner_text("#phase")
    mine = "idp, k = 3, epsilon 1e-10 each answer"
    assert page.inner_text("#run-title") == f"30 made-up people: {mine}"
    page.select_option("#speed", "0")
    page.click("#pause")  # resumes
    assert ended(page).startswith(f"{mine}:")
    assert page.is_hidden("#locked")
    page.select_option("#mechanism", "dp-laplace")
    page.select_option("#attack", "membership")
    page.fill("#epsilon", "1")
    assert page.inner_text("#verdict").startswith(f"{mine}:")
    assert mine in page.inner_text("#run-title")
    assert page.is_hidden("#legend-known")
    assert page.inner_text("#n-people") == "30 of 30"
    page.click("#reset")
    assert page.is_hidden("#run-title")
    assert page.is_enabled("#mechanism")
    assert page.watched.complaints == []


def test_an_opened_table_is_hidden_and_a_failed_one_wipes_nothing(
    page: Any, tmp_path: Path
) -> None:
    go(page)
    verdict = ended(page)
    page.click("#truth")
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_bytes(b"name,age\nZo\x00,36\n")
    good.write_bytes(PEOPLE_CSV)
    page.set_input_files("#file", bad)
    page.wait_for_selector("#alert:not([hidden])")
    said = page.inner_text("#alert")
    assert "save the file as UTF-8 text, and open" in said
    assert page.inner_text("#verdict") == verdict
    assert page.locator("td.right").count() == 240
    page.set_input_files("#file", good)
    until(page, lambda: page.locator("tbody tr").count() == 4)
    assert page.get_attribute("#truth", "aria-pressed") == "false"
    assert page.locator("td.unknown").count() == 8
    assert "Rapunzel" not in page.inner_text("#people")
    page.click("#truth")
    page.select_option("#table", "incomes")
    until(page, lambda: page.locator("tbody tr").count() == 6)
    assert page.locator("td.unknown").count() == 6


def test_honest_noise_is_seen_to_hold(page: Any) -> None:
    go(page, mechanism="dp-laplace")
    said = ended(page)
    answers = page.inner_text("#n-answers")
    assert "No usable difference was found" in said
    assert "would have been seen with probability 90 %" in said
    assert f"from {answers} answers" in said
    assert page.locator("td.unknown").count() == 240
    page.click("#truth")
    assert page.locator("td.ghost").count() == 240
    page.click("#truth")
    assert page.locator("td.unknown").count() == 240
    assert page.watched.complaints == []


def test_a_file_of_ones_own_and_what_is_wrong_with_another(page: Any, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_bytes(b"name,age\nAda,36\nGrace\n")
    good.write_bytes(PEOPLE_CSV)
    page.set_input_files("#file", bad)
    page.wait_for_selector("#alert:not([hidden])")
    assert "bad.csv: the row that starts on line 3 has 1 field" in page.inner_text("#alert")
    page.set_input_files("#file", good)
    until(page, lambda: page.locator("tbody tr").count() == 4)
    assert page.is_hidden("#alert")
    go(page, k="3")
    page.wait_for_selector("#alert:not([hidden])")
    assert "below 2k = 6 records" in page.inner_text("#alert")
    go(page, k="1", epsilon="0")
    until(page, lambda: "above zero" in page.inner_text("#alert"))
    go(page, epsilon="1e-10", attack="attribute")
    page.uncheck("#known input[value=name]")
    page.check("#known input[value=age]")
    page.fill("#person-number", "3")
    assert page.locator("td.known").count() == 1
    page.click("#go")
    assert "1 attribute of the person" in ended(page)
    assert page.inner_text("tr.lit td.right, tbody tr >> nth=2 >> td.right") == "Rapunzel"
    complaints = [each for each in page.watched.complaints if "422" not in each]
    assert complaints == []  # a browser reports refused requests in its console


def test_two_tabs_run_side_by_side(page: Any, browser: Any, lab: Labs) -> None:
    with page_of(browser) as other:
        other.goto(lab.address)
        other.wait_for_selector("body[data-state=idle] tbody tr")
        go(page, speed="30", mechanism="idp")
        go(other, mechanism="idp-noisy", attack="column", column="ward")
        assert "recovered the column ward" in ended(other)
        assert other.locator("td.right").count() == 30
        assert page.locator("body[data-state=running]").count() == 1
        page.select_option("#speed", "0")
        assert "recovered all 30" in ended(page)
        assert other.inner_text("#n-questions") != page.inner_text("#n-questions")


def test_many_tabs_share_the_connections_of_one_browser(page: Any, lab: Labs) -> None:
    """A browser has six connections for all tabs; more runs than that can still be driven."""
    tabs = [page, *(page.context.new_page() for _ in range(6))]
    for tab in tabs:
        if tab is not page:
            tab.goto(lab.address)
            tab.wait_for_selector("body[data-state=idle] tbody tr")
        tab.bring_to_front()  # others are drawn once a second
        tab.click("#step")

        def began(tab: Any = tab) -> bool:
            return number(tab, "rounds") == 1

        until(tab, began)
    page.bring_to_front()
    page.click("#step")
    until(page, lambda: number(page, "rounds") == 2)
    for tab in tabs:
        assert tab.is_hidden("#lost")
        tab.close()
    until_watched(lab, 0)


@pytest.mark.parametrize("asked", [True, False])
def test_a_server_that_is_gone_is_said_and_found_again(browser: Any, asked: bool) -> None:
    runs, leaving = Sessions(), threading.Event()
    app = app_of(KEY, Tables(), runs, leaving.is_set)
    with page_of(browser) as page:
        with serving(app) as url:
            page.goto(address_of(url))
            page.wait_for_selector("body[data-state=idle] tbody tr")
            go(page, speed="30")
            until(page, lambda: number(page, "questions") > 5)
            leaving.set()
        page.wait_for_selector("#lost:not([hidden])")
        assert "still running in its terminal" in page.inner_text("#lost")
        leaving.clear()
        with serving(app, int(url.rsplit(":", 1)[1])):
            if asked:
                page.click("#reconnect")
            page.wait_for_selector("#lost", state="hidden")  # the page asks by itself, too
            page.select_option("#speed", "0")
            assert "recovered all 30" in ended(page)
            until(page, lambda: page.locator("td.right").count() == 240)
    runs.close_all()


def test_the_page_fits_small_screens_and_both_themes(browser: Any, lab: Labs) -> None:
    paper = set()
    for width, height, dark in ((390, 844, False), (1024, 768, True)):
        with page_of(browser, width=width, height=height, dark=dark) as page:
            page.goto(lab.address)
            page.wait_for_selector("body[data-state=idle] tbody tr")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("#go").bounding_box()["y"] < height
            paper.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            unnamed = page.evaluate(
                "[...document.querySelectorAll('input, select, button')].filter((each) => "
                "!(each.labels?.length || each.textContent.trim() || each.ariaLabel)).length"
            )
            assert unnamed == 0
    assert len(paper) == 2


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_can_be_told_apart(theme: int) -> None:
    """All pairs of text and ground have the contrast of WCAG's level AA."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", static_files()["lab.css"].decode())
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[theme]))

    def light(name: str) -> float:
        parts = [int(colour[name][at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for text, grounds in {
        "ink": ("paper", "card", "lit"),
        "soft": ("paper", "card", "lit"),
        "accent": ("paper", "card"),
        "calm": ("card",),
        "right-ink": ("right-paper",),
        "wrong-ink": ("wrong-paper",),
        "known-ink": ("known-paper",),
        "calm-ink": ("calm-paper",),
        "on-strong": ("strong", "chosen"),
    }.items():
        for ground in grounds:
            low, high = sorted([light(text), light(ground)])
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page that plays recordings."""
    folder = tmp_path_factory.mktemp("recorded")
    recording.write(folder)
    return folder


def test_recordings_play_from_a_disk(browser: Any, recorded: Path) -> None:
    with page_of(browser) as page:
        page.goto((recorded / recording.PAGE).as_uri())
        page.wait_for_selector("body[data-state=idle] tbody tr")
        go(page, mechanism="bdp")
        assert "recovered the distinct set of 30 records exactly" in ended(page)
        assert page.watched.complaints == []
        assert {each.partition(":")[0] for each in page.watched.requests} == {"file"}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def test_recordings_play_without_the_server(browser: Any, recorded: Path, tmp_path: Path) -> None:
    handler = functools.partial(_Quiet, directory=str(recorded))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with page_of(browser) as page:
                page.goto(f"http://127.0.0.1:{server.server_port}/{recording.PAGE}")
                page.wait_for_selector("body[data-state=idle] tbody tr")
                assert "recordings of real runs" in page.inner_text("#setup")
                page.click("#step")
                until(page, lambda: number(page, "rounds") == 1)
                asked = number(page, "questions")
                page.click("#one")
                until(page, lambda: number(page, "questions") == asked + 1)
                page.select_option("#speed", "0")
                page.click("#pause")
                assert "recovered all 30" in ended(page)
                page.click("tbody tr >> nth=7 >> button")
                page.keyboard.press("ArrowRight")
                assert "people" in page.inner_text("#dialogue")
                page.keyboard.press("Escape")
                go(page, mechanism="dp-laplace")
                assert "No usable difference" in ended(page)
                assert "thinveil.people(30)" in page.inner_text("#provenance")
                saved, other = tmp_path / "mine.lab.json", tmp_path / "other.json"
                saved.write_text(json.dumps(finished(table="incomes")))
                other.write_text("{}")
                page.set_input_files("#file", other)
                page.wait_for_selector("#alert:not([hidden])")
                assert "other.json is not a run" in page.inner_text("#alert")
                page.set_input_files("#file", saved)
                until(page, lambda: page.locator("tbody tr").count() == 6)
                page.click("#go")
                assert "recovered all 6 records" in ended(page)
                page.click("#truth")
                go(page, mechanism="idp-k3")  # another table: nobody asked to see this one
                assert "idp, k = 3" in ended(page)
                assert page.get_attribute("#truth", "aria-pressed") == "false"
                assert page.watched.complaints == []
                assert page.watched.hosts == {"127.0.0.1"}
        finally:
            server.shutdown()
