"""The parser: from a model and sentences to analyses. Service, commands and evaluation call it.

A sentence goes through the coarse pass, the members' tensors and a decoder. If the grammar has no
analysis, the coarser fallback grammar tries. If that fails too, the answer is the best sequence of
partial analyses, with the status `partial`.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError
from lpcfg.engine.pruned import decode, fine
from lpcfg.engine.pruned.coarse import (
    TRIES,
    Coarse,
    ContextTables,
    Limits,
    Pruned,
    Thresholds,
    Unfinished,
)
from lpcfg.engine.pruned.decode import Derivation
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.layer import Layer, Rescorer
from lpcfg.engine.warmup import background_compiler, emitted, two_words
from lpcfg.grammar.lexicon import Emitter, Lexicon
from lpcfg.grammar.tables import Emissions, Grammar, Tables, frozen
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import Model, from_bundle
from lpcfg.kinds.constituency.options import Asked, ParseOptions
from lpcfg.kinds.constituency.readout import (
    ROUNDING,
    Answers,
    Labels,
    SpanTable,
    as_words,
    constituents_of,
    places,
)
from lpcfg.kinds.constituency.results import (
    Analyses,
    Analysis,
    Marginals,
    Parse,
    Token,
    TreeProbability,
)
from lpcfg.kinds.constituency.tree_probability import (
    GivenTrees,
    Missing,
    log_share,
    never_a_root,
    tree_chart,
    trees_of,
)
from lpcfg.kinds.sentences import (
    Constraint,
    Given,
    OneSentence,
    Segmenter,
    Sentence,
    constraint_of,
)
from lpcfg.store.versions import Reference, Stored, load
from lpcfg.text.tokenize import penn_forms
from lpcfg.trees.binarize import binarize
from lpcfg.trees.tree import Tree

LONGEST = 2000
"""The most words of a sentence. Charts grow with the square of the length."""
FRAGMENT = "FRAG"
"""The label over partial analyses."""


class _Stage:
    """One grammar with its coarse pass and its members."""

    def __init__(
        self,
        grammar: Grammar,
        coarse: Tables,
        context: ContextTables,
        lexicon: Lexicon,
        members: Sequence[fine.Member],
        layer: Layer | None,
    ) -> None:
        self.grammar = grammar
        self.shift = grammar.n_symbols - len(lexicon.symbols)
        tag, share = lexicon.tag_of, lexicon.chain_share
        if self.shift:
            kept = slice(-self.shift, None) if self.shift < 0 else slice(0, None)
            front = np.zeros(max(self.shift, 0), np.int32)
            tag = frozen(np.concatenate([front, tag[kept]]))
            share = frozen(np.concatenate([front.astype(np.float64), share[kept]]))
        self.coarse = Coarse(coarse, context, tag, share)
        self.members = members
        self._rescorer = None if layer is None else Rescorer(layer, grammar)
        self.labels = Labels.of(grammar)
        with np.errstate(divide="ignore"):
            self._log_q = np.log(coarse.parent * coarse.left * coarse.right)
            self._log_root = np.log(coarse.c_one)

    def tree_probability(self, chart: Chart) -> tuple[int, float]:
        """Compute p(tree) of a chart that holds one tree with its words' weights.

        Return sign and log.
        """
        coarse = (
            np.log(chart.inside[chart.entry >= 0]).sum()
            + self._log_q[chart.rule].sum()
            + self._log_root[chart.symbol[-1]]
        )
        sign, ratio = fine.tree_ratio(chart, self.members, int(chart.end[-1]))
        return (sign, float(coarse + ratio)) if math.isfinite(coarse) else (0, -math.inf)

    def posteriors(self, pruned: Pruned, forms: Sequence[str], *, rescore: bool) -> Posteriors:
        """Compute the posteriors of a chart of these words: the tensors', or the layer's over
        them.
        """
        found = fine.posteriors(pruned, self.members)
        if self._rescorer is None or not rescore:
            return found
        background_compiler.wait()
        return self._rescorer.rescored(found, forms)

    def prune(
        self,
        emissions: Emissions,
        thresholds: Thresholds,
        limits: Limits | None,
        tries: int,
        stop: Stop,
    ) -> Pruned | Unfinished:
        """Build the chart of the words. Preterminals have the numbers of the main grammar."""
        if self.shift:
            emissions = replace(emissions, symbol=emissions.symbol + np.int32(self.shift))
        return self.coarse.prune(emissions, thresholds, limits, tries=tries, stop=stop)


class _Charted(NamedTuple):
    """A chart of a sentence, the stage that made it, and the words as it knows them."""

    sentence: Sentence
    stage: _Stage
    pruned: Pruned
    forms: Sequence[str]

    def posteriors(self, *, rescore: bool) -> Posteriors:
        return self.stage.posteriors(self.pruned, self.forms, rescore=rescore)


class Parser:
    """Analyses sentences under one model. Several threads may use one parser at a time.

    `lpcfg.load` makes one of a stored model. A parser is called with text, and answers a list with
    an analysis for each sentence; `parse` is the same with all that can be asked for.

    >>> for analysis in parser("The cat sat on the mat. It slept."):
    ...     print(analysis.tree)
    (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))
    (S (NP (PRP It)) (VP (VBD slept)) (. .))
    """

    def __init__(
        self,
        model: Model,
        *,
        thresholds: Thresholds | None = None,
        reference: Reference | None = None,
    ) -> None:
        self.model = model
        self.reference = reference
        self._thresholds = thresholds or Thresholds()
        self._emit = Emitter(model.grammar, model.lexicon, model.tagger)
        members = [fine.relative(one, model.coarse, weight) for one, weight in model.weighted]
        own = model.grammar, model.coarse, model.context
        self._own = _Stage(*own, model.lexicon, members, model.rescoring)

    @cached_property
    def _fallback(self) -> _Stage | None:
        """Make the stage of the fallback grammar; a sentence without an analysis needs it first."""
        if (other := self.model.fallback) is None:
            return None
        coarser = other.grammar, other.coarse, other.context
        return _Stage(*coarser, self.model.lexicon, (), self.model.rescoring)

    @property
    def _stages(self) -> Iterator[_Stage]:
        yield self._own
        if self._fallback is not None:
            yield self._fallback

    @cached_property
    def segmenter(self) -> Segmenter:
        """The segmenter of the model's language."""
        lexicon = self.model.lexicon
        return Segmenter(lexicon.language, lexicon.multiwords)

    @classmethod
    def load(cls, reference: str, store: str | Path) -> "Parser":
        """Load and verify a stored model, and create its parser."""
        return cls.of(load(reference, store))

    @classmethod
    def of(cls, stored: Stored) -> "Parser":
        """Create the parser of a stored model."""
        made = cls(from_bundle(stored), reference=stored.reference)
        stored.let_go()
        return made

    def compile_the_tensors(self) -> None:
        """Compile the kernels that run the tensors, by calling them."""
        if (pruned := two_words(self.model.coarse)) is not None:
            fine.posteriors(pruned, self._own.members)

    def compile_the_rest(self) -> None:
        """Compile the kernels that look around words, and that prune, rescore and read a chart."""
        words, given, coarse = ("the", "cat"), two_words(self.model.coarse), self._own.coarse
        if given is None:
            return
        _, _, _, exponent = coarse.merit_factors(emitted(given))
        pruned = coarse.pruned(given.chart, Thresholds(), len(words), exponent)
        if pruned is not None:
            charted = _Charted(Sentence(words), self._own, pruned, words)
            self._analysis(charted, ParseOptions(), Stop())

    def parse(
        self,
        given: Given,
        *,
        constraints: Sequence[Constraint | tuple[int, int] | tuple[int, int, str | None]] = (),
        **options: Unpack[Asked],
    ) -> Analyses:
        """Parse text or sentences: one analysis a sentence, in order.

        Args:
            given: text, whose sentences and tokens are found; or a list of sentences, each a
                string, a list of tokens, or an `lpcfg.Sentence` with tags or constraints
            constraints: (start, end) or (start, end, label), in tokens: the tree must have these
                constituents; only where there is just one sentence
            options: those of `lpcfg.ParseOptions`: `k` trees a sentence, the best first, in
                `.parses`; `objective`; `rescore`

        Returns:
            The analyses. Where a sentence has none, or only one of its parts, `.status` and
            `.reason` say so.

        Raises:
            lpcfg.InputError: for what no sentence can have, and for a wrong option

        >>> (analysis,) = parser.parse([["Anna", "saw", "the", "man", "with", "him", "."]], k=2)
        >>> len(analysis.parses)
        2
        >>> analysis.parses[0].probability > analysis.parses[1].probability > 0
        True
        >>> (analysis,) = parser.parse("I saw her with him.", constraints=[(2, 5, "NP")])
        >>> [one.label for one in analysis.constituents if one.text == "her with him"]
        ['NP']
        """
        sentences = self.segmenter.sentences_of(given)
        if constraints:
            if len(sentences) != 1:
                raise InputError(
                    f"expected one sentence for these constraints, got {len(sentences)}: give each "
                    "its own as lpcfg.Sentence(tokens, constraints=...)",
                    pointer="/constraints",
                )
            sentences = [replace(sentences[0], constraints=tuple(map(constraint_of, constraints)))]
        return Analyses(self.predict(sentences, ParseOptions.of(options)))

    __call__ = parse

    def predict(
        self,
        sentences: Iterable[Sentence],
        options: ParseOptions = ParseOptions(),  # noqa: B008 (frozen)
        stop: Stop | None = None,
    ) -> Iterator[Analysis]:
        """Parse sentences one after the other, for callers that hold their options as a value.

        Raises:
            lpcfg.InputError: for tags of another number of tokens, and for constraints outside of
                the sentence or with a label that the model does not have
        """
        stop = stop or Stop()
        for sentence in sentences:
            found = self._charted(sentence, stop, fragments=options.fragments)
            if isinstance(found, _Charted):
                yield self._analysis(found, options, stop)
            else:
                yield found

    def examine(
        self,
        sentence: Sentence,
        options: ParseOptions = ParseOptions(),  # noqa: B008 (frozen)
    ) -> tuple[Analysis, Callable[[], SpanTable] | None]:
        """Parse a sentence. Return its analysis, and what makes a table of every label over every
        span; None where no chart spans the words.
        """
        found = self._charted(sentence, Stop(), fragments=options.fragments)
        if not isinstance(found, _Charted):
            return found, None
        posteriors = found.posteriors(rescore=options.rescore)
        analysis = self._analysis_of(found, posteriors, options, Stop())
        calibration = self._calibration(posteriors)
        stage = found.stage
        return analysis, partial(SpanTable.of, posteriors, stage.labels, stage.grammar, calibration)

    def _analysis(self, found: _Charted, options: ParseOptions, stop: Stop) -> Analysis:
        return self._analysis_of(found, found.posteriors(rescore=options.rescore), options, stop)

    def _analysis_of(
        self, found: _Charted, posteriors: Posteriors, options: ParseOptions, stop: Stop
    ) -> Analysis:
        """Read the best derivations of a chart, as values that stay when the chart is gone."""
        stop.check()
        stage = found.stage
        answers = Answers(
            found.sentence,
            stage.labels,
            stage.tree_probability,
            posteriors,
            self._calibration(posteriors),
        )
        derivations = _distinct(answers, options, stop)
        return Analysis(
            sentence=found.sentence,
            status="parsed",
            reason=None,
            tokens=answers.tokens(derivations[0]),
            sign=posteriors.sign,
            log_probability=posteriors.log_probability,
            negative=posteriors.negative > 0,
            clipped_mass=posteriors.clipped_mass,
            parses=tuple(map(answers.parse, derivations)),
            unusual=self._unusual(found.forms, posteriors.log_probability),
        )

    def posteriors(self, sentence: Sentence) -> Posteriors | None:
        """Compute the tensors' posteriors; None if the model's own grammar does not span the
        words.
        """
        found = self._charted(sentence, Stop())
        if isinstance(found, Analysis) or found.stage is not self._own:
            return None
        return found.posteriors(rescore=False)

    def _calibration(self, found: Posteriors) -> MonotoneMap | None:
        """Return the calibration map that was fitted to such posteriors."""
        model = self.model
        if not found.rescored:
            return model.calibration
        return model.kind_calibrations.get(found.domain, model.rescored_calibration)

    def _charted(
        self, sentence: Sentence, stop: Stop, *, fragments: bool = True
    ) -> _Charted | Analysis:
        """Build the chart of the first grammar that spans the sentence.

        If none does, return an analysis of joined fragments if these are wanted, or a failed one.
        """
        stop.check()
        if not sentence.tokens:
            return _failed(sentence, "there are no tokens: send at least one word")
        if len(sentence.tokens) > LONGEST:
            return _failed(
                sentence,
                f"expected at most {LONGEST} words in a sentence, got {len(sentence.tokens)}: "
                "split it",
            )
        forms = self._forms(sentence)
        emissions = self._emit(forms, sentence.tags)
        empty = np.flatnonzero(np.diff(emissions.start) == 0)
        if len(empty):
            word = sentence.tokens[empty[0]]
            return _failed(sentence, f"the model does not know the word `{word}` and cannot guess")
        thresholds = self._thresholds.given_tags() if sentence.tags else self._thresholds
        tries = TRIES
        for stage in self._stages:
            limits = _limits(sentence.constraints, stage.labels, len(sentence.tokens))
            found = stage.prune(emissions, thresholds, limits, tries, stop)
            stop.check()
            if isinstance(found, Pruned):
                return _Charted(sentence, stage, found, forms)
            unfinished = stage, found
            if found.exceeds_fallback_limit:
                break
            # the fallback gets one try, with the widest estimates of the grammar itself
            thresholds, tries = thresholds.wider(found.widened), 1
        if sentence.constraints:
            return _failed(sentence, "no analysis has all constituents asked for: ask for fewer")
        if not fragments:
            reason = "no analysis spans all words, and fragments were not asked for"
            return _failed(sentence, reason)
        return self._joined_fragments(sentence, emissions, *unfinished)

    @staticmethod
    def _forms(sentence: Sentence) -> Sequence[str]:
        """Return the words as the grammar knows them."""
        size = len(sentence.tokens)
        if sentence.tags is not None and len(sentence.tags) != size:
            raise InputError(
                f"expected a tag or null for each of {size} tokens, got {len(sentence.tags)} tags: "
                "send as many",
                pointer="/tags",
            )
        tags = None if sentence.tags is None else [tag or "" for tag in sentence.tags]
        return sentence.forms or penn_forms(sentence.tokens, tags)

    def _emissions(self, sentence: Sentence) -> Emissions:
        return self._emit(self._forms(sentence), sentence.tags)

    def _unusual(self, forms: Sequence[str], log_probability: float) -> float | None:
        if self.model.surprisal is None:
            return None
        return self.model.surprisal.percentile(len(forms), self._surprisal(forms, log_probability))

    def surprisal(self, sentence: Sentence, log_probability: float) -> float:
        """Compute how much a sentence with this log p(sentence) surprises the model: see
        lpcfg.kinds.constituency.surprisal.
        """
        return self._surprisal(self._forms(sentence), log_probability)

    def _surprisal(self, forms: Sequence[str], log_probability: float) -> float:
        return (self.model.lexicon.log_frequency(forms) - 2 * log_probability) / len(forms)

    def marginals(
        self,
        sentence: OneSentence,
        *,
        threshold: float = 0.0,
        spans: Collection[tuple[int, int]] | None = None,
        raw: bool = False,
        calibrated: bool = True,
        rescore: bool = True,
        stop: Stop | None = None,
    ) -> Marginals:
        """List how probable every labelled span of one sentence is, whatever tree it is part of.

        sentence      text (taken as one sentence), a list of tokens, or an `lpcfg.Sentence`
        threshold     leave out spans that are less probable
        spans         answer these (start, end) only
        raw           the grammar's own symbols instead of people's labels
        calibrated    probabilities as the model's map corrects them; False for the map's input
        rescore       False leaves the rescoring layer out, where the model has one

        >>> found = parser.marginals("The cat sat on the mat.", spans=[(0, 2)], threshold=0.5)
        >>> [(span.label, span.start, span.end) for span in found.spans]
        [('NP', 0, 2)]
        """
        sentence = self.segmenter.sentence_of(sentence)
        analysis = self._charted(sentence, stop or Stop())
        if isinstance(analysis, Analysis):
            return Marginals(sentence, "failed", analysis.reason, None, None, 0.0, (), ())
        stage, found = analysis.stage, analysis.posteriors(rescore=rescore)
        calibration = self._calibration(found) if calibrated and not raw else None
        table = SpanTable.of(found, None if raw else stage.labels, stage.grammar, calibration)
        return Marginals(
            sentence=sentence,
            status="parsed",
            reason=None,
            sign=found.sign,
            log_probability=found.log_probability,
            clipped_mass=found.clipped_mass,
            spans=table.spans(threshold, spans),
            cells=table.cells(),
        )

    def tree_probability(
        self, trees: GivenTrees, stop: Stop | None = None, *, rescore: bool = True
    ) -> list[TreeProbability]:
        """Tell log p(tree), log p(its sentence) and log p(tree | sentence) of each tree.

        `trees` is a tree, text in Penn brackets (of any number of trees), or a list of those.
        Traces, function tags and a wrapper around the root are left out. Of a tree that the
        grammar cannot build, `.reason` says which rule or word is missing.

        >>> (found,) = parser.tree_probability("(S (NP (PRP It)) (VP (VBD slept)) (. .))")
        >>> found.log_probability < found.conditional_log_probability <= 0
        True
        >>> (found,) = parser.tree_probability("(NP (VBD slept) (PRP it))")
        >>> found.sign, found.reason
        (0, 'the grammar does not have `(NP VBD PRP)` over “slept it”')
        """
        stop = stop or Stop()
        return [self._tree_probability(tree, rescore, stop) for tree in trees_of(trees)]

    def _tree_probability(self, tree: Tree, rescore: bool, stop: Stop) -> TreeProbability:
        words, tags = tree.tokens(), [leaf.label for leaf in tree.leaves()]
        sentence = Sentence(tokens=tuple(words), forms=penn_forms(words, tags))
        own = self._own
        stree = binarize(tree, horizontal=self.model.horizontal)
        chart = tree_chart(own.grammar, stree, self._emissions(sentence))
        whole, stage = None, own
        if not isinstance(charted := self._charted(sentence, stop), Analysis):
            stage, whole = charted.stage, charted.posteriors(rescore=rescore)
        log_sentence = whole.log_probability if whole else None
        if isinstance(chart, Missing):
            return TreeProbability(None, 0, log_sentence, None, chart.reason, chart.nodes)
        sign, log = own.tree_probability(chart)
        if sign == 0:
            unrooted = never_a_root(stree)
            return TreeProbability(None, 0, log_sentence, None, unrooted.reason, unrooted.nodes)
        if whole is None or stage is not own:
            reason = "pruning left no analysis of the sentence to compare the tree with"
            return TreeProbability(log, sign, log_sentence, None, reason)
        if whole.rescored:
            conditional = log_share(chart, whole)
            if np.isfinite(conditional):
                return TreeProbability(log, sign, log_sentence, conditional, None)
            return TreeProbability(
                log, sign, log_sentence, None, "pruning left out parts of the tree"
            )
        if sign != whole.sign:
            reason = "p(tree) and p(sentence) differ in sign: their ratio is no probability"
            return TreeProbability(log, sign, log_sentence, None, reason)
        share = log - whole.log_probability
        if share > ROUNDING:
            reason = "p(tree) is larger than p(sentence): their ratio is no probability"
            return TreeProbability(log, sign, log_sentence, None, reason)
        return TreeProbability(log, sign, log_sentence, min(share, 0.0), None)

    def _joined_fragments(
        self,
        sentence: Sentence,
        emissions: Emissions,
        stage: _Stage,
        found: Unfinished,
    ) -> Analysis:
        """Join partial analyses under one label."""
        chart = found.chart
        pieces = decode.fragments(found, stage.coarse.log_rules(chart))
        words = as_words(sentence)
        trees: list[Tree] = []
        word = 0
        for piece in pieces:
            if piece:
                width = sum(chart.entry[t] >= 0 for t in piece)
                trees += stage.labels.trees(chart, piece, words[word : word + width])
            else:
                width, symbol = 1, _likeliest(emissions, word) + stage.shift
                trees.append(Tree(stage.labels.chains[symbol][-1], (), words[word]))
            word += width
        tree = trees[0] if len(trees) == 1 else Tree(FRAGMENT, tuple(trees))
        leaves = tuple((leaf.label, leaf.word or "") for leaf in tree.leaves())
        return Analysis(
            sentence=sentence,
            status="partial",
            reason="no analysis spans all words: these are the likeliest pieces, side by side",
            tokens=tuple(
                Token(text, *place, tag, None)
                for text, place, (tag, _) in zip(
                    sentence.tokens, places(sentence), leaves, strict=True
                )
            ),
            sign=None,
            log_probability=None,
            negative=False,
            clipped_mass=0.0,
            parses=(Parse(leaves, constituents_of(tree, sentence), 0.0, None, None, None),),
        )


def _distinct(answers: Answers, options: ParseOptions, stop: Stop) -> list[Derivation]:
    """Find the best derivations of up to k trees that differ once they are restored."""
    posteriors = answers.posteriors
    objective = options.objective or decode.default_objective(posteriors)
    gain = answers.gains() if objective == "max-spans" else None
    if options.k == 1:
        return [decode.best(posteriors, objective, gain)]
    chosen: dict[str, Derivation] = {}
    for derivation in decode.k_best(posteriors, objective, gain):
        stop.check()
        chosen.setdefault(answers.brackets(derivation), derivation)
        if len(chosen) == options.k:
            break
    return list(chosen.values())


def _likeliest(emissions: Emissions, word: int) -> int:
    """Find the preterminal with the largest weight over a word."""
    candidates = slice(emissions.start[word], emissions.start[word + 1])
    return int(emissions.symbol[candidates][emissions.weight[candidates].argmax()])


def _failed(sentence: Sentence, reason: str) -> Analysis:
    tokens = tuple(
        Token(text, *place, None, None)
        for text, place in zip(sentence.tokens, places(sentence), strict=True)
    )
    return Analysis(sentence, "failed", reason, tokens, None, None, False, 0.0, ())


def _limits(constraints: Sequence[Constraint], labels: Labels, n: int) -> Limits | None:
    """Close every cell that crosses a constraint, and admit only its label at its span.

    What is forbidden closes no other cell: its span admits everything else, also parts of nodes.
    """
    if not constraints:
        return None
    limits = Limits(
        np.zeros((n + 1, n + 1), np.int32),
        np.ones((len(constraints), labels.has.shape[1]), np.bool_),
    )
    for at, one in enumerate(constraints):
        if not 0 <= one.start < one.end <= n:
            raise InputError(
                f"expected a constraint over tokens within [0, {n}), got [{one.start}, {one.end}): "
                "correct it",
                pointer=f"/constraints/{at}",
            )
    starts, ends = np.ogrid[: n + 1, : n + 1]
    for row, one in enumerate(constraints):
        allowed = labels.seen
        if one.label is not None:
            allowed = labels.with_label(one.label, pointer=f"/constraints/{row}/label")
        if one.forbid:
            allowed = ~allowed
        if limits.cell[one.start, one.end] >= 2:
            before = int(limits.cell[one.start, one.end])
            limits.allowed[before - 2] &= allowed
            continue
        limits.allowed[row] = allowed
        limits.cell[one.start, one.end] = 2 + row
    for one in (one for one in constraints if not one.forbid):
        across_left = (starts < one.start) & (ends > one.start) & (ends < one.end)
        across_right = (starts > one.start) & (starts < one.end) & (ends > one.end)
        limits.cell[across_left | across_right] = 1
    return limits
