"""Compare predicted trees with gold ones: labelled brackets, exact trees, tags.

Trees are normalized: without function tags. A bracket is an internal node's label and span, counted
as often as it occurs (a unary chain of one label is several brackets). Preterminals are none, nor
are nodes labelled TOP, ROOT, S1 or ''; PRT counts as ADVP. Traces (-NONE-) are no tokens.
Punctuation, the tokens tagged , : `` '' or . and no others (COLLINS.prm), has no place in spans, so
a node over punctuation alone is no bracket.

Two ways to say which tokens are punctuation, and what becomes of hard cases:

    strict   by gold tags, in both trees; every sentence counts; a failure has no brackets
    EVALB    by each tree's own tags; sentences whose other words then differ are 'Error' sentences
             and left out, and so are failures ('Skip'). This flatters, and is reported beside.

Precision, recall and F1 are percentages, and 0 where nothing could be right, as in EVALB.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from lpcfg.base.errors import InputError
from lpcfg.trees.tree import Tree

Pair = tuple[Tree, Tree | None]
Bracket = tuple[str, int, int]
# The brackets of a gold tree, of a predicted tree, and of both.
Comparison = tuple[Counter[Bracket], Counter[Bracket], Counter[Bracket]]

BUCKETS = ("1-10", "11-20", "21-40", "41+")
_BUCKET_ENDS = (10, 20, 40)
_PUNCTUATION = frozenset({",", ":", "``", "''", "."})
_NO_BRACKETS = _PUNCTUATION | {"TOP", "ROOT", "S1", ""}
_TRACE = "-NONE-"
_SAME_LABEL = {"PRT": "ADVP"}


@dataclass(frozen=True, slots=True)
class Counts:
    """Brackets in gold trees, in predicted trees, and in both."""

    gold: int = 0
    predicted: int = 0
    matched: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.gold + other.gold, self.predicted + other.predicted, self.matched + other.matched
        )

    @property
    def precision(self) -> float:
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        return _percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        return _percent(2 * self.matched, self.gold + self.predicted)

    @property
    def is_exact(self) -> bool:
        return self.matched == self.gold == self.predicted


@dataclass(frozen=True, slots=True)
class SentenceEvaluation:
    """The score of one sentence: tokens (with punctuation), brackets, right tags, EVALB's brackets.

    `evalb` is None if EVALB leaves the sentence out.
    """

    tokens: int
    brackets: Counts
    correct_tags: int
    failed: bool
    evalb: Counts | None


@dataclass(frozen=True, slots=True)
class Group:
    """The brackets of some sentences, or of one label, and the number of these."""

    brackets: Counts
    count: int

    def as_dict(self) -> dict[str, float]:
        return {
            "precision": self.brackets.precision,
            "recall": self.brackets.recall,
            "f1": self.brackets.f1,
            "count": self.count,
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of all sentences: `brackets` and everything broken down are strict.

    `by_length` counts sentences, by their tokens, in the order of BUCKETS; `by_label` counts gold
    brackets, the most frequent label first. `evalb` and `evalb_sentences` are EVALB's counts.
    """

    per_sentence: tuple[SentenceEvaluation, ...]
    brackets: Counts
    by_length: dict[str, Group]
    by_label: dict[str, Group]
    evalb: Counts
    evalb_sentences: int

    @property
    def sentences(self) -> int:
        return len(self.per_sentence)

    @property
    def failures(self) -> int:
        return sum(sentence.failed for sentence in self.per_sentence)

    @property
    def exact_match(self) -> float:
        """Percentage of sentences that were parsed and have exactly the gold brackets."""
        exact = sum(s.brackets.is_exact and not s.failed for s in self.per_sentence)
        return _percent(exact, self.sentences)

    @property
    def tag_accuracy(self) -> float:
        """Percentage of all tokens, with punctuation, that have their gold tag.

        A failure has none.
        """
        correct = sum(sentence.correct_tags for sentence in self.per_sentence)
        return _percent(correct, sum(sentence.tokens for sentence in self.per_sentence))

    def as_dict(self) -> dict[str, Any]:
        """Name the figures as `lpcfg evaluate --json` prints them; shares are percentages."""
        return {
            "precision": self.brackets.precision,
            "recall": self.brackets.recall,
            "f1": self.brackets.f1,
            "exact_match": self.exact_match,
            "tag_accuracy": self.tag_accuracy,
            "sentences": self.sentences,
            "failures": self.failures,
            "evalb_f1": self.evalb.f1,
            "evalb_sentences": self.evalb_sentences,
            "by_length": {bucket: group.as_dict() for bucket, group in self.by_length.items()},
            "by_label": {label: group.as_dict() for label, group in self.by_label.items()},
        }


def evaluate(pairs: Iterable[Pair]) -> Evaluation:
    """Compare pairs of a gold and a predicted tree; None stands for a sentence without a tree.

    Raises InputError where a predicted tree has not as many tokens as its gold tree.
    """
    sentences: list[SentenceEvaluation] = []
    labels = (Counter[str](), Counter[str](), Counter[str]())
    for place, (gold_tree, predicted_tree) in enumerate(pairs):
        gold = _flatten(gold_tree)
        predicted = None if predicted_tree is None else _flatten(predicted_tree)
        if predicted is not None and len(predicted.tags) != len(gold.tags):
            raise InputError(
                f"expected a predicted tree over the {len(gold.tags)} tokens of its gold tree, got "
                f"one over {len(predicted.tags)}, in pair {place}: parse the gold tree's own tokens"
            )
        strict = _compare(gold, predicted, gold.tags, gold.tags)
        for total, brackets in zip(labels, strict, strict=True):
            total.update(label for label, _, _ in brackets.elements())
        sentences.append(_evaluate_sentence(gold, predicted, strict))
    counted = [sentence.evalb for sentence in sentences if sentence.evalb is not None]
    return Evaluation(
        per_sentence=tuple(sentences),
        brackets=_sum(sentence.brackets for sentence in sentences),
        by_length=_by_length(sentences),
        by_label=_by_label(*labels),
        evalb=_sum(counted),
        evalb_sentences=len(counted),
    )


def render(found: Evaluation) -> str:
    """Write the figures as tables for people; – is a share of nothing."""
    lines = [
        f"sentences        {found.sentences:8,}   failures {found.failures:,}",
        f"precision        {found.brackets.precision:8.2f}",
        f"recall           {found.brackets.recall:8.2f}",
        f"F1 (strict)      {found.brackets.f1:8.2f}",
        f"exact match      {found.exact_match:8.2f}",
        f"tag accuracy     {found.tag_accuracy:8.2f}",
        f"F1 (EVALB)       {found.evalb.f1:8.2f}   on {found.evalb_sentences:,} of them",
    ]
    for title, groups in (("tokens", found.by_length), ("label", found.by_label)):
        width = max(12, *map(len, groups))
        lines += ["", f"{title:{width}}  precision   recall       F1    count"]
        lines += [_row(name.ljust(width), group) for name, group in groups.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, group: Group) -> str:
    counts = group.brackets
    precision, recall, f1 = (
        f"{share:.2f}" if whole else "–"
        for share, whole in (
            (counts.precision, counts.predicted),
            (counts.recall, counts.gold),
            (counts.f1, counts.gold + counts.predicted),
        )
    )
    return f"{name}  {precision:>9} {recall:>8} {f1:>8} {group.count:8,}"


@dataclass(frozen=True, slots=True)
class _Flat:
    """A tree as its tokens, and the labels and spans of its internal nodes."""

    words: list[str]
    tags: list[str]
    nodes: list[Bracket]

    def brackets(self, tags: Sequence[str]) -> Counter[Bracket]:
        """Count the brackets over the tokens that are not punctuation by these tags."""
        places = [0, *accumulate(tag not in _PUNCTUATION for tag in tags)]
        return Counter(
            (_SAME_LABEL.get(label, label), places[start], places[end])
            for label, start, end in self.nodes
            if label not in _NO_BRACKETS and places[start] < places[end]
        )

    def content(self) -> list[str]:
        """Return the words that are not punctuation by the tree's own tags."""
        return [
            word for word, tag in zip(self.words, self.tags, strict=True) if tag not in _PUNCTUATION
        ]


def _flatten(tree: Tree) -> _Flat:
    flat = _Flat([], [], [])
    # A node is visited twice: opened with None, and closed with its first token.
    stack: list[tuple[Tree, int | None]] = [(tree, None)]
    while stack:
        node, start = stack.pop()
        if node.word is not None:
            if node.label != _TRACE:
                flat.words.append(node.word)
                flat.tags.append(node.label)
        elif start is None:
            stack.append((node, len(flat.tags)))
            stack.extend((child, None) for child in reversed(node.children))
        else:
            flat.nodes.append((node.label, start, len(flat.tags)))
    return flat


def _compare(
    gold: _Flat, predicted: _Flat | None, gold_tags: Sequence[str], predicted_tags: Sequence[str]
) -> Comparison:
    theirs = Counter[Bracket]() if predicted is None else predicted.brackets(predicted_tags)
    ours = gold.brackets(gold_tags)
    return ours, theirs, ours & theirs


def _evaluate_sentence(
    gold: _Flat, predicted: _Flat | None, strict: Comparison
) -> SentenceEvaluation:
    correct_tags, evalb = 0, None
    if predicted is not None:
        correct_tags = sum(a == b for a, b in zip(gold.tags, predicted.tags, strict=True))
        content = predicted.content()
        if content and content == gold.content():
            evalb = _counts(_compare(gold, predicted, gold.tags, predicted.tags))
    return SentenceEvaluation(
        len(gold.tags), _counts(strict), correct_tags, predicted is None, evalb
    )


def _counts(comparison: Comparison) -> Counts:
    gold, predicted, matched = comparison
    return Counts(gold.total(), predicted.total(), matched.total())


def _sum(counts: Iterable[Counts]) -> Counts:
    return sum(counts, start=Counts())


def _by_length(sentences: Sequence[SentenceEvaluation]) -> dict[str, Group]:
    buckets: dict[str, list[SentenceEvaluation]] = {bucket: [] for bucket in BUCKETS}
    for sentence in sentences:
        buckets[BUCKETS[bisect_left(_BUCKET_ENDS, sentence.tokens)]].append(sentence)
    return {
        bucket: Group(_sum(sentence.brackets for sentence in members), len(members))
        for bucket, members in buckets.items()
    }


def _by_label(
    gold: Counter[str], predicted: Counter[str], matched: Counter[str]
) -> dict[str, Group]:
    return {
        label: Group(Counts(gold[label], predicted[label], matched[label]), gold[label])
        for label in sorted(gold | predicted, key=lambda label: (-gold[label], label))
    }


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
