"""Labels with core labels."""

from functools import partial

import numpy as np

from tests.same_answers.case import Case, learned, ranked

N_TRAIN = 120
NAMES = ["sea", "sky", "tree", "road", "car", "boat"]
RENAMED = {"known_count_terms_": "told_"}


def _scenes():
    from slatewise import datasets

    return datasets.make_label_scenes(n_rows=160, n_labels=6, n_groups=1, random_state=3)


def _features(scenes):
    return scenes.X


def _log_odds(scenes):
    return np.asarray(scenes.marginals(scenes.X))


def _histograms(scenes):
    return np.abs(scenes.X)


def _kernel(scenes):
    return scenes.X @ scenes.X[:N_TRAIN].T


def _sparse(scenes):
    from scipy.sparse import csr_array

    return csr_array(np.where(scenes.X > 0.5, scenes.X, 0.0))


def _partly(scenes):
    return np.where(np.random.default_rng(0).random(scenes.Y.shape) < 0.2, -1, scenes.Y)


def ask(ranker, X=_features, Y=None, **given):
    """Fit on the first rows, and answer for the others in every way."""
    scenes = _scenes()
    rows, labels = X(scenes), scenes.Y if Y is None else Y(scenes)
    ranker.fit(rows[:N_TRAIN], labels[:N_TRAIN], **given)
    yield from learned(ranker)
    rest, truth = rows[N_TRAIN:], labels[N_TRAIN:]
    yield "decision", ranker.decision_function(rest)
    yield "label scores", ranker.label_scores(rest)
    yield from ranked(ranker.rank(rest))
    yield "predicted", ranker.predict(rest)
    yield "counts", ranker.predict_count(rest)
    yield "classes", ranker.classes_
    yield "explained", ranker.explain(rest).pairs
    if truth.ndim == 1:
        yield "score", ranker.score(rest, truth)
        if not ranker.needs_count:
            yield "probabilities", ranker.predict_proba(rest)
        return
    known = np.where(np.random.default_rng(1).random(scenes.Y[N_TRAIN:].shape) < 0.3, scenes.Y[N_TRAIN:], -1)
    yield "decision given k", ranker.decision_function(rest, k=2)
    enough = np.maximum((known == 1).sum(axis=1), 2)
    yield "decision given answers", ranker.decision_function(rest, k=enough, known=known)
    yield "question", ranker.next_question(rest, known, enough)
    yield "score", ranker.score(rest, scenes.Y[N_TRAIN:])
    # The fourth argument is called told before, count_known now.
    yield "score, count not known", ranker.score(rest, scenes.Y[N_TRAIN:], None, None, False)
    if not ranker.needs_count:
        yield "probabilities", ranker.predict_proba(rest)
        yield "decision for subsets", ranker.predict(rest, decision="subset")
    if hasattr(ranker, "base_scores"):
        yield "base scores", ranker.base_scores(rest)


def _texts(scenes):
    return ["|".join(np.array(NAMES)[row > 0]) for row in scenes.Y]


def _frame(scenes):
    import pandas as pd

    return pd.DataFrame(scenes.Y, columns=NAMES)


def _classes(scenes):
    return scenes.Y.argmax(axis=1)


def _weights():
    return np.random.default_rng(2).integers(0, 3, N_TRAIN).astype(float)


def ask_names(ranker, Y):
    """Names of labels: texts, or columns of a frame."""
    scenes = _scenes()
    y = Y(scenes)
    if isinstance(y, list):
        ranker.fit(scenes.X[:N_TRAIN], y[:N_TRAIN], separator="|")
    else:
        ranker.fit(scenes.X[:N_TRAIN], y.iloc[:N_TRAIN])
    yield from learned(ranker)
    yield "names", ranker.rank(scenes.X[N_TRAIN:], known=[{"sea": 1}] * (len(scenes.X) - N_TRAIN)).ids
    yield "score", ranker.score(scenes.X[N_TRAIN:], y[N_TRAIN:] if isinstance(y, list) else y.iloc[N_TRAIN:])


def ask_answered(ranker):
    """Some known labels were volunteered."""
    scenes = _scenes()
    answered = np.random.default_rng(4).random((N_TRAIN, scenes.Y.shape[1])) < 0.8
    yield from ask(ranker, answered=answered)


def _likelihood(name, before, now, ask=ask):
    return Case(f"cstar{name}", f"CStarRanker({before})", f"CStarRanker({now})", ask, RENAMED)


def _margin(name, before, now, ask=ask):
    words = f"{before}, " if before else ""
    return Case(
        f"cstar margin{name}", f'CStarRanker({words}surrogate="max-margin")', f"CStarMarginRanker({now})", ask, RENAMED
    )


GIVEN = partial(ask, X=_log_odds)
HISTOGRAMS = partial(ask, X=_histograms)
KERNEL = partial(ask, X=_kernel)
BAYES, NEAREST = "sklearn.naive_bayes.GaussianNB()", "sklearn.neighbors.KNeighborsClassifier()"
LINEAR = 'scores="linear"'
CASES = [
    # the likelihood
    _likelihood("", "", ""),
    _likelihood(", core and C given", "core=2, C=0.3", "core=2, C=0.3"),
    _likelihood(", core auto, C given", "C=0.3", "C=0.3"),
    _likelihood(", no core", "core=0", "core=0"),
    _likelihood(", core listed", "core=[3, 1], C=1.0", "core=[3, 1], C=1.0"),
    _likelihood(", core listed, C auto", "core=[3, 1]", "core=[3, 1]"),
    _likelihood(", C_pair", "core=2, C=1.0, C_pair=0.2", "core=2, C=1.0, C_pair=0.2"),
    _likelihood(", tolerance and seed", "core=2, tol=1e-5, random_state=7", "core=2, tol=1e-5, random_state=7"),
    _likelihood(", weights", "core=2, C=0.3", "core=2, C=0.3", partial(ask, sample_weight=_weights())),
    _likelihood(", sparse rows", "core=2, C=0.3", "core=2, C=0.3", partial(ask, X=_sparse)),
    _likelihood(", classes", "core=2, C=0.3", "core=2, C=0.3", partial(ask, Y=_classes)),
    _likelihood(", partly known", "core=2, C=0.3", "core=2, C=0.3", partial(ask, Y=_partly)),
    _likelihood(", answered", "core=2, C=0.3", "core=2, C=0.3", ask_answered),
    _likelihood(", texts", 'core=["sky"], C=0.3', 'core=["sky"], C=0.3', partial(ask_names, Y=_texts)),
    _likelihood(", a frame", "core=2, C=0.3", "core=2, C=0.3", partial(ask_names, Y=_frame)),
    _likelihood(", svc", 'core=2, C=0.3, base="svc"', '"svc", core=2, C=0.3'),
    _likelihood(
        ", a classifier",
        "core=2, C=0.3, base=sklearn.naive_bayes.GaussianNB()",
        "sklearn.naive_bayes.GaussianNB(), core=2, C=0.3",
    ),
    _likelihood(
        ", a classifier of many labels",
        "core=2, C=0.3, base=sklearn.neighbors.KNeighborsClassifier()",
        "sklearn.neighbors.KNeighborsClassifier(), core=2, C=0.3",
    ),
    _likelihood(", precomputed", 'core=2, C=0.3, scores="pretrained"', '"precomputed", core=2, C=0.3', GIVEN),
    _likelihood(", precomputed, all chosen", 'scores="pretrained"', '"precomputed"', GIVEN),
    # the hinge of precision at k
    _margin("", LINEAR, ""),
    _margin(", C", f"{LINEAR}, C=1.0", "C=1.0"),
    _margin(", C_pair", f"{LINEAR}, C=1.0, C_pair=0.2", "C=1.0, C_pair=0.2"),
    _margin(", no core", f"{LINEAR}, core=0, C=1.0", "core=0, C=1.0"),
    _margin(", core listed", f"{LINEAR}, core=[3, 1], C=1.0", "core=[3, 1], C=1.0"),
    _margin(", core by gain", f'{LINEAR}, core=2, core_by="gain", C=1.0', 'core=2, core_selection="gain", C=1.0'),
    _margin(", fixed k", f"{LINEAR}, core=2, k=2, C=1.0", "core=2, k=2, C=1.0"),
    _margin(", bundle", f'{LINEAR}, core=2, learner="bundle", C=3.0', 'core=2, solver="bundle", C=3.0'),
    _margin(
        ", bundle, fixed k",
        f'{LINEAR}, core=2, k=2, learner="bundle", C=1.0',
        'core=2, k=2, solver="bundle", C=1.0',
    ),
    _margin(
        ", subgradient",
        f'{LINEAR}, core=2, learner="subgradient", C=1.0, max_iter=40',
        'core=2, solver="subgradient", C=1.0, max_iter=40',
    ),
    _margin(", seed", f"{LINEAR}, core=2, C=1.0, random_state=5", "core=2, C=1.0, random_state=5"),
    _margin(", weights", f"{LINEAR}, core=2, C=1.0", "core=2, C=1.0", partial(ask, sample_weight=_weights())),
    _margin(", texts", f'{LINEAR}, core=["sky"], C=1.0', 'core=["sky"], C=1.0', partial(ask_names, Y=_texts)),
    _margin(", rbf", 'scores="rbf", C=3.0', '"rbf", C=3.0'),
    _margin(
        ", rbf, few basis rows",
        'scores="rbf", gamma=0.05, n_components=20, C=3.0',
        "kernels.Rbf(gamma=0.05, n_basis=20), C=3.0",
    ),
    _margin(", rbf, all chosen", 'scores="rbf", core=2, n_components=30', "kernels.Rbf(n_basis=30), core=2"),
    _margin(", chi2", 'scores="chi2", C=3.0', '"chi2", C=3.0', HISTOGRAMS),
    _margin(", intersection", 'scores="intersection", C=3.0', '"intersection", C=3.0', HISTOGRAMS),
    _margin(", kernel matrix", 'scores="precomputed", C=3.0', '"precomputed", C=3.0', KERNEL),
    _margin(
        ", kernel matrix, few basis rows",
        'scores="precomputed", n_components=20, C=3.0',
        "kernels.Precomputed(n_basis=20), C=3.0",
        KERNEL,
    ),
    _margin(", given scores", 'scores="pretrained", C=1.0', '"scores", C=1.0', GIVEN),
    _margin(", given scores, all chosen", 'scores="pretrained"', '"scores"', GIVEN),
    _margin(", classes", f"{LINEAR}, core=2, C=1.0", "core=2, C=1.0", partial(ask, Y=_classes)),
    # dropped
    Case(
        "cstar likelihood given k",
        'CStarRanker(scores="pretrained", surrogate="likelihood-k")',
        None,
        GIVEN,
        why="only the reproduction of the paper compares with it, and has it: slatewise_papers.cstar.likelihood",
    ),
    Case(
        "cstar margin, own base",
        'CStarRanker(surrogate="max-margin", C=1.0)',
        None,
        ask,
        why='give the out-of-fold scores of any model with unary="scores"',
    ),
]
