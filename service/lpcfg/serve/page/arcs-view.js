/**
 * Dependencies as arcs over the words, from heads to the words that depend on them.
 */

import { placeArcs } from "./arcs.js";
import { byId, html, svg } from "./dom.js";
import { levelOf, sureness } from "./doubt.js";
import { dragToScroll } from "./drag.js";
import { relationMeaning, universalMeaning } from "./relations.js";
import { isLitWord } from "./hover.js";
import { TYPE, widthOf } from "./type.js";

/** Show the dependencies of the chosen sentence where the reader wants them and a model gives them. */
export function showArcs(store, session, hover) {
  const box = html("div", { class: "canvas", tabindex: "0", role: "region", "aria-label": "Dependencies" });
  dragToScroll(box);
  byId("arcs").append(box);
  byId("show-arcs").addEventListener("click", () => store.set({ withArcs: !store.now.withArcs }));
  store.on(["one", "withArcs"], ({ withArcs, one, moved }) => {
    byId("show-arcs").setAttribute("aria-pressed", String(withArcs));
    byId("arcs-card").hidden = !withArcs;
    if (withArcs && !(moved && store.now.arcs)) session.readArcs();
    if (one === null) box.replaceChildren();
  });
  store.on(["arcs"], ({ arcs }) => {
    const [sentence] = arcs?.sentences ?? [];
    byId("arcs-model").textContent = arcs ? `${arcs.model.name}@${arcs.model.version}` : "";
    box.replaceChildren(...(sentence?.tokens.length ? [picture(sentence.tokens, hover)] : []));
  });
  hover.on((spot) => {
    for (const word of box.querySelectorAll("[data-word]")) {
      const number = Number(word.dataset.word);
      word.classList.toggle("lit", isLitWord(spot, number));
    }
  });
}

function picture(tokens, hover) {
  const { width, height, base, words, arcs } = placeArcs(tokens);
  const told = arcs.map(({ token, from }) => `${token.text}: ${inWords(token.relation)} of `
    + `${from < 0 ? "the root" : tokens[from].text}, ${sureness(token.probability)}`);
  return svg(
    "svg",
    {
      class: "arcs", role: "img", width, height, viewBox: `0 0 ${width} ${height}`,
      "aria-label": `Dependencies. ${told.join("; ")}`,
    },
    ...arcs.map((arc) => svg("path", { class: `arc ${levelOf(arc.token.probability)}`, d: curve(arc, base) })),
    ...arcs.map((arc) => svg("path", { class: `tip ${levelOf(arc.token.probability)}`, d: tip(arc.x2, base) })),
    ...arcs.map(label),
    ...words.map((word) => wordOf(word, base, hover)),
  );
}

/** A relation with what it means. */
function inWords(relation) {
  const meaning = relationMeaning(relation);
  return meaning === null ? relation : `${relation} (${meaning})`;
}

function curve({ x1, x2, y, isRoot }, base) {
  if (isRoot) return `M${x2} ${y + 4}V${base - 6}`;
  const side = Math.sign(x2 - x1);
  const round = Math.min(16, Math.abs(x2 - x1) / 2);
  return `M${x1} ${base}V${y + round}Q${x1} ${y} ${x1 + side * round} ${y}H${x2 - side * round}`
    + `Q${x2} ${y} ${x2} ${y + round}V${base - 6}`;
}

function tip(x, base) {
  return `M${x - 4} ${base - 7}L${x + 4} ${base - 7}L${x} ${base}Z`;
}

function label({ x1, x2, y, isRoot, label: words, token }) {
  const width = widthOf(words, "tag") + 8;
  const x = isRoot ? x2 : (x1 + x2) / 2;
  return svg(
    "g",
    {},
    svg("title", {}, inWords(token.relation)),
    svg("rect", { class: "arc-back", x: x - width / 2, y: y - 8, width, height: 16, rx: 4 }),
    svg("text", {
      class: `arc-label ${levelOf(token.probability)}`,
      x, y: y + 4, "text-anchor": "middle", "font-size": TYPE.tag.size,
    }, words),
  );
}

function wordOf({ token, number, x }, base, hover) {
  const turn = (on) => () => hover.turn(on ? { start: number, end: number + 1, part: "word" } : null);
  return svg(
    "g",
    { "data-word": number, on: { pointerenter: turn(true), pointerleave: turn(false) } },
    svg("text", { class: "word", x, y: base + 18, "text-anchor": "middle", "font-size": TYPE.word.size }, token.text),
    svg("text", { class: "arc-tag", x, y: base + 34, "text-anchor": "middle", "font-size": TYPE.tag.size },
      svg("title", {}, universalMeaning(token.tag) ?? token.tag), token.tag),
  );
}
