/**
 * Tells the reader about the work: progress, results and problems.
 */

import { byId, html } from "./dom.js";
import { count } from "./numbers.js";

/** Faster answers are not announced as progress, because it would only flicker. */
const UNNOTICED = 200;
const TICK = 500;
/** Answers of these kinds replace what is shown; others are put beside it. */
const REPLACING = ["trees", "correction"];

/** Show progress, results and problems of a store. */
export function showNotices(store, session, service) {
  const progress = new Progress(store, session);
  store.on(["busy"], () => progress.follow());
  store.on(["answer", "busy"], ({ answer, busy, took }) => {
    if (!busy) byId("status").textContent = answer ? summary(answer, took) : "";
  });
  store.on(["problem"], ({ problem }) => showProblem(problem, { session, service }));
  store.on(["problem", "busy", "answer", "text"], showStale);
  store.on(["answer", "linkedHash"], showModelNote);
}

class Progress {
  #store;
  #timer = null;

  constructor(store, session) {
    this.#store = store;
    byId("cancel").addEventListener("click", () => session.cancel());
  }

  follow() {
    const { busy } = this.#store.now;
    byId("analysis").setAttribute("aria-busy", String(busy !== null));
    clearInterval(this.#timer);
    if (busy === null) {
      byId("progress").hidden = true;
      return;
    }
    this.#timer = setInterval(() => this.#tick(), byId("progress").hidden ? UNNOTICED : TICK);
  }

  #tick() {
    const { busy } = this.#store.now;
    const seconds = Math.floor((performance.now() - busy.began) / 1000);
    const doing = busy.waits === null
      ? "The service is working"
      : `The service is busy; asking again in ${count(busy.waits, "second")}`;
    byId("progress").hidden = false;
    const isLong = seconds > 0 && busy.waits === null;
    byId("progress-words").textContent = isLong ? `${doing} (${seconds} s)` : `${doing} …`;
  }
}

/** Fade what belongs to an earlier text than the one that is written now. */
function showStale({ problem, busy, answer, text, answered }) {
  const failed = problem !== null && !problem.keeps;
  const isStale = answer !== null && (failed || text !== answered);
  const isAsking = REPLACING.includes(busy?.kind) && !failed;
  byId("analysis").classList.toggle("stale", isStale);
  byId("analysis").classList.toggle("asking", isAsking);
  byId("stale-note").hidden = !isStale || isAsking;
}

function summary(answer, took) {
  const { sentences } = answer;
  const words = sentences.reduce((sum, sentence) => sum + sentence.tokens.length, 0);
  const failed = sentences.filter((sentence) => sentence.status !== "parsed").length;
  return [
    count(sentences.length, "sentence"),
    count(words, "word"),
    `${Math.round(took)} ms`,
    failed > 0 ? `${failed} without a whole tree` : null,
    answer.whole ? null : "more to come",
  ].filter(Boolean).join(" · ");
}

function showModelNote({ answer, linkedHash }) {
  const differs = answer && linkedHash && answer.model.hash !== linkedHash;
  byId("model-note").hidden = !differs;
  if (!differs) return;
  byId("model-note").textContent = "The link you followed was made with another model "
    + `(${linkedHash.slice(0, 8)}…) than the one that answers now (${answer.model.name}@`
    + `${answer.model.version}, ${answer.model.hash.slice(0, 8)}…): trees may differ.`;
}

/** A problem in words: what it is, what to change, where. */
function showProblem(problem, { session, service }) {
  const box = byId("problem");
  box.hidden = problem === null;
  if (problem === null) {
    box.replaceChildren();
    return;
  }
  const faults = problem.errors ?? [];
  box.replaceChildren(...[
    html("h2", {}, problem.title),
    html("p", {}, sentenceCase(problem.detail ?? "")),
    problem.limit === undefined || problem.limit === null ? null : html("p", {}, `Limit: ${problem.limit}. `
      + `You sent: ${problem.value}.`),
    problem.retryAfter > 0 ? html("p", {}, `Try again in ${count(problem.retryAfter, "second")}.`) : null,
    faults.length > 1 ? html("ul", {}, ...faults.map((fault) => html("li", {}, sentenceCase(fault.detail))))
      : null,
    problem.status === 401 ? keyForm(session, service) : closing(problem, session),
  ].filter(Boolean));
}

/** A new attempt may help, unless the service has said what is wrong with the request. */
function closing({ status, asked }, session) {
  if (status === 422 || status === 413 || asked !== undefined) return null;
  return html("button", { type: "button", on: { click: () => session.again() } }, "Try again");
}

function keyForm(session, service) {
  const input = html("input", { id: "key", type: "password", autocomplete: "off" });
  const send = (event) => {
    event.preventDefault();
    service.key = input.value;
    session.again();
  };
  return html(
    "form",
    { on: { submit: send } },
    html("label", { for: "key" }, "Your key (kept until you leave this page) "),
    input,
    html("button", {}, "Use it"),
  );
}

function sentenceCase(words) {
  const ended = /[.!?]$/.test(words) ? words : `${words}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}
