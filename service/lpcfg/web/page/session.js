/**
 * Asks the service for the reader: after a pause in typing, one request at a time, and again
 * after a while if the service is too busy.
 */

import { Problem } from "./api.js";

const PAUSE = 350;
const MOST_TRIES = 3;
const KEPT_MARGINALS = 32;

export class Session {
  #store;
  #service;
  #timer = null;
  #asking = null;
  #last = null;
  #marginals = new Map();

  constructor(store, service) {
    this.#store = store;
    this.#service = service;
  }

  /** Parse the present text once the reader pauses. */
  parseSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.parse(), PAUSE);
  }

  /** Parse the present text now, and cancel the request in progress. */
  async parse() {
    clearTimeout(this.#timer);
    this.cancel();
    const { text, k, objective, model } = this.#store.now;
    if (text.trim() === "") {
      this.#store.set({ answer: null, problem: null });
      return;
    }
    await this.#ask(
      (signal) => this.#service.parse({ text, k, objective, model }, signal),
      (answer, took) => {
        this.#marginals.clear();
        this.#store.set({ ...within(this.#store.now, answer), answer, took });
      },
    );
  }

  /** The marginals of the sentence that is looked at, asked for once each. */
  async readChart() {
    const { answer, sentence, model } = this.#store.now;
    const one = answer?.sentences[sentence];
    const known = this.#marginals.get(one?.text) ?? null;
    this.#store.set({ marginals: known });
    if (!one || one.tokens.length === 0 || known) return;
    await this.#ask(
      (signal) => this.#service.marginals({ text: one.text, model }, signal),
      (marginals) => {
        if (this.#marginals.size >= KEPT_MARGINALS) this.#marginals.clear();
        this.#marginals.set(one.text, marginals);
        this.#store.set({ marginals });
      },
    );
  }

  /** Scores of bracketed trees. */
  async score(trees) {
    const { model } = this.#store.now;
    await this.#ask(
      (signal) => this.#service.score({ trees, model }, signal),
      (scores) => this.#store.set({ scores: { ...scores, asked: trees } }),
    );
  }

  /** Repeat the last request. */
  async again() {
    await this.#ask(...this.#last);
  }

  /** Cancel the request in progress. */
  cancel() {
    this.#asking?.abort();
    this.#asking = null;
    this.#store.set({ busy: null });
  }

  async #ask(question, take) {
    this.cancel();
    this.#last = [question, take];
    const asking = new AbortController();
    this.#asking = asking;
    const began = performance.now();
    this.#store.set({ busy: { began, waits: null } });
    try {
      const answer = await this.#insist(question, asking.signal);
      if (asking.signal.aborted) return;
      this.#store.set({ busy: null, problem: null });
      take(answer, performance.now() - began);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#store.set({ busy: null, problem: problemOf(error) });
    }
  }

  /** Ask, and ask again after the time that a busy service names. */
  async #insist(question, signal) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await question(signal);
      } catch (error) {
        if (!(error.retryAfter > 0) || tries === MOST_TRIES) throw error;
        this.#store.set({ busy: { ...this.#store.now.busy, waits: error.retryAfter } });
        await pause(error.retryAfter * 1000, signal);
        this.#store.set({ busy: { ...this.#store.now.busy, waits: null } });
      }
    }
  }
}

/** Move the chosen sentence and tree to ones that the answer has. */
function within({ sentence, tree }, answer) {
  const last = Math.max(0, answer.sentences.length - 1);
  const at = Math.min(sentence, last);
  const trees = answer.sentences[at]?.parses.length ?? 0;
  return { sentence: at, tree: Math.max(0, Math.min(tree, trees - 1)) };
}

function problemOf(error) {
  if (error instanceof Problem) return error.body;
  return { title: "This page has a fault", detail: `It says: ${error.message}. Please report it.` };
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
