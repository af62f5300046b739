"""Languages as rows of a table: recognised words, tokens of text, words made of several."""

from dataclasses import replace

import pytest

from lpcfg.grammar.lexicon import SIGNATURES
from lpcfg.grammar.spelling import SPELLINGS
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.text.languages import LANGUAGES, likely, warning
from lpcfg.text.tokenize import segments, tokenize
from tests import small_models

PROSE = {
    "english": "The dog of the neighbour barked at the postman, and that was all there is to it.",
    "spanish": "El perro de la vecina ladra por la noche y no se calla en las horas de sueño.",
    "german": "Der Hund der Nachbarin bellt und die Katze ist nicht mit dem Lärm zu wecken.",
    "french": "Le chien de la voisine aboie pour les passants et le chat est dans une caisse.",
    "neutral": "Pies mojego sąsiada szczeka całą noc, więc jutro pójdę do niego porozmawiać.",
}


def words(text: str, language: str) -> list[str]:
    return [token.text for token in tokenize(text, language)]


@pytest.mark.parametrize("language", PROSE)
def test_prose_is_recognised(language: str) -> None:
    text = words(PROSE[language], "neutral") * 20
    assert likely(text) == language
    assert likely(text[:50]) is None
    for other in LANGUAGES:
        found = warning(text, other)
        assert (found is None) == (other in (language, "neutral"))
        assert found is None or f"--language {language}" in found


def test_every_row_names_signatures_and_spellings() -> None:
    assert {row.rules for row in LANGUAGES.values()} <= SIGNATURES.keys() & SPELLINGS.keys()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("spanish", "¿Vino el señor? ¡Sí!", "¿ Vino el señor ? ¡ Sí !"),
        ("french", "L'ami d'Anne qu'il a.", "L' ami d' Anne qu' il a ."),
        ("french", "C'est aujourd'hui.", "C' est aujourd'hui ."),
        ("german", "Das E-Mail-Konto kostet 3,50 Euro.", "Das E-Mail-Konto kostet 3,50 Euro ."),
        ("neutral", "a-b c'd e_f 1.000 x@y.z!", "a-b c'd e_f 1.000 x@y.z !"),
        ("neutral", "cannot 10kg can't", "cannot 10kg can't"),
    ],
)
def test_text_is_cut_by_the_rules_of_its_language(language: str, text: str, expected: str) -> None:
    assert words(text, language) == expected.split()
    for token in tokenize(text, language):
        assert text[token.start : token.end] == token.text


def test_words_that_a_treebank_made_of_several_are_joined() -> None:
    multiwords = frozenset({"por_ciento", "51_por_ciento", "sin_embargo"})
    text = "El 51 por ciento, sin  embargo, por ciento"
    found = tokenize(text, "spanish", multiwords)
    assert [token.form for token in found] == [
        *("El", "51_por_ciento", ",", "sin", "embargo", ",", "por_ciento"),
    ]
    assert found[1].text == "51 por ciento"
    assert all(text[token.start : token.end] == token.text for token in found)


def test_text_is_parsed_in_the_words_of_the_models_language() -> None:
    model = small_models.counts()
    words = (*model.lexicon.words[:-1], "a_lot")
    neutral = replace(model, lexicon=replace(model.lexicon, language="neutral", words=words))
    (found,) = Parser(neutral).segmenter.sentences("  He can't a lot")
    assert found.tokens == ("He", "can't", "a lot")
    assert found.forms == ("He", "can't", "a_lot")
    assert found.offsets == ((2, 4), (5, 10), (11, 16))
    (found,) = Parser(model).segmenter.sentences("  He can't a lot")
    assert found.tokens == ("He", "ca", "n't", "a", "lot")


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("german", "Der Termin ist am 3. Oktober bei Hrn. Müller bzw. Frau Klein.", 1),
        ("german", "Er kommt am 12. Mai, z. B. um 5 Uhr. Gut.", 2),
        ("spanish", "El Sr. Pérez vive en EE.UU. con la Sra. López. Véase pág. 3.", 2),
        ("french", "M. Dupont arrive. Mme. Durand est là.", 2),
        ("english", "Mr. Smith came on Oct. 3. He left.", 2),
    ],
)
def test_sentences_end_as_in_their_language(language: str, text: str, count: int) -> None:
    assert len(list(segments(text, language))) == count
