// How far the project is: counts, pace, questions saved, agreement, and everything as a file.

import { button, element, table } from "./dom.js";
import { counted, figure, hours, percent } from "./words.js";

const AGAIN = 10000;
const FORMATS = {
  wide: ["CSV, wide", "a row per item, a column per label"],
  long: ["CSV, long", "a row per answer, with everything that is known of it"],
  jsonl: ["JSON lines", "a line per answer, with everything that is known of it"],
  "label-studio": ["Label Studio", "tasks with annotations"],
  npz: ["npz", "features and labels for slatewise fit; what is not known stays so"],
  svmlight: ["SVMlight", "features and labels; what is not known counts as no"],
};

export class ProgressView {
  constructor(context) {
    this.context = context;
    this.title = "Progress";
    this.root = element("div", { class: "page" });
  }

  async open() {
    await this.#look();
  }

  close() {
    clearTimeout(this.later);
    this.closed = true;
  }

  key() {
    return false;
  }

  async #look() {
    const { server, me } = this.context;
    const sees = me.role !== "annotator";
    const [progress, agreement] = await Promise.all([server.get("/api/progress"), sees ? server.get("/api/agreement") : null]);
    if (this.closed) return;
    const inside = this.root.contains(document.activeElement) && document.activeElement !== this.root.querySelector("h1");
    if (!inside) this.#show(progress, agreement); // not under somebody's fingers
    this.context.far(progress);
    this.later = setTimeout(() => this.#look(), AGAIN);
  }

  #show(progress, agreement) {
    const share = progress.items ? progress.finished / progress.items : 0;
    const bar = element("span", { class: "bar wide", "aria-hidden": "true" });
    bar.style.setProperty("--share", share);
    const tiles = element(
      "dl",
      { class: "tiles" },
      tile("Items finished", `${progress.finished.toLocaleString("en")} of ${progress.items.toLocaleString("en")}`, `${percent(share)}; ${counted(progress.begun, "item")} begun`),
      tile("Questions per item", figure(progress.questions), `instead of ${progress.labels_without_model}, the median`),
      tile("Questions saved", progress.saved.toLocaleString("en"), "that the model made unnecessary"),
      tile("Left", hours(progress.hours_left), "of one person's work, at the pace so far"),
      tile("Without the model", `${progress.calibration_done} of ${progress.calibration_items}`, "items by which the model is measured"),
    );
    this.root.replaceChildren(
      element("h1", { tabIndex: -1 }, "Progress"),
      bar,
      tiles,
      people(progress),
      labels(progress, agreement),
      ...(agreement ? [together(agreement)] : []),
      ...(this.context.me.role === "owner" ? [this.#exports()] : []),
    );
  }

  #exports() {
    const entries = this.context.me.formats.map((format) => {
      const [name, what] = FORMATS[format] ?? [format, ""];
      return element("li", {}, button({ class: "action", onclick: () => this.#export(format) }, `Export ${name}`), element("span", { class: "muted" }, what));
    });
    return element("section", {}, element("h2", {}, "Take it along"), element("ul", { class: "exports" }, entries));
  }

  // A link that the browser saves; it is requested here first, so that an error is shown here.
  async #export(format) {
    const query = new URLSearchParams({ format });
    if (this.context.server.annotator !== null) query.set("annotator", this.context.server.annotator);
    const reply = await fetch(`/api/export?${query}`).catch(() => null);
    if (!reply?.ok) {
      const text = reply ? (await reply.json()).detail : "The server does not answer.";
      this.context.toast(text);
      this.context.say(text);
      return;
    }
    const name = /filename="([^"]*)"/.exec(reply.headers.get("content-disposition"))?.[1] ?? `answers.${format}`;
    const address = URL.createObjectURL(await reply.blob());
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    const lost = reply.headers.get("x-lost");
    const text = `Exported ${name}.${lost ? ` ${lost}.` : ""}`;
    this.context.toast(text);
    this.context.say(text);
  }
}

function tile(name, value, more) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, element("strong", {}, value), element("span", { class: "muted" }, more)));
}

function people(progress) {
  const rows = progress.people
    .filter((one) => one.answers || one.done || one.skipped)
    .map((one) => [one.name, String(one.answers), String(one.done), String(one.skipped), figure(one.seconds_per_answer), figure(one.items_per_hour, 0)]);
  if (!rows.length) return element("p", { class: "muted" }, "There are no answers yet.");
  return element("section", {}, table("People", ["Person", "Answers", "Done", "Skipped", "Seconds per answer", "Items per hour"], rows));
}

function labels(progress, agreement) {
  const alphas = new Map((agreement?.labels ?? []).map((one) => [one.name, one.alpha]));
  const sorted = [...progress.labels].sort((one, other) => other.yes - one.yes || other.no - one.no);
  const most = Math.max(1, ...sorted.map((one) => one.yes + one.no + one.not_known));
  const rows = sorted.map((one) => {
    const bars = element("span", { class: "stack", "aria-hidden": "true" });
    for (const [kind, n] of [["yes", one.yes], ["no", one.no], ["unsure", one.not_known]]) {
      const part = element("span", { class: kind });
      part.style.width = `${(100 * n) / most}%`;
      bars.append(part);
    }
    const cells = [one.name, bars, String(one.yes), String(one.no), String(one.not_known)];
    return agreement ? [...cells, figure(alphas.get(one.name) ?? null, 2)] : cells;
  });
  const columns = ["Label", "", "Yes", "No", "Not known", ...(agreement ? ["Agreement"] : [])];
  return element("section", { class: "label-counts" }, table("Labels", columns, rows));
}

function together(agreement) {
  const alpha = element("p", {}, "Krippendorff’s alpha ", element("strong", {}, figure(agreement.alpha, 2)), element("span", { class: "muted" }, ` over ${counted(agreement.n_units, "label")} that several people answered; 1 is full agreement, 0 what chance gives.`));
  const rows = agreement.pairs.map((pair) => [pair.people.join(" and "), String(pair.n_common), percent(pair.same), figure(pair.kappa, 2)]);
  const pairs = rows.length ? table("Pairs of people", ["Pair", "In common", "Same", "Cohen’s kappa"], rows) : element("p", { class: "muted" }, "No two people have answered the same yet.");
  return element("section", {}, element("h2", {}, "Agreement"), alpha, pairs);
}
