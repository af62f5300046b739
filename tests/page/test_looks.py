"""Everybody can use it: no violation that axe finds, keys alone, any width, light and dark.

Pictures of it go to artifacts/page/ for people to look at.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe
from benchmarks.serving import Process
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import (
    DESKTOP,
    PHONE,
    ROOT,
    WORDS_5,
    WORDS_20,
    WORDS_60,
    Reader,
    reading,
)

PICTURES = ROOT / "artifacts" / "page"
SIZES = {"desktop": DESKTOP, "phone": PHONE}
ODD = "(S (VP (VBZ sleeps)) (NP (DT The) (NN cat)) (. .))\n(S"


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


def show(reader: Reader, view: str) -> Page:
    """Show a view with everything that it can show."""
    page = reader.open(f"{WORDS_20} It rained.", view=view, k=2)
    if view == "tree":
        page.get_by_role("button", name="Fold phrases").click()
        page.get_by_text("Copy or save").click()
    elif view == "chart":
        page.get_by_text("The chart as a table").click()
        page.locator(".cell").first.focus()
    else:
        page.get_by_label("Trees in Penn brackets").fill(ODD)
        page.get_by_role("button", name="How probable?").click()
        expect(page.locator("#scores article")).to_have_count(2)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["tree", "chart", "score"])
def test_axe_finds_no_violation(
    chromium: Browser, service: Process, view: str, scheme: str
) -> None:
    with reading(chromium, service, DESKTOP, scheme) as reader:
        assert violations(show(reader, view)) == []


def test_axe_finds_no_violation_on_a_phone_nor_in_a_problem(
    chromium: Browser, service: Process
) -> None:
    with reading(chromium, service, PHONE) as reader:
        page = reader.open(WORDS_20)
        page.route("**/v1/parse", lambda route: route.abort(), times=1)
        page.get_by_label("Text", exact=True).fill("It rained.")
        expect(page.get_by_role("alert")).to_be_visible()
        assert violations(page) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("words", "text"), [(5, WORDS_5), (20, WORDS_20), (60, WORDS_60)], ids=["5", "20", "60"]
)
def test_the_page_fits_any_screen(
    chromium: Browser, service: Process, words: int, text: str, size: str
) -> None:
    assert len(text.split()) == words
    PICTURES.mkdir(parents=True, exist_ok=True)
    scheme = "dark" if words == 20 else "light"
    with reading(chromium, service, SIZES[size], scheme) as reader:
        for view in ("tree", "chart"):
            page = reader.open(text, view=view)
            drawing = page.locator("svg.tree, svg.chart").locator("visible=true")
            expect(drawing).to_have_count(1)
            room, wide = page.evaluate(
                "[document.documentElement.clientWidth, document.documentElement.scrollWidth]"
            )
            assert wide == room, "the page itself scrolls sideways"
            page.screenshot(path=PICTURES / f"{view}-{words}-{size}.png", full_page=True)


def test_keys_alone_lead_through_the_page(reader: Reader) -> None:
    page = reader.open("The cat sleeps. It rained.")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", selector):
                return
        raise AssertionError(f"Tab never came to {selector}")

    tab_to(".skip")
    tab_to("#text")
    tab_to("#examples button")
    tab_to("#k")
    page.keyboard.press("ArrowDown")
    reader.settled()
    expect(page.locator("article.card")).to_have_count(2)
    tab_to("#sentences li:nth-child(2) button")
    page.keyboard.press("Enter")
    expect(page.locator("#words")).to_have_text("It rained.")
    tab_to("[role=tab][aria-selected=true]")
    tab_to("#turn")
    page.keyboard.press("Space")
    tab_to(".menu summary")
    page.keyboard.press("Enter")
    tab_to("#copy-brackets")
    tab_to("input[name=tree]")
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


def test_probabilities_are_not_told_by_colour_alone(reader: Reader) -> None:
    page = reader.open(WORDS_20)
    rows = page.locator(".tree .node").evaluate_all(
        """all => all.map((node) => {
          const width = (name) => node.querySelector(name).getBBox().width;
          return [width(".gauge") / (width(".box") - 8), Number(
            node.querySelector(".number").textContent), node.classList.contains("doubtful")];
        })"""
    )
    assert rows
    for gauge, number, doubtful in rows:
        assert gauge == pytest.approx(number, abs=0.0051)  # the number has two decimals
        assert doubtful == (number < 0.5)
