"""A target that does not do what it claims: what is said then, and that nothing else is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil import Curator, QueryBatch, people
from thinveil.attacker.checks.found import Checked, Evidence, evidence_of
from thinveil.auditing.driver import Meter
from thinveil.auditing.options import Options
from thinveil.commands.main import run as command
from thinveil.errors import ClaimBroken, EvidenceError
from thinveil.report.html import page
from thinveil.verdicts.judging.claim_check import BROKEN, ClaimCheck
from thinveil.verdicts.record import read_run

HOLLOW = (
    "score", "result", "accuracy", "bits", "bounds", "membership", "trace", "canaries",
    "records_rebuilt", "values_rebuilt", "staircase", "possible",
)  # fmt: skip
"""What a record has no word about where the claim is broken."""


class Dice:
    """Answers anything at all, whatever is asked."""

    def __init__(self, mechanism: str = "idp", values: tuple[float, ...] = (0.0, 1.0, 0.5)) -> None:
        self.facts = Curator(people(30), Options(mechanism=mechanism).claim()).facts
        self._values, self._rng = values, np.random.default_rng(0)

    def answer(self, batch: QueryBatch) -> Any:
        return self._rng.choice(self._values, batch.queries)


def test_a_broken_claim_is_said_first_and_alone(tmp_path):
    where = tmp_path / "report.html"
    verdict = thinveil.audit(Dice(), strategy="published", truth=people(30), checks="off")
    assert verdict.run.ending == "broken"
    assert verdict.exit_code == 1
    assert verdict.sentence().startswith(f"{BROKEN}. The answers contradict each other")
    assert "Still believed: what is public" in verdict.sentence()
    assert "recovered" not in verdict.sentence()
    plain = verdict.to_plain()
    assert all(not plain[name] for name in HOLLOW)
    [found] = plain["claim_check"]["broken"]
    assert found["kind"] == "contradiction"
    assert 0 < found["chance"] < 1e-12
    verdict.report(where)
    text = where.read_text("utf-8")
    assert 'class="tone-broken"' in text
    assert "What came otherwise than claimed" in text
    assert "application/json" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert all(word not in text for word in ("Against guessing", "How far the attack got"))


def test_an_impossible_value_has_no_chance():
    verdict = thinveil.audit(Dice("idp-binary"), strategy="published", checks="off")
    [found] = verdict.run.evidence
    assert (found.kind, found.chance) == ("support", 0.0)
    assert verdict.sentence().startswith(f"{BROKEN}. A target that rounds to 0 or 1 answered")


@pytest.mark.parametrize("ours", [True, False])
def test_an_answer_that_may_have_been_misread_accuses_nobody(ours):
    """Erratum 3: fifteen identical answers misread noise far too often."""
    how: dict[str, Any] = {"strategy": "published", "test": "identical", "repeats": 3}
    curator = Curator(people(30), Options(mechanism="idp-binary").claim(), seed=0)

    class Honest:
        facts = curator.facts

        def answer(self, batch: QueryBatch) -> Any:
            return curator.answer(batch)

    if ours:
        verdict = thinveil.audit(people(30), mechanism="idp-binary", **how)
    else:
        verdict = thinveil.audit(Honest(), checks="off", **how)
    assert verdict.run.ending == "broken"
    said = verdict.sentence()
    assert BROKEN not in said
    assert "misread" in said
    assert ("The curator is ours" in said) is ours
    assert ("this run cannot tell" in said) is not ours
    assert verdict.claim_check is not None
    assert verdict.claim_check.misread
    assert 'class="tone-broken"' not in page(verdict.record())


def test_what_was_checked_is_said_where_it_passed():
    meter = Meter(3, queries=50, checks=7)
    meter.checked = Checked(1e-7, 7, 7, 40, ["nobody is in an empty range"], power=["Coins show."])
    how: dict[str, Any] = {"ours": False, "accusing": 0.001}
    beside = ClaimCheck.of(meter, (), alone=False, **how)
    assert beside is not None
    assert beside.sentence() == (
        "Checked that nobody is in an empty range (7 answers asked for that, and 40 of the attack "
        "held against the law; the chance of a false alarm was at most 0.0000001). Coins show."
    )
    alone = ClaimCheck.of(meter, (), alone=True, **how)
    assert alone is not None
    assert alone.sentence().startswith("The target did what it claims, as far as was checked: ")
    assert ClaimCheck.of(Meter(3), (), alone=False, **how) is None


def test_evidence_of_checks_is_kept_as_it_is():
    mine = Evidence("known", "The empty range had records.", 1e-9, "nothing")
    assert evidence_of(ClaimBroken("x", (mine,)), 0.5) == (mine,)
    [other] = evidence_of(EvidenceError("they disagree"), 2.0)
    assert (other.kind, other.said, other.chance) == ("contradiction", "They disagree.", 1.0)


def test_the_command_says_it_and_writes_it(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run.json"
    monkeypatch.setattr("thinveil.commands.audit._open", lambda *args: Dice())
    code = command(
        ["audit", "x.csv", "--strategy", "published", "--checks", "off", "--json", str(run),
         "--output", str(tmp_path / "out.csv"), "--report", str(tmp_path / "r.html")]
    )  # fmt: skip
    assert code == 1
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert BROKEN in said
    assert "records right" not in said
    assert not (tmp_path / "out.csv").exists()
    assert read_run(run).only_claim
    assert json.loads(run.read_text())["ended"] == "broken"
    assert 'class="tone-broken"' in Path(tmp_path / "r.html").read_text("utf-8")
