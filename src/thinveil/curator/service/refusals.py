"""What a service says instead of answers, by the status of the reply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from thinveil.errors import (
    BudgetError,
    BudgetSpent,
    FieldError,
    KeyTaken,
    MissingExtra,
    QueryError,
    ThinveilError,
    TooLarge,
)

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


class Refusal(Exception):
    """A request that gets an error instead of an answer; `more` names kind, field, left."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        retry: float = 0.0,
        headers: Mapping[str, str] | None = None,
        **more: str | float | None,
    ) -> None:
        kind, sentence = KINDS[status]
        message = message or sentence
        super().__init__(message)
        self.status = status
        about = {"kind": kind, "message": message, "field": None, "left": None, **more}
        self.content = {"error": about}
        self.headers = dict(headers or {})
        if retry:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry)))


def refusal_of(error: ThinveilError, left: float | None = None) -> Refusal:
    """Say over HTTP what went wrong."""
    match error:
        case TooLarge():
            return Refusal(413, str(error))
        case KeyTaken():
            return Refusal(409, str(error), field="key")
        case QueryError():
            field = error.field if isinstance(error, FieldError) else "questions"
            return Refusal(422, str(error), field=field)
        case BudgetSpent():
            return Refusal(402, str(error), left=left)
        case BudgetError():
            return Refusal(422, str(error), kind="epsilon", field="epsilon")
        case MissingExtra():
            return Refusal(415, "this service speaks no Arrow: send JSON")
    return Refusal(503, retry=2)
