/**
 * The sentences of a text, each with how much of its tree is expected to be right. Only those that
 * are in view exist as elements, so that a thousand are as quick as ten.
 */

import { corrected } from "./corrections.js";
import { byId, html } from "./dom.js";
import { confidenceOf, isUnusual, levelOf } from "./doubt.js";
import { percent } from "./numbers.js";
import { shortened } from "./text-view.js";

const AROUND = 3;
const SHOWN = 34;
const WIDE = "(min-width: 64rem)";
/** The size of an item in the list's direction, in pixels, with the space after it; as in page.css. */
const SIZES = { column: 44, row: 232 };

/** Let the reader choose one of several sentences. */
export function showSentences(store) {
  const list = byId("sentences");
  const view = new Sentences(list, store);
  store.on(["answer", "sentence", "corrections"], () => view.show());
  store.on(["sentence"], () => view.reveal());
  matchMedia(WIDE).addEventListener("change", () => view.show());
  list.addEventListener("scroll", () => view.show(), { passive: true });
  list.addEventListener("keydown", (event) => view.key(event));
}

class Sentences {
  #list;
  #store;
  #items = byId("sentence-items");

  constructor(list, store) {
    this.#list = list;
    this.#store = store;
  }

  get #count() {
    return this.#store.now.answer?.sentences.length ?? 0;
  }

  get #direction() {
    return matchMedia(WIDE).matches ? "column" : "row";
  }

  /** Build the items in view. */
  show() {
    const { answer, sentence } = this.#store.now;
    const sentences = answer?.sentences ?? [];
    this.#list.hidden = sentences.length < 2;
    document.body.classList.toggle("many", sentences.length > 1);
    if (this.#list.hidden) {
      this.#items.replaceChildren();
      return;
    }
    const direction = this.#direction;
    const size = SIZES[direction];
    const isColumn = direction === "column";
    const [offset, room] = isColumn
      ? [this.#list.scrollTop, this.#list.clientHeight]
      : [this.#list.scrollLeft, this.#list.clientWidth];
    const first = Math.max(0, Math.floor(offset / size) - AROUND);
    const last = Math.min(sentences.length, Math.ceil((offset + room) / size) + AROUND);
    const focused = this.#items.contains(document.activeElement);
    this.#items.style[isColumn ? "height" : "width"] = `${size * sentences.length}px`;
    this.#items.style[isColumn ? "width" : "height"] = "";
    const shown = sentences.slice(first, last).map((one, place) => {
      const item = this.#item(one, first + place, first + place === sentence, sentences.length);
      item.style.transform = isColumn
        ? `translateY(${(first + place) * size}px)` : `translateX(${(first + place) * size}px)`;
      return item;
    });
    this.#items.replaceChildren(...shown);
    if (focused) this.#items.querySelector("[aria-current]")?.focus({ preventScroll: true });
  }

  #item(one, number, isChosen, count) {
    const { corrections } = this.#store.now;
    const confidence = confidenceOf(corrected({ corrections }, one));
    return html("li", { "aria-setsize": count, "aria-posinset": number + 1 }, html(
      "button",
      {
        type: "button",
        tabindex: isChosen ? "0" : "-1",
        "data-sentence": number,
        "aria-current": isChosen ? "true" : null,
        on: { click: () => this.choose(number) },
      },
      html("span", { class: "sentence-text" }, `${number + 1}. ${shortened(one.text, SHOWN)}`),
      corrections.has(one.text) ? html("span", { class: "badge" }, "corrected") : null,
      one.status === "parsed" ? null : html("span", { class: "badge" }, one.status),
      isUnusual(one) ? html("span", { class: "badge", title: "unlike the training text" }, "unusual") : null,
      confidence === null ? null : confidenceBar(confidence),
    ));
  }

  /** Look at a sentence. */
  choose(number) {
    this.#store.set({ sentence: number, tree: 0, selected: null, moved: null });
  }

  /** Scroll to the chosen sentence. */
  reveal() {
    const { sentence } = this.#store.now;
    const size = SIZES[this.#direction];
    const [start, room] = this.#direction === "column"
      ? ["scrollTop", this.#list.clientHeight] : ["scrollLeft", this.#list.clientWidth];
    const place = sentence * size;
    if (place < this.#list[start]) this.#list[start] = place;
    else if (place + size > this.#list[start] + room) this.#list[start] = place + size - room;
    this.show();
  }

  key(event) {
    const { sentence } = this.#store.now;
    const last = this.#count - 1;
    const to = {
      ArrowDown: sentence + 1,
      ArrowRight: sentence + 1,
      ArrowUp: sentence - 1,
      ArrowLeft: sentence - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, to)));
    this.#items.querySelector("[aria-current]")?.focus({ preventScroll: true });
  }
}

/** How much of a tree is expected to be right: a number, and a bar. */
function confidenceBar({ right, of, doubts }) {
  const share = of === 0 ? 0 : right / of;
  const bar = html("span", { class: `bar ${levelOf(share)}`, "aria-hidden": "true" });
  bar.style.setProperty("--share", `${share * 100}%`);
  const told = `${percent(share)} of its nodes expected to be right, ${doubts} in doubt`;
  return html("span", { class: "confidence", title: told }, html("span", { class: "number" }, percent(share)), bar);
}
