/**
 * The models that are served, to choose from.
 */

import { byId, html } from "./dom.js";

export class Models {
  #store;
  all = [];

  constructor(store) {
    this.#store = store;
    store.on(["answer"], ({ answer }) => this.#tell(answer?.model));
  }

  /** The model that answers now; null while that is not known. */
  get current() {
    const { model } = this.#store.now;
    return this.all.find((one) => (model ? one.name === model.split("@")[0] : one.default)) ?? null;
  }

  /** Ask which models there are, and let the reader choose if there are several. */
  async load(service) {
    const served = await service.models().catch(() => []); // it is only a choice of more
    this.all = served.filter(({ kind }) => kind === "constituency");
    byId("model").replaceChildren(...this.all.map(({ name, version, default: isDefault }) =>
      html("option", { value: isDefault ? "" : name }, `${name}@${version}`)));
    byId("model").value = this.#store.now.model;
    byId("model-choice").hidden = this.all.length < 2;
    byId("model-name").hidden = this.all.length >= 2;
    byId("rescore-choice").hidden = !this.all.some((one) => one.rescoring);
    this.#store.set({ models: this.all });
  }

  #tell(model) {
    byId("model-name").textContent = model ? `${model.name}@${model.version}` : "";
    byId("model-name").title = model ? `sha256 ${model.hash}` : "";
  }
}
