/**
 * The service as this page uses it: its public HTTP API and nothing else.
 *
 * Addresses are relative, so that the page works under any prefix. A failed request throws a
 * Problem, with the service's own words if it answered.
 */

const MODELS = "v1/models";
const PARSE = "v1/parse";
const MARGINALS = "v1/marginals";
const TREES = "v1/tree-probability";
const DEPENDENCIES = "v1/dependencies";
const CONLLU = "text/x-conllu";

/** So many seconds the page waits for a service that is busy or starts, before it says so. */
const PATIENCE = 60;

/** Marginals below this are not requested. */
const LEAST_MARGINAL = 0.01;

/** The reason why a request has no answer: a problem (RFC 9457), and when to try again. */
export class Problem extends Error {
  constructor(body, retryAfter = null) {
    super(body.detail ?? body.title);
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

export class Service {
  /** The key sent with every request, if the service asks for one. */
  key = null;

  /** The models that are served. */
  async models() {
    return (await this.#call(MODELS)).models;
  }

  /** Trees of `text`, or of `sentences` given as tokens with what is known of them. */
  parse({ text, sentences, k, objective, ...asked }, signal) {
    return this.#call(PARSE, { text, sentences, k, objective, ...common(asked) }, signal);
  }

  /** Posteriors of one sentence, given with its tokens; of some spans only, if they are given. */
  marginals({ sentence, spans, threshold = LEAST_MARGINAL, ...asked }, signal) {
    const body = { sentences: [sentence], spans, threshold, ...common(asked) };
    return this.#call(MARGINALS, body, signal);
  }

  /** Probabilities of bracketed trees. */
  score({ trees, ...asked }, signal) {
    return this.#call(TREES, { trees, ...common(asked) }, signal);
  }

  /** Dependency trees of sentences, given as their tokens. */
  dependencies(sentences, signal) {
    return this.#call(DEPENDENCIES, { sentences }, signal);
  }

  /** The same as CoNLL-U. */
  conllu(sentences, signal) {
    return this.#call(DEPENDENCIES, { sentences }, signal, CONLLU);
  }

  async #call(path, body, signal, accept = "application/json") {
    const headers = { Accept: `${accept}, application/problem+json` };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    const request = { headers, signal, method: "GET" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      Object.assign(request, { method: "POST", body: JSON.stringify(body) });
    }
    const response = await reach(path, request);
    if (response.ok) return accept === CONLLU ? response.text() : response.json();
    const retry = Number(response.headers.get("Retry-After"));
    throw new Problem(await problemIn(response), retry > 0 ? retry : null);
  }
}

/**
 * Ask, and ask again after the time that a busy or starting service names.
 *
 * @param onWait  called with the seconds until the next attempt, and with null when it begins
 */
export async function insist(question, signal, onWait = () => {}) {
  for (let waited = 0; ;) {
    try {
      return await question(signal);
    } catch (error) {
      waited += error.retryAfter ?? Infinity;
      if (waited > PATIENCE) throw error;
      onWait(error.retryAfter);
      await pause(error.retryAfter * 1000, signal);
      onWait(null);
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The members that most requests share; what is as by default is left out. */
function common({ model, rescore }) {
  return { ...(model && { model }), ...(rescore === false && { rescore }) };
}

async function reach(path, request) {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The service does not answer",
      detail: "No connection could be made. See that the service runs, then try again.",
    });
  }
}

async function problemIn(response) {
  const kind = response.headers.get("Content-Type") ?? "";
  if (kind.includes("json")) return response.json();
  return {
    title: "The service has a fault",
    status: response.status,
    detail: `It answered ${response.status} without saying why. Try again in a moment.`,
  };
}
