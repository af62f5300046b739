"""Constituency models behind the protocol of all kinds."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lpcfg.base.errors import InputError
from lpcfg.base.options import option
from lpcfg.engine.objectives import OBJECTIVES
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.kind import WARMING, Json, Kind, Progress

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.constituency.evaluate import ParserEvaluation
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.kinds.constituency.results import Analysis
    from lpcfg.kinds.constituency.suite import Case, SuiteScores
    from lpcfg.kinds.sentences import Segmenter, Sentence
    from lpcfg.store.versions import Stored
    from lpcfg.trees.style import Style
    from lpcfg.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class EvaluationOptions(ParseOptions):
    """Options of an evaluation: those of parsing, and which gold data with which tags."""

    tags: Literal["predicted", "gold"] = option(
        "predicted",
        "part-of-speech tags: the parser's own or the gold ones",
        choices=("predicted", "gold"),
    )
    max_length: int | None = option(None, "leave out trees of more tokens", kind=int, least=1)
    style: str | None = option(
        None,
        "rules that bring gold trees into one style, commas between: `all`, or some of markup, "
        "tags, titles, w-words, to, inner-stops, stops, flat-nouns (see docs/training.md)",
    )
    suite: bool = option(
        False,
        "parse short sentences by kind of error instead: the package's own, or those of the files "
        "given (see kinds/constituency/suite.py for how they are written)",
    )
    k: ClassVar[int] = 1  # type: ignore[misc]  # one tree a sentence is compared

    def __post_init__(self) -> None:
        ParseOptions.__post_init__(self)
        _ = self.rules  # refuses unknown ones

    @property
    def rules(self) -> "Style":
        """The rules that `style` names."""
        from lpcfg.trees.style import Style

        return Style.of(filter(None, (self.style or "").split(",")))


class Constituency(Kind["Parser", ParseOptions, "Analysis"]):
    """Trees of labelled spans."""

    name = "constituency"
    title = "constituency model"
    command = "parse"
    group = ""
    data = "Penn brackets"
    options = ParseOptions
    evaluating = EvaluationOptions
    forms = {"ptb": "mrg", "conllu": "conllu", "svg": "", "latex": ""}
    statuses = ("parsed", "partial", "failed")
    columns = {
        "tree": "string",
        "log_probability": "float64",
        "probability": "float64",
        "lowest_probability": "float64",
        "unusual": "float64",
    }
    tensors = ("tree",)
    examples = (
        {"text": "The cat sat on the mat. It slept."},
        {
            "sentences": [
                "The cat sat on the mat.",
                {
                    "id": "s2",
                    "tokens": ["Cats", "sleep", "."],
                    "tags": ["NNS", None, "."],
                    "constraints": [{"start": 0, "end": 1, "label": "NP"}],
                },
            ],
            "k": 3,
            "objective": "max-marginal",
        },
    )

    def prepare(self) -> None:
        import lpcfg.kinds.constituency.predict  # noqa: F401

    def load(self, stored: "Stored") -> "Parser":
        from lpcfg.kinds.constituency.loading import ready

        return ready(stored)

    def warm(self, predictor: "Parser") -> None:
        """Run every path of the engine once."""
        from lpcfg.kinds.sentences import Sentence

        for sentence in map(Sentence, WARMING):
            for objective in OBJECTIVES:
                next(predictor.predict([sentence], ParseOptions(k=2, objective=objective)))
            predictor.marginals(sentence, threshold=0.5)
            parses = predictor.parse([sentence])[0].parses
            predictor.tree_probability([parse.tree for parse in parses])

    def predict(
        self,
        predictor: "Parser",
        sentences: "Sequence[Sentence]",
        options: ParseOptions,
        stop: "Stop",
    ) -> "Iterator[Analysis]":
        return predictor.predict(sentences, options, stop)

    def answer(self, found: "Analysis") -> Json:
        from lpcfg.kinds.constituency.answer import analysis_json

        return analysis_json(found)

    def tensor(self, name: str, answer: Json) -> str:
        """Return the best tree in brackets; nothing where there is none."""
        return next((str(parse[name]) for parse in answer["parses"]), "")

    def schema(self) -> "type[BaseModel]":
        from lpcfg.protocol.schemas import SentenceAnswer

        return SentenceAnswer

    def segmenter(self, predictor: "Parser") -> "Segmenter":
        return predictor.segmenter

    def check(self, predictor: "Parser", sentence: "Sentence") -> None:
        from lpcfg.kinds.sentences import check_tags

        check_tags(sentence, self.tags(predictor))

    def tags(self, predictor: "Parser") -> Collection[str]:
        return predictor.model.lexicon.tags

    def row(self, found: "Analysis") -> Json:
        sure = [one.probability for one in found.constituents if one.probability is not None]
        return {
            "tree": found.parses[0].brackets if found.parses else None,
            "log_probability": found.log_probability,
            "probability": found.probability,
            "lowest_probability": min(sure, default=None),
            "unusual": found.unusual,
        }

    def text(
        self, found: "Analysis", form: str, options: ParseOptions, comments: Sequence[str] = ()
    ) -> str | None:
        """Write the trees, one a line; an empty line follows where several were asked for."""
        from lpcfg.trees.draw import latex, svg

        if form == "conllu":
            return "\n".join(_arcs(found, one.tree, comments) for one in found.parses) or None
        show = {"svg": svg, "latex": latex}
        lines = [
            show[form](parse.tree) if form in show else parse.brackets for parse in found.parses
        ] or [""]
        return "\n".join([*lines, *([""] if options.k > 1 else [])])

    def gold(self, files: Sequence[str], options: EvaluationOptions) -> "list[Tree] | list[Case]":
        from lpcfg.kinds.constituency.suite import suite_of
        from lpcfg.trees.style import read_normalized

        if options.suite:
            return suite_of(files)
        trees = list(read_normalized(list(files), options.rules))
        longest = options.max_length
        gold = [tree for tree in trees if longest is None or len(tree.leaves()) <= longest]
        if not gold:
            raise InputError(
                f"expected trees of at most {longest} tokens, got longer ones only, {len(trees)}: "
                "raise the length"
                if trees
                else f"expected trees with words in {', '.join(files)}, got none: check the files"
            )
        return gold

    def evaluate(
        self,
        predictor: "Parser",
        gold: Any,
        options: EvaluationOptions,
        *,
        workers: int,
        progress: Progress,
    ) -> "ParserEvaluation | SuiteScores":
        from lpcfg.kinds.constituency.evaluate import evaluate_parser
        from lpcfg.kinds.constituency.suite import run_suite

        if options.suite:
            return run_suite(predictor, gold)
        return evaluate_parser(
            predictor,
            gold,
            tags=options.tags,
            options=options,
            workers=workers,
            progress=progress,
        )

    def scores(self, facts: Mapping[str, Any]) -> Mapping[str, Json]:
        dev = facts.get("dev")
        return {"the dev trees, when it was trained": dev} if dev else {}

    def facts(self, predictor: "Parser") -> Json:
        from lpcfg.kinds.constituency.readout import Labels

        model = predictor.model
        known = sorted(Labels.of(model.grammar).ids)
        return {
            "symbols": len(model.grammar.symbols),
            "rules": len(model.grammar.rules),
            "states": model.states,
            "labels": [label for label, is_tag in known if not is_tag],
            "tags": [label for label, is_tag in known if is_tag],
            "rescoring": model.rescoring is not None,
        }


def _arcs(analysis: "Analysis", tree: "Tree", comments: Sequence[str]) -> str:
    """Write the arcs of a tree as CoNLL-U, without the last line break."""
    from lpcfg.kinds.dependencies import conllu
    from lpcfg.kinds.dependencies.head_rules import NOTE, arcs_of

    known = all(token.end is not None for token in analysis.tokens)
    offsets = tuple((token.start or 0, token.end or 0) for token in analysis.tokens)
    arcs = arcs_of(tree, offsets if known else ())
    sentence = conllu.sentence_of(arcs, analysis.sentence.text, [*comments, NOTE])
    return conllu.write([sentence]).removesuffix("\n")
