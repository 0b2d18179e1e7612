"""A measure as a scikit-learn scorer that asks for ``qid``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from slatewise.metrics.measure import Measure
from slatewise.metrics.presets import parse


class Predictor(Protocol):
    """What a scorer needs of an estimator."""

    def predict(self, X: ArrayLike, /) -> ArrayLike:
        """Return one score per row."""
        ...


@dataclass(frozen=True)
class ListScorer:
    """Call as ``scorer(estimator, X, y, qid=qid)``; larger is better, so mean rank is negated."""

    measure: Measure
    sign: float = 1.0

    def __call__(
        self,
        estimator: Predictor,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Score the estimator's predictions list by list, told by ``qid`` or by the lists' sizes."""
        if qid is None and group is None:
            raise ValueError(
                f"qid: the {self.measure.name} scorer needs the list of every row; pass qid, and under GridSearchCV "
                "and its like first call sklearn.set_config(enable_metadata_routing=True)"
            )
        return self.sign * self.measure(y, estimator.predict(X), qid, group=group)

    def get_metadata_routing(self) -> object:
        """Tell scikit-learn that ``qid`` belongs to this scorer."""
        # scikit-learn takes most of a second to import, and only its users get here.
        from sklearn.utils.metadata_routing import MetadataRequest

        request: Any = MetadataRequest(owner=self)  # its methods carry no types
        request.score.add_request(param="qid", alias=True)
        return request


def scorer(measure: Measure | str) -> ListScorer:
    """Make a scikit-learn scorer from a measure or its name.

    Examples
    --------
    >>> class Identity:
    ...     def predict(self, X):
    ...         return [row[0] for row in X]
    >>> scorer("mrr")(Identity(), [[3.0], [2.0], [1.0]], [0, 1, 0], qid=[7, 7, 7])
    0.5
    """
    chosen = parse(measure) if isinstance(measure, str) else measure
    return ListScorer(chosen, -1.0 if chosen.smaller_is_better else 1.0)
