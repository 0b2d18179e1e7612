"""Projects of generated scenes for the tests of sessions and retraining."""

from functools import cache

from slatewise import CStarRanker, datasets
from slatewise.labeling import Item, Plan, Project

SCENES = datasets.make_label_scenes(144, n_labels=8, n_groups=1, noise=0.7, random_state=3)
TRAIN, ITEMS = slice(0, 120), slice(120, 144)
X, Y = SCENES.X[ITEMS], SCENES.Y[ITEMS]
NAMES = [f"label {number}" for number in range(8)]


@cache
def ranker() -> CStarRanker:
    return CStarRanker(core=2, C=1.0, random_state=0).fit(SCENES.X[TRAIN], SCENES.Y[TRAIN], label_names=NAMES)


def make_project(path, n_items=24, **plan) -> Project:
    items = [Item(f"scene {number}", "text", "A scene.") for number in range(n_items)]
    project = Project.create(path, NAMES, items)
    Plan(**({"share": 0.0} | plan)).keep(project)
    return project
