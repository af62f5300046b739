"""Trees of a parser to learn from: sure ones alone, and none of them held out."""

import json
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.cli import main
from lpcfg.store.versions import load
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.data.automatic import sure_trees
from lpcfg.training.data.treebank import read_forest
from lpcfg.training.pipeline import train_and_publish
from lpcfg.training.plan import held_out
from tests.small_models import SMALL

TREE = "(S (NP (NNP Zoe)) (VP (VBD zigzagged)) (. .))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the output of a run: sure and unsure trees, a partial one and a failure."""
    rows = [
        {"status": "parsed", "tree": TREE, "lowest_probability": sure}
        for sure in (0.95, 0.2, 0.9, None)
    ]
    rows.append({"status": "partial", "tree": TREE, "lowest_probability": None})
    rows.append({"status": "failed", "tree": None, "lowest_probability": None})
    (tmp_path / "run" / "trees").mkdir(parents=True)
    path = tmp_path / "run" / "trees" / "a.txt.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "run"


def test_only_sure_trees_are_taken(folder: Path) -> None:
    assert sure_trees([str(folder)], 0.9).read() == f"{TREE}\n" * 2
    assert sure_trees([str(folder)] * 2, 0.0).read() == f"{TREE}\n" * 6
    with pytest.raises(TrainingError, match="got none of 4: lower the confidence"):
        sure_trees([str(folder)], 0.99)
    with pytest.raises(TrainingError, match="expected a confidence from 0 to 1, got 90"):
        sure_trees([str(folder)], 90)


def test_a_folder_of_other_files_is_refused(folder: Path) -> None:
    path = folder / "trees" / "a.txt.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(TrainingError, match=r"a\.txt\.jsonl:1: expected a row that"):
        sure_trees([str(folder)], 0.5)
    path.rename(folder / "trees" / "a.mrg")
    with pytest.raises(TrainingError, match="found no JSON lines: parse with that output"):
        sure_trees([str(folder)], 0.5)


def test_trees_of_a_parser_are_never_held_out(tmp_path: Path) -> None:
    gold = tmp_path / "gold.mrg"
    gold.write_text(SMALL.read_text(encoding="utf-8") * 12, encoding="utf-8")
    own = tmp_path / "own.mrg"
    own.write_text(f"{TREE}\n" * 2000)
    forest = read_forest([gold, own])
    n_gold = int((forest.source == 0).sum())
    held = held_out(forest, 600, 1)
    assert held.sum() == min(600, n_gold // 10)
    assert not held[n_gold:].any()
    assert np.array_equal(held[:n_gold], held_out(read_forest(gold), 600))
    assert held_out(forest, 600)[n_gold:].any()


def test_a_model_learns_the_words_of_sure_trees(folder: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    command = ["train", str(SMALL), "--name", "own", "--store", store, "--estimator", "counts"]
    options = ["--rare-threshold", "0", "--rescore", "none", "--workers", "1"]
    assert main([*command, *options, "--automatic", str(folder)]) == 0
    assert "zigzagged" in json.dumps(load("own", store).grammar)
    assert main([*command, *options]) == 0
    assert "zigzagged" not in json.dumps(load("own", store).grammar)


def test_the_rescoring_layer_learns_from_gold_trees_alone(folder: Path, tmp_path: Path) -> None:
    """A parser's trees are learned from beside every fold, and none of them has a chart."""
    gold = tmp_path / "gold.mrg"
    gold.write_text(SMALL.read_text(encoding="utf-8") * 2, encoding="utf-8")
    path = folder / "trees" / "a.txt.jsonl"
    path.write_text(path.read_text() * 50)  # 100 sure trees
    config = TrainingConfig(held_out=0, members=(member("counts"),))
    report = train_and_publish(
        gold,
        config,
        store=tmp_path / "store",
        name="own",
        automatic=sure_trees([str(folder)], 0.9),
    )[1]
    n_gold = read_forest(gold).n_trees
    assert report.rescoring["trees"] == n_gold
    assert report.sizes["trees"] == n_gold + 100
