"""The probability of given trees: beside the exact engine, and what is missing where it is zero."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lpcfg.engine.exact.inside_outside import inside, tree_probability
from lpcfg.engine.pruned.coarse import Thresholds
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.grammar.tables import Grammar
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.tree_probability import Missing, never_a_root, tree_chart
from lpcfg.kinds.sentences import Sentence
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import small_models
from tests.small_charts import NOTHING_OUT, SINGLE

# Trees of up to 13 words under small positive and negative numbers: fewer than 10⁴ roundings.
ROUNDING = 1e4 * SINGLE

LITERAL = Sentence(("She", "said", "that", "she", "liked", "the", "garden", "."))


@pytest.mark.parametrize("tree", small_models.trees()[::4], ids=str)
def test_a_trees_probability_agrees_with_the_exact_engine(tree: Tree) -> None:
    model = replace(small_models.spectral(horizontal=0), fallback=None)
    parser = Parser(model, thresholds=NOTHING_OUT)
    emissions = parser._emissions(Sentence(tuple(tree.tokens()), forms=tuple(tree.tokens())))
    (found,) = parser.tree_probability([tree])
    right = tree_probability(model.members[0], binarize(tree), emissions).probability
    sentence = inside(model.members[0], emissions).probability
    assert found.sign == right.sign == sentence.sign == 1
    assert found.log_probability == pytest.approx(right.log, abs=ROUNDING)
    assert found.sentence_log_probability == pytest.approx(sentence.log, abs=ROUNDING)
    assert found.conditional_log_probability == pytest.approx(
        right.log - sentence.log, abs=2 * ROUNDING
    )
    assert (found.reason, found.missing) == (None, ())


def test_all_trees_of_a_sentence_together_have_its_probability() -> None:
    model = replace(small_models.counts(horizontal=0, rare_threshold=0), fallback=None)
    parser = Parser(model, thresholds=NOTHING_OUT)
    (analysis,) = parser.predict([LITERAL], ParseOptions(k=10_000))
    scores = parser.tree_probability([one.tree for one in analysis.parses])
    assert len(scores) > 4
    # float64 sums, seen through logs
    assert math.fsum(
        math.exp(one.conditional_log_probability or 0.0) for one in scores
    ) == pytest.approx(1.0, abs=1e-10)
    for one, parse in zip(scores, analysis.parses, strict=True):
        assert one.sentence_log_probability == analysis.log_probability
        assert one.log_probability == pytest.approx(parse.log_probability, abs=1e-10)


def test_a_parsed_tree_scores_as_the_parser_said() -> None:
    """With sibling marks as well: a tree has one derivation with marks as frequent as learned."""
    parser = small_models.parser()
    for tree in small_models.trees()[::16]:
        asked = Sentence(tuple(tree.tokens()), forms=tuple(tree.tokens()))
        best = parser.parse([asked])[0]
        (found,) = parser.tree_probability([best.parses[0].tree])
        assert found.log_probability == pytest.approx(best.parses[0].log_probability, abs=ROUNDING)
        assert found.sentence_log_probability == best.log_probability


def test_no_tree_is_more_probable_than_certain() -> None:
    """Pruning leaves p(sentence) without most of its trees, one of which is asked about."""
    model = replace(small_models.spectral(horizontal=0), fallback=None)
    asked = Sentence(("A", "cold", "morning", "in", "March", "."))
    (whole,) = Parser(model, thresholds=NOTHING_OUT).predict([asked], ParseOptions(k=10))
    narrow = Parser(model, thresholds=Thresholds(merit=0.0, item=0.3, edge=0.3))
    best, *others = narrow.tree_probability([parse.tree for parse in whole.parses])
    assert best.log_probability is not None
    assert best.sentence_log_probability is not None
    assert best.log_probability > best.sentence_log_probability + 1
    assert best.conditional_log_probability is None
    assert best.reason == "p(tree) is larger than p(sentence): their ratio is no probability"
    assert 0.0 in [one.conditional_log_probability for one in others]  # the one tree left


# What is missing --------------------------------------------------------------------------------


def reasons(text: str) -> tuple[str | None, tuple[int, ...]]:
    model = replace(small_models.counts(horizontal=0, rare_threshold=0), fallback=None)
    (found,) = Parser(model, thresholds=NOTHING_OUT).tree_probability([parse_tree(text)])
    assert (found.sign, found.log_probability, found.conditional_log_probability) == (0, None, None)
    return found.reason, found.missing


def test_a_missing_rule_is_named_at_its_node() -> None:
    text = "(S (NP (DT The) (NN dog)) (VP (VBD saw) (NP (NN cat) (DT the))) (. .))"
    assert reasons(text) == ("the grammar does not have `(NP NN DT)` over “cat the”", (6,))


def test_a_missing_word_is_named_at_its_leaf() -> None:
    text = "(S (NP (DT The) (NN saw)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .))"
    assert reasons(text) == ("the grammar does not have the word `saw` as `NN`", (3,))


def test_all_that_is_missing_is_named_once_and_placed_everywhere() -> None:
    """But not the rules over it, which follow: `(NP DT XX)` here."""
    text = "(S (NP (DT gnu) (NN gnu)) (VP (VBD saw) (NP (DT gnu) (XX cat))) (. .))"
    assert reasons(text) == (
        "the grammar does not have the word `gnu` as `DT`, the word `gnu` as `NN`, the label `XX`",
        (2, 3, 7, 8),
    )


def test_a_reason_names_eight_things_and_counts_the_others() -> None:
    leaves = " ".join(f"(X{k} gnu)" for k in range(10))
    reason, nodes = reasons(f"(S {leaves})")
    assert reason is not None
    assert reason.endswith("the label `X6`, the label `X7` and 2 more")
    assert nodes == tuple(range(1, 11))


def test_unary_chains_are_shown_in_brackets() -> None:
    """Pre-order numbers: S 0, VP 1, NN 2 is one symbol; a word is missing at its leaf."""
    assert reasons("(S (VP (NN dog)))") == (
        "the grammar does not have the chain `(S (VP NN))` over “dog”",
        (0,),
    )
    text = "(S (NP (NNP dog)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .))"
    assert reasons(text) == ("the grammar does not have the word `dog` as `(NP NNP)`", (2,))
    assert reasons("(S (NP (DT The) (NN dog)))") == (
        "the grammar does not have the chain `(S NP)` over “The dog”",
        (0,),
    )
    text = "(S (VP (VBD saw) (NP (DT The) (NN dog)) (NP (PRP it))))"
    assert reasons(text) == (
        "the grammar does not have `(S (VP VBD NP (NP PRP)))` over “saw The dog it” "
        "(missing at child 3 of 3)",
        (1,),
    )


def test_a_row_of_children_says_at_which_one_it_ends() -> None:
    assert reasons("(S (NP (DT The) (NN dog)) (NP (PRP it)) (VP (VBZ sleeps)) (. .))") == (
        "the grammar does not have `(S NP (NP PRP) (VP VBZ) .)` over “The dog it sleeps .” "
        "(missing at child 2 of 4)",
        (0,),
    )
    assert reasons("(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (NP (PRP it)))") == (
        "the grammar does not have `(S NP (VP VBZ) (NP PRP))` over “The dog sleeps it” "
        "(missing at child 3 of 3)",
        (0,),
    )


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (
            "NN DT" + " NN" * 8,
            "(NP NN DT NN NN NN NN NN NN …)` over “cat the cat cat cat … cat cat”",
        ),
        (
            "DT" + " NN" * 9 + " CC IN" + " NN" * 8,
            "(NP … NN NN NN CC IN NN NN NN …)` over “the cat cat cat cat … cat cat”",
        ),
        (
            "DT" + " NN" * 16 + " DT",
            "(NP … NN NN NN NN NN NN NN DT)` over “the cat cat cat cat … cat the”",
        ),
    ],
    ids=["first", "middle", "last"],
)
def test_reasons_show_only_the_place_in_long_rows_and_sentences(labels: str, shown: str) -> None:
    words = {"NN": "cat", "DT": "the", "CC": "and", "IN": "in"}
    reason, _ = reasons(f"(NP {' '.join(f'({one} {words[one]})' for one in labels.split())})")
    assert reason is not None
    assert f"`{shown} (missing at child " in reason


def test_a_symbol_that_is_never_a_root_has_its_own_reason() -> None:
    reason, nodes = reasons("(PP (IN in) (NP (DT the) (NN garden)))")
    assert (reason, nodes) == ("`PP` is never a root", (0,))
    assert never_a_root(Tree("NP|NP|PRP", word="it")).reason == "`(NP (NP PRP))` is never a root"


def altered(tree: Tree) -> Iterator[Tree]:
    """Return the tree with the children of one node in reverse, or with one node alone under
    another.
    """
    places = range(len(list(tree.nodes())))
    for place in places:
        yield changed(tree, place, lambda node: Tree(node.label, node.children[::-1], node.word))
        yield changed(tree, place, lambda node: Tree("VP", (node,)))


def changed(tree: Tree, place: int, change: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with another node at a place of its pre-order."""
    if place == 0:
        return change(tree)
    children, place = [], place - 1
    for child in tree.children:
        size = len(list(child.nodes()))
        children.append(changed(child, place, change) if 0 <= place < size else child)
        place -= size
    return Tree(tree.label, tuple(children), tree.word)


@pytest.mark.parametrize("horizontal", [0, 1])
def test_reasons_hold_no_symbols_of_the_grammar(horizontal: int) -> None:
    model = small_models.counts(horizontal=horizontal)
    parser = Parser(model)
    trees = [one for tree in small_models.trees()[::8] for one in altered(tree)]
    lacking = 0
    for tree in trees:
        emissions = parser._emissions(Sentence(tuple(tree.tokens())))
        found = tree_chart(model.grammar, binarize(tree, horizontal=horizontal), emissions)
        if isinstance(found, Chart):
            continue
        lacking += 1
        assert not set("@|<%") & set(found.reason)
        nodes = list(tree.nodes())
        assert found.nodes
        assert all(f"{nodes[place].label}" in found.reason for place in found.nodes)
    assert len(trees) > lacking > len(trees) / 2


def test_callers_labels_that_look_like_symbols_are_kept() -> None:
    reason, nodes = reasons("(S|VP (NP (DT The) (NN dog)) (@X a) (VP< b))")
    assert reason == ("the grammar does not have the label `S|VP`, the label `@X`, the label `VP<`")
    assert nodes == (0, 4, 5)


def rules_of(grammar: Grammar, tree: Tree) -> set[str]:
    """List the names of a tree's rules."""
    inner = [node for node in binarize(tree).nodes() if not node.is_leaf]
    names = {f"{n.label} → {n.children[0].label} {n.children[1].label}" for n in inner}
    return names & {grammar.rule_name(r) for r in range(grammar.n_rules)}


def test_different_signs_give_no_conditional_probability() -> None:
    """A rule that only unlikely trees have is negative: p(tree) < 0 < p(sentence)."""
    model = replace(small_models.counts(horizontal=0, rare_threshold=0), fallback=None)
    grammar, coarse = model.grammar, model.coarse
    (analysis,) = Parser(model, thresholds=NOTHING_OUT).predict([LITERAL], ParseOptions(k=10_000))
    best, *_, least = sorted(analysis.parses, key=lambda one: -(one.log_probability or 0.0))
    rare = min(rules_of(grammar, least.tree) - rules_of(grammar, best.tree))
    signs = [-1.0 if grammar.rule_name(r) == rare else 1.0 for r in range(grammar.n_rules)]
    member = replace(coarse, parent=coarse.parent * signs)
    parser = Parser(replace(model, members=(member,)), thresholds=NOTHING_OUT)
    (found,) = parser.tree_probability([least.tree])
    (whole,) = parser.parse([LITERAL])
    assert (found.sign, whole.sign) == (-1, 1)
    assert found.log_probability == pytest.approx(least.log_probability, abs=ROUNDING)
    assert found.sentence_log_probability == whole.log_probability
    assert found.conditional_log_probability is None
    assert found.reason == "p(tree) and p(sentence) differ in sign: their ratio is no probability"


def test_a_tree_from_the_fallback_grammar_has_the_probability_of_its_parse() -> None:
    tree = parse_tree("(NP (DT that) (JJ that) (. .))")
    parser = small_models.parser()
    (found,) = parser.tree_probability([tree])
    (whole,) = parser.parse([Sentence(tuple(tree.tokens()))])
    assert found.sentence_log_probability == whole.log_probability
    assert found.reason is not None


def test_without_a_pruned_chart_there_is_no_conditional_probability() -> None:
    parser = Parser(
        replace(small_models.spectral(), fallback=None), thresholds=Thresholds(0.0, 2.0, 2.0)
    )
    tree = small_models.trees()[0]
    (found,) = parser.tree_probability([tree])
    (right,) = small_models.parser().tree_probability([tree])
    assert (found.sign, found.log_probability) == (right.sign, right.log_probability)
    assert (found.sentence_log_probability, found.conditional_log_probability) == (None, None)
    assert found.reason == "pruning left no analysis of the sentence to compare the tree with"


def test_words_are_looked_up_in_the_forms_they_were_learned_in() -> None:
    """Straight quotes turn as their tags say, as in training."""
    parser = small_models.parser()
    straight = parse_tree("(S (`` \") (NP (PRP She)) (VP (VBZ sleeps)) ('' \") (. .))")
    turned = parse_tree("(S (`` ``) (NP (PRP She)) (VP (VBZ sleeps)) ('' '') (. .))")
    found, right = parser.tree_probability([straight, turned])
    assert found.sentence_log_probability == right.sentence_log_probability
    assert (found.sign, found.missing) == (right.sign, right.missing)


# The chart of one tree --------------------------------------------------------------------------


def test_a_trees_chart_holds_its_nodes_children_first() -> None:
    model = small_models.counts(horizontal=0, rare_threshold=0)
    tree = parse_tree("(S (NP (DT The) (NN dog)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .))")
    emissions = Parser(model)._emissions(Sentence(tuple(tree.tokens())))
    chart = tree_chart(model.grammar, binarize(tree), emissions)
    assert isinstance(chart, Chart)
    assert len(chart.symbol) == 11
    assert len(chart.rule) == 5
    assert (chart.start[-1], chart.end[-1]) == (0, 6)
    above = [t for t in range(11) if chart.edge_start[t + 1] > chart.edge_start[t]]
    for e, t in enumerate(above):
        left, right = chart.left[e], chart.right[e]
        assert max(left, right) < t
        assert (chart.start[left], chart.end[left]) == (chart.start[t], chart.start[right])
        assert chart.end[right] == chart.end[t]
        expected = [chart.symbol[t], chart.symbol[left], chart.symbol[right]]
        assert model.grammar.rules[chart.rule[e]].tolist() == expected
    for t in leaves(chart):
        w = chart.start[t]
        rows = slice(emissions.start[w], emissions.start[w + 1])
        at = emissions.symbol[rows].tolist().index(chart.symbol[t])
        assert chart.entry[t] == emissions.entry[rows][at]
        assert chart.inside[t] == emissions.weight[rows][at]


def leaves(chart: Chart) -> list[int]:
    return [t for t in range(len(chart.symbol)) if chart.entry[t] >= 0]


def test_rare_sibling_marks_fall_back_to_the_bare_symbol() -> None:
    """The treebank has no JJ in the middle of an ADJP often enough for `@ADJP<JJ`."""
    model = small_models.counts()
    ids = model.grammar.symbol_ids
    bare = next(
        (model.grammar.symbols[a], model.grammar.symbols[b], model.grammar.symbols[c])
        for a, b, c in model.grammar.rules.tolist()
        if model.grammar.symbols[a].startswith("@")
        and "<" not in model.grammar.symbols[a]
        and min(b, c) >= model.grammar.n_internal
    )
    parent, left, right = bare
    marked = f"{parent}<{right}"
    assert marked not in ids
    tree = Tree(marked, (Tree(left, word="one"), Tree(right, word="two")))
    asked = Sentence(("one", "two"), tags=(left.split("|")[-1], right.split("|")[-1]))
    found = tree_chart(model.grammar, tree, Parser(model)._emissions(asked))
    assert isinstance(found, Chart)
    assert model.grammar.rule_name(int(found.rule[0])) == f"{parent} → {left} {right}"


def test_nodes_of_a_constituent_that_never_has_so_many_children_are_missing() -> None:
    """There is no `@WHNP` at all, whatever its mark."""
    model = small_models.counts()
    assert not [name for name in model.grammar.symbols if name.startswith("@WHNP")]
    tree = parse_tree("(WHNP (DT The) (NN dog) (NN dog))")
    emissions = Parser(model)._emissions(Sentence(("The", "dog", "dog")))
    found = tree_chart(model.grammar, binarize(tree, horizontal=1), emissions)
    assert isinstance(found, Missing)
    assert (found.reason, found.nodes) == (
        "the grammar does not have `(WHNP DT NN NN)` over “The dog dog” (missing at child 2 of 3)",
        (0,),
    )
