"""A spaCy component that parses documents: `nlp.add_pipe("lpcfg")`.

    import spacy
    nlp = spacy.blank("en")
    nlp.add_pipe("lpcfg", config={"model": "en"})

spaCy's own tokens are parsed. Where a document has no sentence boundaries yet, those that lpcfg
finds are set. `pip install 'lpcfg[spacy]'` brings what this needs.

>>> import spacy
>>> import lpcfg.spacy
>>> nlp = spacy.blank("en")
>>> pipe = nlp.add_pipe("lpcfg")
>>> doc = nlp("The cat sat on the mat. It slept.")
>>> for sentence in doc.sents:
...     print(sentence._.parse_string)
(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))
(S (NP (PRP It)) (VP (VBD slept)) (. .))
>>> [span.text for span in doc._.constituents if span.label_ == "PP"]
['on the mat']
>>> doc._.constituents[0]._.probability > 0.5
True
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from lpcfg.api.stores import chosen_store
from lpcfg.kinds.registry import AnyLoaded, load_model
from lpcfg.kinds.sentences import Segmenter, Sentence

KEY = "lpcfg"
"""The key under which a document keeps its parses: plain values, so that it can be stored."""


@Language.factory("lpcfg", default_config={"model": "en", "store": None, "options": {}})
def create(
    nlp: Language, name: str, model: str, store: str | None, options: dict[str, Any]
) -> "Annotator":
    """Make the component for a pipeline.

    `model` and `store` are those of `lpcfg.load`, `options` those of the kind of model, as
    `lpcfg.ParseOptions` has them.
    """
    del nlp, name
    return Annotator(load_model(model, chosen_store(store)), options)


class Annotator:
    """Adds what a model of any kind answers: tags of tokens where it has tags, heads and relations
    where it has these, and `doc._.constituents` and `._.parse_string` where it has trees.
    """

    def __init__(self, model: AnyLoaded, options: Mapping[str, Any]) -> None:
        self._model = model
        self._options = model.kind.options.of(options)

    def __call__(self, doc: Doc) -> Doc:
        """Answer every sentence of a document."""
        if not doc.has_annotation("SENT_START"):
            _set_sentences(doc, self._model.segmenter)
        sentences = [
            tokens
            for sentence in doc.sents
            if (tokens := [token for token in sentence if not token.is_space])
        ]
        places = [(tokens[0].sent.start, tokens[0].sent.end) for tokens in sentences]
        given = [Sentence([_word(token) for token in tokens]) for tokens in sentences]
        spans: list[list[Any]] = []
        trees: list[list[Any]] = []
        found = self._model.predict(given, self._options)
        for tokens, place, one in zip(sentences, places, found, strict=True):
            answer = self._model.kind.answer(one)
            _annotate(tokens, answer["tokens"])
            parse = next(iter(answer.get("parses", ())), None)
            trees.append([*place, "" if parse is None else parse["tree"]])
            for node in () if parse is None else parse["constituents"]:
                start, end = tokens[node["start"]].i, tokens[node["end"] - 1].i + 1
                spans.append([node["label"], start, end, node["probability"]])
        doc.user_data[KEY] = {"constituents": spans, "trees": trees}
        return doc


def _annotate(tokens: Sequence[Token], answered: Sequence[Mapping[str, Any]]) -> None:
    """Set what the answer says of tokens; a tag of Universal Dependencies is the `pos_`."""
    for token, told in zip(tokens, answered, strict=False):  # a failed answer has none
        if "head" not in told:
            token.tag_ = told["tag"] or ""
            continue
        token.pos_, token.tag_, token.dep_ = told["tag"], told["xpos"] or "", told["relation"]
        token.head = token if told["head"] == 0 else tokens[told["head"] - 1]


def _word(token: Token) -> str:
    """Spell a token without the white space that a tree cannot hold."""
    return " ".join(token.text.split())


def _set_sentences(doc: Doc, segmenter: Segmenter) -> None:
    starts = [one.start or 0 for one in segmenter.sentences(doc.text)][1:]
    for token in doc:
        token.is_sent_start = token.i == 0
        if starts and token.idx >= starts[0] and not token.is_space:
            token.is_sent_start = True
            del starts[0]


def _kept(doc: Doc, what: str) -> list[Any]:
    if KEY not in doc.user_data:
        raise ValueError(
            'expected a document that "lpcfg" has parsed, got one that it has not: add it to the '
            'pipeline with nlp.add_pipe("lpcfg")'
        )
    found: list[Any] = doc.user_data[KEY][what]
    return found


def _constituents(part: Doc | Span) -> list[Span]:
    """List the labelled spans of a document or of a part of it, in pre-order."""
    doc, start, end = _place(part)
    return [
        Span(doc, first, last, label=label)
        for label, first, last, _ in _kept(doc, "constituents")
        if start <= first and last <= end
    ]


def _parse_string(part: Doc | Span) -> str:
    """Join the bracketed trees of the sentences in a document or in a part of it."""
    doc, start, end = _place(part)
    return "\n".join(_trees(doc, start, end))


def _trees(doc: Doc, start: int, end: int) -> Iterator[str]:
    for first, last, tree in _kept(doc, "trees"):
        if start <= first and last <= end:
            yield tree


def _place(part: Doc | Span) -> tuple[Doc, int, int]:
    return (part, 0, len(part)) if isinstance(part, Doc) else (part.doc, part.start, part.end)


def _probability(span: Span) -> float | None:
    """Look up the probability of a constituent; None for a span that is not a constituent."""
    for label, start, end, probability in _kept(span.doc, "constituents"):
        if (label, start, end) == (span.label_, span.start, span.end):
            found: float | None = probability
            return found
    return None


for _kind in (Doc, Span):
    _kind.set_extension("constituents", getter=_constituents, force=True)
    _kind.set_extension("parse_string", getter=_parse_string, force=True)
Span.set_extension("probability", getter=_probability, force=True)
