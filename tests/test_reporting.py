"""thinveil audit --report: what the audit gathers for its report, and what it leaves out."""

import csv
import importlib
import json
import os
from pathlib import Path

import pytest

from thinveil import Options, people
from thinveil.commands.main import run
from thinveil.verdicts.comparing import evidence
from thinveil.verdicts.comparing.shared import ORDER, all_in_order
from worlds import sure

FEW = people(40)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Path("people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([FEW.schema.names, *FEW.rows()])


def audit(*arguments):
    return run(["audit", "people.csv", *map(str, arguments), "--json", "run.json"])


def result():
    return json.loads(Path("run.json").read_text())


def test_a_report_is_written_with_trials_and_without_values(capsys):
    assert audit("--report", "out.html", "--no-comparison") == 0
    found, page = result(), Path("out.html").read_text()
    assert found["membership"]["trials"] == 2000
    assert (found["comparison"], found["risk"], found["records_shown"]) == (None, None, None)
    assert found["staircase"]["count"] is not None
    assert page.lower().startswith("<!doctype html>")
    assert "people.csv" in page
    salaries = {str(row[FEW.schema.names.index("salary")]) for row in FEW.rows()} - {"None"}
    assert not [each for each in salaries if each in page]
    assert "The report is in out.html" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="file modes are a matter of POSIX")
def test_nobody_else_reads_results():
    arguments = ("--no-comparison", "--trials", 0)
    assert audit("--report", "masked.html", *arguments) == 0
    assert audit("--report", "shown.html", *arguments, "--show-records") == 0
    for name in ("run.json", "shown.html", "masked.html"):
        assert Path(name).stat().st_mode & 0o077 == 0, name


def test_records_are_shown_on_request_only():
    assert audit("--report", "out.html", "--no-comparison", "--trials", 0, "--show-records") == 0
    shown = result()["records_shown"]
    rows = [dict(zip(FEW.schema.names, map(str, row), strict=True)) for row in FEW.rows()]
    for each in shown:
        assert {name: str(value) for name, value in each["true"].items()} in rows
        assert each["recovered"] == each["true"]
    assert len(shown) == 5
    assert str(shown[0]["true"]["salary"]) in Path("out.html").read_text()


def test_the_comparison_beside_an_audit_is_real_and_interruptible(monkeypatch):
    monkeypatch.setattr(evidence, "TOTALS", ("1e-6", "1e2", "1e3", "1e6"))
    monkeypatch.setattr(evidence, "all_in_order", lambda: (("idp", "dp-laplace"), []))
    options = Options(k=2, most_repeats=64)
    compared, drawn = evidence.beside(FEW, options, lambda meter, about: None)
    assert [each.mechanism for each in compared.lines] == ["idp", "dp-laplace"]
    assert compared.lines[0].everything
    assert compared.lines[1].at_baseline
    assert (compared.settings.k, compared.records) == (2, 40)
    assert {each.epsilon for each in sure(drawn).against_loss.runs} == {1e-6, 1e6}

    def stop(meter, about):
        raise KeyboardInterrupt

    compared, drawn = evidence.beside(FEW, options, stop)
    assert compared.interrupted
    assert drawn is None


def test_ctrl_c_in_the_comparison_keeps_the_report_and_says_so(monkeypatch, capsys):
    def stop(meter, about):
        raise KeyboardInterrupt

    module = importlib.import_module("thinveil.commands.audit")
    monkeypatch.setattr(
        module, "beside", lambda data, options, _: evidence.beside(data, options, stop)
    )
    assert audit("--report", "out.html", "--trials", 0) == 3
    assert "The comparison was interrupted" in capsys.readouterr().err
    assert result()["comparison"]["interrupted"]
    assert result()["exact"]
    assert "The comparison was stopped by hand" in Path("out.html").read_text()


def test_the_mechanisms_of_the_comparison_are_all_there_are():
    assert set(ORDER) <= set(all_in_order()[0])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--mechanism", "dp-laplace", "--most-repeats", 64),
        ("--mechanism", "bdp"),
        ("--attack", "column", "--column", "job"),
        ("--attack", "count", "--known", "age=30..39"),
        ("--attack", "membership"),
        ("--max-queries", 500),
    ],
)
def test_every_attack_has_a_report(arguments):
    code = audit(*arguments, "--report", "out.html", "--no-comparison", "--trials", 20)
    assert code == (3 if "--max-queries" in arguments else 0)
    assert Path("out.html").stat().st_size > 10_000


def test_a_report_is_never_written_over_a_file(capsys):
    Path("out.html").write_text("mine")
    assert audit("--report", "out.html") == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("out.html").read_text() == "mine"
