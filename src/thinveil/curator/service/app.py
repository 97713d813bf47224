"""The curator behind HTTP: a stand-in for the query interface of an agency (extra: service).

A request goes through these doors, in this order: is the token known, does it come too often,
are too many under way, is the body too large, is it well formed. Then one thread looks up its
key, prices, admits, counts, draws and records it, one batch after the other. Only then the
answers leave, or only when a whole number of equal spells is over, so that nobody sees how long
counting took.

No answer, error, header or line of the log holds anything of a request but its key.
"""

# FastAPI reads annotations when routes are made, so here they are not put off until later.

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.analysts import Analyst
from thinveil.curator.service.door import Door, Settings
from thinveil.curator.service.refusals import KINDS, Refusal, refusal_of
from thinveil.errors import LedgerError, MissingExtra
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.arrow import MEDIA_TYPE
from thinveil.language.wire.facts import facts_to_plain
from thinveil.language.wire.json import Asked, Reply

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TIDY: Final = 5.0
"""So many seconds after a batch, at most, all of it stands in the main file of the ledger."""
_PIECE: Final = 2**16  # bytes of a reply that are handed over at once
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

log = logging.getLogger("thinveil.service")

_DESCRIPTION: Final = (
    "Answers batches of the question: is the number of records in these boxes above that "
    "threshold? Every request but /health carries Authorization: Bearer TOKEN."
)


def curators_thread() -> ThreadPoolExecutor:
    """Return the one thread in which a table is opened, counted and answered about.

    Some databases allow no other than the one that opened them.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="curator")


def app_of(
    accounts: Accounts,
    settings: Settings | None = None,
    worker: ThreadPoolExecutor | None = None,
) -> Any:
    """Return the service as a FastAPI application.

    `worker` is the thread in which the table was opened, where that matters.
    """
    try:
        from fastapi import FastAPI

        from thinveil.curator.service import openapi as interface
    except ImportError:
        raise MissingExtra("A service", "service") from None
    door = Door(accounts, settings or Settings(), worker or curators_thread())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidying(door))
        yield
        tidying.cancel()
        door.close()
        accounts.close()

    app = FastAPI(
        title="thinveil",
        description=_DESCRIPTION,
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    describe = app.openapi
    app.openapi = lambda: interface.described(describe())  # type: ignore[method-assign]
    _add_errors(app)
    _add_routes(app, door)
    return app


async def _tidying(door: Door) -> None:
    """Tidy up the ledger now and then, in the curator's thread."""
    while True:
        await asyncio.sleep(TIDY)
        await asyncio.get_running_loop().run_in_executor(door.worker, door.accounts.tidy)


def _add_errors(app: "FastAPI") -> None:
    """Say in one form what goes wrong, wherever that is, and nothing of what was asked."""
    from fastapi import Request
    from fastapi.responses import JSONResponse, Response
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    def refused(error: Refusal) -> Response:
        return JSONResponse(error.content, error.status, error.headers)

    @app.exception_handler(Refusal)
    async def refusing(request: Request, error: Refusal) -> Response:
        return refused(error)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        log.info("a client went away before its body had arrived")
        return refused(Refusal(408))

    @app.exception_handler(HTTPException)
    async def elsewhere(request: Request, error: HTTPException) -> Response:
        status = error.status_code if error.status_code in KINDS else 404
        return refused(Refusal(status, headers=error.headers))

    app.add_middleware(_Guarded, unexpected=refused(Refusal(500)))


class _Guarded:
    """Adds to every reply what browsers need to know, and lets nothing unexpected out."""

    def __init__(self, app: "ASGIApp", unexpected: "ASGIApp") -> None:
        self._app, self._unexpected = app, unexpected

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        started = False

        async def guarded(message: "Message") -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            log.error("something unexpected went wrong: %s", type(error).__name__)
            if not started:
                await self._unexpected(scope, receive, guarded)


def _facts(door: Door) -> dict[str, Any]:
    """Return what is public, once and for all."""
    most = asdict(door.limits)
    return {
        "service": door.accounts.ledger.service,
        "format": 1,
        **facts_to_plain(door.accounts.facts),
        "limits": {
            "largest_batch": most.pop("answers"),
            **{f"largest_{name}": size for name, size in most.items()},
            "arrow": find_spec("pyarrow") is not None,
        },
    }


async def _pieces(door: Door, kind: str, asked: Asked, reply: Reply) -> AsyncIterator[bytes]:
    """Write answers piece by piece, beside the curator's thread."""
    size = asked.batch.queries
    if kind == MEDIA_TYPE:
        stream = await door.beside(size, partial(wire_arrow.encode_reply, reply))
        del asked, reply
        for start in range(0, len(stream), _PIECE):
            yield bytes(stream[start : start + _PIECE])
        return
    write = partial(next, wire.reply_pieces(reply, asked.batch), b"")
    del asked, reply
    while piece := await door.beside(size, write):
        yield piece


def _add_routes(app: "FastAPI", door: Door) -> None:
    """Say what there is to be asked, and who does it."""
    from fastapi import Depends, Request
    from fastapi.responses import HTMLResponse, JSONResponse, Response
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

    from thinveil.curator.service import openapi as interface
    from thinveil.curator.service.replies import Streamed

    facts = _facts(door)
    bearer = Depends(HTTPBearer(scheme_name="token", auto_error=False))

    async def admitted(
        given: Annotated[HTTPAuthorizationCredentials | None, bearer],
    ) -> Analyst:
        return door.admit(given.credentials.strip() if given else "")

    known = Depends(admitted)

    @app.get(
        "/facts",
        summary="What is public: size, attributes, mechanism, policies, limits.",
        responses=interface.responses(interface.Facts, 401, 429),
        dependencies=[known],
    )
    async def get_facts() -> Response:
        return JSONResponse(facts)

    @app.post(
        "/answers",
        summary="Answer a batch of questions, and charge for it once.",
        responses=interface.responses(
            interface.Answers, 401, 402, 408, 409, 413, 415, 422, 429, 503, arrow=True
        ),
        openapi_extra={"requestBody": interface.BODY},
    )
    async def post_answers(request: Request, analyst: Annotated[Analyst, known]) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (interface.JSON, MEDIA_TYPE) or request.headers.get("content-encoding"):
            raise Refusal(415)
        who = analyst.number
        async with door.under_way(who), door.body(request, who, kind) as body:
            asked, reply = await door.answer(analyst, kind, body)
        size = door.size(asked)
        pieces = _pieces(door, kind, asked, reply)
        del asked, reply
        if size:
            return Streamed(pieces, kind, lambda: door.replies.give(who, size))
        return Response(b"".join([piece async for piece in pieces]), media_type=kind)

    @app.get(
        "/ledger",
        summary="Your own budget, and what was spent of it.",
        responses=interface.responses(interface.Ledger, 401, 429, 503),
    )
    async def get_ledger(analyst: Annotated[Analyst, known]) -> Response:
        try:
            async with door.under_way(analyst.number):
                now = await door.work(analyst.number, lambda: door.accounts.statement(analyst))
        except LedgerError as error:
            raise refusal_of(error) from None
        return JSONResponse(now.to_plain())

    @app.get(
        "/health",
        summary="Whether the service is up; needs no token.",
        responses=interface.responses(interface.Health),
    )
    async def get_health() -> Response:
        return JSONResponse({"status": "ok", "recording": door.accounts.recording})

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> Response:
        return HTMLResponse(interface.page_of(app.openapi()))
