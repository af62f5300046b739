"""What people and scripts see: results on stdout, everything else on stderr."""

import json
import sys
from collections.abc import Iterable, Sequence


def result(text: str) -> None:
    """One line of a result."""
    sys.stdout.write(text + "\n")


def result_json(value: object) -> None:
    """One line of a result, as JSON."""
    result(json.dumps(value, ensure_ascii=False, allow_nan=False))


def result_table(rows: Iterable[Sequence[str]]) -> None:
    """Rows of text, columns aligned."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        result("  ".join(map(str.ljust, row, widths)).rstrip())


def note(text: str) -> None:
    """A line about what is going on."""
    sys.stderr.write(text + "\n")
