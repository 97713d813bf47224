"""A server that runs until somebody ends it, the same for the service and for the lab."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from typing import TYPE_CHECKING, Any, Final, cast

from thinveil.commands.shared.connections import BURST, Bounds, Porch, guarded
from thinveil.errors import UsageError

if TYPE_CHECKING:
    import uvicorn

BACKLOG: Final = 4096
"""Connections that wait in the kernel until they are accepted; it may allow fewer."""

log = logging.getLogger("thinveil.service")


def server_of(
    app: Any, bounds: Bounds | None = None, parser: str = "", **more: Any
) -> uvicorn.Server:
    """Return a server that logs no request, says nothing of itself, and bounds what others hold.

    Few connections are accepted at a time, so that those of before are read first; many more may
    wait in the kernel until then.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().set_exception_handler(_failed)
            porches = [Porch(fileno=socket.dup(each.fileno())) for each in sockets or ()]
            for each in porches:
                each.doors = protocol.doors
            await super().startup([*porches] or None)
            for each in porches:
                each.listen(BACKLOG)

    bounds = bounds or Bounds()
    protocol = guarded(bounds, parser)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        backlog=BURST,
        h11_max_incomplete_event_size=bounds.header_bytes,
        access_log=False,
        log_config=None,
        server_header=False,
        **more,
    )
    return Server(config)


def _failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong beside any request, by its kind alone."""
    error = context.get("exception")
    log.error("the server failed at something: %s", type(error).__name__ if error else "unknown")


def listener_at(host: str, port: int, options: str, advice: str = "") -> socket.socket:
    """Return a socket that listens, so that the banner can say which port it is."""
    try:
        [(family, *_, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server(cast("Any", address[:2]), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no such port"
        raise UsageError(f"{options}: cannot listen there ({reason}){advice}") from None


def run_until_ended(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until somebody ends it."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)  # uvicorn ends by them, then raises them once more
    server.run(sockets=[listener])
