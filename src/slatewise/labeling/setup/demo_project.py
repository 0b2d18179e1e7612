"""The demo of the labeling page: drawn scenes, of which some are labelled already, so that there is a model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from slatewise.labeling.honest_share import HonestShare, draws
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.progress_report import PAUSE
from slatewise.labeling.retraining import retrain
from slatewise.labeling.setup.drawn_scenes import LABELS, draw_scenes
from slatewise.labeling.setup.project_folder import whole_folder
from slatewise.labeling.store import clocks
from slatewise.labeling.store.project import PROJECT_FILE, Project
from slatewise.labeling.store.records import Act, Given, Item

_WHO = "the one who drew them"
_LEFT = 2
"""Of the share without the model: a person who labels for a while gets to see how that is."""
_APART = 2 * PAUSE
"""So that these say nothing of the pace of people."""
_PLAN = Plan(confidence=0.9, share=0.15, list_length=8, retrain_every=40)


def make_demo_folder(path: str | os.PathLike[str], n_scenes: int = 140, n_labelled: int = 90) -> Path:
    """Make the folder of a project of drawn scenes, all of it or nothing; return the file of the project.

    Parameters
    ----------
    path
        The folder, which is not there yet, or empty.
    n_scenes
        How many to draw.
    n_labelled
        Of these, how many are labelled already: a model has learnt from them.
    """
    target = Path(path)
    with whole_folder(target) as folder:
        pictures = folder / "items"
        pictures.mkdir()
        scenes, items = draw_scenes(n_scenes), list[Item]()
        for number, scene in enumerate(scenes, 1):
            name = f"scene-{number:03d}.png"
            (pictures / name).write_bytes(scene.png)
            items.append(Item(name, "image", name, pictures))
        with Project.create(folder / PROJECT_FILE, LABELS, items) as project:
            _PLAN.keep(project)
            ItemData.of(project, np.array([scene.colours for scene in scenes])).attach(project)
            who = project.people.number(_WHO)
            first = _labelled_first([item.id for item in items])[:n_labelled]
            for place, item in enumerate(first):
                given = tuple(Given(label, int(name in scenes[item].there)) for label, name in enumerate(LABELS))
                time = clocks.now() - (len(first) - place) * _APART
                project.record([Act("answer", item, who, given, time), Act("done", item, who, (), time)])
            if n_labelled:
                retrain(project)
    return target / PROJECT_FILE


def _labelled_first(ids: list[str]) -> list[int]:
    """Return the items in the order in which they are labelled before: first those on which the model is measured."""
    honest = HonestShare(draws(ids, _PLAN.seed), _PLAN.share)
    everybody = np.arange(len(ids))
    share = honest.in_turn(everybody)[:-_LEFT].tolist()
    return [*share, *everybody[~honest.inside].tolist()]
