"""A reader at the page: a real service, a real Chromium, and what the reader does there."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from benchmarks.serving import Process
from playwright.sync_api import Browser, Locator, Page, Request, Response, expect, sync_playwright

from lpcfg.kinds.tags import train as tag_training
from lpcfg.kinds.tags.train import estimator_of
from lpcfg.training.config import TrainingConfig
from lpcfg.training.pipeline import train_and_publish
from lpcfg.words.similarity import train_similarity
from tests.needs import lacking
from tests.words.test_similarity import scored, vectors

ROOT = Path(__file__).resolve().parents[2]
# As root in a container there is no sandbox to be had; the others keep it from calling home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ADMIN = "an administrator's key"
DESKTOP = (1280, 900)
PHONE = (390, 844)

# Sentences of words that the small treebank knows, and as long as their names say.
WORDS_5 = "The old man danced ."
WORDS_20 = (
    "The old man who sells books in the market saw the small bird near the river with a telescope ."
)
WORDS_60 = (
    "When the bell rang in the morning , the children who live near the river ran into the garden "
    "because they saw the old man with the red telescope , and the teacher said that she liked "
    "the small house that they built in the park because it has a new roof and the king can see "
    "the river ."
)


def of_words(number: int) -> str:
    """Build a sentence of so many words."""
    clause = ["the", "old", "man", "saw", "the", "small", "dog", "near", "the", "river", "and"]
    words = (clause * (number // len(clause) + 1))[: number - 1]
    return " ".join([*words, "."]).capitalize()


@dataclass
class Reader:
    """A page, and what it asked for and complained about."""

    page: Page
    origin: str
    requests: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, text: str | None = None, **shown: object) -> Page:
        """Go to the page with this text and these members of the address, until it has answered."""
        given = {} if text is None else {"text": text}
        if self.page.url.startswith(self.origin):
            self.page.goto("about:blank")  # another fragment alone would not load the page again
        self.page.goto(f"{self.origin}/#{urlencode({**given, **shown})}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until nothing is asked any more."""
        self.page.wait_for_selector("#status:not(:empty)", state="attached")
        self.page.wait_for_selector("#analysis[aria-busy=false]")
        expect(self.page.locator(".tree[aria-busy=true]")).to_have_count(0)  # far from the view

    def parse(self, text: str, **options: object) -> dict[str, Any]:
        """Ask the service itself to parse a text."""
        answer = self.page.request.post(
            f"{self.origin}/v1/parse", data={"text": text, "k": 1, **options}
        )
        assert answer.ok
        return answer.json()

    def write(self, text: str) -> Response:
        """Replace the text by typing; the answer that comes of it."""
        with self.page.expect_response("**/v1/parse") as answer:
            self.page.get_by_label("Text", exact=True).fill(text)
        self.settled()
        return answer.value

    def asked(self, path: str) -> list[Request]:
        """List the requests to a path."""
        return [one for one in self.requests if one.url == self.origin + path]

    def words(self) -> str:
        """Join the words of the tree that is shown."""
        return " ".join(self.page.locator(".tree").first.locator(".word").all_text_contents())

    def node(self, label: str, start: int, end: int, tree: int = 0) -> Locator:
        """Find a node of a tree: of the first, or of the one beside it."""
        card = self.page.locator("#trees > article").nth(tree)
        place = f"[data-start='{start}'][data-end='{end}']"
        return card.locator(f".node[data-label='{label}']{place}")

    def lit_words(self) -> str:
        """Join the words of the tree that are lit."""
        return " ".join(self.page.locator(".tree .lit .word").all_text_contents())

    def outside(self) -> list[str]:
        """List the requests to anywhere but the service."""
        inside = re.compile(rf"{re.escape(self.origin)}/|blob:{re.escape(self.origin)}/")
        return [one.url for one in self.requests if not inside.match(one.url)]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Start the service with two small models of examples/ and all that it can have beside them."""
    store = tmp_path_factory.mktemp("store")
    trees = ROOT / "examples" / "small.mrg"
    train_and_publish(trees, TrainingConfig(), store=store, name="small")
    train_and_publish(trees, TrainingConfig(seed=2), store=store, name="other")
    shutil.copytree(ROOT / "model_store" / "en-dep", store / "en-dep")
    tags = tag_training.Config(estimator_of("spectral", states=4))
    tag_training.train_and_publish(trees, tags, store=store, name="tags", dev={})
    beside = tmp_path_factory.mktemp("beside")
    measure, admins = beside / "measure.safetensors", beside / "admins"
    train_similarity(*scored(0), vectors()).save(measure)
    admins.write_text(f"me {hashlib.sha256(ADMIN.encode()).hexdigest()}\n", encoding="utf-8")
    settings = {"models": "other", "tagger": "tags", "similarity_file": measure}
    files = {"jobs_dir": beside / "jobs", "admin_keys_file": admins}
    with Process("small", store, **settings, **files) as running:
        yield running.ready()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium, and end it before the tests of other packages come: its driver keeps
    an event loop running in the thread of the tests.
    """
    path = shutil.which("chromium")
    if path is None:
        lacking("no chromium: `make browser` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@contextmanager
def reading(
    chromium: Browser, service: Process, size: tuple[int, int] = DESKTOP, scheme: str = "light"
) -> Iterator[Reader]:
    """Open a page of this size, and assert that it meets no error and asks nobody else."""
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    reader = Reader(context.new_page(), f"http://127.0.0.1:{service.port}")
    reader.page.set_default_timeout(10_000)
    reader.page.on("request", lambda request: reader.requests.append(request))
    reader.page.on("pageerror", lambda error: reader.complaints.append(str(error)))
    reader.page.on("console", lambda message: _note(reader, message.type, message.text))
    yield reader
    context.close()
    assert reader.outside() == []
    assert reader.complaints == []


def _note(reader: Reader, kind: str, text: str) -> None:
    # the browser's own note of an answer that is a problem, which the page shows in words
    if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
        reader.complaints.append(text)


@pytest.fixture
def reader(chromium: Browser, service: Process) -> Iterator[Reader]:
    """Open a page at a desk."""
    with reading(chromium, service) as one:
        yield one
