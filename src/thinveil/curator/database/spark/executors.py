"""What runs at an executor: parts of the codes are kept there, indexed, and counted.

This module and what it imports travel with the job (see `shipping`). The codes of a part lie in a
file of the executor's own folder, which only its user can read; every process of the executor
maps the same file. Whoever takes the folder away takes away all that is kept, in memory too.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.keeping import Kept
from thinveil.curator.database.spark.lines import Line, call, hello
from thinveil.curator.database.spark.messages import Request, narrowed, read_cells
from thinveil.files import create_private
from thinveil.language.queries import Cells, Codes
from thinveil.language.schema import LIMIT, MISSING

GAP: Final = -LIMIT
"""The code of a missing value in a database."""
COUNTED: Final = b"c"
NO_CELLS: Final = b"?"
NO_RECORDS: Final = b"-"
"""What an answer starts with: counts follow, or nothing, as something has to be sent first."""
HANDLE: Final = "part long, records long, seal string"
"""The columns of a handle, as Spark writes them."""
ANSWER: Final = f"{HANDLE}, answer binary"
"""Those of an answer."""

Handle = tuple[int, int, str]
"""The number of a part, how many records it has, and their seal."""

_MOST_KEPT: Final = 1024  # indexes of a run in one process: more than it has parts, or all of
# them would be made anew in each round
_LOOK: Final = 2.0  # seconds between looks whether the folder is still there
_MIXERS: Final = ((0x9E3779B97F4A7C15, 30), (0xBF58476D1CE4E5B9, 27))
"""Odd factors and shifts that spread bits (SplitMix64)."""


class _Run:
    """What one process keeps of a run: indexes of parts, and the cells asked about last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self._indexes: Kept[IndexCounter] = Kept(_MOST_KEPT)
        self._cells: Kept[Cells] = Kept(2)

    def index(self, number: int, seal: str) -> IndexCounter:
        """Return the index of a part; FileNotFoundError where its codes are elsewhere."""

        def load() -> IndexCounter:
            codes = np.load(self._part(number, seal), mmap_mode="r")
            return IndexCounter(np.asarray(codes))

        return self._indexes.get_or((number, seal), load)

    def keep(self, number: int, codes: Codes) -> Handle:
        """Write the codes of a part and return its handle."""
        seal = seal_of(codes)
        path = self._part(number, seal)
        if not path.exists():
            self._write(path, lambda file: np.save(file, codes))
        return number, len(codes), seal

    def cells(self, request: Request) -> Cells:
        """Return the cells of a request, sent with it or kept; else FileNotFoundError."""
        path = self.folder / f"cells-{request.seal.hex()}"

        def load() -> Cells:
            if not request.cells:
                return read_cells(path.read_bytes())
            for old in self.folder.glob("cells-*"):
                old.unlink(missing_ok=True)
            self._write(path, lambda file: file.write(request.cells))
            return read_cells(request.cells)

        return self._cells.get_or(request.seal, load)

    def _part(self, number: int, seal: str) -> Path:
        return self.folder / f"part-{number}-{seal}.npy"

    def _write(self, path: Path, write: Any) -> None:
        """Write a file that is either there as a whole or not at all."""
        draft = self.folder / f"draft-{secrets.token_hex(8)}"
        with open(create_private(draft), "wb") as file:
            write(file)
        draft.replace(path)


_runs: dict[str, _Run] = {}
_guard = threading.Lock()


# ---- keeping a part


def store(run: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Keep the codes of a part, given as Arrow has them, and yield its handle as Arrow has it."""
    import pyarrow as pa

    handle = _run(run).keep(_number(), codes_of(batches))
    kinds = (pa.int64(), pa.int64(), pa.string())
    arrays = [pa.array([each], kind) for each, kind in zip(handle, kinds, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, ["part", "records", "seal"])


def same(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield what comes: all that is wanted is that this code is here."""
    yield from batches


def codes_of(batches: Iterable[Any]) -> Codes:
    """Return codes that come as Arrow has them, column after column; gaps become MISSING."""
    parts = [[column.to_numpy(zero_copy_only=False) for column in each] for each in batches]
    if not parts:
        return np.empty((0, 0), np.int64)
    records = sum(len(part[0]) for part in parts)
    codes = np.empty((records, len(parts[0])), np.int64, order="F")
    for place in range(codes.shape[1]):
        np.concatenate([part[place] for part in parts], out=codes[:, place], casting="safe")
    codes[codes == GAP] = MISSING
    return codes


def seal_of(codes: Codes) -> str:
    """Return a fingerprint of records in any order: a sum, so that those of parts add up."""
    mixed = np.zeros(len(codes), np.uint64)
    for place in range(codes.shape[1]):
        mixed ^= codes[:, place].view(np.uint64)
        for factor, shift in _MIXERS:
            mixed *= np.uint64(factor)
            mixed ^= mixed >> np.uint64(shift)
    return f"{int(mixed.sum(dtype=np.uint64)):016x}"


def _number() -> int:
    """Return the number of this task's part; one below zero where nobody numbers tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return -1 - secrets.randbits(40) if context is None else int(context.partitionId())


# ---- counting


def count(run: str, message: bytes, handles: Iterable[Any]) -> Iterator[tuple[Handle, bytes]]:
    """Yield an answer for each part that this task is about."""
    request = Request.from_bytes(message)
    for part, records, seal in handles:
        handle = (int(part), int(records), str(seal))
        yield handle, _answer(_run(run), handle, request)


def count_in_arrow(run: str, message: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Do the same where handles and answers travel as Arrow has them."""
    import pyarrow as pa

    for each in batches:
        handles = zip(*(column.to_pylist() for column in each), strict=True)
        found = [(*handle, answer) for handle, answer in count(run, message, handles)]
        kinds = (pa.int64(), pa.int64(), pa.string(), pa.binary())
        columns = zip(*found, strict=True) if found else ([],) * len(kinds)
        arrays = [pa.array(list(one), kind) for one, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, ["part", "records", "seal", "answer"])


def count_listed(
    run: str, message: bytes, handles: tuple[Handle, ...], batches: Iterable[Any]
) -> Iterator[Any]:
    """Do the same where a task is told the places of its handles in a list."""
    import pyarrow as pa

    for each in batches:
        mine = [handles[place] for place in each.column(0).to_pylist()]
        arrays = [pa.array(list(column)) for column in zip(*mine, strict=True)]
        if mine:
            names = ["part", "records", "seal"]
            yield from count_in_arrow(run, message, [pa.RecordBatch.from_arrays(arrays, names)])


def _answer(here: _Run, handle: Handle, request: Request) -> bytes:
    """Count boxes in one part, or say what has to be sent first."""
    number, records, seal = handle
    with here.lock:
        try:
            cells = here.cells(request)
        except FileNotFoundError:
            return NO_CELLS
        try:
            index = here.index(number, seal)
        except FileNotFoundError:
            return NO_RECORDS
        return counted(index, records, request, cells)


def counted(index: IndexCounter, records: int, request: Request, cells: Cells) -> bytes:
    """Return the counts of boxes as bytes."""
    batch = request.batch(cells)
    return COUNTED + narrowed(index.count(batch) if records else np.zeros_like(batch.cell))


# ---- a standing task


def serve(where: tuple[str, int], secret: bytes, idle: float, batches: Iterable[Any]) -> Any:
    """Index a part, then answer whoever holds the other end of the line until that ends.

    After so many idle seconds the task says so and leaves: others may want its place.
    """
    part, attempt = _number(), _attempt()
    with Line.to(where, secret) as line:
        line.send(call(part, attempt))
        codes = codes_of(batches)
        index = IndexCounter(codes)
        line.send(hello(len(codes), seal_of(codes)))
        cells: Cells | None = None
        while (message := line.wait(idle)) is not None:
            request = Request.from_bytes(message)
            if request.cells:
                cells = read_cells(request.cells)
            if cells is None or cells.digest != request.seal:
                line.send(NO_CELLS)
            else:
                line.send(counted(index, len(codes), request, cells))
    yield from ()


def _attempt() -> bytes:
    """Return what all tasks of one start of a job have in common, and no others.

    Spark starts all of them again when one fails; parts of two starts must not be mixed. To ask
    the others takes Spark a second, so a task that is alone does not.
    """
    from pyspark import BarrierTaskContext

    context, drawn = BarrierTaskContext.get(), [secrets.token_hex(16)]
    if len(context.getTaskInfos()) > 1:
        drawn = context.allGather(drawn[0])
    return hashlib.blake2b("".join(drawn).encode(), digest_size=16).digest()


# ---- the folder


def _run(run: str) -> _Run:
    """Return what this process keeps of a run; nobody else can read its folder."""
    with _guard:
        if (found := _runs.get(run)) is not None and found.folder.exists():
            return found
        path = _folder(run)
        path.mkdir(0o700, exist_ok=True)
        seen = path.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
            raise PermissionError("the folder of a run belongs to somebody else")
        if not _runs:
            threading.Thread(target=_watch, daemon=True).start()
        _runs[run] = _Run(path)
        return _runs[run]


def _folder(run: str) -> Path:
    """Return where a run keeps its files: where Spark has its own, which it takes away."""
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    path = Path(spark or tempfile.gettempdir()) / f"thinveil-{run}"
    if not spark and run not in _runs:
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def forget(run: str, rows: Iterable[Any]) -> Iterator[Any]:
    """Take away all that is kept at this executor, and by one on this machine that was killed."""
    own = _folder(run)
    for each in {own, *own.parent.parent.parent.glob(f"*/blockmgr-*/{own.name}")}:
        shutil.rmtree(each, ignore_errors=True)
    with _guard:
        _runs.pop(run, None)
    time.sleep(0.02)  # so that the tasks of one job go to all executors
    yield from rows


def _watch() -> None:
    """Drop what is kept of runs whose folder is gone."""
    while True:
        time.sleep(_LOOK)
        with _guard:
            for run in [run for run, each in _runs.items() if not each.folder.exists()]:
                del _runs[run]
            if not _runs:
                return
