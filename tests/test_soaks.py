"""A seeded part of the long runs under bench/soaks; `python -m bench soak` runs the whole."""

import json
import resource

import pytest
from bench.soaks import auditor, canary, disk, load, network, processes, service, whole
from bench.soaks.files import damaged_files
from bench.soaks.fuzzing import running

pytest.importorskip("fastapi")
pytest.importorskip("sqlglot")

pytestmark = pytest.mark.soak


@pytest.fixture
def table(tmp_path):
    return whole.table(tmp_path, 200)


def test_damaged_files_end_in_a_verdict_or_a_clear_error():
    outcome = damaged_files(seed=5, count=60)
    assert outcome.broken == []
    assert outcome.codes[0] > 2  # some files are still tables
    assert outcome.codes[1] > 25


@pytest.mark.parametrize("reader", running.READERS)
def test_every_reader_ends_in_a_clear_error(reader):
    outcome = running.apart(reader, seed=6, count=40)
    assert outcome.broken == []
    assert outcome.cases == 40
    assert outcome.peak < 2**30


def test_a_service_killed_under_load_charges_for_what_it_answered(tmp_path, table):
    outcome = service.killed_service(tmp_path, table, seed=3, kills=4)
    assert outcome.broken == []
    assert outcome.kills == 4
    assert outcome.answered >= 4
    assert outcome.lost > 0


def test_clients_racing_for_one_budget_end_at_the_cap(tmp_path, table):
    outcome = service.racing_clients(tmp_path, table, seed=4, clients=64, budget="1.5")
    assert outcome.broken == []
    assert outcome.answered > 50
    assert outcome.statuses[402] >= 64


def test_a_service_under_load_charges_for_what_it_answered_and_keeps_its_memory(tmp_path, table):
    found = load.loaded(tmp_path, table, seed=5, minutes=0.15)
    assert found.outcome.broken == []
    assert found.outcome.answered > 50
    assert found.rude > 50
    assert found.ratio < 1.5  # of an hour it is 1.2: bench/RESULTS.md


def test_a_killed_audit_goes_on_where_it_was(tmp_path, table):
    served = processes.Served(tmp_path, table, ("--rate", "100000"), {"ann": "1"})
    served.start()
    try:
        outcome, ended = auditor.killed_auditor(
            tmp_path, 6, 3, served.url, ("--strategy", "published"), served.tokens["ann"], 1.5
        )
        account = service.Client(served, "ann", 0, 0, service.Outcome())
        stands = account.ledger()
        account.close()
    finally:
        served.stop()
    assert outcome.broken == []
    assert outcome.kills == 3
    assert stands["answers"] == sum(each["queries"] + each["checks"] for each in ended)
    assert stands["batches"] > sum(each["rounds"] for each in ended)  # and those of checks


def test_a_bad_network_changes_nothing_but_the_time(tmp_path, table):
    served = processes.Served(tmp_path, table, ("--rate", "100000"), {"ann": "1"})
    served.start()
    words = ("--truth", str(table), "--attack", "column", "--column", "job", "--json")
    try:
        with network.BadNetwork(served.url, 2, 0.4) as between:
            code, _, errors = processes.finished(
                "audit", between.url, *words, str(tmp_path / "x.json"),
                "--transcript", str(tmp_path / "t"), token=served.tokens["ann"],
            )  # fmt: skip
        account = service.Client(served, "ann", 0, 0, service.Outcome())
        stands = account.ledger()
        account.close()
    finally:
        served.stop()
    assert code == 0, errors
    assert between.counted.total() > between.counted["none"]
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["result"][0]["exact"] is True
    assert stands["answers"] == found["queries"] + found["checks"]
    assert found["network"]["retries"] > 0


@pytest.mark.parametrize("room", [300, 6_000])
def test_a_full_disk_under_the_transcript_loses_nothing(tmp_path, table, room):
    assert disk.full_under_transcript(tmp_path, table, room) == []


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux to fill the disk")
def test_a_full_disk_under_the_ledger_answers_nothing_unrecorded(tmp_path, table):
    refused, broken = disk.full_under_ledger(tmp_path, table)
    assert broken == []
    assert refused == 20


def test_no_command_shows_a_confidential_value(tmp_path):
    outcome = canary.wrong_commands(tmp_path)
    assert outcome.broken == []
    assert outcome.characters > 10_000


def test_no_reply_header_or_log_line_shows_a_confidential_value(tmp_path):
    outcome = canary.service_replies(tmp_path)
    assert outcome.broken == []
    assert outcome.replies > 70


def test_the_canary_is_seen_where_it_sings():
    outcome = canary.Outcome()
    outcome.search("a text", f"row 3: {canary.TEXT}-001 is wrong")
    outcome.search("a number", f"{canary.NUMBER:,} is too large")
    outcome.search("nothing", "row 3 is wrong")
    assert len(outcome.broken) == 2
