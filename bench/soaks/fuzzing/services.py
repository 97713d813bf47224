"""What goes to and comes from a service: facts, replies and batches, bent on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.soaks.fuzzing.cases import Case, broken, tree_of
from bench.soaks.fuzzing.mutating import bent, damaged, in_json
from thinveil import Dataset, audit, idp, people
from thinveil.auditing import http
from thinveil.auditing.http import HttpTarget
from thinveil.auditing.network.exchange import Faulty, Received
from thinveil.curator.curator import Curator
from thinveil.errors import ThinveilError
from thinveil.language.queries import batch_of
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_to_plain
from thinveil.language.wire.json import Asked, Reply
from thinveil.language.wire.limits import Limits


class Stub:
    """A service that answers inside of this process, with replies that somebody bends.

    Args:
        data: Its table.
        bend_facts: What becomes of its facts.
        bend_reply: What becomes of a reply: its content and its media type.
    """

    def __init__(
        self,
        data: Dataset,
        bend_facts: Callable[[Any], bytes] = in_json,
        bend_reply: Callable[[bytes, str], bytes] = lambda content, kind: content,
    ) -> None:
        self._curator = Curator(data, idp())
        self._limits = Limits.of(data.schema, 10_000, 2**24)
        self._schema, self._bend_facts, self._bend_reply = data.schema, bend_facts, bend_reply

    def exchange(
        self, method: str, path: str, body: tuple[bytes, str] | None, seconds: float, most: int
    ) -> Received:
        """Answer a request, in the place of the line to a service."""
        received = self._received(path, body)
        if received.status == 200 and len(received.body) > most:
            raise Faulty("it sends more than the reply can have")
        return received

    def close(self) -> None:
        """Let go of nothing."""

    def _received(self, path: str, body: tuple[bytes, str] | None) -> Received:
        if path == "/facts":
            names = {"batch": "answers", "boxes": "boxes", "body": "body", "json": "json"}
            limits = {
                f"largest_{name}": getattr(self._limits, each)
                for name, each in {**names, "pairs": "pairs"}.items()
            }
            facts = {
                **facts_to_plain(self._curator.facts), "format": 1, "service": "stub",
                "limits": {**limits, "arrow": True},
            }  # fmt: skip
            return Received(200, {}, self._bend_facts(facts))
        if body is None:
            return Received(200, {}, self._bend_reply(b'{"spent": 1, "left": 1}', ""))
        content, kind = body
        code: Any = wire_arrow if kind == wire_arrow.MEDIA_TYPE else wire
        try:
            asked = code.decode_batch(content, self._schema, self._limits)
            values = self._curator.answer(asked.batch).values
        except ThinveilError as error:  # asked by facts that are not ours
            said = {"error": {"kind": "other", "message": str(error)}}
            return Received(422, {}, in_json(said))
        reply = Reply(asked.key, values, "1/1000", "1/3", again=False)
        content = (
            bytes(wire_arrow.encode_reply(reply))
            if code is wire_arrow
            else wire.encode_reply(reply, asked.batch)
        )
        return Received(200, {"content-type": kind}, self._bend_reply(content, kind))

    def audited(self, folder: Path, arrow: bool, **options: Any) -> None:
        """Open the service as a target and attack it a little."""
        with patch.object(http, "Line", lambda origin, authorization: self):
            target = HttpTarget("http://127.0.0.1:1", "t", patience=0, arrow=arrow)
        kept = folder / "t"
        kept.unlink(missing_ok=True)
        with closing(target):
            audit(target, transcript=kept, cap="2e-8", **options)


_ATTACKS: tuple[Mapping[str, Any], ...] = (
    {},
    {"attack": "column", "columns": ("job",)},
    {"attack": "membership", "known": {"age": 40}},
    {"strategy": "adaptive"},
    {"attack": "count", "known": {"ward": "surgery"}},
    {"check_claim": True},
)


def facts(rng: np.random.Generator, folder: Path) -> Case:
    """Facts of a service with odd values or damage; it is attacked a little."""

    def bend(plain: Any) -> bytes:
        return damaged(in_json(plain), rng) if rng.integers(4) == 0 else in_json(bent(plain, rng))

    options = _ATTACKS[rng.integers(len(_ATTACKS))]
    stub = Stub(people(30), bend_facts=bend)
    return partial(stub.audited, folder, bool(rng.integers(2)), **options)


def replies(rng: np.random.Generator, folder: Path) -> Case:
    """Replies of a service with odd values or damage."""

    def bend(content: bytes, kind: str) -> bytes:
        if rng.integers(3):
            return content
        if kind == wire_arrow.MEDIA_TYPE or rng.integers(3) == 0:
            return broken(content, rng)
        return in_json(bent(tree_of(content), rng))

    options = _ATTACKS[rng.integers(len(_ATTACKS))]
    stub = Stub(people(30), bend_reply=bend)
    return partial(stub.audited, folder, bool(rng.integers(2)), **options)


def batches(rng: np.random.Generator, folder: Path) -> Case:
    """Batches that somebody sends to a service, with odd values or damage."""
    data = people(30)
    limits = Limits.of(data.schema, 1_000, 2**22)
    batch = batch_of([([{0: (20, 50), 2: (1, 3)}], 3), ([{1: (0, 9)}, {1: (20, 21)}], 0)], [2, 3])
    asked = Asked("one", batch.stamped(("k", 1), 1e-3))
    if rng.integers(2):
        body, code = broken(bytes(wire_arrow.encode_batch(asked)), rng), wire_arrow.decode_batch
    else:
        plain = wire.encode_batch(asked, data.schema)
        body = in_json(bent(tree_of(plain), rng)) if rng.integers(4) else damaged(plain, rng)
        code = wire.decode_batch

    def read() -> None:
        curator = Curator(data, idp())
        found = code(body, data.schema, limits)
        curator.release(found.batch.stamped(("k", 1), 1e-3))

    return read
