/**
 * Asks the service for the reader: after a pause in typing, one request at a time, and again
 * after a while if the service is too busy.
 */

import { Problem, insist } from "./api.js";
import {
  askedOf, correctionOf, inPlace, listed, requestOf, sentenceShown, withConstraint, withTag, without,
} from "./corrections.js";
import { readTree } from "./brackets.js";
import { released } from "./press.js";
import { movedBy, textPieces } from "./text-pieces.js";

const PAUSE = 350;
const KEPT_MARGINALS = 32;
/** At least two readings are asked for, because the first is told beside the next. */
const FEWEST = 2;
/** So many sentences go into one request for a file. */
const AT_ONCE = 64;

export class Session {
  #store;
  #service;
  #timer = null;
  #asking = new Map();
  #last = null;
  #text = "";
  #marginals = new Map();

  constructor(store, service) {
    this.#store = store;
    this.#service = service;
  }

  /** Parse the present text once the reader pauses. */
  parseSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => released().then(() => this.parse()), PAUSE);
  }

  /** Parse the present text now, and cancel the request in progress. */
  async parse() {
    clearTimeout(this.#timer);
    this.cancel();
    const { text } = this.#store.now;
    // a problem with an earlier text says nothing of this one
    if (text !== this.#text) this.#store.set({ problem: null });
    this.#text = text;
    const [first, ...rest] = textPieces(text);
    if (first === undefined) {
      this.#store.set({ answer: null, answered: text, problem: null });
      return;
    }
    await this.#ask(
      (signal) => this.#service.parse({ text: first.text, ...this.#options() }, signal),
      (answer, took) => {
        this.#marginals.clear();
        const sentences = movedBy(answer.sentences, first.start);
        this.#take({ ...answer, sentences, whole: rest.length === 0 }, took);
      },
    );
    if (rest.length > 0 && this.#store.now.problem === null) await this.#parseRest(text, rest);
    if (correctionOf(this.#store.now)) await this.#askBeside("correction", ...this.#correcting());
  }

  /** Parse the other pieces of a long text; what has come is shown meanwhile. */
  async #parseRest(text, rest) {
    for (const [number, piece] of rest.entries()) {
      if (this.#store.now.text !== text) return;
      let isTaken = false; // it is not if it failed, or if something else was asked for
      await this.#ask(
        (signal) => this.#service.parse({ text: piece.text, ...this.#options() }, signal),
        (more, took) => {
          isTaken = true;
          const { answer, took: before } = this.#store.now;
          const sentences = [...answer.sentences, ...movedBy(more.sentences, piece.start)];
          const whole = number === rest.length - 1;
          this.#take({ ...answer, sentences, whole }, before + took);
        },
        "rest",
      );
      if (!isTaken) return;
    }
  }

  #take(answer, took) {
    const place = within(this.#store.now, answer);
    const answered = this.#store.now.text;
    this.#store.set({ ...place, answer, answered, took, selected: null, moved: null });
  }

  #options() {
    const { k, ...asked } = this.#asked();
    return { k: Math.max(FEWEST, k), ...asked };
  }

  #asked() {
    const { k, objective, rescore, model } = this.#store.now;
    return { k, objective: objective || null, rescore, model };
  }

  // Corrections -----------------------------------------------------------------------------------

  /** Ask for a constituent { start, end, label }, or with `forbid` for a tree without it. */
  constrain(wanted) {
    return this.#correct(withConstraint(askedOf(correctionOf(this.#store.now)), wanted));
  }

  /** Ask for the tag of a word. */
  retag(place, tag) {
    return this.#correct(withTag(askedOf(correctionOf(this.#store.now)), place, tag));
  }

  /** Ask for one thing less. */
  withdraw(one) {
    return this.#correct(without(askedOf(correctionOf(this.#store.now)), one));
  }

  /** Go a step back (-1) or forward (1) in the corrections of this sentence. */
  step(by) {
    const found = correctionOf(this.#store.now);
    if (found?.steps[found.at + by]) this.#follow({ ...found, at: found.at + by });
  }

  #correct(wanted) {
    const { answer, sentence } = this.#store.now;
    const original = answer.sentences[sentence];
    const before = correctionOf(this.#store.now)
      ?? { steps: [{ constraints: [], tags: {}, sentence: original }], at: 0 };
    return this.#askBeside("correction", ...this.#correcting(before, wanted, original));
  }

  /** The request for a corrected sentence, and what becomes of its answer. */
  #correcting(
    before = correctionOf(this.#store.now),
    wanted = askedOf(before),
    original = this.#store.now.answer.sentences[this.#store.now.sentence],
  ) {
    const isAgain = wanted === before.steps[before.at];
    const question = (signal) => this.#service.parse(
      { sentences: [requestOf(original, wanted)], ...this.#options() }, signal,
    );
    const take = ({ sentences: [found] }) => {
      if (found.status !== "parsed") throw new Problem(impossible(found, wanted));
      const step = { ...wanted, sentence: inPlace(found, original) };
      const steps = isAgain ? [{ constraints: [], tags: {}, sentence: original }]
        : before.steps.slice(0, before.at + 1);
      this.#follow({ steps: [...steps, step], at: steps.length });
    };
    return [question, take];
  }

  #follow(correction) {
    const { answer, sentence, corrections } = this.#store.now;
    const was = sentenceShown(this.#store.now);
    const next = new Map(corrections).set(answer.sentences[sentence].text, correction);
    this.#store.set({ corrections: next, tree: 0, selected: null, moved: was });
  }

  // Other questions -------------------------------------------------------------------------------

  /** The marginals of the sentence that is looked at, asked for once each. */
  async readMarginals() {
    const { one, answer } = this.#store.now;
    const asked = askedOf(correctionOf(this.#store.now));
    const key = JSON.stringify([one?.text, listed(asked)]);
    const known = answer === null ? null : this.#marginals.get(key) ?? null;
    if (this.#store.now.marginals !== known) this.#store.set({ marginals: known });
    if (!one || one.tokens.length === 0 || known) return;
    await this.#askBeside(
      "chart",
      (signal) => this.#service.marginals({ sentence: requestOf(one, asked), ...this.#asked() }, signal),
      (marginals) => {
        if (this.#marginals.size >= KEPT_MARGINALS) this.#marginals.clear();
        this.#marginals.set(key, marginals);
        if (this.#store.now.one === one) this.#store.set({ marginals });
      },
    );
  }

  /** The same sentence by another model, or without the rescoring layer. */
  async readOther(changes) {
    const { one } = this.#store.now;
    await this.#askBeside(
      "other",
      (signal) => this.#service.parse({
        sentences: [requestOf(one, askedOf(null))], ...this.#options(), ...changes,
      }, signal),
      ({ sentences: [found], model }) => {
        if (this.#store.now.one === one) this.#store.set({ other: { model, sentence: inPlace(found, one) } });
      },
    );
  }

  /** The dependency tree of the sentence that is looked at. */
  async readArcs() {
    const { one } = this.#store.now;
    this.#store.set({ arcs: null });
    if (!one || one.tokens.length === 0) return;
    await this.#askBeside(
      "arcs",
      (signal) => this.#service.dependencies([requestOf(one, askedOf(null))], signal),
      (arcs) => {
        if (this.#store.now.one === one) this.#store.set({ arcs });
      },
    );
  }

  /** The dependency trees of all sentences, as CoNLL-U. */
  async readConllu() {
    const sentences = this.#store.now.answer.sentences.filter((one) => one.tokens.length > 0);
    const parts = [];
    for (let at = 0; at < sentences.length; at += AT_ONCE) {
      const some = sentences.slice(at, at + AT_ONCE);
      const plain = some.map((one) => requestOf(one, askedOf(null)));
      parts.push(await this.#service.conllu(plain));
    }
    return parts.join("");
  }

  /** Scores of bracketed trees, and the probabilities of their nodes. */
  async score(trees) {
    const { model, rescore } = this.#store.now;
    const asked = { model, rescore };
    await this.#askBeside(
      "score",
      async (signal) => {
        const scores = await this.#service.score({ trees, ...asked }, signal);
        const nodes = await Promise.all(scores.trees.map(({ tree }) =>
          tree === null || tree === undefined ? null : this.#nodesOf(tree, asked, signal)));
        return { ...scores, nodes };
      },
      (scores) => this.#store.set({ scores: { ...scores, asked: trees } }),
    );
  }

  /** How probable each label over each span of a tree is. */
  async #nodesOf(tree, asked, signal) {
    const nodes = readTree(tree);
    const sentence = { tokens: nodes.filter((node) => node.word !== null).map((node) => node.word) };
    const spans = nodes.filter((node) => node.word === null).map(({ start, end }) => ({ start, end }));
    if (spans.length === 0) return [];
    const found = await this.#service.marginals({ sentence, spans, threshold: 0, ...asked }, signal);
    return found.spans;
  }

  // Asking ----------------------------------------------------------------------------------------

  /** Repeat the last request. */
  async again() {
    if (this.#store.now.answer?.whole === false || this.#last === null) await this.parse();
    else await this.#askBeside(...this.#last);
  }

  /** Cancel all requests in progress. */
  cancel() {
    for (const one of this.#asking.values()) one.abort();
    this.#asking.clear();
    this.#store.set({ busy: null });
  }

  /** Ask for the trees themselves: nothing else that was asked for matters any more. */
  async #ask(question, take, kind = "trees") {
    this.cancel();
    await this.#askBeside(kind, question, take);
  }

  /** Ask one question of a kind at a time. */
  async #askBeside(kind, question, take) {
    this.#asking.get(kind)?.abort();
    this.#last = [kind, question, take];
    const asking = new AbortController();
    this.#asking.set(kind, asking);
    const began = performance.now();
    this.#store.set({ busy: { began, waits: null, kind } });
    try {
      const answer = await insist(question, asking.signal, (waits) => {
        this.#store.set({ busy: { ...this.#store.now.busy, waits } });
      });
      await released();
      if (asking.signal.aborted) return;
      this.#store.set({ busy: null, problem: null });
      take(answer, performance.now() - began);
    } catch (error) {
      await released();
      if (asking.signal.aborted) return;
      this.#store.set({ busy: null, problem: problemOf(error, kind) });
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

function impossible({ reason }, wanted) {
  return {
    title: "No tree has all of this",
    detail: `Your last step was not taken: ${reason ?? "it has no analysis"}`,
    asked: listed(wanted).length,
  };
}

function problemOf(error, kind) {
  // a chart or a correction that does not come says nothing of the trees, which stay as they are
  if (error instanceof Problem) {
    return { ...error.body, retryAfter: error.retryAfter, keeps: kind !== "trees" };
  }
  return { title: "This page has a fault", detail: `It says: ${error.message}. Please report it.` };
}
