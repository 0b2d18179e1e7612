// An item as it is: a picture, a text, a sound, or a link that is never embedded.

import { element } from "./dom.js";

function picture(item) {
  const shown = element("img", { src: item.file, alt: `Picture ${item.id}`, decoding: "async" });
  const frame = element("div", { class: "picture" }, shown);
  shown.addEventListener("error", () => {
    const text = element("p", {}, element("strong", {}, "This picture cannot be shown."));
    const more = element("p", { class: "muted" }, "The file is missing or damaged. Answer if you know it all the same, or skip it.");
    frame.replaceChildren(element("div", { class: "unreadable", role: "img", "aria-label": `${item.id} cannot be shown` }), text, more);
    frame.classList.add("broken");
  });
  return frame;
}

function sound(item) {
  const player = element("audio", { src: item.file, controls: true, preload: "metadata", "aria-label": `Sound ${item.id}` });
  const frame = element("div", { class: "sound" }, player);
  player.addEventListener("error", () => {
    frame.append(element("p", { class: "muted" }, "This sound cannot be played. Answer if you know it all the same, or skip it."));
  });
  return frame;
}

function text(item) {
  return element("div", { class: "text", tabIndex: 0, role: "region", "aria-label": `Text ${item.id}` }, element("p", { dir: "auto" }, item.text));
}

function link(item) {
  const address = element("a", { href: item.link, target: "_blank", rel: "noopener noreferrer" }, item.link);
  return element("div", { class: "link" }, element("p", { class: "muted" }, "Opens in another window:"), element("p", {}, address));
}

const KINDS = { image: picture, audio: sound, text, link };

export function shownItem(item) {
  const caption = element("figcaption", {}, item.id);
  return element("figure", { class: "item", "aria-label": `Item ${item.id}` }, KINDS[item.kind](item), caption);
}
