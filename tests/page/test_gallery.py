"""The gallery: its sentences are drawn as the service parses them, and lead to the page."""

from playwright.sync_api import expect

from tests.page.conftest import Reader


def test_each_example_is_drawn_and_opens_on_the_page(reader: Reader) -> None:
    page = reader.page
    page.goto(f"{reader.origin}/examples")
    expect(page.locator("#gallery")).to_have_attribute("aria-busy", "false")
    cards = page.get_by_role("article")
    texts = cards.locator("blockquote").all_inner_texts()
    assert len(texts) >= 12
    assert len(set(texts)) == len(texts)
    told = page.request.post(f"{reader.origin}/v1/parse", data={"sentences": texts}).json()
    for number, sentence in enumerate(told["sentences"]):
        words = cards.nth(number).locator(".tree .word").all_text_contents()
        assert words == [one["text"] for one in sentence["tokens"]]
        expect(cards.nth(number).locator("footer")).to_contain_text("nodes right")
    cards.nth(1).get_by_role("link").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value(texts[1])


def test_a_service_that_is_gone_is_told_in_the_gallery(reader: Reader) -> None:
    page = reader.page
    page.route("**/v1/parse", lambda route: route.abort())
    page.goto(f"{reader.origin}/examples")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
