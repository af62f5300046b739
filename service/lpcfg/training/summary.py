"""Report a training: as JSON for the manifest, and as text for people."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lpcfg.grammar.tables import Longs
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import Forest
from lpcfg.training.estimators.registry import Facts
from lpcfg.training.stages import StageRecord, stage_table

CARD_ROWS = 12
"""How many labels a card shows: the most frequent ones."""


@dataclass(frozen=True)
class TrainReport:
    """The data and results of a training, its scores on dev, and the cost of each stage.

    `symbols` counts the nodes of every symbol, the most frequent first. `members` has each
    estimator's name, seed and facts. `held_out` has the number of trees that were held out, and how
    well the model was calibrated on their spans before the map was fitted. `rescoring` says how
    many trees the layer learned from, or why there is none. `dev` is None without dev trees.
    `warning` says that a treebank is too small, and what would be enough.
    """

    configuration: Facts
    treebank: Facts
    sizes: Mapping[str, int]
    symbols: Mapping[str, int]
    members: Sequence[Facts]
    held_out: Facts
    rescoring: Facts
    dev: Facts | None
    stages: Sequence[StageRecord]
    warning: str | None

    @property
    def left_out(self) -> Sequence[str]:
        """The malformed trees of the treebank that were left out: where, and what is wrong."""
        left_out = self.treebank["left_out"]
        return left_out if isinstance(left_out, list) else ()

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def text(self) -> str:
        """Write sizes, scores and stages as text."""
        treebank = {**self.treebank, "left_out": len(self.left_out)}
        parts = [_lines("treebank", {**treebank, **self.sizes})]
        for k, member in enumerate(self.members, start=1):
            parts.append(_lines(f"member {k}", _plain(member)))
        if self.held_out:
            parts.append(_lines("held out", _plain(self.held_out)))
        if self.rescoring:
            parts.append(_lines("rescoring", _plain(self.rescoring)))
        if self.dev is not None:
            parts.append(_lines("dev", _plain(self.dev)))
        return "\n\n".join([*parts, stage_table(self.stages)])


def card(name: str, report: TrainReport) -> str:
    """Write the model's card, in Markdown."""
    members = ", ".join(str(member["estimator"]) for member in report.members)
    about = [
        f"# {name}",
        f"A latent-variable PCFG for constituency parsing, learned by: {members}.",
        f"- Treebank: {report.sizes['trees']:,} trees, {report.sizes['tokens']:,} tokens, "
        f"fingerprint `{report.treebank['fingerprint']}`.\n"
        f"- Licence of the treebank: {report.treebank['licence']}.\n"
        "- Configuration and all figures: `manifest.json`, under `facts`.",
    ]
    if report.warning is not None:
        about.append(f"**Note:** {report.warning}.")
    if report.configuration["notes"]:
        about.append(str(report.configuration["notes"]).strip())
    parts = [] if report.dev is None else report.dev["parts"]
    scores = [_scores_of(part) for part in parts]  # type: ignore[attr-defined]
    return "\n\n".join([*about, *scores, f"```\n{report.text()}\n```\n"])


def _scores_of(part: Mapping[str, Any]) -> str:
    """Write the scores on one dev file: overall, by length and by label."""
    rows = [
        f"## Scores on {part['source']}",
        f"{part['sentences']:,} sentences from bare tokens: strict F1 **{part['f1']:.2f}** "
        f"(precision {part['precision']:.2f}, recall {part['recall']:.2f}), exact match "
        f"{part['exact_match']:.1f} %, tags right {part['tag_accuracy']:.2f} %, calibration error "
        f"{part['calibration_error']:.4f} ({part['raw_calibration_error']:.4f} without the map).",
    ]
    for title, groups in (("length", part["by_length"]), ("label", part["by_label"])):
        most = sorted(groups.items(), key=lambda pair: -pair[1]["count"])[:CARD_ROWS]
        shown = [pair for pair in groups.items() if pair in most]
        table = [f"| {title} | count | precision | recall | F1 |", "|---|---|---|---|---|"]
        table += [
            f"| {name} | {group['count']:,} | {group['precision']:.1f} | {group['recall']:.1f} "
            f"| {group['f1']:.1f} |"
            for name, group in shown
        ]
        rows.append("\n".join(table))
    return "\n\n".join(rows)


def _plain(facts: Facts) -> dict[str, object]:
    """Keep the facts that fit on a line."""
    return {key: value for key, value in facts.items() if isinstance(value, str | int | float)}


def _lines(title: str, facts: Facts) -> str:
    width = max(map(len, facts), default=0)
    told = [
        f"  {key.replace('_', ' '):<{width}}  {value:.{4 if 'error' in key else 2}f}"
        if isinstance(value, float)
        else f"  {key.replace('_', ' '):<{width}}  {value}"
        for key, value in facts.items()
    ]
    return "\n".join([title, *told])


def sizes(examples: Examples) -> dict[str, int]:
    """Count the parts of a treebank and of its grammar."""
    forest, grammar = examples.forest, examples.grammar
    seen = np.bincount(examples.node_rule[~forest.is_leaf], minlength=grammar.n_rules)
    return {
        "trees": forest.n_trees,
        "tokens": int(forest.is_leaf.sum()),
        "nodes": forest.n_nodes,
        "internal_symbols": grammar.n_internal,
        "preterminals": grammar.n_symbols - grammar.n_internal,
        "rules": grammar.n_rules,
        "rules_seen_once": int((seen == 1).sum()),
        "words": len(forest.words),
        "terminals": len(grammar.terminals),
        "lexical_rules": len(grammar.entries),
    }


def symbol_counts(forest: Forest) -> dict[str, int]:
    """Count the nodes of every symbol, the most frequent symbol first."""
    counts = np.bincount(forest.symbol, minlength=len(forest.symbols))
    order = np.argsort(-counts, kind="stable").tolist()
    return {forest.symbols[a]: int(counts[a]) for a in order}


def unseen(dev: Forest, train: Forest) -> dict[str, object]:
    """Count what dev trees have and training trees have not; both without sibling marks.

    Occurrences are counted: tokens of unknown words, nodes with unknown rules or labels, and trees
    with at least one such rule.
    """
    number = {name: a for a, name in enumerate(train.symbols)}
    symbol = np.array([number.get(name, -1) for name in dev.symbols], np.int64)[dev.symbol]
    known = np.unique(_rule_keys(train, train.symbol.astype(np.int64)))
    keys = _rule_keys(dev, symbol)
    new_rule = np.zeros(dev.n_nodes, np.bool_)
    new_rule[~dev.is_leaf] = ~np.isin(keys, known)
    words = set(train.words)
    new_word = np.array([word not in words for word in dev.words], np.bool_)[dev.word[dev.is_leaf]]
    labels = sorted(set(dev.symbols) - set(train.symbols))
    return {
        "trees": dev.n_trees,
        "tokens": int(dev.is_leaf.sum()),
        "unseen_words": int(new_word.sum()),
        "unseen_rules": int(new_rule.sum()),
        "unseen_symbols": int((symbol < 0).sum()),
        "trees_with_unseen_rules": len(np.unique(dev.tree[new_rule])),
        "labels": labels,
    }


def _rule_keys(forest: Forest, symbol: Longs) -> Longs:
    """Encode each in-terminal node's rule as one number, from its symbols' numbers or -1."""
    inside = np.flatnonzero(~forest.is_leaf)
    base = 1 << 20
    sides = (symbol[nodes] for nodes in (inside, forest.left[inside], forest.right[inside]))
    keys = np.zeros(len(inside), np.int64)
    for side in sides:
        keys = keys * base + side + 1
    return keys
