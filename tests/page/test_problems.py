"""The page explains problems, shows that it waits, and never runs markup from the service."""

import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import Reader, of_words

PROBLEM = "application/problem+json"


def refuse(
    route: Route, status: int, headers: dict[str, str] | None = None, **body: object
) -> None:
    route.fulfill(
        status=status,
        headers={"content-type": PROBLEM, **(headers or {})},
        body=json.dumps({"status": status, **body}),
    )


def type_text(page: Page, text: str) -> None:
    page.get_by_label("Text", exact=True).fill(text)


def test_a_sentence_over_the_limit_shows_the_limit_and_the_cure(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse"):
        type_text(page, of_words(201))
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("A limit of this service is exceeded")
    expect(problem).to_contain_text("split it.")
    expect(problem).to_contain_text("Limit: 200. You sent: 201.")
    with page.expect_response("**/v1/parse"):
        type_text(page, "The cat sleeps.")
    expect(problem).to_be_hidden()


def test_a_busy_service_is_asked_again_after_the_time_it_names(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    refusals = iter([{"Retry-After": "1"}])

    def answer(route: Route) -> None:
        headers = next(refusals, None)
        if headers is None:
            route.continue_()
        else:
            refuse(route, 503, headers, title="The service is busy", detail="come back")

    page.route("**/v1/parse", answer)
    type_text(page, "It rained.")
    expect(page.locator("#progress-words")).to_have_text(
        re.compile("The service is busy; asking again in 1 second")
    )
    expect(reader.node("S", 0, 3)).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    assert len(reader.asked("/v1/parse")) == 3


def test_slow_answers_show_progress_and_can_be_stopped(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    held: list[Route] = []
    page.route("**/v1/parse", lambda route: held.append(route))
    type_text(page, "It rained.")
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator("#analysis")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#progress-words")).to_have_text("The service is working (1 s)")
    assert reader.words() == "The cat sleeps ."
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(page.get_by_role("alert")).to_be_hidden()
    for one in held:
        one.abort()


def test_an_answer_that_comes_too_late_is_not_shown(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    held: list[Route] = []
    page.route("**/v1/parse", lambda route: held.append(route), times=1)
    type_text(page, "It rained.")
    expect(page.get_by_role("progressbar")).to_be_visible()
    type_text(page, "The dog barked.")
    expect(page.locator(".tree .word", has_text="barked")).to_be_visible()
    held[0].fulfill(status=200, content_type="application/json", body="{}")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator(".tree .word", has_text="barked")).to_be_visible()


def test_a_service_that_is_gone_is_reported_and_tried_again(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.route("**/v1/parse", lambda route: route.abort(), times=1)
    type_text(page, "It rained.")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    page.get_by_role("button", name="Try again").click()
    expect(reader.node("S", 0, 3)).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_service_that_wants_a_key_gets_it(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")

    def guard(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer sesame":
            route.continue_()
        else:
            refuse(route, 401, title="A key is needed", detail="send a key")

    page.route("**/v1/parse", guard)
    type_text(page, "It rained.")
    page.get_by_label("Your key").fill("sesame")
    page.get_by_role("button", name="Use it").click()
    expect(reader.node("S", 0, 3)).to_be_visible()


def test_markup_from_anywhere_stays_text(reader: Reader) -> None:
    text = "<img src=x onerror=alert(1)> <b>slept</b>."
    page = reader.open(text)
    assert "<" in reader.words()
    detail = "<b>expected</b> less"
    page.route(
        "**/v1/parse", lambda route: refuse(route, 422, title="<i>No</i>", detail=detail), times=1
    )
    type_text(page, "It rained.")
    expect(page.get_by_role("alert")).to_contain_text("<i>No</i>")
    expect(page.get_by_role("alert")).to_contain_text(detail)
    assert page.locator("#problem b, #problem i, #trees img, #inspected img").count() == 0


def test_a_sentence_without_a_whole_tree_says_why(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    answer = reader.parse("The cat sleeps.")
    answer["sentences"][0].update(
        status="failed", reason="no tokens were found", parses=[], tokens=[]
    )
    page.route("**/v1/parse", lambda route: route.fulfill(json=answer), times=1)
    type_text(page, "The cat sleeps!")
    expect(page.locator("#sentence-status")).to_have_text(
        "There is no tree for this sentence. Reason: no tokens were found."
    )
    expect(page.locator("#status")).to_contain_text("1 without a whole tree")
    expect(page.locator("#tree-tools")).to_be_hidden()


def test_a_stale_tree_is_faded_and_told_about(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    faded = page.locator("#analysis.stale #trees .pane")
    expect(faded).to_have_count(0)
    page.route(
        "**/v1/parse",
        lambda route: refuse(route, 413, title="The body is too large", detail="send less"),
        times=1,
    )
    type_text(page, "It rained.")
    expect(page.get_by_role("alert")).to_contain_text("The body is too large")
    expect(page.locator("#stale-note")).to_be_visible()
    expect(faded).to_have_css("opacity", "0.4")
    expect(page.locator("#readout")).to_be_hidden()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    type_text(page, "The dog barked.")
    expect(page.locator(".tree .word", has_text="barked")).to_be_visible()
    expect(faded).to_have_count(0)
    expect(page.locator("#stale-note")).to_be_hidden()


def test_a_chart_that_does_not_come_leaves_the_tree_as_it_is(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.route("**/v1/marginals", lambda route: route.abort())
    reader.node("NP", 0, 2).click()
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.locator("#analysis.stale")).to_have_count(0)
    assert reader.words() == "The cat sleeps ."


def test_several_faults_are_all_told(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    faults = [{"detail": "expected one", "at": "/k"}, {"detail": "expected two", "at": "/text"}]
    page.route(
        "**/v1/parse",
        lambda route: refuse(route, 422, title="Not valid", detail="expected one", errors=faults),
        times=1,
    )
    type_text(page, "It rained.")
    expect(page.get_by_role("alert").get_by_role("listitem")).to_have_text(
        ["Expected one.", "Expected two."]
    )


@pytest.mark.parametrize(
    "text",
    [
        "😀 👩‍👧‍👦 🏳️‍🌈!",
        "قرأ الولد الكتاب. The old man saw אבא in Tel Aviv.",
        "a" * 10_000,
        "The old\u00a0man\u202fsaw\u2003the\u200b dog\u00ad\u2014\u201ctoday\u201d\u2026\r\n"
        "\tIt\u00a0rained\u2028.",
    ],
    ids=["emoji", "right-to-left", "long-word", "pasted"],
)
def test_any_text_is_answered_and_stays_inside_the_page(reader: Reader, text: str) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse") as answer:
        type_text(page, text)
    reader.settled()
    assert answer.value.ok
    sentence = answer.value.json()["sentences"][0]
    if sentence["parses"]:
        words = page.locator(".tree .word").all_text_contents()
        told = [one["text"] for one in sentence["tokens"]]
        assert len(words) == len(told)
        for shown, word in zip(words, told, strict=True):
            assert shown == word or (shown.endswith("…") and word.startswith(shown[:-1]))
    else:
        expect(page.locator("#sentence-status")).to_contain_text("no tree")
    room, wide = page.evaluate(
        "[document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert wide == room


def test_typing_goes_on_while_an_answer_is_awaited(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    held: list[Route] = []
    page.route("**/v1/parse", lambda route: held.append(route), times=1)
    type_text(page, "It rained.")
    expect(page.get_by_role("progressbar")).to_be_visible()
    box = page.get_by_label("Text", exact=True)
    box.press_sequentially(" The dog barked.")
    expect(box).to_have_value("It rained. The dog barked.")
    expect(page.get_by_role("button", name="2. The dog barked.")).to_be_visible()
    for one in held:
        one.abort()


def test_the_page_works_where_a_browser_keeps_nothing(reader: Reader) -> None:
    reader.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('forbidden'); } })"
    )
    page = reader.open("It rained.")
    expect(page.locator(".tree .word", has_text="rained")).to_be_visible()
    button = page.get_by_role("button", name="Theme")
    button.click()
    expect(button).to_have_accessible_name("Theme: light")
