"""Correcting a tree: rivals taken, words asked for and forbidden, tags changed, all undone."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import Reader

TELESCOPE = "The old man saw the dog with a telescope in the park."


def spans(page: Page) -> set[tuple[str, int, int]]:
    """List the constituents and tags that are drawn."""
    found: list[dict[str, str]] = page.locator("#trees .node").evaluate_all(
        "all => all.map((one) => ({...one.dataset}))"
    )
    return {(one["label"], int(one["start"]), int(one["end"])) for one in found}


def asked(reader: Reader) -> dict[str, Any]:
    """Return the sentence of the last request for trees."""
    body: dict[str, Any] = reader.asked("/v1/parse")[-1].post_data_json
    sentence: dict[str, Any] = body["sentences"][0]
    return sentence


def rivals(page: Page) -> Locator:
    return page.locator("#inspected .choice")


def word(page: Page, number: int) -> Locator:
    return page.locator(".tree .node .word").nth(number)


def drag(page: Page, start: int, end: int) -> None:
    """Drag from the first word to the last before `end`."""
    first, last = (word(page, place).bounding_box() for place in (start, end - 1))
    assert first is not None
    assert last is not None
    page.mouse.move(first["x"] + 3, first["y"] + 5)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] - 3, last["y"] + 5, steps=8)
    page.mouse.up()


def doubtful(reader: Reader) -> dict[str, Any]:
    """Return the constituent of the first reading that the model is least sure of."""
    sentence = reader.parse(TELESCOPE)["sentences"][0]
    least: dict[str, Any] = min(
        sentence["parses"][0]["constituents"], key=lambda one: one["probability"]
    )
    return least


def test_a_node_shows_its_rivals_and_one_of_them_can_be_taken(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    one = doubtful(reader)
    place = (one["label"], one["start"], one["end"])
    before = spans(page)
    reader.node(*place).click()
    expect(page.locator("#inspected h2")).to_have_text(one["label"])
    expect(rivals(page).first).to_be_visible()
    refused = rivals(page).filter(has_text="no constituent here")
    expect(refused).to_have_count(1)
    with page.expect_response("**/v1/parse"):
        refused.click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    assert asked(reader)["constraints"] == [{"start": place[1], "end": place[2], "forbid": True}]
    after = spans(page)
    assert place in before
    assert place[1:] not in {span[1:] for span in after}
    marked = page.locator(".node.moved").evaluate_all(
        "all => all.map((one) => [one.dataset.label, +one.dataset.start, +one.dataset.end])"
    )
    assert {tuple(row) for row in marked} == after - before
    expect(page.locator("#moved-told")).to_have_text(
        re.compile(rf"{len(after - before)} nodes? new, {len(before - after)} gone")
    )
    page.locator(".node").first.click()
    expect(page.locator(".node.moved")).to_have_count(0)


def test_corrections_are_undone_and_done_again(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    before = spans(page)
    one = doubtful(reader)
    reader.node(one["label"], one["start"], one["end"]).click()
    rivals(page).filter(has_text="no constituent here").click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    after = spans(page)
    assert after != before
    page.locator("#tab-tree").focus()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Redo")).to_be_enabled()
    assert spans(page) == before
    page.get_by_role("button", name="Redo").click()
    assert spans(page) == after
    page.get_by_role("button", name="Ask no more").click()
    expect(page.locator("#asked li")).to_have_count(0)
    assert spans(page) == before


def test_words_dragged_over_become_a_constituent_that_is_asked_for(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    drag(page, 4, 9)
    expect(page.locator("#inspected h2")).to_have_text("5 words")
    expect(page.locator("#inspected q")).to_have_text("the dog with a telescope")
    page.get_by_label("Label", exact=True).select_option("NP")
    page.get_by_role("button", name="Ask for this constituent").click()
    expect(reader.node("NP", 4, 9)).to_be_visible()
    assert asked(reader)["constraints"] == [{"start": 4, "end": 9, "label": "NP"}]
    expect(page.locator("#asked")).to_contain_text("NP over “the dog with a telescope”")
    reader.node("NP", 4, 9).click()
    expect(page.locator("#inspected")).to_contain_text("You asked for this.")
    # what contradicts it takes its place
    drag(page, 3, 6)
    page.get_by_label("Label", exact=True).select_option("VP")
    page.get_by_role("button", name="Ask for this constituent").click()
    expect(page.locator("#asked li")).to_have_count(1)


def other_tag(reader: Reader) -> str:
    """Find a tag that `cat` can have as well in `The cat sleeps.`"""
    known = reader.page.request.get(f"{reader.origin}/v1/models").json()["models"][0]["tags"]
    for tag in known:
        sentence = {"tokens": ["The", "cat", "sleeps", "."], "tags": [None, tag, None, None]}
        found = reader.page.request.post(
            f"{reader.origin}/v1/parse", data={"sentences": [sentence]}
        ).json()
        if tag != "NN" and found["sentences"][0]["status"] == "parsed":
            return str(tag)
    raise AssertionError("the model knows one tag alone")


def test_the_tag_of_a_word_is_changed(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    tag = other_tag(reader)
    reader.node("NN", 1, 2).click()
    page.get_by_label("Tag", exact=True).select_option(tag)
    page.get_by_role("button", name="Change the tag").click()
    expect(reader.node(tag, 1, 2)).to_be_visible()
    assert asked(reader)["tags"] == [None, tag, None, None]
    expect(page.locator("#asked")).to_contain_text(f"“cat” is {tag}")


@pytest.mark.parametrize(("words", "name"), [(1, "Tag"), (3, "Label")])
def test_what_was_picked_stays_when_probabilities_come(
    reader: Reader, words: int, name: str
) -> None:
    page = reader.open(TELESCOPE)
    held: list[Route] = []
    page.route("**/v1/marginals", lambda route: held.append(route))
    if words == 1:
        word(page, 0).click()
    else:
        drag(page, 0, words)
    choice = page.get_by_label(name, exact=True)
    choice.select_option(index=3)
    picked = choice.input_value()
    with page.expect_response("**/v1/marginals"):
        held.pop().continue_()
    reader.settled()
    expect(page.locator("#inspected")).not_to_contain_text("Asking how probable")
    expect(choice).to_have_value(picked)


def test_what_no_tree_has_leaves_the_tree_as_it_was(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    before = spans(page)
    answer = reader.parse("The cat sleeps.")
    failed = {**answer["sentences"][0], "status": "failed", "reason": "ask for fewer", "parses": []}
    page.route(
        "**/v1/parse",
        lambda route: route.fulfill(json={**answer, "sentences": [failed]}),
        times=1,
    )
    drag(page, 0, 2)
    page.get_by_role("button", name="Forbid a constituent here").click()
    expect(page.get_by_role("alert")).to_contain_text("No tree has all of this")
    assert spans(page) == before
    assert "stale" not in (page.locator("#analysis").get_attribute("class") or "")


def test_corrected_trees_are_kept_and_downloaded(reader: Reader) -> None:
    page = reader.open("The cat sleeps. It rained.")
    tag = other_tag(reader)
    reader.node("NN", 1, 2).click()
    page.get_by_label("Tag", exact=True).select_option(tag)
    page.get_by_role("button", name="Change the tag").click()
    expect(reader.node(tag, 1, 2)).to_be_visible()
    page.get_by_role("button", name="Add to your treebank").click()
    expect(page.locator("#told")).to_have_text("Added: your treebank has 1 tree.")
    page.reload()
    reader.settled()
    page.get_by_role("button", name="2. It rained.").click()
    page.locator("#menu summary").click()
    expect(page.locator("#treebank-size")).to_have_text("Your treebank: 1 tree")
    page.get_by_role("button", name="Add this tree").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the treebank").click()
    trees = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(trees) == 2
    assert f"({tag} cat)" in trees[0]
    assert "rained)" in trees[1]


def test_a_treebank_is_cleared_only_after_a_question(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.locator("#menu summary").click()
    page.get_by_role("button", name="Add this tree").click()
    for answer, size in (("dismiss", "1 tree"), ("accept", "0 trees")):
        page.once("dialog", lambda dialog, answer=answer: getattr(dialog, answer)())
        page.get_by_role("button", name="Clear the treebank").click()
        expect(page.locator("#treebank-size")).to_have_text(f"Your treebank: {size}")
    expect(page.get_by_role("button", name="Download the treebank")).to_be_disabled()


def test_words_are_chosen_by_buttons_as_by_dragging(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    reader.node("DT", 4, 5).click()
    group = page.get_by_role("group", name="Choose more words")
    for _ in range(4):
        group.get_by_role("button", name="Add a word →").click()
    group.get_by_role("button", name="← Add a word").click()
    expect(page.locator("#inspected h2")).to_have_text("6 words")
    chosen = page.locator(".node.chosen .word").all_text_contents()
    assert " ".join(chosen) == "saw the dog with a telescope"
    page.get_by_role("button", name="Forbid a constituent here").click()
    expect(page.locator("#asked")).to_contain_text("saw the dog with a telescope")


def test_keys_alone_correct_a_tree(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    reader.node("DT", 4, 5).focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("#inspected h2")).to_have_text("5 words")
    page.get_by_label("Label", exact=True).focus()
    page.keyboard.type("NP")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(reader.node("NP", 4, 9)).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Redo")).to_be_enabled()


def test_the_next_doubt_is_chosen_one_after_another(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    sentence = reader.parse(TELESCOPE)["sentences"][0]
    parts = [*sentence["parses"][0]["constituents"], *sentence["tokens"]]
    doubts = sum(one["probability"] < 0.95 for one in parts)
    button = page.locator("#next-doubt")
    expect(button).to_have_text(f"{doubts} in doubt")
    seen = []
    for _ in range(doubts):
        button.click()
        chosen = page.locator(".node.chosen")
        expect(chosen).to_have_count(1)
        seen.append(chosen.get_attribute("data-node"))
    assert len(set(seen)) == doubts


def test_labels_explain_themselves(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    reader.node("NP", 0, 3).click()
    expect(page.locator("#inspected")).to_contain_text("a noun phrase")
    page.locator("#open-help").click()
    known = page.request.get(f"{reader.origin}/v1/models").json()["models"][0]
    for kind in ("labels", "tags"):
        names = page.locator(f"#glossary-{kind} dt").all_inner_texts()
        assert names == known[kind]
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
