"""A parser accepts text, tokens and sentences, and its answers iterate, print and draw."""

import subprocess
import sys
from pathlib import Path

import nltk
import pytest

import lpcfg
from lpcfg.kinds.constituency.readout import ROUNDING
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import Constraint
from tests import small_models

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
TOKENS = ["Anna", "saw", "the", "man", "with", "the", "telescope", "."]


@pytest.fixture(scope="module")
def parser() -> lpcfg.Parser:
    return small_models.parser()


def brackets(analyses: list[Analysis]) -> list[str]:
    return [str(one) for one in analyses]


def test_every_way_to_give_a_sentence_has_the_same_answer(parser: lpcfg.Parser) -> None:
    text = "Anna saw the man with the telescope."
    (expected,) = brackets(parser(text))
    forms = [text, TOKENS, tuple(TOKENS), lpcfg.Sentence(TOKENS)]
    assert brackets(parser.parse(forms)) == [expected] * 4
    assert brackets(parser.parse(iter(forms))) == [expected] * 4
    assert brackets(parser.parse(lpcfg.Sentence(TOKENS))) == [expected]
    spans = [parser.marginals(one).spans for one in forms]
    assert spans == [spans[0]] * 4


def test_text_has_sentences_and_a_string_in_a_list_is_one(parser: lpcfg.Parser) -> None:
    text = "The dog slept. It ran."
    assert [one.sentence.text for one in parser(text)] == ["The dog slept.", "It ran."]
    assert [one.sentence.text for one in parser([text])] == [text]
    assert parser("") == []
    assert parser([]) == []


@pytest.mark.parametrize("wrong", [None, 5, b"The dog.", {"text": "x"}, {"a", "b"}, object])
def test_what_is_no_text_is_refused_with_what_is_accepted(
    parser: lpcfg.Parser, wrong: object
) -> None:
    with pytest.raises(lpcfg.InputError, match="expected text as a string, or a list of sentences"):
        parser.parse(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, None, b"dog", {"tokens": ["a"]}])
def test_what_is_no_sentence_is_named_with_its_place(parser: lpcfg.Parser, wrong: object) -> None:
    with pytest.raises(lpcfg.InputError, match=r"expected a sentence .* as item 1: give one"):
        parser.parse(["The dog slept.", wrong])  # type: ignore[list-item]


@pytest.mark.parametrize("token", ["", " ", "a\tb", "a  b", 7, None, ["dog"]])
def test_what_is_no_token_is_named_with_its_place(parser: lpcfg.Parser, token: object) -> None:
    for given in (["The", token], lpcfg.Sentence(["The", token])):  # type: ignore[list-item]
        with pytest.raises(lpcfg.InputError, match=r"got .* as token 1 as item 0: correct") as told:
            parser.parse([given])  # type: ignore[list-item]
        assert told.value.pointer == "/tokens/1"


def test_a_sentence_of_a_string_is_refused() -> None:
    with pytest.raises(lpcfg.InputError, match="expected tokens as a list of strings, got 'The"):
        lpcfg.Sentence("The dog")


def test_constraints_hold_and_belong_to_one_sentence(parser: lpcfg.Parser) -> None:
    for wanted in ((2, 7, "NP"), (2, 7), [2, 7, "NP"], Constraint(2, 7, "NP")):
        (found,) = parser.parse([TOKENS], constraints=[wanted])  # type: ignore[list-item]
        assert (2, 7) in {(one.start, one.end) for one in found.constituents}
        (same,) = parser.parse([lpcfg.Sentence(TOKENS, constraints=[wanted])])  # type: ignore[list-item]
        assert same == found
    (free,) = parser.parse([TOKENS])
    assert (2, 7) not in {(one.start, one.end) for one in free.constituents}
    with pytest.raises(
        lpcfg.InputError, match="expected one sentence for these constraints, got 2"
    ):
        parser.parse([TOKENS, TOKENS], constraints=[(2, 7)])
    for wrong in ((2,), "NP", (2, 7, 5), (2.0, 7), 3):
        with pytest.raises(lpcfg.InputError, match=r"expected constraints as \(start, end\)"):
            parser.parse([TOKENS], constraints=[wrong])  # type: ignore[list-item]


def test_probabilities_of_all_trees_are_shares_of_one(parser: lpcfg.Parser) -> None:
    (analysis,) = parser.parse([["The", "dog", "slept", "."]], k=10_000)
    shares = [parse.probability for parse in analysis.parses]
    assert len(shares) == 3
    assert sum(one or 0.0 for one in shares) == pytest.approx(1.0, abs=ROUNDING)
    assert analysis.probability == shares[0]
    assert analysis.probability is not None
    assert analysis.probability == max(one for one in shares if one is not None)


def test_every_way_to_give_a_tree_has_the_same_answer(parser: lpcfg.Parser) -> None:
    text = "( (S (NP-SBJ (DT The) (NN dog)) (VP (VBD slept) (NP (-NONE- *))) (. .)))"
    tree = lpcfg.Tree.from_string(text)
    normal = "(S (NP (DT The) (NN dog)) (VP (VBD slept)) (. .))"
    (expected,) = parser.tree_probability(text)
    assert expected.conditional_log_probability is not None
    for given in (tree, [tree], [text], normal, iter([normal])):
        assert parser.tree_probability(given) == [expected]
    assert parser.tree_probability(f"{text}\n{normal}") == [expected] * 2


def test_what_is_no_tree_is_refused_with_what_is_accepted(parser: lpcfg.Parser) -> None:
    for wrong in (None, 5, b"(X x)", [5], [None]):
        with pytest.raises(
            lpcfg.InputError, match=r"expected a tree as an lpcfg\.Tree or in brack"
        ):
            parser.tree_probability(wrong)  # type: ignore[arg-type]
    with pytest.raises(lpcfg.InputError, match="got one of traces alone"):
        parser.tree_probability("(NP (-NONE- *))")


def test_constituents_have_the_text_they_stand_over(parser: lpcfg.Parser) -> None:
    text = "It ran.  The dog saw  the man."
    found = parser(text)[1]
    assert {one.text for one in found.constituents} >= {"The dog", "saw  the man", "the man"}
    assert all(text[one.start_char : one.end_char] == one.text for one in found.constituents)
    (tokens,) = parser([["The", "dog", "slept", "."]])
    assert tokens.constituents[0].text == "The dog slept ."


def test_a_sentence_without_a_tree_says_so_and_has_none(parser: lpcfg.Parser) -> None:
    (analysis,) = parser([[]])
    assert (analysis.status, analysis.tree, analysis.probability) == ("failed", None, None)
    assert analysis.constituents == ()
    assert str(analysis) == "failed: there are no tokens: send at least one word"
    assert analysis._repr_html_() == str(analysis)


def test_answers_print_and_draw_a_tree_a_sentence(parser: lpcfg.Parser) -> None:
    answers = parser("The dog slept. It ran.")
    assert str(answers).split("\n") == [str(one.tree) for one in answers]
    assert answers._repr_html_().count("<svg") == 2
    assert repr(answers[0]) == f"<{answers[0].tree}>"
    assert answers[0].tree is not None
    assert answers[0]._repr_html_() == answers[0].tree.draw() == answers[0].tree._repr_svg_()


def test_a_tree_becomes_an_nltk_tree_of_the_same_brackets() -> None:
    for tree in small_models.trees()[:20]:
        other = tree.to_nltk()
        assert isinstance(other, nltk.Tree)
        assert other.pformat(margin=10**9) == str(tree)
        assert other.leaves() == tree.tokens()


@pytest.mark.parametrize("width", [1, 20, 40, 79, 10**6])
def test_pretty_brackets_fit_and_read_back(width: int) -> None:
    for tree in small_models.trees():
        shown = tree.pretty(width)
        assert lpcfg.Tree.from_string(shown) == tree
        for line in shown.splitlines():
            whole = line.strip()
            assert len(line) <= width or whole.count("(") == 1
    assert "\n" not in small_models.trees()[0].pretty(10**6)


def test_trees_of_any_depth_are_printed() -> None:
    tree = lpcfg.Tree("X", (), "x")
    for _ in range(3000):
        tree = lpcfg.Tree("X", (tree,))
    assert tree.pretty(20).count("\n") > 2900


def test_from_string_refuses_what_is_no_string() -> None:
    with pytest.raises(lpcfg.InputError, match="expected a tree in brackets as a string, got int"):
        lpcfg.Tree.from_string(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, [], [5], ["a", 5]])
def test_what_is_no_treebank_is_refused_with_what_is_accepted(wrong: object) -> None:
    with pytest.raises(lpcfg.InputError, match="expected a treebank as the path of a file or fold"):
        lpcfg.train(wrong, estimator="counts")  # type: ignore[arg-type]


def test_a_trained_model_saves_what_the_command_would_publish(tmp_path: Path) -> None:
    trees = [lpcfg.Tree.from_string(str(tree)) for tree in small_models.trees()]
    from_trees = lpcfg.train(trees, estimator="spectral", states=4, workers=1)
    from_file = lpcfg.train(SMALL, "spectral", states=4, workers=1, dev=SMALL)
    assert str(from_trees.parser()([TOKENS])) == str(from_file.parser()([TOKENS]))
    assert from_file.report.dev is not None
    reference = from_file.save("mine", store=tmp_path)
    loaded = lpcfg.load("mine", store=tmp_path)
    assert loaded.reference == reference
    assert str(loaded([TOKENS])) == str(from_file.parser()([TOKENS]))
    with pytest.raises(lpcfg.TrainingError, match="magic"):
        lpcfg.train(SMALL, magic=1)


def test_what_a_store_lacks_is_loaded_from_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(lpcfg.load("en@1", store=tmp_path / "given").reference) == "en@1"
    monkeypatch.setenv("LPCFG_MODEL_STORE", str(tmp_path / "set"))
    assert lpcfg.load("en").reference == lpcfg.load("en@2").reference
    assert lpcfg.load_dependencies().reference is not None
    trees = list(small_models.trees()) * 2  # 64 are too few for a rescoring layer
    told = lpcfg.train(trees, "counts", workers=1).report.as_json()["rescoring"]
    assert told["vectors_from"] == "en@2"


SCRIPT = """
import sys
import lpcfg
from lpcfg.training.data import treebank

treebank._CHUNK = 2000  # bytes a worker reads at a time, so that a small file needs several
print("once")
model = lpcfg.train(sys.argv[1], estimator="counts", workers=2)
print(model.parser().parse([["The", "dog", "slept", "."]]))
"""


def test_a_script_without_a_main_guard_trains_with_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, SMALL], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "once"
    assert done.stdout.count("once") == 1
