/**
 * "How to read this": open on the first visit, and the glossary of all labels, tags and relations.
 */

import { byId, html } from "./dom.js";
import { GLOSSARY, meaningOf } from "./glossary.js";
import { keep, kept } from "./kept.js";
import { RELATIONS } from "./relations.js";

const KEY = "help-seen";

/** Let the reader open and close the help; show a hint to it until it was seen. */
export function showHelp(store, models) {
  const dialog = byId("help");
  byId("open-help").addEventListener("click", () => {
    fill(models);
    dialog.showModal();
  });
  byId("first-visit").hidden = kept(KEY, false);
  byId("first-seen").addEventListener("click", () => {
    byId("first-visit").hidden = true;
    keep(KEY, true);
    byId("text").focus();
  });
  byId("first-help").addEventListener("click", () => byId("open-help").click());
}

/** The glossary of the model's own labels and tags; of all that are known while it is not there. */
function fill(models) {
  const { labels, tags } = models.current ?? {
    labels: Object.keys(GLOSSARY.labels), tags: Object.keys(GLOSSARY.tags),
  };
  const rows = (names) => names.flatMap((name) => [
    html("dt", {}, name), html("dd", {}, meaningOf(name) ?? "a label of this model's own treebanks"),
  ]);
  byId("glossary-labels").replaceChildren(...rows(labels));
  byId("glossary-tags").replaceChildren(...rows(tags));
  byId("glossary-relations").replaceChildren(...Object.entries(RELATIONS).flatMap(([name, meaning]) => [
    html("dt", {}, name), html("dd", {}, meaning),
  ]));
}
