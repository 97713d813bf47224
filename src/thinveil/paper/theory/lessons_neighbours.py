"""The tour's third part: empirical neighbours, and why the leak is built in."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from itertools import product
from typing import Any, Final

from thinveil.paper.theory.chapters import Chapter, Setting, group_name, positive, shown
from thinveil.paper.theory.definitions import dp_loss, worst_loss
from thinveil.paper.theory.empirical import (
    NPairs,
    always,
    bdp_pairs,
    check,
    coverage,
    dp_pairs,
    empty,
    idp_pairs,
    leak,
    loophole,
    multiset,
    records_in,
    recover,
    sharing,
    state_totals,
    table_size,
    unlabelled,
    unrestricted,
)
from thinveil.paper.theory.functions import Threshold
from thinveil.paper.theory.laplace import laplace
from thinveil.paper.theory.losses import Loss
from thinveil.paper.theory.mechanisms import truthful
from thinveil.paper.theory.worlds import Data, World

TINY: Final = Fraction(1, 10**10)
CENSUS: Final = World(tuple(product(("NY", "PA"), (0, 1))), 3)
"""Three people, each in one of two states and with or without some trait."""
COUNTED: Final[Data] = (("NY", 0), ("NY", 1), ("PA", 1))


def hints(setting: Setting) -> Chapter:
    """Check choosers for every data set: the leaking one passes whatever the hint."""
    query = Threshold(_trait, 1)

    def sensitivity(data: Data) -> Hashable:
        return query.k_local(data, 1)

    def scaled(hint: Any) -> Any:
        return laplace(query, hint, TINY)

    npairs = {"IDP": idp_pairs(CENSUS), "BDP": bdp_pairs(CENSUS), "DP": dp_pairs(CENSUS)}
    choosers = {
        "leak": leak(CENSUS),
        "k-Laplace": scaled,
        "the truth": always(truthful(CENSUS, query)),
    }
    rows = []
    for definition, seen, hint, chosen in (
        ("IDP", "unrestricted", unrestricted, "leak"),
        ("IDP", "NPairs", npairs["IDP"], "leak"),
        ("BDP", "NPairs", npairs["BDP"], "leak"),
        ("DP", "state totals (Census)", state_totals(_state), "leak"),
        ("DP", "size of the table", table_size, "leak"),
        ("DP", "empty", empty, "leak"),
        ("IDP", "local sensitivity", sensitivity, "k-Laplace"),
        ("IDP", "empty", empty, "the truth"),
    ):
        found = check(CENSUS, npairs[definition], hint, choosers[chosen], TINY)
        left = sharing(CENSUS, hint, COUNTED)
        rows.append((definition, seen, chosen, found.worst, found.holds, left))
    leaks = [row for row in rows if row[2] == "leak"]
    return Chapter(
        "hints",
        f"May the mechanism be chosen by looking at the data? ({len(CENSUS)} data sets: three "
        "people, two states)",
        "Definition Empirical Neighbors, Lemma hint (first part)",
        ("definition", "hint", "chooser", "worst loss", f"at {float(TINY):g}", "left open"),
        tuple(rows),
        "The chooser whose mechanism ignores the data and prints the hint "
        + (
            "loses 0 for every data set, so it passes at every epsilon: "
            if all(row[4] and not row[3].epsilon for row in leaks)
            else "does NOT pass everywhere: "
        )
        + "whatever the hint tells is given away, and only so many data sets are left open. The "
        "check is not empty: it finds the chooser that tells the truth without looking.",
    )


def _state(record: Any) -> Hashable:
    state: Hashable = record[0]
    return state


def _trait(record: Any) -> bool:
    return positive(record[1])


def recovery(setting: Setting) -> Chapter:
    """Recover data sets from NPairs, with and without labels, and the records under BDP."""
    world = setting.world
    whole = "data set in every pair"
    rows: list[tuple[Any, ...]] = []
    for k in setting.groups:
        npairs = idp_pairs(world, k)
        right = sum(recover(npairs(data)) == data for data in world)
        rows.append((group_name(k), whole, right, len(world), ""))
    binary, single = World((0, 1), world.size), World((0, 1), 1)
    labelled = idp_pairs(binary)
    plain = {multiset(data): unlabelled(labelled(data)) for data in binary}
    missed = [data for data, pairs in plain.items() if recover(pairs) != data]
    some, said = len(plain) - len(missed), ", ".join(map(str, missed))
    rows.append(("IDP, no labels, 0 or 1", "multiset in every pair", some, len(plain), said))
    alone = [data for data in single if recover(idp_pairs(single)(data)) is None]
    some, said = len(single) - len(alone), "a single pair" if alone else ""
    rows.append(("IDP, one person, 0 or 1", whole, some, len(single), said))
    bootstrap = bdp_pairs(world)
    equal = [data for data in world if records_in(bootstrap(data)) != frozenset(data)]
    why = "all records equal" if equal and all(len(set(data)) == 1 for data in equal) else ""
    rows.append(("BDP", "distinct records", len(world) - len(equal), len(world), why))
    return Chapter(
        "recovery",
        "What does NPairs, as a hint, give away?",
        "Lemma hint (first part); erratum 13",
        ("definition", "read off", "recovered", "data sets", "exceptions"),
        tuple(rows),
        "Under IDP the protected pairs tell the data set, once records are labelled and there is "
        "more than one. Under BDP they tell which records there are, here "
        f"{shown(records_in(bootstrap(setting.actual)))}.",
    )


def empty_hint(setting: Setting) -> Chapter:
    """Compare what the empty hint protects with differential privacy, and find loopholes."""
    world, even, small = setting.world, World((0, 1), 2), World((0, 1, 2), 2)
    cases: list[tuple[str, World, NPairs]] = [
        *((group_name(k), world, idp_pairs(world, k)) for k in setting.groups),
        *(("BDP", each, bdp_pairs(each)) for each in dict.fromkeys((world, even, small))),
    ]
    rows: list[tuple[Any, ...]] = []
    for name, where, npairs in cases:
        found = coverage(where, npairs)
        verdict = "DP" if found.is_dp else "weaker" if found.missing else "stronger"
        losses: tuple[Loss | None, Loss | None] = None, None
        if found.missing:
            mechanism = loophole(where, found)
            losses = worst_loss(mechanism, found.covered), dp_loss(mechanism, where)
        sizes = len(found.covered), len(found.missing), len(found.extra)
        rows.append((name, f"{where.size}, {len(where.domain)}", *sizes, verdict, *losses))
    return Chapter(
        "empty_hint",
        "And if the mechanism is chosen without looking?",
        "Lemma hint (second part); erratum 13",
        ("definition", "n, domain", "kept", "missing", "further", "so it is", "loophole", "in DP"),
        tuple(rows),
        "What is kept are pairs of dp-neighbours. IDP with the empty hint is DP"
        + ("; Group IDP then asks more than DP at the same epsilon. " if setting.k > 1 else ". ")
        + "BDP becomes DP only if n records can hold every possible record: a pair of neighbours "
        "has up to n + 1 different records, and no data set of n records protects such a pair. "
        "The loophole is a mechanism that uses this: its loss over what is kept, and under DP.",
    )
