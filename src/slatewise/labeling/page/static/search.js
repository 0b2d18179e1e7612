// Search for any label: a combobox as in the ARIA practices (list, manual selection of the first).

import { element } from "./dom.js";

const MOST = 8;

function found(labels, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const places = labels
    .map((name, label) => ({ label, name, at: name.toLowerCase().indexOf(wanted) }))
    .filter((one) => one.at >= 0);
  const rank = (one) => (one.at === 0 ? 0 : /[\s\-_/]/.test(one.name[one.at - 1]) ? 1 : 2);
  return places.sort((one, other) => rank(one) - rank(other) || one.name.length - other.name.length || one.label - other.label).slice(0, MOST);
}

export class Search {
  // answerOf(label) returns the person's answer; choose(label, name) is called with the one that is taken.
  constructor(labels, answerOf, choose) {
    this.labels = labels;
    this.answerOf = answerOf;
    this.choose = choose;
    this.options = [];
    this.active = 0;
    this.input = element("input", {
      type: "text",
      id: "search",
      role: "combobox",
      autocomplete: "off",
      spellcheck: false,
      placeholder: "Add any label",
      "aria-expanded": "false",
      "aria-controls": "found",
      "aria-autocomplete": "list",
      oninput: () => this.#look(),
      onkeydown: (event) => this.#key(event),
      onblur: () => setTimeout(() => this.#close(), 150),
    });
    this.list = element("ul", { id: "found", role: "listbox", "aria-label": "Labels found", hidden: true });
    const name = element("label", { htmlFor: "search", class: "only-spoken" }, "Add any label");
    this.root = element("div", { class: "search" }, name, this.input, element("kbd", { "aria-hidden": "true" }, "/"), this.list);
  }

  // What was typed before new names came is looked for again.
  know(labels) {
    this.labels = labels;
    if (this.input.value) this.#look();
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  #look() {
    this.options = found(this.labels, this.input.value);
    this.active = 0;
    const none = this.input.value.trim() ? [element("li", { class: "none" }, "No label is called like this.")] : [];
    this.list.replaceChildren(...(this.options.length ? this.options.map((one, place) => this.#option(one, place)) : none));
    this.list.hidden = !this.list.childElementCount;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#mark();
  }

  #option(one, place) {
    const word = this.answerOf(one.label);
    const state = word ? element("span", { class: "muted" }, `your answer: ${word}`) : null;
    return element(
      "li",
      {
        id: `found-${place}`,
        role: "option",
        onpointerdown: (event) => {
          event.preventDefault();
          this.#take(place);
        },
      },
      element("span", {}, one.name),
      state,
    );
  }

  #mark() {
    [...this.list.children].forEach((child, place) => {
      if (this.options.length) child.setAttribute("aria-selected", String(place === this.active));
    });
    if (this.options.length) this.input.setAttribute("aria-activedescendant", `found-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.options.length) {
      this.active = (this.active + step + this.options.length) % this.options.length;
      this.#mark();
    } else if (event.key === "Enter") {
      if (this.options.length) this.#take(this.active);
    } else if (event.key === "Escape") {
      this.#close();
      this.input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #take(place) {
    const { label, name } = this.options[place];
    this.#close();
    this.input.blur();
    this.choose(label, name);
  }

  #close() {
    this.input.value = "";
    this.options = [];
    this.list.replaceChildren();
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
