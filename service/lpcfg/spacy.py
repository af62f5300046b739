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

from collections.abc import Iterator
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from lpcfg.api.functions import load
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import ENGLISH, Sentence

KEY = "lpcfg"
"""The key under which a document keeps its parses: plain values, so that it can be stored."""


@Language.factory("lpcfg", default_config={"model": "en", "store": None})
def create(nlp: Language, name: str, model: str, store: str | None) -> "Constituents":
    """Make the component for a pipeline; `model` and `store` are those of `lpcfg.load`."""
    del nlp, name
    return Constituents(load(model, store=store))


class Constituents:
    """Adds `doc._.constituents` and `._.parse_string` of documents and their sentences."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def __call__(self, doc: Doc) -> Doc:
        """Parse every sentence of a document."""
        if not doc.has_annotation("SENT_START"):
            _set_sentences(doc)
        spans: list[list[Any]] = []
        trees: list[list[Any]] = []
        for sentence in doc.sents:
            tokens = [token for token in sentence if not token.is_space]
            if not tokens:
                continue
            given = Sentence([_word(token) for token in tokens])
            (analysis,) = self._parser.predict([given])
            trees.append([sentence.start, sentence.end, str(analysis.tree or "")])
            for one in analysis.constituents:
                start, end = tokens[one.start].i, tokens[one.end - 1].i + 1
                spans.append([one.label, start, end, one.probability])
        doc.user_data[KEY] = {"constituents": spans, "trees": trees}
        return doc


def _word(token: Token) -> str:
    """Spell a token without the white space that a tree cannot hold."""
    return " ".join(token.text.split())


def _set_sentences(doc: Doc) -> None:
    starts = [one.start or 0 for one in ENGLISH.sentences(doc.text)][1:]
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
