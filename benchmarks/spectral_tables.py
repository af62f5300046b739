"""The experiments of the 2013 paper (NAACL, section 4.3 and tables 2 and 3) on our treebanks.

    OMP_NUM_THREADS=1 python -m benchmarks.spectral_tables --write docs/results.md

F1 by the number of states, with the whole recipe and without parts of it; the CPU seconds of every
stage. `--json` prints an object a line instead; `--write` puts the tables in their place in a
file. Everything but what a row leaves out is at its default; F1 is strict, over dev sentences
evenly spread, tagged by the parser itself and with gold tags.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from benchmarks import treebanks
from benchmarks.environment import Record, environment
from benchmarks.page import origin, show, table
from benchmarks.treebanks import TAGS

from lpcfg.engine.pruned import decode, fine, kernels
from lpcfg.engine.pruned.coarse import Coarse, Pruned, Thresholds
from lpcfg.grammar.lexicon import Emitter
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import Labels
from lpcfg.kinds.sentences import Sentence, sentence_from_tree
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.data.features import SIMPLE_TEMPLATES
from lpcfg.training.pipeline import train
from lpcfg.trees.tree import Tree

STATES = (4, 8, 16, 24, 32)
WHOLE = "the whole recipe"
SIGNED = "without abs μ"
DIVIDED = "without abs μ, divided by p(x)"
VARIANTS: Mapping[str, Mapping[str, object]] = {
    WHOLE: {},
    "without smoothing": {"smoothing": False},
    "without scaling": {"scaling": False},
    "simple features": {"templates": SIMPLE_TEMPLATES},
}
PAPER: Mapping[str, Mapping[int, float]] = {
    WHOLE: {8: 85.60, 16: 87.77, 24: 88.53, 32: 88.82},
    "without smoothing": {8: 85.05, 16: 86.84, 24: 86.47, 32: 86.47},
    "without scaling": {32: 84.40},
    "simple features": {8: 86.44, 16: 86.86, 24: 87.24, 32: 88.07},
    SIGNED: {32: 80.61},
}
"""On section 22 of the Penn treebank, with a tagger's tags."""


def main() -> None:
    arguments = _arguments()
    found = (
        record
        for bank in arguments.banks
        for record in measure(arguments.data / bank, arguments.states, arguments.sentences)
    )
    show("spectral_tables", arguments, found, _page)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    treebanks.add_arguments(parser)
    parser.add_argument("--states", type=int, nargs="+", default=list(STATES))
    parser.add_argument("--sentences", type=int, default=550, help="of dev, at least, if there are")
    return parser.parse_args()


# Measuring ----------------------------------------------------------------------------------------


def measure(bank: Path, states: Sequence[int], sentences: int) -> Iterator[Record]:
    """Yield a record for the treebank PCFG, then for every variant and number of states."""
    dev = treebanks.dev_trees(bank)
    gold = dev[:: max(1, len(dev) // sentences)]
    config = TrainingConfig(members=(member("counts"),), rescoring=None)
    yield from _trained(bank, gold, "counts, m = 1", 1, config)
    for m in states:
        for name, settings in VARIANTS.items():
            config = TrainingConfig(
                members=(member("spectral", states=m, **settings),), rescoring=None
            )
            yield from _trained(bank, gold, name, m, config)


def _trained(
    bank: Path, gold: Sequence[Tree], name: str, m: int, config: TrainingConfig
) -> Iterator[Record]:
    """Yield a record for the variant; for the whole recipe, also without magnitudes."""
    model, report = train(bank / "train.mrg", config)
    common = {"bank": bank.name, "states": m, "sentences": len(gold), **environment(config.seed)}
    parser = Parser(model)
    analyses = {tags: treebanks.parsed(parser, gold, tags) for tags in TAGS}
    negative = [one.negative for one in analyses["predicted"][0]]
    yield {
        "variant": name,
        **common,
        **{f"f1_{tags}": treebanks.f1(gold, found) for tags, (found, _) in analyses.items()},
        "negative_share": sum(negative) / len(negative),
        "mean_states": float(np.mean([member.states.mean() for member in model.members] or 1.0)),
        "sentences_per_cpu_second": len(gold) / analyses["predicted"][1],
        "stages": {stage.name: stage.cpu_seconds for stage in report.stages},
    }
    if name == WHOLE:
        signed = Signed(model, parser)
        for variant, divided in ((SIGNED, False), (DIVIDED, True)):
            scores = {
                f"f1_{tags}": evaluate(
                    (
                        tree,
                        signed.tree(
                            sentence_from_tree(tree, tagged=tags == "gold"), divided=divided
                        ),
                    )
                    for tree in gold
                ).brackets.f1
                for tags in TAGS
            }
            yield {"variant": variant, **common, **scores}


class Signed:
    """Decodes as the parser does, by the sum of rule marginals, but with their signs.

    Undivided marginals are those of NAACL 3.3: where p(x) came out negative all signs are flipped.
    """

    def __init__(self, model: Model, parser: Parser) -> None:
        lexicon = model.lexicon
        self._emit = Emitter(model.grammar, lexicon, model.tagger)
        self._coarse = Coarse(model.coarse, model.context, lexicon.tag_of, lexicon.chain_share)
        self._tables = fine.relative(model.members[0], model.coarse).tables
        self._labels = Labels.of(model.grammar)
        self._parser = parser

    def tree(
        self, sentence: Sentence, *, divided: bool = False, magnitudes: bool = False
    ) -> Tree | None:
        """Find the best tree, or the parser's own if this grammar does not span the sentence."""
        emissions = self._emit(sentence.forms or sentence.tokens, sentence.tags)
        pruned = self._coarse.prune(emissions, Thresholds())
        if not isinstance(pruned, Pruned):
            (found,) = self._parser.parse([sentence])
            return found.parses[0].tree if found.parses else None
        total, _, item, edge = kernels.fine_pass(
            pruned.chart, pruned.item, pruned.edge, self._tables, pruned.length
        )
        if magnitudes:
            item, edge = np.abs(item), np.abs(edge)
        elif not divided:
            item, edge = item * np.sign(total), edge * np.sign(total)
        best = decode.best_by(decode.ObjectiveScores(item, edge, np.zeros(len(item))), pruned)
        return self._labels.trees(pruned.chart, best.items, sentence.tokens)[0]


# Telling ------------------------------------------------------------------------------------------


def _page(records: Sequence[Record]) -> str:
    parts = [origin("spectral_tables", records[0])]
    for bank in dict.fromkeys(record["bank"] for record in records):
        mine = [record for record in records if record["bank"] == bank]
        parts += [
            f"### {bank}/dev, {mine[0]['sentences']} sentences: F1 with own tags / gold tags",
            _f1_table(mine),
            f"### {bank}/train: CPU seconds of every stage, {WHOLE}",
            _time_table(mine),
        ]
    return "\n\n".join(parts)


def _f1_table(records: Sequence[Record]) -> str:
    columns = _states(records)
    rows = [["", *(f"m = {m}" for m in columns)]]
    counts, *_ = records
    rows.append([counts["variant"], *[_f1_cell(counts)] * len(columns)])
    found = {(record["variant"], record["states"]): record for record in records}
    for name in (*VARIANTS, SIGNED, DIVIDED):
        rows.append([name, *(_f1_cell(found[name, m]) for m in columns)])
        if name in PAPER:
            paper = (PAPER[name].get(m) for m in columns)
            cells = ("" if f1 is None else f"{f1:.2f}" for f1 in paper)
            rows.append([f"{name}, paper (WSJ 22)", *cells])
    shares = (found[WHOLE, m]["negative_share"] for m in columns)
    rows.append(["sentences with p(x) < 0", *(f"{100 * share:.1f} %" for share in shares)])
    kept = (found[WHOLE, m]["mean_states"] for m in columns)
    rows.append(["states a symbol, mean", *(f"{states:.1f}" for states in kept)])
    return table(rows)


def _f1_cell(record: Record) -> str:
    return f"{record['f1_predicted']:.2f} / {record['f1_gold']:.2f}"


def _time_table(records: Sequence[Record]) -> str:
    columns = _states(records)
    found = {record["states"]: record for record in records if record["variant"] == WHOLE}
    rows = [["", *(f"m = {m}" for m in columns)]]
    stages = [found[m]["stages"] for m in columns]
    rows += [[name, *(f"{spent[name]:.2f}" for spent in stages)] for name in stages[0]]
    rows.append(["all", *(f"{sum(spent.values()):.2f}" for spent in stages)])
    speed = (found[m]["sentences_per_cpu_second"] for m in columns)
    rows.append(["then: sentences parsed a CPU second", *(f"{rate:.0f}" for rate in speed)])
    return table(rows)


def _states(records: Sequence[Record]) -> list[int]:
    return [record["states"] for record in records if record["variant"] == WHOLE]


if __name__ == "__main__":
    main()
