import numpy as np
import pytest
from scipy.optimize import linprog

from slatewise.core.numerics.lbfgs import minimize
from slatewise.core.numerics.result import ConvergenceWarning


class Distances:
    """sum |A w - b|: convex, with a kink at its minimum, and a count of how often it was asked."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.A, self.b, self.asked = rng.normal(size=(6, 4)), rng.normal(size=6), 0

    n_params = 4

    def value_and_grad(self, params):
        self.asked += 1
        away = self.A @ params - self.b
        return float(np.abs(away).sum()), self.A.T @ np.sign(away)


def test_a_kink_ends_the_search_with_a_warning_instead_of_hundreds_of_evaluations():
    objective = Distances()
    with pytest.warns(ConvergenceWarning):
        fit = minimize(objective, 1e-6, np.zeros(4), tol=1e-3)
    assert not fit.converged
    assert objective.asked < 250  # 346 without the rule
    A, b = objective.A, objective.b
    bounds, ones = [(None, None)] * 4 + [(0, None)] * 6, np.eye(6)
    best = linprog(np.r_[np.zeros(4), np.ones(6)], np.block([[A, -ones], [-A, -ones]]), np.r_[b, -b], bounds=bounds).fun
    assert best <= fit.objective <= 1.01 * best
