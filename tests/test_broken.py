"""A target that does not do what it claims: what is said then, and that nothing else is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from services import served
from thinveil import Answers, Curator, QueryBatch, claim_named, people
from thinveil.attacker.checks.found import Checked, Evidence, evidence_of
from thinveil.attacker.engines import linear, published
from thinveil.attacker.engines.protocol import Cohorts
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.strategies import strategy_named
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Axis, Rules
from thinveil.auditing.driver import Meter
from thinveil.auditing.options import Options
from thinveil.commands.main import run as command
from thinveil.errors import ClaimBroken, EvidenceError
from thinveil.language.laws import Laplace
from thinveil.language.queries import About
from thinveil.report.html import page
from thinveil.verdicts.judging.claim_check import BROKEN, ClaimCheck
from thinveil.verdicts.record import read_run
from thinveil.verdicts.sentences import MASK

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
    assert verdict.claim_check.doubtful
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


def test_evidence_that_comes_by_chance_accuses_nobody():
    """With --error 0.2, one honest target in forty may look like this."""
    fit = Evidence("fit", "The noise is too wide.", 0.02, "nothing")
    for more, accused in (((), False), ((replace(fit, chance=1e-9),), True)):
        found = ClaimCheck.of(Meter(3), (fit, *more), alone=False, ours=False, accusing=0.001)
        assert found is not None
        assert (BROKEN in found.sentence()) is accused
        assert ("This may be chance" in found.sentence()) is not accused


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
         "--output", str(tmp_path / "out.csv"), "--report", str(tmp_path / "r.html"),
         "--transcript", str(tmp_path / "kept")]
    )  # fmt: skip
    assert code == 1
    told = capsys.readouterr()
    assert "it holds all answers" in told.err
    said = " ".join(told.out.replace("│", " ").split())
    assert BROKEN in said
    assert "records right" not in said
    assert not (tmp_path / "out.csv").exists()
    assert read_run(run).only_claim
    assert json.loads(run.read_text())["ended"] == "broken"
    assert 'class="tone-broken"' in Path(tmp_path / "r.html").read_text("utf-8")


class Raising:
    """Something that only seems to be an array."""

    def __array__(self, *args: Any, **more: Any) -> Any:
        raise RuntimeError("the diagnosis of the first person")


def masked(values: Any) -> Any:
    return np.ma.MaskedArray(values, mask=[True] + [False] * (len(values) - 1))


HARD: dict[str, tuple[Any, str]] = {
    "huge": (lambda v: [10**400] * len(v), "no double can hold"),
    "huge beside": (lambda v: [10**400, *v[1:].tolist()], "no double can hold|OverflowError"),
    "complex": (lambda v: v + 0j, "complex numbers"),
    "complex list": (lambda v: [1j] * len(v), "complex numbers"),
    "texts": (lambda v: [str(each) for each in v], "texts"),
    "bytes": (lambda v: [b"1"] * len(v), "texts"),
    "text among numbers": (lambda v: np.array([*v[1:], "1"], object), "of type str"),
    "dates": (lambda v: np.zeros(len(v), "datetime64[D]"), "dates"),
    "objects": (lambda v: [object()] * len(v), "of type object"),
    "none inside": (lambda v: [None] * len(v), "of type NoneType"),
    "ragged": (lambda v: [[0.0], *[[0.0, 1.0]] * (len(v) - 1)], "ValueError|of type list"),
    "nested": (lambda v: v.reshape(1, 1, -1), "in the shape"),
    "turned": (lambda v: v.reshape(1, -1), "in the shape"),
    "masked": (masked, "masked"),
    "infinite": (lambda v: v + np.inf, "infinite"),
    "longdouble": (lambda v: np.full(len(v), np.longdouble("1e4000")), "infinite"),
    "generator": (lambda v: (each for each in v), "but one generator"),
    "set": (set, "but one set"),
    "mapping": (lambda v: dict(enumerate(v)), "but one dict"),
    "none": (lambda v: None, "returned None"),
    "record": (lambda v: np.zeros(len(v), [("a", float)]), "not an array of numbers"),
    "raising": (lambda v: Raising(), "RuntimeError"),
    "short": (lambda v: v[:-1], "answers where"),
}  # fmt: skip


class Spoiling:
    """A curator whose answers are spoilt from some batch on, until it is mended."""

    def __init__(self, spoil: Any) -> None:
        self.curator = Curator(people(5), thinveil.unprotected())
        self.facts, self.spoil, self.asked = self.curator.facts, spoil, 0

    def answer(self, batch: QueryBatch) -> Any:
        self.asked += 1
        if self.spoil is None or self.asked < 3:
            return self.curator.answer(batch)
        return self.spoil(self.curator.answer(batch).values)


@pytest.mark.parametrize("name", HARD)
def test_hard_answers_are_clear_errors_and_nothing_is_lost(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spoil, said = HARD[name]
    target = Spoiling(spoil)
    verdict = thinveil.audit(target, checks="off")
    assert verdict.run.ending == "target"
    assert re.search(said, verdict.run.reason)
    assert "diagnosis" not in verdict.run.reason
    target.spoil = None
    resumed = thinveil.audit(target, resume=verdict.transcript, truth=people(5))
    assert resumed.score is not None
    assert resumed.score.exact
    assert resumed.run.meter.replayed == 2


@pytest.mark.parametrize(
    "form",
    [
        lambda v: v > 0.5,
        lambda v: v.astype(object),
        lambda v: v.astype(np.int8).tolist(),
        lambda v: np.ma.MaskedArray(v),
        lambda v: v[:, None],
        np.longdouble,
    ],
    ids=["truth values", "objects", "integers", "unmasked", "a row a question", "long"],
)
def test_other_forms_of_numbers_are_numbers(form):
    target = Spoiling(form)
    assert thinveil.audit(target, truth=people(5), checks="off").to_plain()["exact"]


def test_a_target_that_uses_its_array_again_changes_no_answer_given_before():
    kept = np.zeros(100_000)

    def again(values: Any) -> Any:
        kept[: len(values)] = values
        return kept[: len(values)]

    assert thinveil.audit(Spoiling(again), truth=people(5), checks="off").to_plain()["exact"]


@pytest.mark.parametrize("what", ["threshold", "low", "high", "cell", "column"])
def test_a_target_cannot_change_what_it_was_asked(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen: list[QueryBatch] = []

    class Writing(Spoiling):
        def answer(self, batch: QueryBatch) -> Any:
            seen.append(batch)
            getattr(batch, what)[0] += 1
            return super().answer(batch)

    verdict = thinveil.audit(Writing(None), checks="off")
    assert verdict.run.ending == "target"
    assert "It wrote into its questions" in verdict.run.reason
    assert not seen[0].about.label, "what a batch is for is not the target's business"


def test_arrays_of_a_handed_batch_are_shared_and_can_only_be_read():
    asked = thinveil.batch_of([([{0: (1, 2)}], 3), ([{0: (3, 5)}, {1: (0, 1)}], 4)], repeats=[1, 2])
    handed = asked.stamped(("run", 1), np.array([0.5, 0.25]))
    for name in ("cell", "column", "low", "high", "threshold", "offsets", "repeats", "epsilon"):
        assert not getattr(handed, name).flags.writeable
    assert np.shares_memory(handed.threshold, asked.threshold)


# Answers that no count explains


def zone_of(rules: Rules, count: int, b: int) -> int:
    if not 0 <= b < rules.n:
        return BELOW if b >= 0 or rules.hidden else ABOVE
    if count > b + rules.k:
        return BELOW if rules.hidden else ABOVE
    return BELOW if count <= b - rules.k else NOISY


def ends(rules: Rules, make: Callable[[], Any]) -> Iterator[tuple[Any, list[tuple[int, int]]]]:
    """Answer a search in every way there is; yield each result, and what was answered."""
    zones = [BELOW, *[NOISY] * bool(rules.k), *[ABOVE] * (not rules.hidden)]
    waiting: list[list[int]] = [[]]
    while waiting:
        told = waiting.pop()
        search, asked = make(), []
        try:
            b = next(search)[2]
            for zone in told:
                asked.append((b, zone))
                b = search.send(zone)[2]
        except StopIteration as stop:
            yield stop.value, asked
        except EvidenceError:
            continue
        else:
            possible = zones if 0 <= b < rules.n else [zone_of(rules, 0, b)]
            waiting += [[*told, zone] for zone in possible]


def singly(attack: Any) -> Any:
    """Return an attack that asks one question at a time as a search."""
    batch = next(attack)
    while True:
        zone = yield 0, 0, int(batch.threshold[0])
        answers = Answers(np.array([{BELOW: 0.0, NOISY: 0.5, ABOVE: 1.0}[zone]]), 1, 1e-10)
        try:
            batch = attack.send(answers)
        except StopIteration as stop:
            return stop.value.tolist()[0]


SMALL = [(n, k) for n in range(1, 6) for k in range(3) if n >= 2 * k]


def explainable(rules: Rules, make: Callable[[], Any], right: Callable[[int], Any]) -> int:
    """Check that every result is explained by a count, and right for each that explains it."""
    accepted = 0
    for result, asked in ends(rules, make):
        fits = [c for c in range(rules.n + 1) if all(zone_of(rules, c, b) == z for b, z in asked)]
        assert fits, (rules, asked, result)
        assert [right(c) for c in fits] == [result] * len(fits), (rules, asked)
        accepted += 1
    return accepted


@pytest.mark.parametrize("search", [published.count, linear.count, published.count_evenly])
@pytest.mark.parametrize("hidden", [False, True])
def test_no_count_is_found_that_does_not_explain_its_answers(search, hidden):
    """All answers to all searches of small tables; `published` took 979 of 1,219 wrongly."""
    for n, k in SMALL:
        if k or not hidden:
            rules = Rules(n, k, bounded=False, hidden=hidden, free=not k)
            if search is not linear.count or not hidden:
                assert explainable(rules, lambda: search(rules, 0, 1, n), lambda c: c)  # noqa: B023


@pytest.mark.parametrize("strategy", ["published", "linear", "adaptive"])
@pytest.mark.parametrize("steps", [(0,), (1,), (0, 1), None])
def test_nobody_is_said_to_be_there_by_answers_that_no_count_explains(strategy, steps):
    """Membership by b = k and b = k - 1, uniqueness by two thresholds, matches by both."""
    for n, k in SMALL:
        facts = Curator(people(n), thinveil.idp(k) if k else thinveil.unprotected()).facts
        rules, everybody = Rules.of(facts), Cohorts.everybody(facts)
        engine = strategy_named(strategy).engine(facts, Care())

        def make() -> Any:
            def look(done: float, some: Any) -> About:
                return About()

            if steps is None:
                return singly(engine.count(everybody, look, few=True))  # noqa: B023
            return singly(engine.more_than(everybody, steps, look))  # noqa: B023

        def right(count: int) -> Any:
            return count if steps is None else [count > step for step in steps]

        assert explainable(rules, make, right)


# Doubles, where a few answers are drawn otherwise


class Odd:
    """Draws its noise in doubles, but for a share of answers: otherwise, or about the other bit."""

    def __init__(self, seed: int, share: float, flip: bool) -> None:
        self._noisy = Curator(AGES, claim_named("dp-textbook"), seed=seed)
        self._truth = Curator(AGES, thinveil.unprotected())
        self._rng = np.random.default_rng(seed)
        self.facts, self._share, self._flip = self._noisy.facts, share, flip

    def answer(self, batch: QueryBatch) -> Any:
        values = self._noisy.answer(batch).values
        bits = self._truth.answer(replace(batch, epsilon=None)).values
        many, scale = len(values), 1e10
        odd = bits + scale * (self._rng.exponential(1, many) - self._rng.exponential(1, many))
        if self._flip:
            words = self._rng.integers(2**64, size=many, dtype=np.uint64)
            odd = 1 - bits + scale * Laplace().standard(words)
        return np.where(self._rng.random(many) < self._share, odd, values)


AGES = people(60)


def wrong_columns(seeds: range, share: float, flip: bool) -> int:
    """Return how many columns were told wrongly."""
    how: dict[str, Any] = {"attack": "column", "columns": ("age",), "most_repeats": 128}
    wrong = 0
    for seed in seeds:
        verdict = thinveil.audit(Odd(seed, share, flip), truth=AGES, checks="off", **how)
        wrong += any(each.judged is False and each.values for each in verdict.record().columns)
    return wrong


def test_a_few_answers_drawn_otherwise_mislead_nobody():
    """Of the same three runs, all gave wrong values when one double settled a question."""
    assert wrong_columns(range(3), 0.01, flip=True) == 0


@pytest.mark.nightly
@pytest.mark.parametrize(("share", "flip"), [(0.01, False), (0.003, False), (0.03, True)])
def test_a_few_answers_drawn_otherwise_never_mislead(share, flip):
    assert wrong_columns(range(100), share, flip) == 0


@pytest.mark.parametrize("mechanism", ["dp-textbook", "dp-laplace", "dp-smooth"])
def test_bare_bits_do_not_fit_a_law_with_noise(mechanism):
    class Bare:
        facts = Curator(AGES, claim_named(mechanism)).facts
        _truth = Curator(AGES, thinveil.unprotected())

        def answer(self, batch: QueryBatch) -> Any:
            return self._truth.answer(replace(batch, epsilon=None))

    verdict = thinveil.audit(Bare(), attack="column", columns=("age",), checks="off")
    assert verdict.run.ending == "broken"
    assert "answers were exactly 0 or 1, and noise is claimed on each" in verdict.sentence()


# The claim alone


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people_file = tmp_path / "people.csv"
    assert command(["people", "--records", "60", "--output", str(people_file)]) == 0
    return people_file


def said(capsys: Any) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())


@pytest.mark.parametrize("mechanism", ["idp", "idp-binary", "bdp", "dp-laplace", "unprotected"])
def test_the_claim_of_a_curator_of_ours_is_kept(mechanism, place, capsys):
    capsys.readouterr()
    assert command(["doctor", str(place), "--mechanism", mechanism, "--json", "found.json"]) == 0
    told = said(capsys)
    assert "The target did what it claims, as far as was checked" in told
    assert "attack, strategy" in told
    assert "recovered" not in told
    found = read_run("found.json")
    assert found.only_claim
    assert found.ended == "complete"
    assert found.checks > 0
    assert found.queries == 0
    assert not any(getattr(found, name, None) for name in HOLLOW)


def test_a_liar_is_told_by_the_check_alone(tmp_path, capsys):
    where = tmp_path / "r.html"
    verdict = thinveil.audit(Dice(), check_claim=True)
    assert (verdict.exit_code, verdict.run.ending) == (1, "broken")
    assert verdict.sentence().startswith(BROKEN)
    assert verdict.run.meter.queries == 0
    verdict.report(where)
    assert 'class="tone-broken"' in where.read_text("utf-8")


def test_the_doctor_looks_at_a_service(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served(people(60), Options().claim(), tmp_path) as service:
        monkeypatch.setenv("THINVEIL_TOKEN", service.tokens["analyst"])
        assert command(["doctor", service.url, "--transcript", "kept"]) == 0
    assert "did what it claims" in said(capsys)
    assert (tmp_path / "kept").is_file()


def test_a_cap_that_leaves_nothing_to_ask_is_no_pass(place, capsys):
    capsys.readouterr()
    assert command(["audit", str(place), "--check-claim", "--cap", "1e-12"]) == 3
    assert "Nothing was checked" in said(capsys)


def test_a_check_that_was_interrupted_goes_on(place, tmp_path, monkeypatch, capsys):
    rounds: list[Any] = []

    def stop(meter: Any, about: Any) -> None:
        rounds.append(about)
        raise KeyboardInterrupt

    verdict = thinveil.audit(str(place), check_claim=True, transcript="kept", observer=stop)
    assert verdict.run.ending == "interrupted"
    assert verdict.exit_code == 3
    assert verdict.sentence().startswith("The check ended early: the run was interrupted.")
    assert command(["audit", "--resume", "kept", str(place)]) == 0
    assert "did what it claims" in said(capsys)


@pytest.mark.parametrize("beside", [["--trials", "8"], ["--canaries", "2"], ["--checks", "off"]])
def test_a_check_attacks_nobody(place, beside):
    assert command(["doctor", str(place), *beside]) == 2
    assert command(["doctor", "--nonsense"]) == 2


# Small things that were said wrongly


def test_that_nobody_fits_is_right(capsys, place):
    capsys.readouterr()
    asked = ["--attack", "attribute", "--known", "age=1", "--known", "job=nurse"]
    assert command(["audit", str(place), *asked, "--json", "run.json"]) == 0
    told = said(capsys)
    assert "not scored" not in told
    assert "what was said of 1 of 1 person; nobody asked about is alone" in told
    text = re.sub(r"<[^>]*>|\s+", " ", page(read_run("run.json")))
    assert re.search(r"What was said is\s+right\s+nobody asked about is alone", text)


@pytest.mark.parametrize(
    ("name", "start", "what"),
    [
        ("a.xlsx", b"PK\x03\x04", "no spreadsheet, or a damaged one"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "no spreadsheet, or a damaged one"),
        ("a.pkl", b"\x80\x04", "this is a pickle"),
        ("a.dta", b"<stata_dta>", "not a file of Stata, or a damaged one"),
    ],
)
def test_files_of_other_programs_are_named(name, start, what, tmp_path, capsys):
    (tmp_path / name).write_bytes(start + bytes(range(256)))
    assert command(["audit", str(tmp_path / name)]) == 1
    told = capsys.readouterr().err
    assert what in told
    assert re.search("save the (table|sheet) as CSV", told)
    assert "latin-1" not in told
    (tmp_path / "text.xls").write_text("age,job\n1,nurse\n2,cook\n3,cook\n")
    assert thinveil.load(tmp_path / "text.xls").records == 3


def test_the_json_of_a_table_holds_no_value_unless_asked_for(place):
    assert command(["audit", str(place), "--json", "run.json"]) == 0
    stairs = read_run("run.json").staircase
    assert stairs is not None
    assert stairs.predicate.endswith(f"= {MASK}")
    assert command(["audit", str(place), "--json", "run.json", "--show-records"]) == 0
    stairs = read_run("run.json").staircase
    assert stairs is not None
    assert MASK not in stairs.predicate


def test_where_only_the_size_of_noise_is_off_exact_answers_are_believed():
    class Twice:
        _curator = Curator(people(60), thinveil.idp())
        facts = _curator.facts

        def answer(self, batch: QueryBatch) -> Any:
            values = self._curator.answer(batch).values
            return np.where(np.isin(values, (0.0, 1.0)), values, 2 * values)

    verdict = thinveil.audit(Twice())
    assert verdict.run.ending == "broken"
    assert "Still believed: what is public, and answers without noise" in verdict.sentence()


def test_no_value_is_found_outside_its_limits():
    """Answers that only say yes led `published` below the lowest value."""
    rules, axis = Rules(3, 1, bounded=False), Axis(0, 0, 1)
    for result, asked in ends(rules, lambda: published.values(rules, axis, 3, [])):
        assert all(0 <= value <= 1 for value, _ in result), asked
