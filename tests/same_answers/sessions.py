"""Next items of sessions."""

import numpy as np

from tests.same_answers.case import Case, ranked
from tests.same_answers.case import learned as every_learned


def _log():
    from slatewise import datasets

    return datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions


def learned(ranker):
    """Yield what was learned; tables of the only stage as they are without stages, with the weights behind U."""
    found = dict(every_learned(ranker))
    if "weight_steps_" in found:
        steps = found.pop("spline_steps_", np.empty(0, dtype=np.float32))
        weights = np.concatenate([found.pop("age_weights_"), found.pop("repeat_weights_"), steps])
        behind = np.zeros((len(weights), found["query_factors_"].shape[1]), dtype=np.float32)
        behind[:, 0] = weights
        found["query_factors_"] = np.concatenate([found["query_factors_"], behind])
        sums = np.concatenate([found.pop("weight_steps_").ravel(), np.zeros(len(steps), dtype=np.float32)])
        found["query_steps_"] = np.concatenate([found["query_steps_"], sums[:, None]])
    for name, value in found.items():
        if isinstance(value, np.ndarray) and value.ndim == 3 and name.endswith("_factors_"):
            value = value[0]
        if name == "n_epochs_" and isinstance(value, list):
            value = value[0]
        if name != "n_features_in_":  # counted the features of the sessions too, which n_query_features_ does now
            yield name, value
    for name in ("age_weights_", "repeat_weights_"):
        try:
            yield name, getattr(ranker, name)
        except AttributeError:
            continue
    base = getattr(ranker, "base_", None)
    if base is not None:
        of_base = "" if getattr(ranker, "factors", "") is None else "base/"
        for name, value in every_learned(base):
            yield of_base + name.replace("spline_steps_", "steps_"), value


def ask(ranker):
    sessions = _log()
    ranker.fit(sessions[:800])
    yield from learned(ranker)
    yield from answers(ranker, sessions[800:])


def answers(ranker, queries, **features):
    yield from ranked(ranker.rank(queries, k=7, exclude_seen=True, **features))
    found = ranker.rank(queries, k=3, candidates=[1, 2, 3, 4], **features)
    yield from (("candidates/" + part, value) for part, value in ranked(found))
    yield "scores", ranker.scores(queries, [5, 6, 7], **features)
    yield "recall", list(ranker.recall(queries, ks=[5, 10], **features).values())


def baskets(ranker):
    sessions = _log()
    _small(ranker).fit(sessions[:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7, exclude_seen=True))
    yield "recall", list(ranker.recall([[1, 2], [3]], [5, 6], ks=[5, 10]).values())


def _small(ranker):
    before = "n_components" in ranker.get_params()
    small = {"n_components": 8, "epochs": 4}
    if not before:
        small = {f"factors__{name}": value for name, value in small.items()}
    return ranker.set_params(random_state=1, **small)


def small(ranker):
    sessions = _log()
    _small(ranker).fit(sessions[:800])
    yield from learned(ranker)
    yield from answers(ranker, sessions[800:])
    yield "explained", ranker.explain(sessions[800:], k=4).own
    yield "item vectors", ranker.item_vectors()
    yield "query vectors", ranker.query_vectors(sessions[800:])


def featured(ranker):
    sessions, rng = _log(), np.random.default_rng(0)
    users, weights = rng.normal(size=(900, 3)), rng.random(900)
    _small(ranker).fit(sessions[:600], sample_weight=weights[:600], query_features=users[:600])
    yield from learned(ranker)
    yield from answers(ranker, sessions[800:], query_features=users[800:])
    ranker.partial_fit(sessions[600:800], query_features=users[600:800])
    yield from (("further/" + name, value) for name, value in learned(ranker))


def grow(ranker):
    """Fit, and then learn from further sessions."""
    sessions = _log()
    ranker.fit(sessions[:500]).partial_fit(sessions[500:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7))


def small_grow(ranker):
    yield from grow(_small(ranker))


def first(ranker):
    """A fit that begins with ``partial_fit``."""
    sessions = _log()
    _small(ranker).partial_fit(sessions[:500]).partial_fit(sessions[500:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7))


def same(name, spelling, ask=ask):
    return Case(name, spelling, spelling, ask)


def blend(name, before, now, ask=ask):
    return Case(name, f"SessionBlend({before})", f"SessionRanker(None{now})", ask)


def ranker(name, before, now, ask=small):
    return Case(name, f"LatentRanker({before})", f"SessionRanker({now})", ask)


COUNTS = "window=5, decay=0.9, backward=0.5, row_power=0.5, last_weight=2.0"
FIXED = "learning_rate=0.2, max_norm=1.5"
CASES = [
    same("neighbors", "SessionNeighbors()"),
    same("neighbors with reach", "SessionNeighbors(k=20, decay=0.9, reach=4.0, repeat_weight=0.5)"),
    same("neighbors, further", "SessionNeighbors(reach=None)", grow),
    Case("counts", "CooccurrenceRanker()", "SessionCooccurrence()", ask),
    Case("counts, fixed", f"CooccurrenceRanker({COUNTS})", f"SessionCooccurrence({COUNTS})", ask),
    Case("counts, further", "CooccurrenceRanker()", "SessionCooccurrence()", grow),
    blend("blend", "", ""),
    blend("blend, short", "k=30, window=5", ", base=sessions.Blend(30), window=5"),
    blend("blend, further", "", "", grow),
    ranker("sessions", "", ""),
    ranker("sessions, fixed", FIXED, f"factors.Factors({FIXED})"),
    ranker(
        "sessions, short window",
        f"{FIXED}, window=3, dropout=0, patience=1, validation_fraction=0.1",
        f"factors.Factors({FIXED}, dropout=0, patience=1), base=sessions.Blend(window=20), window=3, "
        "validation_fraction=0.1",
    ),
    ranker(
        "sessions, no base",
        f'{FIXED}, base=None, loss="auc", batch_size=100',
        f'factors.Factors({FIXED}, loss="auc", engine=factors.Blocked(batch_size=100)), base=None',
    ),
    ranker("sessions, searched, no base", "base=None", "base=None"),
    ranker(
        "sessions, on neighbors",
        f"{FIXED}, alpha=2.0, base=SessionNeighbors(k=20)",
        f"factors.Factors({FIXED}, loss=factors.Warp(2.0)), base=SessionNeighbors(k=20)",
    ),
    ranker(
        "sessions, on counts",
        f"{FIXED}, base=CooccurrenceRanker(5)",
        f"factors.Factors({FIXED}), base=SessionCooccurrence(5)",
    ),
    ranker(
        "sessions, none held out", f"{FIXED}, validation_fraction=0", f"factors.Factors({FIXED}), validation_fraction=0"
    ),
    ranker("sessions, features", FIXED, f"factors.Factors({FIXED})", featured),
    ranker("sessions, features, no base", f"{FIXED}, base=None", f"factors.Factors({FIXED}), base=None", featured),
    ranker("sessions, further", FIXED, f"factors.Factors({FIXED})", small_grow),
    ranker("sessions, partial fits", FIXED, f"factors.Factors({FIXED})", first),
    ranker("baskets", f"{FIXED}, window=None", f"factors.Factors({FIXED}), base=None, window=None", baskets),
    ranker("baskets, searched", "window=None", "base=None, window=None", baskets),
    ranker(
        "baskets on a blend",
        f"{FIXED}, window=None, base=SessionBlend()",
        f"factors.Factors({FIXED}), window=None",
        baskets,
    ),
    Case(
        "sessions, stages",
        "LatentRanker(stages=2)",
        None,
        small,
        why="stages on sessions raised recall by .1 at most; they remain for ids and features",
    ),
]
