"""Files are there whole or not at all, whatever happens while they are written."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from lpcfg.base.files import (
    Folder,
    LocalFolder,
    RemoteFolder,
    atomic_write,
    atomic_writer,
    open_place,
    try_lock,
)
from tests.s3 import bucket

__all__ = ["bucket"]

OLD, NEW = b"old\n" * 1000, b"new\n" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(OLD)
    return tmp_path / "a.txt"


@pytest.fixture(params=["local", "local with scratch", "remote"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "remote":
        return RemoteFolder(fsspec.filesystem("memory"), f"/{uuid4().hex}")
    return LocalFolder(tmp_path, ".work" if "scratch" in request.param else "")


def test_a_file_is_replaced_as_a_whole(path: Path) -> None:
    seen = []
    with atomic_writer(path) as file:
        for start in range(0, len(NEW), 1 << 16):
            file.write(NEW[start : start + (1 << 16)])
            seen.append(path.read_bytes())
    assert set(seen) == {OLD}
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == ["a.txt"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match=os.strerror(number)):
        atomic_write(path, NEW)
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == ["a.txt"]


FULL = """
import resource, sys
from pathlib import Path
from lpcfg.base.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    atomic_write(Path(sys.argv[1]), b"new" * 100_000)
except OSError as error:
    print(error.errno)
"""


def test_a_disk_that_is_full_in_the_middle_leaves_the_old_file(path: Path) -> None:
    run = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    assert int(done.stdout) == errno.EFBIG  # the limit's way to say ENOSPC
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == ["a.txt"]


def _interrupted(folder: Folder, name: str, error: type[BaseException]) -> None:
    with folder.writer(name) as file:
        file.write(NEW * 20)  # of object stores' blocks several
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
@pytest.mark.parametrize("kind", ["local", "s3"])
def test_what_ends_the_writer_leaves_the_old_file(
    kind: str, error: type[BaseException], bucket: str, tmp_path: Path
) -> None:
    """Files of fsspec's own memory are no test: they are there from their first byte on."""
    place = bucket if kind == "s3" else tmp_path
    folder: Folder = open_place(place, LocalFolder, RemoteFolder)
    folder.write("sub/a", OLD)
    with pytest.raises(error):
        _interrupted(folder, "sub/a", error)
    assert folder.read("sub/a") == OLD
    assert folder.sizes("") == {"sub/a": len(OLD)}


KILLED = """
import os, signal, sys
from pathlib import Path
from lpcfg.base.files import atomic_writer
with atomic_writer(Path(sys.argv[1])) as file:
    file.write(b"new" * 100_000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_the_old_file(path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    assert all(one == "a.txt" or one.endswith(".tmp") for one in os.listdir(path.parent))


def test_a_folder_lists_and_reads_what_was_written(folder: Folder) -> None:
    folder.write("sub/a.json", b"1")
    folder.write("sub/b.json", b"22")
    folder.write("sub/deep/c.json", b"333")
    folder.write("sub/d.txt", b"4444")
    assert folder.entries("none") == {}
    assert folder.read_all("none", ".json") == {}
    assert folder.size("none") is None
    files = dict.fromkeys(("a.json", "b.json", "d.txt"), "file")
    assert folder.entries("sub") == {**files, "deep": "folder"}
    assert folder.read_all("sub", ".json") == {"a.json": b"1", "b.json": b"22"}
    assert folder.sizes("sub/deep") == {"sub/deep/c.json": 3}
    with folder.open("sub/b.json") as file:
        assert (folder.size("sub/b.json"), file.read()) == (2, b"22")
    folder.remove("sub/b.json")
    folder.remove("sub/deep")
    folder.remove("none")
    assert folder.sizes("sub") == {"sub/a.json": 1, "sub/d.txt": 4}


def test_a_file_is_created_once(folder: Folder) -> None:
    folder.write("sub/other", b"")
    folder.create("sub/a", b"1")
    with pytest.raises(FileExistsError):
        folder.create("sub/a", b"2")
    assert folder.read("sub/a") == b"1"


def test_a_file_url_is_a_folder_on_the_disk(tmp_path: Path) -> None:
    def local(path: Path) -> object:
        return path

    for place in (tmp_path, str(tmp_path), tmp_path.as_uri()):
        assert open_place(place, local, lambda *_: None) == tmp_path
    found = open_place("memory://a/b/", local, lambda _, root: root)
    assert found == "/a/b"


def _no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_lock_is_held_until_its_file_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock: Callable[..., bool | None] = try_lock
    with path.open() as one, path.open() as other:
        assert lock(one.fileno()) is True
        assert lock(other.fileno()) is False
        assert lock(other.fileno(), shared=True) is False
        one.close()
        assert lock(other.fileno()) is True
        monkeypatch.setattr(fcntl, "flock", _no_locks)
        assert lock(other.fileno()) is None
        with suppress(OSError):
            other.close()
