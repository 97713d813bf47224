"""What a service takes and gives, as models that describe it for OpenAPI (extra: service).

They only describe: a batch may have a million rows, and is read and written by
`thinveil.language.wire`. Tests hold what is said to them.
"""

import json
from collections.abc import Mapping
from html import escape
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from thinveil.curator.service.refusals import KINDS
from thinveil.language.claims import SMALLEST_EPSILON
from thinveil.language.schema import INFINITE, MISSING
from thinveil.language.wire.arrow import MEDIA_TYPE
from thinveil.language.wire.json import KEY
from thinveil.language.wire.limits import MOST_EPSILON

JSON: Final = "application/json"

Size = Annotated[int, Field(ge=1)]
Tally = Annotated[int, Field(ge=0)]
Exact = Annotated[str, Field(pattern=r"^-?\d+(/\d+)?$")]
Loss = Annotated[float, Field(ge=SMALLEST_EPSILON, le=MOST_EPSILON)]
Code = Annotated[int, Field(ge=MISSING, le=INFINITE)]
Ends = Annotated[list[Code | None], Field(min_length=2, max_length=2)]
Range = Annotated[
    Ends | Literal["missing"],
    Field(
        description=(
            "A half-open range of codes, [low, high]. A null end is open; a null low end includes "
            'missing values, -9223372036854775807 leaves them out, and "missing" stands for them '
            "alone."
        )
    ),
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Question(_Model):
    """Is the number of records in these boxes above that threshold?"""

    boxes: list[dict[str, Range]] = Field(
        min_length=1, description="A union of boxes that do not overlap, by names of attributes."
    )
    more_than: int = Field(description="b in: is the count above b?")
    repeats: Size = 1
    epsilon: Loss | None = None


class Batch(_Model):
    """Questions that are answered and charged together; /facts says how many are taken at once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key": "first batch",
                    "epsilon": 1e-10,
                    "questions": [{"boxes": [{"age": [30, 40]}], "more_than": 5}],
                }
            ]
        }
    )
    key: str = Field(
        pattern=f"^{KEY.pattern}$",
        description="Of your choice. The same key gets the same answers, charged once.",
    )
    epsilon: Loss | None = Field(None, description="The claimed loss of each single answer.")
    repeats: Size = 1
    questions: list[Question] = Field(min_length=1)


class Answers(_Model):
    """The answers to a batch."""

    key: str
    answers: list[list[float | None]] = Field(
        description="For each question, its answers; null where the noise law is silence."
    )
    cost: Exact = Field(description="What was charged, exactly.")
    left: Exact = Field(description="What is left of the budget, exactly.")
    again: bool = Field(description="Whether the key was answered before.")


class Exactly(_Model):
    """The figures of an account as fractions."""

    budget: Exact
    spent: Exact
    left: Exact


class Ledger(_Model):
    """How the account of the analyst stands."""

    budget: float
    spent: float
    left: float
    batches: Tally
    answers: Tally
    exact: Exactly


class Attribute(_Model):
    """What is public about a column; its bounds are codes, which count steps."""

    name: str
    kind: Literal["integer", "decimal", "double", "date", "datetime", "time", "category"]
    missing: bool = Field(description="Whether values may be missing.")
    values: list[str] | None = Field(None, description="Of a category: code 0, 1, ...")
    step: str | None = Field(
        None,
        description="Of doubles: the value of code 1. Of all others: what one code more means.",
    )
    lower: Code | None = None
    upper: Code | None = None
    format: str | None = Field(None, description="How the table writes values, if not plainly.")
    rounded: bool | None = Field(None, description="Whether values are rounded down to steps.")


class Limits(_Model):
    """How much is taken at once."""

    largest_batch: Size = Field(description="Answers.")
    largest_boxes: Size
    largest_body: Size = Field(description="Bytes.")
    largest_json: Size = Field(description="Bytes, where the body is JSON.")
    largest_pairs: Size = Field(description="Boxes of one question, squared.")
    arrow: bool = Field(description="Whether Arrow is spoken.")


class Facts(_Model):
    """What is public."""

    service: str = Field(description="A random name of this service.")
    format: Literal[1]
    records: Size
    attributes: list[Attribute]
    claim: dict[str, Any] = Field(description="What the mechanism is composed of.")
    policies: dict[str, Any] = Field(description="What is refused, and what is given again.")
    limits: Limits


class Health(_Model):
    """Whether the service is up."""

    status: Literal["ok"] = "ok"
    recording: bool = Field(description="Whether the ledger works.")


_WORDS: Final[Any] = sorted({kind for kind, _ in KINDS.values()} | {"epsilon"})


class Problem(_Model):
    """What went wrong, for programs and for people."""

    kind: str = Field(json_schema_extra={"enum": _WORDS})
    message: str
    field: str | None
    left: float | None


class Error(_Model):
    """A request that was refused."""

    error: Problem


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { background: #8881; padding: .8rem; overflow: auto; border-radius: 4px }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
h2 code { font-size: 20px }
:root { color-scheme: light dark }
"""

_STREAM: Final = {
    "description": "The columns are described in thinveil.language.wire.arrow.",
    "type": "string",
    "format": "binary",
}
_RETRY: Final = {
    "description": "Seconds.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}


def responses(model: type[BaseModel], *statuses: int, arrow: bool = False) -> dict[int | str, Any]:
    """Describe what comes back: a model, or an error of one of these statuses."""
    found: dict[int | str, Any] = {200: {"model": model, "description": model.__name__}}
    if arrow:
        found[200]["content"] = {MEDIA_TYPE: {"schema": _STREAM}}
    for status in (*statuses, 405, 500):
        found[status] = {"model": Error, "description": KINDS[status][1]}
        if status in (429, 503):
            found[status]["headers"] = {"Retry-After": _RETRY}
    return found


BODY: Final = {
    "required": True,
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/Batch"}},
        MEDIA_TYPE: {"schema": _STREAM},
    },
}
"""A batch as the body of a request."""


def described(document: dict[str, Any]) -> dict[str, Any]:
    """Add to an OpenAPI document what FastAPI does not read itself: the body of a batch."""
    batch = Batch.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"].update(batch.pop("$defs"), Batch=batch)
    return document


def page_of(document: Mapping[str, Any]) -> str:
    """Return an OpenAPI document as one plain page: no scripts, nothing from elsewhere."""
    title = escape(document["info"]["title"])
    operations = "".join(
        _operation(f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    shapes = "".join(
        f'<h2 id="{escape(name)}"><code>{escape(name)}</code></h2>'
        f"<pre>{escape(json.dumps(shape, indent=2, ensure_ascii=False))}</pre>"
        for name, shape in document["components"]["schemas"].items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(document['info']['description'])}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>'
        f"{operations}<h1>Shapes</h1>{shapes}</body></html>"
    )


def _operation(title: str, operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(status)}</code></td><td>{escape(reply['description'])}</td></tr>"
        for status, reply in sorted(operation["responses"].items())
    )
    kinds = operation.get("requestBody", {"content": ()})["content"]
    takes = ", ".join(f"<code>{escape(kind)}</code>" for kind in kinds)
    return (
        f"<h2><code>{escape(title)}</code></h2><p>{escape(operation['summary'])}</p>"
        f"{takes and f'<p>Takes {takes}.</p>'}<table>{rows}</table>"
    )
