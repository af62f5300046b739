/**
 * Names and values for those who want the numbers themselves.
 */

import { html } from "./dom.js";

/** What a negative p(tree) says. */
export const NEGATIVE = "negative, as estimates of rare trees can be";

/** A list of [name, value]; rows that are null are left out. */
export function factList(rows) {
  return html("dl", { class: "facts" }, ...rows.filter(Boolean).map(([name, value]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}
