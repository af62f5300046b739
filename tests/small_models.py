"""Models of the small treebank of the examples, trained once for all tests."""

from functools import cache
from itertools import islice
from pathlib import Path

from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train
from lpcfg.trees.brackets import read, write
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree

SMALL = Path(__file__).resolve().parents[1] / "examples" / "small.mrg"


@cache
def trees() -> tuple[Tree, ...]:
    """Read the treebank, normalized."""
    return tuple(tree for tree in map(normalize, read(SMALL)) if tree is not None)


@cache
def counts(horizontal: int = 1, rare_threshold: int = 3) -> Model:
    """Train the treebank's PCFG, with a fallback grammar of bare intermediate symbols."""
    config = TrainingConfig(
        horizontal=1 if horizontal else 0,
        sibling_threshold=2,
        rare_threshold=rare_threshold,
        members=(member("counts"),),
    )
    return train(SMALL, config)[0]


@cache
def spectral(members: int = 1, horizontal: int = 1) -> Model:
    """Train a spectral model with four states per symbol and one seed per member."""
    config = TrainingConfig(
        horizontal=1 if horizontal else 0,
        sibling_threshold=2,
        members=tuple(member("spectral", states=4) for _ in range(members)),
    )
    return train(SMALL, config)[0]


@cache
def parser(members: int = 1) -> Parser:
    """Create a parser of the spectral model."""
    return Parser(spectral(members))


def from_real_trees(treebanks: Path, estimator: str, folder: Path) -> Model:
    """Train a model with eight states per symbol on the first 1,500 trees of gum/train, without
    the layer and the calibration that lie over its tensors.
    """
    bank = folder / "gum.mrg"
    first = islice(read(treebanks / "gum" / "train.mrg"), 1500)
    bank.write_text("\n".join(map(write, first)), encoding="utf-8")
    members = (member(estimator, states=8),)
    return train(bank, TrainingConfig(members=members, rescoring=None, held_out=0))[0]


def real_sentences(treebanks: Path, least: int, most: int, count: int) -> list[tuple[str, ...]]:
    """Return the first sentences of gum/dev with lengths in this range."""
    found = (
        tuple(tree.tokens()) for tree in map(normalize, read(treebanks / "gum" / "dev.mrg")) if tree
    )
    return list(islice((words for words in found if least <= len(words) <= most), count))
