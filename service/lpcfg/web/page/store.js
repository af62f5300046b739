/**
 * The state of the page, in one place: views subscribe to the parts they show.
 */

export class Store {
  #state;
  #listeners = [];

  constructor(initial) {
    this.#state = { ...initial };
  }

  /** The present state; not to be changed by its readers. */
  get now() {
    return this.#state;
  }

  /** Change some members and tell those who listen to one of them, in order of subscription. */
  set(changes) {
    const changed = new Set(
      Object.keys(changes).filter((key) => !Object.is(this.#state[key], changes[key])),
    );
    this.#state = { ...this.#state, ...changes };
    for (const { keys, listener } of this.#listeners) {
      if (keys.some((key) => changed.has(key))) listener(this.#state);
    }
  }

  /** Call the listener whenever one of the members named changes. */
  on(keys, listener) {
    this.#listeners.push({ keys, listener });
  }
}
