"""What stands beside an audit in its report: the other mechanisms, and how risk grows."""

from __future__ import annotations

from typing import Final

from thinveil.auditing.driver import Observer
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import DEFAULT
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import ThinveilError
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import TOTALS, Risk, risk, sampled
from thinveil.verdicts.comparing.shared import Settings, all_in_order

SAMPLE: Final = 100
"""How many records of a table the mechanisms are compared on."""
_PEOPLE: Final = 20
_RISK_RECORDS: Final = 30
_EVERY: Final = 3  # every third total loss is enough for a picture


def beside(data: Dataset, options: Options, observer: Observer) -> tuple[Comparison, Risk | None]:
    """Compare all mechanisms on a sample of the table, and draw how risk grows with the loss.

    Interrupted, what was done so far is returned.
    """
    records = max(SAMPLE, 4 * options.group()[0])
    sample = sampled(data, records, options.seed)
    settings = _settings(options)
    compared = compare(sample, settings, observer)
    if compared.interrupted:
        return compared, None
    try:
        drawn = risk(
            sample,
            settings,
            observer,
            records=max(_RISK_RECORDS, 4 * settings.k),
            totals=TOTALS[::_EVERY],
            seeds=1,
        )
    except ThinveilError:  # a table on which no search of the curves fits has no curves
        return compared, None
    return compared, drawn


def _settings(options: Options) -> Settings:
    """Return what the comparison shares with the audit."""
    same = {name: getattr(options, name) for name in ("universe", "seed", "error", "most_repeats")}
    return Settings(
        mechanisms=all_in_order()[0],
        people=_PEOPLE,
        k=options.group()[0],
        confidence=str(options.confidence),
        epsilon_per_query=options.epsilon_per_query or DEFAULT,
        **same,
    )
