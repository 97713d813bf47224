"""All mechanisms side by side: trials, baselines, honest controls and risk curves."""

import builtins
import json
import re
import shlex
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from thinveil import Categories, Dataset, Grid, Schema, people
from thinveil.attacker.findings import TableFound
from thinveil.auditing.attempt import curator_of, once
from thinveil.commands.main import run
from thinveil.curator.curator import Curator
from thinveil.errors import MissingExtra
from thinveil.language.claims import MECHANISMS
from thinveil.language.schema import MISSING
from thinveil.report.charts.files import save_pictures
from thinveil.report.charts.risk import against_answers, against_loss
from thinveil.verdicts.comparing import compare as module
from thinveil.verdicts.comparing.candidates import AttributeTrial, Skipped, attribute_trial
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Outcome
from thinveil.verdicts.comparing.risk import AGAINST_LOSS, known_of, risk
from thinveil.verdicts.comparing.shared import ORDER, Settings
from thinveil.verdicts.judging.intervals import clopper_pearson, interval_of_people
from thinveil.verdicts.judging.scoring import score
from thinveil.verdicts.typed import to_json
from worlds import as_a, sure

DATA = people(30)
OWN = tuple(name for name in ORDER if name != "dp-opendp")
LEAKING = ("unprotected", "idp", "idp-binary", "idp-integer", "idp-noisy", "bdp")
CONTROLS = ("dp-laplace", "dp-smooth")
DOCS = (Path(__file__).parent.parent / "docs" / "compare.md").read_text("utf-8")


@pytest.fixture(scope="module")
def compared():
    return compare(DATA, Settings(mechanisms=OWN, people=10, most_repeats=512))


@pytest.fixture(scope="module")
def drawn():
    tiny = DATA.sample(np.arange(16))
    return risk(tiny, records=12, totals=("1e-12", "1e-3", "1e3", "1e6"), seeds=1)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def command(*arguments):
    code = run(["compare", *map(str, arguments), "--json", "out.json"])
    return code, json.loads(Path("out.json").read_text())


def test_all_mechanisms_are_in_the_order():
    assert sorted(ORDER) == list(MECHANISMS)
    assert ORDER[0] == "unprotected"
    assert {*ORDER[-3:]} == {"dp-laplace", "dp-opendp", "dp-smooth"}


def test_leaking_mechanisms_give_everything_away(compared):
    lines = {line.mechanism: line for line in compared.lines}
    for name in LEAKING:
        assert lines[name].everything, name
        assert [each.task for each in lines[name].tried] == ["membership", "attribute", "dataset"]
        assert not lines[name].at_baseline
    assert lines["bdp"].tried[2].unit == "different records"
    assert lines["idp"].epsilon_claimed < 1e-5
    assert lines["unprotected"].epsilon_claimed is None


def test_controls_stay_at_the_baseline_and_state_nothing(compared):
    lines = {line.mechanism: line for line in compared.lines}
    for name in CONTROLS:
        assert lines[name].claim.control
        assert lines[name].at_baseline
        member, *others = lines[name].tried
        assert (member.ended, member.stated, member.reason) == ("complete", member.of, "")
        assert sure(member.trial).epsilon_at_least == 0
        for each in others:
            assert (each.ended, each.stated, each.recovered) == ("undecided", 0, 0)
            assert "512 answers to one question" in each.reason
            assert each.queries >= 512


def test_baselines_are_those_of_asking_nothing(compared):
    member, attribute, dataset = compared.lines[1].tried
    assert (member.of, member.baseline) == (10, 5)
    assert 0 < attribute.baseline < attribute.of / 2
    options = Settings().options("idp")
    whole = once(curator_of(DATA, options), options)
    assert dataset.baseline == score(as_a(TableFound, whole.found), DATA).guessed


def test_the_sentence_says_what_was_shown(compared):
    sentence = compared.sentence()
    assert "5 relaxed mechanisms gave everything away at a claimed loss of at most" in sentence
    assert "dp-textbook gave everything away at a claimed loss of" in sentence
    assert "its noise is drawn in doubles." in sentence
    assert "2 controls stayed at the baseline: no usable difference was found in 512" in sentence
    assert "10 trials of membership can show no bound." in sentence
    assert compared.exit_code == 0


def test_plain_values_hold_everything(compared):
    plain = json.loads(json.dumps(compared.to_plain()))
    assert plain.keys() >= {
        "assumed_public", "trials", "seed", "error_wanted", "most_repeats", "epsilon_per_query",
        "k", "universe", "mechanisms", "not_reached", "verdict", "interrupted",
    }  # fmt: skip
    assert [each["mechanism"] for each in plain["mechanisms"]] == list(OWN)
    for outcome in plain["mechanisms"][-1]["outcomes"]:
        assert outcome.keys() >= {
            "recovered", "of", "baseline", "queries", "epsilon_claimed", "ended", "reason",
            "interval", "confidence", "stated", "error_probability", "marginals_share",
            "transcript_sha256",
        }  # fmt: skip
    text = json.dumps(plain)
    for row in DATA.rows()[:5]:
        assert str(row[3]) not in text or row[3] is None


def test_a_control_that_may_spend_a_lot_gives_way_and_the_sentence_says_so():
    settings = Settings(mechanisms=("idp", "dp-laplace"), people=4, epsilon_per_query="4")
    found = compare(people(20), settings)
    assert found.lines[1].everything
    assert "dp-laplace went beyond the baseline, at a claimed loss" in found.sentence()
    assert "controls stayed" not in found.sentence()


def test_membership_is_tried_on_the_table_and_its_neighbours():
    found = compare(DATA, Settings(mechanisms=("idp",), people=20, seed=3)).lines[0].tried[0]
    assert (found.task, found.unit, found.of, found.baseline) == ("membership", "trials", 20, 10)
    assert found.everything
    trial = sure(found.trial)
    assert trial.trials == trial.inside + trial.outside == 20
    assert (trial.tpr, trial.fpr, trial.baseline.epsilon_at_least) == (1, 0, 0)
    assert to_json(found)["trial"]["epsilon_claimed"] == found.epsilon_claimed


def test_a_table_in_which_nobody_is_alone_has_no_trial():
    twins = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [0], [1], [1]]))
    found = compare(twins, Settings(mechanisms=("idp",), people=4))
    assert [type(each) for each in found.lines[0].outcomes] == [Skipped, Skipped, Outcome]
    assert found.lines[0].everything
    assert sum("not tried" in line for line in found.trials()) == 2


def test_linking_attributes_are_taken_from_the_left_until_enough_people_are_alone():
    schema = Schema((Categories("a", ("x", "y")), Grid("b", missing=True), Grid("c")))
    codes = np.array([[0, 1, 5], [0, 2, 5], [1, 1, 7], [1, MISSING, 9], [1, 1, 8]])
    trial = as_a(AttributeTrial, attribute_trial(Dataset(schema, codes), 3, 0))
    assert (trial.known, trial.wanted, trial.unique) == ((0, 1), (2,), 3)
    assert sorted(trial.rows) == [0, 1, 3]
    assert "b" in trial.people[0]
    named = as_a(AttributeTrial, attribute_trial(Dataset(schema, codes), 2, 0, ["c"]))
    assert (named.known, named.unique) == ((2,), 3)
    # an even pick of two categories, and zero for what has no public bounds
    assert named.baseline(Dataset(schema, codes)) == pytest.approx(2 / 2)


def test_the_interval_is_that_of_whole_people_at_the_confidence_of_the_settings(compared):
    low, high = interval_of_people(0.5, 40, 0.999)
    assert low == pytest.approx(1 - high)
    assert interval_of_people(0.0, 40, 0.999)[0] == 0
    # 201 of 240 values of 40 people: at least 33 and at most 34 people's worth
    low, high = interval_of_people(201 / 240, 40, 0.95)
    sure_ = 1 - 0.05 / np.e  # draws that are right in part scatter a little wider
    ends = (clopper_pearson(33, 40, sure_)[0], clopper_pearson(34, 40, sure_)[1])
    assert (low, high) == pytest.approx(ends, rel=1e-12)
    alone = compared.settings.confidence_each
    assert alone == compared.confidence_each > 1 - 0.001 / compared.statements > 0.999
    for each in compared.lines[1].tried:
        assert each.confidence == alone
        wanted = None if each.trials is None else clopper_pearson(each.trials, each.trials, alone)
        assert each.interval == wanted


def test_the_command_prints_writes_and_draws(tmp_path, capsys):
    arguments = ("--sample", 60, "--mechanism", "idp", "--mechanism", "dp-laplace", "--people", 6)
    code, result = command(*arguments, "--most-repeats", 256, "--figure", "c.png")
    assert code == 0
    assert (result["records"], result["sampled_from"], result["risk"]) == (60, 2000, None)
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    for part in ("membership", "attribute inference", "full reconstruction", "asking nothing",
                 "nothing usable", "60 of 60", "gave everything away"):  # fmt: skip
        assert part in printed
    assert printed.rstrip().splitlines()[-2].startswith("│")


def test_json_alone_goes_to_standard_output(capsys):
    assert run(["compare", "--sample", "20", "--mechanism", "bdp", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mechanisms"][0]["everything"] is True


def test_bad_usage_is_refused(capsys):
    Path("small.csv").write_text("age,job\n44,nurse\n31,clerk\n60,judge\n")
    for arguments, part in (
        (["--mechanism", "magic"], "magic"),
        (["small.csv", "--k", "2"], "below 2k"),
        (["small.csv", "--universe", "bounded"], "bounds"),
        (["small.csv", "--link", "shoe"], "shoe"),
        (["small.csv", "--link", "age", "--link", "job"], "nothing to find"),
        (["--epsilon-per-query", "0"], "above zero"),
        (["--error", "2"], "--error"),
        (["--people", "1"], "people"),
        (["--seed", "-1"], "seed"),
        (["--figure", "c.txt"], ".png"),
        (["--figure", "nowhere/c.png"], "--figure"),
        (["--risk-figure", "small.csv"], "--risk-figure"),
        (["nowhere.csv"], "nowhere.csv"),
    ):
        assert run(["compare", *arguments]) in (1, 2), arguments
        message = capsys.readouterr().err
        assert part in message, message
        assert "Traceback" not in message


def test_a_missing_library_is_a_stated_reason(monkeypatch):
    def refuse(curator, options, observer):
        if options.mechanism == "dp-opendp":
            raise MissingExtra("The mechanism dp-opendp", "opendp")
        return once(curator, options, observer)

    monkeypatch.setattr(module, "once", refuse)
    found = compare(DATA, Settings(mechanisms=("idp", "dp-opendp"), people=4))
    assert "opendp" in found.lines[1].missing
    assert found.lines[1].tried == ()
    assert "control" not in found.sentence()
    with pytest.raises(MissingExtra):
        compare(DATA, Settings(mechanisms=("dp-opendp",), people=4))


def test_a_figure_without_its_library_is_refused_before_any_work(monkeypatch, capsys):
    usual = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("vl_convert"):
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("thinveil.commands.compare.compare", lambda *_: pytest.fail("it ran"))
    assert run(["compare", "--figure", "c.png"]) == 1
    assert "[plots]'" in capsys.readouterr().err


def test_ctrl_c_shows_what_is_done_so_far(monkeypatch, capsys):
    def stop(curator, options, observer):
        def watch(meter, about):
            if options.mechanism == "idp" and options.attack == "dataset" and meter.rounds > 5:
                raise KeyboardInterrupt
            observer(meter, about)

        return once(curator, options, watch)

    monkeypatch.setattr(module, "once", stop)
    code, result = command("--sample", 40, "--people", 4, "--risk")
    assert code == 3
    assert result["interrupted"] is True
    assert [each["mechanism"] for each in result["mechanisms"]] == ["unprotected", "idp"]
    assert len(result["mechanisms"][1]["outcomes"]) == 2
    assert result["not_reached"][0] == "idp-binary"
    assert result["risk"] is None
    assert "gave everything away" not in result["verdict"]
    printed = capsys.readouterr().out
    assert "Without protection everything was given away" in printed
    assert "interrupted" in printed
    assert "not reached" in printed
    assert list(Path().glob("*.transcript")) == []


def plainly(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.nightly
def test_risk_against_the_claimed_loss(drawn):
    curves = {name: dict(drawn.loss_curve(name)) for name in AGAINST_LOSS}
    for name in ("idp", "idp-noisy", "dp-textbook"):
        assert drawn.least_loss(name) == 1e-12
        assert drawn.one_person(name)[0].advantage > 0.99
        assert curves[name][1e-12][0].records == 1
    honest = curves["dp-laplace"]
    for total in (1e-12, 1e-3):
        assert (honest[total][0].records, honest[total][0].values) == (0, 0)
    assert honest[1e6][0].records == 1
    assert drawn.idle_loss("dp-laplace") >= 1e-3
    for point in drawn.against_loss.runs:
        assert point.queries <= drawn.against_loss.answers_allowed
        assert point.epsilon_claimed <= point.epsilon * (1 + 1e-12)
    assert "dp-laplace (honest DP): this search found no record up to" in drawn.sentence()
    assert "can be right in 69.7 % at 1 and 99.7 % at 10" in plainly(drawn.sentence())


@pytest.mark.nightly
def test_risk_against_the_answers_rises_to_everything(drawn):
    for name in LEAKING:
        curve = drawn.answers_curve(name)
        values = [each.known.values for each in curve]
        assert values == sorted(values)
        assert (curve[-1].known.records, curve[-1].known.values) == (1, 1)
        assert curve[0].known.records == 0
        bits = [each.bits for each in curve]
        assert bits == sorted(bits)
        assert bits[-1] == pytest.approx(1)
        if name in ("unprotected", "idp", "idp-integer", "bdp"):  # columns by themselves come first
            assert any(each.bits > 0 for each in curve if each.known.values == 0), name
    assert drawn.answers_for("idp", 0.5) < drawn.answers_for("idp", 1.0)
    assert json.loads(json.dumps(drawn.to_plain()))["against_answers"]["records"] == 16


@pytest.mark.nightly
def test_a_point_of_the_answers_curve_is_a_run_that_ends_there(drawn):
    """The limit is not public: who knows it plans for it (tests/test_capped.py)."""
    tiny = DATA.sample(np.arange(16))
    curve = drawn.answers_curve("idp")
    for point in curve[:: len(curve) // 5]:
        options, cap = Settings().options("idp"), Fraction(point.queries, 10**10)
        limited = once(Curator(tiny, options.claim(), seed=options.seed, cap=cap), options)
        assert limited.meter.queries == point.queries
        assert known_of(as_a(TableFound, limited.found), tiny) == point.known


def test_ctrl_c_while_a_law_is_computed_loses_no_line(monkeypatch):
    def stops_at_the_second(settings, name, data):
        if name == "idp":
            raise KeyboardInterrupt
        return of(settings, name, data)

    of = module._law
    monkeypatch.setattr(module, "_law", stops_at_the_second)
    cut = compare(people(20), Settings(mechanisms=("unprotected", "idp"), people=2))
    assert cut.interrupted
    assert [each.mechanism for each in cut.lines] == ["unprotected"]


@pytest.mark.nightly
def test_risk_curves_can_be_interrupted_and_drawn(drawn, capsys, monkeypatch):
    from thinveil.report.text import comparison

    for name in ("risk.svg", "again.svg", "risk.png", "risk.pdf"):
        save_pictures([against_loss(drawn), against_answers(drawn)], name)
    assert "<svg" in Path("risk.svg").read_text("utf-8")
    assert Path("risk.svg").read_bytes() == Path("again.svg").read_bytes()
    assert "var(--" not in Path("risk.svg").read_text("utf-8")
    assert Path("risk.png").read_bytes().startswith(b"\x89PNG")
    assert Path("risk.pdf").read_bytes().startswith(b"%PDF")
    seen = []

    def stop(meter, about):
        seen.append(about.label)
        if about.label.startswith("dp-laplace"):
            raise KeyboardInterrupt

    cut = risk(DATA.sample(np.arange(12)), observer=stop, totals=("1e-12",), seeds=1)
    assert cut.interrupted
    assert cut.against_loss.mechanisms == ["idp", "idp-noisy", "dp-textbook"]
    comparison.show_risk(Console(file=sys.stdout), cut)
    assert "interrupted" in capsys.readouterr().out


@pytest.mark.docs
def test_the_table_of_the_page_is_measured():
    rows = ("unprotected", "idp", "bdp", "dp-laplace", "dp-smooth")
    for line in compare(people(), Settings(mechanisms=rows)).lines:
        (shown,) = re.findall(rf"^\| `{line.mechanism}` \|(.*)\|$", DOCS, re.MULTILINE)
        for cell, each in zip(shown.split("|"), line.tried, strict=True):
            assert f"{each.queries:,} answers" in cell
            silent = line.claim.control and each.task != "membership"  # trials always guess
            assert ("no usable difference found" in cell) is silent
            assert silent or f"{each.recovered:,} of {each.of:,}" in cell


@pytest.mark.docs
def test_the_page_runs(tmp_path, capsys):
    """The lines that take too long as they stand; tests/test_docs.py runs the others."""
    _, _, long = DOCS.partition("covered by tests/test_compare.py::test_the_page_runs")
    lines = re.findall(r"^thinveil compare.*$", long, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.partition("#")[0])
        # the same command, on fewer records and without the long curves
        words = ["--help" if word.startswith("--risk") else word for word in words]
        if "people.csv" in words:
            rows = "".join(f"{i % 7},{i % 5},{i * 31 % 11}\n" for i in range(30))
            Path("people.csv").write_text(f"age,postcode,salary\n{rows}")
        assert run([*words[1:], "--sample", "25", "--people", "4", "--most-repeats", "64"]) == 0
        for picture in Path().glob("*.png"):
            picture.unlink()
        assert capsys.readouterr().out
