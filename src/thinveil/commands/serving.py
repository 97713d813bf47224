"""A server that runs until somebody ends it, the same for the service and for the lab."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Any, cast

from thinveil.errors import UsageError

if TYPE_CHECKING:
    import uvicorn


def server_of(app: Any, **more: Any) -> uvicorn.Server:
    """Return a server that logs no request and says nothing of itself."""
    import uvicorn

    config = uvicorn.Config(app, access_log=False, log_config=None, server_header=False, **more)
    return uvicorn.Server(config)


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
