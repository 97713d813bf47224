"""Requests made up from the OpenAPI page, by schemathesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.soaks.processes import Served
from thinveil.language.wire_arrow import MEDIA_TYPE

_ANSWERS = 17
"""How many times more requests for answers there are than of each other kind."""


def fuzz(url: str, token: str, cases: int, seed: int | None = None) -> int:
    """Send generated requests to a service; return how many.

    Every reply must be one that the OpenAPI page describes, and none a server error. Which
    batches are well formed beyond their shape (names, overlaps, budgets) is for other tests.
    """
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from schemathesis.checks import CHECKS

    schemathesis.openapi.media_type(MEDIA_TYPE, st.binary(max_size=2000))
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    skipped = [CHECKS.get_one("positive_data_acceptance")]
    operations = [found.ok() for found in schema.get_all_operations()]
    weights = {"/answers": _ANSWERS}
    whole = sum(weights.get(each.path, 1) for each in operations)
    sent = 0
    for operation in operations:
        share = max(1, -(-cases * weights.get(operation.path, 1) // whole))

        @settings(
            max_examples=share,
            deadline=None,
            database=None,
            derandomize=seed is None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy())
        def run(case: Any) -> None:
            nonlocal sent
            sent += 1
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, excluded_checks=skipped
            )

        (run if seed is None else seeded(seed)(run))()
    return sent


def made_up(folder: Path, seed: int, cases: int, table: Path) -> tuple[int, list[str]]:
    """Send at least so many made-up requests to a service.

    Returns:
        How many were sent, and what went wrong.
    """
    served = Served(folder, table, ("--rate", "1000000"), {"ann": "1000000"})
    served.start()
    sent, broken = 0, []
    try:
        while sent < cases:  # requests without any choice are made up only once
            sent += fuzz(served.url, served.tokens["ann"], cases - sent, seed + sent)
    except Exception as error:
        broken.append(f"{type(error).__name__}: {str(error)[:300]}")
    finally:
        served.stop()
    if " status=5" in served.log.read_text():
        broken.append("a server error in the log")
    return sent, broken
