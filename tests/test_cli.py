"""The command line: results, exit codes and bad input, case by case."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import thinveil
from thinveil.attacker.strategies import STRATEGIES
from thinveil.commands.main import run

KEYS = {
    "mechanism", "k", "strategy", "attack", "records", "attributes", "queries", "questions",
    "rounds", "epsilon_claimed", "records_recovered", "exact", "result", "seconds", "seed",
    "assumed_public",
}  # fmt: skip

SMALL = "age,job,pay\n44,nurse,12.50\n31,clerk,\n44,nurse,13.00\n60,judge,99.99\n31,clerk,8.25\n"
PAY = 'age;"the ""job""";größe=x y\n44;nurse;1\n31;clerk;2\n44;nurse;3\n60;judge;3\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(SMALL)
    return str(path)


def audit(*arguments):
    code = run(["audit", *map(str, arguments), "--json", "out.json"])
    return code, json.loads(Path("out.json").read_text())


def let_ask(process, rounds):
    """Wait until a process that logs has asked so many rounds, however busy the machine is."""
    for line in process.stderr:
        rounds -= "answers drawn" in line
        if not rounds:
            return


def refused(capsys, *arguments):
    """Run a command that must fail; return its exit code and its message."""
    code = run(list(map(str, arguments)))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    assert code in (1, 2)
    return code, captured.err


def test_without_a_table_the_embedded_people_are_recovered(capsys):
    code, result = audit()
    assert code == 0
    assert result.keys() >= KEYS
    assert result["exact"] is True
    assert result["records_recovered"] == result["records"] == 2000
    assert result["records_guessed"] == 0
    assert result["strategy"] == "adaptive"
    assert result["mechanism"] == "idp"
    assert result["epsilon_claimed"] == pytest.approx(result["queries"] * 1e-10, rel=1e-12)
    assert result["result"] is None
    assert sum(result["questions_by_attribute"].values()) == result["questions"]
    printed = capsys.readouterr().out
    assert "An outsider recovered all 2,000 records exactly" in printed
    assert "bounds not public" in printed


@pytest.mark.parametrize("why", ["", "numba is not installed", "numba cannot be used here (why)"])
def test_thrifty_says_when_it_will_be_slow(small, capsys, monkeypatch, why):
    monkeypatch.setattr("thinveil.commands.audit.refusal", lambda: why)
    code, result = audit(small, "--strategy", "thrifty", "--effort", "16", "--windows", "2")
    assert (code, result["exact"], result["strategy"]) == (0, True, "thrifty")
    said = " ".join(capsys.readouterr().err.split())
    assert (f"Note: {why}, so the thrifty strategy runs uncompiled" in said) is bool(why)
    assert ("[fast]'" in said) is bool(why)


def test_unprotected_claims_nothing(small):
    code, result = audit(small, "--mechanism", "unprotected")
    assert code == 0
    assert result["epsilon_claimed"] is None
    assert result["k"] is None
    assert result["exact"] is True


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("k", [1, 2])
def test_group_sizes_and_strategies(k, strategy):
    Path("tiny.csv").write_text("a,b\n4,x\n-3,y\n4,\n6,x\n3,y\n")
    code, result = audit("tiny.csv", "--k", k, "--strategy", strategy)
    assert code == 0
    assert (result["k"], result["exact"]) == (k, True)


def test_bounded_universe_needs_and_takes_bounds(small, capsys):
    code, message = refused(capsys, "audit", small, "--universe", "bounded")
    assert code == 2
    assert "schema" in message
    assert "'age'" in message
    assert run(["schema", small, "--output", "small.toml"]) == 0
    code, result = audit(small, "--universe", "bounded", "--schema", "small.toml")
    assert (code, result["exact"], result["universe"]) == (0, True, "bounded")


def test_a_total_budget_is_never_passed(small):
    _, result = audit(small, "--epsilon", "0.001")
    assert 0 < result["epsilon_claimed"] <= 0.001
    assert result["exact"] is True


def test_the_original_group_definition(small):
    _, result = audit(small, "--epsilons", "0.5,0.25")
    assert (result["k"], result["epsilons"]) == (2, [0.5, 0.25])
    assert 0 < result["epsilon_claimed"] <= 0.25
    assert result["exact"] is True


def test_a_cap_ends_early_with_what_was_found():
    code, result = audit("--cap", "1e-6", "--strategy", "published")
    assert code == 3
    assert result["ended"] == "cap"
    assert result["epsilon_claimed"] <= 1e-6
    assert 0 < result["queries"] <= 10_000
    assert result["exact"] is False
    recovered = {each["name"]: each["recovered"] for each in result["by_attribute"]}
    assert recovered["insured"] == 2000
    assert recovered["salary"] == 0


@pytest.mark.parametrize("strategy", ["adaptive", "thrifty"])
def test_an_attack_that_learns_can_be_capped_too(small, strategy):
    code, result = audit(small, "--strategy", strategy, "--cap", "7e-9")
    assert code == 3
    assert (result["ended"], result["exact"]) == ("cap", False)
    assert 0 < result["queries"] <= 70
    assert "recovered 0 of 5 records" in result["verdict"]  # histograms come first


def test_nothing_is_said_of_people_who_are_not_settled(small):
    who = ("--known", "age=60", "--cap", "1e-11")
    for attack in ("membership", "uniqueness", "attribute"):
        code, result = audit(small, "--attack", attack, *who)
        assert code == 3
        assert "Nothing was settled from" in result["verdict"]
        for person in result["result"] or []:
            assert person["correct"] is None
            assert "present" not in person


def test_a_column_that_ends_early_shows_what_was_found():
    code, result = audit("--attack", "column", "--column", "salary", "--cap", "1e-6")
    assert code == 3
    (column,) = result["result"]
    assert column["exact"] is False
    assert len(column["values"]) > 50
    assert "recovered the column salary in part" in result["verdict"]


def test_membership_uniqueness_count(small):
    code, result = audit(
        small, "--attack", "membership", "--known", "age=44", "--known", "job=nurse"
    )
    assert code == 0
    assert result["queries"] == 1
    assert result["result"][0]["present"] is True
    assert result["records_recovered"] is None
    assert result["exact"] is None
    for strategy, queries in (("linear", 1), ("thrifty", 1), ("published", 2)):
        _, result = audit(
            small, "--attack", "membership", "--known", "age=45", "--strategy", strategy
        )
        assert (result["queries"], result["result"][0]["present"]) == (queries, False)
    _, result = audit(small, "--attack", "uniqueness", "--known", "age=60")
    assert (result["queries"], result["result"][0]["unique"]) == (2, True)
    _, result = audit(small, "--attack", "uniqueness", "--known", "age=31", "--present")
    assert (result["queries"], result["result"][0]["unique"]) == (1, False)
    _, result = audit(small, "--attack", "count", "--known", "age=30..50", "--known", "job=nurse")
    assert result["result"]["count"] == 2


def test_attributes_of_one_person_and_of_several_alike(small):
    _, result = audit(small, "--attack", "attribute", "--known", "age=60")
    (person,) = result["result"]
    assert person["matches"] == 1
    assert person["values"]["job"] == [{"value": "judge", "records": 1}]
    assert person["values"]["pay"] == [{"value": "99.99", "records": 1}]
    assert person["correct"] is True
    _, result = audit(small, "--attack", "attribute", "--known", "age=31", "--column", "pay")
    (person,) = result["result"]
    assert person["matches"] == 2
    assert person["values"] == {
        "pay": [{"value": None, "records": 1}, {"value": "8.25", "records": 1}]
    }


def test_priors_help_and_wrong_ones_do_no_harm(small):
    who = ("--attack", "attribute", "--known", "age=60", "--column", "pay")
    _, plain = audit(small, *who)
    _, helped = audit(small, *who, "--prior", "pay=99..100")
    _, misled = audit(small, *who, "--prior", "pay=1..2")
    found = [{"value": "99.99", "records": 1}]
    for result in (plain, helped, misled):
        assert result["result"][0]["values"]["pay"] == found
    assert helped["queries"] < plain["queries"]
    assert helped["result"][0]["prior_failed"] == []
    assert misled["result"][0]["prior_failed"] == ["pay"]


def test_many_people_from_a_file(small):
    Path("targets.csv").write_text("age,job\n60,judge\n44,nurse\n44,judge\n")
    _, result = audit(small, "--attack", "attribute", "--people", "targets.csv")
    assert [person["matches"] for person in result["result"]] == [1, 2, 0]
    assert [person["correct"] for person in result["result"]] == [True, True, True]


def test_a_coarser_precision_is_honoured_and_said(small, capsys):
    code, result = audit(small, "--precision", "pay=10", "--precision", "age=5")
    assert code == 0
    assert result["exact"] is True
    assert result["precision"] == {"pay": "10", "age": "5"}
    assert "exact means at this precision" in capsys.readouterr().out
    _, column = audit(small, "--attack", "column", "--column", "pay", "--precision", "pay=10")
    assert [each["value"] for each in column["result"][0]["values"]] == [
        None, "0.00", "10.00", "90.00",
    ]  # fmt: skip


def test_order_of_attributes(small):
    _, by_size = audit(small, "--mechanism", "idp")
    _, given = audit(small, "--order", "pay,age")
    assert given["exact"] is True
    assert given["queries"] != by_size["queries"]


def test_odd_column_names():
    Path("odd.csv").write_text(PAY, encoding="utf-8")
    code, result = audit("odd.csv")
    assert (code, result["exact"]) == (0, True)
    assert result["attributes"] == ["age", 'the "job"', "größe=x y"]
    code, result = audit(
        "odd.csv", "--attack", "membership", "--known", "größe=x y=2", "--known", 'the "job"=clerk'
    )
    assert result["result"][0]["present"] is True


def test_the_reconstruction_as_a_table(small):
    code, _ = audit(small, "--output", "back.csv")
    assert code == 0
    rows, truth = (
        list(csv.DictReader(Path(path).read_text().splitlines())) for path in ("back.csv", small)
    )
    assert sorted(map(str, rows)) == sorted(map(str, truth))


def test_json_on_standard_output_is_pure(small, capsys):
    assert run(["audit", small, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["exact"] is True


def test_the_verdict_is_whole_beside_json_on_standard_output(small, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["audit", small, "--json", "-"]) == 0
    said = capsys.readouterr().err
    assert "privacy loss" in said
    assert max(map(len, said.splitlines())) <= 80


def test_unknown_values_are_told_from_missing_ones(small, tmp_path):
    out = tmp_path / "out.csv"
    assert run(["audit", small, "--mechanism", "dp-laplace", "--output", str(out)]) == 0
    rows = out.read_text().splitlines()[1:]
    assert rows
    assert all(set(row.split(",")) == {"?"} for row in rows)


def test_same_seed_same_answers(small):
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        assert audit(small, "--seed", seed, "--transcript", f"{name}.transcript")[0] == 0
    bodies = {name: Path(f"{name}.transcript").read_bytes().partition(b"\n")[2] for name in "abc"}
    assert bodies["a"] == bodies["b"]
    assert bodies["a"] != bodies["c"]


def test_a_finished_transcript_replays_without_asking(small):
    _, first = audit(small, "--transcript", "run.transcript")
    code, again = audit("--resume", "run.transcript")
    assert code == 0
    for key in KEYS - {"seconds"}:
        assert again[key] == first[key]


def test_resume_takes_no_other_options_and_no_other_table(small, capsys):
    audit(small, "--transcript", "run.transcript")
    code, message = refused(capsys, "audit", "--resume", "run.transcript", "--k", "2")
    assert code == 2
    assert "--k" in message
    Path("other.csv").write_text(SMALL.replace("60", "61"))
    code, message = refused(capsys, "audit", "other.csv", "--resume", "run.transcript")
    assert code == 1
    assert "another table" in message
    code, message = refused(capsys, "audit", small, "--transcript", "run.transcript")
    assert code == 2
    assert "exists already" in message


def test_results_never_overwrite_the_table(small, capsys):
    for option in ("--json", "--output", "--transcript"):
        code, message = refused(capsys, "audit", small, option, small)
        assert code == 2
        assert option in message
    code, _ = refused(capsys, "audit", small, "--json", "x", "--output", "x")
    assert code == 2
    code, message = refused(capsys, "audit", small, "--output", "nowhere/x.csv")
    assert "--output" in message
    assert Path(small).read_text() == SMALL


def test_files_are_written_before_anything_is_printed(small):
    script = f"thinveil audit {small} --json out.json --output out.csv > /dev/full"
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = subprocess.run(
        ["sh", "-c", script.replace("thinveil", f"{sys.executable} -m thinveil")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(Path("out.json").read_text())["exact"] is True
    assert len(Path("out.csv").read_text().splitlines()) == 6


def test_a_poor_terminal_loses_nothing():
    Path("odd.csv").write_text(PAY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "thinveil", "audit", "odd.csv"],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"recovered all 4 records exactly" in done.stdout


def test_a_damaged_transcript_is_mended_with_a_notice(small, capsys):
    audit(small, "--transcript", "run.transcript")
    whole = Path("run.transcript").read_bytes()
    Path("run.transcript").write_bytes(whole[:-11] + b"garbage")
    Path("other.csv").write_text(SMALL.replace("60", "61"))
    refused(capsys, "audit", "other.csv", "--resume", "run.transcript")
    assert Path("run.transcript").read_bytes() == whole[:-11] + b"garbage"
    code, result = audit("--resume", "run.transcript")
    assert (code, result["exact"]) == (0, True)
    assert "damaged" in result["notice"]
    assert audit("--resume", "run.transcript")[1]["notice"] == ""
    assert Path("run.transcript.damaged").read_bytes().endswith(b"garbage")


def test_markup_in_names_is_only_text(capsys):
    Path("odd.csv").write_text("[/bold],[red]x[/red]\n1,a\n2,b\n2,a\n")
    assert run(["audit", "odd.csv"]) == 0
    for name in ("[/bold]", "[red]x[/red]"):
        assert run(["audit", "odd.csv", "--attack", "column", "--column", name]) == 0
        assert run(["audit", "odd.csv", "--attack", "uniqueness", "--known", "[/bold]=1"]) == 0
        assert f"column {name}" in capsys.readouterr().out


def test_a_refused_command_leaves_no_transcript(small, capsys):
    for wrong in (["--attack", "column", "--column", "shoe"], ["--attack", "column"]):
        refused(capsys, "audit", small, *wrong, "--transcript", "run.transcript")
        assert not Path("run.transcript").exists()


def test_linear_can_be_forced_after_its_bounds_were_found(capsys):
    Path("wide.csv").write_text("a\n1\n700\n-3\n")
    rows = "".join(f"{i % 7},{i * 31}\n" for i in range(900))
    Path("wide.csv").write_text(f"a,b\n{rows}")
    code, message = refused(capsys, "audit", "wide.csv", "--strategy", "linear")
    assert code == 2
    said = re.search(r"thinveil audit --resume (\S+) --force", message)
    assert said, message
    code, _ = refused(capsys, "audit", "--resume", said[1])
    assert code == 2
    done = run(["audit", "--resume", said[1], "--force", "--cap", "1"])
    assert done == 2
    capsys.readouterr()


def test_ctrl_c_while_the_result_is_scored_loses_nothing(small, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(import_module("thinveil.verdicts.audit"), "score", stop)
        assert run(["audit", small]) == 3
    said = re.search(r"thinveil audit --resume (\S+)", capsys.readouterr().err)
    assert said
    code, result = audit("--resume", said[1])
    assert (code, result["exact"]) == (0, True)


def test_a_prior_between_two_steps_is_widened(small):
    code, result = audit(
        small, "--attack", "attribute", "--known", "age=60", "--column", "pay",
        "--prior", "pay=99.985..99.9951",
    )  # fmt: skip
    assert code == 0
    assert result["result"][0]["prior_failed"] == []
    assert result["result"][0]["values"]["pay"] == [{"value": "99.99", "records": 1}]


def test_a_long_public_list_is_pointed_out(capsys):
    rows = "".join(f"{i}.5,{i * 7 % 50},x\n" for i in range(60))
    Path("na.csv").write_text(f"pay,age,job\n{rows}lost,1,x\n")
    assert run(["audit", "na.csv"]) == 0
    captured = capsys.readouterr()
    assert "the column 'pay' became a public list of 61 texts" in captured.err
    assert "--missing" in captured.err
    assert "alone gets 61 as well" not in captured.out
    assert run(["audit", "na.csv", "--missing", "lost"]) == 0
    assert "public list" not in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals work differently on Windows")
@pytest.mark.nightly
def test_ctrl_c_writes_a_transcript_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "thinveil", "-vv", "audit", "--attack", "column", "--column",
               "salary", "--strategy", "linear", "--force", "--json", "cut.json"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    let_ask(process, 20)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors
    cut = json.loads((tmp_path / "cut.json").read_text())
    assert cut["ended"] == "interrupted"
    assert cut["queries"] > 0
    said = re.search(r"thinveil audit --resume (\S+)", errors)
    assert said, errors
    assert (tmp_path / said[1]).is_file()
    again = subprocess.Popen(
        [*command[:5], "--resume", said[1], "--json", "more.json"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    let_ask(again, 1)
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
    assert again.returncode == 3
    more = json.loads((tmp_path / "more.json").read_text())
    assert more["queries"] > cut["queries"]


BAD = {
    "epsilon zero": (["--epsilon-per-query", "0"], 2, "above zero"),
    "epsilon negative": (["--epsilon", "-1"], 2, "above zero"),
    "epsilon text": (["--epsilon-per-query", "small"], 2, "must be a number"),
    "epsilon nan": (["--epsilon", "nan"], 2, "above zero"),
    "epsilon overflows": (["--epsilon-per-query", "1e-305"], 2, "overflow"),
    "two budgets": (["--epsilon", "1", "--epsilon-per-query", "1"], 2, "exclude each other"),
    "epsilons zero": (["--epsilons", "0.1,0"], 2, "above zero"),
    "cap zero": (["--cap", "0"], 2, "above zero"),
    "unprotected with a group": (["--mechanism", "unprotected", "--k", "2"], 2, "no group size"),
    "epsilons empty": (["--epsilons", ""], 2, "must be a number"),
    "unprotected with a budget": (
        ["--mechanism", "unprotected", "--epsilon", "1"], 2, "claims no privacy loss",
    ),
    "n below 2k": (["--k", "3"], 2, "below 2k"),
    "k zero": (["--k", "0"], 2, "at least 1"),
    "unknown mechanism": (["--mechanism", "magic"], 2, "magic"),
    "unknown attack": (["--attack", "magic"], 2, "magic"),
    "unknown strategy": (["--strategy", "magic"], 2, "magic"),
    "unknown column": (["--attack", "column", "--column", "shoe"], 2, "no column 'shoe'"),
    "unknown known": (["--attack", "membership", "--known", "shoe=1"], 2, "no column 'shoe'"),
    "known without equals": (["--attack", "membership", "--known", "age"], 2, "COLUMN=VALUE"),
    "known twice": (
        ["--attack", "membership", "--known", "age=1", "--known", "age=2"], 2, "twice",
    ),
    "known category": (["--attack", "membership", "--known", "job=pilot"], 2, "public categories"),
    "known not a number": (["--attack", "membership", "--known", "age=old"], 2, "not a number"),
    "known off the grid": (["--attack", "membership", "--known", "age=4.5"], 2, "multiple"),
    "nothing known": (["--attack", "attribute"], 2, "--known"),
    "known for a data set": (["--known", "age=44"], 2, "no use"),
    "column without a name": (["--attack", "column"], 2, "--column"),
    "column for a data set": (["--column", "age"], 2, "no use"),
    "known and wanted": (
        ["--attack", "attribute", "--known", "age=60", "--column", "age"], 2, "both known",
    ),
    "order twice": (["--order", "age,age"], 2, "twice"),
    "order unknown": (["--order", "age,shoe"], 2, "no column 'shoe'"),
    "precision off the step": (["--precision", "age=0.5"], 2, "multiple of its step"),
    "precision of a category": (["--precision", "job=2"], 2, "categories"),
    "prior backwards": (
        ["--attack", "attribute", "--known", "age=60", "--prior", "pay=5..1"], 2, "above HIGH",
    ),
    "prior without dots": (
        ["--attack", "attribute", "--known", "age=60", "--prior", "pay=5"], 2, "LOW..HIGH",
    ),
    "seed negative": (["--seed", "-1"], 2, "seed"),
    "schema missing": (["--schema", "nowhere.toml"], 1, "nowhere.toml"),
    "json nowhere": (["--json", "no/such/folder/x.json"], 2, "--json"),
    "resume nothing": (["--resume", "nothing.transcript"], 1, "nothing.transcript"),
    "linear too long": (
        ["--strategy", "linear", "--attack", "column", "--column", "pay", "--force", "--cap",
         "1e-300"], 3, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [name for name in BAD if BAD[name][1] != 3])
def test_bad_usage(small, capsys, case):
    arguments, code, part = BAD[case]
    got, message = refused(capsys, "audit", small, *arguments)
    assert got == code, message
    assert part in " ".join(message.split())


def test_a_cap_below_one_answer_finds_nothing_and_says_so(small):
    code, result = audit(small, "--cap", "1e-11")
    assert code == 3
    assert result["queries"] == 0
    assert result["records_recovered"] is None or result["records_recovered"] == 0
    assert result["epsilon_claimed"] == 0


def test_a_cap_while_bounds_are_searched_recovers_nothing(small):
    code, result = audit(small, "--cap", "1e-9")
    assert code == 3
    assert (result["records_recovered"], result["exact"]) == (0, False)


def test_linear_asks_before_a_long_run(capsys):
    code, message = refused(capsys, "audit", "--strategy", "linear")
    assert code == 2
    assert "--force" in message


BAD_TABLES = {
    "no such file": (None, "no such file"),
    "empty": ("", "empty"),
    "header only": ("a,b\n", "no records"),
    "ragged": ("a,b\n1,2\n3\n", "line 3"),
    "open quote": ('a,b\n"1,2\n', "quot"),
    "cut": ("a,b\n1,2\n".encode("utf-16")[:-1], "--encoding"),
    "compressed": (b"\x1f\x8b\x08\x00rest", "unpack"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(capsys, case):
    content, part = BAD_TABLES[case]
    if isinstance(content, bytes):
        Path("bad.csv").write_bytes(content)
    elif content is not None:
        Path("bad.csv").write_text(content)
    code, message = refused(capsys, "audit", "bad.csv")
    assert code == 1
    assert part.lower() in message.lower()
    code, message = refused(capsys, "schema", "bad.csv")
    assert code == 1


def test_text_with_separators_and_missing_values():
    Path("odd.tsv").write_text('a\tb\n"x, y; z"\t1\nNULL\t\n"line\nbreak"\t3\n?\t4\n')
    code, result = audit("odd.tsv", "--missing", "?")
    assert (code, result["exact"], result["records"]) == (0, True, 4)


def test_parquet(small):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow_csv = pytest.importorskip("pyarrow.csv")
    parquet.write_table(arrow_csv.read_csv(small), "small.parquet")
    _, from_csv = audit(small)
    _, from_parquet = audit("small.parquet")
    assert from_parquet["queries"] == from_csv["queries"]
    assert from_parquet["exact"] is True


def test_schema_draft_can_be_used_as_it_is(small, capsys):
    assert run(["schema", small]) == 0
    text = capsys.readouterr().out
    assert "[[attribute]]" in text
    assert "99.99" not in text
    assert run(["schema", small, "--output", "s.toml", "--json", "s.json"]) == 0
    assert json.loads(Path("s.json").read_text())[0]["name"] == "age"
    code, result = audit(small, "--schema", "s.toml")
    assert (code, result["exact"]) == (0, True)
    assert any("from 0 to" in line for line in result["assumed_public"])
    assert run(["schema", small, "--output", "s.toml"]) == 0  # the same draft once more
    Path("s.toml").write_text(edited := Path("s.toml").read_text() + "# mine\n")
    assert refused(capsys, "schema", small, "--output", "s.toml")[1].count("--overwrite") == 1
    assert Path("s.toml").read_text() == edited
    assert run(["schema", small, "--output", "s.toml", "--overwrite"]) == 0
    assert "# mine" not in Path("s.toml").read_text()


def test_errors_never_show_a_value(capsys):
    Path("secret.csv").write_text("a,b\n1,2\n31415926535897932384626433832795,3\n")
    assert run(["audit", "secret.csv"]) == 0  # rounded down to a coarse step
    assert "31415926" not in "".join(capsys.readouterr())
    Path("secret.csv").write_text("a,b\n1,2\n31415926,3,4\n")
    _, message = refused(capsys, "audit", "secret.csv")
    assert "31415926" not in message
    Path("ok.csv").write_text("a,b\n27182818,zzxsecretxzz\n5,q\n")
    assert run(["schema", "ok.csv", "--output", "ok.toml"]) == 0
    text = Path("ok.toml").read_text()
    assert "27182818" not in text
    Path("ok.csv").write_text("a,b\n2718281828459,qqq\n5,zzysecretyzz\n")
    _, message = refused(capsys, "audit", "ok.csv", "--schema", "ok.toml")
    assert "27182818" not in message
    assert "zzysecretyzz" not in message


def test_version_and_help(capsys):
    assert run(["--version"]) == 0
    assert thinveil.__version__ in capsys.readouterr().out
    assert run(["--help"]) == 0
    assert "reproduce" in capsys.readouterr().out
    for command in ("audit", "reproduce", "schema"):
        assert run([command, "--help"]) == 0
        assert "Examples" in capsys.readouterr().out
    assert run(["nonsense"]) == 2
    assert run([]) in (0, 2)


def test_reproduce_the_worked_example(capsys):
    pytest.importorskip("vl_convert")
    assert run(["reproduce", "sensitivity", "--json", "rows.json"]) == 0
    result = json.loads(Path("rows.json").read_text())
    rows = result["rows"]
    assert result["provenance"]["command"] == "thinveil reproduce sensitivity --json rows.json"
    assert all(
        row.keys() >= {"experiment", "name", "protected", "expected", "measured"} for row in rows
    )
    assert all(row["expected"] == row["measured"] for row in rows)
    assert {row["provenance"] for row in rows} == {"printed"}
    for name in ("figures/sensitivity.svg", "figures/sensitivity.png"):
        assert Path(name).stat().st_size > 1000
    assert "Erratum 2" in capsys.readouterr().out


def test_reproduce_without_the_data_says_where_to_get_it(capsys, monkeypatch):
    monkeypatch.delenv("THINVEIL_BANK", raising=False)
    code, message = refused(capsys, "reproduce", "dataset")
    assert code == 2
    assert "--data" in message
