"""The stages of a fit, as a bar shows them."""

import numpy as np

from slatewise import CStarMarginRanker, CStarRanker, datasets
from slatewise.core.running.progress import listening

SCENES = datasets.make_label_scenes(60, random_state=0)


class Recorder:
    """Keeps the names of loops with their totals, and what they are about."""

    def __init__(self):
        self.loops, self.texts, self.advanced = [], [], 0

    def begin(self, what, total):
        self.loops.append((what, total))
        return len(self.loops)

    def advance(self, loop):
        self.advanced += 1

    def end(self, loop):
        pass

    def tell(self, text):
        self.texts.append(text)


def stages(ranker):
    recorder = Recorder()
    with listening(recorder):
        ranker.fit(SCENES.X, SCENES.Y)
    return recorder


def test_the_base_is_the_first_stage_and_counts_its_folds():
    shown = stages(CStarRanker(tol=0.1, random_state=0))
    assert shown.texts[:2] == ["base classifiers", "choosing core labels and C"]
    assert ("folds", 4) in shown.loops  # the first of five chose the strength
    assert ("strengths", 8) in shown.loops
    assert shown.advanced >= 4


def test_a_given_core_and_strength_are_not_a_stage():
    shown = stages(CStarRanker(core=[0], C=0.3, tol=0.1, random_state=0))
    assert "choosing core labels and C" not in shown.texts


def test_the_margin_names_its_choices():
    shown = stages(CStarMarginRanker(core=2, tol=0.1, random_state=0, max_iter=20))
    assert shown.texts[:2] == ["choosing the core labels", "choosing C and C_pair"]
    assert ("strengths", 8) in [loop for loop in shown.loops if np.isfinite(loop[1])]
