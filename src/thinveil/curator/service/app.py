"""The curator behind HTTP: a stand-in for the query interface of an agency (extra: service).

A request goes through these doors, in this order: is the token known, does it come too often,
is the body too large, is it well formed. Then one thread looks up its key, prices, admits,
counts, draws and records it, one batch after the other. Only then the answers leave, or only
when a whole number of equal spells is over, so that nobody sees how long counting took.

No answer, error, header or line of the log holds anything of a request but its key.
"""

# FastAPI reads annotations when routes are made, so here they are not put off until later.

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.analysts import Analyst, Bucket, who_has
from thinveil.curator.service.pacing import Pace
from thinveil.curator.service.refusals import KINDS, Refusal, refusal_of
from thinveil.errors import BudgetSpent, LedgerError, MissingExtra, ThinveilError
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.arrow import MEDIA_TYPE
from thinveil.language.wire.facts import facts_to_plain
from thinveil.language.wire.json import Asked, Limits, Reply

if TYPE_CHECKING:
    from fastapi import FastAPI

LARGEST_BATCH: Final = 1_000_000
RATE: Final = 1000.0
BODIES: Final = 4
"""All bodies that are being read or wait may have so many times the bytes of the largest one."""

_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

log = logging.getLogger("thinveil.service")

_DESCRIPTION: Final = (
    "Answers batches of the question: is the number of records in these boxes above that "
    "threshold? Every request but /health carries Authorization: Bearer TOKEN."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How much a service takes."""

    largest_batch: int = LARGEST_BATCH  # answers
    largest_body: int = 64 * 2**20  # bytes of one request
    rate: float = RATE  # requests a second, for each analyst
    waiting: int = 256  # batches that may wait for their turn, of all analysts
    body_seconds: float = 60.0  # how long a body may take to arrive
    pace: Pace = field(default_factory=Pace)  # how long the curator's thread is taken by a batch


@dataclass(slots=True)
class _Door:
    """Who is let in, and how much is under way."""

    accounts: Accounts
    settings: Settings
    limits: Limits
    worker: ThreadPoolExecutor
    buckets: dict[int, Bucket] = field(default_factory=dict)
    waiting: int = 0
    held: int = 0

    def admit(self, token: str) -> Analyst:
        """Return who asks, or refuse an unknown token or too many requests."""
        known = who_has(token, self.accounts.analysts)
        if known is None:
            raise Refusal(401, headers={"WWW-Authenticate": "Bearer"})
        bucket = self.buckets.setdefault(known.number, Bucket(self.settings.rate))
        if wait := bucket.wait():
            raise Refusal(429, retry=wait)
        return known

    @asynccontextmanager
    async def body(self, request: Any) -> AsyncIterator[bytearray]:
        """Read a body, as far as neither it nor all bodies together are too large."""
        length = request.headers.get("content-length", "")
        close = {"Connection": "close"}
        too_large = Refusal(413, f"a body may have at most {self.limits.body} bytes", headers=close)
        if length.isdigit() and int(length[:20]) > self.limits.body:
            raise too_large
        read = bytearray()
        try:
            try:
                async with asyncio.timeout(self.settings.body_seconds):
                    async for chunk in request.stream():
                        read += chunk
                        self.held += len(chunk)
                        if len(read) > self.limits.body:
                            raise too_large
                        if self.held > BODIES * self.limits.body:
                            raise Refusal(503, "too much is waiting", retry=1, headers=close)
            except TimeoutError:
                raise Refusal(408, headers=close) from None
            yield read
        finally:
            self.held -= len(read)

    async def work(self, what: Callable[[], Any]) -> Any:
        """Do something in the curator's thread, when its turn comes."""
        if self.waiting >= self.settings.waiting:
            raise Refusal(503, "too many batches are waiting", retry=1)
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.worker, what)
        finally:
            self.waiting -= 1

    def answered(self, analyst: Analyst, kind: str, body: bytes | bytearray) -> bytes | memoryview:
        """Answer one body in the curator's thread, and write the line of the log."""
        started, began = time.perf_counter(), self.settings.pace.begin()
        asked: Asked | None = None
        reply: Reply | None = None
        status = 500
        try:
            form = wire_arrow if kind == MEDIA_TYPE else wire
            asked = form.decode_batch(body, self.accounts.facts.schema, self.limits)
            reply = self.accounts.answer(analyst, asked)
            status = 200
            if kind == MEDIA_TYPE:
                return wire_arrow.encode_reply(reply)
            return wire.encode_reply(reply, asked.batch)
        except ThinveilError as error:
            left = None
            if isinstance(error, BudgetSpent):
                with suppress(LedgerError):
                    left = float(self.accounts.statement(analyst).left)
            refusal = refusal_of(error, left)
            status = refusal.status
            if isinstance(error, LedgerError):
                log.warning("%s", error)
            elif status == 503:
                log.warning("the table cannot be counted: %s", type(error).__name__)
            raise refusal from None
        finally:
            log.info(
                "analyst=%s key=%r questions=%d answers=%d cost=%s again=%s status=%d ms=%.1f",
                analyst.name,
                asked.key if asked else "",
                asked.batch.questions if asked else 0,
                asked.batch.queries if asked else 0,
                reply.cost if reply else 0,
                reply.again if reply else False,
                status,
                (time.perf_counter() - started) * 1e3,
            )
            self.settings.pace.end(began)


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
    settings = settings or Settings()
    limits = Limits.of(accounts.facts.schema, settings.largest_batch, settings.largest_body)
    door = _Door(accounts, settings, limits, worker or curators_thread())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        door.worker.shutdown()
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

    @app.middleware("http")
    async def guarded(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        try:
            response = await call_next(request)
        except Exception as error:
            log.error("something unexpected went wrong: %s", type(error).__name__)
            response = refused(Refusal(500))
        response.headers.update(_HEADERS)
        return response


def _facts(door: _Door) -> dict[str, Any]:
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


def _add_routes(app: "FastAPI", door: _Door) -> None:
    """Say what there is to be asked, and who does it."""
    from fastapi import Depends, Request
    from fastapi.responses import HTMLResponse, JSONResponse, Response
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

    from thinveil.curator.service import openapi as interface

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
        async with door.body(request) as body:
            content = await door.work(lambda: door.answered(analyst, kind, body))
        return Response(content, media_type=kind)

    @app.get(
        "/ledger",
        summary="Your own budget, and what was spent of it.",
        responses=interface.responses(interface.Ledger, 401, 429, 503),
    )
    async def get_ledger(analyst: Annotated[Analyst, known]) -> Response:
        try:
            now = await door.work(lambda: door.accounts.statement(analyst))
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
