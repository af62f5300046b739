"""The chart: the service's cells and labels, by pointing, by keys, by threshold and as a table."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import WORDS_20, WORDS_60, Reader

TELESCOPE = "The old man saw the dog with a telescope in the park."


def marginals(reader: Reader, text: str) -> dict[str, Any]:
    answer = reader.page.request.post(
        f"{reader.origin}/v1/marginals", data={"text": text, "threshold": 0.01}
    )
    assert answer.ok
    found: dict[str, Any] = answer.json()
    return found


def cells(page: Page) -> set[tuple[int, int]]:
    keys = page.locator(".cell").evaluate_all("all => all.map((one) => one.dataset.key)")
    return {(int(key.split()[0]), int(key.split()[1])) for key in keys}


def cell(page: Page, start: int, end: int) -> Locator:
    return page.locator(f".cell[data-key='{start} {end}']")


def expected_cells(told: dict[str, Any], threshold: float) -> dict[tuple[int, int], float]:
    return {
        (one["start"], one["end"]): one["expected"]
        for one in told["cells"]
        if one["expected"] >= threshold
    }


@pytest.mark.parametrize("threshold", [0.01, 0.05, 0.5, 0.99])
def test_cells_are_those_the_service_returned(reader: Reader, threshold: float) -> None:
    page = reader.open(WORDS_20, view="chart", threshold=threshold)
    expect(page.locator(".cell").first).to_be_attached()
    told = expected_cells(marginals(reader, WORDS_20), threshold)
    assert cells(page) == set(told)
    for (start, end), expected in told.items():
        share = (
            cell(page, start, end)
            .locator(".shade")
            .evaluate("one => parseFloat(one.style.getPropertyValue('--share')) / 100")
        )
        assert share == pytest.approx(min(1.0, expected), abs=1e-6)  # as CSS writes percentages


def test_the_slider_hides_less_likely_cells(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart", threshold=0.01)
    expect(page.locator(".cell").first).to_be_attached()
    told = marginals(reader, TELESCOPE)
    many = cells(page)
    page.locator("#threshold").focus()
    page.keyboard.press("PageUp")
    value = float(page.locator("#threshold").input_value())
    assert value > 0.01
    assert cells(page) == set(expected_cells(told, value))
    page.locator("#threshold").fill("0.6")
    expect(page.locator("#threshold-value")).to_have_text("60 %")
    few = cells(page)
    assert few == set(expected_cells(told, 0.6))
    assert few < many
    assert len(reader.asked("/v1/marginals")) == 1


def test_pointing_at_a_cell_shows_its_rivals_and_what_crosses_it(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart", threshold=0.01)
    told = marginals(reader, TELESCOPE)
    start, end = 4, 9  # the dog with a telescope
    cell(page, start, end).hover()
    assert reader.lit_words() == "the dog with a telescope"
    rivals = sorted(
        (
            (one["probability"], one["label"])
            for one in told["spans"]
            if (one["start"], one["end"]) == (start, end)
        ),
        reverse=True,
    )
    shown = page.locator("#cell .rivals li").all_inner_texts()
    assert [one.split()[0] for one in shown] == [name for _, name in rivals]
    for one, (share, _) in zip(shown, rivals, strict=True):
        number = re.search(r"([\d.]+) %$", one)
        assert number is not None
        assert float(number[1]) == pytest.approx(100 * share, abs=0.5)  # "over 99 %", "12 %"
    lit = page.locator(".cell.crossing").evaluate_all("all => all.map((one) => one.dataset.key)")
    crossing = {(i, k) for i, k in cells(page) if i < start < k < end or start < i < end < k}
    assert crossing
    assert {(int(key.split()[0]), int(key.split()[1])) for key in lit} == crossing
    expect(page.locator("#cell")).to_contain_text(f"Crossed by {len(crossing)}")


def test_a_cell_is_held_by_a_click_until_another(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart")
    cell(page, 0, 3).click()
    page.locator("h1").hover()
    expect(page.locator("#cell")).to_contain_text("The old man")
    assert reader.lit_words() == "The old man"
    cell(page, 0, 3).click()
    page.locator("h1").hover()
    expect(page.locator("#cell")).to_contain_text("Point at a cell")


def test_the_box_beside_the_chart_says_what_is_least_decided(reader: Reader) -> None:
    page = reader.open(WORDS_20, view="chart")
    doubts = {
        place: share
        for place, share in expected_cells(marginals(reader, WORDS_20), 0.05).items()
        if 0.05 < share < 0.95
    }
    assert doubts
    told = page.locator("#cell .choice")
    expect(told).to_have_count(min(5, len(doubts)))
    told.first.click()
    held = page.locator(".cell[aria-pressed='true']").get_attribute("data-key")
    assert held is not None
    start, end = map(int, held.split())
    nearest = min(abs(share - 0.5) for share in doubts.values())
    assert abs(doubts[start, end] - 0.5) == pytest.approx(nearest)


def test_a_chart_of_sixty_words_has_labels_and_is_zoomed_and_moved(reader: Reader) -> None:
    page = reader.open(WORDS_60, view="chart")
    labels = page.locator(".cell text")
    expect(labels.first).to_be_attached()
    sizes = labels.evaluate_all(
        "all => all.map((one) => parseFloat(one.getAttribute('font-size')))"
    )
    assert min(sizes) >= 7
    picture, box = page.locator("svg.chart"), page.locator("#chart .canvas")
    expect(page.locator(".chart .word").nth(len(WORDS_60.split()) // 2)).to_be_in_viewport()
    expect(page.locator("#chart .minimap")).to_be_visible()
    before = picture.bounding_box()
    page.get_by_role("button", name="Larger chart").click()
    after = picture.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    start = box.evaluate("one => one.scrollLeft")
    around = box.bounding_box()
    assert around is not None
    page.mouse.move(around["x"] + 200, around["y"] + 20)
    page.mouse.down()
    page.mouse.move(around["x"] + 150, around["y"] + 20, steps=3)
    page.mouse.up()
    assert box.evaluate("one => one.scrollLeft") == pytest.approx(start + 50, abs=1)
    page.locator("#chart-fit").click()
    room = box.evaluate("one => [one.clientWidth, one.scrollWidth]")
    assert room[1] <= room[0] + 1


def test_keys_walk_from_cell_to_cell(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart", threshold=0.3)
    shown = cells(page)
    page.locator(".cell[tabindex='0']").focus()
    assert page.evaluate("document.activeElement.dataset.key") == "0 13"
    seen = [(0, 13)]
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
        start, end = page.evaluate("document.activeElement.dataset.key").split()
        seen.append((int(start), int(end)))
    lengths = [end - start for start, end in seen]
    assert set(seen) <= shown
    assert lengths[0] > lengths[1] > lengths[2] == lengths[3] == lengths[4] < lengths[5]
    page.keyboard.press("Enter")
    expect(page.locator(".cell[aria-pressed='true']")).to_be_focused()
    expect(page.locator("#cell .rivals")).to_be_visible()


def test_the_chosen_tree_is_drawn_over_the_chart(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart", k=2, tree=2, threshold=0.01)
    parse = reader.parse(TELESCOPE, k=2)["sentences"][0]["parses"][1]
    spans = {(one["start"], one["end"]) for one in parse["constituents"]}
    expect(page.locator(".overlay circle")).to_have_count(len(spans))
    expect(page.locator(".overlay line")).to_have_count(len(spans) - 1)
    inside = page.locator(".cell.in-tree").evaluate_all("all => all.map((one) => one.dataset.key)")
    assert {(int(key.split()[0]), int(key.split()[1])) for key in inside} == spans & cells(page)
    page.get_by_label("Tree over it").uncheck()
    expect(page.locator(".overlay circle")).to_have_count(0)
    expect(page.locator(".cell.in-tree")).to_have_count(0)


def test_the_table_has_every_label_of_every_span_shown(reader: Reader) -> None:
    page = reader.open(TELESCOPE, view="chart", threshold=0.05)
    told = marginals(reader, TELESCOPE)
    shown = set(expected_cells(told, 0.05))
    page.get_by_text("The chart as a table").click()
    rows = page.get_by_role("table").get_by_role("row")
    labelled = [one for one in told["spans"] if (one["start"], one["end"]) in shown]
    expect(rows).to_have_count(1 + len(labelled))
    expect(rows.nth(1)).to_contain_text(TELESCOPE[:-1])
    expect(page.get_by_role("columnheader")).to_have_text(
        ["Words", "From – to", "Label", "Probability", "In the tree"]
    )
    whole = rows.filter(has_text="1 – 3").filter(has_text="The old man")
    expect(whole).to_contain_text("yes")


def test_going_to_another_sentence_shows_its_chart(reader: Reader) -> None:
    page = reader.open("It rained. Anna saw the man.", view="chart")
    expect(cell(page, 0, 3)).to_be_attached()
    page.get_by_role("button", name="2. Anna saw").click()
    expect(cell(page, 0, 5)).to_be_attached()
    assert page.locator(".chart .word").all_text_contents() == ["Anna", "saw", "the", "man", "."]


CROSS = """
async (spans) => {
  const { cross } = await import("/analysis.js");
  const asked = spans.map(([start, end]) => ({ start, end }));
  return asked.map((one) => asked.map((other) => cross(one, other)));
}
"""


def test_spans_cross_where_they_share_words_and_neither_holds_the_other(reader: Reader) -> None:
    page = reader.open("It rained.")
    spans = [(start, end) for start in range(5) for end in range(start + 1, 6)]
    words = [set(range(*span)) for span in spans]
    assert page.evaluate(CROSS, spans) == [
        [bool(one & other and one - other and other - one) for other in words] for one in words
    ]
