"""The run's JSON: typed, with a format and a golden file; foreign and damaged files are told."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil import Claim, audit, people
from thinveil.commands.main import run as command
from thinveil.errors import RecordError
from thinveil.language.laws import Laplace
from thinveil.report.charts.mechanisms import compared as picture
from thinveil.report.charts.pictures import shortened
from thinveil.report.html import page
from thinveil.report.html.masking import HARMLESS, shown
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.record import FORMAT, Record, read_comparison, read_run
from thinveil.verdicts.typed import from_json, to_json
from worlds import sweep

GOLDEN = Path(__file__).parent / "golden" / "run.json"
VOLATILE = {
    "thinveil", "python", "numpy", "system", "finished", "seconds", "transcript_sha256",
    "transcripts_sha256",
}  # fmt: skip
"""What differs between machines and moments, and says nothing about the run."""
WORSE: list[Any] = [None, -1, 0, 10**30, 1.5, float("nan"), "x", [], {}, True, "gone"]
KEPT = {
    "records", "records_recovered", "queries", "questions", "rounds", "epsilon_claimed", "exact",
    "seconds", "mechanism", "k", "universe", "strategy", "attack", "attributes", "verdict",
    "result", "accuracy", "membership", "staircase", "provenance", "comparison", "risk",
    "records_shown", "by_attribute", "bounds", "trace", "ended", "reason", "assumed_public",
}  # fmt: skip
"""Keys that people and programs read."""


def steady(value: Any, name: str = "") -> Any:
    """Return a result without what is volatile; floats to nine digits, which every machine has."""
    if isinstance(value, dict):
        return {each: steady(inner, each) for each, inner in value.items()}
    if isinstance(value, list):
        return [steady(each) for each in value]
    if name in VOLATILE:
        return 0.0 if name == "seconds" else "..."
    return float(f"{value:.9g}") if isinstance(value, float) else value


def made() -> dict[str, Any]:
    """Run the audit behind the golden file: made-up people, a fixed seed."""
    data = people(12)
    verdict = audit(data, trials=8, exhibits=True, seed=5)
    compared = compare(data, Settings(mechanisms=("idp",), people=2))
    plain = verdict.record(compared, None, verdict.examples(data)).to_plain()
    read: dict[str, Any] = json.loads(json.dumps(plain))
    return read


def test_the_golden_file():
    """Written again by: python tests/test_record.py."""
    golden = json.loads(GOLDEN.read_text("utf-8"))
    assert steady(made()) == golden
    assert golden.keys() >= KEPT
    assert golden["format"] == FORMAT
    assert (golden["claim"]["leaks"], golden["claim"]["control"]) == (True, False)


def test_what_is_written_is_read_as_it_was():
    data = people(20)
    for settings in (
        {},
        {"mechanism": "bdp"},
        {"mechanism": "dp-laplace", "most_repeats": 64, "trials": 4},
        {"attack": "column", "columns": ["job"], "precision": {}},
        {"attack": "count", "known": {"age": "30..60"}},
        {"attack": "count", "known": {"age": "30..60"}, "mechanism": "bdp"},
        {"attack": "attribute", "known": {"age": 34}},
        {"attack": "uniqueness", "known": [{"age": 34}, {"age": 50}], "present": True},
        {"attack": "membership", "trials": 6},
        {"max_queries": 300, "trials": 6},
    ):
        record = audit(data, exhibits=True, **settings).record()
        plain = json.loads(json.dumps(record.to_plain()))
        again = from_json(Record, plain)
        assert again == record, settings
        assert to_json(again) == plain
        assert again.verdict() == plain["verdict"]


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return every place in a result."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inner:
        yield (*at, name)
        if isinstance(each, (dict, list)):
            yield from paths(each, (*at, name))


@pytest.mark.parametrize("many", sweep([50, 250], 2))
def test_a_damaged_file_is_one_error_or_still_a_page(many):
    whole = made()
    rng = random.Random(3)
    places = list(paths(whole))
    for place in rng.sample(places, many):
        damaged = copy.deepcopy(whole)
        *way, last = place
        inside = damaged
        for each in way:
            inside = inside[each]
        worse: Any = rng.choice(WORSE)
        if worse == "gone":
            del inside[last]
        else:
            inside[last] = worse
        try:
            record = from_json(Record, damaged)
        except RecordError:
            continue
        assert page(record, show_records=True), (place, worse)


def test_foreign_old_and_damaged_files_say_what_to_do(tmp_path):
    whole = made()
    old = {name: each for name, each in whole.items() if name != "format"}
    for name, content, said in (
        ("old", old, "earlier version of thinveil: run the audit again with --json"),
        ("new", {**whole, "format": 99}, "not in the format 1, which this version"),
        ("other", {"verdict": 1}, "is not the result of an audit"),
        ("list", [1], "is not the result of an audit"),
        ("damaged", {**whole, "queries": "many"}, "its content.queries is not what it should be"),
        ("cut", {**whole, "membership": {}}, "its content.membership.in is missing"),
        ("wrong", {**whole, "score": {**whole["score"], "records": None}}, "score.records"),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        with pytest.raises(RecordError, match=f"{name}.json.*{said}"):
            read_run(path)
    with pytest.raises(RecordError, match="no such file"):
        read_run(tmp_path / "none.json")
    compared = whole["comparison"]
    (tmp_path / "compare.json").write_text(json.dumps(compared))
    assert read_comparison(tmp_path / "compare.json") == from_json(Comparison, compared)
    with pytest.raises(RecordError, match="give it as --comparison"):
        read_run(tmp_path / "compare.json")
    del compared["format"]
    (tmp_path / "compare.json").write_text(json.dumps(compared))
    with pytest.raises(RecordError, match="run thinveil compare again"):
        read_comparison(tmp_path / "compare.json")


def test_python_writes_the_very_page_that_the_command_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = audit(people(30), trials=10, exhibits=True)
    verdict.report("python.html")
    Path("run.json").write_text(json.dumps(verdict.to_plain()), "utf-8")
    assert command(["report", "run.json"]) == 0
    assert Path("python.html").read_bytes() == Path("run.html").read_bytes()


def test_every_field_is_shown_or_masked_on_purpose():
    """A new field of a result is in nobody's report before somebody thought about it."""
    masked = {
        "reason", "notice", "transcript", "network", "provenance", "staircase", "result",
        "accuracy", "membership", "canaries", "records_shown", "comparison", "risk",
    }  # fmt: skip
    assert {each.name for each in fields(Record)} == {*HARMLESS} | masked
    view = shown(from_json(Record, made()), records=False)
    assert (view.run.records_shown, view.run.staircase, view.run.result) == (None, None, None)


class Peeking:
    """A sensitivity that depends on the data: noise exactly where a count is at its threshold."""

    def at(self, count, threshold, records, epsilon):
        return (np.abs(count - threshold) <= 1).astype(float)

    def breakpoints(self, threshold, records):
        return np.stack([threshold - 2, threshold, threshold + 1], axis=1)

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Peeking)


def test_a_plug_in_that_leaks_is_not_called_honest_whatever_its_name():
    claim = Claim("dp-peeking", Peeking(), Laplace())
    named = ClaimRecord.of(claim)
    assert (named.leaks, named.control, named.kind, named.title) == (
        True, False, "red", "dp-peeking",
    )  # fmt: skip
    verdict = audit(thinveil.Curator(people(16), claim, seed=1))
    text = page(verdict.record())
    assert (
        "only the true answer behind it does" not in text
    )  # what honest mechanisms are said to do
    assert "how likely each answer is for each possible count" in text
    honest = ClaimRecord.of(thinveil.claim_named("dp-laplace"))
    assert (honest.leaks, honest.control, honest.kind) == (False, True, "blue")


def test_long_names_that_begin_alike_stay_different():
    names = [f"Household characteristics of the dwelling, item {i}" for i in range(22)]
    names += [f"{'x' * 30}{i}{'y' * 30}" for i in range(15)]
    short = shortened(names)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= 20


def test_a_report_names_no_option_where_it_helps_nobody():
    verdict = audit(people(20), mechanism="dp-laplace", most_repeats=64)
    assert "--most-repeats" in verdict.sentence()
    assert "--most-repeats allows more" not in page(verdict.record())
    capped = audit(people(20), max_queries=300, trials=20)
    text = page(capped.record())
    assert "--trials 2000" not in text
    assert capped.run.ending == "cap"
    assert "20 of 20 guesses were right" in text
    text = page(replace(capped.record(), membership=None, ended="interrupted"))
    assert "Trials were asked for, and come after the attack, which ended early." in text


def test_one_confidence_and_one_spelling_of_a_loss():
    data = people(20)
    found = compare(data, Settings(mechanisms=("idp", "dp-laplace"), people=4, most_repeats=64))
    assert {each.confidence for line in found.lines for each in line.tried} == {0.999917}
    assert "Interval, 99.9 % all together" in picture(found).table.headings
    verdict = audit(data)
    text, loss = page(verdict.record()), verdict.epsilon_claimed
    assert loss is not None
    whole = f"{loss:.10f}".rstrip("0")
    assert f'<dd class="figure">{whole}</dd>' in text
    assert f"privacy loss of {whole}" in text


if __name__ == "__main__":
    text = json.dumps(steady(made()), indent=1, ensure_ascii=False)
    GOLDEN.write_text(f"{text}\n", "utf-8")
