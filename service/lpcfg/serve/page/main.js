/**
 * The page: its state, what shows it, and what changes it.
 *
 *     main        store · hover · session → api · link; models · corrections
 *     text        text-view · text-pieces · examples · sentences-view
 *     tree        trees-view → tree-view → tree-groups · layout · outline → tree-elements → shapes
 *                 readings · inspector · tree-tools → picture · exports · files; compare · walk
 *                 corrections-view · arcs-view → arcs · relations
 *     chart       chart-panel → chart-view → chart
 *     both        minimap · drag
 *     ask         score-panel → brackets · facts
 *     everywhere  dom · numbers · doubt · glossary · type · notices · menus · help · tabs · theme · kept
 *                 press
 *
 * The state:
 *
 *     text, k, objective, rescore, model     what is asked       answer, answered, corrections,
 *     sentence, tree, view, selected         what is looked at   marginals, scores, other, arcs:
 *     compare, against, withArcs, moved      beside it           what came, and for which text
 *     busy, problem, took                    how it goes         threshold, overlay: the chart
 *     one                                    the sentence looked at, as it was corrected
 */

import { Service } from "./api.js";
import { showArcs } from "./arcs-view.js";
import { ChartPanel } from "./chart-panel.js";
import { sentenceShown } from "./corrections.js";
import { showCorrections } from "./corrections-view.js";
import { byId } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { copy } from "./files.js";
import { showHelp } from "./help.js";
import { Inspector } from "./inspector.js";
import { fragmentOf, stateOf } from "./link.js";
import { tendMenus } from "./menus.js";
import { Models } from "./models.js";
import { showNotices } from "./notices.js";
import { followPresses } from "./press.js";
import { showReadings } from "./readings.js";
import { showScores } from "./score-panel.js";
import { showSentences } from "./sentences-view.js";
import { Session } from "./session.js";
import { Hover } from "./hover.js";
import { Store } from "./store.js";
import { showTabs } from "./tabs.js";
import { showText } from "./text-view.js";
import { followTheme } from "./theme.js";
import { showTreeTools } from "./tree-tools.js";
import { TreesView } from "./trees-view.js";

const DEFAULTS = {
  text: EXAMPLES[0].text,
  k: 3,
  objective: "",
  rescore: true,
  model: "",
  view: "tree",
  sentence: 0,
  tree: 0,
  threshold: 0.05,
  linkedHash: null,
};
const UNASKED = {
  overlay: true,
  compare: false,
  against: "",
  withArcs: false,
  answer: null,
  answered: "",
  corrections: new Map(),
  selected: null,
  moved: null,
  marginals: null,
  scores: null,
  other: null,
  arcs: null,
  models: [],
  busy: null,
  problem: null,
  took: 0,
};
const IN_ADDRESS = ["text", "k", "objective", "rescore", "model", "answer", "view", "sentence",
  "tree", "threshold"];
const SETTLED = 150;
/** Longer texts, in characters, are not put into an address. */
const LONGEST_LINK = 20_000;

/** Create a store whose first `set` notifies all listeners of everything. */
function build() {
  const store = new Store({}, { one: sentenceShown });
  const hover = new Hover();
  const service = new Service();
  const session = new Session(store, service);
  const models = new Models(store);
  followTheme();
  followPresses();
  tendMenus();
  showTabs(store);
  showText(store, session);
  showSentences(store);
  showNotices(store, session, service);
  const trees = new TreesView(store, hover);
  const inspector = new Inspector(store, session, trees, models);
  showReadings(store, trees);
  showTreeTools(store, trees, session, models);
  showCorrections(store, session);
  showArcs(store, session, hover);
  showHelp(store, models);
  const chart = new ChartPanel(store, hover, trees);
  showScores(store, session);
  const refit = () => {
    if (store.now.view === "chart") chart.show();
    if (store.now.view === "tree") trees.refit();
  };
  store.on(["view", "one"], ({ view }) => {
    if (view === "chart") session.readMarginals();
  });
  store.on(["view"], refit);
  onResize(byId("analysis"), refit);
  keepAddress(store, session);
  store.on(["models"], () => inspector.show());
  store.on(["answer"], once(() => models.load(service)));
  return { store, session };
}

/** Keep the address and the state in step, in both directions. */
function keepAddress(store, session) {
  let timer = null;
  store.on(IN_ADDRESS, () => {
    clearTimeout(timer);
    // browsers allow few changes of the address a second
    if (store.now.text.length > LONGEST_LINK) return;
    timer = setTimeout(() => history.replaceState(null, "", fragmentOf(store.now)), SETTLED);
  });
  window.addEventListener("hashchange", () => {
    store.set({ ...DEFAULTS, ...stateOf(location.hash) });
    session.parse();
  });
  byId("copy-link").addEventListener("click", async () => {
    if (store.now.text.length > LONGEST_LINK) {
      byId("link-told").textContent = "This text is too long for a link.";
      return;
    }
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

const { store, session } = build();
store.set({ ...DEFAULTS, ...UNASKED, ...stateOf(location.hash) });
session.parse();
