// The view in which a person labels: the item, one question and its reason, the list, and when it is enough.

import { button, element, icon } from "./dom.js";
import { shownItem } from "./item.js";
import { LabelList } from "./label_list.js";
import { Search } from "./search.js";
import { Refusal } from "./server.js";
import { percent, saved } from "./words.js";

const LOOK_AGAIN = 15000;
const LONGEST = 86_400_000;
const ANSWERS = [
  ["yes", "Yes", "Y"],
  ["no", "No", "N"],
  ["don't know", "Don’t know", "?"],
];

export class LabelView {
  constructor(context) {
    this.context = context;
    this.title = "Label";
    this.turn = null;
    this.busy = false;
    this.root = element("div", { class: "labeling" });
    this.#build();
  }

  async open() {
    const refused = await this.context.server.sendPending();
    if (refused) this.context.toast(refused);
    this.show(await this.context.server.next());
  }

  close() {
    clearTimeout(this.later);
  }

  key(event) {
    const key = event.key.toLowerCase();
    const word = { y: "yes", n: "no", "?": "don't know" }[key];
    if (word) this.#answerQuestion(word);
    else if (key === "enter") this.#done();
    else if (key === "s") this.#skip();
    else if (key === "u") this.#undo();
    else if (key === "/") this.search.focus();
    else if (/^[1-9]$/.test(key)) this.list.toggle(Number(key) - 1);
    else return false;
    return true;
  }

  show(turn, spoken = "") {
    const before = this.turn;
    this.turn = turn;
    clearTimeout(this.later);
    const { item, view } = turn;
    if (item === null) {
      this.#showEmpty(turn.message);
      return;
    }
    if (this.root.firstChild !== this.stage) this.root.replaceChildren(this.stage, this.panel);
    const isNew = before?.item?.number !== item.number;
    if (isNew) {
      this.stage.replaceChildren(shownItem(item));
      scrollTo({ top: 0 });
    }
    this.since = performance.now();
    this.#showQuestion(view);
    this.#showSoFar(view);
    this.#showAnswered(view);
    this.list.show(view.listed, view.question?.label);
    this.listNote.hidden = view.listed.length > 0;
    this.#knowNames(turn);
    if (before?.view && view.version !== null && before.view.version !== null && before.view.version !== view.version) {
      this.context.toast(`Version ${view.version} of the model is in use now.`);
    }
    this.context.say([spoken, isNew ? `Item ${item.id}.` : "", this.#spokenQuestion(view)].filter(Boolean).join(" "));
  }

  // --- what is there -------------------------------------------------------------------------------------------------

  #build() {
    const { me } = this.context;
    this.stage = element("section", { class: "stage", "aria-label": "Item" });
    this.overline = element("span", { class: "overline" });
    this.name = element("span", { class: "question-name" });
    this.question = element("h1", { id: "question", tabIndex: -1 }, this.overline, " ", this.name);
    this.reason = element("p", { class: "reason", id: "reason" });
    this.notes = element("div", { class: "notes" });
    this.answers = new Map(
      ANSWERS.map(([word, text, key]) => [
        word,
        button(
          { class: `answer ${word === "don't know" ? "unsure" : word}`, "aria-keyshortcuts": key, onclick: () => this.#answerQuestion(word) },
          ...(word === "don't know" ? [] : [icon(word)]),
          element("span", {}, text),
          element("kbd", { "aria-hidden": "true" }, key),
        ),
      ]),
    );
    this.group = element("div", { class: "answers", role: "group", "aria-labeledby": "question" }, ...this.answers.values());
    this.doneButton = this.#action("Done", "Enter", "↵", () => this.#done());
    const skip = this.#action("Skip", "S", "S", () => this.#skip());
    const undo = this.#action("Undo", "U", "U", () => this.#undo());
    const actions = element("div", { class: "actions" }, this.doneButton, skip, undo);
    this.bar = element("div", { class: "acts" }, this.group, actions);
    this.count = element("p", { class: "count" });
    this.sure = element("p", { class: "muted" });
    this.sureBar = element("span", { class: "bar", "aria-hidden": "true" });
    this.soFar = element("section", { class: "so-far", "aria-label": "So far" }, this.count, this.sureBar, this.sure, this.notes);
    this.list = new LabelList((label, name, word) => this.#answer(label, name, word));
    this.listNote = element("p", { class: "muted" }, "What you say yes to is listed here.");
    this.search = new Search(me.labels, (label) => this.#answerOf(label), (label, name) => this.#answer(label, name, "yes"));
    this.answered = element("ul", { class: "chips", "aria-label": "Labels that are not there, or that you did not know" });
    const list = element(
      "section",
      { class: "listing", "aria-labeledby": "listing" },
      element("h2", { id: "listing" }, "Labels"),
      this.search.root,
      this.list.root,
      this.listNote,
      this.answered,
    );
    const ask = element("section", { class: "ask", "aria-labeledby": "question" }, this.question, this.reason, this.bar);
    this.panel = element("div", { class: "panel" }, ask, this.soFar, list);
  }

  #action(text, key, shown, onclick) {
    return button({ class: "action", "aria-keyshortcuts": key, onclick }, element("span", {}, text), element("kbd", { "aria-hidden": "true" }, shown));
  }

  #showQuestion(view) {
    const question = view.question;
    this.overline.textContent = question ? "Does this apply?" : "Nothing is left to ask.";
    this.name.textContent = question ? question.name : "All is done";
    this.reason.replaceChildren(...(question ? this.#reason(question) : []));
    this.group.hidden = !question;
    this.notes.replaceChildren(...view.notes.map((note) => element("p", { class: "note" }, note)));
    if (question && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.name.animate([{ opacity: 0.2, transform: "translateY(4px)" }, { opacity: 1, transform: "none" }], { duration: 160 });
    }
  }

  #reason(question) {
    if (question.reason.before === null) return [question.reason.text];
    const moved = percent(question.reason.before) !== percent(question.probability);
    const pushes = question.reason.pushes.map((push) =>
      element("span", { class: `push ${push.by > 0 ? "more" : "less"}` }, `${push.by > 0 ? "↑" : "↓"} ${push.name} (${push.because})`),
    );
    const text = `${percent(question.probability)} likely${moved ? `, ${percent(question.reason.before)} before your answers` : ""}`;
    return [
      element("span", { "aria-hidden": "true" }, text),
      ...(pushes.length ? [element("span", { class: "pushes", "aria-hidden": "true" }, ...pushes)] : []),
      element("span", { class: "only-spoken" }, question.reason.text),
    ];
  }

  #showSoFar(view) {
    const words = view.for_calibration ? `${view.n_questions} of ${view.labels_without_model} labels` : saved(view.n_questions, view.labels_without_model);
    const [number, ...rest] = words.split(" ");
    this.count.replaceChildren(element("strong", {}, number), ` ${rest.join(" ")}`);
    const known = view.chance !== null;
    this.sureBar.hidden = !known;
    if (known) this.sureBar.style.setProperty("--share", view.chance);
    this.sure.textContent = view.for_calibration
      ? "Labeled without the model. It counts once every label is answered."
      : known
        ? `${view.calibrated ? "" : "The model is "}${percent(view.chance)} sure that nothing is missed`
        : "";
    this.soFar.classList.toggle("enough", view.enough);
    this.doneButton.classList.toggle("primary", view.enough || !view.question);
    this.doneButton.firstChild.textContent = view.enough && view.question ? "Done, it is enough" : "Done";
  }

  #showAnswered(view) {
    const others = view.answered.filter((one) => one.answer !== "yes");
    this.answered.replaceChildren(
      ...others.map((one) => {
        const chip = button({ class: "chip", onclick: () => this.#answer(one.label, one.name, "yes") }, icon(one.answer), one.name);
        chip.setAttribute("aria-label", `${one.name}: your answer is ${one.answer}. Change it to yes`);
        chip.title = "Change it to yes";
        return element("li", {}, chip);
      }),
    );
  }

  #showEmpty(message) {
    const text = element("h1", { tabIndex: -1 }, message.startsWith("Nothing is left") ? "Nothing is left for you" : "No item");
    const again = button({ class: "primary", onclick: () => this.#lookAgain() }, "Look again");
    const undo = this.#action("Undo", "U", "U", () => this.#undo());
    this.root.replaceChildren(element("section", { class: "empty" }, text, element("p", { class: "muted" }, message), element("div", { class: "actions" }, again, undo)));
    this.context.say(message);
    this.later = setTimeout(() => this.#lookAgain(), LOOK_AGAIN);
  }

  // A label that has another name now is found by it.
  async #knowNames(turn) {
    const { me, server } = this.context;
    if (turn.names === me.names) return;
    Object.assign(me, await server.get("/api/me"));
    this.search.know(me.labels);
  }

  #spokenQuestion(view) {
    const question = view.question;
    if (!question) return "Nothing is left to ask.";
    const enough = view.enough ? " Enough is known: Enter is done." : "";
    return `Does ${question.name} apply? ${question.reason.text}.${enough}`;
  }

  #answerOf(label) {
    return this.turn?.view?.answered.find((one) => one.label === label)?.answer ?? null;
  }

  // --- what the person does ------------------------------------------------------------------------------------------

  #answerQuestion(word) {
    const question = this.turn?.view?.question;
    if (!question || this.busy) return;
    const pressed = this.answers.get(word);
    pressed.classList.add("pressed");
    setTimeout(() => pressed.classList.remove("pressed"), 180);
    this.#answer(question.label, question.name, word);
  }

  #answer(label, name, word) {
    if (this.turn?.item) this.#act("answer", { item: this.turn.item.number, label, answer: word, ...this.#took() }, `${name}: ${word}.`);
  }

  #done() {
    if (this.turn?.item) this.#act("done", { item: this.turn.item.number, ...this.#took() }, "Done.");
  }

  #skip() {
    if (this.turn?.item) this.#act("skip", { item: this.turn.item.number, ...this.#took() }, "Skipped.");
  }

  #undo() {
    this.#act("undo", {}, "");
  }

  async #lookAgain() {
    if (!this.busy) this.show(await this.context.server.next());
  }

  #took() {
    return { milliseconds: Math.min(Math.round(performance.now() - this.since), LONGEST) };
  }

  async #act(name, body, spoken) {
    if (this.busy) return; // an answer belongs to the question that was seen
    this.busy = true;
    this.root.setAttribute("aria-busy", "true");
    try {
      const turn = await this.context.server.act(name, body);
      this.context.toast(turn.item && turn.message ? turn.message : spoken);
      this.show(turn, turn.item && turn.message ? turn.message : spoken);
      if (name === "done" || name === "skip" || name === "undo") this.context.progressed();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.context.toast(error.message);
      this.show(await this.context.server.next(), error.message);
    } finally {
      this.busy = false;
      this.root.removeAttribute("aria-busy");
    }
  }
}
