"""Kernels are compiled wherever the package lies and whoever runs it; helpers are theirs alone."""

import ast
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpcfg.base.jit import _is_writable, own_folder
from tests.needs import lacking

SAY = "import lpcfg, numba; print(numba.config.CACHE_DIR)"
NOWHERE = """
import sys
from pathlib import Path
import numpy
from lpcfg.base import jit as compiled
compiled.PACKAGE = Path(sys.executable)  # a file
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
    said(NOWHERE, HOME=sys.executable, TMPDIR=str(tmp_path), NUMBA_CACHE_DIR="")
    assert list(tmp_path.glob("lpcfg-kernels-*/**/*.nbi"))


def test_a_place_that_is_named_stays(tmp_path: Path) -> None:
    named = str(tmp_path / "mine")
    said(NOWHERE, HOME=sys.executable, TMPDIR=str(tmp_path / "none"), NUMBA_CACHE_DIR=named)
    assert list((tmp_path / "mine").rglob("*.nbi"))


HOMELESS = """
import os, pwd, runpy
def nobody(uid): raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = nobody
os.access = lambda path, mode: False
runpy.run_module("lpcfg", run_name="__main__")
"""
NO_PLACE = """
import tempfile
def none(): raise FileNotFoundError("No usable temporary directory found")
tempfile.gettempdir = none
"""


def without_home(**variables: str) -> dict[str, str]:
    """Return the variables of a process of a user who has no home and keeps nothing."""
    gone = {"HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"}
    return {name: value for name, value in os.environ.items() if name not in gone} | variables


def test_commands_run_without_a_home_and_a_name(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HOMELESS, "--help"],
        env=without_home(TMPDIR=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "parse" in run.stdout
    assert not list(tmp_path.rglob("~*"))


NAMELESS = 54321
"""A user without an entry in the list of users, as containers are given at random."""


def as_nameless() -> list[str]:
    """Return what runs a command as that user, who reads but does not write what root may read:
    this Python may lie in a folder of root's.
    """
    with pytest.raises(KeyError):
        pwd.getpwuid(NAMELESS)
    program = shutil.which("setpriv")
    if program is None or os.getuid() != 0:
        lacking("only root with setpriv can run a command as a user without a name")
    reads = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    return [program, f"--reuid={NAMELESS}", f"--regid={NAMELESS}", "--clear-groups", *reads]


def test_a_user_without_a_name_has_a_folder_for_kernels(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "temporary"
    folder.mkdir()
    folder.chmod(0o1777)
    run = subprocess.run(
        [*as_nameless(), sys.executable, "-c", f"{SAY}\nimport lpcfg.grammar.tagging"],
        env=without_home(TMPDIR=str(folder)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    (made,) = folder.iterdir()
    assert run.stdout.strip() == str(made)
    found = made.stat()
    assert (found.st_uid, found.st_mode & 0o777) == (NAMELESS, 0o700)


def test_without_any_folder_kernels_are_compiled_and_not_kept() -> None:
    code = f"{NO_PLACE}{NOWHERE}print(tagging.templates_of.stats.cache_path)"
    for named in ("", f"{sys.executable}/kernels"):
        assert said(code, HOME=sys.executable, NUMBA_CACHE_DIR=named) == "None"


def test_only_folders_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert _is_writable(tmp_path / "new" / "newer")
    assert not _is_writable(tmp_path / "file" / "new")
    assert not _is_writable(Path("~/unknown"))


def test_kernels_are_loaded_without_linear_algebra_which_others_still_find() -> None:
    own = "import sys, lpcfg.kinds.constituency.predict; print('scipy.linalg' in sys.modules)"
    others = "import numba, numpy; print(numba.njit(lambda a: a @ a)(2 * numpy.eye(2))[1, 1])"
    assert said(f"{own}\n{others}").split() == ["False", "4.0"]


OTHERS = """
import lpcfg.base.jit, numba
lpcfg.base.jit.import_numba()
names = {}
exec("def plus(x): return x + 1", names)

@numba.jit(forceobj=True)
def counted(n):
    total = 0
    for i in range(n):
        total += i
    return object(), total

print(numba.njit(names["plus"])(1), counted(5)[1])
"""


def test_functions_without_a_module_and_lifted_loops_are_compiled() -> None:
    assert said(OTHERS) == "2 10"


def test_commands_are_listed_without_pydantic_and_kernels() -> None:
    code = "import sys, lpcfg.cli; print(sys.modules.keys() & {'pydantic', 'numba', 'scipy'})"
    assert said(code) == "set()"


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


ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "service" / "lpcfg", ROOT / "tests", ROOT / "benchmarks")


def marks(node: ast.AST) -> str:
    """Return the options of a kernel's decorator; nothing for what is not compiled."""
    for one in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
        if ast.unparse(one).startswith("compiled("):
            return ast.unparse(one)
    return ""


def read_by_python(node: ast.AST) -> Iterator[str]:
    """Yield the names that are read outside of kernels, those of other modules as `module.name`."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            yield f"{one.value.id}.{one.attr}"
        if not marks(one):
            yield from read_by_python(one)


def calls_of_helpers(sources: dict[Path, str]) -> list[str]:
    """List the helpers of kernels that modules read outside of kernels."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    helpers = {
        (path.stem, node.name): path
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "helper=True" in marks(node)
    }
    found = []
    for path, tree in trees.items():
        named = {f"{home}.{name}" for home, name in helpers}
        named |= {name for (_, name), home in helpers.items() if home == path}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                home = node.module.rpartition(".")[2]
                named |= {
                    one.asname or one.name for one in node.names if (home, one.name) in helpers
                }
        found += [f"{path}: {name}" for name in read_by_python(tree) if name in named]
    return found


def test_helpers_of_kernels_are_called_by_kernels_alone() -> None:
    paths = [path for folder in FOLDERS for path in folder.rglob("*.py")]
    assert calls_of_helpers({path: path.read_text(encoding="utf-8") for path in paths}) == []


def test_a_call_of_a_helper_from_python_is_found() -> None:
    sources = {
        Path("kernels.py"): "@compiled(helper=True)\ndef twice(x): return 2 * x\n"
        "@compiled()\ndef kernel(x): return twice(x)\n",
        Path("other.py"): "from kernels import twice\ndef call(): return twice(1)\n",
        Path("third.py"): "import kernels\nkernels.twice(1)\n",
    }
    assert calls_of_helpers(sources) == ["other.py: twice", "third.py: kernels.twice"]
