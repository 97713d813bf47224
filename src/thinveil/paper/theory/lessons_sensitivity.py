"""The tour's first part: neighbours, sensitivities, k-Laplace, and the three zones."""

from __future__ import annotations

import numpy as np

from thinveil.paper.theory.chapters import Chapter, Setting, group_name, positive
from thinveil.paper.theory.definitions import group_pairs
from thinveil.paper.theory.functions import Median, Threshold
from thinveil.paper.theory.laplace import KLaplace
from thinveil.paper.theory.sensitivities import (
    bootstrap_sensitivity,
    global_sensitivity,
    k_local_sensitivity,
    local_sensitivities,
    smooth_sensitivity,
)


def neighbours(setting: Setting) -> Chapter:
    """Count who is whose neighbour under each definition."""
    world, data = setting.world, setting.actual
    pairs = {
        "DP": [*world.pairs()],
        **{group_name(k): [*group_pairs(world, data, k)] for k in setting.groups},
        "BDP": [*world.bootstrap_pairs(data)],
    }
    within = {f"N_{k}, itself included": [*world.within(data, k)] for k in setting.groups}
    rows: list[tuple[object, ...]] = [
        ("data sets in this world", len(world), None),
        ("dp-neighbours of the actual data set", len([*world.neighbours(data)]), None),
        *((f"data sets in {name}", len(those), None) for name, those in within.items()),
        ("data sets made of its records alone", len(world.seen_by_bootstrap(data)), None),
        *((name, None, len(those)) for name, those in pairs.items()),
    ]
    return Chapter(
        "neighbours",
        "Who is whose neighbour?",
        "Sections 2 and 3.1; Definition Bootstrap Neighbors",
        ("set", "data sets", "protected pairs"),
        tuple(rows),
        f"DP hides the difference within all {len(pairs['DP']):,} ordered pairs of neighbours, "
        f"whatever the data; IDP only within the {len(pairs['IDP'])} that contain the actual data "
        "set.",
    )


def sensitivities(setting: Setting) -> Chapter:
    """Compute every sensitivity of every function of the tour, by enumeration."""
    world, data = setting.world, setting.actual
    beta = setting.epsilon / 6
    rows = [
        (
            name,
            global_sensitivity(world, function),
            *(k_local_sensitivity(world, function, data, k) for k in setting.groups),
            bootstrap_sensitivity(world, function, data),
            smooth_sensitivity(world, function, data, beta),
        )
        for name, function in setting.functions().items()
    ]
    local = ["local" if k == 1 else f"{k}-local" for k in setting.groups]
    return Chapter(
        "sensitivities",
        "How far can a modified record move an answer?",
        "Definitions Global, Local, k-Local and Bootstrap Sensitivity; smooth: Nissim et al.",
        ("function", "global", *local, "bootstrap", f"smooth (beta {beta})"),
        tuple(rows),
        "All but the global one depend on the actual data set. "
        + (
            "The size of the table has sensitivity 0 of every kind: modifying records never "
            "changes it, so it counts as public."
            if not any(rows[0][1:])
            else ""
        ),
    )


def median(setting: Setting) -> Chapter:
    """Sort the data sets by the local sensitivity of their median."""
    world = setting.world
    function = Median(0, setting.top)
    local = local_sensitivities(world, function)
    beta = setting.epsilon / 6
    rows = []
    for sensitivity in sorted(set(local.values())):
        having = [data for data in world if local[data] == sensitivity]
        smooth = smooth_sensitivity(world, function, having[0], beta)
        rows.append((sensitivity, len(having), having[0], smooth))
    still = sum(sensitivity == 0 for sensitivity in local.values())
    return Chapter(
        "median",
        "Why does the size of the noise tell something?",
        "Section 3.1, the median example of Nissim et al.",
        ("local sensitivity", "data sets", "one of them", "smooth there"),
        tuple(rows),
        f"Local sensitivity would answer the median without noise on {still} of "
        f"{len(world)} data sets, and with noise on the others: seeing which, one learns about "
        "the data. Smooth sensitivity is never 0 unless the function is constant.",
    )


def k_laplace(setting: Setting) -> Chapter:
    """Hold closed forms against enumeration at every data set, and draw one answer each."""
    world, data, k = setting.world, setting.actual, setting.k
    generator = np.random.default_rng(setting.seed)
    rows, agreeing = [], True
    for name, function in setting.functions().items():
        same = sum(
            function.k_local(each, k) == k_local_sensitivity(world, function, each, k)
            for each in world
        )
        agreeing &= same == len(world)
        mechanism = KLaplace(function, k, setting.epsilon)
        drawn = tuple(round(float(each), 2) for each in mechanism.draw(data, generator)[0])
        right, scale = f"{same} of {len(world)}", mechanism.scale(data)
        rows.append((name, function.k_local(data, k), right, scale, function(data), drawn))
    return Chapter(
        "k_laplace",
        f"What does the k-Laplace mechanism add? (k = {k}, epsilon = {setting.epsilon})",
        "Definition k-Laplace Mechanism; erratum 1 (the ordinary Laplace density)",
        ("function", f"{k}-local", "closed form right", "noise scale", "truth", "an answer"),
        tuple(rows),
        f"{'All' if agreeing else 'NOT all'} closed forms agree with enumeration on every data "
        "set. Each number of an answer gets Laplace noise of the scale that the actual data calls "
        "for.",
    )


def zones(setting: Setting) -> Chapter:
    """Show where the attack query is noisy, and read the count from the edge of the noise."""
    world, data, n, groups = setting.world, setting.actual, setting.world.size, setting.groups
    beta = setting.epsilon / 6
    rows, seen = [], {}
    for b in range(-1, n + 1):
        query = Threshold(positive, b)
        (bit,) = query(data)
        for k in groups:
            noisy = k_local_sensitivity(world, query, data, k) > 0
            seen[k, b] = "noisy" if noisy else f"exactly {bit}"
        bootstrap = bootstrap_sensitivity(world, query, data)
        smooth = smooth_sensitivity(world, query, data, beta)
        rows.append((b, bit, *(seen[k, b] for k in groups), bootstrap, smooth))
    return Chapter(
        "zones",
        'What does a protected answer to "is the count > b?" look like?',
        "Lemmas countKSensitivity, countObservation, boundary, bdpattack; errata 2 and 9",
        ("b", "truth", *(f"answer, {group_name(k)}" for k in groups), "bootstrap", "smooth"),
        tuple(rows),
        f"A truthful answer has two looks, a protected one {len(set(seen.values()))}. "
        + " ".join(_reading(setting, seen, k) for k in groups),
    )


def _reading(setting: Setting, seen: dict[tuple[int, int], str], k: int) -> str:
    """Say what the edges of the noise tell for one group size."""
    n = setting.world.size
    noisy = [b for b in range(n) if seen[k, b] == "noisy"]
    wide = f"k = {k}: {len(noisy)} thresholds are noisy"
    if noisy and noisy[-1] < n - 1:
        found, edge = noisy[-1] + 1 - k, f"the first exact 0 is at b = {noisy[-1] + 1}"
    elif noisy and noisy[0] > 0:
        found, edge = noisy[0] + k, f"the last exact 1 is at b = {noisy[0] - 1}"
    else:
        found, edge = k, f"no answer is exact, which with n = 2k = {n} happens at one count only"
    right = "right" if found == setting.count else "WRONG"
    return f"{wide}; {edge}, so the count is {found} ({right})."
