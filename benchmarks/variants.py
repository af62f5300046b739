"""Experiments with the estimators that the papers report or propose, one bank at a time.

    OMP_NUM_THREADS=1 python -m benchmarks.variants --banks gum --write docs/results.md

- em-steps: EM's F1 on dev every ten steps to 100 (table 1 of the 2013 paper).
- markovized: the PCFG whose constituents bear their parents' labels (v = 2) and whose intermediate
  symbols bear their last child's (h = 1), as in section 4.3 of the same paper.
- semi-supervised: raw text is parsed, and trees likely to be right take part in Ω, with all of
  their nodes. Moments are those of the treebank alone (section 9 of the JMLR paper).
- states: m of the most frequent symbols by coordinate search on F1 of held-out trees (Narayan and
  Cohen 2016). Projections are computed once, with twice the states; a smaller m truncates them.

The last two are repeated with `--seeds`: the tagger's seed, another part of the text, and other
held-out trees. The estimator itself has no random numbers.

F1 is strict, of tensors alone, with the parser's own tags, over every k-th dev sentence.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks import treebanks
from benchmarks.environment import Record, environment
from benchmarks.page import origin, put, table

from lpcfg.grammar.tables import Ints, Tables
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import ENGLISH, sentence_from_tree
from lpcfg.text.files import texts
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.held_out import HeldOut
from lpcfg.training.data.treebank import (
    Forest,
    forest_of,
    lexicon_of,
    part_of,
    read_forest,
    strees_of,
)
from lpcfg.training.estimators.compact import tables_of
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.moments import Occurrences, Projection
from lpcfg.training.estimators.registry import estimator
from lpcfg.training.estimators.spectral import SpectralConfig, project
from lpcfg.training.pipeline import train
from lpcfg.training.stages import Stages
from lpcfg.trees.binarize import binarize, restore
from lpcfg.trees.brackets import write
from lpcfg.trees.normalize import normalize
from lpcfg.trees.style import read_normalized
from lpcfg.trees.tree import Tree

EVERY = 10
"""Steps of EM between two scores."""
PARENT = "^"
LONGEST = 40
"""Words of the longest sentence of raw text that is parsed: no longer tree is likely."""
HELD_OUT, RUN = 600, 50
"""Trees by which states are searched, in runs of neighbours."""
FACTORS = (0.25, 0.5, 2.0)
"""Numbers of states that are tried, as multiples of the symbol's own."""


def main() -> None:
    arguments = _arguments()
    records: list[Record] = []
    for bank in arguments.banks:
        for name in arguments.experiments:
            for record in EXPERIMENTS[name](arguments.data / bank, arguments):
                told = {"experiment": name, "bank": bank, **record, **environment(1)}
                records.append(told)
                print(json.dumps(told), file=None if arguments.json else sys.stderr, flush=True)
    if arguments.write:
        put(arguments.write, "variants", _page(records))
    elif not arguments.json:
        print(_page(records))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    treebanks.add_arguments(parser)
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS), choices=EXPERIMENTS)
    parser.add_argument("--states", type=int, nargs="+", default=[16], help="of EM, and spectral")
    parser.add_argument("--steps", type=int, default=100, help="of EM")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="every K-th dev tree")
    parser.add_argument("--symbols", type=int, default=16, help="whose states are searched")
    parser.add_argument("--text", type=Path, nargs="*", default=None, help="raw text to parse")
    parser.add_argument("--sentences", type=int, default=10_000, help="of raw text, at most")
    parser.add_argument(
        "--least", type=float, nargs="+", default=[0.5], help="probability of trees to keep"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the last two")
    return parser.parse_args()


def _gold(bank: Path, arguments: argparse.Namespace) -> list[Tree]:
    return treebanks.dev_trees(bank)[:: arguments.every]


def _f1(model: Model, gold: Sequence[Tree]) -> float:
    found, _ = treebanks.parsed(Parser(model), gold, "predicted")
    return treebanks.f1(gold, found)


def _learned(file: Path, name: str = "spectral", seed: int = 1, **settings: object) -> Model:
    """Learn a model of one estimator from all trees of a file."""
    members = (member(name, **settings),)
    return train(file, TrainingConfig(members=members, rescoring=None, held_out=0, seed=seed))[0]


# EM, step by step ---------------------------------------------------------------------------------


def em_steps(bank: Path, arguments: argparse.Namespace) -> Iterator[Record]:
    """Score EM's tables on dev every ten steps."""
    gold = _gold(bank, arguments)
    model = _learned(bank / "train.mrg", "counts")
    examples = Examples.of(_forest(bank / "train.mrg"), model.lexicon)
    for m in arguments.states:
        scores: list[float] = []
        step = iter(range(arguments.steps + 1))

        def score(tables: Tables, step: Iterator[int] = step, to: list[float] = scores) -> float:
            at = next(step)
            if at and at % EVERY == 0:
                to.append(_f1(replace(model, members=(tables,)), gold))
            return 0.0

        settings = member("em", states=m, steps=arguments.steps, patience=arguments.steps + 1)
        inputs = EstimatorInputs(examples, 1, 1, Stages(), score)
        estimator("em").estimate(inputs, settings.settings)
        yield {"states": m, "f1": scores}


def _forest(file: Path) -> Forest:
    return read_forest(file, horizontal=1)


# A PCFG with parents' labels ----------------------------------------------------------------------


def markovized(bank: Path, arguments: argparse.Namespace) -> Iterator[Record]:
    """Score PCFGs of counts: with and without parents' labels on constituents."""
    gold = _gold(bank, arguments)
    config = TrainingConfig(
        members=(member("counts"),), rescoring=None, sibling_threshold=1, held_out=0
    )
    plain = replace(config, horizontal=0)
    yield {"grammar": "v = 1, h = 0", "f1": _f1(train(bank / "train.mrg", plain)[0], gold)}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.mrg"
        trees = map(with_parents, read_normalized(bank / "train.mrg"))
        file.write_text("\n".join(map(write, trees)), encoding="utf-8")
        parser = Parser(train(file, config)[0])
    found = parser.parse([sentence_from_tree(tree) for tree in gold])
    bare = (without_parents(one.parses[0].tree) if one.parses else None for one in found)
    f1 = evaluate(zip(gold, bare, strict=True)).brackets.f1
    yield {"grammar": "v = 2, h = 1", "f1": f1, "rules": parser.model.grammar.n_rules}


def with_parents(tree: Tree, parent: str = "ROOT") -> Tree:
    """Add its parent's label to every constituent; tags stay as they are."""
    if tree.word is not None:
        return tree
    below = tuple(with_parents(child, tree.label) for child in tree.children)
    return Tree(f"{tree.label}{PARENT}{parent}", below)


def without_parents(tree: Tree) -> Tree:
    """Take the parents' labels off."""
    if tree.word is not None:
        return tree
    label = tree.label.partition(PARENT)[0]
    return Tree(label, tuple(map(without_parents, tree.children)))


# Ω from parsed text -------------------------------------------------------------------------------


def semi_supervised(bank: Path, arguments: argparse.Namespace) -> Iterator[Record]:
    """Score tables whose projections are of gold and automatic trees, and moments of gold trees."""
    gold = _gold(bank, arguments)
    config = SpectralConfig(states=arguments.states[0])
    forest = _forest(bank / "train.mrg")
    for seed in arguments.seeds:
        model = _learned(bank / "train.mrg", seed=seed, states=config.states)
        yield {"least": None, "trees": 0, "of_seed": seed, "f1": _f1(model, gold)}
        likely = list(_likely(model, forest, arguments, seed))
        for least in arguments.least:
            kept = [stree for probability, stree in likely if probability >= least]
            both = forest_of([*strees_of(forest), *kept])
            lexicon = lexicon_of(both, rare_threshold=3, language="english")
            projection, _ = project(EstimatorInputs(Examples.of(both, lexicon), 1, 1), config)
            own = Examples.of(forest, model.lexicon)
            tables = _of_projection(own, projection, projection.states, config)
            f1 = _f1(replace(model, members=(tables,)), gold)
            yield {"least": least, "trees": len(kept), "of_seed": seed, "f1": f1}


def _likely(
    model: Model, forest: Forest, arguments: argparse.Namespace, seed: int
) -> Iterator[tuple[float, Tree]]:
    """Parse every third sentence, and yield probabilities and s-trees over known symbols."""
    parser, known = Parser(model), set(forest.symbols)
    given = arguments.text or [arguments.data / "text" / "amalgum.txt.gz"]
    every = (one for path in given for _, text in texts(path) for one in ENGLISH.sentences(text))
    short = (one for one in every if len(one.tokens) <= LONGEST)
    for sentence in islice(short, seed % 3, 3 * arguments.sentences, 3):
        [found] = parser.parse([sentence])
        if found.status != "parsed":
            continue
        probability = found.parses[0].probability or 0.0
        tree = normalize(found.parses[0].tree) if probability >= min(arguments.least) else None
        stree = None if tree is None else binarize(tree, horizontal=1)
        if stree is not None and {node.label for node in stree.nodes()} <= known:
            yield probability, stree


def _of_projection(
    examples: Examples, projection: Projection, states: Ints, config: SpectralConfig
) -> Tables:
    """Average the first nodes of a projection, those of the examples, in their first states."""
    n = examples.forest.n_nodes
    kept = np.arange(projection.inside.shape[1]) < states[examples.forest.symbol][:, None]
    truncated = Projection(
        examples.forest.symbol,
        states,
        projection.inside[:n] * kept,
        projection.outside[:n] * kept,
    )
    occurrences = Occurrences.of(examples, truncated)
    return tables_of(occurrences, config.smoothing_weights, config.compaction, workers=1)[0]


# States of every symbol ---------------------------------------------------------------------------


def states(bank: Path, arguments: argparse.Namespace) -> Iterator[Record]:
    """Search m of the most frequent symbols, one after the other, on held-out trees."""
    gold = _gold(bank, arguments)
    for seed in arguments.seeds:
        found = _searched(_forest(bank / "train.mrg"), seed, arguments)
        for name, m, of_held, model in found:
            f1 = _f1(model, gold)
            yield {
                "states": name,
                "of_seed": seed,
                "mean": float(m.mean()),
                "held_out_f1": of_held,
                "f1": f1,
            }


def _searched(
    whole: Forest, seed: int, arguments: argparse.Namespace
) -> list[tuple[str, Ints, float, Model]]:
    """Return what the spectrum cuts and what the search finds: m, F1 held out, the model."""
    learned, trees = _held_out(whole, seed)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.mrg"
        file.write_text("\n".join(write(restore(one)) for one in strees_of(learned)), "utf-8")
        model, forest = _learned(file, "counts", seed), _forest(file)
    examples, most = Examples.of(forest, model.lexicon), arguments.states[0]
    # Smoothing and terms of m states, so that a searched m differs in its states alone.
    config = SpectralConfig(states=most)
    projection, _ = project(EstimatorInputs(examples, 1, 1), replace(config, states=2 * most))
    held = HeldOut(trees, model, 1)

    def of(m: Ints) -> Model:
        tables = _of_projection(examples, projection, m, config)
        return replace(model, members=(tables,))

    first = np.minimum(projection.states, most).astype(np.int32)
    best, highest = first, before = first, held.f1(*of(first).members)
    for a in np.argsort(-np.bincount(forest.symbol))[: arguments.symbols].tolist():
        for factor in FACTORS:
            tried = best.copy()
            tried[a] = np.clip(round(factor * first[a]), 1, projection.states[a])
            if tried[a] != first[a] and (f1 := held.f1(*of(tried).members)) > highest:
                best, highest = tried, f1
    return [
        ("as the spectrum cuts", first, before, of(first)),
        ("searched", best, highest, of(best)),
    ]


def _held_out(forest: Forest, seed: int) -> tuple[Forest, tuple[Tree, ...]]:
    """Hold out runs of neighbours, other ones for each seed, at most a tenth of the trees."""
    runs = np.arange(forest.n_trees) // RUN
    count = max(1, min(HELD_OUT, forest.n_trees // 10) // RUN)
    held = np.isin(runs, np.random.default_rng(seed).choice(runs[-1] + 1, count, replace=False))
    trees = tuple(map(restore, strees_of(part_of(forest, np.flatnonzero(held)))))
    return part_of(forest, np.flatnonzero(~held)), trees


# Telling ------------------------------------------------------------------------------------------


def _page(records: Sequence[Record]) -> str:
    parts = [origin("variants", records[0])]
    for bank in dict.fromkeys(record["bank"] for record in records):
        for name, heading in HEADINGS.items():
            mine = [r for r in records if (r["bank"], r["experiment"]) == (bank, name)]
            if mine:
                parts += [f"### {bank}/dev: {heading}", table(ROWS[name](mine))]
    return "\n\n".join(parts)


HEADINGS = {
    "em-steps": "EM, every ten steps",
    "markovized": "PCFGs of counts with more in their labels",
    "semi-supervised": "parsed text in Ω, the spectral estimator",
    "states": "states of every symbol, the spectral estimator",
}


def _em_rows(records: Sequence[Record]) -> list[list[str]]:
    most = max(len(one["f1"]) for one in records)
    rows = [["", *(str(EVERY * (k + 1)) for k in range(most))]]
    for one in records:
        m = one["states"]
        rows.append([f"m = {m}", *(f"{f1:.2f}" for f1 in one["f1"])])
        if m in PAPER_STEPS and most == len(PAPER_STEPS[m]):
            rows.append([f"m = {m}, paper (WSJ 22)", *(f"{f1:.2f}" for f1 in PAPER_STEPS[m])])
    return rows


def _plain_rows(first: str) -> Callable[[Sequence[Record]], list[list[str]]]:
    def rows(records: Sequence[Record]) -> list[list[str]]:
        more = [name for name in ("held_out_f1", "mean", "rules") if name in records[-1]]
        heading = ["", "F1", *(name.replace("_", " ") for name in more)]
        return [
            heading,
            *(
                [
                    str(one[first]),
                    f"{one['f1']:.2f}",
                    *(f"{one[name]:.2f}" if name in one else "" for name in more),
                ]
                for one in records
            ),
        ]

    return rows


ROWS: dict[str, Callable[[Sequence[Record]], list[list[str]]]] = {
    "em-steps": _em_rows,
    "markovized": _plain_rows("grammar"),
    "semi-supervised": _plain_rows("trees"),
    "states": _plain_rows("states"),
}
PAPER_STEPS = {
    8: (83.51, 86.45, 86.68, 86.69, 86.63, 86.67, 86.70, 86.82, 86.87, 86.83),
    16: (85.18, 87.94, 88.32, 88.21, 88.10, 87.86, 87.70, 87.46, 87.34, 87.24),
    24: (83.62, 88.19, 88.35, 88.25, 87.73, 87.41, 87.35, 87.26, 87.02, 86.80),
    32: (83.23, 88.56, 88.52, 87.82, 87.06, 86.47, 86.38, 85.85, 85.75, 85.57),
}
"""Table 1 of the 2013 paper: section 22 of the Penn treebank."""

EXPERIMENTS: dict[str, Callable[[Path, argparse.Namespace], Iterator[Record]]] = {
    "em-steps": em_steps,
    "markovized": markovized,
    "semi-supervised": semi_supervised,
    "states": states,
}


if __name__ == "__main__":
    main()
