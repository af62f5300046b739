"""Everybody can use it: no violation that axe finds, keys alone, any width, light and dark.

Pictures of it go to artifacts/page/ for people to look at.
"""

import itertools
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from benchmarks.serving import Process
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import (
    PHONE,
    ROOT,
    WORDS_5,
    WORDS_20,
    Reader,
    of_words,
    reading,
)

PICTURES = ROOT / "artifacts" / "page"
SIZES = {"phone": PHONE, "laptop": (1024, 768), "desk": (1920, 1080)}
ODD = "(S (VP (VBZ sleeps)) (NP (DT The) (NN cat)) (. .))\n(S"


COLOURS = {"runOnly": ["color-contrast"]}  # all that another theme can change


def violations(page: Page, options: dict[str, list[str]] | None = None) -> list[str]:
    found = Axe().run(page, options=options).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


def show_tree(reader: Reader) -> None:
    page = reader.open("The old man saw the dog with a telescope. It rained.", view="tree", k=2)
    page.locator(".node[aria-expanded]").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#inspected .choice").first).to_be_visible()


def show_words(reader: Reader) -> None:
    """Show a corrected tree beside another, and its dependencies."""
    page = reader.open("The old man saw the dog with a telescope.")
    page.get_by_role("button", name="Dependencies").click()
    expect(page.locator(".arcs")).to_be_attached()
    reader.node("DT", 0, 1).focus()
    is_outline = page.locator(".pane.outline").count() > 0
    page.keyboard.press("Shift+ArrowDown" if is_outline else "Shift+ArrowRight")
    page.get_by_role("button", name="Forbid a constituent here").click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#trees > article")).to_have_count(2)


def show_chart(reader: Reader) -> None:
    page = reader.open("The old man saw the dog. It rained.", view="chart", k=2)
    page.get_by_text("The chart as a table").click()
    page.locator(".cell").first.focus()


def show_score(reader: Reader) -> None:
    page = reader.open(view="score")
    page.get_by_label("Trees in Penn brackets").fill(ODD)
    page.get_by_role("button", name="How probable?").click()
    expect(page.locator("#scores article")).to_have_count(2)


def show_problem(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.route("**/v1/parse", lambda route: route.abort(), times=1)
    page.get_by_label("Text", exact=True).fill("It rained.")
    expect(page.get_by_role("alert")).to_be_visible()


def show_help(reader: Reader) -> None:
    page = reader.open("It rained.")
    page.locator("#open-help").click()
    expect(page.get_by_role("dialog")).to_be_visible()


SHOWN = {
    "tree": show_tree,
    "words": show_words,
    "chart": show_chart,
    "score": show_score,
    "problem": show_problem,
    "help": show_help,
}


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_violation(chromium: Browser, service: Process, size: str) -> None:
    with reading(chromium, service, SIZES[size]) as reader:
        found = []
        for name, show in SHOWN.items():
            reader.page.emulate_media(color_scheme="light")
            show(reader)
            found += [f"{name}: {one}" for one in violations(reader.page)]
            reader.page.emulate_media(color_scheme="dark")
            found += [f"{name}, dark: {one}" for one in violations(reader.page, COLOURS)]
            reader.page.unroute_all()
        assert not found, "\n".join(found)


GEOMETRY = """
() => {
  const box = (one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    return { left, top, right, bottom };
  };
  const all = (selector) => [...document.querySelectorAll(selector)].map(box);
  return {
    labels: all(".tree .label, .tree .tag, .tree .word, .tree .number"),
    picture: box(document.querySelector(".tree")),
    pane: box(document.querySelector(".pane .canvas")),
    root: box(document.querySelector("[data-node='0'] .box")),
    map: document.querySelector(".minimap").hidden ? null : box(document.querySelector(".minimap")),
    outline: document.querySelector(".pane.outline") !== null,
    beyond: [...document.querySelectorAll("body *")]
      .filter((one) => box(one).right > innerWidth && !one.closest(
        ".canvas, .tools, .bar-row, .readout, .sentences"))
      .map((one) => one.id || one.className || one.tagName),
    room: document.documentElement.clientWidth,
    wide: document.documentElement.scrollWidth,
  };
}
"""


def overlapping(boxes: list[dict[str, float]]) -> list[tuple[dict[str, float], dict[str, float]]]:
    """List the pairs of boxes that share more than half the height of a line."""
    boxes = sorted(boxes, key=lambda one: one["left"])
    found = []
    for place, one in enumerate(boxes):
        for other in itertools.takewhile(
            lambda other, one=one: other["left"] < one["right"] - 1, boxes[place + 1 :]
        ):
            # letters stand in lines whose boxes are higher than they are
            height = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            if height > 0.5 * min(one["bottom"] - one["top"], other["bottom"] - other["top"]):
                found.append((one, other))
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("words", [5, 20, 70, 150])
def test_the_tree_is_in_view_and_nothing_overlaps_or_is_cut(
    chromium: Browser, service: Process, words: int, size: str
) -> None:
    text = {5: WORDS_5, 20: WORDS_20}.get(words) or of_words(words)
    assert len(text.split()) == words
    PICTURES.mkdir(parents=True, exist_ok=True)
    with reading(chromium, service, SIZES[size], "dark" if words == 20 else "light") as reader:
        page = reader.open(text)
        told = page.evaluate(GEOMETRY)
        assert told["wide"] == told["room"], f"the page scrolls sideways: {told['beyond']}"
        assert overlapping(told["labels"]) == []
        pane, picture, root = told["pane"], told["picture"], told["root"]
        height = SIZES[size][1]
        assert pane["top"] < height / 3
        assert pane["left"] <= root["left"] < root["right"] <= pane["right"]
        assert pane["top"] <= root["top"] < root["bottom"] <= min(pane["bottom"], height)
        for one in told["labels"]:
            assert picture["left"] <= one["left"] < one["right"] <= picture["right"]
            assert picture["top"] - 1 <= one["top"] < one["bottom"] <= picture["bottom"] + 1
        is_whole = picture["right"] <= pane["right"] + 1 and picture["bottom"] <= pane["bottom"] + 1
        if not told["outline"]:
            assert is_whole is (told["map"] is None)
            if not is_whole:
                middle = (pane["left"] + pane["right"]) / 2
                assert abs((root["left"] + root["right"]) / 2 - middle) < 2
        page.screenshot(path=PICTURES / f"tree-{words}-{size}.png")
        page.get_by_role("button", name="Fit").click()
        fitted = page.evaluate(GEOMETRY)
        if not told["outline"]:
            assert fitted["picture"]["right"] - fitted["picture"]["left"] <= (
                pane["right"] - pane["left"] + 1
            )
            assert fitted["map"] is None


def test_several_sentences_leave_the_tree_in_a_phones_first_third(
    chromium: Browser, service: Process
) -> None:
    with reading(chromium, service, PHONE) as reader:
        page = reader.open(f"{WORDS_20} It rained. {WORDS_5}")
        expect(page.locator("#sentences")).to_be_visible()
        assert page.evaluate(GEOMETRY)["pane"]["top"] < PHONE[1] / 3
        told = page.locator("#next-doubt")
        expect(told).to_be_in_viewport(ratio=1)  # the readings beside it can be swiped
        page.get_by_role("button", name="2. It rained.").click()
        assert page.evaluate(GEOMETRY)["pane"]["top"] < PHONE[1] / 3


def test_keys_alone_lead_through_the_page(reader: Reader) -> None:
    page = reader.open("The cat sleeps. It rained.")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", selector):
                return
        raise AssertionError(f"Tab never came to {selector}")

    tab_to(".skip")
    tab_to("nav a")
    tab_to("#text")
    tab_to("details:has(#k) summary")
    page.keyboard.press("Enter")
    tab_to("#k")
    page.keyboard.press("ArrowUp")
    reader.settled()
    expect(page.locator("#k")).to_have_value("2")
    page.keyboard.press("Escape")
    expect(page.locator("#k")).to_be_hidden()
    tab_to("#sentences button")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tree .word", has_text="rained")).to_be_visible()
    tab_to("[role=tab][aria-selected=true]")
    tab_to("#turn")
    tab_to("#menu summary")
    page.keyboard.press("Enter")
    tab_to("#copy-brackets")
    page.keyboard.press("Escape")
    expect(page.locator("#menu summary")).to_be_focused()
    tab_to(".node")
    assert reader.lit_words() == "It rained ."
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Chart")).to_be_focused()
    tab_to("#threshold")
    tab_to("#overlay")
    tab_to(".cell")
    tab_to("#table summary")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table")).to_be_visible()


def test_a_screen_reader_meets_a_tree(reader: Reader) -> None:
    page = reader.open("The old man saw the dog.")
    tree = page.get_by_role("tree")
    items = tree.get_by_role("treeitem")
    expect(items).to_have_count(page.locator(".tree .node").count())
    facts = items.evaluate_all(
        """all => all.map((one) => ["level", "setsize", "posinset"].map(
          (name) => Number(one.getAttribute(`aria-${name}`))))"""
    )
    levels = [level for level, _, _ in facts]
    assert levels[0] == 1
    assert all(1 <= place <= size for _, size, place in facts)
    assert all(level <= before + 1 for before, level in itertools.pairwise(levels))
    expect(items.first).to_have_accessible_name(
        re.compile(r"^S: a clause .*, The old man saw the dog \., .* sure")
    )
    assert items.evaluate_all("all => all.filter((one) => one.tabIndex === 0).length") == 1
    items.first.focus()
    page.keyboard.press("Enter")
    expect(items.first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("complementary", name="The node chosen")).to_contain_text("a clause")


def test_the_theme_is_the_systems_until_chosen_and_then_kept(reader: Reader) -> None:
    page = reader.open("It rained.")

    def paper() -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    light = paper()
    page.emulate_media(color_scheme="dark")
    dark = paper()
    assert dark != light
    button = page.get_by_role("button", name="Theme")
    button.click()
    expect(button).to_have_accessible_name("Theme: light")
    assert paper() == light
    page.reload()
    assert paper() == light
    button.click()
    page.emulate_media(color_scheme="light")
    assert paper() == dark


def test_the_policy_allows_nothing_but_the_page_itself(reader: Reader) -> None:
    answer = reader.page.request.get(f"{reader.origin}/")
    policy = answer.headers["content-security-policy"].split("; ")
    assert policy[0] == "default-src 'self'"
    assert not any("unsafe" in part or "http" in part for part in policy)


LEVELS = [(0.95, "sure"), (0.8, "likely"), (0.5, "unsure"), (0.0, "doubtful")]


def test_doubt_is_told_by_number_shape_and_colour(reader: Reader) -> None:
    reader.open(WORDS_20)
    sentence = reader.parse(WORDS_20)["sentences"][0]
    shares = {
        (one["label"], one["start"], one["end"]): one["probability"]
        for one in sentence["parses"][0]["constituents"]
    }
    seen = set()
    for (label, start, end), share in shares.items():
        node = reader.node(label, start, end)
        level = next(name for least, name in LEVELS if share >= least)
        seen.add(level)
        expect(node).to_have_class(re.compile(rf"\b{level}\b"))
        box, gauge = node.locator(".box"), node.locator(".gauge")
        dashes = box.evaluate("one => getComputedStyle(one).strokeDasharray")
        assert (dashes != "none") is (level == "doubtful")
        assert gauge.count() == node.locator(".number").count() == (level != "sure")
        if level != "sure":
            width = gauge.evaluate("one => one.getBBox().width")
            room = box.evaluate("one => one.getBBox().width") - 8
            assert width / room == pytest.approx(share, abs=0.01)
    assert len(seen) > 1
