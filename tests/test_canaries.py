"""Planted values: how many come back, what that shows, and what it would have shown."""

import json
import math
from typing import Any

import numpy as np
import pytest

from thinveil import (
    Categories,
    Curator,
    Dataset,
    Grid,
    Schema,
    audit,
    canaries,
    claim_named,
    people,
)
from thinveil.commands.main import run
from thinveil.errors import UsageError
from thinveil.report.html import page
from thinveil.verdicts import canaries as planting
from thinveil.verdicts.canaries import Canaries
from thinveil.verdicts.record import Record
from thinveil.verdicts.typed import from_json, to_json
from worlds import sure, sweep

DATA = people(60)


def test_forty_of_forty_show_a_loss_of_about_29():
    """ln(p (N - 1) / (1 - p)) where p is the lower end of 40 of 40 at 99.9 %: 0.001^(1/40)."""
    found = canaries(DATA, mechanism="idp")
    assert (found.planted, found.reached, found.right, found.values) == (40, 40, 40, 10**12)
    low = 0.001 ** (1 / 40)
    assert found.epsilon_at_least == pytest.approx(math.log(low * (10**12 - 1) / (1 - low)))
    assert found.epsilon_at_least == found.ceiling == pytest.approx(29.3, abs=0.05)
    assert sure(found.epsilon_claimed) < 1e-8  # of one run, not of all forty
    assert found.queries < 40 * (40 + 6)  # a bit a question, and a few to find the record
    assert (
        "40 came back exactly: in the sense of differential privacy the loss is at least 29.3"
        in (found.sentence())
    )


@pytest.mark.parametrize(
    "mechanism",
    sweep(["bdp", "idp-noisy", "idp-binary", "idp-integer", "dp-textbook", "unprotected"], 2),
)
def test_they_come_back_through_every_mechanism_that_leaks(mechanism):
    found = canaries(DATA, mechanism=mechanism, canaries=3, values=1000)
    assert (found.right, found.silent) == (3, 0)
    assert found.epsilon_at_least > 0


def test_a_control_keeps_them_and_the_sentence_says_what_would_have_shown():
    found = canaries(DATA, mechanism="dp-laplace", canaries=40, most_repeats=32)
    assert (found.right, found.silent, found.epsilon_at_least) == (0, 40, 0)
    share = sure(found.seen_share)
    assert share == pytest.approx(0.056, abs=1e-3)
    said = found.sentence()
    assert "none came back exactly, which shows no bound above 0 at 99.9 % confidence" in said
    assert "a probability of 5.6 %, which takes a loss of at least 24.8, they would have" in said
    assert "40 runs named no value: 32 answers to one question" in said
    few = canaries(DATA, mechanism="dp-laplace", canaries=2, values=2, most_repeats=4)
    assert few.seen_share is None
    assert "So few can show none" in few.sentence()


def test_silence_and_wrong_values_are_no_successes(monkeypatch):
    found = canaries(DATA, canaries=3, max_queries=20)
    assert (found.right, found.silent, found.cut) == (0, 3, 3)
    assert "the curator gives at most 20 answers in all" in found.sentence()
    monkeypatch.setattr(planting, "_said", lambda ended: 1)  # always the same, and wrong
    wrong = canaries(DATA, canaries=3)
    assert (wrong.right, wrong.silent, wrong.epsilon_at_least) == (0, 0, 0)


def test_values_are_drawn_evenly_and_the_table_is_only_made_wider():
    schema = Schema((Grid("canary"), Categories("b", ("x", "y"))))
    data = Dataset(schema, np.array([[each, each % 2] for each in range(30)]))
    found = canaries(data, canaries=4, values=5)  # a column of this name is no obstacle
    assert (found.right, found.alone) == (4, 30)
    one, two, other = (canaries(DATA, canaries=3, seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one.transcripts != other.transcripts


def test_what_was_stopped_counts_as_not_recovered():
    calls = []

    def stop(meter, about):
        calls.append(about)
        if len(calls) == 4:
            raise KeyboardInterrupt

    found = canaries(DATA, canaries=8, observer=stop)
    assert (found.planted, found.reached, found.right, found.interrupted) == (8, 4, 4, True)
    assert found.epsilon_at_least < canaries(DATA, canaries=4).epsilon_at_least
    assert "stopped by hand after 4; the others count as not found" in found.sentence()
    calls.clear()
    verdict = audit(DATA, attack="membership", known={"age": 1}, canaries=8, observer=stop)
    assert verdict.exit_code == 3


def test_canaries_need_the_table_and_somebody_who_is_alone():
    target = Curator(DATA, claim_named("idp"))
    with pytest.raises(UsageError, match="a planted value needs the table itself"):
        canaries(target)
    with pytest.raises(UsageError, match="canaries need the table, to plant them in"):
        audit(target, canaries=3)
    verdict = audit(target, truth=DATA, canaries=3)
    assert sure(verdict.canaries).simulated
    assert "The canaries were run on the auditor's machine" in sure(verdict.canaries).sentence()
    twins = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [0], [1], [1]]))
    with pytest.raises(UsageError, match="no planted value has somebody"):
        canaries(twins, canaries=2)
    assert "no planted value has somebody" in audit(twins, canaries=2).notice


def test_they_stand_in_every_form_of_a_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    with open("few.csv", "w") as file:
        file.write("age,job\n" + "".join(f"{20 + each},nurse\n" for each in range(20)))
    arguments = ["--canaries", "4", "--canary-values", "1000", "--json", "out.json"]
    assert run(["audit", "few.csv", *arguments]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Of 4 planted values, each one of 1,000 that were equally likely" in shown
    with open("out.json") as file:
        plain = json.load(file)
    assert plain["canaries"]["right"] == 4
    assert plain["canaries"]["epsilon_at_least"] > 5
    text = page(from_json(Record, plain)).replace("\xa0", " ")
    assert "4 of 4 planted values came back: the loss is at least" in text
    assert "1 of 1,000" in text
    assert 'id="canaries"' not in page(audit(DATA).record())


@pytest.mark.parametrize(
    "change",
    [{"right": 9}, {"reached": 5}, {"silent": 4}, {"cut": 9}, {"values": 1}, {"confidence": 2.0}],
)
def test_a_damaged_record_is_refused(change):
    plain: dict[str, Any] = to_json(canaries(DATA, canaries=4))
    assert from_json(Canaries, plain).right == 4
    with pytest.raises(Exception, match=r"fit each other|needs others"):
        from_json(Canaries, plain | change)


@pytest.mark.parametrize("wrong", [-1, 1.5, 10**30])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UsageError, match="--canaries"):
        canaries(DATA, canaries=wrong)
    with pytest.raises(UsageError, match="--canary-values"):
        canaries(DATA, canaries=2, values=wrong)
