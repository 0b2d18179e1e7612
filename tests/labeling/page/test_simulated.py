"""A simulated annotator at the page, by HTTP to a process of its own; the long version is a command."""

import numpy as np
from tests.labeling.page.simulated import compare, is_near_tie
from tests.labeling.scenes import X, Y, ranker

from slatewise.labeling import GivenLogOdds


def test_the_page_gives_the_figures_of_the_simulation(tmp_path):
    found = compare(ranker(), X, Y, tmp_path, questions=(0, 1, 3))
    assert (found.rows, found.same, found.near_ties, found.different) == (24, 24, 0, [])
    assert found.page == found.simulation
    assert found.requests == 24 * 4


def test_only_rounding_excuses_a_difference():
    tied = GivenLogOdds(3)
    for scores, excused in (
        ([[0.5, -0.5, 2.0]], True),
        ([[0.5, -0.5 + 1e-12, 2.0]], True),
        ([[0.5, -0.6, 2.0]], False),
    ):
        assert is_near_tie(tied, np.array(scores), np.zeros((1, 3)), 0, [1], np.array([0])) is excused
    assert not is_near_tie(tied, np.array([[0.5, -0.5, 2.0]]), np.zeros((1, 3)), 0, [0], np.array([0]))
