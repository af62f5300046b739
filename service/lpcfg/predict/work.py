"""Do one task of a run: parse documents or a piece of one, or join the parts of a long one."""

import hashlib
import io
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import IO, cast

from lpcfg.base.errors import InputError, LpcfgError, StoreError
from lpcfg.base.urls import network_failures
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.predict import tables
from lpcfg.predict.documents import Failure, Item, items, of_text
from lpcfg.predict.folder import Folder, open_folder
from lpcfg.predict.forms import Form
from lpcfg.predict.job import (
    Counts,
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
from lpcfg.predict.pieces import Hashing, Piece, cut, text_of
from lpcfg.predict.records import writer
from lpcfg.text.files import opened, stored

_Found = Iterator[Item | Failure]


class Worker:
    """Does the tasks of a job, with a parser that is loaded once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.folder: Folder = open_folder(job.out)
        self._parser = Parser.load(job.model, job.store)
        found = self._parser.reference
        if found is None or found.hash != job.hash:
            raise StoreError(
                f"expected {job.model} with the hash {job.hash}, got another model in {job.store}: "
                "use the same store for all workers"
            )
        self._options = ParseOptions(objective=job.objective, rescore=job.rescore)

    def do(self, task: Task) -> Outcome:
        """Do a task. What is wrong with an input is part of the outcome, and so is a full disk."""
        try:
            if isinstance(task, ParseDocuments):
                return Outcome(task, tuple(map(self._document, task.documents)))
            if isinstance(task, ParsePiece):
                return self._piece(task)
            return Outcome(task, (self._join(task),))
        except network_failures() as error:
            return Outcome(task, broken=f"cannot write to {self.job.out}: {error}")

    def _document(self, document: Document) -> Marker:
        """Parse a document, write its output, then its marker."""
        source = _Source(document, self.job)
        name = document.output(self.job)
        try:
            counts, failures = self._write(name, source.items())
        except LpcfgError as error:
            marker = unread(document, self.job, str(error))
        else:
            marker = self._marker(document, source.sha256, counts, failures)
        self.folder.write(document.marker, marker.encode())
        return marker

    def _marker(
        self, document: Document, sha256: str, counts: Counts, failures: list[Failure]
    ) -> Marker:
        output = document.output(self.job)
        return Marker(
            name=document.name,
            path=document.path,
            size=document.size,
            stamp=document.stamp,
            sha256=sha256,
            options=self.job.options(),
            output=output,
            output_bytes=self.folder.size(output) or 0,
            counts=counts,
            failures=failures,
        )

    def _write(self, name: str, found: _Found) -> tuple[Counts, list[Failure]]:
        """Parse sentences into a file of the output folder."""
        counts, failures, begun = Counts(), list[Failure](), time.perf_counter()
        with (
            self.folder.writing(name) as stream,
            writer(self.job.output, stream, self.job.hash) as rows,
        ):
            for one in found:
                if isinstance(one, Failure):
                    failures.append(one)
                    continue
                (analysis,) = self._parser.predict([one.sentence], self._options)
                counts.sentences += 1
                setattr(counts, analysis.status, getattr(counts, analysis.status) + 1)
                rows.add(one, analysis)
        counts.seconds = round(time.perf_counter() - begun, 3)
        return counts, failures

    def _piece(self, task: ParsePiece) -> Outcome:
        """Parse a piece into a part, and write its own marker."""
        document, piece = task.document, task.piece
        part = document.part(piece.index)
        staged = self.folder.read(f"{part}.in") if task.staged else None
        try:
            found = _items_of_piece(document, piece, self.job, staged)
            counts, failures = self._write(f"{part}.part", found)
        except LpcfgError as error:
            marker = unread(document, self.job, str(error))
            self.folder.write(document.marker, marker.encode())
            return Outcome(task, (marker,))
        kept = {
            "sha256": piece.sha256,
            "options": self.job.options(),
            "counts": asdict(counts),
            "failures": [asdict(one) for one in failures],
        }
        self.folder.write(f"{part}.json", json.dumps(kept).encode())
        if task.staged:
            self.folder.remove(f"{part}.in")
        return Outcome(task, counts=counts)

    def _join(self, task: Join) -> Marker:
        """Write the output of a long document from its parts, then its marker; drop the parts."""
        document = task.document
        counts, failures = Counts(), list[Failure]()
        with (
            self.folder.writing(document.output(self.job)) as stream,
            writer(self.job.output, stream, self.job.hash) as rows,
        ):
            for part in map(document.part, range(task.parts)):
                kept = json.loads(self.folder.read(f"{part}.json"))
                counts.add(Counts(**kept["counts"]))
                failures += [Failure(**one) for one in kept["failures"]]
                with self.folder.open(f"{part}.part") as parsed:
                    rows.copy(parsed)
        marker = self._marker(document, task.sha256, counts, failures)
        self.folder.write(document.marker, marker.encode())
        self.folder.remove(document.parts)
        return marker


@dataclass
class Reading:
    """A file whose pieces are being read; its hash is known after the last of them."""

    hashing: Hashing
    is_packed: bool
    sha256: str = ""


class _Source:
    """Reads a whole document piece by piece, and knows its hash at the end."""

    def __init__(self, document: Document, job: Job) -> None:
        self._document = document
        self._job = job
        self.sha256 = ""

    def items(self) -> _Found:
        document, job = self._document, self._job
        if document.form is Form.PARQUET:
            for piece in parquet_pieces(document):
                yield from _items_of_piece(document, piece, job, None)
            self.sha256 = hash_of(document.path)
            return
        for piece, text, reading in pieces_of(document, job):
            yield from items(document.name, document.form, piece, text)
            last = reading
        self.sha256 = last.sha256


def pieces_of(document: Document, job: Job) -> Iterator[tuple[Piece, str, Reading]]:
    """Cut a document, decompressed, into pieces; there is at least one."""
    with stored(document.path) as raw:
        hashing = Hashing(raw, document.path)
        buffered = io.BufferedReader(hashing)
        with opened(buffered) as (name, stream):
            reading = Reading(hashing, stream is not buffered)
            for piece, text in cut(cast(IO[bytes], stream), document.form, job.piece, name):
                yield piece, text, reading
        reading.sha256 = hashing.finish()


def parquet_pieces(document: Document) -> list[Piece]:
    """List the row groups of a Parquet file as pieces; a stamp stands for their hashes."""
    with stored(document.path) as stream:
        groups = tables.row_groups(stream, document.name)
    return [
        Piece(group, group, group + 1, 0, 0, f"{document.size} {document.stamp} {group}")
        for group in range(groups)
    ]


def hash_of(path: str) -> str:
    """Compute the SHA-256 of a file as it is stored."""
    with stored(path) as raw:
        return Hashing(raw, path).finish()


def _items_of_piece(document: Document, piece: Piece, job: Job, staged: bytes | None) -> _Found:
    """Read a piece again, and find its sentences."""
    if document.form is Form.PARQUET:
        text, id = job.columns
        with stored(document.path) as stream:
            for row, given, content in tables.texts(stream, document.name, piece.index, text, id):
                if content is None:
                    yield Failure(f"row {row}", "expected text, got nothing")
                else:
                    yield from of_text(given or f"{document.name}:{row}", content)
        return
    if staged is None:
        text = text_of(_bytes_of(document, piece), piece.index, document.path, piece.lines)
    else:
        text = staged.decode()
    yield from items(document.name, document.form, piece, text)


def _bytes_of(document: Document, piece: Piece) -> bytes:
    with stored(document.path) as stream:
        stream.seek(piece.start)
        content = stream.read(piece.end - piece.start)
    if hashlib.sha256(content).hexdigest() != piece.sha256:
        raise InputError(
            f"{document.path} was changed while it was read: run again when it is whole"
        )
    return content
