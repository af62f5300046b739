"""The parser: from a model and sentences to analyses. Service, commands and evaluation call it.

A sentence goes through the coarse pass, the members' tensors and a decoder. If the grammar has no
analysis, the coarser fallback grammar tries. If that fails too, the answer is the best sequence of
partial analyses, with the status `partial`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lpcfg.base.cancel import Stop
from lpcfg.base.collector import collector_paused
from lpcfg.base.errors import InputError
from lpcfg.base.jit import when_compiling
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
from lpcfg.engine.warmup import SecondProcess, emitted, two_words
from lpcfg.grammar.lexicon import Emitter, Lexicon
from lpcfg.grammar.tables import Emissions, Grammar, Tables, frozen
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import Model, from_bundle
from lpcfg.kinds.constituency.readout import (
    ROUNDING,
    Answers,
    Labels,
    Reading,
    SpanTable,
    as_words,
    constituents_of,
    places,
)
from lpcfg.kinds.constituency.results import (
    Analyses,
    Analysis,
    Marginals,
    Options,
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
    Sentence,
    constraint_of,
    in_words_of,
    sentence_of,
    sentences_of,
)
from lpcfg.store.places import default_store
from lpcfg.store.versions import Reference, Stored, load
from lpcfg.text.tokenize import penn_forms
from lpcfg.trees.binarize import binarize
from lpcfg.trees.tree import Tree

LONGEST = 2000
"""The most words of a sentence. Charts grow with the square of the length."""
FRAGMENT = "FRAG"
"""The label over partial analyses."""
_second_process = SecondProcess()


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
        _second_process.wait()
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


class Examined(NamedTuple):
    """An analysis; `table` makes every label over every span, None where no chart spans the words.

    The table is made only when it is asked for, so that the analysis can be timed without it.
    """

    analysis: Analysis
    table: Callable[[], SpanTable | None]


class _Charted(NamedTuple):
    """A chart of a sentence, the stage that made it, and the words as it knows them."""

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

    @classmethod
    def load(cls, reference: str, store: str | Path, *, rescore: bool = True) -> "Parser":
        """Load and verify a stored model, and create its parser, or one of its tensors alone."""
        return cls.of(load(reference, store), rescore=rescore)

    @classmethod
    def of(cls, stored: Stored, *, rescore: bool = True) -> "Parser":
        """Create the parser of a stored model, or one of its tensors alone."""
        with collector_paused():  # the first kernels are loaded here
            model = from_bundle(stored)
            stored.let_go()
            kept = model if rescore else replace(model, rescoring=None)
            in_two = kept.rescoring is not None  # else there is too little left for another process
            with when_compiling(_compile_beside) if in_two else nullcontext():
                made = cls(kept, reference=stored.reference)
                made._compile_the_tensors()
        stored.let_go()
        return made

    def _compile_the_tensors(self) -> None:
        """Compile the kernels of the tensors, if a second process compiles those that run before
        them.
        """
        if _second_process.is_running and (pruned := two_words(self.model.coarse)) is not None:
            fine.posteriors(pruned, self._own.members)

    def parse(
        self,
        given: Given,
        *,
        k: int = 1,
        objective: str | None = None,
        constraints: Sequence[Constraint | tuple[int, int] | tuple[int, int, str | None]] = (),
        rescore: bool = True,
    ) -> Analyses:
        """Parse text or sentences: one analysis a sentence, in order.

        given         text, whose sentences and tokens are found; or a list of sentences, each a
                      string, a list of tokens, or an `lpcfg.Sentence` with tags or constraints
        k             how many trees a sentence, the best first, in `.parses`
        objective     what the best tree maximises: max-rule, max-marginal, max-product or
                      max-spans; the default is max-spans where a rescoring layer decides, else
                      max-rule
        constraints   (start, end) or (start, end, label), in tokens: the tree must have these
                      constituents; only where there is just one sentence
        rescore       False leaves the decision to the tensors where the model has a rescoring layer

        Where a sentence has no analysis, or only one of its parts, its `.status` and `.reason` say
        so. What no sentence can have raises `lpcfg.InputError`.

        >>> (analysis,) = parser.parse([["Anna", "saw", "the", "man", "with", "him", "."]], k=2)
        >>> len(analysis.parses)
        2
        >>> analysis.parses[0].probability > analysis.parses[1].probability > 0
        True
        >>> (analysis,) = parser.parse("I saw her with him.", constraints=[(2, 5, "NP")])
        >>> [one.label for one in analysis.constituents if one.text == "her with him"]
        ['NP']
        """
        sentences = sentences_of(given)
        if constraints:
            if len(sentences) != 1:
                raise InputError(
                    f"expected one sentence for these constraints, got {len(sentences)}: give each "
                    "its own as lpcfg.Sentence(tokens, constraints=...)",
                    pointer="/constraints",
                )
            sentences = [replace(sentences[0], constraints=tuple(map(constraint_of, constraints)))]
        options = Options(k=k, objective=objective, rescore=rescore)
        return Analyses(self.analyse(sentences, options))

    __call__ = parse

    def analyse(
        self,
        sentences: Sequence[Sentence],
        options: Options = Options(),  # noqa: B008 (frozen)
        stop: Stop | None = None,
    ) -> list[Analysis]:
        """Parse sentences as `parse` does, for callers that hold their options as a value.

        An exception is raised only for wrong use: invalid options, tags for another number of
        tokens, constraints outside the sentence or with a label that the model does not have.
        """
        stop = stop or Stop()
        _check_options(options)
        return [self.examine(sentence, options, stop).analysis for sentence in sentences]

    def read(
        self,
        sentence: Sentence,
        options: Options = Options(),  # noqa: B008 (frozen)
        stop: Stop | None = None,
    ) -> Reading | Analysis:
        """Find the best derivations of a sentence, for callers that write its JSON and need no
        trees. Words that brackets cannot hold are the caller's to refuse.

        A sentence that no chart spans is analysed at once. Wrong use raises as `analyse` does.
        """
        _check_options(options)
        stop = stop or Stop()
        sentence = in_words_of(self.model.lexicon, sentence)
        found = self._pruned(sentence, stop)
        if isinstance(found, Analysis):
            return found
        return self._reading(sentence, found, options, stop)

    def _reading(
        self, sentence: Sentence, found: _Charted, options: Options, stop: Stop
    ) -> Reading:
        stage, posteriors = found.stage, found.posteriors(rescore=options.rescore)
        stop.check()
        calibration = self._calibration(posteriors)
        answers = Answers(
            sentence,
            stage.labels,
            stage.tree_probability,
            posteriors,
            calibration if options.calibrated else None,
        )
        return Reading(
            answers,
            _distinct(answers, options, stop),
            self._unusual(found.forms, posteriors.log_probability),
            partial(SpanTable.of, posteriors, stage.labels, stage.grammar, calibration),
        )

    def examine(
        self,
        sentence: Sentence,
        options: Options = Options(),  # noqa: B008 (frozen)
        stop: Stop | None = None,
    ) -> "Examined":
        """Analyse a sentence, and keep its chart for whoever asks for every span of it."""
        found = self.read(sentence, options, stop)
        if isinstance(found, Analysis):
            return Examined(found, lambda: None)
        return Examined(found.analysis(), found.table)

    def posteriors(self, sentence: Sentence) -> Posteriors | None:
        """Compute the tensors' posteriors; None if the model's own grammar does not span the
        words.
        """
        found = self._pruned(sentence, Stop())
        if isinstance(found, Analysis) or found.stage is not self._own:
            return None
        return found.posteriors(rescore=False)

    def _calibration(self, found: Posteriors) -> MonotoneMap | None:
        """Return the calibration map that was fitted to such posteriors."""
        model = self.model
        if not found.rescored:
            return model.calibration
        return model.kind_calibrations.get(found.kind, model.rescored_calibration)

    def _pruned(self, sentence: Sentence, stop: Stop) -> _Charted | Analysis:
        """Build the chart of the first grammar that spans the sentence, or glue pieces."""
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
                return _Charted(stage, found, forms)
            unfinished = stage, found
            if found.is_full:
                break
            # the fallback gets one try, with the widest estimates of the grammar itself
            thresholds, tries = thresholds.wider(found.widened), 1
        if sentence.constraints:
            return _failed(sentence, "no analysis has all constituents asked for: ask for fewer")
        return self._glued(sentence, emissions, *unfinished)

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
        if self.model.usual is None:
            return None
        return self.model.usual.percentile(len(forms), self._surprise(forms, log_probability))

    def surprise(self, sentence: Sentence, log_probability: float) -> float:
        """Compute how much a sentence with this log p(sentence) surprises the model: see
        lpcfg.kinds.constituency.surprisal.
        """
        return self._surprise(self._forms(sentence), log_probability)

    def _surprise(self, forms: Sequence[str], log_probability: float) -> float:
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
        sentence = in_words_of(self.model.lexicon, sentence_of(sentence))
        analysis = self._pruned(sentence, stop or Stop())
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
        if not isinstance(charted := self._pruned(sentence, stop), Analysis):
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

    def _glued(
        self,
        sentence: Sentence,
        emissions: Emissions,
        stage: _Stage,
        found: Unfinished,
    ) -> Analysis:
        """Join partial analyses under one label."""
        chart = found.chart
        pieces = decode.cover(found, stage.coarse.log_rules(chart))
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
        return Analysis(
            sentence=sentence,
            status="partial",
            reason="no analysis spans all words: these are the likeliest pieces, side by side",
            tokens=tuple(
                Token(text, *place, leaf.label, None)
                for text, place, leaf in zip(
                    sentence.tokens, places(sentence), tree.leaves(), strict=True
                )
            ),
            sign=None,
            log_probability=None,
            negative=False,
            clipped_mass=0.0,
            parses=(Parse(tree, 0.0, None, None, None, constituents_of(tree, sentence)),),
        )


def _check_options(options: Options) -> None:
    decode.check_objective(options.objective)
    if options.k < 1:
        raise InputError(f"expected `k` of at least 1, got {options.k}: raise it", pointer="/k")


def _distinct(answers: Answers, options: Options, stop: Stop) -> list[Derivation]:
    """Find the best derivations of up to k trees that differ once they are restored."""
    posteriors = answers.posteriors
    objective = options.objective or decode.default_objective(posteriors)
    gain = answers.gains() if objective == "max-spans" else None
    if options.k == 1:
        return [decode.best(posteriors, objective, gain)]
    chosen: dict[Tree, Derivation] = {}
    for derivation in decode.k_best(posteriors, objective, gain):
        stop.check()
        chosen.setdefault(answers.tree(derivation), derivation)
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


def _compile_beside() -> None:
    _second_process.begin(_compile_the_rest)


def _compile_the_rest() -> None:
    """Compile the kernels that look around words, and that prune, rescore and read a chart, for
    models like the default one.
    """
    model = from_bundle(load("en", default_store()))
    parser = Parser(replace(model, members=(), weights=()))  # whose kernels are compiled elsewhere
    words, given, coarse = ("the", "cat"), two_words(model.coarse), parser._own.coarse
    if given is None:
        return
    _, _, _, exponent = coarse.look_around(emitted(given))
    pruned = coarse.pruned(given.chart, Thresholds(), len(words), exponent)
    if pruned is not None:
        charted = _Charted(parser._own, pruned, words)
        parser._reading(Sentence(words), charted, Options(), Stop()).analysis()
