"""The text: parsed as it is typed, taken from examples, of several sentences, shared as a link."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.page.conftest import Reader


def test_typing_asks_once_after_a_pause(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    before = len(reader.asked("/v1/parse"))
    with page.expect_response("**/v1/parse"):
        box = page.get_by_label("Text", exact=True)
        box.fill("")
        box.press_sequentially("The dog saw the cat.", delay=15)
    reader.settled()
    asked = [one.post_data_json["text"] for one in reader.asked("/v1/parse")[before:]]
    assert asked == ["The dog saw the cat."]
    expect(reader.node("NP", 3, 5)).to_be_visible()


def test_an_empty_text_shows_nothing_and_asks_nothing(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.get_by_label("Text", exact=True).fill("  ")
    # longer than the pause after which the page asks
    expect(page.locator(".node")).to_have_count(0)
    expect(page.locator("#words")).to_be_empty()
    assert len(reader.asked("/v1/parse")) == 1


def test_an_example_is_parsed_at_once(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse"):
        page.get_by_role("button", name="Short", exact=True).click()
    expect(page.locator("#words")).to_have_text("The small bird sang happily.")
    expect(page.get_by_label("Text", exact=True)).to_have_value("The small bird sang happily.")


def test_one_of_several_sentences_can_be_chosen(reader: Reader) -> None:
    page = reader.open("The cat sleeps. Anna saw the man.\n\nIt is very cold.")
    expect(page.locator("#status")).to_contain_text("3 sentences · 14 words")
    second = page.get_by_role("button", name="2. Anna saw the man.")
    second.click()
    expect(second).to_have_attribute("aria-current", "true")
    expect(second).to_be_focused()
    expect(page.locator("#words")).to_have_text("Anna saw the man.")
    expect(reader.node("NP", 2, 4)).to_be_visible()
    expect(page).to_have_url(re.compile("sentence=2"))


def test_words_keep_their_places_with_any_characters(reader: Reader) -> None:
    text = "It rained 😀.  The  “old” 𝒟𝑜𝑔 (😀) barked."
    page = reader.open(text, sentence=2)
    answer = reader.parse(text)["sentences"][1]
    assert page.locator("#words").inner_text() == answer["text"]
    assert page.locator(".token").all_inner_texts() == [one["text"] for one in answer["tokens"]]
    assert page.locator(".token").all_inner_texts() == [
        text[one["start"] : one["end"]] for one in answer["tokens"]
    ]


def test_the_right_words_are_highlighted_after_an_emoji(reader: Reader) -> None:
    page = reader.open("😀😀 It rained. 👩‍👧 The old 𝒟𝑜𝑔 barked.", sentence=2)
    sentence = reader.parse("😀😀 It rained. 👩‍👧 The old 𝒟𝑜𝑔 barked.")["sentences"][1]
    for number, token in enumerate(sentence["tokens"]):
        page.locator(f".token[data-word='{number}']").hover()
        assert reader.lit_words() == token["text"]
    one = next(
        one for one in sentence["parses"][0]["constituents"] if one["end"] - one["start"] > 1
    )
    reader.node(one["label"], one["start"], one["end"]).first.hover()
    words = [token["text"] for token in sentence["tokens"]]
    assert reader.lit_words() == " ".join(words[one["start"] : one["end"]])


def test_a_link_leads_back_to_what_was_seen(reader: Reader) -> None:
    page = reader.open("It is cold. Anna saw the man with the telescope.")
    page.locator("#k").select_option("3")
    reader.settled()
    page.get_by_label("Best by").select_option("max-marginal")
    reader.settled()
    page.get_by_role("button", name="2. Anna saw").click()
    page.get_by_role("radio", name="Tree 2").check()
    page.get_by_role("tab", name="Chart").click()
    page.locator("#threshold").fill("0.3")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied.")).to_be_attached()
    link = page.evaluate("navigator.clipboard.readText()")
    given = {name: value[0] for name, value in parse_qs(urlsplit(link).fragment).items()}
    answered = reader.parse("It is cold.")["model"]
    assert given == {
        "text": "It is cold. Anna saw the man with the telescope.",
        "k": "3",
        "objective": "max-marginal",
        "hash": answered["hash"],
        "view": "chart",
        "sentence": "2",
        "tree": "2",
        "threshold": "0.3",
    }
    page.goto("about:blank")
    page.goto(link)
    reader.settled()
    expect(page.locator("#words")).to_have_text("Anna saw the man with the telescope.")
    expect(page.get_by_role("tab", name="Chart")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#threshold-value")).to_have_text("0.30")
    page.get_by_role("tab", name="Tree", exact=True).click()
    expect(page.get_by_role("radio", name="Tree 2")).to_be_checked()
    expect(page.get_by_label("Best by")).to_have_value("max-marginal")
    expect(page.locator("#model-note")).to_be_hidden()
    assert page.url.split("#")[0] == f"{reader.origin}/"


def test_a_link_pasted_into_the_open_page_is_followed(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse"):
        page.evaluate("location.hash = '#text=It+rained.'")
    expect(page.locator("#words")).to_have_text("It rained.")


def test_a_link_made_with_another_model_says_so(reader: Reader) -> None:
    page = reader.open("The cat sleeps.", hash="0123456789abcdef")
    expect(page.locator("#model-note")).to_have_text(
        re.compile(r"made with another model \(01234567…\) than the one .* \(small@1, \w{8}…\)")
    )
    reader.write("The dog sleeps.")
    expect(page.locator("#model-note")).to_be_hidden()


def test_an_address_with_nonsense_opens_like_one_without(reader: Reader) -> None:
    page = reader.open("It rained.", k="many", view="moon", sentence=-3, tree="x", threshold=7)
    expect(page.locator("#k")).to_have_value("1")
    expect(page.get_by_role("tab", name="Tree", exact=True)).to_have_attribute(
        "aria-selected", "true"
    )


def test_one_of_several_models_can_be_chosen(reader: Reader) -> None:
    listed = [
        {"name": "small", "version": 1, "default": True},
        {"name": "other", "version": 4, "default": False},
    ]
    reader.page.route("**/v1/models", lambda route: route.fulfill(json={"models": listed}))
    page = reader.open("It rained.")
    with page.expect_request("**/v1/parse") as asked:
        page.get_by_label("Model").select_option("other@4")
    assert asked.value.post_data_json["model"] == "other"
    expect(page.get_by_role("alert")).to_contain_text("Expected one of the models small")


def test_a_single_model_gives_no_choice(reader: Reader) -> None:
    page = reader.open("It rained.")
    expect(page.locator("#model-name")).to_have_text("small@1")
    expect(page.locator("#model-choice")).to_be_hidden()
