"""The AUC oracle for graded lists: every pair of items of different grade is to stand in the order of the grades.

    hinge = (1 / pairs) sum over pairs with grade_i > grade_j of  max(0, 1 - 2 (s_i - s_j))

The most violated ranking decides each pair by itself: misordered where ``s_i - s_j < 1/2``. With two grades this is
the AUC oracle of :mod:`slatewise.metric_learning.interleave`; with more it is what a ranking SVM minimizes, its pairs
weighed so that each list counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass

from slatewise.core.arrays import Floats, Ints


@dataclass(frozen=True)
class OrderedPairs:
    """Judge each pair of different grades by itself."""

    def most_violated_block(
        self, scores: Floats, relevance: Ints, offsets: Ints, losses: Floats, weights: Floats
    ) -> None:
        """Fill the loss of each list's most violated ranking, and what each item's score weighs in the hinge.

        ``relevance`` are whole numbers from 0, the grades.
        """
        from slatewise.metric_learning.kernels.ordered_pairs import ordered_pairs_block

        ordered_pairs_block(scores, relevance, offsets, losses, weights)
