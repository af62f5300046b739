"""A click counts where it was aimed: nothing moves between press and release of the pointer."""

import time
from collections.abc import Callable

import pytest
from benchmarks.serving import Process
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page.conftest import PHONE, WORDS_5, WORDS_20, WORDS_60, Reader, of_words, reading

SIZES = {"phone": PHONE, "tablet": (768, 1024), "laptop": (1024, 768), "desk": (1440, 900)}
TEXTS = {
    "five": WORDS_5,
    "twenty": WORDS_20,
    "sixty": WORDS_60,
    "hundred": of_words(100),
    "several": f"{WORDS_20} It rained. {WORDS_60}",
}
PLACES = """
() => Object.fromEntries([...document.querySelectorAll("a, button, label, summary, textarea")]
  .flatMap((one, number) => {
    if (!one.checkVisibility({ visibilityProperty: true })) return [];
    const { x, y, width, height } = one.getBoundingClientRect();
    return [[`${number} ${one.id || one.textContent}`, [x, y, width, height]]];
  }))
"""
PRESS = 150
"""Milliseconds from press to release, of one who takes time."""


def is_chosen(control: Locator) -> bool:
    return "true" in (control.get_attribute("aria-selected"), control.get_attribute("aria-pressed"))


def is_open(control: Locator) -> bool:
    return control.evaluate("one => one.parentElement.open") is True


def is_checked(control: Locator) -> bool:
    return control.locator("input").is_checked()


CONTROLS: dict[str, Callable[[Locator], bool]] = {
    "details:has(#k) > summary": is_open,
    "#readings label:nth-of-type(2)": is_checked,
    "#compare": is_chosen,
    "#tab-chart": is_chosen,
}
"""Controls, and whether a click on each has had its effect."""


def places(page: Page) -> dict[str, list[float]]:
    """Find where all controls are."""
    found: dict[str, list[float]] = page.evaluate(PLACES)
    assert len(found) > 10
    return found


def moved(before: dict[str, list[float]], after: dict[str, list[float]]) -> set[str]:
    """List the controls that are elsewhere or of another size; others come and go."""
    return {one for one in before.keys() & after.keys() if before[one] != after[one]}


def press(control: Locator) -> None:
    """Press the pointer on a control, and leave it down."""
    box = control.bounding_box()
    assert box
    control.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    control.page.mouse.down()


def write_on(page: Page, words: str) -> None:
    """Go on with the text, one letter at a time."""
    page.locator("#text").press("Control+End")
    page.keyboard.type(words)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_moves_when_the_text_gains_or_loses_focus(
    chromium: Browser, service: Process, size: str
) -> None:
    with reading(chromium, service, SIZES[size]) as reader:
        for text in TEXTS.values():
            page = reader.open(text)
            before = places(page)
            page.locator("#text").focus()
            assert moved(before, places(page)) == set()
            page.locator("#text").blur()
            assert moved(before, places(page)) == set()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["twenty", "several"])
def test_the_first_click_after_typing_counts(
    chromium: Browser, service: Process, size: str, name: str
) -> None:
    with reading(chromium, service, SIZES[size]) as reader:
        page = reader.open(TEXTS[name])
        for selector, counts in CONTROLS.items():
            control = page.locator(selector)
            control.scroll_into_view_if_needed()  # on a phone some are swiped into view
            with page.expect_response("**/v1/parse"):
                write_on(page, " So")
            reader.settled()
            before = places(page)
            press(control)
            page.wait_for_timeout(PRESS)
            assert moved(before, places(page)) == set()
            assert not counts(control)
            page.mouse.up()
            assert counts(control), selector
            page.keyboard.press("Escape")


def hold_answers(page: Page) -> list[Route]:
    """Keep back what the page asks for next."""
    held: list[Route] = []
    page.route("**/v1/parse", lambda route: held.append(route))
    return held


def wait_for(held: list[Route], page: Page) -> None:
    """Wait until a request has come."""
    end = time.monotonic() + 10
    while not held and time.monotonic() < end:
        page.wait_for_timeout(20)
    assert held


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("on_its_way", [False, True])
def test_a_press_before_the_answer_counts(
    chromium: Browser, service: Process, on_its_way: bool, size: str
) -> None:
    """Both in the pause after typing and later; an answer with two sentences moves much."""
    with reading(chromium, service, SIZES[size]) as reader:
        page = reader.open(WORDS_20)
        before = places(page)
        held = hold_answers(page)
        write_on(page, " So.")
        if on_its_way:
            wait_for(held, page)
        written = places(page)
        assert moved(before, written) == set()
        press(page.locator("#tab-chart"))
        for route in held:
            route.continue_()
        page.unroute_all()
        page.wait_for_timeout(500)  # the pause is of 350, and the answer takes 20
        assert moved(written, places(page)) == set()
        page.mouse.up()
        expect(page.locator("#tab-chart")).to_have_attribute("aria-selected", "true")
        expect(page.locator("#sentences")).to_be_visible()


def test_an_answer_does_not_wait_for_a_release_that_never_comes(reader: Reader) -> None:
    page = reader.open(WORDS_5)
    write_on(page, " It rained.")
    press(page.locator("#tab-chart"))
    expect(page.locator("#sentences")).to_be_visible()


def test_the_corner_of_the_text_gives_it_more_room(reader: Reader) -> None:
    box = reader.open(of_words(100)).locator("#text")
    before = box.bounding_box()
    assert before
    corner = before["x"] + before["width"] - 4, before["y"] + before["height"] - 4
    box.page.mouse.move(*corner)
    box.page.mouse.down()
    box.page.mouse.move(corner[0], corner[1] + 100)
    box.page.mouse.up()
    after = box.bounding_box()
    assert after
    assert after["height"] == pytest.approx(before["height"] + 100, abs=2)  # rounded pixels
