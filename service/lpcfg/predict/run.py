"""Run a job over inputs: find them, check the output folder, share the work out, sum up."""

import contextlib
import glob
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from lpcfg.base.errors import InputError
from lpcfg.base.urls import filesystem, is_url, network_failures
from lpcfg.predict.crew import Crew
from lpcfg.predict.folder import WORK, Folder, open_folder
from lpcfg.predict.forms import Form, Output, form_of
from lpcfg.predict.job import Document, Job
from lpcfg.predict.ledger import Ledger, Progress
from lpcfg.predict.tables import check_installed
from lpcfg.text.files import files

MANIFEST = "manifest.json"
FAILURES = "failures.jsonl"
FORMAT = "lpcfg-trees"
_EVERY = 0.5
"""Seconds between two looks at the progress."""
Show = Callable[[Progress], None]


@dataclass(frozen=True)
class Summary:
    """The end of a run: its progress, and how much of all inputs so far could not be read."""

    progress: Progress
    failures: int
    where: str


def run(
    job: Job, documents: Sequence[Document], hire: Callable[[Job], Crew], show: Show, *, mix: bool
) -> Summary:
    """Do what is not done yet. `mix` lets trees of other options stay beside those of this run."""
    if job.output is Output.PARQUET:
        check_installed()
    folder = open_folder(job.out)
    try:
        with _alone(folder):
            _check_options(folder, job, mix=mix)
            crew = hire(job)
            try:
                _begin(folder, job)
                ledger = Ledger(job, folder, documents)
                crew.run(ledger, lambda: show(ledger.progress), _EVERY)
            finally:
                crew.end()
            if ledger.broken is not None:
                raise InputError(f"{ledger.broken}: mend it and run again; nothing done is lost")
            return _sum_up(folder, job, ledger)
    except network_failures() as error:
        raise InputError(
            f"expected a folder to write to, got {error} at {job.out}: mend it and run again"
        ) from error


def _alone(folder: Folder) -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    lock = folder.lock()
    if lock is not None:
        stack.enter_context(lock)
    return stack


def _check_options(folder: Folder, job: Job, *, mix: bool) -> None:
    """Refuse a folder with trees of another model or other options."""
    if folder.size(MANIFEST) is None:
        return
    there = json.loads(folder.read(MANIFEST))["options"]
    wanted = job.options()
    if there == wanted or mix:
        return
    told = [
        f"{name} {there.get(name)}, not {value}"
        for name, value in wanted.items()
        if there.get(name) != value
    ]
    raise InputError(
        f"expected {job.out} to have trees of this model and these options, found "
        f"{'; '.join(told)}: choose another folder, or say --mix to keep those and add to them"
    )


def _begin(folder: Folder, job: Job) -> None:
    """Remove what killed runs left half-written, and say whose folder this is."""
    for name in folder.sizes(WORK):
        if name.endswith(".tmp"):
            folder.remove(name)
    if folder.size(MANIFEST) is None:
        folder.write(
            MANIFEST, _encode({"format": FORMAT, "options": job.options(), "finished": None})
        )


def _sum_up(folder: Folder, job: Job, ledger: Ledger) -> Summary:
    failures = ledger.failures()
    lines = [
        json.dumps({"input": marker.path, "where": one.where, "reason": one.reason})
        for marker, one in failures
    ]
    folder.write(FAILURES, "".join(f"{line}\n" for line in lines).encode())
    markers = sorted(ledger.markers.values(), key=lambda one: one.name)
    manifest = {
        "format": FORMAT,
        "options": job.options(),
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "failures": len(failures),
        "documents": [{**asdict(one), "failures": len(one.failures)} for one in markers],
    }
    folder.write(MANIFEST, _encode(manifest))
    folder.remove(WORK)
    return Summary(ledger.progress, len(failures), folder.where(FAILURES))


def _encode(value: dict[str, object]) -> bytes:
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
