"""The errors this package raises on purpose, as one hierarchy. This module imports nothing.

    LpcfgError
    ├── TreebankError      text that is not bracketed trees; has source, line and column
    ├── GrammarError       tables, rules or symbols that contradict each other
    ├── TrainingError      a treebank or setting from which nothing can be learned
    ├── StoreError         a stored model that is missing, incomplete, changed or not writable
    ├── SettingsError      a setting with a value that is not allowed
    ├── WorkerError        a worker that died over its work, or none to be had
    │   └── SchedulerError … because the scheduler of all workers is gone
    ├── InputError         a request that cannot be answered as it stands
    │   └── LimitError     … because it exceeds a stated limit; has limit and value
    └── Stopped            work was cancelled or ran out of time
        └── DeadlineError  … because its deadline passed

A message says what was expected, what came instead, where, and what to do.
"""


class LpcfgError(Exception):
    """Base class of every error this package raises on purpose."""

    def __init_subclass__(cls) -> None:
        """Show the errors of this module under their public names, as in `lpcfg.InputError`."""
        if cls.__module__ == __name__:
            cls.__module__ = "lpcfg"

    def __reduce__(self) -> "tuple[object, ...]":
        """Pickle the error by what it holds: pickle does not know arguments that need names."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[LpcfgError], given: tuple[object, ...], state: dict[str, object]
) -> LpcfgError:
    """Make an error again from a pickle."""
    error = kind.__new__(kind, *given)
    error.__dict__.update(state)
    return error


class TreebankError(LpcfgError):
    """Text that was expected to be bracketed trees and is not."""

    def __init__(self, problem: str, *, source: str, line: int, column: int) -> None:
        super().__init__(f"{source}:{line}:{column}: {problem}")
        self.problem = problem
        self.source = source
        self.line = line
        self.column = column


class GrammarError(LpcfgError):
    """Symbols, rules or tables that contradict each other."""


class TrainingError(LpcfgError):
    """A treebank or a setting from which nothing can be learned."""


class StoreError(LpcfgError):
    """A stored model that is missing, incomplete, changed, or cannot be written."""


class SettingsError(LpcfgError):
    """A setting with a value that is not allowed."""


class WorkerError(LpcfgError):
    """Work that a worker did not do to its end, because it died or there is none."""


class SchedulerError(WorkerError):
    """Work that was lost with the scheduler of all workers. It is no fault of the work."""


class InputError(LpcfgError):
    """A request that cannot be answered as it stands. `pointer` is a JSON pointer to the fault."""

    def __init__(self, message: str, *, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class LimitError(InputError):
    """A request beyond a stated limit."""

    def __init__(self, message: str, *, limit: int, value: int, pointer: str = "") -> None:
        super().__init__(message, pointer=pointer)
        self.limit = limit
        self.value = value


class Stopped(LpcfgError):
    """Work that was cancelled before it was done."""


class DeadlineError(Stopped):
    """Work that was stopped because its deadline passed."""
