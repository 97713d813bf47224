"""Words at the command line: made-up people without doubts, nouns in the singular, suggestions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import thinveil
from thinveil.commands.main import _COMMANDS, _loaded, run
from thinveil.commands.shared.common import _meant
from thinveil.commands.shared.grouped import HEADINGS, heading_of
from thinveil.curator.tables.doubting import doubts
from thinveil.curator.tables.reading import NO_REMARKS
from thinveil.language.claims import MECHANISMS, claim_named
from thinveil.verdicts.phrases import spelled


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- made-up people ------------------------------------------------------------------------


@pytest.mark.parametrize("records", [*range(1, 40, 3), 60, 200])
def test_made_up_people_raise_no_doubt_of_their_own(records: int, here: Path):
    assert run(["people", "--records", str(records), "--output", "people.csv"]) == 0
    data = thinveil.load("people.csv")
    assert doubts(data.schema, data.records) == NO_REMARKS


@pytest.mark.parametrize(
    "line",
    [
        "audit --attack count --known age=40", "audit people.csv", "schema people.csv",
        "compare people.csv --mechanism idp --people 2",
    ],
)  # fmt: skip
def test_commands_on_made_up_people_note_nothing(line: str, here: Path, capsys):
    assert run(["people", "--records", "60", "--output", "people.csv"]) == 0
    capsys.readouterr()
    assert run(line.split()) == 0
    assert "Note:" not in capsys.readouterr().err


def test_the_same_texts_in_another_column_are_doubted(here: Path):
    assert run(["people", "--records", "40", "--output", "people.csv"]) == 0
    text = (here / "people.csv").read_text().replace("postcode", "patient", 1)
    (here / "others.csv").write_text(text)
    data = thinveil.load("others.csv")
    assert [each.split("'")[1] for each in doubts(data.schema, data.records).doubts] == ["patient"]


def test_the_same_people_are_written_again_without_complaint(here: Path, capsys):
    line = ["people", "--records", "30", "--output", "people.csv"]
    assert run(line) == 0
    assert "Wrote people.csv: 30 made-up people." in capsys.readouterr().err
    assert run(line) == 0
    assert "people.csv holds 30 made-up people already." in capsys.readouterr().err
    assert run([*line, "--seed", "7"]) == 2, "other people are never written over"
    assert "exists already" in capsys.readouterr().err
    assert run(["people", "--records", "1", "--output", "one.csv"]) == 0
    assert "1 made-up person." in capsys.readouterr().err


def test_a_value_outside_what_was_believed_is_marked(here: Path, capsys):
    assert run(["people", "--records", "60", "--output", "people.csv"]) == 0
    line = ["audit", "people.csv", "--attack", "attribute", "--known", "age=40"]
    for prior, marked in (("2000..4000", False), ("20000..40000", True)):
        capsys.readouterr()
        assert run([*line, "--column", "salary", "--prior", f"salary={prior}"]) == 0
        assert ("2640.62 (outside --prior)" in capsys.readouterr().out) is marked


# -- did you mean --------------------------------------------------------------------------

CONTROLS = {name for name in MECHANISMS if claim_named(name).control}
HONEST = (
    "dp", "DP", "d-p", "edp", "cdp", "zcdp", "zCDP", "rdp", "renyi-dp", "ldp", "gdp", "fdp", "pdp",
    "pure-dp", "dp-", "dp1", "dp-gaussian", "dp_gauss", "dp-idb", "dp-integer", "dp-noisy",
    "dp-binary", "laplace", "Laplacian", "laplas-dp", "gaussian", "geometric", "discrete-laplace",
    "differential privacy", "differential-privacy", "differentially-private", "privacy", "cauchy",
    "exponential", "dp laplace", "dp_laplace", "honest", "control", "smooth", "opendp",
)  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_whoever_asks_for_honest_noise_is_offered_nothing_that_leaks(name: str):
    assert _meant(name) in {"", *CONTROLS}


def typos(name: str) -> set[str]:
    """Return what one slip makes of a name: a letter lost, doubled, swapped or another."""
    cut = {name[:at] + name[at + 1 :] for at in range(len(name))}
    twice = {name[:at] + name[at] + name[at:] for at in range(len(name))}
    swapped = {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)}
    other = {name[:at] + letter + name[at + 1 :] for at in range(len(name)) for letter in "aisbx-"}
    return (cut | twice | swapped | other) - set(MECHANISMS)


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_a_slip_in_the_name_of_a_control_leads_to_no_leaking_mechanism(name: str):
    offered = {each: _meant(each) for each in typos(name)}
    assert {each: near for each, near in offered.items() if near not in {"", *CONTROLS}} == {}
    assert sum(near == name for near in offered.values()) > 0.9 * len(offered)


@pytest.mark.parametrize(
    ("name", "near"),
    [("lapalce-dp", "dp-laplace"), ("dp-laplas", "dp-laplace"), ("laplace", "dp-laplace"),
     ("dp-textbok", "dp-textbook"), ("idb", "idp"),
     ("individual-dp", "idp"), ("bootstrap-dp", "bdp"), ("idp-bin", "idp-binary"),
     ("unprotectd", "unprotected"), ("textbook", "dp-textbook")],
)  # fmt: skip
def test_what_is_offered(name: str, near: str):
    assert _meant(name) == near


# -- help ----------------------------------------------------------------------------------


def asked(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([*([name] if name else []), "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize("name", ["", *_COMMANDS])
def test_help_breaks_no_word_and_fits(name: str, columns: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")
    words = set(asked(name, capsys).split())
    monkeypatch.setenv("COLUMNS", columns)
    narrow = asked(name, capsys)
    assert set(narrow.split()) <= words, "a word was broken at a hyphen"
    if columns == "80":
        assert [line for line in narrow.splitlines() if len(line) > 80] == []
    assert not re.search(r"\[default:\s*\n", narrow)


@pytest.mark.parametrize("name", _COMMANDS)
def test_many_options_stand_under_headings(name: str, capsys):
    headings = re.findall(r"^([A-Z][a-z ]+):$", asked(name, capsys), re.MULTILINE)
    options = [each.name or "" for each in _loaded(name).params if each.param_type_name == "option"]
    if len(options) <= 10:
        assert headings == ["Options"]
        return
    assert headings == [each for each in HEADINGS if each in headings]
    homeless = [each for each in options if not heading_of(each)]
    assert not homeless, f"commands/shared/grouped.py has no heading for {homeless}"
    assert len(headings) >= 4


def test_no_option_stands_under_two_headings():
    names = [name for each in HEADINGS.values() for name in each]
    assert len(names) == len(set(names))
    there = {each.name for name in _COMMANDS for each in _loaded(name).params}
    assert set(names) - there - {"help", "version"} == set()


# -- figures -------------------------------------------------------------------------------


def test_a_claimed_loss_is_written_in_one_way(here: Path):
    from thinveil.report.charts.membership import picture

    trial = thinveil.trial(thinveil.people(30), mechanism="dp-laplace", trials=20, most_repeats=123)
    told = picture(trial)
    claimed = spelled(trial.epsilon_claimed or 0)
    assert len(claimed) > 9, "a figure that rounding would shorten"
    assert claimed in str(told.table.rows[2][1])
    assert claimed in told.panels[1].label


def test_numbers_of_canaries_are_no_secret_of_a_report(here: Path):
    verdict = thinveil.audit(thinveil.people(30))
    verdict.report("r.html")
    page = (here / "r.html").read_text("utf-8")
    assert "canary-values 1000000000000" in re.sub(r"<[^>]+>", "", page)


# -- one of them ---------------------------------------------------------------------------

PLURAL = re.compile(
    r"(?<![\d.,])1 (?:different |possible |known )?(?:answers|records|values|rounds|columns|people"
    r"|bits|bytes|fields|texts|trials|runs|rows|attributes|queries|guesses|batches)\b"
)


@pytest.mark.parametrize(
    "line",
    [
        "audit one.csv --mechanism unprotected", "audit one.csv --mechanism bdp",
        "audit one.csv --mechanism dp-laplace --most-repeats 1", "audit two.csv --max-queries 1",
        "audit two.csv --attack column --column job", "compare one.csv --mechanism unprotected",
        "audit two.csv --attack attribute --known job=nurse", "schema one.csv",
        "audit two.csv --epsilon 1 --split equal --answers 1", "audit one.csv",
    ],
)  # fmt: skip
def test_one_is_never_written_with_a_plural(line: str, here: Path, capsys):
    (here / "one.csv").write_text("job,age\nnurse,40\n")
    (here / "two.csv").write_text("job,age\nnurse,40\nnurse,41\n")
    report = "--trials 0 --no-comparison --report r.html" if line.startswith("audit") else ""
    run([*line.split(), *report.split()])
    told = capsys.readouterr()
    said = re.sub(r"[│┃]", " ", told.out + told.err)
    said = re.sub(r"answers asked for|questions, rounds", "\n", said)  # what begins a line
    if (page := here / "r.html").exists():
        text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.S)
        said += re.sub(r"<[^>]+>", " ", text)
    assert PLURAL.findall(" ".join(said.split())) == []


def test_one_record_is_told_to_take_a_larger_table(here: Path, capsys):
    (here / "one.csv").write_text("job\nnurse\n")
    assert run(["audit", "one.csv"]) == 2
    said = capsys.readouterr().err
    assert "a larger table" in said
    assert "smaller k" not in said
