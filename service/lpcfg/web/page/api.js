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

/** Marginals below this are not requested. */
export const LEAST_MARGINAL = 0.01;

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

  /** Trees of all sentences of a text. */
  parse({ text, k, objective, model }, signal) {
    return this.#call(PARSE, { text, k, objective, ...(model && { model }) }, signal);
  }

  /** Posteriors of one sentence, given as its own text. */
  marginals({ text, model }, signal) {
    const body = { text, threshold: LEAST_MARGINAL, ...(model && { model }) };
    return this.#call(MARGINALS, body, signal);
  }

  /** Probabilities of bracketed trees. */
  score({ trees, model }, signal) {
    return this.#call(TREES, { trees, ...(model && { model }) }, signal);
  }

  async #call(path, body, signal) {
    const headers = { Accept: "application/json, application/problem+json" };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    const request = { headers, signal, method: "GET" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      Object.assign(request, { method: "POST", body: JSON.stringify(body) });
    }
    const response = await reach(path, request);
    if (response.ok) return response.json();
    const retry = Number(response.headers.get("Retry-After"));
    throw new Problem(await problemIn(response), retry > 0 ? retry : null);
  }
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
