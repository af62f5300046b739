"""Keep the books of a run: what is done, what is to do next, and how far it is.

A document is done if its marker and its output are there and its file has not changed. Files of at
most one piece are handed out whole, several at a time; longer ones piece by piece.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.predict.documents import Failure
from lpcfg.predict.folder import Folder
from lpcfg.predict.forms import Form
from lpcfg.predict.job import (
    DONE,
    TREES,
    Document,
    Job,
    Join,
    Marker,
    Outcome,
    ParseDocuments,
    ParsePiece,
    Task,
    unread,
)
from lpcfg.predict.pieces import Piece
from lpcfg.predict.work import hash_of, parquet_pieces, pieces_of

_MOST_AT_ONCE = 64
"""Documents in one task, however short they are."""


@dataclass
class _Long:
    """A long document under way: pieces handed out, and how many there are once that is known."""

    open: set[int] = field(default_factory=set)
    parts: int | None = None
    sha256: str = ""


@dataclass
class Progress:
    """Bytes of input that are done, of all there are, and sentences parsed in this run."""

    done: int = 0
    total: int = 0
    sentences: int = 0
    documents: int = 0
    skipped: int = 0


class Ledger:
    """Hands out tasks and takes outcomes. Several threads may do both at a time."""

    def __init__(self, job: Job, folder: Folder, documents: Sequence[Document]) -> None:
        self.job = job
        self.folder = folder
        self.progress = Progress(total=sum(one.size for one in documents))
        self.markers = read_markers(folder)
        self._outputs = folder.sizes(TREES) if self.markers else {}
        self._tasks = self._cut(documents)
        self._joins: list[Join] = []
        self._long: dict[str, _Long] = {}
        self._lock = threading.Lock()
        self.broken: str | None = None

    def next(self) -> Task | None:
        """Return what to do next; None if nothing is left for who has no task."""
        with self._lock:
            if self.broken is not None:
                return None
            task = None if self._joins else next(self._tasks, None)
            return self._joins.pop() if task is None and self._joins else task

    def record(self, outcome: Outcome) -> None:
        """Take the outcome of a task."""
        with self._lock:
            self.broken = self.broken or outcome.broken
            for marker in outcome.markers:
                self._settle(marker)
            task = outcome.task
            if isinstance(task, ParseDocuments):
                self.progress.done += sum(one.size for one in task.documents)
                self.progress.sentences += sum(one.counts.sentences for one in outcome.markers)
            elif isinstance(task, ParsePiece):
                self.progress.done += task.weight
                self.progress.sentences += outcome.counts.sentences
                self._part_is_done(task.document, task.piece.index)

    def failures(self) -> list[tuple[Marker, Failure]]:
        """List what could not be read, in the documents of this run and of those before it."""
        ordered = sorted(self.markers.values(), key=lambda one: one.name)
        return [(marker, one) for marker in ordered for one in marker.failures]

    def _settle(self, marker: Marker) -> None:
        self.markers[marker.name] = marker
        self.progress.documents += 1
        self._long.pop(marker.name, None)

    def _part_is_done(self, document: Document, index: int) -> None:
        long = self._long.get(document.name)  # None if the document failed meanwhile
        if long is not None:
            long.open.discard(index)
            self._join_if_whole(document, long)

    def _join_if_whole(self, document: Document, long: _Long) -> None:
        if long.parts is not None and not long.open:
            self._joins.append(Join(document, long.parts, long.sha256))

    # What is to do --------------------------------------------------------------------------------

    def _cut(self, documents: Sequence[Document]) -> Iterator[Task]:
        several: list[Document] = []
        for document in documents:
            if self._is_done(document):
                self.progress.skipped += 1
                self.progress.done += document.size
            elif document.size > self.job.piece:
                yield from self._pieces(document)
            else:
                size = sum(one.size for one in several) + document.size
                if several and (size > self.job.piece or len(several) == _MOST_AT_ONCE):
                    yield ParseDocuments(tuple(several))
                    several = []
                several.append(document)
        if several:
            yield ParseDocuments(tuple(several))

    def _is_done(self, document: Document) -> bool:
        """Compare a document with its marker: by its time, else by its bytes."""
        marker = self.markers.get(document.name)
        if marker is None or marker.output is None or marker.size != document.size:
            return False
        if self._outputs.get(marker.output) != marker.output_bytes:
            return False
        if (marker.path, marker.stamp) == (document.path, document.stamp):
            return True
        try:
            return hash_of(document.path) == marker.sha256
        except InputError:  # whoever parses it says so
            return False

    def _pieces(self, document: Document) -> Iterator[ParsePiece]:
        """Cut a long document; pieces that an earlier run parsed are left out."""
        long = self._long[document.name] = _Long()
        try:
            there = self._parts_of(document)
            yield from self._pieces_that_lack(document, there, long)
        except LpcfgError as error:
            marker = unread(document, self.job, str(error))
            self.folder.write(document.marker, marker.encode())
            self._settle(marker)
            return
        if self._long.get(document.name) is long:
            self._join_if_whole(document, long)

    def _pieces_that_lack(
        self, document: Document, there: Mapping[int, str], long: _Long
    ) -> Iterator[ParsePiece]:
        parts = 0
        for piece, text, weight in self._all_pieces(document, long):
            if self._long.get(document.name) is not long:  # a part failed, and so did the whole
                return
            parts += 1
            if there.get(piece.index) == piece.sha256:
                self.progress.done += weight
                continue
            if text is not None:
                self.folder.write(f"{document.part(piece.index)}.in", text.encode())
            long.open.add(piece.index)
            yield ParsePiece(document, piece, text is not None, weight)
        long.parts = parts

    def _all_pieces(
        self, document: Document, long: _Long
    ) -> Iterator[tuple[Piece, str | None, int]]:
        """Yield pieces, the text of those that are compressed, and how many bytes each stands for.

        Compressed files can be read from their beginning only, so workers get their text.
        """
        if document.form is Form.PARQUET:
            pieces = parquet_pieces(document)
            for piece in pieces:
                yield piece, None, document.size // len(pieces)
            long.sha256 = hash_of(document.path)
            return
        before = 0
        for piece, text, source in pieces_of(document, self.job):
            yield piece, text if source.is_packed else None, source.hashing.count - before
            before = source.hashing.count
            last = source
        long.sha256 = last.sha256

    def _parts_of(self, document: Document) -> dict[int, str]:
        """Find the parts that an earlier run left, and the hashes of their pieces."""
        found = {}
        for name, data in self.folder.read_all(document.parts, ".json").items():
            kept = json.loads(data)
            if kept["options"] == self.job.options():
                found[int(name.removesuffix(".json"))] = kept["sha256"]
        return found


def read_markers(folder: Folder) -> dict[str, Marker]:
    """Read the markers of all documents that are done, by the documents' names."""
    found = map(Marker.decode, folder.read_all(DONE, ".json").values())
    return {marker.name: marker for marker in found}
