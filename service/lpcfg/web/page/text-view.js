/**
 * The text: typed or taken from an example, its sentences to choose from, and the chosen one word
 * by word.
 */

import { piecesOf } from "./analysis.js";
import { byId, flag, html } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { isLitWord } from "./spotlight.js";

const SHOWN = 34;

/** Let the reader write, choose examples and options. */
export function showText(store, session) {
  const box = byId("text");
  const take = () => {
    store.set({ text: box.value, linkedHash: null, sentence: 0, tree: 0 });
    session.parseSoon();
  };
  box.addEventListener("input", (event) => {
    if (!event.isComposing) take();
  });
  box.addEventListener("compositionend", take);
  store.on(["text"], ({ text }) => {
    if (box.value !== text) box.value = text;
  });
  byId("examples").append(...EXAMPLES.map(({ name, text }) => html("button", {
    type: "button",
    on: {
      click: () => {
        store.set({ text, linkedHash: null, sentence: 0, tree: 0 });
        session.parse();
      },
    },
  }, name)));
  for (const name of ["k", "objective", "model"]) bindOption(name, store, session);
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

/** Let the reader choose one of several sentences. */
export function showSentences(store) {
  const list = byId("sentences");
  store.on(["answer", "sentence"], ({ answer, sentence }) => {
    const sentences = answer?.sentences ?? [];
    list.hidden = sentences.length < 2;
    const buttons = sentences.map((one, number) => html("button", {
      type: "button",
      "aria-current": number === sentence ? "true" : null,
      on: { click: () => store.set({ sentence: number, tree: 0 }) },
    }, `${number + 1}. ${shortened(one.text)}`, one.status === "parsed" ? null : badge(one.status)));
    const focused = [...list.children].findIndex((item) => item.contains(document.activeElement));
    list.replaceChildren(...buttons.map((button) => html("li", {}, button)));
    buttons[focused]?.focus();
  });
}

function badge(status) {
  return html("span", { class: "badge" }, status);
}

function shortened(text) {
  const characters = Array.from(text.replace(/\s+/g, " "));
  return characters.length <= SHOWN ? text : `${characters.slice(0, SHOWN).join("").trimEnd()}…`;
}

/** Show the chosen sentence as written; pointing at a word highlights all that contains it. */
export function showWords(store, spotlight) {
  const line = byId("words");
  let tokens = [];
  store.on(["answer", "sentence"], ({ answer, sentence }) => {
    const one = answer?.sentences[sentence];
    tokens = [];
    const pieces = one ? piecesOf(one) : [];
    line.replaceChildren(...pieces.map((piece) => {
      if (piece.token === null) return piece.text;
      const word = html("span", { class: "token", "data-word": piece.token }, piece.text);
      tokens.push(word);
      return word;
    }));
  });
  line.addEventListener("pointerover", (event) => {
    const number = event.target.dataset.word;
    spotlight.turn(number === undefined ? null
      : { start: Number(number), end: Number(number) + 1, part: "word" });
  });
  line.addEventListener("pointerleave", () => spotlight.turn(null));
  spotlight.on((spot) => {
    tokens.forEach((word, number) => flag(word, "data-lit", isLitWord(spot, number)));
  });
}
