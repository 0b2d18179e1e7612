// The page: who labels, which view is open, keys, and the message when the server is gone.

import { askName, keysAreOn, showHelp } from "./dialogs.js";
import { element } from "./dom.js";
import { LabelView } from "./label_view.js";
import { ModelsView } from "./models_view.js";
import { ProgressView } from "./progress_view.js";
import { ReviewView } from "./review_view.js";
import { Refusal, Server } from "./server.js";

const NAME = "slatewise-annotator";
const TOAST = 2600;
const COUNT_AGAIN = 1500;
const VIEWS = { label: ["Label", LabelView], progress: ["Progress", ProgressView], review: ["Review", ReviewView], model: ["Model", ModelsView] };

const part = (id) => document.getElementById(id);
const server = new Server(trouble);
const context = { server, say, toast, far, progressed, me: null };
let view = null;
let toastEnds;
let countsAgain;

function say(text) {
  part("spoken").textContent = text;
}

function toast(text) {
  clearTimeout(toastEnds);
  part("toast").textContent = text;
  part("toast").classList.toggle("shown", text !== "");
  toastEnds = setTimeout(() => part("toast").classList.remove("shown"), TOAST);
}

function trouble(text) {
  const box = part("trouble");
  if (!text && !box.hidden) say("The server is back. Nothing was lost.");
  box.hidden = text === "";
  if (box.textContent !== text) box.textContent = text;
}

function far(progress) {
  const place = part("far");
  place.replaceChildren(element("strong", {}, progress.finished.toLocaleString("en")), ` of ${progress.items.toLocaleString("en")} items`);
  place.style.setProperty("--share", progress.items ? progress.finished / progress.items : 0);
  const review = document.querySelector("#views a[href='#review'] .badge");
  if (review) review.textContent = progress.disputes ? String(progress.disputes) : "";
}

async function progressed() {
  clearTimeout(countsAgain);
  const progress = await server.get("/api/progress");
  far(progress);
  if (progress.last_act < server.turn) countsAgain = setTimeout(progressed, COUNT_AGAIN); // it was counted before
}

function viewNames() {
  return Object.keys(VIEWS).filter((name) => name !== "review" || context.me.role !== "annotator");
}

async function openView(isFirst = false) {
  const wanted = location.hash.slice(1);
  const name = viewNames().includes(wanted) ? wanted : "label";
  view?.close();
  const [title, View] = VIEWS[name];
  const opened = new View(context);
  view = opened;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} · ${context.me.project}`;
  await opened.open();
  if (view !== opened) return; // somebody went on meanwhile
  part("main").replaceChildren(opened.root);
  if (!isFirst) part("main").querySelector("h1")?.focus({ preventScroll: true });
}

function showHeader() {
  const { me } = context;
  part("project").textContent = me.project;
  part("person").textContent = me.annotator;
  part("person").setAttribute("aria-label", me.local ? `You are ${me.annotator}. Change it` : `You are ${me.annotator}. Leave`);
  const links = viewNames().map((name) => element("li", {}, element("a", { href: `#${name}` }, VIEWS[name][0], element("span", { class: "badge" }))));
  part("views").replaceChildren(...links);
}

async function leave() {
  await fetch("/leave", { method: "POST", headers: { "x-form-token": server.formToken }, redirect: "manual" });
  location.assign("/enter");
}

function become(name) {
  sessionStorage.setItem(NAME, name);
  localStorage.setItem(NAME, name);
  history.replaceState(null, "", location.pathname + location.hash); // without ?annotator=
  location.reload();
}

function isTyping(target) {
  return target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog") !== null;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (!keysAreOn() || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest("button, a, audio, summary")) return; // that is its own key
  if (event.key === " " || event.key === "Tab") return;
  if (event.key.toLowerCase() === "h") showHelp();
  else if (!view?.key(event)) return;
  event.preventDefault();
}

async function start() {
  const given = new URLSearchParams(location.search).get("annotator");
  if (given) sessionStorage.setItem(NAME, given);
  try {
    context.me = await server.enter(given ?? sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error; // a name that cannot be, or somebody else's
    sessionStorage.removeItem(NAME);
    localStorage.removeItem(NAME);
    context.me = await server.enter(null);
  }
  showHeader();
  part("person").addEventListener("click", () => (context.me.local ? askName(context.me.annotator, become) : leave()));
  document.querySelector(".jump").addEventListener("click", (event) => {
    event.preventDefault(); // its address is no view
    part("main").focus();
  });
  part("help-button").addEventListener("click", showHelp);
  addEventListener("hashchange", () => openView());
  addEventListener("keydown", onKey);
  await openView(true);
  await progressed();
}

start();
