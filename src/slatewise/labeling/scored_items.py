"""What a model says of every item before anybody answers: computed once per version, cut to a row for every question.

Without a model labels are as likely as they were found so far:

    p_i = (yes_i + 2 m) / (yes_i + no_i + 2)

with m the share of labels that were found in items of which something is known: a label without answers is as likely as
that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.questions.rows import GivenLogOdds, LabelRanker, LabelRows
from slatewise.labeling.questions.stopping import StoppingRule, rows_of_sets
from slatewise.labeling.store.known_labels import KnownLabels

Basis: TypeAlias = Literal["model", "scores", "frequency"]
"""What says how likely labels are: a model, scores from elsewhere, or how often labels were found."""


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

        Labels that the model does not know, because they had no answers when it was trained, get the log-odds of the
        data, or else ``others`` (all labels,).
        """
        X = cast("Any", data.X)
        known = rows_of_sets(model, X if data.kind == "features" else X[:, labels])
        scores = np.empty((len(known.scores), len(others)))
        scores[:] = X if data.kind == "log-odds" else others
        scores[:, labels] = known.scores
        pair = np.zeros((len(model.core_), len(others)))
        pair[:, labels] = model.pair_
        return cls(replace(known, scores=scores, pair=pair, core=labels[model.core_]), "model")

    @classmethod
    def by_scores(cls, log_odds: Floats) -> ScoredItems:
        """Use given log-odds of labels."""
        return cls(LabelRows.of(GivenLogOdds(log_odds.shape[1]), log_odds, None), "scores")

    @classmethod
    def by_frequency(cls, known: KnownLabels) -> ScoredItems:
        """Score each label by its frequency in the answers so far, the same for all items."""
        rows = np.broadcast_to(frequency_log_odds(known.values), known.values.shape)
        return cls(LabelRows.of(GivenLogOdds(rows.shape[1]), rows, None), "frequency")


def frequency_log_odds(values: Bytes) -> Floats:
    """Return the log-odds of labels by how often they were found, of what is known (items, labels).

    Examples
    --------
    The first was found, the second was not, the third has no answers.

    >>> frequency_log_odds(np.array([[1, 0, -1], [1, 0, -1], [-1, -1, -1]])).round(2)
    array([ 0.79, -1.47, -0.51])
    """
    yes, no = (values == 1).sum(axis=0), (values == 0).sum(axis=0)
    share = (yes.sum() + 1.0) / ((values >= 0).any(axis=1).sum() * values.shape[1] + 2.0)
    return np.log(yes + 2.0 * share) - np.log(no + 2.0 * (1.0 - share))
