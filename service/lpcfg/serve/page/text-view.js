/**
 * The text: typed, taken from an example, from earlier, or from a file; and the options.
 */

import { byId, html } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { keep, kept } from "./kept.js";
import { MOST_TREES } from "./link.js";

const SHOWN = 60;
const REMEMBERED = 40;
const LARGEST_FILE = 5_000_000;

/** Let the reader write, choose examples and options. */
export function showText(store, session) {
  const box = byId("text");
  const take = () => {
    store.set({ text: box.value, linkedHash: null, sentence: 0, tree: 0 });
    session.parseSoon();
  };
  const use = (text) => {
    store.set({ text, linkedHash: null, sentence: 0, tree: 0 });
    session.parse();
  };
  box.addEventListener("input", (event) => {
    if (!event.isComposing) take();
  });
  box.addEventListener("compositionend", take);
  store.on(["text"], ({ text }) => {
    if (box.value !== text) box.value = text;
  });
  const options = Array.from({ length: MOST_TREES - 1 }, (_, number) => html("option", {}, number + 2));
  byId("k").append(...options);
  byId("examples").append(...EXAMPLES.map(({ name, text }) => entry(name, () => use(text))));
  for (const name of ["k", "objective", "model"]) bindOption(name, store, session);
  byId("rescore").addEventListener("change", ({ target }) => {
    store.set({ rescore: target.checked, tree: 0 });
    session.parse();
  });
  store.on(["rescore"], ({ rescore }) => {
    byId("rescore").checked = rescore;
  });
  remember(store, use);
  takeFiles(use);
}

function entry(name, act) {
  const choose = ({ currentTarget }) => {
    currentTarget.closest("details").open = false;
    act();
  };
  return html("button", { type: "button", on: { click: choose } }, name);
}

function bindOption(name, store, session) {
  const choice = byId(name);
  choice.addEventListener("change", () => {
    store.set({ [name]: name === "k" ? Number(choice.value) : choice.value, tree: 0 });
    session.parse();
  });
  store.on([name], (state) => {
    choice.value = String(state[name]);
  });
}

/** Keep the texts that were parsed in this browser, the newest first. */
function remember(store, use) {
  let texts = kept("history", []);
  const show = () => {
    byId("history").replaceChildren(...texts.map((text) => entry(shortened(text), () => use(text))), ...(
      texts.length === 0 ? [html("p", { class: "muted" }, "Nothing yet.")]
        : [entry("Forget all of this", () => {
          texts = [];
          keep("history", texts);
          show();
        })]));
  };
  show();
  store.on(["answer"], ({ answer, text }) => {
    if (answer === null || texts[0] === text || text.length > 10_000) return;
    // a text that goes on from an earlier one takes its place
    const isSame = (other) => other === text || text.startsWith(other);
    texts = [text, ...texts.filter((other) => !isSame(other))].slice(0, REMEMBERED);
    keep("history", texts);
    show();
  });
}

/** Take the text of a file that is dropped on the page or opened. */
function takeFiles(use) {
  const read = async (file) => {
    if (!file) return;
    if (file.size > LARGEST_FILE) {
      byId("link-told").textContent = `${file.name} is larger than 5 MB: use lpcfg parse for it.`;
      return;
    }
    use(await file.text());
  };
  byId("file").addEventListener("change", ({ target }) => {
    read(target.files[0]);
    target.value = "";
  });
  byId("open-file").addEventListener("click", () => byId("file").click());
  const over = (event, on) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", on);
  };
  window.addEventListener("dragover", (event) => over(event, true));
  window.addEventListener("dragleave", (event) => over(event, false));
  window.addEventListener("drop", (event) => {
    over(event, false);
    read(event.dataTransfer?.files[0]);
  });
}

/** The beginning of a text, in one line. */
export function shortened(text, most = SHOWN) {
  const line = text.replace(/\s+/gu, " ").trim();
  const characters = Array.from(line);
  return characters.length <= most ? line : `${characters.slice(0, most).join("").trimEnd()}…`;
}
