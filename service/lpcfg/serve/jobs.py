"""Jobs on disk: lines to parse, and answers as they come, for as long as they are kept.

A job is a folder, named by its id, so that it survives the process and other processes see it:

job.json        whose it is, what was asked, how many lines it has; never changed
lines.ndjson    the body as it came
answers.ndjson  a line for each line answered, in order; the last one may be torn after a crash
progress.json   how many there are, replaced whole
attempts        a byte for each attempt at the next lines, the present one included; who leaves one
                in order takes the byte away, who dies does not
lock            held by the process that works on the job, until it ends, however it ends
"""

import hashlib
import json
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any

from lpcfg.base.errors import SettingsError
from lpcfg.base.files import atomic_write, sync_folder, try_lock
from lpcfg.serve.http.problems import Refused
from lpcfg.settings import Settings

LINES, ANSWERS = "lines.ndjson", "answers.ndjson"
ATTEMPTS = 2
"""Attempts at the next lines that may die before their job is set aside."""
_JOB, _PROGRESS, _ATTEMPTS, _LOCK = "job.json", "progress.json", "attempts", "lock"
_DRAFT, _GONE = ".new-", ".gone-"
_AGAIN = 60.0  # seconds after which a job may be offered again
_HOUR = 3600.0
_DRAFT_HOURS = 24.0  # for the slowest of bodies; then its process has died
_ID_BYTES = 16


@dataclass(frozen=True)
class Facts:
    """The facts of a job, which never change."""

    id: str
    client: str
    key: str | None
    """The name of its key, if keys are asked for: nobody else sees the job."""
    created: float
    lines: int
    options: dict[str, Any]
    trace: str = ""
    """The trace and the span of the request that left it."""


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    answered: int = 0
    problems: int = 0
    done: bool = False
    failed: bool = False
    """True if the job is set aside: too many attempts at its next lines have died."""


@dataclass(frozen=True)
class Job:
    """One job on disk."""

    folder: Path
    facts: Facts

    @property
    def answers(self) -> Path:
        return self.folder / ANSWERS

    def progress(self) -> Progress | None:
        """Return how far the job is; None if nobody has begun it."""
        try:
            return Progress(**json.loads((self.folder / _PROGRESS).read_bytes()))
        except FileNotFoundError:
            return None

    def save(self, progress: Progress) -> None:
        """Write how far the job is, in one step."""
        atomic_write(self.folder / _PROGRESS, json.dumps(asdict(progress)).encode())

    def attempts(self) -> int:
        """Return how many attempts at the next lines have begun and were not left in order."""
        try:
            return (self.folder / _ATTEMPTS).stat().st_size
        except FileNotFoundError:
            return 0

    def begin_attempt(self) -> None:
        """Count an attempt at the next lines, durably."""
        with open(self.folder / _ATTEMPTS, "ab") as file:
            file.write(b".")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)

    def end_attempt(self, left: int) -> None:
        """Leave so many attempts counted. This needs no room, so it works on a full disk."""
        with suppress(FileNotFoundError):  # removed meanwhile
            os.truncate(self.folder / _ATTEMPTS, left)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the job's lock, and tell whether it is ours: no other process works on the job."""
        try:
            file = open(self.folder / _LOCK, "ab")  # noqa: SIM115
        except FileNotFoundError:  # removed meanwhile
            yield False
            return
        with file:
            yield try_lock(file.fileno()) is True


class Draft:
    """A job whose body is being received. It is a job once it is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BufferedWriter | None = None
        self.bytes = 0
        self._lines = 0
        self._last = b"\n"

    def open(self) -> BufferedWriter:
        """Open the file of the body, whose folder is made before."""
        if self._file is None:
            self._folder.mkdir(mode=0o700)
            self._file = open(self._folder / LINES, "wb")  # noqa: SIM115
        return self._file

    def write(self, chunk: bytes) -> None:
        """Add a part of the body."""
        self.open().write(chunk)
        self.bytes += len(chunk)
        self._lines += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last

    @property
    def lines(self) -> int:
        """How many lines the body has; what follows the last line break is one more."""
        return self._lines + (self._last != b"\n")

    def finish(self, facts: Facts, home: Path) -> Job:
        """Make it a job, durably, or find the one of this id that is there already."""
        with self.open() as file:
            file.flush()
            os.fsync(file.fileno())
        atomic_write(self._folder / _JOB, json.dumps(asdict(facts)).encode())
        sync_folder(self._folder)
        folder = home / facts.id
        try:
            self._folder.rename(folder)
        except OSError:
            if not (folder / _JOB).exists():  # else it is there already
                raise
        sync_folder(home)
        self.drop()
        return Job(folder, facts)

    def drop(self) -> None:
        """Remove what was received, unless it has become a job."""
        if self._file is not None:
            with suppress(OSError):  # what was not written is not wanted any more
                self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Jobs:
    """The jobs in a folder. Files are small or read in chunks; other processes may use it too."""

    def __init__(self, home: Path, most: int, hours: float) -> None:
        self.home = home
        self._most = most
        self._hours = hours
        self._known: dict[str, Facts] = {}

    @classmethod
    def of(cls, settings: Settings) -> "Jobs | None":
        """Open the folder of the settings, if there is one. Raise if it cannot be written."""
        home = settings.jobs_dir
        if home is None:
            return None
        try:
            home.mkdir(parents=True, exist_ok=True)
            (home / f"{_GONE}{secrets.token_hex(8)}").mkdir()
        except OSError as error:
            raise SettingsError(
                f"expected a folder for jobs that can be written, got {home}: {error.strerror}: "
                "correct LPCFG_JOBS_DIR, or let this user write there"
            ) from error
        return cls(home, settings.jobs, settings.job_hours)

    def __iter__(self) -> Iterator[Job]:
        """Return the jobs that are kept, oldest first."""
        names = {entry.name for entry in os.scandir(self.home) if not entry.name.startswith(".")}
        for name in self._known.keys() - names:
            del self._known[name]
        found = [job for name in names if (job := self.find(name)) is not None]
        return iter(sorted(found, key=lambda job: job.facts.created))

    def find(self, name: str) -> Job | None:
        """Return the job with this id, if there is one."""
        if not name.isalnum():  # no path
            return None
        folder = self.home / name
        try:
            if name not in self._known:
                self._known[name] = Facts(**json.loads((folder / _JOB).read_bytes()))
            elif not folder.exists():
                return None
        except (OSError, ValueError, TypeError):  # removed meanwhile, or none of ours
            return None
        return Job(folder, self._known[name])

    def check(self, client: str) -> None:
        """Raise Refused if no more jobs are kept. Half of them are the most for one client."""
        of = Counter(job.facts.client for job in self)
        most = -(-self._most // 2)
        if of[client] >= most or of.total() >= self._most:
            raise Refused(
                "overload",
                f"expected at most {self._most} jobs to be kept, and {most} of one client, got "
                f"{of.total()} and {of[client]}: delete those whose answers you have",
                retry_after=_AGAIN,
            )

    def draft(self) -> Draft:
        """Begin to receive a job."""
        return Draft(self.home / f"{_DRAFT}{secrets.token_hex(8)}")

    def expires(self, job: Job) -> float:
        """Return the time when a job is removed, however far it is then."""
        return job.facts.created + self._hours * _HOUR

    def remove(self, job: Job) -> None:
        """Remove a job. Whoever works on it notices."""
        gone = self.home / f"{_GONE}{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            job.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the jobs whose time is over, and what dead processes have left."""
        now = time.time()
        for job in self:
            if self.expires(job) < now:
                self.remove(job)
        for entry in os.scandir(self.home):
            with suppress(FileNotFoundError):
                old = entry.stat().st_mtime < now - _DRAFT_HOURS * _HOUR
                if entry.name.startswith(_GONE) or (entry.name.startswith(_DRAFT) and old):
                    shutil.rmtree(entry.path, ignore_errors=True)


def new_id(client: str, asked: str | None) -> str:
    """Return a job's id: random, or the same whenever the same client sends the same key again."""
    if asked is None:
        return secrets.token_hex(_ID_BYTES)
    return hashlib.sha256(f"{client}\0{asked}".encode()).hexdigest()[: 2 * _ID_BYTES]
