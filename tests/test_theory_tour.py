"""The guided tour, its command and its page."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from thinveil.commands.main import run
from thinveil.errors import UsageError
from thinveil.paper.theory.chapters import Chapter, Held, Setting, plain, shown
from thinveil.paper.theory.losses import INFINITE, NOTHING, Loss
from thinveil.paper.theory.tour import CHAPTERS, tour
from worlds import sweep


class Chapters(dict[str, Chapter]):
    """The chapters of a world of 243 data sets, each computed when it is first read."""

    setting = Setting.of(records=5, domain=3, k=2)

    def __missing__(self, name: str) -> Chapter:
        chapter = next(each for each in CHAPTERS if each.__name__ == name)(self.setting)
        assert chapter.name == name
        self[name] = chapter
        return chapter


@pytest.fixture(scope="module")
def chapters() -> Chapters:
    return Chapters()


def column(chapter: Chapter, heading: str) -> list[Any]:
    return [row[chapter.headings.index(heading)] for row in chapter.rows]


@pytest.mark.parametrize(("records", "domain", "k"), sweep([(4, 2, 2), (5, 3, 2)], 2))
def test_every_chapter_has_a_name_a_table_and_a_sentence(records, domain, k) -> None:
    chapters = list(tour(Setting.of(records, domain, k)))
    assert len({chapter.name for chapter in chapters}) == len(CHAPTERS) == 15
    for chapter in chapters:
        assert chapter.rows
        assert all(len(row) == len(chapter.headings) for row in chapter.rows)
        assert chapter.sentence.endswith(".")
        assert not re.search("NOT|DIFFERS|WRONG", chapter.sentence)
        assert json.loads(json.dumps(chapter.to_plain()))["rows"]


def test_what_the_tour_finds_in_its_own_world(chapters) -> None:
    assert [pairs for pairs in column(chapters["neighbours"], "protected pairs") if pairs] == [
        2430, 20, 100, 160,
    ]  # fmt: skip
    assert chapters["sensitivities"].rows[0][1:] == (0, 0, 0, 0, 0)
    assert column(chapters["median"], "local sensitivity") == [0, 1, 2]
    assert sum(column(chapters["median"], "data sets")) == 243
    assert set(column(chapters["k_laplace"], "closed form right")) == {"243 of 243"}
    assert column(chapters["zones"], "answer, IDP") == [
        "exactly 1", "exactly 1", "noisy", "noisy", "exactly 0", "exactly 0", "exactly 0",
    ]  # fmt: skip
    assert column(chapters["zones"], "bootstrap") == [0, 1, 1, 1, 1, 1, 0]
    assert chapters["zones"].sentence.count("(right)") == 2


@pytest.mark.nightly
def test_what_the_tour_says_of_mechanisms(chapters) -> None:
    table = {row[0]: row[1:] for row in chapters["definitions"].rows}
    ln2, ln4 = Held(_ln(2), True), Held(_ln(4), False)
    nothing, everything = Held(NOTHING, True), Held(INFINITE, False)
    assert table["nothing"] == (nothing,) * 4 + (True,)
    assert table["noisy count"] == (ln2, ln2, ln4, ln2, True)
    assert table["the truth, count > 4?"] == (everything, nothing, nothing, everything, True)
    readings = chapters["readings"]
    assert max(column(readings, "fixed, worst")) == Loss.of(0.5)
    assert INFINITE in column(readings, "anew, here")
    assert all(kept in (None, True) for kept in column(chapters["combining"], "kept"))
    assert set(column(chapters["smooth"], "at most epsilon")) == {True}
    assert set(column(chapters["smooth"], "DP loss, local")) == {INFINITE}
    assert column(chapters["instance"], "loss")[:2] == [Loss.of(0.5), Loss.of(0.25)]


def _ln(ratio: int) -> Loss:
    return Loss(Fraction(ratio))


def test_what_the_tour_says_of_empirical_neighbours(chapters) -> None:
    hints = chapters["hints"]
    assert column(hints, "at 1e-10") == [True] * 7 + [False]
    assert column(hints, "left open") == [1, 1, 6, 24, 64, 64, 48, 64]
    assert column(chapters["recovery"], "recovered") == [243, 243, 4, 0, 240]
    assert column(chapters["empty_hint"], "so it is") == [
        "DP", "stronger", "DP", "DP", "weaker",
    ]  # fmt: skip
    assert chapters["empty_hint"].rows[-1][-2:] == (_ln(2), _ln(4))


@pytest.mark.parametrize(
    ("records", "domain", "k"),
    sweep([(2, 2, 1), (4, 2, 2), (3, 5, 1), (3, 2, 1), (6, 2, 3), (2, 4, 1)], 3),
)
def test_the_tour_holds_in_other_worlds(records: int, domain: int, k: int) -> None:
    for chapter in tour(Setting.of(records, domain, k)):
        assert not re.search("NOT|DIFFERS|WRONG", chapter.sentence), chapter.name


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((3, 3, 2), "2k = 4"),
        ((5, 3, 0), "at least 1"),
        ((5, 1, 1), "at least 2"),
        ((0, 3, 1), "at least one"),
        ((7, 3, 1), "too many for the tour"),
        ((50, 3, 1), "too many to enumerate"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, match, capsys) -> None:
    with pytest.raises(UsageError, match=match):
        Setting.of(*arguments)
    records, domain, k = map(str, arguments)
    assert run(["theory", "--records", records, "--domain", domain, "--k", k]) == 2
    assert match in capsys.readouterr().err


def test_cells_are_shown_and_kept() -> None:
    cells = [True, None, 1234, 0.123456, (1, (2, 3)), frozenset({1, 0}), Held(INFINITE, False)]
    assert list(map(shown, cells)) == [
        "yes", "", "1,234", "0.1235", "(1, (2, 3))", "{0, 1}", "no, infinite",
    ]  # fmt: skip
    assert plain(Held(INFINITE, False)) == {
        "exact": "infinite", "epsilon": None, "satisfied": False,
    }  # fmt: skip
    assert plain((frozenset({1, 0}), Loss.of(0.5))) == [[0, 1], {"exact": "1/2", "epsilon": 0.5}]


def test_the_command_prints_every_chapter_and_keeps_it_as_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "tour.json"
    assert run(["theory", "--records", "4", "--domain", "2", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    result = json.loads(path.read_text("utf-8"))
    assert (result["records"], result["domain"], result["k"]) == (4, [0, 1], 2)
    assert len(result["chapters"]) == len(CHAPTERS)
    for number, chapter in enumerate(result["chapters"], 1):
        assert f"{number}. {chapter['title']}"[:60] in out
        assert chapter["rows"]
        assert chapter["sentence"].split(".")[0][:40] in out
    assert run(["theory", "--records", "4", "--domain", "2", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == result
    assert "1. Who is whose neighbour?" in captured.err


def test_the_seed_changes_the_drawn_answers_and_nothing_else() -> None:
    first, other = (list(tour(Setting.of(2, 2, 1, seed))) for seed in (0, 1))
    changed = [a.name for a, b in zip(first, other, strict=True) if a != b]
    assert changed == ["k_laplace", "decision"]
