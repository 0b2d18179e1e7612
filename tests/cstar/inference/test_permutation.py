"""c-star over whole rankings against all rankings."""

import numpy as np
import pytest
from tests import bruteforce

from slatewise.inference import star_permutation


@pytest.mark.parametrize("n_core", [0, 1, 2, 3])
def test_every_ranking(n_core):
    rng = np.random.default_rng(n_core)
    for n_items in (3, 5):
        G = np.triu(rng.normal(size=(n_items, n_items)), 1)
        core = rng.permutation(n_items)[:n_core]
        pair = (G + G.T)[core]
        s, c, linear = rng.normal(size=n_items), rng.random(n_items), rng.normal(size=(n_items, n_items))
        full = bruteforce.star_matrix(pair, core, n_items)

        def score(order, s=s, c=c, linear=linear, full=full):
            t = np.empty(len(order))
            t[order] = c
            return s @ t + t @ np.triu(full, 1) @ t + sum(linear[item, r] for r, item in enumerate(order))

        found = star_permutation(s, c, pair, core, linear)
        assert found.score == pytest.approx(max(score(order) for order in bruteforce.all_rankings(n_items)))
        assert score(found.order) == pytest.approx(found.score)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="ways to place the core items, found 117600 for 3 of 50 items"):
        star_permutation(np.zeros(50), np.zeros(50), np.zeros((3, 50)), [0, 1, 2])
    with pytest.raises(ValueError, match=r"c: expected shape \(3,\), found \(2,\)"):
        star_permutation(np.zeros(3), np.zeros(2), np.zeros((1, 3)), [0])
    with pytest.raises(ValueError, match="c: expected finite numbers"):
        star_permutation(np.zeros(3), [0, np.nan, 1], np.zeros((1, 3)), [0])
