"""Trials of membership, accuracy beside two baselines, and where a result comes from."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil import Categories, Curator, Dataset, Grid, Options, Schema, audit, people, trial
from thinveil.attacker.findings import TableFound
from thinveil.commands.main import run
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.neighbours import Neighbour
from thinveil.errors import UsageError
from thinveil.language.claims import claim_named
from thinveil.language.queries import batch_of
from thinveil.verdicts.judging.guesses import epsilon_by_guesses
from thinveil.verdicts.judging.inference import inferred
from thinveil.verdicts.names import sense_of
from thinveil.verdicts.trials import coins, membership_trials, possible_targets
from thinveil.verdicts.typed import to_json
from worlds import examples, sure, sweep

DATA = people(80)
FEW = people(30)
LEAKING = ("unprotected", "idp-binary", "idp", "idp-integer", "bdp", "idp-noisy")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


# Trials of membership


@pytest.mark.parametrize("mechanism", sweep(LEAKING, 2))
def test_trials_tell_who_was_replaced_whatever_the_mechanism(mechanism):
    found = trial(DATA, mechanism=mechanism, trials=60)
    assert (found.tpr, found.fpr, found.trials, found.guesses.made) == (1, 0, 60, 60)
    assert found.epsilon_at_least == found.ceiling > 1
    assert found.baseline.epsilon_at_least == 0
    if mechanism != "unprotected":
        assert sure(found.epsilon_claimed) < 1e-5
        assert f"in the sense of {found.sense}; in the sense of differential" in found.sentence()


@pytest.mark.parametrize("mechanism", ["dp-laplace", "dp-smooth"])
def test_honest_mechanisms_show_no_bound_and_the_sentence_says_what_would_have_shown(mechanism):
    found = trial(DATA, mechanism=mechanism, trials=20, most_repeats=64)
    assert (found.epsilon_at_least, found.most_queries, found.cut) == (0, 64, 0)
    assert 0 < found.guessed_right < 20
    said = found.sentence()
    assert "which shows no bound above 0 at 99.9 % confidence. A loss of 2.82" in said
    assert "would have shown one with a probability of 90 %" in said
    for words in ("at least", "no usable difference", "nothing"):
        assert words not in said


def test_what_an_honest_mechanism_claims_is_never_passed():
    found = trial(DATA, mechanism="dp-laplace", trials=80, epsilon_per_query=2, confidence=0.9)
    assert 0 < found.epsilon_at_least <= sure(found.epsilon_claimed)


def test_the_bound_stands_beside_the_claim_and_refutes_nothing():
    said = trial(DATA, mechanism="idp", k=3, trials=60).sentence()
    assert "claims 1e-10 in the sense of Group IDP for groups of 3" in said
    assert re.search(
        r"in the sense of differential privacy it is at least \d\.\d\d, at 99.9 %", said
    )
    assert "the most that 60 trials can show" in said
    for word in ("refute", "violat", "wrong", "false", "broken"):
        assert word not in said
    senses = {name: sense_of(claim_named(name)) for name in ("idp", "bdp", "dp-laplace")}
    assert senses == {
        "idp": "Individual DP", "bdp": "Bootstrap DP", "dp-laplace": "differential privacy",
    }  # fmt: skip


@pytest.mark.parametrize("seed", sweep(range(3), 3))
def test_whoever_asks_nothing_shows_no_epsilon_whatever_he_goes_by(seed):
    """Targets are drawn alike in both worlds, so what is known of them tells nothing."""
    drawn, high = (
        coins(DATA, possible_targets(DATA), 4000, seed),
        DATA.codes > np.median(DATA.codes, axis=0),
    )
    rules = [
        lambda coin: True,
        lambda coin: False,
        lambda coin: coin.hunch,
        lambda coin: coin.row % 2 == 0,
        lambda coin: coin.row < 20,
        *(lambda coin, column=column: high[coin.row, column] for column in range(high.shape[1])),
    ]
    inside = sum(coin.inside for coin in drawn)
    assert 1800 < inside < 2200
    for rule in rules:
        right = sum(bool(rule(coin)) == coin.inside for coin in drawn)
        assert epsilon_by_guesses(right, len(drawn), 0.999) == 0


def test_a_replaced_target_is_gone_and_another_record_is_there_twice():
    for coin in coins(DATA, possible_targets(DATA), 200, 1):
        assert coin.row != coin.other
        assert 0 <= coin.other < DATA.records
    twins = Dataset(Schema((Grid("a"),)), np.array([[1], [1], [2], [3]]))
    assert {coin.row for coin in coins(twins, possible_targets(twins), 200, 0)} == {2, 3}


@given(data=st.data())
@examples(40)
def test_a_neighbour_counts_as_the_replaced_table_does(data):
    rows = data.draw(st.integers(2, 8))
    cell = st.integers(0, 4)
    codes = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=rows, max_size=rows)))
    row, other = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, rows - 1))
    box = st.tuples(cell, cell).map(lambda ends: (min(ends), max(ends) + 1))
    batch = batch_of(
        [
            ([{0: one, 1: two}], 0)
            for one, two in data.draw(st.lists(st.tuples(box, box), min_size=1))
        ]
    )
    table = Dataset(Schema((Grid("a"), Grid("b"))), codes)
    world = Neighbour(
        table.schema, rows, table.counter(), codes[[row]], codes[[other]], "a neighbour"
    )
    replaced = codes.copy()
    replaced[row] = codes[other]
    assert world.count(batch).tolist() == ScanCounter(replaced).count(batch).tolist()


def test_the_same_seed_is_the_same_trial():
    one, two, other = (trial(DATA, trials=40, seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one.transcripts != other.transcripts


def test_interrupted_trials_keep_what_was_done():
    def stop(meter, about):
        if meter.rounds == 10:
            raise KeyboardInterrupt

    options = Options(trials=50, attack="membership")
    found = membership_trials(DATA, options, stop)
    assert (found.trials, found.asked_for, found.interrupted) == (10, 50, True)
    verdict = audit(DATA, attack="membership", trials=50, observer=stop)
    assert verdict.exit_code == 3
    assert "stopped by hand after 10 of 50" in verdict.sentence()


def test_a_table_in_which_nobody_is_alone_is_refused_or_noted():
    twins = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [0], [1], [1]]))
    with pytest.raises(UsageError, match="no record of the table is alone"):
        trial(twins)
    verdict = audit(twins, trials=10)
    assert verdict.membership is None
    assert "no record of the table is alone" in verdict.notice


def test_a_trial_needs_the_table_itself():
    curator = Curator(DATA, claim_named("idp"))
    with pytest.raises(UsageError, match="needs the table itself"):
        trial(curator)
    with pytest.raises(UsageError, match="trials need the table"):
        audit(curator, trials=10)
    verdict = audit(curator, truth=DATA, trials=10)
    assert sure(verdict.membership).trials == 10
    assert "the target itself was not asked" in sure(verdict.membership).sentence()
    assert "the target itself was not asked" in verdict.to_plain()["membership"]["targets"]
    alone = audit(Curator(DATA, claim_named("idp")), truth=DATA, attack="membership", trials=10)
    assert (alone.run.meter.queries, sure(alone.membership).queries) == (0, 10)
    assert "not asked" not in trial(DATA, trials=10).sentence()


def test_too_few_trials_are_not_called_a_null_result():
    found = trial(DATA, trials=8)
    assert (found.guessed_right, found.epsilon_at_least, found.ceiling) == (8, 0, 0)
    said = found.sentence()
    assert "8 of 8 guesses were right, which shows no bound above 0" in said
    assert "So few trials can show none" in said
    assert found.seen_loss is None
    assert "chance" not in said


@pytest.mark.parametrize("limits", [{"cap": "1e-11"}, {"epsilon": "1e-10", "cap": "1e-11"}])
def test_trials_in_which_nothing_was_asked_say_so(limits):
    verdict = audit(DATA, attack="membership", trials=20, mechanism="idp-noisy", **limits)
    assert verdict.exit_code == 3
    assert verdict.sentence().startswith("Nothing was asked in 20 trials of membership: ")
    assert sure(verdict.membership).to_plain()["reason"]


def test_whoever_named_the_people_does_not_beat_saying_yes_to_all():
    whole = [dict(zip(DATA.schema.names, row, strict=True)) for row in DATA.rows()]
    shares = sure(audit(DATA, attack="membership", known=whole).accuracy).whole
    assert (shares.right, shares.nothing, shares.marginals) == (80, 80, 80)
    one = sure(audit(DATA, attack="membership", known=whole[0]).accuracy).whole
    assert (one.right, one.nothing) == (1, 0.5)


def test_a_result_says_that_its_schema_came_from_the_table(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("name,age\n" + "".join(f"p{i},{i}\n" for i in range(24)))
    verdict = audit(path)
    assert "taken from the table" in verdict.assumed_public()[-1]
    assert "'name'" in verdict.to_plain()["doubts"][0]
    assert audit(path, attack="membership", trials=10).doubts() == verdict.doubts()
    given = audit(path, schema=verdict.facts.schema)
    assert given.doubts() == []
    assert "taken from" not in given.assumed_public()[-1]
    assert audit(DATA).doubts() == []


# Accuracy and baselines


def test_every_attack_on_a_table_at_hand_has_its_baselines():
    person = dict(zip(FEW.schema.names, FEW.rows()[0], strict=True))
    for settings_ in (
        {},
        {"mechanism": "bdp"},
        {"mechanism": "dp-laplace", "most_repeats": 64},
        {"attack": "column", "columns": ["job", "age"]},
        {"attack": "count", "known": {"age": "30..39"}},
        {"attack": "membership", "known": person},
        {"attack": "uniqueness", "known": person},
        {"attack": "attribute", "known": {"postcode": person["postcode"], "age": person["age"]}},
    ):
        judged = audit(FEW, **settings_).to_plain()["accuracy"]
        assert judged is not None, settings_
        for share in (judged["records"], *(each["inferred"] for each in judged["attributes"])):
            if share is not None:
                assert "interval" not in share
                assert "confidence" not in share
                assert 0 <= share["share"] <= 1
                assert 0 <= share["nothing_share"] <= 1
                assert 0 <= share["marginals_share"] <= 1
        for each in judged["attributes"]:
            assert each["inferred"] is None or 0 <= each["inferred"]["others_share"] <= 1
        honest = settings_.get("mechanism") == "dp-laplace"
        assert judged["records"]["share"] == (0 if honest else 1)


def naive_inferred(found: np.ndarray, actual: np.ndarray, place: int) -> int:
    """Whom the reconstruction names rightly, one person after the other."""
    others = [column for column in range(actual.shape[1]) if column != place]
    values = sorted(set(found[:, place]))
    usual = max(values, key=lambda value: (sum(found[:, place] == value), -value))
    right = 0
    for person in actual:
        fits = found[(found[:, others] == person[others]).all(axis=1), place]
        kinds = sorted(set(fits))
        said = max(kinds, key=lambda v: (sum(fits == v), -v)) if kinds else usual
        right += said == person[place]
    return right


@given(data=st.data())
def test_inference_is_what_looking_at_each_person_gives(data):
    cell = st.integers(0, 2)
    row = st.tuples(cell, cell, cell)
    actual = np.array(data.draw(st.lists(row, min_size=1, max_size=12)))
    mine = np.array(data.draw(st.lists(row, min_size=1, max_size=12)))
    ones = np.ones(len(mine), np.int64)
    found = TableFound((0, 1, 2), mine, ones * 3, ones, (1, 1, 1))
    blind = np.zeros_like(actual)
    for place, each in enumerate(inferred(found, actual, blind, known=False)):
        assert each.right == naive_inferred(mine, actual, place)
        assert each.possible_share == naive_inferred(actual, actual, place) / len(actual)
        assert each.marginals == np.unique(actual[:, place], return_counts=True)[1].max()
        assert each.nothing == (actual[:, place] == 0).sum()
        assert each.of == len(actual)


def test_knowing_the_marginals_does_not_rebuild_records():
    judged = sure(audit(DATA).accuracy)
    assert sure(judged.whole.marginals) < judged.whole.right == DATA.records
    for each in judged.attributes:
        column, inferred = sure(each.column), sure(each.inferred)
        assert column.marginals == column.of  # he was told the column
        assert inferred.share == inferred.possible_share
        assert inferred.share >= sure(inferred.marginals_share)


# Where a result comes from


def test_the_hash_of_the_answers_depends_on_the_noise_and_on_nothing_else(tmp_path):
    def hashed(**more):
        return audit(FEW, **more).to_plain()["provenance"]["transcript_sha256"]

    whole = hashed(seed=4)
    assert whole == hashed(seed=4) != hashed(seed=5)

    def stop(meter, about):
        if meter.rounds == 20:
            raise KeyboardInterrupt

    path = tmp_path / "run.transcript"
    assert audit(FEW, seed=4, transcript=path, observer=stop).exit_code == 3
    assert sure(audit(FEW, resume=path).provenance).transcript == whole


def test_results_say_versions_options_and_the_command(capsys):
    with Path("few.csv").open("w", newline="") as file:
        csv.writer(file).writerows([FEW.schema.names, *FEW.rows()])
    assert run(["audit", "few.csv", "--trials", "20", "--seed", "3", "--json", "out.json"]) == 0
    result = json.loads(Path("out.json").read_text())
    made = result["provenance"]
    assert made["command"] == "thinveil audit few.csv --trials 20 --seed 3 --json out.json"
    assert made["thinveil"] == thinveil.__version__
    assert made["options"]["seed"] == result["seed"] == 3
    assert re.fullmatch("[0-9a-f]{64}", made["transcript_sha256"])
    assert made["numpy"] == np.__version__
    assert result["membership"]["trials"] == 20
    assert sure(audit(FEW).provenance).command is None
    printed = capsys.readouterr().out
    assert made["transcript_sha256"][:16] in printed
    assert "said to be in the table" in printed


def test_passwords_are_not_part_of_a_result():
    code = run(["audit", "postgresql://ann:secret@127.0.0.1:1/x", "--json", "out.json"])
    assert code != 0
    from thinveil.commands.shared.common import command_line

    words = ("audit", "postgresql://ann:secret@host/x", "--known", "job=nurse")
    said = command_line(click.Context(click.Command("audit"), obj=words))
    assert "secret" not in said
    assert "postgresql://ann" in said


def test_the_trace_grows_from_nothing_to_what_was_found():
    for mechanism in ("idp", "bdp"):
        verdict = audit(FEW, mechanism=mechanism)
        trace = verdict.to_plain()["trace"]
        assert trace[0] == {"queries": 0, "questions": 0, "rounds": 0, "epsilon_claimed": 0.0,
                            "records": 0.0, "values": 0.0, "bits": 0.0}  # fmt: skip
        for name in trace[0]:
            steps = [each[name] for each in trace]
            assert steps == sorted(steps) or (mechanism == "bdp" and name in ("records", "values"))
        last = trace[-1]
        assert (last["records"], last["values"], last["bits"]) == (1, 1, 1)
        assert last["queries"] == verdict.run.meter.queries
        assert last["epsilon_claimed"] == pytest.approx(verdict.epsilon_claimed)
        assert len(trace) > 10


@pytest.mark.parametrize("k", [1, 3])
def test_the_staircase_shows_noise_around_the_count_and_nowhere_else(k):
    drawn = sure(audit(DATA, k=k, exhibits=True).staircase)
    attribute, _, value = drawn.predicate.partition(" = ")
    column = [str(row[DATA.schema.names.index(attribute)]) for row in DATA.rows()]
    count = sure(drawn.count)
    assert column.count(value) == count
    plain = to_json(drawn)
    for point in plain["points"]:
        noisy = count - k <= point["threshold"] < count + k
        assert point["kind"] == ("noise" if noisy else "exact")
        if not noisy:
            assert point["answers"] == [float(count > point["threshold"])]
    assert plain["queries"] == len(plain["points"])
    assert plain["epsilon_claimed"] == pytest.approx(1e-10 * plain["queries"])


def test_staircases_of_other_mechanisms():
    assert audit(FEW, mechanism="bdp", exhibits=True).staircase is None
    honest = sure(audit(FEW, mechanism="dp-laplace", most_repeats=64, exhibits=True).staircase)
    assert honest.count is None
    assert {each["kind"] for each in to_json(honest)["points"]} == {"noise"}
    noisy = to_json(audit(FEW, mechanism="idp-noisy", exhibits=True).staircase)
    assert (noisy["repeats"], {each["kind"] for each in noisy["points"]}) == (200, {"noise"})
    true = to_json(audit(FEW, mechanism="unprotected", exhibits=True).staircase)
    assert true["epsilon_claimed"] is None
    assert audit(FEW, exhibits=True, max_queries=10**6).staircase is not None
    assert audit(FEW, attack="column", columns=["age"], exhibits=True).staircase is None


# The command line


def command(*arguments):
    return run(["audit", *map(str, arguments)])


def test_membership_without_anybody_known_is_a_trial(capsys):
    assert command("--attack", "membership", "--trials", 30, "--json", "out.json") == 0
    result = json.loads(Path("out.json").read_text())
    assert result["membership"]["trials"] == result["queries"] == 30
    assert result["epsilon_claimed"] == 1e-10
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "in the sense of differential privacy it is at least" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--trials", 1), "--trials"),
        (("--trials", -5), "--trials"),
        (("--confidence", 1), "--confidence"),
        (("--confidence", "sure"), "--confidence"),
        (("--attack", "membership", "--trials", 0), "needs something known"),
        (("--report", "missing/out.html"), "no file can be written"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said, capsys):
    assert command(*arguments) != 0
    assert said in capsys.readouterr().err


def test_settings_are_kept_in_transcripts_and_older_ones_are_read():
    options = Options(trials=12, confidence="0.99")
    plain = options.plain()
    assert Options.from_plain(json.loads(json.dumps(plain))) == options
    del plain["trials"], plain["confidence"]
    assert Options.from_plain(plain) == replace(options, trials=0, confidence="0.999")


def test_textbook_noise_that_doubles_did_not_settle_says_why():
    """Of one answer each, no belief: that is the reason, beside what noise alone would tell."""
    few = thinveil.audit(people(20), mechanism="dp-textbook", most_repeats=1).sentence()
    assert "none was believed: a question may have too few answers to be sure of them" in few
