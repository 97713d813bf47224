"""Some 160 small audits, each with its numbers and a hash of every question and answer.

Run with the same interpreter and packages on two commits; equal output means that nothing moved:
    PYTHONPATH=src python ../shared/guard/transcripts.py before.json
A prototype: take it into the project, extend it (see HOUSE.md), keep it true to the public names.
"""

import itertools
import json
import sys
import time
from dataclasses import dataclass

import numpy as np

import thinveil
from thinveil.errors import ThinveilError
from thinveil.language.claims import Claim

RECORDS = 16
data = thinveil.people(RECORDS)
names = data.schema.names
rows = [dict(zip(names, row, strict=True)) for row in data.rows()[:6]]
known = [{name: row[name] for name in names[:2]} for row in rows]
MECHANISMS = ["unprotected", "idp", "idp-integer", "idp-binary", "idp-noisy", "bdp"]
STRATEGIES = ["published", "linear", "posterior", "adaptive", "thrifty"]
ATTACKS = {
    "dataset": {},
    "column": {"columns": [names[0]]},
    "count": {"known": {names[0]: rows[0][names[0]]}},
    "membership": {"known": known},
    "uniqueness": {"known": known},
    "attribute": {"known": known},
}
out = {}


def one(key, target=data, **settings):
    """Run one audit and keep its numbers."""
    try:
        verdict = thinveil.audit(target, **settings)
        meter = verdict.run.meter
        out[key] = (meter.queries, meter.rounds, verdict.run.ending, verdict.provenance.transcript)
    except ThinveilError as error:
        out[key] = ("refused", type(error).__name__)


@dataclass(frozen=True)
class Two:
    """A law of nobody's: noise of two scales."""

    def at(self, count, threshold, records, epsilon):
        """Return more noise near the threshold."""
        return np.where(np.abs(count - threshold) <= 1, 1.0, 0.3)

    def breakpoints(self, threshold, records):
        """Return where the noise or the true bit changes."""
        return np.stack([threshold - 2, threshold, threshold + 1], axis=1)


start = time.monotonic()
for mechanism, strategy, attack in itertools.product(MECHANISMS, STRATEGIES, ATTACKS):
    if strategy == "linear" and (
        attack in ("dataset", "column", "attribute") or mechanism == "idp-noisy"
    ):
        continue
    if strategy == "thrifty" and attack in ("count", "membership", "uniqueness"):
        continue
    if mechanism == "idp-noisy" and strategy == "published" and attack == "dataset":
        continue
    effort = {"effort": 32} if strategy == "thrifty" else {}
    one(
        f"{mechanism}/{strategy}/{attack}",
        mechanism=mechanism,
        strategy=strategy,
        attack=attack,
        **ATTACKS[attack],
        **effort,
    )
for mechanism in ("idp", "idp-integer", "idp-binary", "bdp"):
    one(f"{mechanism}/cache/dataset", mechanism=mechanism, cache=True)
for attack in ("dataset", "attribute", "membership"):
    one(f"bdp always noisy/{attack}", mechanism="bdp", offset=1.0, attack=attack, **ATTACKS[attack])
one("bdp binary/dataset", mechanism="bdp", post="binary")
one("idp k=3/dataset", mechanism="idp", k=3)
one(
    "identical/column",
    mechanism="idp-binary",
    test="identical",
    attack="column",
    columns=[names[0]],
)
one("mean/column", mechanism="idp-noisy", test="mean", attack="column", columns=[names[0]])
one("idp-integer at 0.5/dataset", mechanism="idp-integer", epsilon_per_query=0.5)
one(
    "dp-laplace at 2/column",
    mechanism="dp-laplace",
    epsilon_per_query=2,
    attack="column",
    columns=[names[0]],
)
one(
    "dp-smooth at 2/membership",
    mechanism="dp-smooth",
    epsilon_per_query=2,
    attack="membership",
    known=known,
)
for attack, settings in ATTACKS.items():
    one(
        f"a law of nobody's/{attack}",
        thinveil.Curator(data, Claim("two", Two(), "laplace"), seed=0),
        attack=attack,
        **settings,
    )
print(len(out), "audits in", round(time.monotonic() - start, 1), "s", file=sys.stderr)
with open(sys.argv[1], "w") as file:
    json.dump(out, file, indent=1)
