"""thinveil: what a relaxed form of differential privacy really gives away.

>>> import thinveil
>>> verdict = thinveil.audit(thinveil.people(200), strategy="published")
>>> verdict.score.exact
True
"""

from thinveil.attacker.strategies import STRATEGIES
from thinveil.audit.audit import audit
from thinveil.audit.options import ATTACKS, Options
from thinveil.audit.targets import Target
from thinveil.audit.verdict import Verdict
from thinveil.curator.curator import Curator
from thinveil.curator.dataset import Dataset
from thinveil.curator.people import people
from thinveil.curator.reading import load
from thinveil.errors import ThinveilError
from thinveil.language.claims import MECHANISMS, Claim, bdp, claim_named, idp, unprotected
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import Policies
from thinveil.language.queries import Answers, QueryBatch, batch_of
from thinveil.language.schema import Categories, Grid, Schema
from thinveil.language.schema_file import read_schema, write_schema

__version__ = "0.1.0"

__all__ = [
    "ATTACKS",
    "MECHANISMS",
    "STRATEGIES",
    "Answers",
    "Categories",
    "Claim",
    "Curator",
    "Dataset",
    "Grid",
    "Options",
    "Policies",
    "PublicFacts",
    "QueryBatch",
    "Schema",
    "Target",
    "ThinveilError",
    "Verdict",
    "audit",
    "batch_of",
    "bdp",
    "claim_named",
    "idp",
    "load",
    "people",
    "read_schema",
    "unprotected",
    "write_schema",
]
