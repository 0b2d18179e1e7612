// What people disagree about, one after the other; a reviewer's word settles it.

import { button, element, icon } from "./dom.js";
import { shownItem } from "./item.js";
import { Refusal } from "./server.js";
import { counted } from "./words.js";

const ANSWERS = [
  ["yes", "Yes", "Y"],
  ["no", "No", "N"],
  ["don't know", "Don’t know", "?"],
];

export class ReviewView {
  constructor(context) {
    this.context = context;
    this.title = "Review";
    this.place = 0;
    this.root = element("div", { class: "labeling reviewing" });
  }

  async open() {
    const refused = await this.context.server.sendPending();
    if (refused) this.context.toast(refused);
    this.#show(await this.context.server.review());
  }

  close() {}

  key(event) {
    const key = event.key.toLowerCase();
    const word = { y: "yes", n: "no", "?": "don't know" }[key];
    if (word) this.#settle(word);
    else if (key === "s") this.#later();
    else return false;
    return true;
  }

  #show(review, spoken = "") {
    this.review = review;
    if (this.place >= review.disputes.length) this.place = 0;
    this.dispute = review.disputes[this.place];
    if (!this.dispute) {
      const text = "People agree about everything that several of them answered.";
      this.root.replaceChildren(element("section", { class: "empty" }, element("h1", { tabIndex: -1 }, "Nothing to review"), element("p", { class: "muted" }, text)));
      this.context.say(`${spoken} Nothing is left to review.`);
      return;
    }
    const { item, name, yes, no } = this.dispute;
    const stage = element("section", { class: "stage", "aria-label": "Item" }, shownItem(item));
    const answers = ANSWERS.map(([word, text, key]) =>
      button(
        { class: `answer ${word === "don't know" ? "unsure" : word}`, "aria-keyshortcuts": key, onclick: () => this.#settle(word) },
        ...(word === "don't know" ? [] : [icon(word)]),
        element("span", {}, text),
        element("kbd", { "aria-hidden": "true" }, key),
      ),
    );
    const later = button({ class: "action", "aria-keyshortcuts": "S", onclick: () => this.#later() }, element("span", {}, "Later"), element("kbd", { "aria-hidden": "true" }, "S"));
    const ask = element(
      "section",
      { class: "ask", "aria-labeledby": "question" },
      element("h1", { id: "question", tabIndex: -1 }, element("span", { class: "overline" }, "Does this apply?"), " ", element("span", { class: "question-name" }, name)),
      element("ul", { class: "sides" }, this.#side("yes", yes), this.#side("no", no)),
      element("div", { class: "acts" }, element("div", { class: "answers", role: "group", "aria-labeledby": "question" }, answers), element("div", { class: "actions" }, later)),
    );
    const left = element("p", { class: "muted" }, `${counted(review.total, "disagreement")} left. What you say settles it for everybody.`);
    this.root.replaceChildren(stage, element("div", { class: "panel" }, ask, left));
    this.context.say(`${spoken} Item ${item.id}. Does ${name} apply? ${yes.join(", ")} answered yes, ${no.join(", ")} answered no.`);
  }

  #side(word, people) {
    return element("li", { class: word }, icon(word), element("span", {}, element("strong", {}, people.join(", ")), ` answered ${word}`));
  }

  #later() {
    this.place += 1;
    this.#show(this.review);
  }

  async #settle(answer) {
    if (this.busy || !this.dispute) return;
    this.busy = true;
    try {
      const { item, label, name } = this.dispute;
      const spoken = await this.context.server.act("review", { item: item.number, label, answer }).then(
        () => `Settled: ${name} ${answer}.`,
        (error) => {
          if (!(error instanceof Refusal)) throw error;
          return error.message;
        },
      );
      this.context.toast(spoken);
      this.#show(await this.context.server.review(), spoken);
      this.context.progressed();
    } finally {
      this.busy = false;
    }
  }
}
