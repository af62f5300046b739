"""Write tables in Markdown, and put them into their place in a file."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.environment import Record


def show(
    benchmark: str,
    arguments: argparse.Namespace,
    found: Iterable[Record],
    page: Callable[[list[Record]], str],
) -> None:
    """Print records as they come, then write their page into its file, or print it."""
    records: list[Record] = []
    for record in found:
        records.append(record)
        print(json.dumps(record), file=None if arguments.json else sys.stderr, flush=True)
    if arguments.write:
        put(arguments.write, benchmark, page(records))
    elif not arguments.json:
        print(page(records))


def origin(benchmark: str, record: Record) -> str:
    """Return the command that printed the tables, and the environment of its figures."""
    command = shlex.join(["python", "-m", f"benchmarks.{benchmark}", *sys.argv[1:]])
    return (
        f"`OMP_NUM_THREADS={record['threads']} {command}`, commit {record['commit']}, "
        f"{record['cpu']}, numpy {record['numpy']}, numba {record['numba']}, seed {record['seed']}."
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write rows of cells as a table. The first row is the heading."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def put(path: Path, benchmark: str, text: str) -> None:
    """Replace the text between the two marks of a benchmark in a file."""
    begin, end = f"<!-- {benchmark}: begin -->", f"<!-- {benchmark}: end -->"
    whole = path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        sys.exit(f"{path}: expected the lines `{begin}` and `{end}`, found none: add them")
    before, _, rest = whole.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
