"""The pictures of the guide: ``python -m tests.labeling.page.pictures docs/images`` in a real browser.

A project of drawn scenes as ``slatewise label demo`` makes it, with a second person who disagrees here and there.
"""

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tests.labeling.page.browsing import SIZES, Served, browser_path

from slatewise.labeling import Project
from slatewise.labeling.setup.demo import make_demo_folder


def disagree(path):
    """Let somebody go through some scenes that are labeled, and see four things otherwise."""
    with Project.open(path) as project:
        bob, known = project.people.number("Bob"), project.known().values
        for item in [item for item, row in enumerate(known) if (row >= 0).all()][:6]:
            for label, value in enumerate(known[item].tolist()):
                other = (item + label) % 26 == 7
                project.answer(item, label, 1 - value if other else value, bob, milliseconds=800)


def take(browser, address, out):
    """Answer a little, and take the pictures."""
    for scheme, size in (("light", "page_state"), ("dark", "phone")):
        page = browser.new_context(viewport=SIZES[size], color_scheme=scheme).new_page()
        page.goto(f"{address}/?annotator={'Ann' if size == 'page_state' else 'Cora'}")
        expect(page.locator(".labels li").first).to_be_visible()
        for key in ("y", "n") if size == "page_state" else ("n",):
            before = page.locator(".question-name").inner_text()
            page.keyboard.press(key)
            expect(page.locator(".question-name")).not_to_have_text(before)
        views = ("label", "progress", "review", "model") if size == "page_state" else ("label",)
        for view in views:
            page.goto(f"{address}/#{view}") if view != "label" else None
            page.wait_for_timeout(1500)  # until nothing moves
            expect(page.get_by_text("Training …")).to_have_count(0, timeout=300_000)
            page.screenshot(path=out / f"labeling-{view}{'' if size == 'page_state' else '-phone'}.png")


def main():
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    out = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = make_demo_folder(Path(folder, "scenes"))
        disagree(path)
        served = Served(path)
        try:
            take(started.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"]), served.address, out)
        finally:
            served.stop()


if __name__ == "__main__":
    main()
