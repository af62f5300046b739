/**
 * The state of the page, in one place: views subscribe to the parts they show.
 */

export class Store {
  #state;
  #derived;
  #listeners = [];

  /** @param derived  members computed from others: name → function of the state */
  constructor(initial, derived = {}) {
    this.#state = { ...initial };
    this.#derived = derived;
  }

  /** The present state; not to be changed by its readers. */
  get now() {
    return this.#state;
  }

  /** Change some members and tell those who listen to one of them, in order of subscription. */
  set(changes) {
    const before = this.#state;
    this.#state = { ...before, ...changes };
    for (const [name, compute] of Object.entries(this.#derived)) {
      this.#state[name] = compute(this.#state);
    }
    const changed = new Set(
      Object.keys(this.#state).filter((key) => !Object.is(before[key], this.#state[key])),
    );
    for (const { keys, listener } of this.#listeners) {
      if (keys.some((key) => changed.has(key))) listener(this.#state);
    }
  }

  /** Call the listener whenever one of the members named changes. */
  on(keys, listener) {
    this.#listeners.push({ keys, listener });
  }
}
