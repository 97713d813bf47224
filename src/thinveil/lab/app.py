"""The page behind HTTP, for this machine alone (extra: lab).

A request goes through these doors, in this order: is it addressed to this machine by a name of
its own (a foreign name that leads here is how web pages reach into a local network), does it
come from this page, and does it bring the key that was printed at the start. The key comes in a
header: not as a cookie, which a browser sends to every port of a machine, nor in the address,
which stands in histories and logs. The page itself needs no key and holds no secret. No line of
a log holds anything of a table.
"""

# FastAPI reads annotations when routes are made, so here they are not put off until later.

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from thinveil.auditing.network.origins import loopback
from thinveil.errors import MissingExtra, ThinveilError, UsageError
from thinveil.lab.pace import ACTIONS
from thinveil.lab.sessions import Gone, Sessions
from thinveil.lab.setting import choices, setting_of
from thinveil.lab.tables import LARGEST_FILE, Tables

if TYPE_CHECKING:
    from fastapi import FastAPI, Response

LARGEST_BODY: Final = 64 * 1024
KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOK: Final = 0.04  # seconds between two looks for new events
_BEAT: Final = 10.0  # seconds between two signs of life
_SWEEP: Final = 5.0
_SHARED: Final = 4  # a browser opens six connections to one place at most, for all its tabs
_TURN: Final = 0.25  # seconds that a stream lasts where there are more
_HOST: Final = re.compile(
    r"(?:\[([\da-f:.]+)\]|([\da-z.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE
)


class _TooLarge(UsageError):
    """A request has more bytes than are taken."""


def new_key() -> str:
    """Return a key that nobody can guess; a new one at every start."""
    return secrets.token_urlsafe(24)


@cache
def static_files() -> dict[str, bytes]:
    """Return the files of the page by their names."""
    folder = files("thinveil.lab") / "static"
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.endswith(tuple(KINDS))
    }


def check_extra() -> None:
    """Miss what is missing before anything is opened."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingExtra("The live page", "lab")


def app_of(
    key: str,
    tables: Tables,
    sessions: Sessions | None = None,
    leaving: Callable[[], bool] = lambda: False,
    opened: Callable[[], None] = lambda: None,
    entered: Callable[[], None] = lambda: None,
) -> Any:
    """Return the application.

    Args:
        key: What every request but those for the page itself must bring.
        tables: The tables that the page offers.
        sessions: Where runs are kept, beyond the end of this server; without it, until then.
        leaving: Tells whether the server is about to end, so that streams end first.
        opened: Called once the server is there, and ends in good order by a signal.
        entered: Called whenever somebody brought the key.
    """
    check_extra()
    from fastapi import FastAPI

    runs = Sessions() if sessions is None else sessions

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep(runs))
        opened()
        yield
        sweeper.cancel()
        if sessions is None:
            runs.close_all()

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.sessions = runs
    _add_doors(app, key, entered)
    _add_page(app, tables)
    _add_runs(app, runs, tables)
    _add_watching(app, runs, leaving)
    return app


def _refused(status: int, message: str) -> "Response":
    from fastapi.responses import JSONResponse

    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": message}, status, headers)


def _add_doors(app: "FastAPI", key: str, entered: Callable[[], None]) -> None:
    """Let in what is addressed to this machine, comes from this page and brings the key."""
    from fastapi import Request, Response

    @app.middleware("http")
    async def doors(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        if not _ours(host):
            response = _refused(421, "this page answers to 127.0.0.1 and localhost alone")
        elif origin is not None and origin != f"http://{host}":
            response = _refused(403, "this page takes nothing from other pages")
        elif _for_everybody(request.scope["path"]):  # its URL is made of the Host header, too
            response = await call_next(request)
        elif not _has_key(request, key):
            response = _refused(
                401, "the key is missing or wrong: open the whole address that thinveil lab printed"
            )
        else:
            entered()
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(ThinveilError)
    async def wrong(request: Request, error: ThinveilError) -> Response:
        status = 404 if isinstance(error, Gone) else 413 if isinstance(error, _TooLarge) else 422
        return _refused(status, _in_words_of_the_page(str(error)))


def _add_page(app: "FastAPI", tables: Tables) -> None:
    """Add the page itself, its files, what it offers, and the tables."""
    from fastapi import Request, Response
    from fastapi.responses import JSONResponse

    @app.get("/")
    async def page() -> Response:
        return Response(static_files()["index.html"], media_type=KINDS[".html"])

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        content = static_files().get(name)
        if content is None:
            return _refused(404, "there is no such file")
        return Response(content, media_type=KINDS[name[name.rindex(".") :]])

    @app.get("/api/choices")
    async def all_choices() -> Response:
        return JSONResponse(choices(tables))

    @app.get("/api/tables/{name}")
    async def table(name: str) -> Response:
        return JSONResponse(await asyncio.to_thread(lambda: tables[name].to_plain()))

    @app.post("/api/tables")
    async def open_table(request: Request) -> Response:
        content = await _body(request, LARGEST_FILE)
        name = request.query_params.get("name", "table.csv")
        opened = await asyncio.to_thread(tables.open, content, name)
        return JSONResponse({"name": opened, "table": tables[opened].to_plain()}, 201)


def _add_runs(app: "FastAPI", runs: Sessions, tables: Tables) -> None:
    """Add the beginning and the end of runs."""
    from fastapi import Request, Response
    from fastapi.responses import JSONResponse

    @app.post("/api/runs")
    async def begin(request: Request) -> Response:
        asked = await _plain(request)
        name = await asyncio.to_thread(lambda: runs.open(setting_of(asked, tables)))
        return JSONResponse({"run": name}, 201)

    @app.get("/api/runs")
    async def all_runs() -> Response:
        return JSONResponse(runs.to_plain())

    @app.delete("/api/runs/{name}")
    async def close(name: str) -> Response:
        runs.close(name)
        return JSONResponse({})


def _add_watching(app: "FastAPI", runs: Sessions, leaving: Callable[[], bool]) -> None:
    """Add what is done to a run while it is watched."""
    from fastapi import Request, Response
    from fastapi.responses import JSONResponse, StreamingResponse

    @app.post("/api/runs/{name}/control")
    async def control(name: str, request: Request) -> Response:
        asked = await _plain(request)
        run = runs[name]
        if "speed" in asked:
            run.pace.set_speed(asked["speed"])
        action = asked.get("action")
        if action is not None:
            if not isinstance(action, str) or action not in ACTIONS:
                raise UsageError("the action is pause, resume, round, question or stop")
            run.pace.do(action)
            run.say_state()
        return JSONResponse({"paused": run.pace.paused, "done": run.done})

    @app.get("/api/runs/{name}/events")
    async def events(name: str, request: Request) -> Response:
        after = request.headers.get("last-event-id", "-1")
        if not after.lstrip("-").isascii() or not after.lstrip("-").isdigit() or len(after) > 12:
            raise UsageError("the number of the last event is a whole number")
        runs[name]  # a run that is gone is refused before the stream begins
        stream = _stream(request, runs, name, int(after) + 1, leaving)
        return StreamingResponse(stream, media_type="text/event-stream")


def _in_words_of_the_page(message: str) -> str:
    """Name settings as the page does, not by options of the command line."""
    return re.sub(r"--(?=[a-z])", "", message.replace("--epsilon-per-query", "epsilon"))


def _ours(host: str) -> bool:
    """Tell whether a Host header names this machine as seen from itself, and holds nothing else."""
    named = _HOST.fullmatch(host)
    return named is not None and loopback((named[1] or named[2]).lower())


def _for_everybody(path: str) -> bool:
    """Tell whether a path is of the page itself, which is the same for everybody."""
    return path == "/" or path.startswith("/static/")


def _has_key(request: Any, key: str) -> bool:
    """Tell whether a request brings the key, in a time that says nothing of a wrong one."""
    kind, _, brought = request.headers.get("authorization", "").partition(" ")
    return secrets.compare_digest(brought.encode(), key.encode()) and kind.lower() == "bearer"


async def _body(request: Any, most: int) -> bytes:
    """Read a body that is not too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise _TooLarge(
                f"more than {most / 2**20:g} MB: give a large table on the command line, "
                "thinveil lab TABLE"
            )
    return bytes(content)


async def _plain(request: Any) -> dict[str, Any]:
    """Read a small JSON object."""
    try:
        plain = json.loads(await _body(request, LARGEST_BODY))
    except (ValueError, RecursionError):
        raise UsageError("a JSON object is needed") from None
    if not isinstance(plain, dict):
        raise UsageError("a JSON object is needed")
    return plain


async def _stream(
    request: Any, runs: Sessions, name: str, first: int, leaving: Callable[[], bool]
) -> AsyncIterator[str]:
    """Send events as they come; the number of each lets a browser go on where it was."""
    with suppress(Gone), runs.watching(name) as run:
        quiet = 0.0
        began = time.monotonic()
        yield ": here\n\n"
        while not leaving() and not await request.is_disconnected():
            if runs.watchers > _SHARED and time.monotonic() - began > _TURN:
                return  # the page comes back soon, and others get their turn
            done = run.done
            fresh = run.since(first)
            if fresh:
                quiet = 0.0
                yield "".join(
                    f"id: {number}\ndata: {event}\n\n" for number, event in enumerate(fresh, first)
                )
                first += len(fresh)
            if done:
                return
            await asyncio.sleep(_LOOK)
            quiet += _LOOK
            if quiet > _BEAT:
                quiet = 0.0
                yield ": still here\n\n"


async def _sweep(runs: Sessions) -> None:
    while True:
        await asyncio.sleep(_SWEEP)
        runs.sweep()
