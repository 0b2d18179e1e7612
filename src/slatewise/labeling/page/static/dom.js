// Elements from words: text is always text, never markup.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.flat());
  return made;
}

const PATHS = {
  yes: "M5 12.5l4.5 4.5L19 7.5",
  no: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  "don't know": "M9 9.2a3 3 0 1 1 4.4 2.7c-.9.5-1.4 1-1.4 2.1M12 17.6v.1",
};

export function icon(name) {
  const path = drawn("path", { d: PATHS[name] });
  return drawn("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}

// A button that gives the focus back after a click by pointer: the key Enter then means "done", not "the same again".
export function button(properties, ...children) {
  const { onclick, ...others } = properties;
  const made = element("button", { type: "button", ...others }, ...children);
  made.addEventListener("click", (event) => {
    if (event.detail > 0) made.blur();
    onclick(event);
  });
  return made;
}

export function table(caption, columns, rows) {
  const head = columns.map((name, place) => element("th", { scope: "col", class: place ? "figure" : "" }, name));
  const body = rows.map((cells) =>
    element(
      "tr",
      {},
      cells.map((cell, place) => (place ? element("td", { class: "figure" }, cell) : element("th", { scope: "row" }, cell))),
    ),
  );
  return element(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)),
  );
}
