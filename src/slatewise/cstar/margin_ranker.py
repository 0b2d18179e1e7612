"""Rank labels that depend on each other, by the hinge of precision at k (Mensink, Verbeek, Caetano 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import require_in_range
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, seed_text, settings
from slatewise.core.running.executor import Executor, refuse_on_cluster
from slatewise.core.seeds import RandomState
from slatewise.cstar.answers import FixedSizePredictor, fit_label_count, mean_count, predict_label_count
from slatewise.cstar.inference.best_set import star_margins
from slatewise.cstar.inference.model import symmetric_pair
from slatewise.cstar.margin.solvers import SOLVERS, Settings
from slatewise.cstar.margin.training import Plan, TrainingRows, resumed_run, train
from slatewise.cstar.margin.unary import GivenScores, KernelScores, LabelScores, LinearScores, linear_scores
from slatewise.cstar.rows import (
    check_given_scores,
    core_of,
    read_label_table,
    refuse_beside_source,
    refuse_unknown,
    rows_in_files,
)
from slatewise.cstar.star_ranker import CORE, Margins, StarRanker
from slatewise.data.labels import merge_rows
from slatewise.data.row_source import RowSource
from slatewise.estimators.sklearn import check_is_fitted, check_rows, check_weights
from slatewise.kernels import Chi2, Intersection, Kernel, Precomputed, Rbf, check_basis, has_gamma, learned_kernel
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for


class CStarMarginRanker(StarRanker):
    """Rank the labels of a row jointly, trained for precision at k: the c-star of Mensink, Verbeek and Caetano.

    ``f(t) = sum_i t_i s_i(x) + sum over pairs with a core label of t_i t_j G_ij`` for a set t of k labels. s are linear
    in the features, a kernel machine, or given scores with a learned scale and shift. There are no probabilities, and
    answers need the number of labels: :class:`slatewise.CStarRanker` is the one to begin with.

    Notes
    -----
    Training minimizes, over the weights of features W and of pairs G,

    ``1/2 (|W|^2 + C / C_pair |G|^2) + C mean over rows of hinge`` ,

    and rows count by ``sample_weight``. Columns of features have mean 0 and variance 1; a kernel is divided by its mean
    value of a row with itself (1 for rbf and chi2); given scores are divided by their spread. So a change of units of X
    changes neither the fit nor what C means; ``coef_`` applies to X as given. The objective is that of features in
    these units. With a fixed k the certificate is that of the last convex problem.

    ``decision_function`` returns the best score with the label in minus the best with it out, among sets of k labels,
    ``k_`` by default. ``rank`` lists the k labels of the best set, each scored by how much the best score falls without
    it. With more than 16 core labels a best score may be the best found within a node limit: then an
    :class:`~slatewise.inference.UnprovenWarning` says so, and :func:`~slatewise.inference.star_max_marginals` on
    ``label_scores``, ``pair_`` and ``core_`` gives the bounds.

    A label that is never relevant in training stays selectable; training pushes it down like any other wrong label.

    Examples
    --------
    >>> from slatewise import CStarMarginRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarMarginRanker(C=1.0).fit(scenes.X[:200], scenes.Y[:200])
    >>> ranker.rank(scenes.X[200:], k=3).ids.shape
    (100, 3)
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    unary: str | Kernel = param(
        settings(Rbf, Chi2, Intersection, Precomputed) | rules.one_of("linear", "scores"),
        """How single labels are scored: linearly, or by a kernel machine ("precomputed": X is the kernel matrix, rows
        against training rows). "scores": X is the (n, n_labels) matrix of given scores, by models that were not trained
        on its rows.""",
        default="linear",
        kw_only=False,
    )
    core: int | Sequence[str] | ArrayLike = param(
        CORE,
        """The number of labels that interact with all others (all, if there are fewer), or which, by number or name. 0:
        independent labels.""",
        default=5,
    )
    core_selection: Literal["information", "gain"] = param(
        rules.one_of("information", "gain"),
        """How a number of core labels is chosen: greedily by joint mutual information with all others, or by the gain
        in break-even precision on inner folds, which is slower and may end with fewer.""",
        default="information",
    )
    k: Literal["relevant"] | int = param(
        rules.count() | rules.one_of("relevant"),
        """The number of labels selected in training: as many as are relevant (break-even precision, convex), or a fixed
        number.""",
        default="relevant",
    )
    C: float | Literal["auto"] = param(
        rules.POSITIVE | rules.one_of("auto"),
        'Weight of the mean hinge against the regularizer. "auto": by inner validation, together with ``C_pair``.',
        default="auto",
    )
    C_pair: float | None = param(
        rules.POSITIVE | rules.NONE, "The same for the pair terms, with a number as C. None: C.", default=None
    )
    solver: Literal["bcfw", "bundle", "subgradient"] = param(
        rules.one_of(*SOLVERS),
        "Block-coordinate Frank-Wolfe, cutting planes, or subgradient steps; the first two certify their result.",
        default="bcfw",
    )
    tol: float = param(rules.NOT_NEGATIVE, "Relative duality gap at which training ends.", default=1e-3)
    max_iter: int = param(
        rules.count(), "The maximum number of epochs (bcfw), rounds (bundle) or passes (subgradient).", default=500
    )
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(
        rules.SEED, seed_text("Of the order of the rows in training, and of the folds."), default=None
    )

    coef_: Floats = learned(
        rules.learned_array(1) | rules.learned_array(2),
        """Weights of features or of kernels with ``basis_``, one row per label; what given scores are multiplied by,
        one number per label. For X as it was given.""",
        shape=("label_names_", "width"),
    )
    basis_: NDArray[Any] = learned(
        rules.learned_array(2) | rules.whole_array(1),
        "The training rows that a kernel compares with; their numbers if X is the kernel matrix.",
        optional=True,
    )
    gamma_: float = learned(rules.LEARNED_POSITIVE, "The given or learned gamma of the kernel.", optional=True)
    count_coef_: Floats = learned(
        rules.learned_array(1), "What ``predict_count`` weighs the sorted label scores by, and an intercept."
    )

    def fit(
        self,
        X: ArrayLike | RowSource,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        label_names: Sequence[str] | NDArray[np.str_] | None = None,
        separator: str | None = None,
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from rows with sets of labels.

        Parameters
        ----------
        X
            Features, given scores or a kernel matrix, as ``unary`` says. Features of ``unary="linear"`` may be a
            :func:`slatewise.cluster.source`, which names the labels too.
        y
            (n, n_labels) 0/1: an array, a data frame, whose columns name the labels, or sparse. Or names: a list, tuple
            or set of strings per row, empty for a row without labels; or one text per row, cut at ``separator``. Or one
            class per row, which is encoded one-hot. All labels must be known. Rows without a label are left out, unless
            k is fixed.
        sample_weight
            One weight >= 0 per row.
        label_names
            The names of the labels; default: the columns of a data frame with string names, the names in y in order,
            else their numbers. With names in y: all possible ones.
        separator
            What stands between the names of a row, as in ``"sky|sea"``; an empty text is a row without labels.
        callbacks
            Functions to call with a :class:`slatewise.core.numerics.result.Round` whenever the gap is certified.
        checkpoint
            A file that keeps the state of bcfw (not with a fixed k), or what the bundle computed so far. If it is
            there, and of the same data and settings, fit goes on from it and ends with the same bits as if it had never
            stopped. At the end the file is removed.
        """
        self._check_together(checkpoint)
        if isinstance(X, RowSource):
            refuse_beside_source(
                {"y": y, "sample_weight": sample_weight, "label_names": label_names, "separator": separator}
            )
            return self._fit_source(X, callbacks, checkpoint)
        rows = check_rows(self, X, reset=True).astype(np.float64)
        if self.unary != "linear":
            require_in_range("X", rows)
        weight = check_weights(sample_weight, len(rows))
        require_in_range("sample_weight", weight)
        labels = read_label_table(y, len(rows), label_names, separator)
        known, core = labels.known, core_of(self.core, labels.names)
        refuse_unknown(known)
        if self.unary == "scores":
            check_given_scores(rows, *known.shape)
        n_labels, has_fixed_k = known.shape[1], not isinstance(self.k, str)
        if has_fixed_k and int(self.k) > n_labels:
            raise ValueError(f"k: expected 'relevant' or a number from 1 to {n_labels} labels, found {self.k!r}")
        used = (weight > 0) & (has_fixed_k | np.any(known > 0, axis=1))
        self._begin(labels, separator, used, int(len(used) - used.sum()))
        card = card_for(len(known), rows, known, weight)
        if isinstance(resolved(self, "unary"), Precomputed):  # whose basis are columns of the whole matrix
            training = TrainingRows(rows, known[used].astype(np.float64), weight[used], np.flatnonzero(used))
        else:
            rows, known, weight = merge_rows(rows[used], known[used], weight[used])
            training = TrainingRows(rows, known.astype(np.float64), weight)
        return self._learn(training, core, card, callbacks, checkpoint)

    def predict(self, X: ArrayLike, k: ArrayLike | None = None) -> NDArray[Any]:
        """Return the labels of the best set as 0/1 rows, or the class of each row if fit saw one class per row.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            The number of labels of each row; default ``k_``.
        """
        check_is_fitted(self)
        rows = self._rows(X, k if self.multilabel_ else None, None)
        return self._of_flags(self._predictor().chosen(rows, Executor.of(self.n_jobs)))

    def predict_count(self, X: ArrayLike) -> Ints:
        """Return the estimated number of labels of each row, by a regression on its sorted label scores.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        """
        return predict_label_count(self.label_scores(X), self.count_coef_)

    @property
    def label_margins(self) -> Margins:
        """How ``decision_function`` follows from label scores, ``pair_`` and ``core_``; for labeling."""
        return star_margins

    @property
    def needs_count(self) -> bool:
        """Whether ``label_margins`` needs the number of labels of a row: yes."""
        return True

    # --- parts -------------------------------------------------------------------------------------------------------

    def _check_together(self, checkpoint: Path) -> None:
        """Check the parameters, alone and together."""
        rules.check(self)
        if isinstance(self.C, str) and self.C_pair is not None:
            raise ValueError(f"C_pair: expected None with C='auto', which chooses it too, found {self.C_pair!r}")
        if self.solver != "bundle":
            refuse_on_cluster(f"solver={self.solver!r}", "solver='bundle', or CStarRanker")
        if checkpoint is not None and self.solver == "subgradient":
            raise ValueError(
                "checkpoint: expected None with solver='subgradient', whose state is not kept, found a path"
            )
        if checkpoint is not None and self.solver == "bcfw" and self.k != "relevant":
            raise ValueError("checkpoint: expected None with a fixed k unless solver is 'bundle', found a path")

    def _fit_source(self, source: RowSource, callbacks: Callbacks, checkpoint: Path) -> Self:
        """Learn from features that stay in their files; labels, which are small, are read."""
        required = {"unary": "linear", "solver": "bundle", "k": "relevant", "core_selection": "information"}
        for name, expected in required.items():
            if getattr(self, name) != expected:
                raise ValueError(f"{name}: expected {expected!r} with a source, found {getattr(self, name)!r}")
        if isinstance(self.C, str):
            raise ValueError("C: expected a number with a source, of which there are no folds, found 'auto'")
        executor = Executor.of(self.n_jobs)
        labels = read_label_table(source.labels(executor), source.n_rows, source.format.label_names)
        refuse_unknown(labels.known)
        core = core_of(self.core, labels.names)
        used = np.any(labels.known > 0, axis=1)
        self._begin(labels, None, used, int(len(used) - used.sum()))
        self.n_features_in_ = source.n_features
        found = rows_in_files(source, labels.known, used, executor)
        card = card_for(len(used), labels.known)
        card = replace(card, n_rows=len(used), data_sha256=source.sha256(found.digest))
        training = TrainingRows(found.features, labels.known[found.numbers].astype(np.float64), found.weight)
        return self._learn(training, core, card, callbacks, checkpoint)

    def _learn(
        self, rows: TrainingRows, core: int | Ints, card: ModelCard, callbacks: Callbacks, checkpoint: Path
    ) -> Self:
        """Train, and keep what was learned."""
        executor = Executor.of(self.n_jobs)
        plan = Plan(
            resolved(self, "unary"),
            min(core, rows.Y.shape[1]) if isinstance(core, int) else core,
            self.core_selection,
            self.k,
            self.C,
            self.C_pair,
            self.solver,
            Settings(1.0, 1.0, self.tol, self.max_iter, self.seed_),
        )
        found = train(rows, plan, resumed_run(self, card.data_sha256, callbacks, checkpoint), executor)
        self.coef_, self.intercept_ = found.unary.coefficients(found.W)
        self.pair_ = symmetric_pair(found.G, found.core)
        unary, X = found.unary.scores, rows.X if rows.numbers is None else rows.X[rows.numbers]
        if isinstance(unary, KernelScores):
            self.basis_ = unary.basis
            if has_gamma(plan.unary):
                self.gamma_ = float(cast("Any", unary.kernel).gamma)
        if isinstance(unary, LinearScores):
            scores = linear_scores(
                X, self.coef_, self.intercept_, executor.local if isinstance(X, np.ndarray) else executor
            )
        else:
            scores = unary.scores(cast("Floats", X), self.coef_, self.intercept_)
        self.count_coef_ = fit_label_count(scores, rows.Y.sum(axis=1), rows.weight)
        self.k_ = mean_count(rows.Y.astype(np.int8), rows.weight)
        return self._finish(found.fit, found.core, found.C, found.C / found.rho, card)

    def _unary_scores(self, X: Any) -> Floats:
        rows, unary = check_rows(self, X, reset=False).astype(np.float64), resolved(self, "unary")
        if isinstance(unary, str):
            scorer: LabelScores = LinearScores() if unary == "linear" else GivenScores()
        else:
            kernel = learned_kernel(unary, self.gamma_ if has_gamma(unary) else None)
            scorer = KernelScores(kernel, self.basis_)
        return scorer.scores(rows, self.coef_, self.intercept_)

    def _predictor(self) -> FixedSizePredictor:
        check_is_fitted(self)
        return FixedSizePredictor(self.k_ if self.multilabel_ else 1)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        unary, n_labels = resolved(self, "unary"), len(self.label_names_)
        is_kernel = not isinstance(unary, str)
        for name, expected in {"basis_": is_kernel, "gamma_": has_gamma(unary)}.items():
            if (name in vars(self)) != expected:
                raise ValueError(f"{name}: expected only with a kernel that has it, found unary={self.unary!r}")
        if is_kernel:
            check_basis(unary, self.basis_, self.n_features_in_)
        width = len(self.basis_) if is_kernel else self.n_features_in_
        shapes = {
            "coef_": (n_labels,) if unary == "scores" else (n_labels, width),
            "count_coef_": (n_labels + 1,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, found {getattr(self, name).shape}")
        if unary == "scores" and self.n_features_in_ != n_labels:
            raise ValueError(f"n_features_in_: expected {n_labels}, one given score per label, found other scores")
        if not isinstance(self.k, str) and int(self.k) > n_labels:
            raise ValueError(f"k: expected 'relevant' or a number from 1 to {n_labels} labels, found {self.k!r}")
