"""thinveil: what a relaxed form of differential privacy really gives away.

>>> import thinveil
>>> verdict = thinveil.audit(thinveil.people(200), strategy="published")
>>> verdict.score.exact
True

Public names are imported when they are first used: `import thinveil` alone costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from thinveil.attacker.strategies import STRATEGIES, Strategy
    from thinveil.auditing.options import ATTACKS, Options
    from thinveil.auditing.targets import Target
    from thinveil.curator.curator import Curator
    from thinveil.curator.tables.dataset import Dataset
    from thinveil.curator.tables.files import load
    from thinveil.curator.tables.people import people
    from thinveil.errors import ThinveilError
    from thinveil.language.claims import MECHANISMS, Claim, bdp, claim_named, idp, unprotected
    from thinveil.language.facts import PublicFacts
    from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace
    from thinveil.language.policies import Policies
    from thinveil.language.queries import Answers, QueryBatch, batch_of
    from thinveil.language.schema import Categories, Grid, Schema
    from thinveil.language.schema_file import read_schema, write_schema
    from thinveil.verdicts.audit import audit
    from thinveil.verdicts.canaries import Canaries, canaries
    from thinveil.verdicts.membership import Trial
    from thinveil.verdicts.trials import trial
    from thinveil.verdicts.verdict import Verdict

__version__ = "0.2.0.dev0"

__all__ = [
    "ATTACKS",
    "MECHANISMS",
    "STRATEGIES",
    "Answers",
    "Canaries",
    "Categories",
    "Cauchy",
    "Claim",
    "Curator",
    "Dataset",
    "DiscreteLaplace",
    "Gaussian",
    "Grid",
    "Laplace",
    "Options",
    "Policies",
    "PublicFacts",
    "QueryBatch",
    "Schema",
    "Strategy",
    "Target",
    "ThinveilError",
    "Trial",
    "Verdict",
    "audit",
    "batch_of",
    "bdp",
    "canaries",
    "claim_named",
    "idp",
    "load",
    "people",
    "read_schema",
    "trial",
    "unprotected",
    "write_schema",
]

_HOMES: Final = {
    "attacker.strategies": ("STRATEGIES", "Strategy"),
    "verdicts.audit": ("audit",),
    "verdicts.canaries": ("Canaries", "canaries"),
    "verdicts.membership": ("Trial",),
    "auditing.options": ("ATTACKS", "Options"),
    "auditing.targets": ("Target",),
    "verdicts.trials": ("trial",),
    "verdicts.verdict": ("Verdict",),
    "curator.curator": ("Curator",),
    "curator.tables.dataset": ("Dataset",),
    "curator.tables.people": ("people",),
    "curator.tables.files": ("load",),
    "errors": ("ThinveilError",),
    "language.claims": ("MECHANISMS", "Claim", "bdp", "claim_named", "idp", "unprotected"),
    "language.facts": ("PublicFacts",),
    "language.laws": ("Cauchy", "DiscreteLaplace", "Gaussian", "Laplace"),
    "language.policies": ("Policies",),
    "language.queries": ("Answers", "QueryBatch", "batch_of"),
    "language.schema": ("Categories", "Grid", "Schema"),
    "language.schema_file": ("read_schema", "write_schema"),
}
"""Where each public name lives."""
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names}
_LAYERS: Final = ("attacker", "curator", "errors", "language", "paper", "testing")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _LAYERS:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
