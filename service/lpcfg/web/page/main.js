/**
 * The page: its state, what shows it, and what changes it.
 *
 *     main        store · spotlight · session → api · link
 *     text        text-view · examples · analysis
 *     tree        trees-view → tree-view → layout → shapes; compare · picture · files
 *     chart       chart-panel → chart-view → chart
 *     ask         score-panel → brackets
 *     everywhere  dom · numbers · type · notices · tabs · theme
 *
 * The state:
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
const SETTLED = 150;

/** Create a store whose first `set` notifies all listeners of everything. */
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
  const refit = () => {
    if (store.now.view === "chart") chart.show();
    if (store.now.view === "tree") trees.refit();
  };
  store.on(["view", "answer", "sentence"], ({ view }) => {
    if (view === "chart") session.readChart();
  });
  store.on(["view"], refit);
  onResize(byId("analysis"), refit);
  keepAddress(store, session);
  store.on(["answer"], once(() => showModels(service, store)));
  return { store, session };
}

/** Keep the address and the state in step, in both directions. */
function keepAddress(store, session) {
  let timer = null;
  store.on(IN_ADDRESS, () => {
    clearTimeout(timer);
    // browsers allow few changes of the address a second
    timer = setTimeout(() => history.replaceState(null, "", fragmentOf(store.now)), SETTLED);
  });
  window.addEventListener("hashchange", () => {
    store.set({ ...DEFAULTS, ...stateOf(location.hash) });
    session.parse();
  });
  byId("copy-link").addEventListener("click", async () => {
    const link = new URL(fragmentOf(store.now), location.href).href;
    const told = await copy(link).then(() => "Link copied.", (error) => error.message);
    byId("link-told").textContent = told;
  });
}

/** Call back when an element gets another width. */
function onResize(element, callback) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    callback();
  }).observe(element);
}

/** A listener that acts on the first state that has an answer. */
function once(action) {
  let done = false;
  return ({ answer }) => {
    if (done || answer === null) return;
    done = true;
    action();
  };
}

/** Show the models, and let the reader choose if there are several. */
async function showModels(service, store) {
  const models = await service.models().catch(() => []); // it is only a choice of more
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

const { store, session } = build();
showModelOf(store);
store.set({ ...DEFAULTS, ...UNASKED, ...stateOf(location.hash) });
session.parse();
