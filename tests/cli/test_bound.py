"""`lpcfg bound` prints the theorems' numbers."""

import json
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.grammar.known import read_lpcfg
from lpcfg.theory.bound import theorem_8
from lpcfg.theory.exact_moments import ExactMoments

GRAMMAR = Path(__file__).resolve().parents[2] / "examples" / "two_state.toml"


def test_numbers_are_printed_and_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epsilon", "0.2", "--delta", "0.1", "--size", "2"]
    moments = ExactMoments.of(read_lpcfg(GRAMMAR)).scaled()
    found = theorem_8(moments, 0.2, 0.1, 2)
    assert main(["bound", str(GRAMMAR), *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["omega_trees"] == found.omega_trees
    assert told["symbols"][0]["sigma"] == found.symbols[0].sigma
    assert told["acl_2012"]["nodes"] > 0
    assert main(["bound", str(GRAMMAR), *options]) == 0
    printed = capsys.readouterr().out
    assert f"with {found.omega_trees:.3g} trees for Ω" in printed
    assert "worst cases" in printed


def test_an_infinite_bound_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grammar = tmp_path / "grammar.toml"
    grammar.write_text(
        '[states]\nS = 2\nP = 1\n[root]\nS = [0.5, 0.5]\n[rules]\n"S -> S P" = '
        '[[[0.1], [0.1]], [[0.0], [0.0]]]\n"S -> P P" = [[[0.8]], [[1.0]]]\n[words.P]\nx = [1.0]\n'
    )
    assert main(["bound", str(grammar), "--size", "2"]) == 0
    printed = capsys.readouterr().out
    assert "The bound is infinite: `S` in state 1 has no tree of 2 rules." in printed
    assert "infinitely many" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["absent.toml"], 1, "absent.toml"),
        ([str(GRAMMAR), "--epsilon", "0"], 2, "expected ε above 0"),
        ([str(GRAMMAR), "--size", "0"], 2, "--size"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str], code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bound", *arguments]) == code
    assert problem in capsys.readouterr().err
