// Versions of the model: what they are worth, train another, go back to an earlier one.

import { button, element, table } from "./dom.js";
import { curve } from "./curve.js";
import { Refusal } from "./server.js";
import { counted, figure, percent } from "./words.js";

const AGAIN = 2000;
const SAID = {
  model: "A model says how likely labels are.",
  scores: "Scores that were made elsewhere say how likely labels are; there is no model of this project yet.",
  frequency: "There is no model yet: questions about the labels that were found most often come first.",
};

function when(milliseconds) {
  return new Date(milliseconds).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

export class ModelsView {
  constructor(context) {
    this.context = context;
    this.title = "Model";
    this.root = element("div", { class: "page" });
  }

  async open() {
    this.#show(await this.context.server.get("/api/models"));
    this.later = setTimeout(() => this.#look(), AGAIN);
  }

  close() {
    clearTimeout(this.later);
    this.closed = true;
  }

  key() {
    return false;
  }

  async #look() {
    const models = await this.context.server.get("/api/models");
    if (this.closed) return;
    if (JSON.stringify(models) !== JSON.stringify(this.models)) this.#show(models);
    this.later = setTimeout(() => this.#look(), AGAIN);
  }

  #show(models) {
    if (this.models && this.models.message !== models.message) this.context.say(models.message);
    this.models = models;
    const focused = this.root.contains(document.activeElement) ? document.activeElement.textContent : null;
    const owner = this.context.me.role === "owner";
    const busy = models.trainer === "training";
    const state = element("p", { class: `state ${models.trainer}` }, models.message || SAID[models.basis]);
    const train = button({ class: "primary", disabled: busy, onclick: () => this.#post("/api/models/train", {}) }, busy ? "Training …" : "Train a new version");
    const blind = "Without features of the items it learns which labels come together, and sees no item as another.";
    const why = models.sees === "nothing" ? element("p", { class: "muted" }, blind) : null;
    const notes = models.notes.filter((note) => note !== models.message && note !== state.textContent).map((note) => element("p", { class: "note" }, note));
    this.root.replaceChildren(
      element("h1", { tabIndex: -1 }, "Model"),
      state,
      ...notes,
      ...(owner ? [element("div", { class: "actions" }, train), ...(why ? [why] : [])] : []),
      this.#worth(models),
      ...this.#versions(models, owner),
    );
    if (focused) [...this.root.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
  }

  #worth(models) {
    const measured = models.versions.filter((one) => one.quality?.break_even !== null && one.quality?.break_even !== undefined);
    const title = element("h2", {}, "What the model is worth");
    if (!measured.length) {
      const text = "Not measured yet: some items are labeled without the model, every label in turn, and a version is measured on those it has not seen.";
      return element("section", {}, title, element("p", { class: "muted" }, text));
    }
    const points = measured.map((one) => ({ at: one.version, value: one.quality.break_even, isNow: one.in_use }));
    const questions = measured.filter((one) => one.quality.questions !== null).map((one) => ({ at: one.version, value: one.quality.questions, isNow: one.in_use }));
    const drawing = (name, ...given) => element("div", {}, element("h3", {}, name), curve(name, ...given));
    const parts = [drawing("Precision of the list before any question", points, (value) => percent(value))];
    if (questions.length) parts.push(drawing("Questions per item until it is enough", questions, (value) => figure(value)));
    const n = measured[measured.length - 1].quality.n_items;
    return element("section", { class: "worth" }, title, element("p", { class: "muted" }, `Measured on ${counted(n, "item")} labeled without the model; no version has learnt from them.`), element("div", { class: "curves" }, parts));
  }

  #versions(models, owner) {
    if (!models.versions.length) return [];
    const rows = [...models.versions].reverse().map((one) => {
      const use = one.in_use ? element("strong", {}, "in use") : owner && one.can_be_used ? this.#use(one) : "";
      const { break_even: precision = null, missed = null, questions = null } = one.quality ?? {};
      return [String(one.version), when(one.created), one.note, percent(precision), percent(missed), figure(questions), use];
    });
    const columns = ["Version", "Made", "From", "Precision", "Missed where stopped", "Questions", ""];
    return [element("section", {}, table("Versions", columns, rows))];
  }

  #use(one) {
    return button({ class: "action", "aria-label": `Use version ${one.version}`, onclick: () => this.#post("/api/models/use", { version: one.version }) }, "Use this");
  }

  async #post(path, body) {
    try {
      this.#show(await this.context.server.post(path, body));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.context.toast(error.message);
      this.context.say(error.message);
    }
  }
}
