"""How long the page takes to draw a tree: a real Chromium, a real service, sentences of 100 words.

    python -m benchmarks.drawing --json

Each turn draws a tree whose words were not drawn before, into the pane of the page, and waits for
the frame in which it is painted. `shown_ms` is the time until what is in view is laid out: the
median; `quickest_ms` is that of the turn which other jobs on the machine disturbed least. The other
figures are medians of CPU milliseconds of the page's thread, as Chromium counts them: for scripts,
styles and layout, and for everything, painting and what is not in view included. A step is all that
the page does when its reader goes on to another sentence of the text.
"""

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Callable

from benchmarks.environment import Record, environment
from benchmarks.serving import Process
from playwright.sync_api import CDPSession, Page, sync_playwright
from tests.page.conftest import FLAGS

from lpcfg.settings import read_settings

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
TURNS = 16
WARM = 10
"""Turns before the first that counts: by then the scripts are compiled."""
CLAUSES = (
    "When the bell rang in the morning",
    "the children who live near the river ran into the garden",
    "because they had seen the old man with the red telescope",
    "and the teacher said that she liked the small house",
    "which her brother had built in the park last summer",
    "although the mayor of the town wanted to have a school there",
    "but nobody who was asked could remember what the council had promised",
    "so the two neighbours wrote a long letter to the newspaper in the city",
    "in which they explained why the plan was a bad idea",
    "and how the money could be spent better",
)
DRAW = """
async ([sentence, turn]) => {
  const { treeOf } = await import("/analysis.js");
  const { TreeView } = await import("/tree-view.js");
  const view = globalThis.drawn ??= new TreeView({ label: "drawn" });
  if (!view.element.isConnected) document.querySelector("#trees").replaceChildren(view.element);
  const nodes = treeOf(sentence, sentence.parses[0]);
  for (const node of nodes) if (node.word !== null) node.word += String.fromCharCode(97 + turn);
  await new Promise(requestAnimationFrame);
  const began = performance.now();
  view.show(nodes);
  view.element.getBoundingClientRect();
  const took = performance.now() - began;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return took;
}
"""
STEP = """
async (turn) => {
  document.querySelector(`[data-sentence='${turn % 2}']`).click();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}
"""
METRICS = {
    "scripts": "ScriptDuration",
    "styles": "RecalcStyleDuration",
    "layout": "LayoutDuration",
    "all": "TaskDuration",
}


def of_words(number: int) -> str:
    """Build a sentence of so many tokens, the last of which is the period."""
    words = " ".join(CLAUSES).split()
    if len(words) < number - 1:
        raise SystemExit(f"expected at most {len(words) + 1} words, got {number}: ask for fewer")
    return " ".join(words[: number - 1]) + "."


class Clock:
    """Counts the CPU time of a page's thread."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def during(self, work: Callable[[], object]) -> dict[str, float]:
        """Return the milliseconds that some work takes."""
        before = self._now()
        work()
        after = self._now()
        return {what: 1000 * (after[name] - before[name]) for what, name in METRICS.items()}

    def _now(self) -> dict[str, float]:
        told = self._session.send("Performance.getMetrics")["metrics"]
        return {one["name"]: one["value"] for one in told}


def measure(page: Page, words: int) -> Record:
    """Draw trees in an open page, and go from sentence to sentence."""
    one, other = of_words(words), of_words(words).replace("old man", "old woman")
    page.get_by_label("Text", exact=True).fill(f"{one} {other}")
    page.wait_for_selector("[data-sentence='1']")
    page.wait_for_load_state("networkidle")
    clock = Clock(page.context.new_cdp_session(page))
    steps = [
        clock.during(lambda turn=turn: page.evaluate(STEP, turn)) for turn in range(WARM + TURNS)
    ]
    answer = page.request.post("/v1/parse", data={"text": one}).json()
    [sentence] = answer["sentences"]
    shown: list[float] = []

    def draw(turn: int) -> None:
        shown.append(page.evaluate(DRAW, [sentence, turn]))

    drawn = [clock.during(lambda turn=turn: draw(turn)) for turn in range(WARM + TURNS)]
    return {
        "words": len(sentence["tokens"]),
        "nodes": len(sentence["tokens"]) + len(sentence["parses"][0]["constituents"]),
        "shown_ms": _median(shown),
        "quickest_ms": round(min(shown[WARM:]), 1),
        "tree_ms": {what: _median([turn[what] for turn in drawn]) for what in METRICS},
        "step_ms": {what: _median([turn[what] for turn in steps]) for what in METRICS},
    }


def _median(values: list[float]) -> float:
    return round(statistics.median(values[WARM:]), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--model", default="en")
    parser.add_argument("--json", action="store_true", help="one object a line")
    arguments = parser.parse_args()
    browser_path = shutil.which("chromium")
    if browser_path is None:
        sys.exit("expected chromium on the PATH, found none: `make browser` installs it")
    store = read_settings().model_store
    with Process(arguments.model, store) as service, sync_playwright() as playwright:
        service.ready()
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        for name, (width, height) in SIZES.items():
            for words in arguments.words:
                context = browser.new_context(
                    base_url=f"http://127.0.0.1:{service.port}",
                    viewport={"width": width, "height": height},
                )
                page = context.new_page()
                page.goto("/#text=It+rained.")
                page.wait_for_selector(".node")
                record = {"size": name, **measure(page, words)}
                context.close()
                record |= {"model": arguments.model, **environment(0)}
                print(json.dumps(record) if arguments.json else record, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
