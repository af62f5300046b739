/**
 * The page: its state, what shows it, and what changes it.
 *
 *     text, k, objective, model    what is asked          answer, marginals, scores   what came
 *     sentence, tree, view         what is looked at      threshold, overlay          the chart
 *     busy, problem, took          how it goes            linkedHash                  from a link
 */

import { Service } from "./api.js";
import { ChartPanel } from "./chart-panel.js";
import { byId, html } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { copy } from "./files.js";
import { fragmentOf, stateOf } from "./link.js";
import { showNotices } from "./notices.js";
import { showScores } from "./score-panel.js";
import { Session } from "./session.js";
import { Spotlight } from "./spotlight.js";
import { Store } from "./store.js";
import { showTabs } from "./tabs.js";
import { showSentences, showText, showWords } from "./text-view.js";
import { followTheme } from "./theme.js";
import { TreesView } from "./trees-view.js";

const DEFAULTS = {
  text: EXAMPLES[0].text,
  k: 1,
  objective: "max-rule",
  model: "",
  view: "tree",
  sentence: 0,
  tree: 0,
  threshold: 0.05,
  linkedHash: null,
};
const UNASKED = {
  overlay: true,
  answer: null,
  marginals: null,
  scores: null,
  busy: null,
  problem: null,
  took: 0,
};
const IN_ADDRESS = ["text", "k", "objective", "model", "answer", "view", "sentence", "tree",
  "threshold"];

/** A store whose first `set` tells everybody everything. */
function build() {
  const store = new Store({});
  const spotlight = new Spotlight();
  const service = new Service();
  const session = new Session(store, service);
  followTheme();
  showTabs(store);
  showText(store, session);
  showSentences(store);
  showWords(store, spotlight);
  showNotices(store, session, service);
  const trees = new TreesView(store, spotlight);
  const chart = new ChartPanel(store, spotlight, trees);
  showScores(store, session);
  store.on(["view", "answer", "sentence"], ({ view }) => {
    if (view === "chart") session.readChart().then(() => chart.show());
    if (view === "tree") trees.show();
  });
  store.on(IN_ADDRESS, (state) => {
    history.replaceState(null, "", fragmentOf(state));
  });
  byId("copy-link").addEventListener("click", async () => {
    const told = await copy(location.href).then(() => "Link copied.", (error) => error.message);
    byId("told").textContent = told;
  });
  window.addEventListener("hashchange", () => {
    store.set({ ...DEFAULTS, ...stateOf(location.hash) });
    session.parse();
  });
  return { store, session, service };
}

/** Say which models there are, and let the reader choose where there are several. */
async function showModels(service, store) {
  const models = await service.models();
  byId("model").append(...models.map(({ name, version, default: isDefault }) =>
    html("option", { value: isDefault ? "" : name }, `${name}@${version}`)));
  byId("model").value = store.now.model;
  byId("model-choice").hidden = models.length < 2;
}

function showModelOf(store) {
  store.on(["answer"], ({ answer }) => {
    const model = answer?.model;
    byId("model-name").textContent = model ? `${model.name}@${model.version}` : "";
    byId("model-hash").textContent = model ? model.hash.slice(0, 12) : "";
    byId("model-hash").title = model?.hash ?? "";
  });
}

const { store, session, service } = build();
showModelOf(store);
store.set({ ...DEFAULTS, ...UNASKED, ...stateOf(location.hash) });
session.parse();
showModels(service, store).catch((error) => store.set({ problem: error.body }));
