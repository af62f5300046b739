"""The spaCy component, on spaCy's blank English."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

import lpcfg.spacy
from lpcfg.base.errors import InputError, StoreError

STORE = str(Path(__file__).resolve().parents[2] / "model_store")


@pytest.fixture(scope="module")
def nlp() -> Language:
    made = spacy.blank("en")
    made.add_pipe("lpcfg", config={"store": STORE})
    return made


def test_sentences_and_constituents_are_those_of_spacys_tokens(nlp: Language) -> None:
    doc = nlp("  The cat\nsat on the mat.  It didn't sleep (much).")
    assert [one.text.strip() for one in doc.sents] == [
        "The cat\nsat on the mat.",
        "It didn't sleep (much).",
    ]
    first, second = doc.sents
    words = [token.text for token in first if not token.is_space]
    assert lpcfg.Tree.from_string(first._.parse_string).tokens() == words
    assert "(-LRB- -LRB-)" in second._.parse_string
    assert doc._.parse_string == f"{first._.parse_string}\n{second._.parse_string}"
    assert [one.text for one in first._.constituents if one.label_ == "PP"] == ["on the mat"]
    assert len(doc._.constituents) == len(first._.constituents) + len(second._.constituents)
    assert all(0 <= one._.probability <= 1 for one in doc._.constituents)
    assert doc[0:1]._.probability is None


def test_boundaries_that_are_there_are_kept(nlp: Language) -> None:
    with_sents = spacy.blank("en")
    with_sents.add_pipe("sentencizer", config={"punct_chars": ["!"]})
    with_sents.add_pipe("lpcfg", config={"store": STORE})
    assert len(list(with_sents("It ran. It slept! Yes.").sents)) == 2
    assert len(list(nlp("It ran. It slept! Yes.").sents)) == 3


def test_parses_outlive_the_document_being_stored(nlp: Language) -> None:
    doc = nlp("It slept.")
    stored = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (back,) = DocBin(store_user_data=True).from_bytes(stored).get_docs(nlp.vocab)
    assert back._.parse_string == doc._.parse_string
    assert [one.text for one in back._.constituents] == [one.text for one in doc._.constituents]


def test_empty_documents_have_nothing(nlp: Language) -> None:
    for text in ("", "  \n"):
        assert nlp(text)._.constituents == []
        assert nlp(text)._.parse_string == ""


def test_what_was_not_parsed_says_so(nlp: Language) -> None:
    with pytest.raises(ValueError, match='expected a document that "lpcfg" has parsed'):
        Doc(nlp.vocab, ["It"])._.constituents  # noqa: B018
    with pytest.raises(StoreError, match="expected a model `none`"):
        spacy.blank("en").add_pipe("lpcfg", config={"model": "none", "store": STORE})


def test_a_dependency_model_sets_heads_relations_and_tags() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("lpcfg", config={"model": "en-dep", "store": STORE})
    doc = nlp("The dog barked.  It ran.")
    told = [(token.text, token.head.text, token.dep_, token.pos_, token.tag_) for token in doc]
    assert told[:3] == [
        ("The", "dog", "det", "DET", "DT"),
        ("dog", "barked", "nsubj", "NOUN", "NN"),
        ("barked", "barked", "root", "VERB", "VBD"),
    ]
    assert [sentence.text for sentence in doc.sents] == ["The dog barked.  ", "It ran."]
    assert doc._.constituents == []


def test_options_of_parsing_are_given_in_the_configuration() -> None:
    nlp = spacy.blank("en")
    with pytest.raises(InputError, match="did you mean `objective`"):
        nlp.add_pipe("lpcfg", config={"model": "en", "store": STORE, "options": {"objektive": 1}})
    plain = spacy.blank("en")
    plain.add_pipe(
        "lpcfg", config={"model": "en", "store": STORE, "options": {"objective": "max-product"}}
    )
    assert plain("The dog barked.")[0].tag_ == "DT"
