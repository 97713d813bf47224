"""The ledger on disk: what was answered is recorded, once, whatever happens."""

import sqlite3
import stat
from fractions import Fraction

import numpy as np
import pytest

import thinveil
from thinveil.curator.curator import Release
from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.analysts import (
    Bucket,
    analyst_named,
    budget_of,
    new_token,
    who_has,
)
from thinveil.curator.service.ledger.file import LedgerFile
from thinveil.errors import (
    BudgetError,
    BudgetSpent,
    KeyTaken,
    LedgerError,
    QueryError,
    ThinveilError,
    UsageError,
)
from thinveil.language.policies import Policies
from thinveil.language.queries import batch_of
from thinveil.language.schema import INFINITE, MISSING
from thinveil.language.wire.json import Asked
from worlds import sure

DATA = thinveil.people(60)
ONE = Fraction(1)


def asked(key="a", questions=2, epsilon=0.01, repeats=1, low=30):
    union = [([{0: (low + place, 60)}], 3) for place in range(questions)]
    return Asked(key, batch_of(union, repeats).stamped((key, 1), epsilon))


@pytest.fixture
def ledger(tmp_path):
    file = LedgerFile(tmp_path / "ledger", "promise")
    yield file
    file.close()


@pytest.fixture
def book(tmp_path):
    """Return accounts for a claim and policies, on one ledger file."""
    opened: list[Accounts] = []

    def made(claim=None, budget="1", data=DATA, **policies):
        for each in opened:
            each.close()
        path = tmp_path / "ledger"
        accounts = Accounts(data, claim or thinveil.idp(), path, Policies(**policies))
        opened.append(accounts)
        if not accounts.analysts:
            accounts.admit([("ada", Fraction(budget))])
        return accounts

    yield made
    for each in opened:
        each.close()


def ask(accounts, *given, **more):
    return accounts.answer(accounts.analysts[0], asked(*given, **more))


def test_only_the_owner_can_read_the_file(tmp_path, ledger):
    ledger.admit("ada", b"s" * 32, ONE)
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    ledger.close()
    (tmp_path / "ledger").chmod(0o644)
    LedgerFile(tmp_path / "ledger", "promise").close()
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o600


def test_one_service_has_it_at_a_time(tmp_path, ledger):
    with pytest.raises(LedgerError, match="in use by another service"):
        LedgerFile(tmp_path / "ledger", "promise")
    ledger.close()
    LedgerFile(tmp_path / "ledger", "promise").close()


def test_files_that_are_no_ledger_are_refused_and_left_alone(tmp_path):
    text = tmp_path / "text"
    text.write_text("a,b\n1,2\n" * 100)
    with pytest.raises(LedgerError, match="not a ledger"):
        LedgerFile(text, "promise")
    assert text.read_text() == "a,b\n1,2\n" * 100
    other = tmp_path / "other"
    base = sqlite3.connect(other)
    base.execute("CREATE TABLE songs (name)")
    base.close()
    with pytest.raises(LedgerError, match="not the ledger of a service"):
        LedgerFile(other, "promise")
    with pytest.raises(LedgerError, match="cannot be used"):
        LedgerFile(tmp_path / "no" / "folder", "promise")
    with pytest.raises(LedgerError):
        LedgerFile(tmp_path, "promise")


def test_a_ledger_of_something_else_is_refused(book):
    book().close()
    for other in (
        {"data": thinveil.people(61)},
        {"claim": thinveil.idp(2)},
        {"claim": thinveil.bdp()},
        {"claim": thinveil.idp(1, "bounded")},
        {"cache": True},
        {"max_queries": 5},
    ):
        with pytest.raises(ThinveilError) as refused:
            book(**other)
        if not isinstance(refused.value, UsageError):  # the embedded people have no bounds
            assert "another table, mechanism or policy" in str(refused.value)
    assert book().analysts


def test_the_file_tells_nothing_about_the_table_but_the_answers(tmp_path, book):
    book().close()
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert DATA.digest().encode() not in raw
    assert bytes.fromhex(DATA.digest()) not in raw


def test_two_services_have_different_names_and_one_keeps_its_own(tmp_path, book):
    first = book().ledger.service
    assert book().ledger.service == first
    other = LedgerFile(tmp_path / "other", "promise")
    assert other.service != first
    other.close()


def test_answers_and_spending_survive(book):
    before = ask(book(), repeats=3)
    reply = ask(book(), repeats=3)
    assert reply.again
    assert not before.again
    assert reply.values.tobytes() == before.values.tobytes()
    accounts = book()
    now = accounts.statement(accounts.analysts[0])
    assert (now.spent, now.left, now.batches, now.answers) == (
        Fraction(6, 100), Fraction(94, 100), 1, 6,
    )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, -128.0, 127.0],
        [0.0, 128.0],
        [0.25, 1e300, -1e-300],
        [1.0] * 5,
    ],
)
def test_answers_are_kept_to_the_last_bit(ledger, values):
    ledger.admit("ada", b"s" * 32, ONE)
    [analyst] = ledger.analysts()
    drawn = Release(np.array(values), Fraction(1, 3))
    ledger.record(analyst, "k", b"digest", drawn)
    ledger.reopen()
    digest, found = ledger.find(analyst, "k")
    assert digest == b"digest"
    assert found.values.tobytes() == drawn.values.tobytes()
    assert found.cost == Fraction(1, 3)
    assert ledger.find(analyst, "other") is None
    assert ledger.totals(analyst) == (1, len(values), Fraction(1, 3))


def test_a_key_is_charged_once_and_belongs_to_one_batch(book):
    accounts = book()
    ask(accounts, "a")
    for other in ({"questions": 3}, {"epsilon": 0.02}, {"repeats": 2}, {"low": 31}):
        with pytest.raises(KeyTaken):
            ask(accounts, "a", **other)
    assert ask(accounts, "a").again
    now = accounts.statement(accounts.analysts[0])
    assert (now.spent, now.batches) == (Fraction(2, 100), 1)


def test_keys_and_budgets_are_each_analysts_own(book):
    accounts = book(budget="0.02")
    tokens = accounts.admit([("grace", Fraction(1, 2))])
    ada, grace = accounts.analysts
    accounts.answer(ada, asked("a"))
    with pytest.raises(BudgetSpent):
        accounts.answer(ada, asked("b"))
    assert not accounts.answer(grace, asked("a", low=20)).again
    assert who_has(tokens["grace"], accounts.analysts) == grace
    assert accounts.statement(grace).left == Fraction(48, 100)


def test_the_cap_is_met_exactly_and_never_passed(book):
    accounts = book(budget="0.1")
    for number in range(10):
        assert ask(accounts, f"k{number}", questions=1).left == str(Fraction(9 - number, 100))
    with pytest.raises(BudgetSpent):
        ask(accounts, "one more", questions=1, epsilon=1e-300)
    assert ask(accounts, "k3", questions=1).again
    accounts = book()
    with pytest.raises(BudgetSpent):
        ask(accounts, "one more", questions=1, epsilon=1e-300)


def test_a_refused_batch_changes_nothing(book):
    accounts = book(min_epsilon=0.001, max_queries=5)
    ask(accounts, "a")
    overlapping = batch_of([([{0: (1, 5)}, {0: (3, 9)}], 3)]).stamped(("x", 1), 0.01)
    for error, wrong in (
        (BudgetError, asked("b", epsilon=0.0001)),
        (BudgetError, asked("b", epsilon=None)),
        (BudgetSpent, asked("b", questions=4)),
        (BudgetSpent, asked("b", epsilon=0.9)),
        (QueryError, Asked("b", overlapping)),
    ):
        with pytest.raises(error):
            accounts.answer(accounts.analysts[0], wrong)
        assert accounts.statement(accounts.analysts[0]).batches == 1
        assert accounts.recording
    assert not ask(accounts, "b", questions=3).again


def test_no_room_no_answers_and_all_is_well_once_there_is_room(book):
    accounts = book()
    first = ask(accounts, "a")
    base = accounts.ledger._tables._base
    [(pages,)] = base.execute("PRAGMA page_count").fetchall()
    base.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="no room"):
        ask(accounts, "b", questions=5000, epsilon=1e-6)
    assert not accounts.recording
    # `reopen` takes the limit away with the old connection: there is room again
    now = accounts.statement(accounts.analysts[0])
    assert (now.spent, now.batches) == (Fraction(2, 100), 1)
    assert accounts.recording
    reply = ask(accounts, "b", questions=5000, epsilon=1e-6)
    assert not reply.again
    assert ask(accounts, "a").values.tobytes() == first.values.tobytes()


def test_a_batch_that_was_recorded_although_it_seemed_not_is_given_again(book, monkeypatch):
    """The disk may have a commit that ended in an error: the ledger has the last word."""
    accounts = book()
    record = LedgerFile.record

    def unsure(self, *given):
        record(self, *given)
        raise LedgerError("the disk went away")

    monkeypatch.setattr(LedgerFile, "record", unsure)
    with pytest.raises(LedgerError):
        ask(accounts, "a")
    monkeypatch.undo()
    assert ask(accounts, "a").again
    assert accounts.statement(accounts.analysts[0]).spent == Fraction(2, 100)


@pytest.mark.parametrize("where", ["count", "draw"])
def test_a_failure_half_way_charges_nothing(book, monkeypatch, where):
    accounts = book()
    ask(accounts, "a")

    def broken(*given):
        raise RuntimeError("out of order")

    if where == "count":
        monkeypatch.setattr("thinveil.curator.counting.index.IndexCounter.count", broken)
    else:
        monkeypatch.setattr("thinveil.curator.curator.rounded", broken)
    with pytest.raises(RuntimeError):
        ask(accounts, "b")
    monkeypatch.undo()
    assert accounts.statement(accounts.analysts[0]).spent == Fraction(2, 100)
    assert not ask(accounts, "b").again


def test_the_same_question_has_the_same_answer_after_a_restart(book):
    accounts = book(cache=True, budget="0.05")
    first = ask(accounts, "a", epsilon=0.01, repeats=2)
    assert first.cost == "1/50"
    assert first.values[0] == first.values[1]
    again = ask(accounts, "b", epsilon=0.5)
    assert (again.cost, again.again) == ("0", False)
    accounts = book(cache=True)
    later = ask(accounts, "c", questions=3, epsilon=np.array([0.5, 0.5, 0.01]))
    assert later.cost == str(Fraction(0.01))
    assert later.values[:2].tolist() == first.values[::2].tolist() == again.values.tolist()
    now = accounts.statement(accounts.analysts[0])
    assert (now.batches, now.answers) == (3, 9)


def test_answers_from_the_cache_are_counted_and_refused_like_others(book):
    accounts = book(cache=True, max_queries=5)
    ask(accounts, "a")
    ask(accounts, "b")
    with pytest.raises(BudgetSpent, match="at most 5"):
        ask(accounts, "c")
    overlapping = batch_of([([{0: (1, 5)}, {0: (3, 9)}], 3)]).stamped(("x", 1), 0.01)
    with pytest.raises(QueryError):
        accounts.answer(accounts.analysts[0], Asked("d", overlapping))
    everything = batch_of([([{0: (MISSING, INFINITE)}], 0)]).stamped(("x", 1), None)
    with pytest.raises(BudgetError):
        accounts.answer(accounts.analysts[0], Asked("d", everything))


def test_truth_costs_nothing(book):
    accounts = book(thinveil.unprotected())
    reply = ask(accounts, "a", epsilon=None)
    ages = DATA.column(0)
    assert reply.values.tolist() == [
        float(((ages >= low) & (ages < 60)).sum() > 3) for low in (30, 31)
    ]
    assert (reply.cost, reply.left) == ("0", "1")


def test_noise_is_never_the_same_twice(tmp_path):
    """Two services on one table share no noise, and neither does one with itself."""
    drawn = []
    for name in ("one", "two"):
        accounts = Accounts(DATA, thinveil.claim_named("idp-noisy"), tmp_path / name)
        accounts.admit([("ada", ONE)])
        drawn += [ask(accounts, key, epsilon=1e-3).values.tolist() for key in "ab"]
        accounts.close()
    assert len({value for values in drawn for value in values}) == 8


def test_tokens_are_kept_as_hashes_and_can_be_replaced(tmp_path, book):
    accounts = book()
    old = accounts.admit([("grace", ONE)])["grace"]
    new = accounts.renew("grace")
    assert who_has(old, accounts.analysts) is None
    assert sure(who_has(new, accounts.analysts)).name == "grace"
    assert who_has("", accounts.analysts) is None
    accounts.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for token in (old, new):
        assert token.encode() not in raw
        assert token.removeprefix("thinveil-").encode() not in raw
    assert new_token() != new_token()
    assert "seal" not in repr(accounts.analysts[0])
    with pytest.raises(UsageError, match="knows no analyst"):
        book().renew("nobody")


def test_a_budget_is_for_good(book):
    accounts = book()
    assert accounts.admit([("ada", ONE)]) == {}
    with pytest.raises(UsageError, match="for good"):
        accounts.admit([("ada", Fraction(2))])
    with pytest.raises(UsageError, match="twice"):
        accounts.admit([("eve", ONE), ("eve", ONE)])


def test_analysts_as_people_write_them():
    assert analyst_named("ada=0.1") == ("ada", Fraction(1, 10))
    assert budget_of("1e-10", "--budget") == Fraction(1, 10**10)
    for wrong in ("ada", "=1", "ada=", "ada=x", "ada=0", "ada=-1", "ada=nan", "ada=inf", "a b=1",
                  "ada=1e999999999"):  # fmt: skip
        with pytest.raises(UsageError):
            analyst_named(wrong)
    with pytest.raises(UsageError):
        analyst_named("a\nb=1")


def test_a_bucket_lets_a_burst_through_and_then_the_rate():
    bucket = Bucket(2.0)
    now = bucket.seen
    assert [bucket.wait(now) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert bucket.wait(now + 0.5) == 0.0
    assert bucket.wait(now + 0.5) == pytest.approx(0.5)
    assert [bucket.wait(now + 100) for _ in range(3)] == [0.0, 0.0, 0.5]
    slow = Bucket(0.1)
    assert slow.wait(slow.seen) == 0.0
    assert slow.wait(slow.seen) == pytest.approx(10.0)
