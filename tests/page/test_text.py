"""The text: parsed as it is typed, taken from examples, of several sentences, shared as a link."""

import json
import re
from pathlib import Path
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
    expect(page.locator("#verdict")).to_be_hidden()
    assert len(reader.asked("/v1/parse")) == 1


def test_an_example_is_parsed_at_once(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    page.locator("summary", has_text="Examples").click()
    with page.expect_response("**/v1/parse"):
        page.get_by_role("button", name="Short", exact=True).click()
    expect(page.locator(".tree .word", has_text="happily")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_have_value("The small bird sang happily.")


def test_one_of_several_sentences_can_be_chosen(reader: Reader) -> None:
    page = reader.open("The cat sleeps. Anna saw the man.\n\nIt is very cold.")
    expect(page.locator("#status")).to_contain_text("3 sentences · 14 words")
    second = page.get_by_role("button", name="2. Anna saw the man.")
    second.click()
    expect(second).to_have_attribute("aria-current", "true")
    expect(second).to_be_focused()
    assert reader.words() == "Anna saw the man ."
    expect(reader.node("NP", 2, 4)).to_be_visible()
    expect(page).to_have_url(re.compile("sentence=2"))


def test_words_are_those_of_the_text_with_any_characters(reader: Reader) -> None:
    text = "😀😀 It rained. 👩‍👧 The  “old” 𝒟𝑜𝑔 (😀) barked."
    page = reader.open(text, sentence=2)
    sentence = reader.parse(text)["sentences"][1]
    words = [one["text"] for one in sentence["tokens"]]
    assert words == [text[one["start"] : one["end"]] for one in sentence["tokens"]]
    assert page.locator(".tree .word").all_text_contents() == words


def test_a_link_leads_back_to_what_was_seen(reader: Reader) -> None:
    page = reader.open("It is cold. Anna saw the man with the telescope.")
    page.locator("summary", has_text="Options").click()
    page.locator("#k").select_option("4")
    reader.settled()
    page.get_by_label("First comes the tree with").select_option("max-marginal")
    reader.settled()
    page.get_by_role("button", name="2. Anna saw").click()
    page.get_by_role("radio", name="2").check(force=True)
    page.get_by_role("tab", name="Chart").click()
    page.locator("#threshold").fill("0.3")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied.")).to_be_attached()
    link = page.evaluate("navigator.clipboard.readText()")
    given = {name: value[0] for name, value in parse_qs(urlsplit(link).fragment).items()}
    answered = reader.parse("It is cold.")["model"]
    assert given == {
        "text": "It is cold. Anna saw the man with the telescope.",
        "k": "4",
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
    expect(page.get_by_role("tab", name="Chart")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#threshold-value")).to_have_text("30 %")
    page.get_by_role("tab", name="Tree", exact=True).click()
    assert reader.words() == "Anna saw the man with the telescope ."
    expect(page.get_by_role("radio", name="2")).to_be_checked()
    expect(page.get_by_label("First comes the tree with")).to_have_value("max-marginal")
    expect(page.locator("#model-note")).to_be_hidden()
    assert page.url.split("#")[0] == f"{reader.origin}/"


def test_a_link_pasted_into_the_open_page_is_followed(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse"):
        page.evaluate("location.hash = '#text=It+rained.'")
    expect(page.locator(".tree .word", has_text="rained")).to_be_visible()


def test_a_link_made_with_another_model_says_so(reader: Reader) -> None:
    page = reader.open("The cat sleeps.", hash="0123456789abcdef")
    expect(page.locator("#model-note")).to_have_text(
        re.compile(r"made with another model \(01234567…\) than the one .* \(small@1, \w{8}…\)")
    )
    reader.write("The dog sleeps.")
    expect(page.locator("#model-note")).to_be_hidden()


def test_an_address_with_nonsense_opens_like_one_without(reader: Reader) -> None:
    page = reader.open("It rained.", k="many", view="moon", sentence=-3, tree="x", threshold=7)
    expect(page.locator("#k")).to_have_value("3")
    expect(page.get_by_role("tab", name="Tree", exact=True)).to_have_attribute(
        "aria-selected", "true"
    )


def test_one_of_several_models_can_be_chosen(reader: Reader) -> None:
    page = reader.open("It rained.")
    with page.expect_request("**/v1/parse") as asked:
        page.get_by_label("Model", exact=True).select_option("other@1")
    assert asked.value.post_data_json["model"] == "other"
    expect(page).to_have_url(re.compile("model=other"))


def test_a_single_model_gives_no_choice(reader: Reader) -> None:
    known = reader.page.request.get(f"{reader.origin}/v1/models").json()["models"][:1]
    reader.page.route("**/v1/models", lambda route: route.fulfill(json={"models": known}))
    page = reader.open("It rained.")
    expect(page.locator("#model-name")).to_have_text("small@1")
    expect(page.locator("#model-choice")).to_be_hidden()


def test_rescoring_can_be_left_out_where_a_model_has_it(reader: Reader) -> None:
    page = reader.open("It rained.")
    known = page.request.get(f"{reader.origin}/v1/models").json()["models"]
    page.locator("summary", has_text="Options").click()
    if not any(one.get("rescoring") for one in known):
        expect(page.locator("#rescore")).to_be_hidden()
        changed = [{**one, "rescoring": True} for one in known]
        page.route("**/v1/models", lambda route: route.fulfill(json={"models": changed}))
        page.reload()
        reader.settled()
        page.locator("summary", has_text="Options").click()
    with page.expect_request("**/v1/parse") as asked:
        page.get_by_label("Use the rescoring layer").uncheck()
    assert asked.value.post_data_json["rescore"] is False
    expect(page).to_have_url(re.compile("rescore=no"))


def test_earlier_texts_come_back_from_the_history(reader: Reader) -> None:
    page = reader.open("The cat sleeps.")
    reader.write("The dog saw the cat.")
    page.reload()
    reader.settled()
    page.locator("summary", has_text="History").click()
    with page.expect_response("**/v1/parse"):
        page.get_by_role("button", name="The cat sleeps.").click()
    reader.settled()
    assert reader.words() == "The cat sleeps ."
    page.locator("summary", has_text="History").click()
    page.get_by_role("button", name="Forget all of this").click()
    page.locator("summary", has_text="History").click()
    expect(page.locator("#history")).to_have_text("Nothing yet.")


DROP = """
(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "letter.txt", { type: "text/plain" }));
  for (const name of ["dragover", "drop"]) {
    document.body.dispatchEvent(
      new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}
"""


def test_a_file_can_be_dropped_or_opened(reader: Reader, tmp_path: Path) -> None:
    page = reader.open("The cat sleeps.")
    with page.expect_response("**/v1/parse"):
        page.evaluate(DROP, "The dog barked.")
    expect(page.locator(".tree .word", has_text="barked")).to_be_visible()
    file = tmp_path / "letter.txt"
    file.write_text("It rained. Anna saw the man.")
    with page.expect_response("**/v1/parse"):
        page.locator("#file").set_input_files(file)
    expect(page.get_by_role("button", name="2. Anna saw the man.")).to_be_visible()


def test_all_answers_can_be_downloaded(reader: Reader) -> None:
    text = "It rained. Anna saw the man."
    page = reader.open(text)
    answer = reader.parse(text, k=3)
    page.locator("#menu summary").click()

    def saved(name: str) -> str:
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        return download.value.path().read_text(encoding="utf-8")

    trees = [one["parses"][0]["tree"] for one in answer["sentences"]]
    assert saved("Save all as brackets").splitlines() == trees
    lines = [json.loads(line) for line in saved("Save all as JSON lines").splitlines()]
    assert lines == [{"model": answer["model"], **one} for one in answer["sentences"]]
    rows = [line.split("\t") for line in saved("Save all as CoNLL-U").splitlines() if line]
    assert [row[1] for row in rows if not row[0].startswith("#")] == [
        token["text"] for one in answer["sentences"] for token in one["tokens"]
    ]
    assert saved("Save all as LaTeX").count("\\begin{forest}") == 2


def test_a_thousand_sentences_stay_few_elements(reader: Reader) -> None:
    text = " ".join(f"Anna saw the old man number{n}." for n in range(1000))
    page = reader.open("It rained.")
    page.get_by_label("Text", exact=True).fill(text)
    expect(page.locator("#status")).to_contain_text(re.compile(r"^1000 sentences"), timeout=60_000)
    sizes = [len(one.post_data or "") for one in reader.asked("/v1/parse")]
    assert max(sizes) < 10_000  # many small questions, so that no limit is met
    items = page.locator("#sentence-items li")
    assert items.count() < 60
    items.first.get_by_role("button").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("button", name="1000. Anna saw")).to_be_focused()
    assert reader.words().split()[-2] == "number999"
    assert items.count() < 60
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("button", name="999. Anna saw")).to_be_focused()


def test_sentences_of_a_text_in_pieces_keep_their_places(reader: Reader) -> None:
    text = " ".join(f"Anna 😀 saw the man number{n}." for n in range(150))
    page = reader.open(text)
    expect(page.locator("#status")).to_contain_text(re.compile(r"^150 sentences"))
    page.locator("#menu summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all as JSON lines").click()
    lines = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    for line in lines:
        assert text[line["start"] : line["end"]] == line["text"]
        for token in line["tokens"]:
            assert text[token["start"] : token["end"]] == token["text"]
