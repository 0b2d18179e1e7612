"""Rankers of labels: names of labels, known labels, answers by sets of labels, and their score.

    f(t) = sum_i t_i s_i(x) + sum over pairs with a core label of t_i t_j G_ij

for a set t of labels. A subclass learns s and G, and names the predictor that answers with them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import require_in_range
from slatewise.core.declarations import learned
from slatewise.core.numerics.result import Fit
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.cstar.answers import Explanation, Predictor, ScoredRows, explain_selection, top_k_unknown_count
from slatewise.cstar.inference.model import StarPair, checked_known
from slatewise.cstar.rows import LabelTable
from slatewise.data.labels import known_like, labels_like, separator_for
from slatewise.estimators.base import Estimator
from slatewise.estimators.sklearn import check_is_fitted, check_weights, say_multi_label
from slatewise.persistence.file import ModelCard

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

Margins: TypeAlias = Callable[..., Floats]
"""A function of (s, pair, core, k, known), such as :func:`slatewise.cstar.inference.best_set.star_margins`."""

CORE = rules.count(0) | rules.vector("label numbers", 0, whole=True, empty=True) | rules.LISTED_NAMES
"""The number of core labels, or which."""


class StarRanker(Estimator):
    """A ranker of labels by the best, or the most probable, sets of labels."""

    if TYPE_CHECKING:
        n_jobs: int | None  # a parameter of the subclasses, which has its place in their signatures

    core_: Ints = learned(rules.whole_array(1), "The core labels, by number.", shape=("core_",))
    pair_: Floats = learned(
        rules.learned_array(2), "The pair terms G, one row per core label.", shape=("core_", "label_names_")
    )
    intercept_: Floats = learned(
        rules.learned_array(1), "What is added to the score of each label.", shape=("label_names_",)
    )
    label_names_: NDArray[Any] = learned(
        rules.NAMES | rules.CLASSES,
        """The names of the labels in every answer, and of the columns of ``predict`` and ``decision_function``: the
        columns of a data frame, the names in y, ``label_names`` or the classes; else their numbers.""",
        shape=("label_names_",),
    )
    multilabel_: bool = learned(rules.BOOLEAN, "Whether a row may have several labels: False for one class per row.")
    k_: int = learned(
        rules.count(), "The rounded mean number of labels of a training row: the length of a list by default."
    )
    C_: float = learned(
        rules.POSITIVE,
        'The given or chosen C. Absent if ``C="auto"`` left given scores as they are.',
        optional=True,
    )
    C_pair_: float = learned(rules.POSITIVE, "The same for the pair terms.", optional=True)
    objective_: float = learned(rules.ANY_NUMBER, "The objective of the Notes at the learned parameters.")
    lower_bound_: float = learned(rules.ANY_NUMBER, "The certificate: no parameters have an objective below it.")
    n_iter_: int = learned(rules.count(0), "The number of epochs, rounds or passes.")
    n_skipped_: int = learned(
        rules.count(0), "The number of rows that were left out: without weight, or without a label to learn from."
    )
    _separator: str = learned(rules.TEXT, "", saved=False)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes if fit saw one class per row, else the numbers of the labels, as scikit-learn has it."""
        return np.arange(len(self.label_names_)) if self.multilabel_ else self.label_names_

    # --- answers -----------------------------------------------------------------------------------------------------

    def label_scores(self, X: ArrayLike | Sparse) -> Floats:
        """Return the unary scores s of each label, (n, n_labels): the model without its pair terms.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.ascontiguousarray(self._unary_scores(X))
        require_in_range("the scores of X", scores)
        return scores

    def decision_function(
        self, X: ArrayLike | Sparse, k: ArrayLike | None = None, known: ArrayLike | None = None
    ) -> Floats:
        """Return, for each row and label, how much it belongs in, as the Notes of the class say; > 0: rather in.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            The number of labels of a row, or one number per row, if it is known.
        known
            (n, n_labels): 1 yes, 0 no, -1 unknown; labels that are decided get +inf or -inf. By name: one mapping per
            row, ``{"sky": 1, "sea": 0}``, one set of names per row, which are yes, or a data frame; labels that are not
            mentioned are unknown. More than k labels known to apply are an error.
        """
        rows = self._rows(X, k, known)
        return self._predictor().margins(rows, Executor.of(self.n_jobs))

    def rank(self, X: ArrayLike | Sparse, k: ArrayLike | None = None, known: ArrayLike | None = None) -> Rankings:
        """Return labels of each row, best first, as the Notes of the class say.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            The number of labels to list, or one number per row; default ``k_``.
        known
            As in :meth:`decision_function`.
        """
        rows = self._rows(X, k, known)
        lists = self._predictor().top_k(rows, Executor.of(self.n_jobs))
        offsets = np.concatenate(([0], np.cumsum(lists.counts)))
        names = self.label_names_[lists.items]
        return Rankings.of_lists(np.arange(len(lists.counts)), names, lists.scores, offsets)

    def explain(self, X: ArrayLike | Sparse, k: int | None = None, known: ArrayLike | None = None) -> Explanation:
        """Return, for the labels that :meth:`rank` lists, their unary scores and what each core label added.

        If lists differ in length, because labels are known not to apply, all are cut to the shortest.

        Parameters
        ----------
        X, k, known
            As in :meth:`rank`.
        """
        rows = self._rows(X, k, known)
        lists = self._predictor().top_k(rows, Executor.of(self.n_jobs))
        shortest = int(lists.counts.min(initial=len(self.label_names_))) if len(lists.counts) else 0
        first = np.cumsum(lists.counts) - lists.counts
        selected = lists.items[first[:, None] + np.arange(shortest)]
        why = explain_selection(rows.scores, self.pair_, self.core_, selected)
        return replace(why, labels=self.label_names_[why.labels], core=self.label_names_[why.core])

    def next_question(self, X: ArrayLike | Sparse, known: ArrayLike, k: ArrayLike | None = None) -> Ints:
        """Return the label of each row to ask an annotator for next, -1 if the answers decide all of them.

        It is the label whose :meth:`decision_function` is closest to 0: the least certain one.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        known, k
            The answers so far, and the number of labels, as in :meth:`decision_function`.
        """
        distance = np.abs(self.decision_function(X, k, known))
        question = np.argmin(distance, axis=1).astype(np.int64)
        # A label that is known, or that the answers already decide, has an infinite margin.
        return np.where(np.isfinite(distance.min(axis=1)), question, -1)

    def score(
        self,
        X: ArrayLike | Sparse,
        y: Any,
        sample_weight: ArrayLike | None = None,
        separator: str | None = None,
        count_known: bool = True,
    ) -> float:
        """Return the break-even precision: that of the first n labels of a row with n. Empty rows are skipped.

        Parameters
        ----------
        X, y
            As in :meth:`fit`, with all labels known. Names, and columns of a data frame, are those of fit in any order.
        sample_weight
            One weight >= 0 per row.
        separator
            As in :meth:`fit`; default: that of fit, unless y is in another form than texts.
        count_known
            Whether the model uses the number of labels of each row, as in the paper, before it ranks them.
        """
        rows = self._rows(X, None, None)
        classes = None if self.multilabel_ else self.label_names_
        separator = separator or separator_for(y, vars(self).get("_separator"))
        labels = labels_like(y, len(rows.scores), self.label_names_, classes, separator)
        weight = check_weights(sample_weight, len(labels)) * (labels.sum(axis=1) > 0)
        require_in_range("sample_weight", weight)
        if not weight.any():
            raise ValueError("y: expected a row of weight > 0 with a relevant label, found none")
        counts = labels.sum(axis=1).astype(np.int64)
        executor, predictor = Executor.of(self.n_jobs), self._predictor()
        if count_known:
            chosen = predictor.top_k_known_count(rows, counts, executor)
        else:
            chosen = top_k_unknown_count(predictor, rows, counts, executor)
        owners = np.repeat(np.arange(len(labels)), counts)
        hits = np.bincount(owners, labels[owners, chosen], len(labels)) / np.maximum(counts, 1)
        return float(np.average(hits, weights=weight))

    @property
    @abstractmethod
    def label_margins(self) -> Margins:
        """How :meth:`decision_function` follows from label scores, ``pair_`` and ``core_``; for labeling."""

    @property
    @abstractmethod
    def needs_count(self) -> bool:
        """Whether ``label_margins`` needs the number of labels of a row."""

    # --- parts -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _unary_scores(self, X: ArrayLike | Sparse) -> Floats:
        """Return the scores s of each label."""

    @abstractmethod
    def _predictor(self) -> Predictor: ...

    def _rows(self, X: ArrayLike | Sparse, k: ArrayLike | None, known: ArrayLike | None) -> ScoredRows:
        """Return rows for a predictor: label scores, pair terms, and what the caller knows."""
        scores = self.label_scores(X)
        # Copied: the arrays of a mapped file are read-only, for which the kernels would be compiled anew.
        pair = StarPair.from_symmetric(self.pair_.copy(), self.core_.copy())
        answers = checked_known(known_like(known, len(scores), self.label_names_), scores.shape)
        return ScoredRows(scores, pair, k, answers)

    def _of_flags(self, flags: NDArray[np.bool_]) -> NDArray[Any]:
        """Return selected labels as 0/1 rows, or the class of each row."""
        return flags.astype(np.int64) if self.multilabel_ else self.label_names_[flags.argmax(axis=1)]

    def _begin(self, labels: LabelTable, separator: str | None, is_useful: NDArray[np.bool_], n_skipped: int) -> None:
        """Refuse rows without a useful one; forget the last fit, and keep what the labels are called."""
        if not is_useful.any():
            raise ValueError("y: expected a row with a relevant label, found none whose sample_weight is not zero")
        for name in (*self._optional, "_separator"):
            vars(self).pop(name, None)
        self._settle_seed()
        self.n_skipped_, self.label_names_, self.multilabel_ = n_skipped, labels.names, labels.classes is None
        if separator is not None:
            self._separator = separator

    def _finish(self, fit: Fit, core: Ints, C: float, C_pair: float, card: ModelCard) -> Self:
        """Keep what both rankers learn beside their terms."""
        self.core_ = core
        if C > 0.0:
            self.C_, self.C_pair_ = C, C_pair
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.n_iter_ = fit.history[-1].round if fit.history else 0
        certificate = {"objective": self.objective_, "lower_bound": self.lower_bound_}
        self.model_card_ = replace(card, **certificate, converged=fit.converged)
        return self

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        StarPair.of(self.pair_, self.core_)
        n_labels, names = len(self.label_names_), self.label_names_
        if self.k_ > (n_labels if self.multilabel_ else 1):
            expected = f"a number from 1 to {n_labels}" if self.multilabel_ else "1 with one class per row"
            raise ValueError(f"k_: expected {expected}, found {self.k_}")
        if not self.multilabel_:
            rules.CLASSES.check("label_names_", names)
        elif not np.array_equal(names, np.arange(n_labels)) and (
            names.dtype.kind != "U" or len(np.unique(names)) < n_labels
        ):
            raise ValueError(f"label_names_: expected {n_labels} different strings, or numbers from 0")

    def __sklearn_tags__(self) -> Any:
        """Say that y is needed, and may have several labels per row."""
        return say_multi_label(super().__sklearn_tags__())
