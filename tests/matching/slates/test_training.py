"""Strengths and repeats of the ranker by matchings, on problems whose answers are known."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from slatewise.core.groups import mean_within_list_variance
from slatewise.core.numerics.result import Fit, Round
from slatewise.matching.slates.slates import RatedLists
from slatewise.matching.slates.training import STRENGTHS, averaged_fit, choose_l2, held_out_path


@dataclass
class KnownProblem:
    """The loss of params[0] is its squared distance to a wanted strength; fit returns the strength itself."""

    wanted: float
    fitted: list = field(default_factory=list)

    def fit(self, l2, tol, max_iter, start=None, callback=None):
        self.fitted.append(l2)
        return Fit(np.array([l2, 1.0]), 2.0, 1.0, l2 < 0.5, (Round(1, 2.0, 1.0),))

    def loss(self, params):
        return abs(np.log(params[0] / self.wanted))


@pytest.fixture
def lists():
    X = np.zeros((12, 2))
    X[::2, 0] = 4.0  # two rows a list, 4 apart: each is 2 from the centre
    return RatedLists.of(X, np.tile([0.0, 1.0], 6), np.arange(0, 13, 2))


def test_spread_is_the_mean_squared_distance_from_the_centre(lists):
    assert mean_within_list_variance(lists.X, lists.offsets) == pytest.approx(4.0)
    assert mean_within_list_variance(np.full((2, 1), 0.1), np.array([0, 2])) == 0.0


def test_the_strength_with_the_smallest_loss_is_chosen(lists):
    assert choose_l2(lambda lists, rng: KnownProblem(4 * 0.03), lists, 0, 1e-3, 9) == pytest.approx(4 * 0.03)
    # Losses tie: the larger one is taken.
    flat = KnownProblem(1.0)
    flat.loss = lambda params: 1.0
    assert choose_l2(lambda lists, rng: flat, lists, 0, 1e-3, 9) == pytest.approx(4 * STRENGTHS[0])


def test_folds_never_share_a_list(lists):
    seen = []

    def make_problem(part, rng):
        seen.append(len(part))
        return KnownProblem(1.0)

    choose_l2(make_problem, lists, 0, 1e-3, 9)
    assert [a + b for a, b in zip(seen[::2], seen[1::2], strict=True)] == [6] * 5


def test_held_out_losses_and_parameters_follow_the_path(lists):
    path = held_out_path(lambda lists, rng: KnownProblem(0.1), lists, lists, [1.0, 0.1], 0, 1e-3, 9)
    assert [step.loss for step in path] == pytest.approx([np.log(10), 0.0])
    assert [step.found[0][0] for step in path] == [1.0, 0.1]


@dataclass
class Parabola:
    """The loss is half the squared distance to a target, so the minimum of every l2 is known."""

    target: np.ndarray

    def fit(self, l2, tol, max_iter, start=None, callback=None):
        params = self.target / (1 + l2)
        value = 0.5 * l2 * params @ params + self.loss(params)
        return Fit(params, value, value, l2 < 0.5, (Round(1, value, value),))

    def loss(self, params):
        return 0.5 * np.sum((params - self.target) ** 2)


def test_repeats_draw_anew_and_the_objective_is_that_of_their_mean(lists):
    drawn = []

    def make_problem(lists, rng):
        drawn.append(rng.normal(size=2))
        return Parabola(drawn[-1])

    fit = averaged_fit(make_problem, lists, 0.3, 3, 7, 1e-3, 10)
    targets = np.array(drawn)
    assert len(np.unique(targets, axis=0)) == 3
    mean = targets.mean(axis=0) / 1.3
    np.testing.assert_allclose(fit.params, mean)
    assert fit.objective == pytest.approx(0.15 * mean @ mean + 0.5 * np.mean(((mean - targets) ** 2).sum(axis=1)))
    assert fit.lower_bound == pytest.approx(0.5 * 0.3 / 1.3 * np.mean((targets**2).sum(axis=1)))
    assert fit.lower_bound < fit.objective
    assert fit.converged
    assert not averaged_fit(make_problem, lists, 0.9, 2, 7, 1e-3, 10).converged
