"""The likelihood of sets of any size against its definition, and its fits against a plain minimisation of that."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.running.executor import Executor
from slatewise.cstar.likelihood.fit import Settings, fit_any_size
from slatewise.cstar.likelihood.objective import AdjustedScores, AnySizeLikelihood

CORE = np.array([3, 1])
SETS = np.array(list(product([0.0, 1.0], repeat=5)))
SETTINGS = Settings(C=0.7, rho=2.0, tol=1e-6, max_iter=300, random_state=0)


def problem(seed, missing, n=14):
    """Rows that share what the log-odds do not say, some complete, some known in part, one not at all."""
    rng = np.random.default_rng(seed)
    known = (rng.normal(size=(n, 5)) + rng.normal(size=(n, 1)) > 0.4).astype(np.int8)
    hidden = (rng.random((n, 5)) < missing) & (np.arange(n) % 2 == 0)[:, None]
    known[hidden] = -1
    if missing:
        known[0] = -1
    return AnySizeLikelihood(AdjustedScores(rng.normal(size=(n, 5)), CORE), known, rng.uniform(0.5, 2.0, n))


def free(model):
    """Which parameters there are: not an item with itself, and a pair of core items once."""
    flags = np.ones(model.n_params, dtype=bool)
    G = model.unpack(flags)[2]
    for row in range(len(CORE)):
        G[row, CORE[: row + 1]] = False
    return flags


def slow_value(likelihood, params):
    """All sets of all rows."""
    a, v, G = likelihood.model.unpack(params)
    pairs = np.zeros((5, 5))
    for row, c in enumerate(CORE):
        for i in range(5):
            if i not in CORE[: row + 1]:
                pairs[c, i] += G[row, i]
    f = ((1 + a) * likelihood.model.given + v) @ SETS.T + np.einsum("ti,ij,tj->t", SETS, pairs, SETS)
    agree = ((likelihood.known[:, None] < 0) | (likelihood.known[:, None] == SETS)).all(axis=2)
    return likelihood.weight @ (logsumexp(f, axis=1) - logsumexp(np.where(agree, f, -np.inf), axis=1))


def penalised(likelihood, params):
    a, v, G = likelihood.model.unpack(params)
    norm = a @ a + v @ v + SETTINGS.rho * (G**2).sum()
    return 0.5 * norm + SETTINGS.C * slow_value(likelihood, params)


def fit(likelihood, executor=Executor(1), settings=SETTINGS, start=None):  # noqa: B008
    model = likelihood.model
    return fit_any_size(model.given, likelihood.known, likelihood.weight, CORE, settings, executor, start)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.5, 1.0])
def test_value_and_gradient_equal_the_definition(missing, seed):
    likelihood = problem(seed, missing)
    flags = free(likelihood.model)
    params = np.random.default_rng(seed).normal(size=likelihood.n_params) * flags
    value, gradient = likelihood.value_and_grad(params)
    assert value == pytest.approx(slow_value(likelihood, params), rel=1e-12)
    assert likelihood.value(params) == pytest.approx(value, rel=1e-12)
    numeric = approx_fprime(params, lambda p: slow_value(likelihood, p), 1e-6)
    np.testing.assert_allclose(gradient, numeric * flags, atol=1e-4)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_rows_by_chunks_say_the_same(monkeypatch, missing):
    likelihood = problem(1, missing)
    params = np.random.default_rng(0).normal(size=likelihood.n_params) * free(likelihood.model)
    value, gradient = likelihood.value_and_grad(params)
    monkeypatch.setattr("slatewise.cstar.likelihood.objective._ENTRIES", 17)  # three rows at a time
    chunked = problem(1, missing)
    found = chunked.value_and_grad(params)
    assert found[0] == pytest.approx(value, rel=1e-14)
    assert chunked.value(params) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(found[1], gradient, atol=1e-13)


def test_complete_rows_are_fitted_with_a_certificate():
    likelihood = problem(3, 0.0)
    found = fit(likelihood)
    plain = minimize(lambda p: penalised(likelihood, p), np.zeros(likelihood.n_params), method="BFGS")
    assert found.converged
    assert found.lower_bound <= plain.fun * (1 + 1e-9)
    assert found.objective == pytest.approx(plain.fun, rel=2e-6)
    assert found.objective == pytest.approx(penalised(likelihood, found.params), rel=1e-12)
    # P is strongly convex: so near to the best value, parameters are near to the best ones.
    assert np.linalg.norm(found.params - plain.x) < np.sqrt(2 * (found.objective - found.lower_bound)) + 1e-3
    again = fit(likelihood, start=found.params)
    assert len(again.history) == 1


def test_partly_known_rows_start_at_the_fit_of_the_complete_ones_and_prove_nothing():
    likelihood = problem(4, 0.5)
    complete = likelihood.rows(np.flatnonzero(likelihood.is_complete))
    start, rounds = fit(complete).params, []
    found = fit(likelihood, settings=Settings(**{**vars(SETTINGS), "callback": rounds.append}))
    assert found.converged
    assert found.lower_bound == -np.inf
    assert all(one.lower_bound == -np.inf for one in found.history)
    assert {one.lower_bound == -np.inf for one in rounds} == {False, True}
    assert found.objective < penalised(likelihood, start)
    plain = minimize(lambda p: penalised(likelihood, p), start, method="BFGS")
    assert found.objective == pytest.approx(plain.fun, rel=1e-5)


def test_rows_of_which_nothing_is_known_change_nothing():
    likelihood = problem(5, 0.5)
    found, without = fit(likelihood), fit(likelihood.rows(np.arange(1, 14)))
    assert found.params.tobytes() == without.params.tobytes()
    nothing = AnySizeLikelihood(likelihood.model, np.full_like(likelihood.known, -1), likelihood.weight)
    assert not fit(nothing).params.any()


def test_a_search_that_ends_early_says_so():
    short = Settings(**{**vars(SETTINGS), "max_iter": 1, "tol": 1e-12})
    with pytest.warns(ConvergenceWarning, match=r"certified gap|gradient is not yet small") as warned:
        assert not fit(problem(6, 0.5), settings=short).converged
    assert len(warned) == 2


def test_the_same_bits_with_one_and_two_threads():
    rng = np.random.default_rng(7)
    known = rng.integers(-1, 2, (150, 5)).astype(np.int8)
    given, weight, short = rng.normal(size=(150, 5)), np.ones(150), Settings(**{**vars(SETTINGS), "max_iter": 5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = (fit_any_size(given, known, weight, CORE, short, Executor(n)) for n in (1, 2))
    assert one.params.tobytes() == two.params.tobytes()
