/**
 * The page's state as an address: text, options, the model's hash and the chosen view.
 *
 * It stands after `#`, which browsers do not send to the service.
 */

const OBJECTIVES = ["max-rule", "max-marginal", "max-product", "max-spans"];
const VIEWS = ["tree", "chart", "score"];
export const MOST_TREES = 10;

/** The members of the state that this address gives, checked; what it does not give is left out. */
export function stateOf(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const wanted = {
    text: given.get("text"),
    k: whole(given.get("k"), 1, MOST_TREES),
    objective: oneOf(OBJECTIVES, given.get("objective")),
    rescore: given.get("rescore") === "no" ? false : null,
    model: given.get("model"),
    linkedHash: given.get("hash"),
    view: oneOf(VIEWS, given.get("view")),
    sentence: whole(given.get("sentence"), 1, Infinity, 1),
    tree: whole(given.get("tree"), 1, MOST_TREES, 1),
    threshold: share(given.get("threshold")),
  };
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null));
}

/** Return the fragment of the address that restores this state. */
export function fragmentOf(state) {
  const { text, k, objective, rescore, model, answer, view, sentence, tree, threshold } = state;
  const told = new URLSearchParams({ text, k });
  if (objective) told.set("objective", objective);
  if (!rescore) told.set("rescore", "no");
  if (model) told.set("model", model);
  if (answer) told.set("hash", answer.model.hash);
  told.set("view", view);
  if (sentence > 0) told.set("sentence", sentence + 1);
  if (tree > 0) told.set("tree", tree + 1);
  if (view === "chart") told.set("threshold", threshold);
  return `#${told}`;
}

/** A number as people count, made to count from 0 by taking off `shift`. */
function whole(value, least, most, shift = 0) {
  const number = Number(value);
  if (value === null || !Number.isInteger(number) || number < least || number > most) return null;
  return number - shift;
}

function share(value) {
  const number = Number(value);
  return value !== null && number >= 0 && number <= 1 ? number : null;
}

function oneOf(values, value) {
  return values.includes(value) ? value : null;
}
