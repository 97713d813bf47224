"""The report: one file that says what was shown, gives nobody away, and reads everywhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import thinveil
from browser import chromium, page_of
from thinveil.commands.main import run as command
from thinveil.report import html
from thinveil.report.html.masking import command as masked_command
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import (
    AnswersCurve,
    AnswersPoint,
    Known,
    LossCurve,
    LossPoint,
    Risk,
)
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.record import Record
from thinveil.verdicts.sentences import MASK
from thinveil.verdicts.typed import from_json
from worlds import sure

ASSETS = Path(thinveil.__file__).parent / "report" / "html" / "assets"
VOID = {"meta", "br", "link", "img", "col"}


class Outline(HTMLParser):
    """What a test asks of a page: elements with attributes, headings, ids, and visible text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes, _ in self.elements if name == tag]

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


def page(
    run: dict[str, Any], comparison: dict[str, Any] | None = None, show_records: bool = False
) -> str:
    """Return the page of what a file holds, perhaps changed by hand."""
    beside = None if comparison is None else from_json(Comparison, comparison)
    return html.page(from_json(Record, run), comparison=beside, show_records=show_records)


@cache
def table() -> thinveil.Dataset:
    return thinveil.people(40)


def read_back(plain: Any) -> dict[str, Any]:
    """Return what is read of what was written."""
    read: dict[str, Any] = json.loads(json.dumps(plain))
    return read


@cache
def results(name: str) -> dict[str, Any]:
    """Return the result of a real run, by what is special about it."""
    people, first = table(), table().rows()[0]
    known = {"age": str(first[0]), "postcode": str(first[1])}
    target = thinveil.Curator(people, thinveil.claim_named("idp"), seed=1)
    how: dict[str, dict[str, Any]] = {
        "idp": {"trials": 40},
        "idp-noisy": {"mechanism": "idp-noisy", "attack": "dataset"},
        "bdp": {"mechanism": "bdp"},
        "honest": {"mechanism": "dp-laplace", "trials": 20},
        "idp-binary": {"mechanism": "idp-binary"},
        "loud": {"mechanism": "dp-laplace", "epsilon_per_query": "5"},
        "unprotected": {"mechanism": "unprotected"},
        "attribute": {"attack": "attribute", "known": known},
        "count": {"attack": "count", "known": {"age": "30..60"}},
        "membership": {"attack": "membership", "known": known},
        "trial": {"attack": "membership", "trials": 40},
        "column": {"attack": "column", "columns": ["salary"]},
        "early": {"cap": "2e-8"},
        "service": {},
    }
    few = dict.fromkeys(("idp-noisy", "idp-binary", "loud"), thinveil.people(24))
    held = {"service": target, **few}.get(name, people)
    verdict = thinveil.audit(held, exhibits=name != "service", **how[name])
    shown = verdict.examples(people) if name == "idp" else None
    return read_back(verdict.record(records_shown=shown).to_plain())


NAMES = (
    "idp", "idp-noisy", "bdp", "honest", "unprotected", "attribute", "count", "membership", "trial",
    "column", "early", "service",
)  # fmt: skip


@cache
def beside() -> dict[str, Any]:
    """Return a real comparison, and risk curves in the shape that is really written."""
    names = ("unprotected", "idp", "dp-laplace")
    compared = compare(table(), Settings(mechanisms=names, people=4), lambda meter, about: None)
    shares = {"idp": (1.0, 1.0), "idp-noisy": (1.0, 1.0), "dp-laplace": (0.0, 1.0)}
    losses = tuple(
        LossPoint(name, loss, seed, Known(share, share), 100, loss, "complete", "")
        for name, both in shares.items()
        for loss, share in zip((1e-12, 1e5), both, strict=True)
        for seed in (0, 1)
    )
    answers = tuple(
        AnswersPoint(name, count, Known(0.0, share), share)
        for name in ("unprotected", "idp", "bdp", "idp-binary")
        for count, share in ((1, 0.0), (100, 0.5), (200, 1.0))
    )
    known = Known(0.01, 0.2)
    guess = (known.records, known.values)
    curves = Risk(
        LossCurve(10, 1000, "posterior", *guess, losses),
        AnswersCurve(40, "1e-10", *guess, answers),
        {"unprotected": "grey", "idp": "red", "idp-noisy": "red", "dp-laplace": "blue"},
        0,
        False,
    )
    return read_back(replace(compared, risk=curves).to_plain())


@pytest.mark.parametrize("name", NAMES)
def test_structure(name):
    outline = Outline(page(results(name), comparison=beside()))
    levels = [int(tag[1]) for tag, *_ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= level + 1 for level, later in pairwise(levels))
    ids = [attributes["id"] for _, attributes, _ in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for each in outline.all("a"):
        assert sure(each["href"])[1:] in ids
    for tag, attributes, _ in outline.elements:
        assert "src" not in attributes
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
    assert outline.all("html")[0]["lang"] == "en"
    for landmark in ("title", "header", "main", "nav", "footer"):
        assert len(outline.all(landmark)) == 1
    figures = outline.all("figure")
    assert len(figures) >= 3
    inside = [tag for tag, _, parents in outline.elements if "figure" in parents]
    for part in ("figcaption", "details", "table", "caption", "h3"):
        assert inside.count(part) == len(figures), part
    charts = [each for each in outline.all("div") if each.get("class") == "chart"]
    assert len(charts) >= len(figures)
    assert all(re.search(r"\d", sure(each["data-label"])) for each in charts)
    assert all(each.get("scope") in ("row", "col") for each in outline.all("th"))
    specs = [each for each in outline.all("script") if each.get("type") == "application/json"]
    assert {each["data-for"] for each in specs} == {each["id"] for each in charts}
    assert "Asking nothing" in outline.said or "not scored" in outline.said
    assert "None" not in outline.said
    assert "nan" not in outline.said.split()


def said(name: str, **how: Any) -> str:
    return Outline(page(results(name), **how)).said


def test_what_the_pages_say():
    recovered = said("idp")
    assert "recovered all 40 records exactly" in recovered
    assert "The noise shows where the count is" in recovered
    assert "at 99.9 % confidence" in recovered.replace("\xa0", " ")
    assert "This does not refute the claim: Individual DP promises less" in recovered
    assert "more trials raise this ceiling" in recovered
    assert "times as noisy next to the count" in said("idp-noisy")
    assert "Answers that change show where the count is" in said("idp-binary")
    assert "the step from yes to no is the count" in said("unprotected")
    assert "small enough for repeated answers to show the step" in said("loud")
    assert 'class="tone-leak"' not in page(results("loud"))
    assert "different records" in said("bdp")
    assert "The run ended early: the cap on the claimed loss" in said("early")
    assert "not scored" in said("service")
    assert "the true table was not at hand" in said("service")
    honest = said("honest")
    assert "No usable difference was found" in honest
    assert "no count shows" in honest
    assert "Nothing was recovered beyond what guessing gets" in honest
    assert "what was not seen here may still be there" in honest
    for word in ("tone-leak", "tone-part"):
        assert f'class="{word}"' not in page(results("honest"))
    assert 'class="tone-calm"' in page(results("honest"))
    assert 'class="tone-leak"' in page(results("idp"))
    assert 'class="tone-part"' not in page(results("service"))
    # each part that is left out names what adds it
    assert recovered.count("left out.") == 2
    assert "thinveil compare TABLE --risk --json" in recovered
    assert "left out." not in said("idp", comparison=beside())


def beyond(run: dict[str, Any], **how: Any) -> str:
    """Return what a page on a changed run says, with plain spaces."""
    return Outline(page(run, **how)).said.replace("\xa0", " ")


def title_of(text: str, name: str) -> str:
    found = re.search(rf'id="{name}-title">(.*?)</h3>', text)
    assert found
    return found[1].replace("\xa0", " ")


def test_a_bound_of_nought_is_not_a_difference_of_none():
    run = results("trial")
    inside, outside = run["membership"]["in"], run["membership"]["out"]
    none = {"right": 20, "made": 40, "trials": 40, "held_out": 0, "threshold": 0.0}
    half = {"true_positives": inside // 2, "false_positives": outside // 2, "guesses": none}
    two = {"guesses": {**none, "right": 1, "made": 2, "trials": 2}}
    few = {"in": 1, "out": 1, "hunches": [0, 1], "asked_for": 2, **two}
    few |= {"true_positives": 0, "false_positives": 0}
    for change, title in (
        (few, "So few trials can show no bound, whatever the attack does"),
        ({**half, "queries": 0}, "Nothing was asked in the trials"),
        (half, "No bound above 0 on epsilon was shown, at 99.9 % confidence"),
    ):
        trial = {**run["membership"], **change}
        text = page({**run, "membership": trial})
        assert title_of(text, "membership") == title
        assert "No difference" not in text
    told = beyond({**run, "membership": {**run["membership"], **half}})
    assert "would have shown one with a probability of 90 %" in told
    whole = page(run)
    for words in ("stopped by hand after", "the target itself was not asked"):
        assert words not in whole
    trial = {**run["membership"], "asked_for": 2000, "simulated": True}
    text = beyond({**run, "membership": trial})
    assert "stopped by hand after 40 of 2,000 trials" in text
    assert "on the auditor's machine, by the mechanism's description" in text
    assert text.count("the target itself was not asked") == 1


def test_trials_are_judged_by_their_coins():
    assert "Each trial was judged by its coin." in said("trial")
    assert "true table was not at hand" not in said("trial")


def test_trials_in_which_nothing_was_asked_are_not_right():
    run = results("trial")
    text = beyond({**run, "membership": {**run["membership"], "queries": 0}})
    assert "Right nothing nothing was asked in 40 trials" in text
    assert "of membership guessed rightly" not in text
    assert "40 of 40 trials of membership guessed rightly" in beyond(run)
    # trials beside a target elsewhere: what was claimed and asked in them, not of the target
    mine = {**run["membership"], "simulated": True, "epsilon_claimed": 1e-10, "queries": 40}
    text = beyond({**run, "membership": mine, "queries": 0, "epsilon_claimed": 0.0})
    assert "Claimed loss 1e-10 epsilon, for the answers of one trial" in text
    assert "0 of the target; the trials drew 40 answers on the auditor's machine" in text


def test_beyond_guessing_means_in_every_panel():
    run = results("idp")
    assert "Beyond guessing in every attribute in this table; 100 % of records" in beyond(run)
    inside, same, named, others = (json.loads(json.dumps(run)) for _ in range(4))
    inside["accuracy"]["attributes"][0]["inferred"]["marginals"] = 38
    assert "Beyond guessing in every attribute in this table" in beyond(inside)
    same["accuracy"]["attributes"][0]["nothing"] = 40
    named["accuracy"]["attributes"][1]["inferred"]["marginals"] = 40
    others["accuracy"]["attributes"][1]["inferred"]["others"] = 40
    for each in (same, named, others):
        assert "Beyond guessing in 7 of 8 attributes in this table" in beyond(each)


def test_what_guessing_gets_of_few_people_is_masked():
    for name in ("membership", "count", "attribute"):
        pages = set()
        for right in (0, 1):
            run = json.loads(json.dumps(results(name)))
            found = run["accuracy"]
            shares = [found["records"]]
            shares += [each["inferred"] for each in found["attributes"]]
            for each in shares:
                each |= {"nothing": right, "marginals": right, "others": right}
            pages.add(page(run))
        assert len(pages) == 1  # whether guesses are right shows nowhere, not even as a colour
    one = re.search(
        r"<dd class=\"figure\">(right|wrong)</dd><dd>(.*?)</dd>", page(results("membership"))
    )
    assert one
    assert one.groups() == ("right", "beside a coin flip.")
    for name in ("membership", "count", "attribute"):
        verdict, parts = page(results(name)).partition('id="others"')[0], ("verdict", "evidence")
        for part in parts:
            inside = verdict.partition(f'id="{part}"')[2].partition("</section>")[0]
            assert inside
            assert "%" not in inside
    run = json.loads(json.dumps(results("membership")))
    run["result"] *= 5
    run["accuracy"]["records"] |= {"of": 5, "recovered": 4}
    text = page(run)
    assert "What guessing gets is masked" in text
    assert '"nothing":null' in text
    run["result"] *= 6
    assert "What guessing gets is masked" not in page(run)


def test_of_people_no_more_is_said_than_at_the_terminal():
    run = json.loads(json.dumps(results("attribute")))
    assert "An outsider learned 6 attributes of a person from" in beyond(run)
    entry = run["result"][0]
    entry |= {"matches": 81_917, "unique": False}
    entry["values"] = {"salary": [entry["values"]["salary"][0] | {"records": 81_917}]}
    run |= {"accuracy": None, "membership": results("trial")["membership"]}
    text = beyond(run)
    assert "learned the values of 1 attribute among several records that fit from" in text
    assert not re.search("81.?917", text)
    assert "right nobody asked about is alone in what was known of them" in text
    assert "trials of membership guessed rightly" not in text
    entry |= {"matches": 0, "values": {}}
    assert "attributes of a person" not in beyond(run)
    unsettled = json.loads(json.dumps(results("membership")))
    unsettled["result"].append({"known": {}, "correct": None, "bits": None})
    assert "learned whether 1 of 2 people is in the table" in beyond(unsettled)
    del unsettled["result"][0]["present"]
    unsettled |= {"result": unsettled["result"][:1], "verdict": "Nothing was settled"}
    text = beyond(unsettled)
    assert "What was said is nothing nothing was settled" in text
    assert "true table was not at hand" not in text
    assert "is wrong" not in text


def test_precision_is_said_wherever_a_share_is():
    run = {**results("idp"), "precision": {"age": 5}}
    text = page(run)
    for name in ("rebuilt", "accuracy"):
        assert "at the stated precision" in title_of(text, name)
    verdict = text.partition('class="numbers"')[2].partition("</dl>")[0]
    assert "records are right, at the stated precision" in verdict
    assert "at the stated precision" not in page(results("idp"))
    one = {**results("attribute"), "precision": {"age": 5}}
    assert "6 attributes of a person (at the stated precision)" in beyond(one)


def test_rebuilt_is_not_right():
    assert "counts what was rebuilt, right or wrong; how much is right stands with" in said("idp")
    assert "right or wrong; the true table was not at hand" in said("service")
    assert "40 of 40 records are right" in said("idp")


def test_a_mechanism_without_an_answer_has_no_bar():
    text = page(results("bdp"), comparison=beside())
    figure = text.partition('id="mechanisms"')[2].partition("</figure>")[0]
    rows = [
        row
        for script in re.findall(r"<script[^>]*>(.*?)</script>", figure)
        for row in json.loads(script)["data"]["values"]
        if row["name"] == "dp-laplace"
    ]
    assert len(rows) == 3
    assert rows[0]["share"] is not None  # a trial always guesses
    for row in rows[1:]:
        assert row["text"] == "no usable difference"
        assert (row["share"], row["guess"], row["told"]) == (None, None, None)
    assert "dp-laplace no usable difference;" in figure.replace(".", ";")


def test_what_was_stopped_is_said_and_half_a_curve_is_not_drawn():
    whole = beside()
    assert "stopped by hand" not in page(results("bdp"), comparison=whole)
    risk = {**whole["risk"], "interrupted": True}
    part = {
        **whole,
        "interrupted": True,
        "asked_for": [*whole["asked_for"], "dp-smooth"],
        "risk": risk,
    }
    text = page(results("bdp"), comparison=part)
    assert (
        "The comparison was stopped by hand: not every attack was tried, and none on dp-smooth"
        in text
    )
    assert "The risk curves were stopped by hand" in text
    assert 'id="risk-loss"' in text
    loss = {**risk["against_loss"]}
    for keep, why in (
        (("idp",), "The honest control was not reached"),
        (("dp-laplace",), "No relaxed mechanism was reached"),
        ((), "No relaxed mechanism was reached"),
    ):
        runs = [each for each in loss["runs"] if each["mechanism"] in keep]
        curves = {**risk, "against_loss": {**loss, "runs": runs}}
        text = page(results("bdp"), comparison={**part, "risk": curves})
        assert 'id="risk-loss"' not in text
        assert 'id="risk-answers"' in text
        assert why in text


def test_provenance_speaks_of_what_there_is():
    run = {**results("idp"), "transcript": None}
    assert "The attack took" in beyond(run)
    assert "the transcript holds every answer" not in beyond(run)
    assert "the hash of all answers shows whether they are the same" in beyond(run)
    assert "the transcript holds every answer" in beyond({**run, "transcript": "a/run.transcript"})


def test_doubts_about_what_is_public_qualify_the_verdict():
    doubts = ["job: 12 different texts count as public", "ward: 5 different texts"]
    text = page({**results("idp"), "doubts": doubts})
    top = text.partition('id="verdict"')[2].partition("</section>")[0]
    assert "told the list of texts of 2 columns; see" in top
    assumed = text.partition('id="assumptions"')[2].partition("</section>")[0]
    assert all(each in assumed for each in doubts)
    assert "told the list of texts" not in page({**results("idp"), "doubts": []})


def test_the_limits_say_what_the_page_holds():
    assert "no record, no value and no count of a subset" in said("idp")
    assert "no record, no value and no count" not in said("idp", show_records=True)


def test_the_bound_is_never_called_a_refutation():
    for name in ("idp", "honest", "trial"):
        text = said(name)
        assert not re.search(r"\b(violat|disprov|false claim|broken promise)", text)
        assert all(
            "does not refute" in text[max(0, found.start() - 12) : found.end()]
            for found in re.finditer("refute", text)
        )


CANARY_JOBS = ("kestrel-nurse", "kestrel-clerk")


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    """A table whose values, counts and place would be noticed wherever they turn up."""
    folder = tmp_path_factory.mktemp("kestrel-folder")
    rows = [f"{48611 + (i % 2)},{CANARY_JOBS[i >= 7919]}" for i in range(9000)]
    path = folder / "people.csv"
    path.write_text("age,job\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    "attack", ["dataset", "count", "membership", "uniqueness", "attribute", "column"]
)
def test_the_report_does_not_leak(canaries, attack, tmp_path):  # fmt: skip
    known = {"job": "kestrel-nurse"}
    how: dict[str, Any] = {"attack": attack}
    if attack == "column":
        how["columns"] = ["job"]
    elif attack == "attribute":
        how |= {"known": [known, {"job": "kestrel-clerk"}], "columns": ["age"]}
        how["priors"] = {"age": "48611..48612"}
    elif attack != "dataset":
        how["known"] = known
    line = (
        f"thinveil audit {canaries} --attack {attack} --known job=kestrel-nurse "
        f"--known=job=kestrel --prior age=48611..48612 --truth {canaries} "
        f"--people {canaries.parent}/targets.csv"
    )
    truth = thinveil.load(canaries)
    transcript = tmp_path / "kestrel-folder-2" / "run.transcript"
    transcript.parent.mkdir()
    verdict = thinveil.audit(truth, exhibits=True, command=line, transcript=transcript, **how)
    plain = verdict.record(records_shown=verdict.examples(truth)).to_plain()
    plain["reason"] = f"cannot read {canaries}"
    counts = {7919, 1081, 4500 - 540, 3960, 3959}
    if plain["staircase"]:
        counts |= {each["threshold"] for each in plain["staircase"]["points"]}
    words = {
        "kestrel",
        *map(str, range(48611, 48613)),
        *map(str, counts),
        *(f"{each:,}" for each in counts),
    }
    closed, opened = page(plain), page(plain, show_records=True)
    closed, opened = (
        text.partition("<body>")[2].partition('id="licences"')[0] for text in (closed, opened)
    )
    found = {word for word in words if re.search(rf"(?<![\d.,]){re.escape(word)}(?![\d])", closed)}
    assert found == set()
    assert MASK in closed
    assert "people.csv" in closed
    # the canaries are alive: with leave to show, values are there, and still no folders
    assert re.search("kestrel-(nurse|clerk)|48,?61[12]", opened)
    assert "kestrel-folder" not in opened


def test_command_lines_are_masked_by_what_is_known_to_be_harmless():
    assert masked_command("thinveil -v audit a/b.csv --cache --new-option secret --k 3") == (
        "thinveil -v audit b.csv --cache --new-option ••• --k 3"
    )
    assert masked_command("thinveil audit 'postgresql://host/db' --known 'a b=c'") == (
        "thinveil audit postgresql://••• --known •••"
    )
    assert masked_command("thinveil audit mine:host/secret --truth 'C:\\data\\a.csv'") == (
        "thinveil audit mine:••• --truth a.csv"
    )
    assert masked_command("thinveil audit 'unbalanced") == MASK


HOSTILE = (
    "</script><script>alert(1)</script>",
    "\"quoted' & <b>bold</b>",
    "\u202eright to left",
    "a.b[0]" + "x" * 150,
)


@cache
def hostile() -> dict[str, Any]:
    """Return a run whose column names try to break out of wherever they stand."""
    text = json.dumps(results("idp"))
    for name, other in zip(("age", "job", "diagnosis", "ward"), HOSTILE, strict=True):
        text = text.replace(f'"{name}"', json.dumps(other))
        text = text.replace(f'"{name}: ', json.dumps(other + ": ")[:-1])
    changed: dict[str, Any] = json.loads(text)
    return changed


def test_names_are_escaped():
    for shown in (False, True):
        plain, strange = (
            Outline(page(each, show_records=shown)) for each in (results("idp"), hostile())
        )
        assert len(strange.scripts) == len(plain.scripts)
        assert strange.all("b") == []
        assert HOSTILE[0] in strange.said
        assert HOSTILE[1] in strange.said
        assert "\u202e" not in page(hostile(), show_records=shown)
        for script, about in zip(strange.scripts, strange.all("script"), strict=True):
            if about.get("type") == "application/json":
                json.loads(script)
                assert "<" not in script


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colours_have_enough_contrast():
    style = (ASSETS / "page.css").read_text()
    themes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(themes) == 3  # light, dark, paper
    for theme in themes:
        for name, colour in theme.items():
            for ground in ("paper", "panel"):
                low, high = sorted((luminance(colour), luminance(theme[ground])))
                ratio = (high + 0.05) / (low + 0.05)
                if name in ("ink", "soft", "link") or name.startswith("tone"):
                    assert ratio >= 4.5, (name, ground)
                elif name in ("red", "orange", "blue", "sky", "green", "pink", "grey"):
                    assert ratio >= 3, (name, ground)


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(json.dumps(results("bdp")))
    Path("compare.json").write_text(json.dumps(beside()))
    Path("other.json").write_text('{"verdict": 1}')
    Path("broken.json").write_text("{")
    Path("mine.html").write_text("<!DOCTYPE html>")
    Path("old.json").write_text(json.dumps({**results("bdp"), "accuracy": {"records": {}}}))
    assert command(["report", "run.json", "--comparison", "compare.json"]) == 0
    assert "different records" in Path("run.html").read_text("utf-8")
    found = {each.name for each in tmp_path.iterdir() if "html" in each.name}
    assert found == {"mine.html", "run.html"}
    assert command(["report", "run.json"]) == 0, "a report of ours is replaced"
    capsys.readouterr()
    for arguments, message in (
        (["run.json", "--output", "mine.html"], "mine.html exists already and was not written by"),
        (["none.json"], "o such file"),
        (["broken.json"], "broken.json is not JSON"),
        (["other.json"], "is not the result of an audit"),
        (["compare.json"], "give it as --comparison"),
        (["run.json", "--comparison", "run.json", "--output", "x.html"], "is not a comparison"),
        (["run.json", "--show-records", "--output", "x.html"], "again with --show-records"),
        (["old.json"], "run the audit again"),
        (["run.json", "--output", "run.json"], "in use for something else"),
    ):
        assert command(["report", *arguments]) in (1, 2)
        assert message in capsys.readouterr().err
    assert not Path("x.html").exists()
    Path("idp.json").write_text(json.dumps(results("idp")))
    assert command(["report", "idp.json", "--show-records"]) == 0
    assert Path("idp.html").stat().st_mode & 0o077 == 0
    assert "Recovered records beside the true ones" in Path("idp.html").read_text("utf-8")


DRAWN = """() => [...document.querySelectorAll('.chart')].map(place => {
  const svg = place.querySelector('svg'), box = svg && svg.getBoundingClientRect();
  return svg ? {height: box.height, right: box.right, label: svg.getAttribute('aria-label'),
    hidden: [...svg.children].every(part => part.ariaHidden === 'true'),
    marks: svg.querySelectorAll('[class*="mark-"] path, [class*="mark-"] text').length} : null;
})"""


@pytest.mark.browser
def test_in_a_browser(tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page(hostile(), comparison=beside(), show_records=True), "utf-8")
    inks = []
    with chromium() as browser:
        for width, dark in ((1280, False), (360, True)):
            with page_of(browser, width=width, dark=dark, offline=True) as tab:
                tab.on("dialog", lambda dialog: pytest.fail("a name was run as a script"))
                tab.goto(file.as_uri())
                tab.wait_for_selector("html[data-drawn]")
                charts = tab.evaluate(DRAWN)
                assert len(charts) >= 10
                for chart in charts:
                    assert chart["height"] > 80
                    assert chart["right"] <= width
                    assert chart["marks"] > 3
                    assert chart["hidden"]
                    assert re.search(r"\d", chart["label"])
                assert tab.evaluate("document.documentElement.scrollWidth") == width
                inks.append(
                    tab.evaluate("getComputedStyle(document.querySelector('.chart text')).fill")
                )
                assert tab.watched.complaints == []
                assert {each.partition(":")[0] for each in tab.watched.requests} == {"file"}
                paper = tab.pdf(prefer_css_page_size=True)
                assert len(re.findall(rb"/Type\s*/Page\b", paper)) > 3
                assert tab.locator("details[open]").count() == 0
                tab.emulate_media(media="print")
                printed = tab.evaluate(
                    "getComputedStyle(document.querySelector('.chart text')).fill"
                )
                assert printed == "rgb(27, 31, 36)"
        with page_of(browser, java_script_enabled=False) as tab:
            tab.goto(file.as_uri())
            summary = tab.locator("summary").first
            summary.click()
            assert tab.locator("details table").first.is_visible()
            assert "Pictures need JavaScript" in tab.locator("body").inner_text()
    assert len(set(inks)) == 2


CUT = """() => [...document.querySelectorAll('.wide')].filter(box => box.offsetParent).map(box => ({
  cut: box.scrollWidth > box.clientWidth + 1,
  hint: box.previousElementSibling.matches('.more') && !box.previousElementSibling.hidden,
  records: box.closest('#records') !== null,
}))"""


@pytest.mark.browser
def test_on_paper_and_on_a_phone(tmp_path):
    file = tmp_path / "report.html"
    with chromium() as browser, page_of(browser, width=360) as tab:
        for show in (False, True):
            file.write_text(page(results("idp"), comparison=beside(), show_records=show), "utf-8")
            tab.goto(file.as_uri())
            tab.wait_for_selector("html[data-drawn]")
            tab.evaluate(
                "for (const each of document.querySelectorAll('details')) each.open = true"
            )
            tab.wait_for_timeout(100)
            tables = tab.evaluate(CUT)
            assert len(tables) > 5
            assert any(each["cut"] for each in tables)
            for each in tables:
                assert each["hint"] is each["cut"]
            assert [each["cut"] for each in tables if each["records"]] == [show]
        file.write_text(page(results("idp"), comparison=beside()), "utf-8")
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-drawn]")
        paper = tab.pdf(prefer_css_page_size=True)
        # 18 before tables and captions could be parted and charts had a largest height; 13 since
        # headings stay with their charts, and three more baselines are told of
        assert 5 < len(re.findall(rb"/Type\s*/Page\b", paper)) <= 13
        tab.emulate_media(media="print")
        kept = "[...document.querySelectorAll('.drawn')].map(x => getComputedStyle(x).breakInside)"
        assert set(tab.evaluate(kept)) == {"avoid"}
        hints = "[...document.querySelectorAll('.more')].every(each => !each.offsetParent)"
        assert tab.evaluate(hints)
