"""The decorator of compiled kernels, and a place for them where Numba would find none.

Numba keeps what it compiled beside the sources or in the user's cache. Where neither can be written
(an installation that is read-only, a user without a home), it raises at import. A folder of this
user's own among the temporary files then keeps the kernels, for as long as these last. Where there
is none either, every process compiles its kernels anew.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lpcfg.base.collector import collector_paused

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
PACKAGE = Path(__file__).resolve().parents[1]
_to_do: list[Callable[[], None]] = []
_keep = True  # what is compiled; False where nothing can be written


def compiled(
    *, helper: bool = False, borrows: bool = False, **options: Any
) -> Callable[[Kernel], Kernel]:
    """Compile a function; unlike Numba's own decorator, keep its types for those who call it.

    It is called from Python and from kernels, never from C: an entry for C would lengthen compiling
    by a twelfth. A `helper` is called from kernels alone. It has no entry for Python either, which
    saves a sixth, and is kept inside of the kernels that call it; a call from Python would end the
    process. A function that `borrows` only reads and writes arrays of its callers, and makes none.
    Numba then does not count references to them, a fourth of the time of small functions called in
    loops.

    A helper of one caller may have `inline="always"`, and is compiled as a part of it: this saves a
    tenth of a second. In the loops of a kernel that does not borrow, references would be counted
    again: a sixth of the time of `build_chart`.
    """
    import_numba()
    from numba import njit

    options["no_cfunc_wrapper"] = True
    if helper:
        options["no_cpython_wrapper"] = True
    if borrows:
        options["_nrt"] = False
    keep = _keep and not helper
    decorate: Callable[[Kernel], Kernel] = njit(cache=keep, nogil=True, **options)
    return decorate


@contextmanager
def when_compiling(do: Callable[[], None]) -> Iterator[None]:
    """While inside, call `do` each time a kernel of this package has to be compiled."""
    _to_do.append(do)
    try:
        yield
    finally:
        _to_do.remove(do)


@cache
def import_numba() -> None:
    """Import Numba with what it needs to load kernels, but for SciPy's linear algebra.

    Numba imports that only to know that it is there: a tenth of a second, and 20 MB. No kernel here
    calls it. Where a caller's own kernels do, Numba imports it when it compiles them.
    """
    with collector_paused():
        from numba.core import event
        from numba.core.compiler_lock import global_compiler_lock
        from numba.np import linalg

        with global_compiler_lock:
            ensure = linalg.ensure_blas
            linalg.ensure_blas = _left_out
            try:
                import numba.np.arraymath  # noqa: F401
            finally:
                linalg.ensure_blas = ensure
        listen: Any = event.register
        listen("numba:compile", _listener(event.Listener))


def _listener(base: Any) -> Any:
    """Make the listener that Numba tells of each compilation. It pauses the garbage collector
    meanwhile, which saves an eighth of the time, and calls what `when_compiling` was given.

    Compilations are nested, and under a lock. Other packages' kernels are left alone.
    """

    class Listener(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self._paused: list[Any] = []

        def on_start(self, event: Any) -> None:
            if _is_ours(event.data["dispatcher"]):
                self._paused.append(collector_paused())
                self._paused[-1].__enter__()
                for do in _to_do:
                    do()

        def on_end(self, event: Any) -> None:
            if _is_ours(event.data["dispatcher"]):
                self._paused.pop().__exit__(None, None, None)

    return Listener()


def _is_ours(dispatcher: Any) -> bool:
    """Tell whether a kernel is of this package. Loops cut out of functions have no `py_func`, and
    functions made by `exec` may have no module.
    """
    function = getattr(dispatcher, "py_func", None)
    return (getattr(function, "__module__", None) or "").startswith("lpcfg.")


def _left_out() -> None:
    raise ImportError("not needed here")


def find_place() -> None:
    """Name a folder to Numba if it would find none. If there is none, let no kernel be kept."""
    global _keep
    # a user without a home has no `~` either, and pathlib would raise
    home = Path(os.path.expanduser("~/.cache/numba"))
    if _is_writable(PACKAGE / "__pycache__") or _is_writable(home):
        return
    from numba.core import config  # costs a third of a second, so only here

    named = config.CACHE_DIR  # type: ignore[attr-defined]
    if named and _is_writable(Path(named).absolute()):
        return
    try:
        config.CACHE_DIR = str(own_folder(Path(tempfile.gettempdir())))  # type: ignore[attr-defined]
    except OSError:
        _keep = False


def _is_writable(folder: Path) -> bool:
    """Return True if files can be written there, where the folder or what it lies in exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_absolute() and folder.is_dir() and os.access(folder, os.W_OK)


def own_folder(temporary: Path) -> Path:
    """Return a folder that nobody else can write: compiled code is run as it is found."""
    folder = temporary / f"lpcfg-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="lpcfg-kernels-"))
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        return Path(tempfile.mkdtemp(prefix="lpcfg-kernels-"))
    return folder
