"""Do one task of a run: answer documents or a chunk of one, or join the parts of a long one."""

import hashlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import islice
from typing import IO, TypeVar, cast

from threadpoolctl import threadpool_limits

from lpcfg.base.errors import InputError, LpcfgError, StoreError
from lpcfg.base.urls import is_url, network_failures
from lpcfg.kinds.registry import load_model
from lpcfg.kinds.sentences import Segmenter
from lpcfg.predict import tables
from lpcfg.predict.chunks import Chunk, Hashing, cut, text_of
from lpcfg.predict.documents import Failure, Item, items, of_text
from lpcfg.predict.forms import Form
from lpcfg.predict.output import writer
from lpcfg.predict.tasks import (
    Counts,
    Document,
    Join,
    Outcome,
    PredictChunk,
    PredictDocuments,
    Record,
    RunSpec,
    Task,
    add,
)
from lpcfg.text.files import opened, stored

TOGETHER = 64
"""Sentences that a model is given at once: some kinds answer several together faster."""
PAUSES = 1.0, 5.0
"""Seconds to wait before a task is tried again whose files were out of reach."""
_FINAL = FileNotFoundError, PermissionError, IsADirectoryError
T = TypeVar("T")
_Found = Iterator[Item | Failure]
_LOADING = threading.Lock()


def do(spec: RunSpec, task: Task) -> Outcome:
    """Do a task of a run, in a process that keeps the model for the next one."""
    with threadpool_limits(1):  # one process a core is all there is room for
        return worker_of(spec).do(task)


def worker_of(spec: RunSpec) -> "Worker":
    """Return what does the tasks of a run in this process."""
    with _LOADING:
        return _worker(spec)


@lru_cache(maxsize=1)
def _worker(spec: RunSpec) -> "Worker":
    return Worker(spec)


class Worker:
    """Does the tasks of a run, with a model that is loaded once."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.folder = spec.folder()
        self.model = load_model(spec.model, spec.store)
        if self.model.reference.hash != spec.hash:
            raise StoreError(
                f"expected {spec.model} with the hash {spec.hash}, got another model in "
                f"{spec.store}: use the same store for all workers"
            )

    def do(self, task: Task) -> Outcome:
        """Do a task. What is wrong with an input is part of the outcome.

        Raise InputError if nothing can be written.
        """
        try:
            return _patiently(partial(self._do, task), self.spec.out)
        except network_failures() as error:
            raise InputError(
                f"cannot write to {self.spec.out}: {error}: mend it and run again; nothing done is "
                "lost"
            ) from error

    def _do(self, task: Task) -> Outcome:
        if isinstance(task, PredictDocuments):
            return Outcome(tuple(map(self._document, task.documents)))
        if isinstance(task, PredictChunk):
            return self._chunk(task)
        try:
            return Outcome((self._join(task),))
        except FileNotFoundError:  # it was done, and the worker died before it could tell
            return Outcome((Record.decode(self.folder.read(task.document.record)),))

    def _document(self, document: Document) -> Record:
        """Answer a document, write its output, then its record."""

        def answer() -> Record:
            self._check_form(document)
            source = Source(document, self.spec, self._segmenter)
            counts, failures = self._write(document.output(self.spec), source.items())
            return self._done(document, source.sha256, counts, failures)

        try:
            return _patiently(answer, document.path)
        except LpcfgError as error:
            return self._unread(document, error)

    def _check_form(self, document: Document) -> None:
        """Refuse tags where the model takes none."""
        kind = self.model.kind
        if document.form is Form.TAGGED and not kind.tags(self.model.predictor):
            raise InputError(
                f"expected tokens without tags, got some: a {kind.title} uses none: leave them out"
            )

    def _unread(self, document: Document, error: LpcfgError) -> Record:
        """Record that a document cannot be read."""
        record = Record.unread(document, self.spec, str(error))
        self.folder.write(document.record, record.encode())
        return record

    def _done(
        self, document: Document, sha256: str, counts: Counts, failures: list[Failure]
    ) -> Record:
        """Record that a document is done."""
        output = document.output(self.spec)
        size = self.folder.size(output) or 0
        kept = {"output": output, "output_bytes": size, "counts": counts, "failures": failures}
        record = Record.of(document, self.spec, sha256, **kept)
        self.folder.write(document.record, record.encode())
        return record

    def _write(self, name: str, found: _Found) -> tuple[Counts, list[Failure]]:
        """Answer sentences into a file of the output folder."""
        counts: Counts = {"sentences": 0, **dict.fromkeys(self.model.kind.statuses, 0)}
        failures, begun = list[Failure](), time.perf_counter()
        with self.folder.writer(name) as stream, writer(self.spec, stream) as rows:
            while some := list(islice(found, TOGETHER)):
                asked = [one for one in some if isinstance(one, Item)]
                failures += [one for one in some if isinstance(one, Failure)]
                sentences = [one.sentence for one in asked]
                answers = self.model.predict(sentences, self.spec.options)
                for item, answer in zip(asked, answers, strict=True):
                    add(counts, {"sentences": 1, answer.status: 1})
                    rows.add(item, answer)
        counts["seconds"] = round(time.perf_counter() - begun, 3)
        return counts, failures

    def _chunk(self, task: PredictChunk) -> Outcome:
        """Answer a chunk into a part, and write its own record."""
        document, chunk = task.document, task.chunk
        part = document.part(chunk.index)
        staged = None
        if task.staged:
            try:
                staged = self.folder.read(f"{part}.in")
            except FileNotFoundError:  # it was done, and the worker died before it could tell
                return Outcome(counts=json.loads(self.folder.read(f"{part}.json"))["counts"])

        def answer() -> tuple[Counts, list[Failure]]:
            self._check_form(document)
            found = _items_of_chunk(document, chunk, self.spec, staged, self._segmenter)
            return self._write(f"{part}.part", found)

        try:
            counts, failures = _patiently(answer, document.path)
        except LpcfgError as error:
            return Outcome((self._unread(document, error),))
        kept = {
            "sha256": chunk.sha256,
            "options": self.spec.recorded(),
            "counts": counts,
            "failures": [asdict(one) for one in failures],
        }
        self.folder.write(f"{part}.json", json.dumps(kept).encode())
        if task.staged:
            self.folder.remove(f"{part}.in")
        return Outcome(counts=counts)

    def _join(self, task: Join) -> Record:
        """Write the output of a long document from its parts, then its record; drop the parts."""
        document = task.document
        counts: Counts = {}
        failures = list[Failure]()
        with (
            self.folder.writer(document.output(self.spec)) as stream,
            writer(self.spec, stream) as rows,
        ):
            for part in map(document.part, range(task.parts)):
                kept = json.loads(self.folder.read(f"{part}.json"))
                add(counts, kept["counts"])
                failures += [Failure(**one) for one in kept["failures"]]
                with self.folder.open(f"{part}.part") as answered:
                    rows.copy(answered)
        record = self._done(document, task.sha256, counts, failures)
        self.folder.remove(document.parts)
        return record

    def _segmenter(self) -> Segmenter:
        return self.model.segmenter


def _patiently(call: Callable[[], T], place: str) -> T:
    """Make a call, and again after a while where files of a network were out of reach."""
    tried: tuple[type[Exception], ...] = (LpcfgError, *network_failures())
    for pause in PAUSES if is_url(place) else ():
        try:
            return call()
        except tried as error:
            reason = error.__cause__ if isinstance(error, LpcfgError) else error
            if not isinstance(reason, network_failures()) or isinstance(reason, _FINAL):
                raise
            time.sleep(pause)
    return call()


class Source:
    """A document, decompressed, that is read chunk by chunk; its hash is known at the end."""

    def __init__(
        self, document: Document, spec: RunSpec, segmenter: Callable[[], Segmenter]
    ) -> None:
        self._document, self._spec, self._segmenter = document, spec, segmenter
        self.is_packed = False
        self.count = 0
        """Bytes of the file read so far."""
        self.sha256 = ""

    def __iter__(self) -> Iterator[tuple[Chunk, str]]:
        """Yield chunks and their text; there is at least one."""
        document, size = self._document, self._spec.chunk
        with stored(document.path) as raw:
            hashing = Hashing(raw, document.path)
            buffered = io.BufferedReader(hashing)
            with opened(buffered) as (name, stream):
                self.is_packed = stream is not buffered
                content = cast(IO[bytes], stream)
                for chunk, text in cut(content, document.form, size, name, self._segmenter):
                    self.count = hashing.count
                    yield chunk, text
            self.sha256 = hashing.finish()

    def items(self) -> _Found:
        """Find the sentences of the whole document."""
        document, spec = self._document, self._spec
        if document.form is Form.PARQUET:
            for chunk in parquet_chunks(document, spec):
                yield from _items_of_chunk(document, chunk, spec, None, self._segmenter)
            self.sha256 = hash_of(document.path)
            return
        for chunk, text in self:
            yield from items(document.name, document.form, chunk, text, self._segmenter())


def parquet_chunks(document: Document, spec: RunSpec) -> list[Chunk]:
    """List ranges of rows of a Parquet file as chunks; a stamp stands for their hashes."""
    with stored(document.path) as stream:
        ranges = tables.row_ranges(stream, document.name, spec.columns[0], spec.chunk)
    stamp = f"{document.size} {document.stamp}"
    return [
        Chunk(index, rows.start, rows.stop, 0, 0, f"{stamp} {rows.start} {rows.stop}")
        for index, rows in enumerate(ranges)
    ]


def hash_of(path: str) -> str:
    """Compute the SHA-256 of a file as it is stored."""
    with stored(path) as raw:
        return Hashing(raw, path).finish()


def _items_of_chunk(
    document: Document,
    chunk: Chunk,
    spec: RunSpec,
    staged: bytes | None,
    segmenter: Callable[[], Segmenter],
) -> _Found:
    """Read a chunk again, and find its sentences."""
    name = document.name
    if document.form is Form.PARQUET:
        rows = range(chunk.start, chunk.end)
        with stored(document.path) as stream:
            for row, given, content in tables.texts(stream, name, rows, *spec.columns):
                if content is None:
                    yield Failure(f"row {row}", "expected text, got nothing")
                else:
                    yield from of_text(given or f"{name}:{row}", content, segmenter())
        return
    if staged is None:
        text = text_of(_bytes_of(document, chunk), chunk.index, document.path, chunk.lines)
    else:
        text = staged.decode()
    yield from items(name, document.form, chunk, text, segmenter())


def _bytes_of(document: Document, chunk: Chunk) -> bytes:
    with stored(document.path) as stream:
        stream.seek(chunk.start)
        content = stream.read(chunk.end - chunk.start)
    if hashlib.sha256(content).hexdigest() != chunk.sha256:
        raise InputError(
            f"{document.path} was changed while it was read: run again when it is whole"
        )
    return content
