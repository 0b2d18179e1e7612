"""Terms for a known number of labels: their objective by enumeration, when there are none, and their file."""

from itertools import product

import numpy as np
import pytest
from tests.fuzz.models.alter import put_together, taken_apart

from slatewise import CStarRanker, datasets, load
from slatewise.core.errors import ModelFileError
from slatewise.core.running.executor import ONE_THREAD
from slatewise.cstar.likelihood.fit import Settings, fit_known_count, has_known_count_terms
from slatewise.labeling import LabelRows

N, CORE = 5, np.array([3, 1])


@pytest.fixture(scope="module")
def scenes():
    return datasets.make_label_scenes(120, n_labels=6, n_groups=1, random_state=1)


@pytest.fixture(scope="module")
def ranker(scenes):
    return CStarRanker(core=2, C=0.3).fit(scenes.X, scenes.Y)


def objective(given, known, coef, shift, pair, C):
    """1/2 |w|^2 minus C times the log-likelihood of every row's set among the sets of as many labels, one by one."""
    sets = np.array(list(product((0, 1), repeat=N)))
    once = pair.copy()
    once[1, CORE[0]] = 0.0  # the pair of both core labels stands twice
    energy = np.einsum("tc,cj,tj->t", sets[:, CORE], once, sets)
    value = 0.5 * (((coef - 1) ** 2).sum() + (shift**2).sum() + (once**2).sum())
    for scores, row in zip(coef * given + shift, known, strict=True):
        same = sets.sum(axis=1) == row.sum()
        f = sets @ scores + energy
        value -= C * (f[(sets == row).all(axis=1)][0] - np.log(np.exp(f[same]).sum()))
    return value


def test_nothing_near_is_better_given_the_number_of_labels():
    rng = np.random.default_rng(0)
    given, known = rng.normal(size=(40, N)), (rng.random((40, N)) < 0.4).astype(np.int8)
    start = rng.normal(scale=0.1, size=4 * N)  # the terms of sets of any size, which need not be the best ones here
    start[2 * N :].reshape(2, N)[:, CORE] = 0.0
    settings = Settings(C=0.7, rho=1.0, tol=1e-9, max_iter=500, random_state=0)
    terms = fit_known_count(given, known, np.ones(40), CORE, settings, ONE_THREAD, start)
    coef = terms.slope * (1.0 + start[:N])
    shift = terms.slope * start[N : 2 * N] + terms.shift
    some = known.any(axis=1)
    best = objective(given[some], known[some], coef, shift, terms.pair, 0.7)
    for _ in range(30):
        a, v, G = (rng.normal(scale=0.02, size=term.shape) for term in (coef, shift, terms.pair))
        G[1, CORE[0]] = G[0, CORE[1]]
        G[0, CORE[0]] = G[1, CORE[1]] = 0.0
        assert objective(given[some], known[some], coef + a, shift + v, terms.pair + G, 0.7) > best


def test_labeling_and_answers_use_the_same_terms(scenes, ranker):
    rows, nothing = LabelRows.of(ranker, scenes.X[:9], 2), np.full((9, 6), -1, dtype=np.int8)
    np.testing.assert_allclose(rows.margins(nothing), ranker.decision_function(scenes.X[:9], k=2))
    without_k = LabelRows.of(ranker, scenes.X[:9], None)
    np.testing.assert_allclose(without_k.margins(nothing), ranker.decision_function(scenes.X[:9]))
    assert np.isfinite(rows.without_pairs().margins(nothing)).all()


@pytest.mark.parametrize(
    "known",
    [np.full((3, 2), -1), [[1, -1], [1, 0]], np.ones((4, 11)), np.zeros((2, 3)), np.eye(1001)],
)
def test_there_are_no_terms_if_they_are_expensive_or_useless(known):
    known = np.array(known, dtype=np.int8)
    assert not has_known_count_terms(known, np.ones(len(known)))


def test_a_fit_on_one_class_per_row_has_none(scenes):
    ranker = CStarRanker(core=1, C=0.3).fit(scenes.X, scenes.Y)
    assert ranker.known_count_terms_.shape == (3, 6)
    assert not hasattr(ranker.fit(scenes.X, np.arange(120) % 3), "known_count_terms_")


def test_the_file_keeps_them(scenes, ranker, tmp_path):
    ranker.save(tmp_path / "model")
    same = load(tmp_path / "model")
    np.testing.assert_array_equal(same.decision_function(scenes.X, k=2), ranker.decision_function(scenes.X, k=2))


@pytest.mark.parametrize("shape", [(1, 6), (2, 6), (4, 5), (5, 6)])
def test_terms_of_another_shape_are_refused(ranker, tmp_path, shape):
    ranker.save(tmp_path / "model")
    parts = taken_apart((tmp_path / "model").read_bytes())
    parts.tensors["known_count_terms_"] = np.zeros(shape)
    (tmp_path / "hostile").write_bytes(put_together(parts))
    with pytest.raises(ModelFileError, match="known_count_terms_: expected"):
        load(tmp_path / "hostile")
