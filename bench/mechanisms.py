"""Whole tables through each leaking mechanism, and many small ones to look for mistakes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from bench.bank import bank
from bench.figures import peak_memory, watch
from bench.sheets import Mistakes, Reconstruction
from thinveil import Dataset, Verdict, audit
from thinveil.attacker.findings import TableFound

SEEDS, QUICK_SEEDS = 10, 1
SAMPLE = 2_000


def reconstruct(
    path: Path, quick: bool, mechanism: str, k: str, strategy: str
) -> list[Reconstruction]:
    """Reconstruct the whole table once; the peak of memory is taken before checking it."""
    data = bank(path, quick)
    with watch() as took:
        verdict = audit(data, mechanism=mechanism, k=int(k), strategy=strategy)
    peak = peak_memory()
    meter, claimed = verdict.run.meter, verdict.epsilon_claimed
    assert claimed is not None
    return [
        Reconstruction(
            mechanism,
            verdict.facts.claim.k,
            strategy,
            wrong_records(verdict, data),
            meter.queries,
            meter.questions,
            meter.rounds,
            took.seconds,
            peak,
            claimed,
            _planned_error(verdict),
        )
    ]


def mistakes(path: Path, quick: bool, mechanism: str, k: str, strategy: str) -> list[Mistakes]:
    """Reconstruct samples of the table, each with noise of its own, and count mistakes."""
    data = bank(path, False)
    seeds = QUICK_SEEDS if quick else SEEDS
    wrong = answers = 0
    errors = []
    with watch() as took:
        for seed in range(seeds):
            rows = np.random.default_rng(seed).choice(data.records, SAMPLE, replace=False)
            sample = data.sample(np.sort(rows))
            verdict = audit(sample, mechanism=mechanism, k=int(k), strategy=strategy, seed=seed)
            wrong += wrong_records(verdict, sample)
            answers += verdict.run.meter.queries
            errors.append(_planned_error(verdict))
    group = verdict.facts.claim.k
    return [
        Mistakes(
            mechanism,
            group,
            strategy,
            seeds,
            seeds * SAMPLE,
            wrong,
            answers,
            max(errors),
            took.seconds,
        )
    ]


def wrong_records(verdict: Verdict, truth: Dataset) -> int:
    """Count records that are wrong or missing, without the scoring of the product.

    A mechanism that shows only which records exist is held against the different records.
    """
    found = verdict.run.found
    assert isinstance(found, TableFound)
    if verdict.run.ending != "complete" or (found.known < len(found.columns)).any():
        raise AssertionError(f"the attack did not end: {verdict.run.ending} {verdict.run.reason}")
    actual = Counter(map(tuple, truth.codes[:, found.columns].tolist()))
    if found.distinct:
        actual = Counter(actual.keys())
    claimed: Counter[tuple[int, ...]] = Counter()
    for row, many in zip(found.codes.tolist(), found.counts.tolist(), strict=True):
        claimed[tuple(row)] += many
    wrong = (claimed - actual).total() + (actual - claimed).total()
    assert verdict.score is not None
    if verdict.score.exact != (wrong == 0):
        raise AssertionError("the score of the product and the check of the bench disagree")
    return wrong


def _planned_error(verdict: Verdict) -> float:
    meter = verdict.run.meter
    return min(1.0, meter.error.total + meter.risk)
