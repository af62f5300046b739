"""`lpcfg treebank` and `--style`."""

import json
from pathlib import Path

import pytest

from lpcfg.cli import main

TREES = "(S1 (HEADING (PP (TO to) (NP (NN school)))))\n"


@pytest.fixture
def bank(tmp_path: Path) -> str:
    path = tmp_path / "bank.mrg"
    path.write_text(TREES, encoding="utf-8")
    return str(path)


def test_stats_print_sizes_and_labels(bank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["treebank", "stats", bank]) == 0
    out = capsys.readouterr().out
    assert "1 trees of 2 words, 2 in the longest" in out
    assert "HEADING 1" in out


def test_check_prints_what_style_would_change(
    bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["treebank", "check", bank, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["style"]["titles"], found["style"]["to"]) == (1, 1)
    assert main(["treebank", "check", bank]) == 0
    assert "HEADING" in capsys.readouterr().out


def test_check_says_where_a_tree_is_malformed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mrg"
    path.write_text("(S (NN a))\n(S (NN b)", encoding="utf-8")
    assert main(["treebank", "check", str(path)]) == 1
    assert "bad.mrg:2:10" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["train", "--name", "x"], ["evaluate", "en"]])
def test_an_unknown_rule_of_style_is_wrong_usage(
    command: list[str], bank: str, capsys: pytest.CaptureFixture[str], checkout_store: str
) -> None:
    name, *rest = command
    assert main([name, *rest, bank, "--style", "titels", "--store", checkout_store]) == 2
    assert "`titels`" in capsys.readouterr().err


@pytest.fixture
def checkout_store() -> str:
    return str(Path(__file__).resolve().parents[2] / "model_store")
