"""A project of generated scenes with texts, pictures, sounds and links; and its page without a network."""

import shutil

import numpy as np
import pytest
from tests.labeling.page.client import LABELS, LocalClient, make_files
from tests.labeling.scenes import NAMES, X, ranker

from slatewise.labeling import Item, ItemData, Plan, Project, keep_model

pytest.importorskip("starlette", reason="the extra label is not installed")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """With a model; items are pictures, a text, a sound, a link, a picture that is none."""
    folder = tmp_path_factory.mktemp("made")
    make_files(folder / "files", len(X))
    items = [Item(f"scene {number}", "image", f"{number}.svg", folder / "files") for number in range(len(X))]
    items[1] = Item("poem", "text", "<script>alert(1)</script>\nWaves.")
    items[2] = Item("noise", "audio", "noise.wav", folder / "files")
    items[3] = Item("page", "link", "https://example.org/a?b=1")
    items[4] = Item("broken", "image", "broken.png", folder / "files")
    with Project.create(folder / "scenes.db", NAMES, items) as project:
        Plan(share=0.0, order="file order", retrain_every=0, list_length=5).keep(project)
        ItemData.of(project, np.asarray(X)).attach(project)
        keep_model(project, ranker(), note="made elsewhere")
        for old, new in zip(NAMES, LABELS, strict=True):  # the model knows the old ones
            project.labels.rename(old, new)
        project.people.number("Ann")
    return folder


@pytest.fixture
def path(made, tmp_path):
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made" / "scenes.db"


@pytest.fixture
def client(path):
    with LocalClient(path) as opened:
        yield opened
