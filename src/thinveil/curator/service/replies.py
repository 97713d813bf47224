"""Replies that are made and sent piece by piece, as fast as they are read (extra: service).

Streaming with backpressure: of a reply that nobody reads there are the numbers themselves and one
piece, and not its text, however often somebody asks for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Streamed(Response):
    """A reply in pieces; `over` is called in the end, whether or not all of them were sent."""

    def __init__(self, pieces: AsyncIterator[bytes], kind: str, over: Callable[[], None]) -> None:
        self._pieces, self._over = pieces, over
        super().__init__(media_type=kind)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is until all is sent, or the client is gone."""
        gone = asyncio.ensure_future(_gone(receive))
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            async for piece in self._pieces:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._over()


async def _gone(receive: Receive) -> None:
    """Wait until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
