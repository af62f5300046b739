"""The tree: what the service said, read by pointing, folded, walked, moved, and compared."""

import json
import math
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import WORDS_20, Reader

TELESCOPE = "The old man saw the dog with a telescope in the park."


def drawn(page: Page, tree: int = 0) -> list[tuple[str, int, int, str]]:
    """Label, span and number of every node of a tree, in pre-order."""
    nodes: list[dict[str, Any]] = (
        page.locator("#trees > article")
        .nth(tree)
        .locator(".node")
        .evaluate_all(
            "all => all.map((one) => ({...one.dataset,"
            " number: one.querySelector('.number')?.textContent ?? ''}))"
        )
    )
    nodes.sort(key=lambda one: int(one["node"]))
    return [(one["label"], int(one["start"]), int(one["end"]), one["number"]) for one in nodes]


def told(probability: float) -> str:
    """Write the number that stands in a node: none where the model is sure."""
    return "" if probability >= 0.95 else f"{min(94, math.floor(100 * probability + 0.5))}%"


def returned(sentence: dict[str, Any], parse: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    """Find the constituents and tags in what the service returned."""
    rows = [
        (one["label"], one["start"], one["end"], told(one["probability"]))
        for one in parse["constituents"]
    ]
    return rows + [
        (one["tag"], place, place + 1, told(one["probability"]))
        for place, one in enumerate(sentence["tokens"])
    ]


@pytest.mark.parametrize(
    "text", [TELESCOPE, WORDS_20, "Hello!", "She gave the (old) man 😀 a book."]
)
def test_the_drawing_shows_what_the_service_returned(reader: Reader, text: str) -> None:
    page = reader.open(text)
    sentence = reader.parse(text)["sentences"][0]
    assert sorted(drawn(page)) == sorted(returned(sentence, sentence["parses"][0]))
    words = page.locator(".tree .word").all_text_contents()
    assert words == [one["text"] for one in sentence["tokens"]]


def test_pointing_at_a_node_lights_its_words(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    reader.node("NP", 0, 3).hover()
    assert reader.lit_words() == "The old man"
    page.locator("h1").hover()
    assert reader.lit_words() == ""


def test_pointing_at_a_word_lights_all_nodes_around_it(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    page.locator(".tree .word", has_text="old").hover()
    lit = page.locator(".node.lit").evaluate_all("all => all.map((one) => one.dataset.label)")
    assert sorted(lit) == ["JJ", "NP", "S"]
    assert reader.lit_words() == "old"


def test_a_double_click_folds_a_node_and_another_unfolds_it(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    everything = drawn(page)
    subject = reader.node("NP", 0, 3)
    subject.dblclick()
    expect(subject).to_have_attribute("aria-expanded", "false")
    expect(subject.locator(".folded-words")).to_have_text("The old man")
    hidden = {("DT", 0, 1), ("JJ", 1, 2), ("NN", 2, 3)}
    assert {row[:3] for row in everything} - {row[:3] for row in drawn(page)} == hidden
    subject.dblclick()
    assert drawn(page) == everything


def test_all_lowest_phrases_fold_at_once(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    everything = drawn(page)
    page.locator("summary", has_text="Fold").click()
    page.get_by_role("button", name="Lowest phrases").click()
    assert page.locator(".folded-words").all_text_contents() == [
        "The old man",
        "the dog",
        "a telescope",
        "the park",
    ]
    page.get_by_role("button", name="Lowest phrases").click()
    assert drawn(page) == everything


def test_all_that_is_sure_folds_and_leaves_every_doubt_in_view(reader: Reader) -> None:
    page = reader.open(WORDS_20)
    everything = drawn(page)
    doubts = {row for row in everything if row[3]}
    assert doubts
    page.locator("summary", has_text="Fold").click()
    page.get_by_role("button", name="All that is sure").click()
    left = drawn(page)
    assert len(left) < len(everything)
    assert {row for row in left if row[3]} == doubts


def test_folds_survive_another_screen_size_and_the_chart(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    reader.node("NP", 0, 3).dblclick()
    folded = drawn(page)
    page.set_viewport_size({"width": 700, "height": 900})
    box = page.locator(".canvas").first
    page.wait_for_function("box => box.clientWidth < 700", arg=box.element_handle())
    assert drawn(page) == folded
    page.get_by_role("tab", name="Chart").click()
    page.get_by_role("tab", name="Tree", exact=True).click()
    assert drawn(page) == folded


def test_keys_walk_and_fold(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    page.get_by_role("treeitem", name="S: ").first.focus()

    def walked(key: str) -> tuple[str, str]:
        page.keyboard.press(key)
        data = page.evaluate("({...document.activeElement.dataset})")
        return data["label"], f"{data['start']}-{data['end']}"

    assert walked("ArrowDown") == ("NP", "0-3")
    assert reader.lit_words() == "The old man"
    assert walked("ArrowDown") == ("DT", "0-1")
    assert walked("ArrowRight") == ("JJ", "1-2")
    assert walked("ArrowUp") == ("NP", "0-3")
    assert walked("ArrowRight") == ("VP", "3-12")
    assert walked("ArrowLeft") == ("NP", "0-3")
    assert walked(" ") == ("NP", "0-3")
    expect(reader.node("NP", 0, 3)).to_have_attribute("aria-expanded", "false")
    assert walked("ArrowDown") == ("NP", "0-3")
    assert walked("End") == (".", "12-13")
    assert walked("Home") == ("S", "0-13")
    assert walked(" ") == ("S", "0-13")
    assert drawn(page)[0][:3] == ("S", 0, 13)
    assert len(drawn(page)) == 1


def test_a_tree_becomes_an_outline_and_keys_turn_with_it(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    everything = drawn(page)
    page.get_by_role("button", name="Outline").click()
    expect(page.get_by_role("button", name="Outline")).to_have_attribute("aria-pressed", "true")
    assert drawn(page) == everything
    words = page.locator(".tree .word")
    tops = [box["y"] for one in words.all() if (box := one.bounding_box())]
    assert tops == sorted(tops)
    assert len(set(tops)) == 13
    page.get_by_role("treeitem", name="S: ").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.label") == "NP"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.label") == "VP"


def test_a_tree_is_zoomed_by_buttons_keys_and_wheel(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    picture = page.locator(".tree")

    def width() -> float:
        return float(picture.get_attribute("width") or "nan")

    start = width()
    page.get_by_role("button", name="Larger").click()
    assert width() == pytest.approx(1.25 * start)
    page.get_by_role("button", name="Smaller").click()
    assert width() == pytest.approx(start)
    page.get_by_role("treeitem", name="S: ").first.focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert width() == pytest.approx(1.25**2 * start)
    page.keyboard.press("0")
    assert width() == pytest.approx(start)
    picture.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(
        "start => Number(document.querySelector('.tree').getAttribute('width')) > start", arg=start
    )


def test_a_large_tree_is_moved_by_dragging_without_folding_anything(reader: Reader) -> None:
    page = reader.open(WORDS_20)
    for _ in range(5):
        page.get_by_role("button", name="Larger").click()
    everything = drawn(page)
    box = page.locator(".canvas").first
    page.locator(".tree").evaluate("one => one.parentElement.scrollTo(300, 0)")
    around = box.bounding_box()
    assert around is not None
    x, y = around["x"] + around["width"] / 2, around["y"] + 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y, steps=4)
    page.mouse.move(x - 120, y, steps=4)
    page.mouse.up()
    assert box.evaluate("one => one.scrollLeft") == pytest.approx(420, abs=1)  # pixels are rounded
    assert drawn(page) == everything


def test_readings_are_chosen_and_told_with_their_shares(reader: Reader) -> None:
    page = reader.open(TELESCOPE, k=3)
    sentence = reader.parse(TELESCOPE, k=3)["sentences"][0]
    choices = page.get_by_role("group", name="Readings").get_by_role("radio")
    expect(choices).to_have_count(3)
    shares = [parse["probability"] for parse in sentence["parses"]]
    for number in (1, 0):
        choices.nth(number).check(force=True)
        assert sorted(drawn(page)) == sorted(returned(sentence, sentence["parses"][number]))
        best = max(share for place, share in enumerate(shares) if place != number)
        told = page.locator("#verdict").inner_text()
        if shares[number] < 0.01:
            assert re.match(r"About \d+ of \d+ nodes right", told)
            continue
        own, other = re.findall(r"(This reading|next|another): (?:over |under )?([\d.]+) %", told)
        assert own[0] == "This reading"
        assert other[0] == ("another" if best > shares[number] else "next")
        assert float(own[1]) == pytest.approx(100 * shares[number], abs=0.5)  # "over 99 %"
        assert float(other[1]) == pytest.approx(100 * best, abs=0.5)


def marked(page: Page, tree: int) -> set[tuple[str, int, int]]:
    found: list[list[Any]] = (
        page.locator("#trees > article")
        .nth(tree)
        .locator(".node.differs")
        .evaluate_all(
            "all => all.map((one) => [one.dataset.label, +one.dataset.start, +one.dataset.end])"
        )
    )
    return {(label, start, end) for label, start, end in found}


def test_two_readings_stand_side_by_side_with_what_differs(reader: Reader) -> None:
    page = reader.open(TELESCOPE, k=2)
    sentence = reader.parse(TELESCOPE, k=2)["sentences"][0]
    own, other = (
        {(one["label"], one["start"], one["end"]) for one in parse["constituents"]}
        for parse in sentence["parses"]
    )
    assert own != other
    page.get_by_role("button", name="Compare").click()
    assert marked(page, 0) == own - other
    assert marked(page, 1) == other - own
    flags = page.locator("#trees .flag text").all_text_contents()
    assert flags == ["≠"] * len(own ^ other)
    left, right = (page.locator("#trees > article").nth(n).bounding_box() for n in range(2))
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    told = page.locator(".differences li").all_inner_texts()
    assert len(told) == len(own ^ other)
    # the subject is the same in both: it is folded, and what differs is open and in view
    expect(reader.node("NP", 0, 3)).to_have_attribute("aria-expanded", "false")
    for tree, some in ((0, own - other), (1, other - own)):
        for label, start, end in some:
            expect(reader.node(label, start, end, tree)).to_be_in_viewport()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#trees > article")).to_have_count(1)


def test_two_models_stand_side_by_side(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    page.get_by_role("button", name="Compare").click()
    page.get_by_label("Compare with").select_option("other@1")
    right = page.locator("#trees > article").nth(1)
    expect(right.locator("header")).to_have_text("other@1")
    sentence = reader.parse(TELESCOPE, model="other")["sentences"][0]
    folded = page.locator("#trees > article:nth-child(2) .node[aria-expanded=false]").count()
    shown = {row[:3] for row in drawn(page, 1)}
    assert shown <= {row[:3] for row in returned(sentence, sentence["parses"][0])}
    assert folded > 0 or shown == {row[:3] for row in returned(sentence, sentence["parses"][0])}


def test_brackets_json_svg_and_png_are_saved_as_they_came(reader: Reader) -> None:
    page = reader.open(TELESCOPE, k=2)
    answer = reader.parse(TELESCOPE, k=2)
    page.get_by_role("radio", name="2").check(force=True)
    page.locator("#menu summary").click()

    def saved(name: str) -> bytes:
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        return download.value.path().read_bytes()

    tree = answer["sentences"][0]["parses"][1]["tree"]
    assert saved("Save brackets").decode() == f"{tree}\n"
    assert json.loads(saved("Save JSON")) == answer
    latex = saved("Save LaTeX (forest)").decode()
    assert latex.count("[") - latex.count("]") == 0
    assert "[{NN} [{telescope}]]" in latex
    picture = saved("Save SVG").decode()
    assert picture.count("<text") >= len(drawn(page))
    assert ">telescope</text>" in picture
    assert "var(" not in picture
    image = saved("Save PNG")
    assert image.startswith(b"\x89PNG")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    place = page.locator(".tree").get_attribute("viewBox")
    assert place is not None
    assert (width, height) == pytest.approx([2 * float(part) for part in place.split()[2:]], abs=1)
    page.get_by_role("button", name="Copy brackets").click()
    expect(page.get_by_text("Copied as brackets.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{tree}\n"
    page.get_by_role("button", name="Copy JSON").click()
    expect(page.get_by_text("Copied as JSON.")).to_be_visible()
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == answer


def test_a_saved_svg_is_a_picture_by_itself(reader: Reader) -> None:
    page = reader.open(TELESCOPE)
    page.locator("#menu summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SVG").click()
    alone = page.context.new_page()
    alone.set_content(download.value.path().read_text(encoding="utf-8"))
    words = alone.locator("svg text")
    expect(words.filter(has_text="telescope")).to_be_visible()
    box = alone.locator("svg").bounding_box()
    assert box is not None
    for one in words.all():
        inner = one.bounding_box()
        assert inner is not None
        assert box["x"] <= inner["x"]
        assert inner["x"] + inner["width"] <= box["x"] + box["width"]
