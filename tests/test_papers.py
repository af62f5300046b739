"""docs/papers.md names every result of the papers, with modules and tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers.md"
IMPOSSIBLE = "not possible here: "
NOT_DONE = "not done: "
VERDICTS = ("as in the paper", "differs: ", "erratum: ", IMPOSSIBLE, NOT_DONE)


def numbered(kind: str, *numbers: int) -> set[str]:
    return {f"{kind} {n}" for n in numbers}


EXPECTED = {
    "JMLR": numbered("figure", *range(1, 9))
    | numbered("theorem", 3, 6, 8)
    | numbered("lemma", 7, *range(9, 21))
    | {"definition 5", "condition 1", "condition 2", "remark 2", "remark 4"},
    "ACL12": numbered("figure", *range(1, 6))
    | numbered("theorem", 1, 2, 3)
    | numbered("lemma", 1, 2, 3),
    "NAACL": numbered("table", 1, 2, 3) | {"figure 1"},
    "ACL14": numbered("assumption", 1, 2, 3)
    | numbered("theorem", 1, 2)
    | numbered("figure", 1, 2)
    | numbered("table", 1, 2),
    "EMNLP12": {"algorithm 1", "theorem 3.1", "table 1", "figure 1", "figure 2"},
    "STS12": {"table 1", "table 2"},
    "further": set(),
}
"""Every result with a number, by paper."""


class Row(NamedTuple):
    """A line of the table."""

    line: int
    paper: str
    what: str
    modules: list[str]
    shown: list[str]
    verdict: str

    @property
    def place(self) -> str:
        return f"docs/papers.md:{self.line}"


@cache
def rows() -> list[Row]:
    found = []
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), start=1):
        cells = [cell.strip() for cell in line.strip("|").split(" |")]
        if line.startswith("| ") and cells[0] != "paper":
            assert len(cells) == 5, f"docs/papers.md:{number} has {len(cells)} cells"
            paper, what, modules, shown, verdict = cells
            quoted = [re.findall(r"`([^`]+)`", cell) for cell in (modules, shown)]
            found.append(Row(number, paper, what, *quoted, verdict))
    return found


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def exists(shown: str) -> bool:
    """Check that a test, a benchmark or a command of lpcfg is there."""
    if shown.startswith("python -m "):
        return (ROOT / f"{shown.split()[2].replace('.', '/')}.py").is_file()
    if shown.startswith("lpcfg "):
        return (ROOT / "service/lpcfg/cli" / f"{shown.split()[1].replace('-', '_')}.py").is_file()
    file, _, name = shown.partition("::")
    path = ROOT / "tests" / file
    return path.is_file() and (not name or name in functions(path))


def test_every_module_and_test_that_is_named_exists() -> None:
    assert [
        f"{row.place}: {name}"
        for row in rows()
        for name in row.modules
        if not any((folder / name).is_file() for folder in (ROOT / "service" / "lpcfg", ROOT))
    ] + [f"{row.place}: {one}" for row in rows() for one in row.shown if not exists(one)] == []


def test_every_row_has_a_verdict_and_what_is_done_is_shown() -> None:
    for row in rows():
        assert row.paper in EXPECTED, row.place
        assert row.verdict.startswith(VERDICTS), row.place
        if not row.verdict.startswith((IMPOSSIBLE, NOT_DONE)):
            assert row.modules, f"{row.place}: expected a module"
            assert row.shown, f"{row.place}: expected a test or a command"


@pytest.mark.parametrize("paper", EXPECTED)
def test_no_numbered_result_of_a_paper_is_left_out(paper: str) -> None:
    told = " ".join(f"{row.what} " for row in rows() if row.paper == paper).lower()
    missing = [
        one for one in EXPECTED[paper] if not re.search(rf"\b{re.escape(one)}(?![\d.]*\d)", told)
    ]
    assert told
    assert not missing


def test_what_does_not_exist_is_noticed() -> None:
    assert not exists("training/test_theory.py::test_that_nobody_wrote")
    assert not exists("train/test_absent.py")
    assert not exists("python -m benchmarks.absent")
    assert not exists("lpcfg absent")
