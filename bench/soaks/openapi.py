"""Requests made up from the OpenAPI page, by schemathesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.soaks.processes import Served
from thinveil.language.wire.arrow import MEDIA_TYPE


def fuzz(url: str, token: str, cases: int, seed: int | None = None) -> int:
    """Send generated requests to a service; return how many.

    Every reply must be one that the OpenAPI page describes, and none a server error. Which
    batches are well formed beyond their shape (overlaps, budgets) is for other tests.
    """
    import httpx
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

    schemathesis.openapi.media_type(MEDIA_TYPE, st.binary(max_size=2000))
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # what breaks the shape and asks for too much may be refused for either
    refused = ["401", "402", "409", "413", "415", "422"]
    schema.config.checks.negative_data_rejection.expected_statuses = refused
    facts = httpx.get(
        f"{url}/facts", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ).json()
    names = [each["name"] for each in facts["attributes"]]
    skipped = [CHECKS.get_one("positive_data_acceptance")]
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    kinds = [
        (operation, mode)
        for operation in operations
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        if mode == GenerationMode.POSITIVE or operation.path == "/answers"
    ]
    weights = {"/answers": 10}
    whole = sum(weights.get(operation.path, 1) for operation, _ in kinds)
    sent = 0
    for operation, mode in kinds:
        share = max(1, -(-cases * weights.get(operation.path, 1) // whole))

        @settings(
            max_examples=share,
            deadline=None,
            database=None,
            derandomize=seed is None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            nonlocal sent
            sent += 1
            _name(case.body, names)
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, excluded_checks=skipped
            )

        (run if seed is None else seeded(seed)(run))()
    return sent


def _name(body: Any, names: list[str]) -> None:
    """Give the ranges of a generated batch the names of attributes, so that some fit."""
    questions = body.get("questions") if isinstance(body, dict) else None
    for question in questions if isinstance(questions, list) else []:
        boxes = question.get("boxes") if isinstance(question, dict) else None
        for box in boxes if isinstance(boxes, list) else []:
            if isinstance(box, dict):
                spans = list(box.values())[: len(names)]
                box.clear()
                box.update(zip(names, spans, strict=False))


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
