/**
 * The elements of a tree's nodes: those near the view are made at once, the others piece by piece,
 * so that a long sentence is on the screen as soon as a short one.
 */

/** How many nodes are made at a time: a few milliseconds of work. */
const PIECE = 40;

export class TreeGroups {
  #picture;
  #make;
  #places = [];
  #groups = new Map();
  #next = 0;
  #last = null;
  #timer = null;

  /**
   * @param picture  the element that they stand in
   * @param make     makes the element of a place: a block, and one of its nodes with its box
   */
  constructor(picture, make) {
    this.#picture = picture;
    this.#make = make;
  }

  /** Replace what is drawn: first comes `ground`, then the places, in their order. */
  show(ground, places, isNear) {
    clearTimeout(this.#timer);
    this.#places = places;
    this.#groups = new Map(places.map((place) => [
      place.one.node.id, isNear(place) ? this.#make(place) : null,
    ]));
    const near = [...this.#groups.values()].filter((group) => group !== null);
    this.#picture.replaceChildren(ground, ...near);
    this.#next = 0;
    this.#last = ground;
    const isWhole = near.length === places.length;
    this.#picture.setAttribute("aria-busy", String(!isWhole));
    if (!isWhole) this.#later();
  }

  /** Return true if a node is drawn now, or will be soon. */
  has(id) {
    return this.#groups.has(id);
  }

  /** The element of a node that is drawn; where it is not there yet, all are made. */
  get(id) {
    if (this.#groups.get(id) === null) this.#add(Infinity);
    return this.#groups.get(id);
  }

  /** The ids and elements of all that are there. */
  * [Symbol.iterator]() {
    for (const [id, group] of this.#groups) if (group !== null) yield [id, group];
  }

  #later() {
    this.#timer = setTimeout(() => {
      if (!this.#picture.isConnected) return; // another tree has taken its place
      this.#add(PIECE);
      if (this.#next < this.#places.length) this.#later();
    });
  }

  /** Make the next elements, at most so many, each behind the one before it. */
  #add(most) {
    let run = [];
    let made = 0;
    const insert = () => {
      if (run.length > 0) this.#last.after(...run);
      this.#last = run.at(-1) ?? this.#last;
      run = [];
    };
    for (; this.#next < this.#places.length && made < most; this.#next += 1) {
      const place = this.#places[this.#next];
      const { id } = place.one.node;
      const group = this.#groups.get(id);
      if (group === null) {
        run.push(this.#make(place));
        this.#groups.set(id, run.at(-1));
        made += 1;
      } else {
        insert();
        this.#last = group;
      }
    }
    insert();
    if (this.#next === this.#places.length) this.#picture.setAttribute("aria-busy", "false");
  }
}
