"""Taggers with latent states against one state, today's tagger, and the parser.

    OMP_NUM_THREADS=1 python -m benchmarks.tagging --write docs/results.md

Every estimator learns the refinement HMM of a treebank's tags. Each is tried with the weights of
words alone, and with the log-linear tagger's, which sees two words on either side. A second table
gives the parser (one spectral member, no rescoring layer) the tags of one of them: as they are, or
their posteriors in the place of the log-linear tagger's. `--json` prints an object a line.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarks import treebanks
from benchmarks.environment import Record, environment
from benchmarks.page import origin, put, table

from lpcfg.grammar.lexicon import LEXICON_SHARE, Emitter
from lpcfg.grammar.tables import Doubles, Emissions
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import sentence_from_tree
from lpcfg.kinds.tags.chains import Tagged, read
from lpcfg.kinds.tags.evaluate import TagScores, evaluate
from lpcfg.kinds.tags.kernel import Posteriors
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.kinds.tags.train import Config, estimator_of, learn
from lpcfg.training.config import TrainingConfig
from lpcfg.training.pipeline import train
from lpcfg.trees.tree import Tree

ESTIMATORS = ("em", "spectral", "pivot", "pivot+em", "clustering+em")
GIVEN = "pivot+em"
"""The tagger that the parser is given, with the most states."""


def main() -> None:
    arguments = _arguments()
    records: list[Record] = []
    for bank in arguments.banks:
        for record in measure(arguments.data / bank, arguments.states, arguments.every):
            records.append(record)
            print(json.dumps(record), file=None if arguments.json else sys.stderr, flush=True)
    if arguments.write:
        put(arguments.write, "tagging", _page(records))
    elif not arguments.json:
        print(_page(records))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    treebanks.add_arguments(parser)
    parser.add_argument("--states", type=int, nargs="+", default=[8, 16], help="of every tag")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="parse every K-th tree")
    return parser.parse_args()


# Measuring ----------------------------------------------------------------------------------------


def measure(bank: Path, states: Sequence[int], every: int) -> Iterator[Record]:
    """Yield a record per tagger, then per way for the parser to get its tags."""
    sentences, gold = read(bank / "train.mrg"), read(bank / "dev.mrg")
    model, record = _learned(bank, sentences, gold, "counts", 1)
    yield _record(bank, "today's tagger", None, 0.0, None, evaluate(_Alone(model), gold))
    yield record
    given = model
    for name in ESTIMATORS:
        for m in states:
            model, record = _learned(bank, sentences, gold, name, m)
            given = model if name == GIVEN else given
            yield record
    yield from _parsed(bank, SequenceTagger(given), every)


def _learned(
    bank: Path, sentences: Sequence[Tagged], gold: Sequence[Tagged], name: str, m: int
) -> tuple[Model, Record]:
    settings = {} if name == "counts" else {"states": m}
    model, facts = learn(sentences, Config(estimator_of(name, **settings)))
    own = sum(one["cpu_seconds"] for one in facts["stages"] if one["name"] != "tagger")
    alone, both = (
        evaluate(SequenceTagger(one), gold) for one in (replace(model, tagger=None), model)
    )
    return model, _record(bank, name, m, own, alone, both)


def _record(
    bank: Path, name: str, m: int | None, seconds: float, alone: TagScores | None, both: TagScores
) -> Record:
    return {
        "measured": "tagger",
        "bank": bank.name,
        "estimator": name,
        "states": m,
        **environment(1),
        "own_cpu_seconds": seconds,
        "words_alone": None if alone is None else alone.as_json(),
        "neighbours": both.as_json(),
    }


class _Alone(SequenceTagger):
    """The log-linear tagger by itself: every word by its own weights, without transitions."""

    def shares(
        self, forms: Sequence[str], tags: Sequence[str | None] | None = None
    ) -> tuple[Doubles, Posteriors]:
        emissions = self._emit(forms, tags)
        none = Posteriors(np.zeros(len(emissions.symbol)), 0, -np.inf)
        return self.by_tag(emissions, self.alone(emissions)), none


class _Posteriors(Emitter):
    """Weights in which a tagger's posterior stands for p(t | x, neighbours) of the lexicon."""

    def __init__(self, model: Model, tagger: SequenceTagger) -> None:
        super().__init__(model.grammar, model.lexicon)
        self._model, self._tagger = model, tagger

    def __call__(
        self, tokens: Sequence[str], tags: Sequence[str | None] | None = None
    ) -> Emissions:
        found = super().__call__(tokens, tags)
        lexicon, n = self._model.lexicon, found.length
        word = np.repeat(np.arange(n), np.diff(found.start))
        tag = lexicon.tag_of[found.symbol]
        own = np.zeros((n, len(lexicon.tags)))
        np.add.at(own, (word, tag), found.weight * lexicon.symbol_count[found.symbol])
        own /= own.sum(axis=1, keepdims=True)
        posterior = np.maximum(self._tagger.shares(tokens)[0], 1e-6)
        gamma = self._model.tagger.gamma if self._model.tagger else 0.0
        mixed = posterior**gamma * own ** (1 - gamma)
        mixed = (1 - LEXICON_SHARE) * mixed / mixed.sum(axis=1, keepdims=True) + LEXICON_SHARE * own
        return replace(found, weight=found.weight * (mixed / np.maximum(own, 1e-300))[word, tag])


def _parsed(bank: Path, tagger: SequenceTagger, every: int) -> Iterator[Record]:
    """Parse with tags from several sources; F1, and tags right after parsing."""
    gold = treebanks.dev_trees(bank)[::every]
    model, _ = train(bank / "train.mrg", TrainingConfig(rescoring=None))
    plain, mixed = Parser(model), Parser(model)
    mixed._emit = _Posteriors(model, tagger)
    sentences = [sentence_from_tree(tree) for tree in gold]
    fixed = [replace(one, tags=tagger.tag(one).tags) for one in sentences]
    for name, parser, given in (
        ("its own", plain, sentences),
        ("the tagger's posteriors", mixed, sentences),
        ("the tagger's tags, fixed", plain, fixed),
    ):
        start = time.process_time()
        found = parser.parse(given)
        yield {
            "measured": "parser",
            "bank": bank.name,
            "tags": name,
            **environment(1),
            "sentences": len(gold),
            "f1": treebanks.f1(gold, found),
            "tags_right": _tags_right(gold, found),
            "cpu_seconds": time.process_time() - start,
        }


def _tags_right(gold: Sequence[Tree], found: Sequence[Analysis]) -> float:
    right = [
        one.label == tag
        for tree, analysis in zip(gold, found, strict=True)
        for one, tag in zip(tree.leaves(), [token.tag for token in analysis.tokens], strict=True)
    ]
    return 100.0 * sum(right) / len(right)


# Telling ------------------------------------------------------------------------------------------


def _page(records: Sequence[Record]) -> str:
    parts = [origin("tagging", records[0])]
    for bank in dict.fromkeys(record["bank"] for record in records):
        mine = [record for record in records if record["bank"] == bank]
        taggers = [record for record in mine if record["measured"] == "tagger"]
        parsers = [record for record in mine if record["measured"] == "parser"]
        words = taggers[0]["neighbours"]
        parts += [
            f"### {bank}/dev, {words['words']} words, {words['unknown_words']} of them unknown",
            table([HEADING, *map(_row, taggers)]),
        ]
        if parsers:
            parts += [
                f"### {bank}/dev, {parsers[0]['sentences']} sentences: the parser with tags of",
                table([["", "F1", "tags right", "CPU s"], *map(_parser_row, parsers)]),
            ]
    return "\n\n".join(parts)


HEADING = [
    *("", "states", "words alone: tags right (unknown)", "with neighbours: tags right (unknown)"),
    *("calibration error", "p(x) < 0, %", "CPU s to train", "words a CPU s"),
]


def _row(record: Record) -> list[str]:
    alone, both = record["words_alone"], record["neighbours"]
    return [
        record["estimator"],
        "" if record["states"] is None else str(record["states"]),
        "" if alone is None else f"{alone['accuracy']:.2f} ({alone['unknown_accuracy'] or 0:.1f})",
        f"{both['accuracy']:.2f} ({both['unknown_accuracy'] or 0:.1f})",
        f"{both['calibration_error']:.4f}",
        f"{both['negative']:.1f}",
        f"{record['own_cpu_seconds']:.1f}",
        f"{both['words_per_cpu_second']:.0f}",
    ]


def _parser_row(record: Record) -> list[str]:
    numbers = (f"{record[name]:.2f}" for name in ("f1", "tags_right"))
    return [record["tags"], *numbers, f"{record['cpu_seconds']:.1f}"]


if __name__ == "__main__":
    main()
