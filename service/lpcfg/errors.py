"""What can go wrong, as one hierarchy. Imports nothing.

    LpcfgError
    ├── TreebankError      brackets that are not trees; knows source, line and column
    ├── GrammarError       tables, rules or symbols that contradict each other
    ├── TrainingError      a treebank or setting nothing can be learned from
    ├── StoreError         a model that is absent, torn, altered or cannot be written
    ├── SettingsError      a setting outside what it may be
    ├── InputError         what a caller asked for cannot be answered as asked
    │   └── LimitError     … because it exceeds a stated limit; knows limit and value
    └── Stopped            work was cancelled or ran out of its time
        └── DeadlineError  … because its deadline passed

A message says what was expected, what came, where, and the cure.
"""


class LpcfgError(Exception):
    """Every error this package raises on purpose."""


class TreebankError(LpcfgError):
    """Text that should have been bracketed trees and is not."""

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
    """A stored model that is absent, torn, altered, or cannot be written."""


class SettingsError(LpcfgError):
    """A setting whose value is not one it may have."""


class InputError(LpcfgError):
    """A request that cannot be answered as asked. `pointer` says where, as a JSON pointer."""

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
