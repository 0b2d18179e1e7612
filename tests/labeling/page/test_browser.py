"""A person's way through the page in a real browser, with keys, a finger and a screen reader."""

import re
import shutil

import pytest
from tests.labeling.page.browsing import (
    SIZES,
    Served,
    browser_path,
    focus_order,
    keep_picture,
    low_contrast,
    too_small,
    without_name,
)
from tests.labeling.page.client import LABELS
from tests.labeling.scenes import Y, ranker

from slatewise.labeling import Item, Plan, Project, keep_model
from slatewise.labeling.calibration_set import Quality
from slatewise.labeling.page.access_tokens import new_token
from slatewise.labeling.store.records import Act, Given

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(browser_path() is None, reason="no browser: none of chromium, google-chrome on PATH")
expect = playwright.expect


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def people(browser):
    """Open pages, each in a browser of its own; nothing may be wrong in any of them."""
    contexts, wrong = [], []

    def page_of(address, size="page_state", **settings):
        context = browser.new_context(viewport=SIZES[size], has_touch=size == "phone", **settings)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
        page.goto(address)
        return page

    def leave():
        """Close all pages: one that is open may ask a server that was stopped."""
        while contexts:
            contexts.pop().close()

    page_of.wrong, page_of.leave = wrong, leave
    yield page_of
    leave()
    assert wrong == []


@pytest.fixture
def served(path):
    server = Served(path)
    yield server
    server.stop()


@pytest.fixture
def ann(served, people):
    page = people(f"{served.address}/?annotator=Ann")
    expect(page.locator(".labels li").first).to_be_visible()
    return page


def question(page):
    return page.locator(".question-name").inner_text()


def says(page, text):
    expect(page.locator(".count")).to_have_text(text)


def row(page, name):
    return page.locator(".labels li", has=page.locator(f".name:text-is('{name}')"))


def test_a_persons_whole_way(served, ann, people):
    says(ann, "0 questions instead of 8")
    first = question(ann)
    ann.keyboard.press("y")
    says(ann, "1 question instead of 8")
    expect(row(ann, first).get_by_role("button", name=f"{first}: yes")).to_have_attribute("aria-pressed", "true")
    expect(ann.locator("#spoken")).to_contain_text(f"{first}: yes. Does {question(ann)} apply?")
    second = question(ann)
    ann.keyboard.press("n")
    says(ann, "2 questions instead of 8")
    expect(ann.locator(".chip", has_text=second)).to_be_visible()
    ann.keyboard.press("u")
    says(ann, "1 question instead of 8")
    assert question(ann) == second
    ann.keyboard.press("?")
    says(ann, "2 questions instead of 8")
    other = ann.locator(".labels li:not(.with-yes):not(.current) .name").last.inner_text()
    ann.keyboard.press("/")
    ann.keyboard.type(other[:-1])
    expect(ann.get_by_role("option", name=other)).to_be_visible()
    keep_picture(ann, "search")
    ann.keyboard.press("Enter")
    expect(row(ann, other)).to_have_class(re.compile("with-yes"))
    row(ann, other).get_by_role("button", name=f"{other}: no").click()
    expect(ann.locator(".chip", has_text=other)).to_be_visible()
    before = ann.locator(".panel").inner_text()
    ann.reload()
    expect(ann.locator(".chip", has_text=other)).to_be_visible()
    assert ann.locator(".panel").inner_text() == before
    bob = people(f"{served.address}/?annotator=Bob")
    expect(bob.locator("figcaption")).to_have_text("poem")
    ann.keyboard.press("s")
    expect(ann.locator("figcaption")).to_have_text("noise")
    ann.keyboard.press("u")
    expect(ann.locator("figcaption")).to_have_text("scene 0")
    ann.keyboard.press("Enter")
    expect(ann.locator("figcaption")).to_have_text("noise")
    answers = served.answers("Ann")
    yes, no, unsure, added, corrected = answers[:5]
    assert [one[1] for one in answers[:5]] == [LABELS.index(name) for name in (first, second, second, other, other)]
    assert [one[2] for one in (yes, no, unsure, added, corrected)] == [1, 0, -1, 1, 0]
    expect(ann.locator("#far")).to_have_text("1 of 24 items")


def test_keys_of_the_list(ann):
    name = ann.locator(".labels .name").nth(2).inner_text()
    ann.keyboard.press("3")
    expect(row(ann, name)).to_have_class(re.compile("with-yes"))
    place = ann.locator(".labels .name").all_inner_texts().index(name) + 1
    ann.keyboard.press(str(place))
    expect(ann.locator(".chip", has_text=name)).to_be_visible()
    ann.locator(".chip", has_text=name).click()
    expect(row(ann, name)).to_have_class(re.compile("with-yes"))


def test_help_and_keys_that_are_off(served, ann):
    ann.keyboard.press("h")
    expect(ann.get_by_role("dialog", name="Keys")).to_be_visible()
    assert without_name(ann) == []
    keep_picture(ann, "keys")
    ann.keyboard.press("y")  # not while it is open
    ann.get_by_role("checkbox").uncheck()
    ann.keyboard.press("Escape")
    expect(ann.get_by_role("dialog")).to_have_count(0)
    ann.keyboard.press("y")
    ann.get_by_role("button", name="Yes", exact=True).press("Enter")  # the button's own key, not "done"
    says(ann, "1 question instead of 8")
    assert len(served.answers("Ann")) == 1
    assert ann.evaluate("document.activeElement.textContent") == "YesY"


def test_items_of_every_kind(served, ann):
    def after_skip(caption):
        ann.keyboard.press("s")
        expect(ann.locator("figcaption")).to_have_text(caption)

    expect(ann.get_by_role("img", name="Picture scene 0")).to_be_visible()
    after_skip("poem")
    expect(ann.locator(".text")).to_have_text("<script>alert(1)</script>\nWaves.")
    after_skip("noise")
    expect(ann.locator("audio")).to_have_attribute("src", "/api/items/2/file")
    after_skip("page")
    link = ann.get_by_role("link", name="https://example.org/a?b=1")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert ann.locator("iframe, embed, object").count() == 0
    after_skip("broken")
    expect(ann.get_by_text("This picture cannot be shown.")).to_be_visible()
    ann.keyboard.press("y")
    says(ann, "1 question instead of 8")


def test_what_was_said_reaches_a_server_that_was_gone(served, ann, people):
    name = question(ann)
    served.stop()
    ann.keyboard.press("y")
    expect(ann.get_by_role("alert")).to_contain_text("The server does not answer. Your last answer is kept here")
    keep_picture(ann, "gone")
    ann.keyboard.press("n")  # nothing else is taken meanwhile
    served.start()
    says(ann, "1 question instead of 8")
    expect(ann.locator("#trouble")).to_be_hidden()
    assert served.answers("Ann") == [(0, LABELS.index(name), 1)]
    assert all("ERR_CONNECTION_REFUSED" in text for text in people.wrong)
    people.wrong.clear()


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_lost_reply_is_asked_for_again_and_nothing_is_recorded_twice(served, ann, people, reloaded):
    lost = []

    def lose(route):
        if lost and not reloaded:
            route.continue_()
            return
        lost.append(route.fetch().status)
        if not reloaded:  # else no reply at all, and the person reloads the page
            route.abort()

    ann.route("**/api/answer*", lose)
    ann.keyboard.press("y")
    for waited in range(1500):  # the page shows an answer before it is acknowledged
        if lost:
            break
        if waited % 500 == 499:  # a browser that was too slow to take the key, or to fetch the reply
            ann.reload()
            ann.wait_for_timeout(2000)  # the page keeps the answer, and sent again
            if not lost:
                ann.keyboard.press("y")
        ann.wait_for_timeout(20)
    assert lost
    if reloaded:
        ann.unroute("**/api/answer*")
        ann.reload()
    says(ann, "1 question instead of 8")
    assert set(lost) == {200}, lost  # on a slow machine the page asks again before the first reply is lost
    assert len(served.answers("Ann")) == 1
    people.wrong.clear()


def test_a_disk_that_takes_nothing(served, ann, people):
    writer = served.page_state.project._database._writer
    writer.execute("PRAGMA query_only = ON")
    ann.keyboard.press("y")
    expect(ann.get_by_role("alert")).to_contain_text("all earlier answers are saved")
    writer.execute("PRAGMA query_only = OFF")
    says(ann, "1 question instead of 8")
    assert len(served.answers("Ann")) == 1
    assert all("503" in text for text in people.wrong)
    people.wrong.clear()


def test_two_windows_of_one_person(served, ann, people):
    other = people(f"{served.address}/?annotator=Ann")
    expect(other.locator(".labels li").first).to_be_visible()
    other.keyboard.press("y")
    says(other, "1 question instead of 8")
    ann.keyboard.press("n")
    expect(ann.locator("#toast")).to_contain_text("you went on in another window")
    says(ann, "1 question instead of 8")
    assert len(served.answers("Ann")) == 1
    assert all("409" in text for text in people.wrong)
    people.wrong.clear()


def test_the_name_is_changed(ann):
    ann.get_by_role("button", name="You are Ann. Change it").click()
    ann.get_by_label("Who is labeling?").fill("Zoë")
    ann.get_by_role("button", name="Go on").click()
    expect(ann.get_by_role("button", name="You are Zoë. Change it")).to_be_visible()
    expect(ann.locator("figcaption")).to_have_text("poem")  # Ann has the first


def test_a_click_leaves_the_keys_alone(ann):
    ann.get_by_role("button", name="Yes", exact=True).click()
    says(ann, "1 question instead of 8")
    ann.keyboard.press("Enter")
    expect(ann.locator("figcaption")).to_have_text("poem")


@pytest.fixture(scope="module")
def known_path(made, tmp_path_factory):
    """Two people are done with some items and disagree; five versions were measured."""
    folder = tmp_path_factory.mktemp("known")
    shutil.copytree(made, folder / "made")
    path = folder / "made" / "scenes.db"
    with Project.open(path) as project:
        Plan(share=0.0, order="file order", retrain_every=0, overlap=2).keep(project)
        for name, shift in (("Ann", 0), ("Bob", 1)):
            number = project.people.number(name)
            for item in range(2):
                for label in range(3):
                    project.answer(item, label, (item + label * shift) % 2, number, milliseconds=900)
                project.done(item, number)
        for version in range(2, 4):
            keep_model(project, ranker(), note=f"{10 * version} items")
        figures = [Quality(n, 60, 0.5 + 0.08 * n, 0.6, 0.04, 4.0 - 0.5 * n).as_json() for n in (1, 2, 3)]
        project.settings.set("quality", figures)
    return path


@pytest.fixture(scope="module")
def known(known_path):
    server = Served(known_path)
    yield server
    server.stop()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_reach_and_name_everything(known, people, scheme, size):
    page = people(f"{known.address}/?annotator={scheme}-{size}", size, color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator(".labels li").first).to_be_visible()
    page.keyboard.press("y")
    says(page, "1 question instead of 8")
    page.keyboard.press("n")
    says(page, "2 questions instead of 8")
    for view, ready in (("label", ".chip"), ("progress", "table"), ("review", ".sides"), ("model", ".curve")):
        page.evaluate(f"location.hash = '#{view}'")
        expect(page.locator(ready).first).to_be_visible()
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert low_contrast(page) == []
        assert without_name(page) == []
        assert too_small(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("h1").count() == 1
        keep_picture(page, f"{view}-{scheme}-{size}")


def test_the_focus_goes_the_way_of_the_eyes(ann):
    first = ann.locator(".labels .name").first.inner_text()
    names, seen = focus_order(ann, 17)
    views = ["To the content", "Label", "Progress", "Review", "Model", "You are Ann. Change it", "Help: the keys (H)"]
    acts = ["YesY", "NoN", "Don\N{RIGHT SINGLE QUOTATION MARK}t know?", "Done↵", "SkipS", "UndoU", "Add any label"]
    assert names[:16] == [*views, *acts, f"{first}: yes", f"{first}: no"]
    assert seen


def test_review_settles_what_people_disagree_about(path, known_path, people):
    shutil.copytree(known_path.parent, path.parent, dirs_exist_ok=True)
    server = Served(path)
    try:
        page = people(f"{server.address}/?annotator=Cora#review")
        expect(page.get_by_text("2 disagreements left")).to_be_visible()
        assert page.locator(".sides li").all_inner_texts() == ["Bob answered yes", "Ann answered no"]
        lost = []

        def lose(route):
            lost.append(route.fetch().status)
            route.abort()

        page.route("**/api/review?annotator*", lose, times=1)
        page.keyboard.press("y")
        expect(page.get_by_text("1 disagreement left")).to_be_visible()
        assert lost == [200]
        people.wrong.clear()
        page.get_by_role("button", name="No", exact=True).click()
        expect(page.get_by_role("heading", name="Nothing to review")).to_be_visible()
        expect(page.locator("#views .badge").nth(2)).to_have_text("")
        assert [one[2] for one in server.answers("Cora")] == [1, 0]
    finally:
        people.leave()
        server.stop()


def test_versions_are_shown_and_rolled_back(known, people, monkeypatch):
    page = people(f"{known.address}/?annotator=Ann#model")
    curve = re.compile("Precision of the list before any question: version 1 58%, version 2")
    expect(page.get_by_role("img", name=curve)).to_be_visible()
    page.get_by_role("button", name="Use version 2").click()
    expect(page.locator("tr", has_text="20 items")).to_contain_text("in use")
    assert known.page_state.project.models.current().number == 2
    started = []
    monkeypatch.setattr(known.page_state.trainer, "start", lambda: started.append(1) or True)
    with page.expect_response("**/api/models/train*"):
        page.get_by_role("button", name="Train a new version").click()
    expect(page.get_by_role("button", name="Train a new version")).to_be_enabled()
    assert started == [1]


def test_a_new_version_is_trained_while_a_person_labels(path, people):
    with Project.open(path) as project:
        bob = project.people.number("Bob")
        project.record(
            Act("answer", 8 + place, bob, tuple(Given(label, int(value)) for label, value in enumerate(row)))
            for place, row in enumerate(Y[8:])
        )
    server = Served(path)
    try:
        page = people(f"{server.address}/?annotator=Ann#model")
        page.get_by_role("button", name="Train a new version").click()
        expect(page.get_by_role("button", name="Training …")).to_be_disabled()
        page.get_by_role("link", name="Label").click()
        expect(page.locator(".labels li").first).to_be_visible()
        page.keyboard.press("y")  # nobody waits for it
        says(page, "1 question instead of 8")
        assert server.page_state.trainer.wait().state == "trained"
        server.page_state.state.refresh(wait=True)
        page.keyboard.press("n")
        expect(page.locator("#toast")).to_have_text("Version 2 of the model is in use now.")
        page.get_by_role("link", name="Model").click()
        expect(page.locator(".state")).to_have_text(re.compile("^Version 2, from 1[67] items of which 12[89]"))
        expect(page.locator("tr", has_text=re.compile("1[67] items, 12[89] labels known"))).to_contain_text("in use")
        page.get_by_role("button", name="Use version 1").click()
        expect(page.locator("tr", has_text="made elsewhere")).to_contain_text("in use")
        models = [
            one.model
            for one in server.page_state.project.answers(annotator=server.page_state.project.people.number("Ann"))
        ]
        assert models == [1, 1]
    finally:
        people.leave()
        server.stop()


def test_a_renamed_label_is_found_by_its_new_name(served, ann):
    served.page_state.project.labels.rename(LABELS[7], "deep snow")
    served.page_state.state.refresh(wait=True)
    with ann.expect_response("**/api/me*"):
        ann.keyboard.press("y")
    says(ann, "1 question instead of 8")
    ann.keyboard.press("/")
    ann.keyboard.type("deep")
    expect(ann.get_by_role("option", name="deep snow")).to_be_visible()


def test_progress_and_export(known, people):
    page = people(f"{known.address}/?annotator=Ann#progress")
    expect(page.locator("table", has_text="People").get_by_role("row", name=re.compile("^Bob 6 2"))).to_be_visible()
    expect(page.get_by_text("s alpha")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export CSV, wide").click()
    assert download.value.suggested_filename == "scenes.csv"
    assert download.value.path().read_text().startswith("item,beach,")
    page.get_by_role("button", name="Export Label Studio").click()
    expect(page.locator("#toast")).to_contain_text("items: expected one kind")
    people.wrong.clear()  # the browser tells of the 422


def test_without_a_model_the_page_says_so(tmp_path, people):
    Project.create(tmp_path / "cold.db", LABELS, [Item("a", "text", "Waves."), Item("b", "text", "Sand.")]).close()
    server = Served(tmp_path / "cold.db")
    try:
        page = people(f"{server.address}/?annotator=Ann")
        expect(page.locator(".reason")).to_have_text("No model yet, no answers yet")
        expect(page.locator(".note")).to_contain_text("There is no model yet")
        for _ in range(2):
            page.keyboard.press("y")
            expect(page.locator(".with-yes")).to_have_count(1)
            page.keyboard.press("Enter")
            expect(page.locator(".with-yes")).to_have_count(0)
        expect(page.get_by_role("heading", name="Nothing is left for you")).to_be_visible()
        page.keyboard.press("u")
        expect(page.locator("figcaption")).to_have_text("b")
    finally:
        people.leave()
        server.stop()


def test_without_items_the_page_says_so(tmp_path, people):
    Project.create(tmp_path / "empty.db", LABELS).close()
    server = Served(tmp_path / "empty.db")
    try:
        page = people(server.address)
        expect(page.locator("main")).to_contain_text("This project has no items yet.")
    finally:
        people.leave()
        server.stop()


def test_who_has_a_token_may_enter(path, people):
    with Project.open(path) as project:
        token = new_token(project, "Zoë", "annotator")
    server = Served(path, public=True)
    try:
        page = people(server.address)
        assert page.url.endswith("/enter")
        assert (without_name(page), low_contrast(page), too_small(page)) == ([], [], [])
        page.get_by_label("Your token").fill("slw_" + "a" * 43)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Nobody has this token")
        page.get_by_label("Your token").fill(token)
        page.get_by_role("button", name="Enter").click()
        expect(page.locator(".labels li").first).to_be_visible()
        page.keyboard.press("y")
        says(page, "1 question instead of 8")
        assert page.locator("#views a").all_inner_texts() == ["Label", "Progress", "Model"]
        assert len(server.answers("Zoë")) == 1
        page.get_by_role("button", name="You are Zoë. Leave").click()
        expect(page.get_by_label("Your token")).to_be_visible()
        assert all("401" in text for text in people.wrong)
        people.wrong.clear()
    finally:
        people.leave()
        server.stop()
