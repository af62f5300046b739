"""The description of the HTTP API: every endpoint can be tried where it is described."""

import json
import re

import pytest
from benchmarks.serving import Process
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import ADMIN, DESKTOP, PHONE, Reader, reading
from tests.page.test_looks import COLOURS, violations

STATUSES = {("POST", "/v1/jobs"): "202", ("DELETE", "/v1/jobs/{id}"): "204"}


def test_every_endpoint_answers_the_example_it_is_tried_with(reader: Reader) -> None:
    page = reader.page
    page.goto(f"{reader.origin}/docs")
    page.get_by_label("Key").first.fill(ADMIN)
    described = page.request.get(f"{reader.origin}/openapi.json").json()["paths"]
    forms = page.locator("form.try")
    expect(forms).to_have_count(sum(len(methods) for methods in described.values()))
    # the others ask about the job before it is deleted
    for form in sorted(forms.all(), key=lambda one: one.get_attribute("data-method") == "DELETE"):
        method, path = (form.get_attribute(f"data-{name}") or "" for name in ("method", "path"))
        form.get_by_role("button", name="Try it").click()
        status = STATUSES.get((method, path), "200")
        expect(form.locator(".told")).to_have_text(re.compile(f"^{status}"), timeout=20_000)
        if status == "202":
            job = json.loads(form.locator(".answer").text_content() or "")["id"]
            until_done(page, f"{reader.origin}/v1/jobs/{job}")
        if status != "204":
            expect(form.locator(".answer")).not_to_be_empty()


def until_done(page: Page, address: str) -> None:
    for _ in range(200):
        if page.request.get(address).json()["status"] == "done":
            return
        page.wait_for_timeout(50)
    raise AssertionError("the job was never done")


def test_an_answer_comes_in_the_format_that_was_chosen(reader: Reader) -> None:
    page = reader.page
    page.goto(f"{reader.origin}/docs")
    form = page.get_by_role("form", name="Try POST /v1/dependencies", exact=True)
    form.get_by_label("Body").fill('{"sentences": [{"tokens": ["It", "rained", "."]}]}')
    form.get_by_label("Answer as").select_option("text/x-conllu")
    form.get_by_role("button", name="Try it").click()
    expect(form.locator(".answer")).to_contain_text("# text = It rained .")
    form.get_by_label("Body").fill("{")
    form.get_by_role("button", name="Try it").click()
    expect(form.locator(".told")).to_contain_text("4")
    expect(form.locator(".answer")).to_contain_text('"detail": "expected')
    form.get_by_role("button", name="Copy as curl").click()
    expect(form.locator(".told")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl -X POST 'http")


@pytest.mark.parametrize("path", ["/docs", "/examples"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_other_pages_fit_and_axe_finds_no_violation(
    chromium: Browser, service: Process, size: tuple[int, int], path: str
) -> None:
    with reading(chromium, service, size) as reader:
        page = reader.page
        page.goto(f"{reader.origin}{path}")
        page.wait_for_load_state("networkidle")
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, COLOURS) == []
        room, wide = page.evaluate(
            "[document.documentElement.clientWidth, document.documentElement.scrollWidth]"
        )
        assert wide == room
