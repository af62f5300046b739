"""Know what of a collection is done, what is to do next, and how far the run is.

A document is done if its record and its output are there and its file has not changed. Long files
come first, so that no worker is left with one at the end, and are handed out chunk by chunk; those
of at most one chunk come whole, several at a time.
"""

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from lpcfg.base.errors import InputError, LpcfgError, SchedulerError, WorkerError
from lpcfg.base.files import Folder, LocalFolder
from lpcfg.base.urls import network_failures
from lpcfg.kinds.registry import load_model
from lpcfg.kinds.sentences import Segmenter
from lpcfg.predict.chunks import Chunk
from lpcfg.predict.documents import Failure
from lpcfg.predict.engine import ATTEMPTS, Checkpoint
from lpcfg.predict.forms import Form
from lpcfg.predict.tasks import (
    DONE,
    TREES,
    WORK,
    Document,
    Join,
    Outcome,
    PredictChunk,
    PredictDocuments,
    Record,
    RunSpec,
    Task,
)
from lpcfg.predict.worker import Source, hash_of, parquet_chunks

_MOST_AT_ONCE = 64
"""Documents in one task, however short they are."""
_BEGUN = f"{WORK}/begun.json"
_DIED = f"{ATTEMPTS} processes died over it: is there enough memory?"
_PAUSE = 1.0
"""Seconds between two notes in an object store of what was begun."""


@dataclass
class _Long:
    """A long document under way: chunks handed out, and how many there are once that is known."""

    open: set[int] = field(default_factory=set)
    parts: int | None = None
    sha256: str = ""


@dataclass
class RunProgress:
    """Bytes of input that are done, of all there are, and sentences answered in this run."""

    done: int = 0
    total: int = 0
    sentences: int = 0
    documents: int = 0
    skipped: int = 0


class CollectionCheckpoint(Checkpoint[Task, Outcome]):
    """Hands out the tasks of a collection, and records what is done in its output folder."""

    def __init__(self, spec: RunSpec, folder: Folder, documents: Sequence[Document]) -> None:
        self.spec = spec
        self.folder = folder
        self.progress = RunProgress(total=sum(one.size for one in documents))
        self.records = read_records(folder)
        self._outputs = folder.sizes(TREES) if self.records else {}
        self._tasks = self._cut(sorted(documents, key=lambda one: -one.size))
        self._again: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._attempts = _Attempts(folder)
        self._long: dict[str, _Long] = {}

    def next(self, *, idle: bool) -> Task | None:
        while (task := self._next()) is not None and self._is_set_apart(task):
            pass
        if task is None and idle and self._suspects:
            task = self._suspects.popleft()
        if task is not None:
            self._attempts.begin(task.keys)
        return task

    def _next(self) -> Task | None:
        """Return the next task; the end of a long document may add that of joining its parts."""
        task = None if self._again else next(self._tasks, None)
        return self._again.popleft() if task is None and self._again else task

    def _is_set_apart(self, task: Task) -> bool:
        """Leave a task for later, or for good, if those who did it have died."""
        begun = max(map(self._attempts.of, task.keys))
        if begun < ATTEMPTS - 1:
            return False
        if isinstance(task, PredictDocuments) and len(task.documents) > 1:
            self._again.extendleft(PredictDocuments((one,)) for one in reversed(task.documents))
        elif begun < ATTEMPTS:
            self._suspects.append(task)
        else:
            self._give_up(task, _DIED)
        return True

    def done(self, task: Task, result: Outcome) -> None:
        self._attempts.end(task.keys)
        for record in result.records:
            self._settle(record)
        sentences = [result.counts, *(one.counts for one in result.records)]
        if not isinstance(task, Join):
            self.progress.sentences += sum(int(one.get("sentences", 0)) for one in sentences)
        if isinstance(task, PredictDocuments):
            self.progress.done += sum(one.size for one in task.documents)
        elif isinstance(task, PredictChunk):
            self.progress.done += task.weight
            long = self._long.get(task.document.name)  # None if the document failed meanwhile
            if long is not None:
                long.open.discard(task.chunk.index)
                self._join_if_whole(task.document, long)

    def failed(self, task: Task, error: BaseException) -> None:
        if isinstance(error, SchedulerError):  # no fault of the task
            self._attempts.end(task.keys)
            self._again.append(task)
            return
        died = isinstance(error, WorkerError)
        fatal: tuple[type[Exception], ...] = (LpcfgError, *network_failures())
        if isinstance(error, fatal) and not died:
            raise error
        if isinstance(task, PredictDocuments) and len(task.documents) > 1:  # which of them is it?
            self._again.extend(PredictDocuments((one,)) for one in task.documents)
        elif max(map(self._attempts.of, task.keys)) < ATTEMPTS:
            self._again.append(task)
        else:
            self._give_up(task, _DIED if died else f"it failed {ATTEMPTS} times: {error!r}")

    def failures(self) -> list[tuple[Record, Failure]]:
        """List what could not be read, in the documents of this run and of those before it."""
        ordered = sorted(self.records.values(), key=lambda one: one.name)
        return [(record, one) for record in ordered for one in record.failures]

    def _settle(self, record: Record) -> None:
        self.records[record.name] = record
        self.progress.documents += 1
        self._long.pop(record.name, None)

    def _give_up(self, task: Task, reason: str) -> None:
        """Record that documents cannot be answered."""
        self._attempts.end(task.keys)
        documents = task.documents if isinstance(task, PredictDocuments) else (task.document,)
        for document in documents:
            self._unread(document, reason)

    def _unread(self, document: Document, reason: str) -> None:
        record = Record.unread(document, self.spec, reason)
        self.folder.write(document.record, record.encode())
        self._settle(record)

    def _join_if_whole(self, document: Document, long: _Long) -> None:
        if long.parts is not None and not long.open:
            self._again.append(Join(document, long.parts, long.sha256))

    # What is to do --------------------------------------------------------------------------------

    def _cut(self, documents: Sequence[Document]) -> Iterator[Task]:
        several: list[Document] = []
        for document in documents:
            if self._is_done(document):
                self.progress.skipped += 1
                self.progress.done += document.size
            elif document.size > self.spec.chunk:
                yield from self._chunks(document)
            else:
                size = sum(one.size for one in several) + document.size
                if several and (size > self.spec.chunk or len(several) == _MOST_AT_ONCE):
                    yield PredictDocuments(tuple(several))
                    several = []
                several.append(document)
        if several:
            yield PredictDocuments(tuple(several))

    def _is_done(self, document: Document) -> bool:
        """Compare a document with its record: by its time, else by its bytes."""
        record = self.records.get(document.name)
        if record is None or record.output is None or record.size != document.size:
            return False
        if self._outputs.get(record.output) != record.output_bytes:
            return False
        if (record.path, record.stamp) == (document.path, document.stamp):
            return True
        try:
            return hash_of(document.path) == record.sha256
        except InputError:  # whoever answers it says so
            return False

    def _chunks(self, document: Document) -> Iterator[PredictChunk]:
        """Cut a long document; chunks that an earlier run answered are left out."""
        long = self._long[document.name] = _Long()
        try:
            there = self._parts_of(document)
            yield from self._chunks_that_lack(document, there, long)
        except LpcfgError as error:
            self._unread(document, str(error))
            return
        if self._long.get(document.name) is long:
            self._join_if_whole(document, long)

    def _chunks_that_lack(
        self, document: Document, there: Mapping[int, str], long: _Long
    ) -> Iterator[PredictChunk]:
        parts = 0
        for chunk, text, weight in self._all_chunks(document, long):
            if self._long.get(document.name) is not long:  # a part failed, and so did the whole
                return
            parts += 1
            if there.get(chunk.index) == chunk.sha256:
                self.progress.done += weight
                continue
            if text is not None:
                self.folder.write(f"{document.part(chunk.index)}.in", text.encode())
            long.open.add(chunk.index)
            yield PredictChunk(document, chunk, text is not None, weight)
        long.parts = parts

    def _all_chunks(
        self, document: Document, long: _Long
    ) -> Iterator[tuple[Chunk, str | None, int]]:
        """Yield chunks, the text of those that are compressed, and how many bytes each stands for.

        Compressed files can be read from their beginning only, so workers get their text.
        """
        if document.form is Form.PARQUET:
            chunks = parquet_chunks(document, self.spec)
            for chunk in chunks:
                yield chunk, None, document.size // len(chunks)
            long.sha256 = hash_of(document.path)
            return
        before, source = 0, Source(document, self.spec, self._segmenter)
        for chunk, text in source:
            yield chunk, text if source.is_packed else None, source.count - before
            before = source.count
        long.sha256 = source.sha256

    def _segmenter(self) -> Segmenter:
        return _segmenter_of(self.spec.model, self.spec.store)

    def _parts_of(self, document: Document) -> dict[int, str]:
        """Find the parts that an earlier run left, and the hashes of their chunks."""
        found = {}
        for name, data in self.folder.read_all(document.parts, ".json").items():
            kept = json.loads(data)
            if not self.spec.differences(kept["options"]):
                found[int(name.removesuffix(".json"))] = kept["sha256"]
        return found


@lru_cache(maxsize=1)
def _segmenter_of(model: str, store: str) -> Segmenter:
    """Load a model for its segmenter, which only paragraphs longer than a chunk need here."""
    return load_model(model, store).segmenter


class _Attempts:
    """How often tasks that are not done were begun, in a file that outlives this process.

    In an object store it may lack what was begun within the last second.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._begun: dict[str, int] = {}
        self._pause = 0.0 if isinstance(folder, LocalFolder) else _PAUSE
        self._written = -_PAUSE
        with suppress(FileNotFoundError, ValueError):  # ValueError: torn by a power failure
            self._begun = json.loads(folder.read(_BEGUN))

    def of(self, key: str) -> int:
        return self._begun.get(key, 0)

    def begin(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._begun[key] = self.of(key) + 1
        if time.monotonic() - self._written >= self._pause:
            self._folder.write(_BEGUN, json.dumps(self._begun).encode())
            self._written = time.monotonic()

    def end(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._begun.pop(key, None)


def read_records(folder: Folder) -> dict[str, Record]:
    """Read the records of all documents that are done, by the documents' names."""
    found = map(Record.decode, folder.read_all(DONE, ".json").values())
    return {record.name: record for record in found}
