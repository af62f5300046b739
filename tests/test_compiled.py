"""Kernels are compiled wherever the package lies and whoever runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lpcfg.compiled import _is_writable, own_folder

SAY = "import lpcfg, numba; print(numba.config.CACHE_DIR)"
NOWHERE = """
from pathlib import Path
import numpy
from lpcfg import compiled
compiled._is_writable = lambda folder: False
compiled.find_place()
from lpcfg.grammar import tagging
tagging.templates_of(numpy.zeros((1, 11), numpy.int64))
"""


def said(code: str, **variables: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_without_any_place_kernels_lie_among_temporary_files(tmp_path: Path) -> None:
    said(NOWHERE, TMPDIR=str(tmp_path), NUMBA_CACHE_DIR="")
    assert list(tmp_path.glob("lpcfg-kernels-*/**/*.nbi"))


def test_a_place_that_is_named_stays(tmp_path: Path) -> None:
    said(NOWHERE, TMPDIR=str(tmp_path / "none"), NUMBA_CACHE_DIR=str(tmp_path / "mine"))
    assert list((tmp_path / "mine").rglob("*.nbi"))


def test_only_folders_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert _is_writable(tmp_path / "new" / "newer")
    assert not _is_writable(tmp_path / "file" / "new")
    assert not _is_writable(Path("~/unknown"))


def test_an_ordinary_installation_is_left_to_numba() -> None:
    assert said(SAY) == os.environ.get("NUMBA_CACHE_DIR", "")


def test_a_folder_that_another_user_could_write_is_not_used(tmp_path: Path) -> None:
    mine = own_folder(tmp_path)
    assert own_folder(tmp_path) == mine
    assert mine.stat().st_mode & 0o077 == 0
    mine.chmod(0o777)
    other = own_folder(tmp_path)
    assert other != mine
    assert other.stat().st_mode & 0o077 == 0
    shutil.rmtree(other)
