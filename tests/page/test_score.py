"""Asking for a tree: its probabilities, what the grammar lacks, and brackets that are no tree."""

import math
import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Reader

GOOD = "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))"
ODD = "(S (VP (VBZ sleeps)) (NP (DT The) (NN cat)) (. .))"


def ask(page: Page, brackets: str) -> None:
    page.get_by_label("Trees in Penn brackets").fill(brackets)
    page.get_by_role("button", name="How probable?").click()


def test_a_tree_is_scored_as_the_service_scores_it(reader: Reader) -> None:
    page = reader.open(view="score")
    ask(page, f"(ROOT {GOOD})")
    card = page.locator("#scores article")
    expect(card).to_have_count(1)
    told = page.request.post(f"{reader.origin}/v1/tree-probability", data={"trees": [GOOD]}).json()
    score = told["trees"][0]
    card.get_by_text("Numbers").click()
    logs = [one for one in card.locator("dd").all_inner_texts() if not one.startswith("negative")]
    share = card.locator(".verdict").inner_text()
    conditional = score["conditional_log_probability"]
    names = ("log_probability", "sentence_log_probability", "conditional_log_probability")
    assert [float(one.replace("−", "-")) for one in logs] == pytest.approx(
        [score[name] for name in names],
        abs=0.005,  # two decimals
    )
    if 0.095 < math.exp(conditional) < 0.995:
        assert share == f"{math.exp(conditional):.0%}".replace("%", " %")
    assert card.locator(".word").all_text_contents() == ["The", "cat", "sleeps", "."]
    expect(card.locator(".node.lacking")).to_have_count(0)


def test_gaps_in_the_grammar_are_marked_in_the_tree(reader: Reader) -> None:
    page = reader.open(view="score")
    ask(page, ODD)
    told = page.request.post(f"{reader.origin}/v1/tree-probability", data={"trees": [ODD]}).json()
    score = told["trees"][0]
    card = page.locator("#scores article")
    expect(card).to_contain_text("probability 0")
    expect(card).to_contain_text(score["reason"].replace("`", ""))
    expect(card.locator("dd").first).to_have_text("−∞")
    marked = card.locator(".node.lacking").evaluate_all(
        "all => all.map((one) => +one.dataset.node)"
    )
    assert score["missing"]
    assert marked == score["missing"]
    expect(card.locator(".flag text").first).to_have_text("!")
    expect(card.get_by_role("treeitem").first).to_have_accessible_name(
        re.compile(r"^S: .*, sleeps The cat \., .* sure, the grammar has no such rule or word$")
    )


def test_brackets_that_are_no_tree_do_not_keep_others_from_being_scored(reader: Reader) -> None:
    page = reader.open(view="score")
    text = f"{GOOD}\n\n(S (NP (DT The) (NN 😀)) extra)\n"
    ask(page, text)
    cards = page.locator("#scores article")
    expect(cards).to_have_count(2)
    expect(cards.nth(0).locator(".tree")).to_be_visible()
    expect(cards.nth(1)).to_contain_text("These brackets are not a tree")
    expect(cards.nth(1)).to_contain_text("Line 1 of this tree, column 25")
    cards.nth(1).get_by_role("button", name="Show the place").click()
    box = page.get_by_label("Trees in Penn brackets")
    expect(box).to_be_focused()
    place = box.evaluate("one => one.value.slice(one.selectionStart)")
    assert place.startswith("extra")


def test_the_tree_shown_is_taken_over_and_asked_for_by_keys(reader: Reader) -> None:
    page = reader.open("The cat sleeps.", view="score")
    page.get_by_role("button", name="Take the tree shown").click()
    box = page.get_by_label("Trees in Penn brackets")
    tree = reader.parse("The cat sleeps.")["sentences"][0]["parses"][0]["tree"]
    expect(box).to_have_value(tree)
    expect(box).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#scores article")).to_have_count(1)
    assert reader.asked("/v1/tree-probability")[0].post_data_json == {"trees": [tree]}


def test_each_node_of_a_given_tree_has_its_probability(reader: Reader) -> None:
    page = reader.open(view="score")
    flat = "(S (NP (DT The) (NN cat)) (VP (VBD saw) (NP (DT the) (NN dog))) (. .))"
    ask(page, flat)
    expect(page.locator("#scores .node").first).to_be_visible()
    spans = [{"start": 0, "end": 6}, {"start": 0, "end": 2}, {"start": 2, "end": 5}]
    told = page.request.post(
        f"{reader.origin}/v1/marginals",
        data={
            "sentences": [{"tokens": ["The", "cat", "saw", "the", "dog", "."]}],
            "spans": spans,
            "threshold": 0,
        },
    ).json()
    known = {(one["label"], one["start"], one["end"]): one["probability"] for one in told["spans"]}
    names = page.locator("#scores .node:not([data-label='DT'])").evaluate_all(
        "all => all.map((one) => one.getAttribute('aria-label'))"
    )
    for label, start, end in (("S", 0, 6), ("NP", 0, 2), ("VP", 2, 5)):
        share = known[label, start, end]
        name = next(one for one in names if one.startswith(f"{label}: "))
        sure = re.search(r"(over )?(\d+(?:\.\d)?) % sure", name)
        assert sure is not None
        assert float(sure[2]) == pytest.approx(100 * share, abs=1)
