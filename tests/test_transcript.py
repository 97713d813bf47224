"""The transcript's format: what answers cost to keep, older files, and runs without a name."""

from __future__ import annotations

import json
import struct
import tempfile
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.auditing import transcript as module
from thinveil.auditing.transcript import Header, Transcript
from thinveil.curator.curator import Curator
from thinveil.errors import TranscriptError
from thinveil.language.claims import idp, unprotected
from thinveil.language.queries import Answers, QueryBatch
from worlds import Watched, examples

DATA = thinveil.people(10)
DIGEST = bytes(range(16))
FRAME = struct.Struct("<cIQ16s")


def filled(path: Path | None, batches: list[np.ndarray]) -> Transcript:
    kept = Transcript(Header("somebody", {}, "1234"), path)
    for number, values in enumerate(batches, start=1):
        kept.sent(number, DIGEST)
        kept.got(number, DIGEST, values)
    return kept


def replayed(path: Path) -> list[list[float]]:
    kept = Transcript.resume(path)
    values: list[list[float]] = []
    while (answers := kept.replay(len(values) + 1, DIGEST)) is not None:
        values.append(answers.tolist())
    kept.close()
    return values


def frames(content: bytes) -> list[tuple[bytes, int, bytes, bytes]]:
    """Return kind, number, digest and payload of each frame, read by the format's words."""
    position = content.index(b"\n") + 1
    found = []
    while position < len(content):
        kind, size, number, digest = FRAME.unpack_from(content, position)
        start = position + FRAME.size
        found.append((kind, number, digest, content[start : start + size]))
        position = start + size + 4
    return found


def frame(kind: bytes, number: int, digest: bytes, payload: bytes) -> bytes:
    data = FRAME.pack(kind, len(payload), number, digest) + payload
    return data + struct.pack("<I", zlib.crc32(data))


def in_the_first_format(content: bytes, batches: int) -> bytes:
    """Rewrite the beginning of a transcript as the first version would have written it."""
    fields = json.loads(content.partition(b"\n")[0])
    assert fields["format"] == "thinveil transcript 2"
    fields["format"] = "thinveil transcript 1"
    parts = [json.dumps(fields).encode(), b"\n"]
    kinds = {b"d": "<f8", b"i": "<i4", b"b": "<i1"}
    for kind, number, digest, payload in frames(content):
        if number <= batches:
            if kind == b"A":
                payload = np.frombuffer(payload[1:], kinds[payload[:1]]).astype("<f8").tobytes()
            parts.append(frame(kind, number, digest, payload))
    return b"".join(parts)


# ---- what is stored


@examples(200)
@given(
    batches=st.lists(
        st.lists(
            st.one_of(
                st.sampled_from([0.0, 1.0, -128.0, 127.0, 128.0, -129.0, 2.0**31, -(2.0**31)]),
                st.sampled_from([2.0**31 - 1, 0.5, -0.0, 1e-300, 1e300, 5e-324, 2.0**53]),
                st.integers(-200, 200).map(float),
                st.floats(allow_nan=False, allow_infinity=False),
            ),
            min_size=1,
            max_size=6,
        ),
        max_size=6,
    )
)
def test_answers_come_back_as_they_were(
    batches: list[list[float]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("kept") / "run"
    arrays = [np.array(each) for each in batches]
    filled(path, arrays).close()
    if batches:
        assert replayed(path) == batches
    named = filled(None, arrays)
    other = path.with_name("other")
    named.save(other)
    named.close()
    assert not batches or other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("values", "each"),
    [([0.0, 1.0, 1.0], 1), ([-128.0, 127.0], 1), ([128.0, 0.0], 4), ([2.0**31], 8), ([0.5, 1], 8)],
    ids=str,
)
def test_whole_numbers_take_less_room(values: list[float], each: int, tmp_path: Path) -> None:
    filled(tmp_path / "run", [np.array(values)]).close()
    payload = frames((tmp_path / "run").read_bytes())[1][3]
    assert len(payload) == 1 + each * len(values)


def test_an_unprotected_run_takes_a_byte_an_answer(tmp_path: Path) -> None:
    verdict = thinveil.audit(DATA, mechanism="unprotected", transcript=tmp_path / "run")
    answers = sum(len(each[3]) - 1 for each in frames((tmp_path / "run").read_bytes()) if each[3])
    assert answers == verdict.run.meter.queries


# ---- older files


@pytest.mark.parametrize("claim", [unprotected(), idp()], ids=["unprotected", "idp"])
def test_a_file_of_the_first_format_is_read_and_continued(claim, tmp_path: Path) -> None:
    path, old = tmp_path / "run", tmp_path / "old"
    whole = thinveil.audit(Curator(DATA, claim), truth=DATA, transcript=path)
    half = whole.run.meter.rounds // 2
    old.write_bytes(in_the_first_format(path.read_bytes(), half))
    verdict = thinveil.audit(Curator(DATA, claim), truth=DATA, resume=old)
    assert verdict.run.meter.replayed == half
    assert verdict.notice == ""
    assert (verdict.score, verdict.run.spent) == (whole.score, whole.run.spent)
    assert old.read_bytes() == in_the_first_format(path.read_bytes(), whole.run.meter.rounds)
    again = thinveil.audit(Curator(DATA, claim), truth=DATA, resume=old)
    assert again.run.meter.replayed == whole.run.meter.rounds
    assert again.score == whole.score


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    filled(path, [np.zeros(3)]).close()
    content = path.read_bytes().replace(b"transcript 2", b"transcript 3")
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match="not a transcript that this version reads"):
        Transcript.resume(path)
    assert path.read_bytes() == content


def test_a_header_without_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(Header("somebody", {}).line()[:-1])
    with pytest.raises(TranscriptError, match="not a transcript"):
        Transcript.resume(path)


def test_a_transcript_that_went_away_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run"
    filled(path, [np.zeros(3)]).close()
    kept = Transcript.resume(path)
    path.unlink()
    with pytest.raises(TranscriptError, match="cannot read"):
        kept.replay(1, DIGEST)


# ---- runs that nobody meant to record


def test_memory_stays_bounded_without_a_name(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 500_000)
    tracemalloc.start()
    try:
        kept = filled(None, [values] * 40)
        kept.save(tmp_path / "run")
        kept.close()
        resumed = Transcript.resume(tmp_path / "run")
        assert resumed.replay(40, DIGEST) is not None
        assert resumed.replay(41, DIGEST) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "run").stat().st_size > 160e6
    assert peak < 110e6


class Stopping(Watched):
    def answer(self, batch: QueryBatch) -> Answers:
        if batch.key is not None and batch.key[1] == 40:
            raise KeyboardInterrupt
        return super().answer(batch)


def test_a_run_that_moved_to_a_temporary_file_is_saved_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_IN_MEMORY", 500)
    whole = thinveil.audit(Curator(DATA, idp()), truth=DATA)
    assert list(tmp_path.iterdir()) == []
    broken = thinveil.audit(Stopping(Curator(DATA, idp())), truth=DATA, checks="off")
    (path,) = tmp_path.iterdir()
    assert broken.transcript == path.name
    assert path.stat().st_mode & 0o077 == 0
    verdict = thinveil.audit(Watched(Curator(DATA, idp())), truth=DATA, resume=path)
    assert verdict.run.meter.replayed == 39
    assert (verdict.score, verdict.run.spent) == (whole.score, whole.run.spent)


def test_no_room_for_a_temporary_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(TranscriptError, match="No space left on device; name a transcript"):
        filled(None, [np.zeros(30)])
