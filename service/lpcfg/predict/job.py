"""Describe a run and the tasks that it is shared out in, as plain values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from lpcfg.predict.documents import Failure
from lpcfg.predict.folder import WORK
from lpcfg.predict.forms import Form, Output
from lpcfg.predict.pieces import Piece

TREES = "trees"
DONE = ".done"


@dataclass(frozen=True)
class Job:
    """A model, options and an output folder: all that a worker needs besides its tasks.

    model       NAME@VERSION in `store`; `hash` is its hash
    columns     of Parquet input: the one with texts, and the one with their ids
    piece       longer files are cut into pieces of about this many bytes
    """

    out: str
    model: str
    store: str
    hash: str
    output: Output
    objective: str | None = None
    rescore: bool = True
    columns: tuple[str, str | None] = ("text", None)
    piece: int = 1 << 18

    def options(self) -> dict[str, object]:
        """Return what the trees depend on, besides the input."""
        return {
            "model": self.model,
            "hash": self.hash,
            "output": self.output.value,
            "objective": self.objective or "default",
            "rescore": self.rescore,
        }


@dataclass(frozen=True)
class Document:
    """An input file. `stamp` changes when it is written to: its time, or an object's ETag."""

    name: str
    path: str
    form: Form
    size: int
    stamp: str

    @property
    def key(self) -> str:
        """Name the files that stand for this document while it is worked on."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    @property
    def marker(self) -> str:
        return f"{DONE}/{self.key}.json"

    def output(self, job: Job) -> str:
        return f"{TREES}/{self.name}.{job.output.value}"

    def part(self, index: int) -> str:
        return f"{self.parts}/{index:08d}"

    @property
    def parts(self) -> str:
        return f"{WORK}/{self.key}"


@dataclass
class Counts:
    """How many sentences a document has, by their status, and the wall seconds they took."""

    sentences: int = 0
    parsed: int = 0
    partial: int = 0
    failed: int = 0
    seconds: float = 0.0

    def add(self, other: "Counts") -> None:
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Marker:
    """A record of a document that is done, or of one that cannot be read (without output)."""

    name: str
    path: str
    size: int
    stamp: str
    sha256: str | None
    options: Mapping[str, object]
    output: str | None
    output_bytes: int
    counts: Counts = field(default_factory=Counts)
    failures: list[Failure] = field(default_factory=list)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Marker":
        value = json.loads(data)
        value["counts"] = Counts(**value["counts"])
        value["failures"] = [Failure(**one) for one in value["failures"]]
        return cls(**value)


def unread(document: Document, job: Job, reason: str) -> Marker:
    """Make the marker of a document that cannot be read."""
    return Marker(
        name=document.name,
        path=document.path,
        size=document.size,
        stamp=document.stamp,
        sha256=None,
        options=job.options(),
        output=None,
        output_bytes=0,
        failures=[Failure("", reason)],
    )


@dataclass(frozen=True)
class ParseDocuments:
    """Parse whole documents, one after the other."""

    documents: tuple[Document, ...]


@dataclass(frozen=True)
class ParsePiece:
    """Parse one piece of a long document; `staged` where the run wrote its text, decompressed."""

    document: Document
    piece: Piece
    staged: bool
    weight: int


@dataclass(frozen=True)
class Join:
    """Join the parts of a long document, all of which are there."""

    document: Document
    parts: int
    sha256: str


Task = ParseDocuments | ParsePiece | Join


@dataclass(frozen=True)
class Outcome:
    """The end of a task: markers of documents that are done, or a part, or neither.

    `broken` says why the whole run cannot go on, such as a full disk.
    """

    task: Task
    markers: tuple[Marker, ...] = ()
    counts: Counts = field(default_factory=Counts)
    broken: str | None = None
