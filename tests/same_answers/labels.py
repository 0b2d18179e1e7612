"""Labels with core labels."""

import numpy as np

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from slatewise import datasets

    scenes = datasets.make_label_scenes(n_rows=260, random_state=3)
    yield from _asked(ranker, scenes.X, scenes.Y)


def ask_with_scores(ranker):
    """With log-odds of single labels instead of features."""
    from slatewise import datasets

    scenes = datasets.make_label_scenes(n_rows=260, random_state=3)
    yield from _asked(ranker, np.asarray(scenes.marginals(scenes.X)), scenes.Y)


def _asked(ranker, X, Y):
    ranker.fit(X[:200], Y[:200])
    yield from learned(ranker)
    yield "decision", ranker.decision_function(X[200:])
    yield from ranked(ranker.rank(X[200:]))
    yield "score", ranker.score(X[200:], Y[200:])


def same(name, spelling, ask=ask):
    return Case(name, spelling, spelling, ask)


HINGE = 'scores="linear", surrogate="max-margin"'
CASES = [
    same("cstar", "CStarRanker()"),
    same("cstar linear", f"CStarRanker({HINGE}, C=1.0)"),
    same("cstar linear, bundle", f'CStarRanker({HINGE}, learner="bundle", C=3.0)'),
    same("cstar, no core", f"CStarRanker({HINGE}, core=0, C=1.0)"),
    same("cstar rbf", 'CStarRanker(scores="rbf", surrogate="max-margin", C=3.0)'),
    same("cstar pretrained", 'CStarRanker(scores="pretrained", surrogate="max-margin", C=1.0)', ask_with_scores),
    same(
        "cstar likelihood given k",
        'CStarRanker(scores="pretrained", surrogate="likelihood-k", C="auto")',
        ask_with_scores,
    ),
]
