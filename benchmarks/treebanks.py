"""Treebanks that benchmarks learn from and parse."""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environment import ROOT

from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.evaluate import Tags
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import sentence_from_tree
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree

TAGS: tuple[Tags, ...] = ("predicted", "gold")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the treebanks' folder and for the output."""
    data = Path(os.environ.get("LPCFG_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=data, help="folder of BANK/{train,dev}.mrg")
    parser.add_argument("--banks", nargs="+", default=["craft", "gum"])
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables there")


def dev_trees(bank: Path) -> list[Tree]:
    """Read all dev trees, normalized."""
    return [tree for tree in map(normalize, read(bank / "dev.mrg")) if tree is not None]


def parsed(parser: Parser, gold: Sequence[Tree], tags: Tags) -> tuple[list[Analysis], float]:
    """Parse the trees' words. Return the analyses and the CPU seconds, after a warm-up."""
    sentences = [sentence_from_tree(tree, tagged=tags == "gold") for tree in gold]
    parser.parse(sentences[:1])
    start = time.process_time()
    return parser.parse(sentences), time.process_time() - start


def f1(gold: Sequence[Tree], found: Sequence[Analysis]) -> float:
    """Compute the strict F1 of the first parses."""
    trees = (one.parses[0].tree if one.parses else None for one in found)
    return evaluate(zip(gold, trees, strict=True)).brackets.f1
