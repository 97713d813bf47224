"""What was spent, to the last digit, and how a budget is shared out."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinveil.auditing.schedule import LARGEST, Fixed, Free, Schedule, Total, exact_epsilon
from thinveil.curator.ledger import Ledger, PostProcessing, Spend, exact, exact_sum
from thinveil.errors import BudgetError, BudgetSpent
from thinveil.language.claims import SMALLEST_EPSILON, reduce_group
from thinveil.language.queries import Loss, QueryBatch
from worlds import ranges


def asking(questions: int, repeats: int | list[int] = 1) -> QueryBatch:
    zeros = [0] * questions
    wanted = repeats if isinstance(repeats, int) else np.array(repeats)
    return ranges(zeros, zeros, zeros, zeros, repeats=wanted)


def stamped(batch: QueryBatch, epsilon: Loss) -> QueryBatch:
    return batch.stamped(("run", 1), epsilon)


# ---- exact sums


def test_five_million_tiny_spends_add_up_exactly() -> None:
    ledger = Ledger()
    left = 5_418_936
    while left:
        size = min(left, 99_991)
        ledger.charge(Spend.of(stamped(asking(size), 1e-10)))
        left -= size
    assert ledger.spent == Fraction(5_418_936, 10**10) == Fraction("0.0005418936")
    spends = [event for event in ledger.events if isinstance(event, Spend)]
    assert len(spends) == len(ledger.events)
    assert sum(event.queries for event in spends) == 5_418_936


@given(st.floats(SMALLEST_EPSILON, 1e300))
def test_a_single_epsilon_is_read_as_its_shortest_decimal(epsilon: float) -> None:
    assert exact(epsilon) == Fraction(repr(epsilon))
    assert float(exact(epsilon)) == epsilon


@settings(max_examples=300)
@given(st.lists(st.floats(0, 1e308, allow_subnormal=True), max_size=40))
def test_doubles_are_added_without_rounding(values: list[float]) -> None:
    expected = sum((Fraction(value) for value in values), Fraction(0))
    assert exact_sum(np.array(values, np.float64)) == expected


def test_large_columns_are_added_without_rounding() -> None:
    shares = 1.0 / np.arange(1, 5001, dtype=np.float64) ** 2
    assert exact_sum(shares) == sum(map(Fraction, shares.tolist()), Fraction(0))
    many = np.full(3_000_000, 0.1)
    assert exact_sum(many) == Fraction(0.1) * 3_000_000


@given(st.lists(st.tuples(st.floats(1e-12, 10.0), st.integers(1, 5)), min_size=1, max_size=12))
def test_a_batch_costs_what_each_of_its_answers_costs(pairs: list[tuple[float, int]]) -> None:
    losses, repeats = zip(*pairs, strict=True)
    batch = stamped(asking(len(pairs), list(repeats)), np.array(losses))
    cost = sum((Fraction(loss) * many for loss, many in pairs), Fraction(0))
    assert Spend.of(batch) == Spend(sum(repeats), cost)


def test_a_batch_without_a_stamp_costs_nothing() -> None:
    assert Spend.of(asking(3, 2)) == Spend(6, Fraction(0))


# ---- the ledger


def test_events_are_only_ever_added() -> None:
    ledger = Ledger()
    seen: list[tuple[object, ...]] = []
    for size in range(1, 6):
        ledger.charge(Spend(size, Fraction(size, 7)))
        seen.append(ledger.events)
    for earlier, later in pairwise(seen):
        assert later[: len(earlier)] == earlier
        assert len(later) == len(earlier) + 1
    assert isinstance(ledger.events, tuple)
    with pytest.raises(AttributeError):
        ledger.spent = Fraction(0)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ledger.events = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        seen[0][0].cost = Fraction(0)  # type: ignore[attr-defined]


@given(st.lists(st.fractions(0, 10), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_losses_compose_by_adding_up_whenever_one_looks(
    costs: list[Fraction], looks: list[int]
) -> None:
    ledger = Ledger()
    for number, cost in enumerate(costs):
        if number in looks:
            assert ledger.spent == sum(costs[:number], Fraction(0))
        ledger.charge(Spend(1, cost))
    assert ledger.spent == sum((each.cost for each in ledger.events), Fraction(0))
    assert ledger.spent == sum(costs, Fraction(0))


def test_post_processing_is_free_even_at_the_cap() -> None:
    ledger = Ledger(cap=Fraction(1))
    ledger.charge(Spend(1, Fraction(1)))
    ledger.charge(PostProcessing("rounding"))
    assert ledger.spent == 1
    assert [type(event).__name__ for event in ledger.events] == ["Spend", "PostProcessing"]


def test_the_cap_may_be_reached_and_not_passed() -> None:
    ledger = Ledger(cap=Fraction(1, 3))
    for _ in range(10):
        ledger.charge(Spend(1, Fraction(1, 30)))
    assert ledger.spent == ledger.cap
    before = ledger.events
    with pytest.raises(BudgetSpent):
        ledger.charge(Spend(1, Fraction(1, 10**30)))
    assert ledger.events == before
    assert ledger.spent == Fraction(1, 3)


def test_admitting_records_nothing() -> None:
    ledger = Ledger(cap=Fraction(1))
    ledger.admit(Spend(1, Fraction(1)))
    ledger.admit(Spend(1, Fraction(1)))
    assert ledger.events == ()
    with pytest.raises(BudgetSpent):
        ledger.admit(Spend(1, Fraction(2)))


@pytest.mark.parametrize("cap", [Fraction(0), Fraction(-1)])
def test_a_cap_is_above_zero(cap: Fraction) -> None:
    with pytest.raises(BudgetError, match="cap"):
        Ledger(cap)


@pytest.mark.parametrize(("queries", "cost"), [(-1, Fraction(1)), (1, Fraction(-1))])
def test_nothing_is_paid_back(queries: int, cost: Fraction) -> None:
    with pytest.raises(BudgetError):
        Spend(queries, cost)


# ---- schedules


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-10", Fraction(1, 10**10)),
        (" 0.5 ", Fraction(1, 2)),
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        ("1e-300", Fraction(1, 10**300)),
        ("1e9", Fraction(LARGEST)),
        (Fraction(3), Fraction(3)),
    ],
)
def test_epsilons_are_read_exactly_as_written(text: object, value: Fraction) -> None:
    assert exact_epsilon(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-1",
        "-1e-10",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e-301",
        "1000000001",
        "1e301",
        "",
        "much",
        "1,5",
        None,
    ],
)
def test_unusable_epsilons_are_refused(text: object) -> None:
    with pytest.raises(BudgetError, match="loss"):
        exact_epsilon(text, "loss")


def test_a_fixed_loss_is_the_same_for_every_answer() -> None:
    schedule = Fixed(Fraction(1, 10**10))
    assert schedule.stamp(asking(3), 0) == schedule.stamp(asking(1, 9), 10**9) == 1e-10
    assert "1e-10" in schedule.describe()


def test_nothing_is_claimed_for_free() -> None:
    schedule: Schedule = Free()
    assert schedule.stamp(asking(3), 5) is None


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=20),
    st.sampled_from([Fraction(1), Fraction(1, 10**10), Fraction(5, 10**4), Fraction(7)]),
)
def test_shares_never_pass_the_total_however_they_are_batched(
    batches: list[tuple[int, int]], total: Fraction
) -> None:
    schedule, ledger, drawn = Total(total), Ledger(), 0
    for questions, repeats in batches:
        batch = asking(questions, repeats)
        shares = schedule.stamp(batch, drawn)
        assert shares.shape == (questions,)
        assert (shares > 0).all()
        ledger.charge(Spend.of(stamped(batch, shares)))
        drawn += batch.queries
        assert ledger.spent <= total


def test_shares_of_millions_of_answers_never_pass_the_total() -> None:
    schedule, ledger, drawn = Total(Fraction(1, 1000)), Ledger(cap=Fraction(1, 1000)), 0
    for size in (1, 10, 1000, 1_000_000, 1_999_999, 3_000_000):
        batch = asking(size)
        ledger.charge(Spend.of(stamped(batch, schedule.stamp(batch, drawn))))
        drawn += size
    assert drawn > 6_000_000
    assert Fraction(999, 1_000_000) < ledger.spent <= Fraction(1, 1000)


@given(st.integers(0, 10**9), st.lists(st.integers(1, 9), min_size=2, max_size=9))
def test_a_share_depends_on_the_ordinal_of_the_answer_only(drawn: int, repeats: list[int]) -> None:
    whole = Total(Fraction(1)).stamp(asking(len(repeats), repeats), drawn)
    parts = []
    for many in repeats:
        parts.append(float(Total(Fraction(1)).stamp(asking(1, many), drawn)[0]))
        drawn += many
    assert whole.tolist() == parts


def test_uneven_repeats_get_a_share_each() -> None:
    shares = Total(Fraction(1)).stamp(asking(2, [3, 1]), 0)
    assert shares[0] > shares[1]
    assert shares[0] * 9 == pytest.approx(shares[1] * 16)


def test_a_share_below_what_noise_can_bear_is_refused() -> None:
    schedule = Total(exact_epsilon("1e-290"))
    assert schedule.stamp(asking(1), 0)[0] >= SMALLEST_EPSILON
    with pytest.raises(BudgetError, match="larger total"):
        schedule.stamp(asking(1), 10**5)
    with pytest.raises(BudgetError, match="larger total"):
        Total(exact_epsilon("1e-300")).stamp(asking(1), 0)


def test_group_losses_reduce_to_the_smallest() -> None:
    assert reduce_group([Fraction(3), Fraction(1), Fraction(2)]) == (3, Fraction(1))
    for wrong in ([], [Fraction(1), Fraction(0)]):
        with pytest.raises(BudgetError):
            reduce_group(wrong)
