"""Run over a collection: find inputs, check the output folder, share the work out, sum up."""

import contextlib
import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lpcfg.base.errors import InputError
from lpcfg.base.executors import Executor
from lpcfg.base.files import UNFINISHED, Folder, LocalFolder, try_lock
from lpcfg.base.urls import filesystem, is_url, network_failures
from lpcfg.predict.checkpoint import CollectionCheckpoint, RunProgress
from lpcfg.predict.engine import complete
from lpcfg.predict.forms import Form, form_of
from lpcfg.predict.tables import check_installed
from lpcfg.predict.tasks import WORK, Document, RunSpec
from lpcfg.predict.worker import do, worker_of
from lpcfg.text.files import files

MANIFEST = "manifest.json"
FAILURES = "failures.jsonl"
FORMAT = "lpcfg-trees"
Show = Callable[[RunProgress], None]


@dataclass(frozen=True)
class Summary:
    """The end of a run: its progress, and how much of all inputs so far could not be read."""

    progress: RunProgress
    failures: int
    where: str


def run(
    spec: RunSpec,
    documents: Sequence[Document],
    start: Callable[[], Executor],
    show: Show,
    *,
    mix: bool,
) -> Summary:
    """Do what is not done yet, by the executor that `start` makes.

    `mix` lets outputs of other options stay beside those of this run.
    """
    if spec.output == "parquet":
        check_installed()
    folder = spec.folder()
    try:
        with _locked(folder):
            _check_options(folder, spec, mix=mix)
            with start() as executor:
                for _ in range(executor.workers):  # they load the model while this process looks
                    executor.submit(_prepare, spec)  # what there is to do
                _begin(folder, spec)
                checkpoint = CollectionCheckpoint(spec, folder, documents)
                complete(checkpoint, executor, do, spec, watch=partial(show, checkpoint.progress))
            return _sum_up(folder, spec, checkpoint)
    except network_failures() as error:
        raise InputError(
            f"expected a folder to write to, got {error} at {spec.out}: mend it and run again"
        ) from error


def _prepare(spec: RunSpec) -> None:
    worker_of(spec)


@contextlib.contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """Keep other runs out of a folder on a disk."""
    if not isinstance(folder, LocalFolder):
        yield
        return
    folder.root.mkdir(parents=True, exist_ok=True)
    with (folder.root / ".lock").open("wb") as file:
        if try_lock(file.fileno()) is False:
            raise InputError(
                f"expected a folder to write to, got {folder.root}, where another run is writing: "
                "wait for its end or choose another folder"
            )
        yield


def _check_options(folder: Folder, spec: RunSpec, *, mix: bool) -> None:
    """Refuse a folder with outputs of another model or other options."""
    if mix or folder.size(MANIFEST) is None:
        return
    told = spec.differences(json.loads(folder.read(MANIFEST))["options"])
    if told:
        raise InputError(
            f"expected {spec.out} to have trees of this model and these options, found "
            f"{'; '.join(told)}: choose another folder, or say --mix to keep those and add to them"
        )


def _begin(folder: Folder, spec: RunSpec) -> None:
    """Remove what killed runs left half-written, and say whose folder this is."""
    for name in folder.sizes(WORK):
        if name.endswith(UNFINISHED):
            folder.remove(name)
    if folder.size(MANIFEST) is None:
        begun = {"format": FORMAT, "options": spec.recorded(), "finished": None}
        folder.write(MANIFEST, _encode(begun))


def _sum_up(folder: Folder, spec: RunSpec, checkpoint: CollectionCheckpoint) -> Summary:
    failures = checkpoint.failures()
    lines = [
        json.dumps({"input": record.path, "where": one.where, "reason": one.reason})
        for record, one in failures
    ]
    folder.write(FAILURES, "".join(f"{line}\n" for line in lines).encode())
    records = sorted(checkpoint.records.values(), key=lambda one: one.name)
    manifest = {
        "format": FORMAT,
        "options": spec.recorded(),
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "failures": len(failures),
        "documents": [{**asdict(one), "failures": len(one.failures)} for one in records],
    }
    folder.write(MANIFEST, _encode(manifest))
    folder.remove(WORK)
    return Summary(checkpoint.progress, len(failures), folder.where(FAILURES))


def _encode(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


# Inputs -------------------------------------------------------------------------------------------


def find(sources: Iterable[str], form: Form | None, out: str) -> list[Document]:
    """Find the documents of files, folders, globs and URLs.

    A document is named by its path in the folder that was given, or by its file's name. Without a
    form, the name tells it. Output folders inside of input folders are left out.
    """
    found: dict[str, Document] = {}
    for source in sources:
        if source == "-":
            raise InputError("expected files or folders to parse into a folder, got `-`: name them")
        for path in map(str, files(source)):
            if _is_below(path, out):
                continue
            document = _document(source, path, form)
            other = found.setdefault(document.name, document)
            if other.path != document.path:
                raise InputError(
                    f"expected inputs of different names, got {other.path} and {path}: give the "
                    "folder that holds both"
                )
    if not found:
        raise InputError("expected files to parse, got none: check the paths")
    return list(found.values())


def _is_below(path: str, folder: str) -> bool:
    if is_url(path) or is_url(folder):
        return path.startswith(folder.rstrip("/") + "/")
    return Path(path).resolve().is_relative_to(Path(folder).resolve())


def _document(source: str, path: str, form: Form | None) -> Document:
    if is_url(path):
        base = source.partition("*")[0].rpartition("/")[0] if "*" in source else source.rstrip("/")
        name = path.removeprefix(base).lstrip("/") or path.rpartition("/")[2]
        system, inner = filesystem(path)
        try:
            about = system.info(inner)
        except network_failures() as error:
            raise InputError(f"expected a readable file, got {error} at {path}") from error
        stamp = str(
            about.get("ETag")
            or about.get("mtime")
            or about.get("LastModified")
            or about.get("created")
            or ""
        )
        return Document(name, path, form or form_of(path), int(about["size"]), stamp)
    name = os.path.relpath(path, _base(source)) if path != source else os.path.basename(path)
    try:
        about = os.stat(path)
    except OSError as error:
        raise InputError(
            f"expected a readable file, got {error.strerror!r} at {path}: check the path"
        ) from error
    return Document(
        name, os.path.abspath(path), form or form_of(path), about.st_size, str(about.st_mtime_ns)
    )


def _base(source: str) -> str:
    """Return the folder of a source: itself, or what stands before the first part of a pattern."""
    if os.path.isdir(source):
        return source
    fixed = []
    for part in source.split("/"):
        if glob.has_magic(part):
            break
        fixed.append(part)
    return "/".join(fixed) or ("/" if source.startswith("/") else ".")
