"""What a service takes and gives, described for OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from thinveil.language.claims import SMALLEST_EPSILON
from thinveil.language.schema import INFINITE, MISSING
from thinveil.language.wire.arrow import MEDIA_TYPE
from thinveil.language.wire.json import KEY, MOST_EPSILON, Limits

JSON: Final = "application/json"

KINDS: Final = {
    401: ("unknown_token", "There is no analyst with this token."),
    402: ("budget_spent", "The budget does not allow this batch; nothing of it was answered."),
    404: ("not_found", "There is nothing at this address."),
    405: ("wrong_method", "This address takes another method."),
    408: ("too_slow", "The body did not arrive in time."),
    409: ("key_taken", "Another batch was answered under this key."),
    413: ("too_large", "The body or the batch is larger than the service takes at once."),
    415: ("wrong_type", "The body is neither JSON nor an Arrow stream."),
    422: ("malformed", "A field of the batch is malformed; it is named."),
    429: ("too_many_requests", "Wait as long as Retry-After says."),
    500: ("internal", "Something unexpected went wrong; nothing was answered."),
    503: ("unavailable", "Nothing can be answered or recorded now; Retry-After says when to try."),
}
"""What goes wrong, by status: a word for programs and a sentence for people."""

_WHOLE: Final = {"type": "integer", "minimum": MISSING, "maximum": INFINITE}
_END: Final = {"anyOf": [_WHOLE, {"type": "null"}]}
_LOSS: Final = {"type": ["number", "null"], "minimum": SMALLEST_EPSILON, "maximum": MOST_EPSILON}
_EXACT: Final = {"type": "string", "pattern": r"^-?\d+(/\d+)?$"}


def _object(properties: Mapping[str, Any], *optional: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


RANGE: Final = {
    "description": (
        "A half-open range of codes, [low, high]. A null end is open; a null low end includes "
        'missing values, -9223372036854775807 leaves them out, and "missing" stands for them alone.'
    ),
    "anyOf": [
        {"type": "array", "items": _END, "minItems": 2, "maxItems": 2},
        {"const": "missing"},
    ],
}


def schemas(limits: Limits) -> dict[str, Any]:
    """Return the shapes of everything that travels."""
    repeats = {"type": "integer", "minimum": 1, "maximum": limits.answers}
    question = _object(
        {
            "boxes": {
                "description": "A union of boxes that do not overlap, by names of attributes.",
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "additionalProperties": RANGE},
            },
            "more_than": {"description": "b in: is the count above b?", "type": "integer"},
            "repeats": repeats,
            "epsilon": _LOSS,
        },
        "repeats",
        "epsilon",
    )
    batch = _object(
        {
            "key": {
                "description": "Of your choice. The same key gets the same answers, charged once.",
                "type": "string",
                "pattern": f"^{KEY.pattern}$",
            },
            "epsilon": {"description": "The claimed loss of each single answer.", **_LOSS},
            "repeats": repeats,
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": limits.answers,
                "items": {"$ref": "#/components/schemas/Question"},
            },
        },
        "repeats",
        "epsilon",
        examples=[
            {
                "key": "first batch",
                "epsilon": 1e-10,
                "questions": [{"boxes": [{"age": [30, 40]}], "more_than": 5}],
            }
        ],
    )
    answers = _object(
        {
            "key": {"type": "string"},
            "answers": {
                "description": "For each question, its answers.",
                "type": "array",
                "items": {"type": "array", "items": {"type": "number"}},
            },
            "cost": {"description": "What was charged, exactly.", **_EXACT},
            "left": {"description": "What is left of the budget, exactly.", **_EXACT},
            "again": {"description": "Whether the key was answered before.", "type": "boolean"},
        }
    )
    figures = {name: {"type": "number"} for name in ("budget", "spent", "left")}
    whole = {name: {"type": "integer", "minimum": 0} for name in ("batches", "answers")}
    ledger = _object({**figures, **whole, "exact": _object(dict.fromkeys(figures, _EXACT))})
    error = _object(
        {
            "error": _object(
                {
                    "kind": {"enum": sorted({kind for kind, _ in KINDS.values()} | {"epsilon"})},
                    "message": {"type": "string"},
                    "field": {"type": ["string", "null"]},
                    "left": {"type": ["number", "null"]},
                }
            )
        }
    )
    return {
        "Question": question,
        "Batch": batch,
        "Answers": answers,
        "Ledger": ledger,
        "Facts": _facts(),
        "Health": _object(
            {
                "status": {"const": "ok"},
                "recording": {"description": "Whether the ledger works.", "type": "boolean"},
            }
        ),
        "Error": error,
    }


def _facts() -> dict[str, Any]:
    sizes = {"type": "integer", "minimum": 1}
    return _object(
        {
            "service": {"description": "A random name of this service.", "type": "string"},
            "format": {"const": 1},
            "records": sizes,
            "attributes": {
                "description": "Names, kinds, steps and bounds (as codes) of all attributes.",
                "type": "array",
                "items": {"type": "object", "required": ["name", "kind", "missing"]},
            },
            "claim": {"description": "What the mechanism is composed of.", "type": "object"},
            "policies": {"type": "object"},
            "limits": _object(
                {
                    "largest_batch": {"description": "Answers.", **sizes},
                    "largest_boxes": sizes,
                    "largest_body": {"description": "Bytes.", **sizes},
                    "largest_json": {"description": "Bytes, where the body is JSON.", **sizes},
                    "largest_pairs": {"description": "Boxes of one question, squared.", **sizes},
                    "arrow": {"description": "Whether Arrow is spoken.", "type": "boolean"},
                }
            ),
        }
    )


def responses(name: str, *statuses: int, arrow: bool = False) -> dict[int | str, dict[str, Any]]:
    """Describe what comes back: the named shape, or an error of one of these statuses."""
    good: dict[str, Any] = {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    if arrow:
        good[MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    described: dict[int | str, dict[str, Any]] = {200: {"description": name, "content": good}}
    for status in (*statuses, 405, 500):
        described[status] = {
            "description": KINDS[status][1],
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        if status in (429, 503):
            described[status]["headers"] = {
                "Retry-After": {
                    "description": "Seconds.",
                    "required": True,
                    "schema": {"type": "integer", "minimum": 1},
                }
            }
    return described


def body() -> dict[str, Any]:
    """Describe a batch as the body of a request."""
    return {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/Batch"}},
            MEDIA_TYPE: {
                "schema": {
                    "description": "The columns are described in thinveil.language.wire.arrow.",
                    "type": "string",
                    "format": "binary",
                }
            },
        },
    }
