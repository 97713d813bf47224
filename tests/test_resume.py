"""Interrupted runs go on where they stopped: same findings, same noise, nothing asked twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.findings import TableFound
from thinveil.auditing.targets import fingerprint
from thinveil.auditing.transcript import Header, Transcript
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import TargetError, TranscriptError, UsageError
from thinveil.language.claims import claim_named
from thinveil.language.queries import Answers, QueryBatch
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from thinveil.verdicts.verdict import Verdict
from worlds import Watched, as_a, examples, sure, table_truth

SCHEMA = Schema((Categories("c", ("a", "b", "c")), Grid("x", lower=-5, upper=40, missing=True)))
DATA = Dataset(
    SCHEMA, np.array([[0, 3], [0, 3], [1, -5], [2, 40], [2, MISSING], [1, 7], [1, 8]], np.int64)
)
KINDS: dict[str, dict[str, Any]] = {
    "idp": {"mechanism": "idp", "k": 2, "seed": 11},
    "total": {"mechanism": "idp", "epsilon": "0.001", "seed": 12},
    "group": {"mechanism": "idp", "epsilons": ("0.5", "0.25"), "seed": 13},
    "bounded": {"mechanism": "idp", "universe": "bounded", "seed": 14},
    "unprotected": {"mechanism": "unprotected"},
    "published": {"mechanism": "idp", "k": 2, "strategy": "published", "seed": 15},
    "thrifty": {"mechanism": "idp", "strategy": "thrifty", "effort": 16, "windows": 2, "seed": 16},
    "open": {"mechanism": "unprotected", "strategy": "thrifty", "effort": 32, "windows": 1},
}
CHOSEN = ("epsilon", "strategy", "effort", "windows")
BUDGETS = {
    kind: {
        "checks": "off",
        **{name: value for name, value in each.items() if name.startswith(CHOSEN)},
    }
    for kind, each in KINDS.items()
}
"""What is left to choose where a target brings its own mechanism."""


@dataclass
class Log:
    """What reached the target over all attempts, and what its driver got to see."""

    sent: list[tuple[str, int]] = field(default_factory=list)
    heard: dict[int, list[float]] = field(default_factory=dict)
    digests: dict[int, bytes] = field(default_factory=dict)


class Breaking(Watched):
    """A target whose run is interrupted at one batch, before or after it is answered."""

    def __init__(
        self, curator: Curator, log: Log, stop: int | None = None, after: bool = False
    ) -> None:
        super().__init__(curator)
        self.log, self.stop, self.after = log, stop, after

    def answer(self, batch: QueryBatch) -> Answers:
        run, number = sure(batch.key)
        assert number not in self.log.heard, "an answered batch was sent again"
        assert self.log.digests.setdefault(number, batch.digest()) == batch.digest()
        self.log.sent.append((run, number))
        if number == self.stop and not self.after:
            raise KeyboardInterrupt
        answers = super().answer(batch)
        if number == self.stop:
            raise KeyboardInterrupt
        self.log.heard[number] = answers.values.tolist()
        return answers


def curator_for(kind: str, data: Dataset = DATA) -> Curator:
    options = thinveil.Options(**KINDS[kind])
    return Curator(data, options.claim(), seed=options.seed)


@cache
def heard_of(kind: str) -> tuple[Verdict, Log]:
    """Return an undisturbed run and everything it was answered."""
    log = Log()
    return thinveil.audit(Breaking(curator_for(kind), log), truth=DATA, **BUDGETS[kind]), log


def assert_same(verdict: Verdict, whole: Verdict) -> None:
    assert verdict.run.ending == "complete"
    found, expected = (as_a(TableFound, each.run.found) for each in (verdict, whole))
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    rebuilt = {tuple(row): n for row, n in zip(found.codes.tolist(), found.counts, strict=True)}
    assert rebuilt == table_truth(DATA, found.columns, found.widths)
    meter, other = verdict.run.meter, whole.run.meter
    for name in ("queries", "questions", "rounds", "trivial"):
        assert getattr(meter, name) == getattr(other, name)
    assert meter.by_column.tolist() == other.by_column.tolist()
    assert meter.error.total == other.error.total
    assert verdict.run.spent == whole.run.spent
    assert verdict.score == whole.score
    assert verdict.score is not None
    assert verdict.score.exact


@pytest.mark.parametrize(
    ("kind", "every"),
    [
        *((kind, 8) for kind in KINDS),
        *(pytest.param(kind, 1, marks=pytest.mark.nightly) for kind in KINDS),
    ],
)
def test_every_single_place_to_stop(kind: str, every: int, tmp_path: Path) -> None:
    whole, log = heard_of(kind)
    rounds = whole.run.meter.rounds
    assert rounds > 8
    for stop in range(1, rounds + 1, every):
        # in a long run before an answer and after it by turns, to keep this test short
        for after in (False, True) if rounds < 30 else (stop // every % 2 == 0,):
            path = tmp_path / f"{stop}-{after}"
            mine = Log()
            broken = thinveil.audit(
                Breaking(curator_for(kind), mine, stop, after),
                truth=DATA,
                transcript=path,
                **BUDGETS[kind],
            )
            assert broken.run.ending == "interrupted"
            assert broken.exit_code == 3
            assert broken.run.meter.rounds == stop - 1
            target = Breaking(curator_for(kind), mine)
            verdict = thinveil.audit(target, truth=DATA, resume=path)
            assert_same(verdict, whole)
            assert verdict.notice == ""
            assert verdict.run.meter.replayed == stop - 1
            assert mine.heard == log.heard  # the same noise, too
            assert [number for _, number in mine.sent] == [
                *range(1, stop + 1),
                *range(stop, rounds + 1),
            ]
            assert len({run for run, _ in mine.sent}) == 1


@examples(25)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    stops=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6),
)
def test_several_interruptions_in_a_row(
    kind: str,
    stops: list[tuple[int, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    whole, log = heard_of(kind)
    path = tmp_path_factory.mktemp("resume") / "run"
    mine = Log()
    place = 1
    rest: dict[str, Any] = {"transcript": path, **BUDGETS[kind]}
    for step, after in stops:
        place = min(place + step, whole.run.meter.rounds)
        broken = thinveil.audit(Breaking(curator_for(kind), mine, place, after), truth=DATA, **rest)
        assert broken.run.ending == "interrupted"
        rest = {"resume": path}
    verdict = thinveil.audit(Breaking(curator_for(kind), mine), truth=DATA, resume=path)
    assert_same(verdict, whole)
    assert mine.heard == log.heard
    again = thinveil.audit(Breaking(curator_for(kind), mine), truth=DATA, resume=path)
    assert_same(again, whole)  # a finished run is replayed without asking anything
    assert again.run.meter.replayed == whole.run.meter.rounds


# ---- damaged transcripts


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Verdict]:
    path = tmp_path_factory.mktemp("finished") / "run"
    verdict = thinveil.audit(curator_for("idp"), truth=DATA, transcript=path, **BUDGETS["idp"])
    return path.read_bytes(), verdict


def answered_before(content: bytes, end: int) -> int:
    """Count the whole batches in the first bytes of a transcript, from the format's words."""
    position = content.index(b"\n") + 1
    answered = 0
    while position < end:
        kind, size = content[position : position + 1], content[position + 1 : position + 5]
        position += 1 + 4 + 8 + 16 + int.from_bytes(size, "little") + 4
        answered += kind == b"A" and position <= end
    return answered


def frame_ends(content: bytes) -> set[int]:
    position = content.index(b"\n") + 1
    found = {position}
    while position < len(content):
        size = int.from_bytes(content[position + 1 : position + 5], "little")
        position += 1 + 4 + 8 + 16 + size + 4
        found.add(position)
    return found


def resumed(content: bytes, path: Path) -> tuple[Verdict, Log]:
    path.write_bytes(content)
    log = Log()
    return thinveil.audit(Breaking(curator_for("idp"), log), truth=DATA, resume=path), log


@pytest.mark.parametrize("every", [109, pytest.param(13, marks=pytest.mark.nightly)])
def test_a_transcript_cut_anywhere_is_cut_back_and_goes_on(
    finished: tuple[bytes, Verdict], tmp_path: Path, every: int
) -> None:
    content, whole = finished
    head = content.index(b"\n") + 1
    whole_frames = frame_ends(content)
    assert max(whole_frames) == len(content)
    for end in range(head, len(content), every):
        verdict, log = resumed(content[:end], tmp_path / "cut")
        assert_same(verdict, whole)
        kept = answered_before(content, end)
        assert verdict.run.meter.replayed == kept
        assert [number for _, number in log.sent] == list(
            range(kept + 1, whole.run.meter.rounds + 1)
        )
        assert ("damaged" in verdict.notice) == (end not in whole_frames)
        if verdict.notice:
            assert f"number {kept}" in verdict.notice
    mended, _ = resumed(content[: len(content) - 3], tmp_path / "cut")
    assert mended.notice
    last, log = resumed((tmp_path / "cut").read_bytes(), tmp_path / "again")
    assert_same(last, whole)
    assert not last.notice
    assert not log.sent


@pytest.mark.parametrize("every", [151, pytest.param(19, marks=pytest.mark.nightly)])
def test_a_flipped_bit_in_the_tail_is_noticed(
    finished: tuple[bytes, Verdict], tmp_path: Path, every: int
) -> None:
    content, whole = finished
    ends = sorted(frame_ends(content))
    for place in range(ends[0], len(content), every):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        verdict, _ = resumed(bytes(damaged), tmp_path / "flipped")
        assert_same(verdict, whole)
        start = max(end for end in ends if end <= place)
        assert verdict.run.meter.replayed == answered_before(content, start)
        assert "damaged" in verdict.notice


@pytest.mark.parametrize("end", [0, 1, 20])
def test_a_transcript_without_its_header_is_refused(
    finished: tuple[bytes, Verdict], tmp_path: Path, end: int
) -> None:
    with pytest.raises(TranscriptError, match="not a transcript"):
        resumed(finished[0][:end], tmp_path / "headless")


def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    for content in (b"age,job\n3,nurse\n", b"{}\n", b'{"format": "other"}\nxx', b"\xff\xfe\n"):
        with pytest.raises(TranscriptError, match="not a transcript"):
            resumed(content, tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == content


def test_a_transcript_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot read"):
        thinveil.audit(DATA, resume=tmp_path / "nothing")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot write"):
        thinveil.audit(DATA, transcript=tmp_path / "no" / "run")


# ---- transcripts that do not belong


def test_the_transcript_of_another_table_is_refused(
    finished: tuple[bytes, Verdict], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    path.write_bytes(finished[0])
    codes = DATA.codes.copy()
    codes[0, 1] += 1
    for other in (Dataset(SCHEMA, codes), DATA.sample(range(6)), thinveil.people(20)):
        with pytest.raises(TranscriptError, match="another table"):
            thinveil.audit(curator_for("idp", other), resume=path)
    assert path.read_bytes() == finished[0]


def test_the_transcript_of_another_mechanism_is_refused(
    finished: tuple[bytes, Verdict], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    path.write_bytes(finished[0])
    for name, k in (("unprotected", 1), ("idp", 1)):
        with pytest.raises(TranscriptError, match="another table"):
            thinveil.audit(Curator(DATA, claim_named(name, k)), resume=path)


def test_answers_to_other_questions_are_refused(
    finished: tuple[bytes, Verdict], tmp_path: Path
) -> None:
    header, frames = finished[0].split(b"\n", 1)
    fields = json.loads(header)
    fields["options"]["strategy"] = "published"
    path = tmp_path / "run"
    path.write_bytes(json.dumps(fields).encode() + b"\n" + frames)
    with pytest.raises(TranscriptError, match="batch 1 differs"):
        thinveil.audit(curator_for("idp"), resume=path)


def test_an_existing_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("mine")
    with pytest.raises(TranscriptError, match="exists already"):
        thinveil.audit(DATA, transcript=path)
    assert path.read_text() == "mine"


def test_a_resumed_run_brings_its_own_options(tmp_path: Path) -> None:
    path = tmp_path / "run"
    thinveil.audit(DATA, transcript=path, **KINDS["idp"])
    with pytest.raises(UsageError, match="own options"):
        thinveil.audit(DATA, resume=path, k=2)
    verdict = thinveil.audit(DATA, resume=path)
    assert verdict.options == thinveil.Options(**KINDS["idp"])
    assert verdict.run.meter.replayed == verdict.run.meter.rounds


def test_a_transcript_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "run"
    thinveil.audit(DATA, transcript=path)
    assert path.stat().st_mode & 0o077 == 0


# ---- runs that nobody meant to record


@pytest.mark.parametrize("after", [False, True])
def test_an_interruption_without_a_transcript_leaves_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    whole, log = heard_of("total")
    mine = Log()
    target = Breaking(curator_for("total"), mine, 5, after)
    broken = thinveil.audit(target, truth=DATA, **BUDGETS["total"])
    (path,) = tmp_path.iterdir()
    assert broken.transcript == path.name
    assert path.suffix == ".transcript"
    verdict = thinveil.audit(Breaking(curator_for("total"), mine), truth=DATA, resume=path)
    assert_same(verdict, whole)
    assert verdict.run.meter.replayed == 4
    assert mine.heard == log.heard


def test_a_run_that_ends_well_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert thinveil.audit(DATA).transcript is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [TargetError("the line is dead"), OSError(5), ValueError()])
def test_a_target_that_dies_leaves_a_transcript_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.chdir(tmp_path)

    class Dying(Watched):
        def answer(self, batch: QueryBatch) -> Answers:
            if sure(batch.key)[1] == 4:
                raise error
            return super().answer(batch)

    whole, _ = heard_of("idp")
    broken = thinveil.audit(Dying(curator_for("idp")), truth=DATA, **BUDGETS["idp"])
    assert broken.run.ending == "target"
    assert broken.exit_code == 1
    assert broken.transcript is not None
    assert_same(thinveil.audit(curator_for("idp"), truth=DATA, resume=broken.transcript), whole)


def test_a_cap_ends_a_run_early_and_keeps_what_was_found(tmp_path: Path) -> None:
    whole, _ = heard_of("idp")
    cap = "1e-9"
    verdict = thinveil.audit(DATA, cap=cap, transcript=tmp_path / "run", **KINDS["idp"])
    assert verdict.run.ending == "cap"
    assert verdict.exit_code == 3
    assert 0 < verdict.run.meter.queries <= 10 < whole.run.meter.queries
    assert float(verdict.run.spent) <= 1e-9


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("unprotected", "sensitivity=Insensitive(), noise='none'"),
        ("idp", "sensitivity=KLocal(k=1), noise='laplace'"),
        ("bdp", "sensitivity=Bootstrap(), noise='laplace'"),
        ("dp-laplace", "sensitivity=Global(), noise='laplace'"),
        ("dp-smooth", "sensitivity=Smooth(), noise='cauchy'"),
    ],
)
def test_fingerprints_are_those_of_the_first_release(name: str, parts: str) -> None:
    """But for the controls: they are drawn in another way, so their old runs cannot go on."""
    drawn = "exact" if name.startswith("dp-") else "own"
    schema = Schema((Grid("a", lower=0, upper=9), Categories("c", ("x", "y"))))
    curator = Curator(Dataset(schema, np.array([[0, 0], [1, 1]] * 2)), claim_named(name))
    assert fingerprint(curator) == (
        f"{curator.fingerprint} PublicFacts(records=4, schema=Schema(attributes=(Grid(name='a', "
        "kind='integer', step=Decimal('1'), lower=0, upper=9, missing=False), Categories(name='c', "
        f"values=('x', 'y'), missing=False))), claim=Claim(name='{name}', {parts}, "
        f"universe='unbounded', offset=0.0, post='none', sampler='{drawn}'))"
    )


def test_a_transcript_in_memory_and_in_a_file_are_the_same(tmp_path: Path) -> None:
    header = Header(fingerprint(curator_for("idp")), {"k": 1}, "run")
    kept, filed = Transcript(header), Transcript(header, tmp_path / "filed")
    for transcript in (kept, filed):
        for number in (1, 2):
            transcript.sent(number, bytes(16))
            transcript.got(number, bytes(16), np.array([0.5, 1.0]))
    kept.save(tmp_path / "kept")
    filed.close()
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "filed").read_bytes()
    again = Transcript.resume(tmp_path / "kept")
    assert sure(again.replay(1, bytes(16))).tolist() == [0.5, 1.0]
    assert sure(again.replay(2, bytes(16))).tolist() == [0.5, 1.0]
    assert again.replay(3, bytes(16)) is None
    again.close()
