"""Rules of style, each on trees written by hand."""

import io

import pytest

from lpcfg.base.errors import InputError
from lpcfg.trees.brackets import parse_tree, write
from lpcfg.trees.style import RULES, Style, read_normalized


def changed(rule: str, tree: str) -> tuple[str | None, int]:
    result, changes = RULES[rule].change(parse_tree(tree))
    return None if result is None else write(result), changes


CASES: list[tuple[str, str, str | None]] = [
    (
        "markup",
        "(S (CODE <p>) (NP (PRP I)) (VP (VBP go)) (SU /))",
        "(S (NP (PRP I)) (VP (VBP go)))",
    ),
    (
        "markup",
        "(S (X (SU /)) (VP (VB go)))",
        "(S (VP (VB go)))",
    ),
    (
        "markup",
        "(CODE <TURN>)",
        None,
    ),
    (
        "tags",
        "(NP (-LSB- [) (AFX non) (NN x) (-RSB- ]))",
        "(NP (-LRB- [) (JJ non) (NN x) (-RRB- ]))",
    ),
    (
        "tags",
        "(S (NP (NN n)) (ADJP (JJ =) (NP (CD 3))))",
        "(S (NP (NN n)) (ADJP (SYM =) (NP (CD 3))))",
    ),
    (
        "titles",
        "(CAPTION (S (NP (NNS Mice)) (VP (VBP eat)) (. .)))",
        "(S (NP (NNS Mice)) (VP (VBP eat)) (. .))",
    ),
    (
        "titles",
        "(HEADING (NP (NNS Results)) (. .))",
        "(FRAG (NP (NNS Results)) (. .))",
    ),
    (
        "titles",
        "(NP (NN x) (CIT (-LRB- -LRB-) (NNP Ho) (-RRB- -RRB-)))",
        "(NP (NN x) (PRN (-LRB- -LRB-) (NNP Ho) (-RRB- -RRB-)))",
    ),
    (
        "w-words",
        "(SBAR (NP (WP who)) (S (VP (VBD sang))))",
        "(SBAR (WHNP (WP who)) (S (VP (VBD sang))))",
    ),
    (
        "w-words",
        "(SBARQ (CC But) (NP (WP$ whose) (NN cat)) (SQ (VP (VBZ is))) (. ?))",
        "(SBARQ (CC But) (WHNP (WP$ whose) (NN cat)) (SQ (VP (VBZ is))) (. ?))",
    ),
    (
        "to",
        "(VP (VBD went) (PP (TO to) (NP (NNP Rome))))",
        "(VP (VBD went) (PP (IN to) (NP (NNP Rome))))",
    ),
    (
        "inner-stops",
        "(S (S (NP (PRP We)) (VP (VBD saw))) (. .))",
        "(S (S (NP (PRP We)) (VP (VBD saw)) (. .)))",
    ),
    (
        "inner-stops",
        "(S (NP (NP (NN Growth)) (PP (IN of) (NP (NNS cells)))) (. .) ('' ''))",
        "(S (NP (NP (NN Growth)) (PP (IN of) (NP (NNS cells))) (. .) ('' '')))",
    ),
    (
        "inner-stops",
        "(S (S (S (NP (PRP We)) (VP (VBD saw))) (. .)))",
        "(S (S (S (NP (PRP We)) (VP (VBD saw)) (. .))))",
    ),
    (
        "inner-stops",
        "(S (S (S (VP (VB Go)))) (. .))",
        "(S (S (S (VP (VB Go)) (. .))))",
    ),
    (
        "stops",
        "(S (S (NP (PRP We)) (VP (VBD saw))) (. .))",
        "(S (NP (PRP We)) (VP (VBD saw)) (. .))",
    ),
    (
        "stops",
        "(S (SINV (VP (VBD came)) (NP (PRP he))) (. .))",
        "(SINV (VP (VBD came)) (NP (PRP he)) (. .))",
    ),
    (
        "flat-nouns",
        "(NP (DT the) (NN T) (NN cell) (NP (NN growth)))",
        "(NP (DT the) (NN T) (NN cell) (NN growth))",
    ),
    (
        "flat-nouns",
        "(NP (NP (NN Ro)) (NNS precipitins))",
        "(NP (NN Ro) (NNS precipitins))",
    ),
    (
        "flat-nouns",
        "(NP (NP (NN Ro)))",
        "(NP (NN Ro))",
    ),
]
AFTER = [(rule, result) for rule, _, result in CASES if result is not None]


@pytest.mark.parametrize(("rule", "tree", "expected"), CASES)
def test_a_rule_changes_what_it_is_for(rule: str, tree: str, expected: str | None) -> None:
    result, changes = changed(rule, tree)
    assert result == expected
    assert changes >= 1


@pytest.mark.parametrize(
    ("rule", "tree"),
    [
        ("markup", "(NP (NN code))"),
        ("tags", "(NP (JJ new) (-LRB- -LRB-) (NN x) (-RRB- -RRB-))"),
        ("titles", "(S (NP (NN title)) (VP (VBZ is)))"),
        ("w-words", "(SBAR (IN that) (S (NP (PRP he)) (VP (VBD sang))))"),
        ("w-words", "(SBAR (S (NP (WP who)) (VP (VBD sang))))"),
        ("to", "(VP (TO to) (VP (VB go)))"),
        ("inner-stops", "(S (VP (VB Go)) (. .))"),
        ("inner-stops", "(S (S (VP (VB Go))) (CC and) (S (VP (VB see))) (. .))"),
        ("inner-stops", "(S (NP (PRP We)) (VP (VBD saw)) (. .))"),
        ("inner-stops", "(CAPTION (NP (NP (NNS Mice)) (PP (IN in) (NP (NN rest)))) (. .))"),
        ("inner-stops", "(S (S (VP (VB Go))) (. .) (S (VP (VB see))))"),
        ("stops", "(S (S (VP (VB Go))) (CC and) (S (VP (VB see))) (. .))"),
        ("stops", "(S (NP (NN Growth)) (. .))"),
        ("flat-nouns", "(NP (NP (NN growth)) (PP (IN of) (NP (NNS cells))))"),
        ("flat-nouns", "(NP (NN T) (NN cell) (NP (NN growth)) (CC and) (NP (NN division)))"),
        ("flat-nouns", "(NP (NP (NNP Ann)) (, ,) (NP (DT a) (NN cook)))"),
    ],
)
def test_a_rule_leaves_other_trees_alone(rule: str, tree: str) -> None:
    assert changed(rule, tree) == (tree, 0)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_needs_something_of_every_tree_that_it_changes(rule: str) -> None:
    for name, tree, _ in CASES:
        found = parse_tree(tree)
        has = {node.label for node in found.nodes()} | {leaf.word for leaf in found.leaves()}
        assert name != rule or not RULES[rule].needs.isdisjoint(has)


@pytest.mark.parametrize(("rule", "result"), AFTER)
def test_rules_change_nothing_the_second_time(rule: str, result: str) -> None:
    assert changed(rule, result) == (result, 0)


def test_a_style_applies_its_rules_in_one_order_and_counts_them() -> None:
    style = Style.of(["to", "titles"])
    assert style.rules == ("titles", "to")
    tree = parse_tree("(HEADING (PP (TO to) (NP (NN school))))")
    assert style(tree) == parse_tree("(PP (IN to) (NP (NN school)))")
    assert style.counts([tree, tree]) == {"titles": 2, "to": 2}
    assert Style.of(["all"]).rules == tuple(RULES)


def test_without_rules_a_tree_stays_the_same_object() -> None:
    tree = parse_tree("(CAPTION (NP (NN x)))")
    assert Style()(tree) is tree


def test_unknown_rules_are_named() -> None:
    with pytest.raises(InputError, match=r"expected rules of style among .*, got `wwords`"):
        Style.of(["wwords"])


def test_trees_are_read_normalized_and_in_style() -> None:
    text = "(S1 (HEADING (NP-SBJ (NN x)))) (TOP (CODE <p>)) ((S (-NONE- *)))"
    trees = read_normalized(io.StringIO(text), Style.of(["titles", "markup"]))
    assert [write(tree) for tree in trees] == ["(NP (NN x))"]


def test_a_tree_a_thousand_deep_is_no_problem() -> None:
    deep = "(HEADING " * 400 + "(NP (NN x))" + ")" * 400
    result, changes = changed("titles", deep)
    assert (result, changes) == ("(NP (NN x))", 400)
