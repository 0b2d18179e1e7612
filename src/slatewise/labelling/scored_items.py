"""What a model says of every item before anybody answers: computed once per version, cut to a row for every question.

Without a model labels are as likely as they were found so far:

    p_i = (yes_i + 2 m) / (yes_i + no_i + 2) ,      m the share of yes among all answers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.cstar.answering import set_log_odds
from slatewise.labelling.item_data import ItemData
from slatewise.labelling.rows import Floats, GivenLogOdds, Ints, LabelRanker, LabelRows
from slatewise.labelling.stopping import StoppingRule, rows_of_sets

Basis: TypeAlias = Literal["model", "scores", "frequency"]
"""Who says how likely labels are: a model, scores from elsewhere, or nobody: how often labels were found."""


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """All items as one version of the model sees them."""

    rows: LabelRows
    basis: Basis
    version: int | None = None
    rule: StoppingRule = field(default_factory=StoppingRule)

    @classmethod
    def by_model(cls, model: LabelRanker, data: ItemData, labels: Ints, others: Floats) -> ScoredItems:
        """Score items by a model whose columns are the labels with these numbers.

        Of labels that the model does not know, which were added after it was trained, ``others`` (all labels,) says how
        likely they are.
        """
        known = rows_of_sets(model, cast("ArrayLike", data.X))  # which may be sparse
        scores = np.empty((len(known.scores), len(others)))
        scores[:] = others
        scores[:, labels] = known.scores
        pair = np.zeros((len(model.core_), len(others)))
        pair[:, labels] = model.pair_
        return cls(replace(known, scores=scores, pair=pair, core=labels[model.core_]), "model")

    @classmethod
    def by_scores(cls, log_odds: Floats) -> ScoredItems:
        """Take the log-odds of labels as they are given."""
        return cls(LabelRows.of(GivenLogOdds(log_odds.shape[1]), log_odds, None), "scores")

    @classmethod
    def by_frequency(cls, yes: Ints, no: Ints, n_items: int) -> ScoredItems:
        """Take every label to be as likely in all items as it was found so far."""
        rows = np.broadcast_to(frequency_log_odds(yes, no), (n_items, len(yes)))
        return cls(LabelRows.of(GivenLogOdds(len(yes)), rows, None), "frequency")


def frequency_log_odds(yes: Ints, no: Ints) -> Floats:
    """Return the log-odds of labels that were found so often.

    Examples
    --------
    >>> frequency_log_odds(np.array([3, 0, 0]), np.array([0, 3, 0])).round(2)
    array([ 1.39, -1.39,  0.  ])
    """
    n_yes, n_no = int(yes.sum()), int(no.sum())
    share = (n_yes + 1.0) / (n_yes + n_no + 2.0)
    return np.log(yes + 2.0 * share) - np.log(no + 2.0 * (1.0 - share))


@dataclass(frozen=True, eq=False)
class GivenStar:
    """A ranker for scores and pair terms that are there already: X is the (n, N) matrix of label scores."""

    pair_: Floats
    core_: Ints

    @classmethod
    def of(cls, rows: LabelRows) -> GivenStar:
        """Take the pair terms of rows."""
        return cls(rows.pair, rows.core)

    def label_scores(self, X: ArrayLike) -> Floats:
        """Return the scores as they are."""
        return np.asarray(X, dtype=np.float64)

    @property
    def label_margins(self) -> Callable[..., Floats]:
        """The log-odds, where k is not told."""
        return set_log_odds

    @property
    def needs_count(self) -> bool:
        """It may be told."""
        return False
