"""A real browser before a real server, and what a person with other senses or fingers needs of the page."""

import os
import shutil
import socket
import threading
import time
from pathlib import Path

import uvicorn

from slatewise.labeling.page import make_app
from slatewise.web.server import server_config
from slatewise.web.site import Site

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"page_state": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
KEPT = os.environ.get("SLATEWISE_SCREENSHOTS")
"""A folder for the pictures of the guide; without it none are kept."""


def browser_path():
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Served:
    """The page of a project on a port, that can be stopped and started again."""

    def __init__(self, path, public=False):
        self.path, self.public, self.port = path, public, free_port()
        self.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self.app = make_app(self.path, site=Site.public(self.address) if self.public else Site.local(self.port))
        self.page_state = self.app._app.state.page_state
        self._server = uvicorn.Server(server_config(self.app, "127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self):
        self._server.should_exit = True
        self._thread.join()

    def answers(self, name):
        """The answers of a person, as (item, label, value), undone or not."""
        project = self.page_state.project
        number = project.people.number(name)
        return [(one.item, one.label, one.value) for one in project.answers(annotator=number, every=True)]


def keep_picture(page, name):
    if KEPT:
        page.wait_for_timeout(400)  # until nothing moves
        page.screenshot(path=Path(KEPT) / f"{name}.png")


ROLES = {"button", "link", "textbox", "combobox", "checkbox", "dialog", "region", "figure", "group", "Audio"}


def without_name(page):
    """Return what a screen reader would reach and could not name, as the browser itself computes it."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        (node["role"]["value"], node["nodeId"])
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in ROLES and not node["name"].get("value")
    ]


CONTRAST = """() => {
  const parsed = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const over = (top, bottom, a) => top.map((value, place) => value * a + bottom[place] * (1 - a));
  const light = (rgb) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.unshift(parsed(getComputedStyle(one).backgroundColor));
    return layers.reduce((below, layer) => over(layer.rgb, below, layer.a), [255, 255, 255]);
  };
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!walker.currentNode.textContent.trim() || box.width < 2 || style.visibility === "hidden") continue;
    if (element.closest(".toast:not(.shown), .only-spoken, .jump, noscript, option, :disabled")) continue;
    let opacity = 1;
    for (let one = element; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
    const behind = ground(element);
    const colour = parsed(element.closest("svg.curve") ? style.fill : style.color);
    const [one, other] = [light(over(colour.rgb, behind, colour.a * opacity)), light(behind)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) wrong.push([walker.currentNode.textContent.trim(), ratio]);
  }
  return wrong;
}"""


def low_contrast(page):
    """Return texts that are hard to read, with their contrast (WCAG 2.2, 1.4.3)."""
    return page.evaluate(CONTRAST)


SMALL = """() => [...document.querySelectorAll("button, a, input, [role=option]")]
  .filter((one) => one.checkVisibility() && !one.closest(".jump, figure.item"))
  .map((one) => [one.getAttribute("aria-label") || one.textContent || one.id, one.closest(".switch") || one])
  .map(([name, one]) => [name, one.getBoundingClientRect()])
  .filter(([, box]) => box.width < 44 || box.height < 44)
  .map(([name, box]) => [name, box.width, box.height])"""


def too_small(page):
    """Return what a finger could miss."""
    return page.evaluate(SMALL)


def focus_order(page, n):
    """Return the names of what the key Tab reaches, in order, and whether the focus can be seen on all of it."""
    names, seen = [], True
    for _ in range(n):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
              const one = document.activeElement;
              const name = one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent.trim();
              return [name, getComputedStyle(one).outlineStyle];
            }"""
        )
        names.append(name)
        seen &= outline != "none"
    return names, seen
