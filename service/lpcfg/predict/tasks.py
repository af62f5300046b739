"""Describe a run over a collection, and the tasks that it is shared out in, as plain values."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lpcfg.base.errors import InputError
from lpcfg.base.files import Folder, LocalFolder, RemoteFolder, open_place
from lpcfg.base.options import Options
from lpcfg.base.urls import is_url
from lpcfg.kinds.registry import AnyKind, kind_named, kind_of
from lpcfg.predict.chunks import Chunk
from lpcfg.predict.documents import Failure
from lpcfg.predict.forms import Form
from lpcfg.store.versions import facts_of, resolve

TREES = "trees"
DONE = ".done"
WORK = ".work"
"""Holds what is not finished: files being written, and parts of long documents."""
ALWAYS = {"json": "jsonl", "parquet": "parquet"}
"""Forms of output that every kind of models has, and the endings of their files."""
Counts = dict[str, float]
"""How many sentences there are, by their status and as `sentences`, and the `seconds` they took."""


def outputs_of(kind: AnyKind) -> Mapping[str, str]:
    """Return the forms of output files that a kind has, and the endings of their names."""
    return ALWAYS | {form: ending for form, ending in kind.forms.items() if ending}


@dataclass(frozen=True)
class RunSpec:
    """A model, options and an output folder: all that a worker needs besides its tasks.

    model       NAME@VERSION in `store`; `hash` is its hash, `kind` the name of its kind
    output      the form of output files, out of `outputs_of` its kind
    columns     of Parquet input: the one with texts, and the one with their ids
    chunk       longer files are cut into chunks of about this many bytes
    """

    out: str
    model: str
    store: str
    hash: str
    kind: str
    output: str
    options: Options
    columns: tuple[str, str | None] = ("text", None)
    chunk: int = 1 << 18

    @classmethod
    def of(
        cls,
        model: str,
        store: str | Path,
        out: str | Path,
        output: str = "json",
        options: Mapping[str, object] | None = None,
        **more: Any,
    ) -> "RunSpec":
        """Describe a run of the model that a reference names now.

        Args:
            model, store: as `lpcfg.load` takes them
            out: the output folder, a path or a URL
            output: the form of output files
            options: those of the model's kind, by name
            more: `columns` and `chunk`

        Raises:
            StoreError: for a model that is nowhere
            InputError: for a form of output or an option that its kind does not have
        """
        reference = resolve(model, store)
        kind = kind_of(facts_of(str(reference), reference.store))
        forms = outputs_of(kind)
        if output not in forms:
            raise InputError(
                f"expected {', '.join(forms)} as the form of files of a {kind.title}, got {output}:"
                " name one of them"
            )
        return cls(
            str(out) if is_url(str(out)) else os.path.abspath(out),
            *(str(reference), reference.store, reference.hash, kind.name, output),
            kind.options.of(options or {}),
            **more,
        )

    def folder(self) -> Folder:
        """Open the output folder."""
        return open_place(self.out, lambda path: LocalFolder(path, WORK), RemoteFolder)

    @property
    def ending(self) -> str:
        """How names of output files end."""
        return outputs_of(kind_named(self.kind))[self.output]

    def recorded(self) -> dict[str, object]:
        """Return what the output depends on, besides the input, as it is kept with it."""
        options = {k: "default" if v is None else v for k, v in self.options.as_json().items()}
        return {"model": self.model, "hash": self.hash, "output": self.ending, **options}

    def differences(self, recorded: Mapping[str, object]) -> list[str]:
        """Say how what was recorded differs from this run.

        An option that is not recorded had its default: there was no such option yet.
        """
        defaults = replace(self, options=type(self.options)()).recorded()
        return [
            f"{name} {recorded.get(name, defaults[name])}, not {value}"
            for name, value in self.recorded().items()
            if recorded.get(name, defaults[name]) != value
        ]


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
    def record(self) -> str:
        """The file that says that it is done."""
        return f"{DONE}/{self.key}.json"

    @property
    def parts(self) -> str:
        """The folder of its parts."""
        return f"{WORK}/{self.key}"

    def part(self, index: int) -> str:
        return f"{self.parts}/{index:08d}"

    def output(self, spec: RunSpec) -> str:
        return f"{TREES}/{self.name}.{spec.ending}"


@dataclass
class Record:
    """The record of a document that is done, or of one that cannot be read (without output)."""

    name: str
    path: str
    size: int
    stamp: str
    sha256: str | None
    options: Mapping[str, object]
    output: str | None
    output_bytes: int
    counts: Counts = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @classmethod
    def of(cls, document: Document, spec: RunSpec, sha256: str | None, **more: Any) -> "Record":
        """Make the record of a document, without output where none is named."""
        about = document.name, document.path, document.size, document.stamp
        return cls(*about, sha256, spec.recorded(), **{"output": None, "output_bytes": 0, **more})

    @classmethod
    def unread(cls, document: Document, spec: RunSpec, reason: str) -> "Record":
        """Make the record of a document that cannot be read."""
        return cls.of(document, spec, None, failures=[Failure("", reason)])

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Record":
        value = json.loads(data)
        value["failures"] = [Failure(**one) for one in value["failures"]]
        return cls(**value)


def add(counts: Counts, more: Mapping[str, float]) -> None:
    """Add counts to others."""
    for name, number in more.items():
        counts[name] = counts.get(name, 0) + number


@dataclass(frozen=True)
class PredictDocuments:
    """Answer whole documents, one after the other."""

    documents: tuple[Document, ...]

    @property
    def keys(self) -> Sequence[str]:
        return [one.key for one in self.documents]


@dataclass(frozen=True)
class PredictChunk:
    """Answer one chunk of a long document; `staged` where the run wrote its text, decompressed."""

    document: Document
    chunk: Chunk
    staged: bool
    weight: int

    @property
    def keys(self) -> Sequence[str]:
        return [f"{self.document.key}/{self.chunk.index}"]


@dataclass(frozen=True)
class Join:
    """Join the parts of a long document, all of which are there."""

    document: Document
    parts: int
    sha256: str

    @property
    def keys(self) -> Sequence[str]:
        return [f"{self.document.key}/join"]


Task = PredictDocuments | PredictChunk | Join


@dataclass(frozen=True)
class Outcome:
    """The end of a task: records of documents that are done, or the counts of a part."""

    records: tuple[Record, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)
