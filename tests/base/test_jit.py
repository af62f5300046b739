"""Kernels are compiled wherever the package lies and whoever runs it; helpers are theirs alone."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lpcfg.base.jit import _is_writable, own_folder

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
