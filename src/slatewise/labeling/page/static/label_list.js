// The list of the model: what is there, then what is likely; it moves after every answer.

import { button, element, icon } from "./dom.js";
import { percent } from "./words.js";

const MOVING = { duration: 260, easing: "cubic-bezier(.2, .7, .2, 1)" };

class Row {
  constructor(name, answer) {
    this.called = name;
    this.number = element("kbd", { "aria-hidden": "true" });
    this.bar = element("span", { class: "bar", "aria-hidden": "true" });
    this.percent = element("span", { class: "percent" });
    this.yes = button({ class: "tick", onclick: () => answer("yes") }, icon("yes"));
    this.no = button({ class: "cross", onclick: () => answer("no") }, icon("no"));
    this.yes.setAttribute("aria-label", `${name}: yes`);
    this.no.setAttribute("aria-label", `${name}: no`);
    const text = element("span", { class: "name", title: name }, name);
    this.root = element("li", {}, this.number, element("div", { class: "what" }, text, this.bar), this.percent, this.yes, this.no);
  }

  show(one, place, isCurrent) {
    this.word = one.answer;
    this.number.textContent = place < 9 ? String(place + 1) : "";
    this.percent.textContent = one.answer === "yes" ? "" : percent(one.probability);
    this.percent.setAttribute("aria-label", one.probability === null ? "" : `${percent(one.probability)} likely`);
    this.bar.style.setProperty("--share", one.answer === "yes" ? 1 : (one.probability ?? 0));
    this.yes.setAttribute("aria-pressed", String(one.answer === "yes"));
    this.no.setAttribute("aria-pressed", String(one.answer === "no"));
    this.root.className = `${one.answer === "yes" ? "with-yes" : ""} ${isCurrent ? "current" : ""}`;
  }
}

export class LabelList {
  // answer(label, name, word) is called when the person clicks.
  constructor(answer) {
    this.answer = answer;
    this.rows = new Map();
    this.order = [];
    this.root = element("ol", { class: "labels", "aria-label": "Labels, the most likely first" });
  }

  show(listed, current) {
    const before = new Map([...this.rows].map(([label, row]) => [label, row.root.getBoundingClientRect().top]));
    const focused = document.activeElement;
    const rows = new Map();
    listed.forEach((one, place) => {
      const there = this.rows.get(one.label);
      const row = there?.called === one.name ? there : new Row(one.name, (word) => this.answer(one.label, one.name, word));
      row.show(one, place, one.label === current);
      rows.set(one.label, row);
    });
    this.rows = rows;
    this.order = listed;
    this.root.replaceChildren(...[...rows.values()].map((row) => row.root));
    if (this.root.contains(focused)) focused.focus();
    this.#move(before);
  }

  // The keys 1 to 9: yes, or no if there is a yes already.
  toggle(place) {
    const one = this.order[place];
    if (one) this.answer(one.label, one.name, one.answer === "yes" ? "no" : "yes");
  }

  #move(before) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const [label, row] of this.rows) {
      const by = before.has(label) ? before.get(label) - row.root.getBoundingClientRect().top : 0;
      if (by) row.root.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], MOVING);
      else if (!before.has(label) && before.size) row.root.animate([{ opacity: 0 }, { opacity: 1 }], MOVING);
    }
  }
}
