// Two dialogs: the keys, and who labels.

import { button, element } from "./dom.js";

const KEYS = [
  ["Y", "yes, the label applies"],
  ["N", "no, it does not"],
  ["?", "don’t know"],
  ["Enter", "done with this item"],
  ["S", "skip it: leave it to others"],
  ["U", "undo what you did last, again and again"],
  ["/", "search for any label and add it"],
  ["1 – 9", "the label at this place of the list: yes, and again: no"],
  ["H", "this help"],
];
const OFF = "slatewise-keys-off";

export function keysAreOn() {
  return localStorage.getItem(OFF) === null;
}

export function showHelp() {
  const on = element("input", { type: "checkbox", id: "keys-on", checked: keysAreOn() });
  on.addEventListener("change", () => (on.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  const rows = KEYS.map(([key, what]) => element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)));
  show(
    "Keys",
    element("dl", { class: "keys" }, rows),
    element("label", { class: "switch", htmlFor: "keys-on" }, on, "Single keys are on (a screen reader may want them for itself)"),
    element("p", { class: "muted" }, "Everything that was answered is kept at once. You can stop, reload or close the page at any time."),
  );
}

// Calls back with another name.
export function askName(name, changed) {
  const input = element("input", { id: "who", value: name, required: true, maxLength: 100, autocomplete: "off" });
  const form = element("form", { method: "dialog" }, element("label", { htmlFor: "who" }, "Who is labeling?"), input, element("button", { class: "primary", type: "submit" }, "Go on"));
  form.addEventListener("submit", () => {
    if (input.value.trim() && input.value.trim() !== name) changed(input.value.trim());
  });
  show("Your name", form, element("p", { class: "muted" }, "Answers are kept under this name. Two people never get the same item."));
}

function show(title, ...children) {
  const close = button({ class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  const dialog = element("dialog", { "aria-labeledby": "dialog-title" }, element("div", { class: "dialog-head" }, element("h2", { id: "dialog-title" }, title), close), ...children);
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    before?.focus?.();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
