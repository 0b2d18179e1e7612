"""A test as none may be: one seed, all digits. ``tests/portable.py`` runs it to show that its check can fail."""

import os

import numpy as np

from slatewise import CStarRanker, LatentRanker, SessionRanker, datasets


def test_of_one_seed_without_a_margin():
    scenes = datasets.make_label_scenes(n_rows=200, random_state=0)
    sessions = datasets.make_sessions(250, 40, n_clusters=5, random_state=0).sessions
    fixed = {"learning_rate": 0.6, "max_norm": 2.5, "random_state": 0}
    latent = LatentRanker(50, **fixed).fit(sessions.pairs().queries, sessions.pairs().items)
    figures = (
        CStarRanker(core=2, C=0.3).fit(scenes.X, scenes.Y).objective_,
        float(latent.item_factors_.sum()),
        float(np.sum(SessionRanker(factors=None).fit(sessions).rank(sessions[:50], k=5).scores)),
    )
    print(f"\nknife edge: {figures!r}")
    assert repr(figures) == os.environ.get("KNIFE_EDGE", repr(figures))
