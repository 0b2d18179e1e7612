"""Learn a distance by which the right items come first: metric learning to rank (McFee and Lanckriet 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, settings
from slatewise.core.numerics.result import Fit, NothingLearnedWarning, Round
from slatewise.core.numerics.row_kernels import RowKernel
from slatewise.core.rankings import Rankings
from slatewise.core.running.devices import gpu_of
from slatewise.core.running.executor import Executor, refuse_on_cluster
from slatewise.data.row_source import RowSource, StoredRows
from slatewise.estimators.base import Estimator
from slatewise.estimators.sklearn import Transforms, check_is_fitted, check_points
from slatewise.kernels import Chi2, Intersection, Precomputed, Rbf, check_basis, has_gamma, learned_kernel
from slatewise.losses.training import AUC, KNN, MAP, MRR, NDCG, Precision
from slatewise.metric_learning.distance import (
    LearnedDistance,
    is_sparse,
    mean_average_precision,
    nearest,
    squared_distances,
)
from slatewise.metric_learning.problem import REGULARIZERS, Task, TrainingData, top_ranks
from slatewise.metric_learning.relevance import ItemLabels, informative, read_lists
from slatewise.metric_learning.solver import Cuts, MetricSearch, fit_metric
from slatewise.persistence.checkpoint import Callbacks, Checkpoint, Path

NEXT_TO_NOTHING = 0.97
"""A lower bound above this share of the objective of W = 0 is a warning."""
ROUNDED = 1e-6
"""A mean loss above that of the Euclidean distance by no more than this may be rounding."""


class MetricRanker(Transforms, Estimator):
    """Learn a distance such that ranking by it puts relevant items first.

    ``F(W) = tr(W) + C * mean over queries of the hinge of a ranking loss``, W positive semidefinite: the hinge bounds
    the loss of ranking all items by ``(q - i)' W (q - i)``, and its maximum over rankings is found exactly. The minimum
    is certified: no W has an objective below ``lower_bound_``. If that is above .97 of the objective of W = 0, next to
    nothing can be learned, which is a warning.

    Which loss? For neighbors that vote, "precision", "ndcg", "knn" and "mrr" look at the first ranks only, and do not
    need a class to be one cluster; "auc" and "map" order whole lists, in few dimensions.

    Standardize the features first. Regularizers charge a feature by its unit, and where units differ by orders of
    magnitude training often runs all its passes without a certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from slatewise import MetricRanker
    >>> X, y = load_wine(return_X_y=True)
    >>> ranker = MetricRanker(loss="auc").fit(scale(X), y)
    >>> ranker.transform(scale(X)).shape
    (178, 2)
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    loss: str | AUC | Precision | MAP | MRR | NDCG | KNN = param(
        settings(AUC, Precision, MAP, MRR, NDCG, KNN),
        """What training minimizes; see :mod:`slatewise.losses` for the formulas. Without a ``threshold`` all items of
        relevance > 0 are relevant; "ndcg" tells grades apart: whole numbers g up to 127 with gain 2^g - 1.""",
        default="auc",
        kw_only=False,
    )
    C: float = param(
        rules.POSITIVE,
        "Weight of the hinge against the regularizer. Its scale depends on ``pairs``.",
        default=1.0,
    )
    regularizer: Literal["trace", "frobenius", "diagonal"] = param(
        rules.one_of(*REGULARIZERS),
        """tr(W), which favors few directions; half the sum of squares of W; tr(W) of a diagonal W, a weight per
        feature.""",
        default="trace",
    )
    kernel: str | Rbf | Chi2 | Intersection | Precomputed = param(
        rules.one_of("linear") | settings(Rbf, Chi2, Intersection, Precomputed),
        """Learn the distance between points, or between their images in the feature space of one of
        :mod:`slatewise.kernels`.""",
        default="linear",
    )
    n_components: int | None = param(
        rules.count() | rules.NONE,
        """The maximum number of dimensions that ``transform`` maps to. None: as many as the optimum has, which are few.
        The metric is first trained without a limit, then goes on from its largest eigenvalues among W of that rank
        (weights of that number of features, if W is diagonal). ``objective_`` is that of the W kept, ``lower_bound_``
        holds for W of any rank: their gap is proven, and contains what the limit costs.""",
        default=None,
    )
    targets: int | Literal["auto", "all"] = param(
        rules.count() | rules.one_of("auto", "all"),
        """Which of the relevant items must come first: all, or this number of those nearest to the query before
        learning (its target neighbors, as in large-margin nearest neighbors); the others are left out. With "all" every
        pair of a relevant and an irrelevant item counts, also far behind the first k, and classes that are not one
        cluster leave nothing to learn. "auto": if fit is given ``y``, k for "precision", "ndcg" and "knn" and 3 for
        "mrr"; else "all".""",
        default="auto",
    )
    pairs: Literal["top", "all"] = param(
        rules.one_of("top", "all"),
        """Over which number of pairs of a relevant and an irrelevant item ``psi``, by which scores enter the hinge, is
        a mean. "all" is the paper's: P N. "top": P min(b, N), where b irrelevant items in front lose what there is to
        lose: k for "precision" and "ndcg", half of k, rounded up, for "knn", 1 for "mrr" (N: the items of the lowest
        grade, if there are grades). A distance that lowers the loss is then as large, and costs as much, as with "auc"
        and "map", which are P N either way. With "all" it takes a C larger by N / b, with regularizer "frobenius" by
        (N / b)^2.""",
        default="top",
    )
    unlisted: Literal["irrelevant", "ignored"] = param(
        rules.one_of("irrelevant", "ignored"),
        """What items count that ``relevance`` does not store for a query. "ignored": a query ranks what it stores only,
        where an item of relevance <= 0 is irrelevant; ``relevance`` must be sparse then, as a dense one lists all.""",
        default="irrelevant",
    )
    tol: float = param(rules.POSITIVE, "Relative certified gap at which training ends.", default=1e-3)
    max_iter: int = param(rules.count(), "The maximum number of passes over the queries.", default=2000)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    device: str | None = param(
        rules.DEVICE,
        """"cuda": fit on a GPU (``pip install 'slatewise[gpu]'``): scores, and the sums over rankings, in float64 in
        tiles of queries, with the same bits in every run on one GPU. "auc" and "map" find the rankings there too, of
        scores rounded to 2^-30 of their range: cut and bound hold as they are, and the objective is checked against
        this rounding as against any other. Ranking is done on the CPU.""",
        default=None,
        saved=False,
    )

    components_: Floats = learned(
        rules.learned_array(2),
        """L with W = L'L: a low-rank map to where the learned distance is Euclidean. With a kernel, a map of the kernel
        values with ``basis_``.""",
        shape=("r", "w"),
    )
    catalogue_: Floats = learned(
        rules.learned_array(2), "The mapped rows of X, which ``rank`` returns the numbers of.", shape=("n", "r")
    )
    catalogue_labels_: NDArray[Any] = learned(
        rules.whole_array(1) | rules.whole_array(2, "int8"),
        """The number in ``classes_`` of each item's class, or the items' 0/1 labels. Only after a fit with ``y``.""",
        shape=("n", "l"),
        optional=True,
    )
    classes_: NDArray[Any] = learned(
        rules.CLASSES, "The classes of ``y`` in ascending order. Only after a fit with classes.", optional=True
    )
    basis_: NDArray[Any] = learned(
        rules.learned_array(2) | rules.whole_array(1),
        'The rows (with kernel "precomputed", the columns) that kernel values are taken with. Only with a kernel.',
        optional=True,
    )
    gamma_: float = learned(
        rules.LEARNED_POSITIVE, "gamma of the kernel, given or chosen. Only with a kernel that has one.", optional=True
    )
    objective_: float = learned(rules.ANY_NUMBER, "The objective of the learned W.")
    lower_bound_: float = learned(rules.ANY_NUMBER, "The certificate: no W has an objective below it.")
    n_iter_: int = learned(rules.count(0), "The number of passes over the queries.")
    n_skipped_: int = learned(
        rules.count(0),
        "The number of queries left out: without relevant or without irrelevant items, or of weight 0.",
    )

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        relevance: Any = None,
        queries: Any = None,
        query_weight: ArrayLike | None = None,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from rows with labels, or from queries with lists of relevant rows.

        Parameters
        ----------
        X
            (n, d) the items, dense or sparse; without ``queries`` every row is a query as well, and ranks all others.
        y
            One class per row, or (n, labels) of 0 and 1: rows are relevant to each other that share a label.
        relevance
            Instead of y, (queries, n), usually sparse: the relevance of the rows of X to each query.
        queries
            (queries, d) points that are queries but no items; with ``relevance`` only.
        query_weight
            One weight >= 0 per query. (It is not called ``sample_weight``: a row given twice is also one more item to
            be ranked, so weights of queries cannot stand for repeated rows.)
        callbacks
            Functions to call with a :class:`slatewise.core.numerics.result.Round` after every step.
        checkpoint
            A file that keeps the state after every step. If it is there, and of the same data and settings, fit goes on
            from it and ends with the same bits as if it had never stopped. At the end the file is removed.

        Returns
        -------
        self
        """
        data = self._validate(X, y, relevance, queries, query_weight)
        task = self._task(data)
        state = Checkpoint.of(self, data.card.data_sha256, checkpoint)
        with self._watched(callbacks) as tell:

            def report(round_: Round, search: MetricSearch) -> None:
                state.write(search.arrays())
                tell(round_)

            fit = fit_metric(
                task.problem,
                tol=self.tol,
                max_iter=self.max_iter,
                rank=self.n_components,
                resume=state.start(),
                callback=report,
            )
        state.remove()
        return self._keep(task, fit)

    def path(
        self,
        X: Any,
        y: Any = None,
        Cs: Iterable[float] = (0.1, 1.0, 10.0, 100.0),
        *,
        relevance: Any = None,
        queries: Any = None,
        query_weight: ArrayLike | None = None,
        callbacks: Callbacks = None,
    ) -> list[MetricRanker]:
        """Fit one ranker for each C; each starts from the one before and from all cuts so far, which hold for any C.

        Parameters
        ----------
        X, y, relevance, queries, query_weight, callbacks
            As in :meth:`fit`.
        Cs
            Numbers > 0, best in ascending order.

        Returns
        -------
        list of MetricRanker
            In the order of ``Cs``; parameters other than ``C`` are this ranker's, which stays as it is.
        """
        params = self.get_params(deep=False)
        rankers = [MetricRanker(**cast("dict[str, Any]", {**params, "C": float(C)})) for C in Cs]
        for ranker in rankers:
            rules.check(ranker)
        if not rankers:
            return []
        first = rankers[0]
        task = first._task(first._validate(X, y, relevance, queries, query_weight))
        seen = {name: value for name, value in vars(first).items() if name.endswith("_in_")}
        cuts, start = None, None
        with self._watched(callbacks) as tell:
            for ranker in rankers:
                vars(ranker).update(seen)
                fit = fit_metric(
                    replace(task.problem, C=float(ranker.C)),
                    tol=self.tol,
                    max_iter=self.max_iter,
                    rank=self.n_components,
                    cuts=cuts,
                    start=start,
                    callback=lambda round_, search: tell(round_),
                )
                cuts, start = cast("Cuts", fit.state.cuts), fit.params
                ranker._keep(task, fit)
        return rankers

    def transform(self, X: Any) -> NDArray[Any]:
        """Map rows to where the learned distance is Euclidean, (n, rank); float32 stays float32."""
        check_is_fitted(self)
        rows = check_points(self, X, reset=False, sparse=self.kernel == "linear")
        return np.asarray(self._values(rows) @ self.components_.T, dtype=rows.dtype)

    @property
    def metric_(self) -> Floats:
        """W = L'L."""
        return self.components_.T @ self.components_

    def rank(self, queries: Any, k: int) -> Rankings:
        """Return the k nearest rows of fit's X for every query, nearest first.

        A query that is one of these rows finds itself first.

        Returns
        -------
        Rankings
            ``ids`` (n, k) are row numbers of fit's X, ``scores`` minus their squared distances, up to rounding.
        """
        points, items = self._placed(queries)
        if isinstance(k, bool) or not isinstance(cast("object", k), (int, np.integer)):
            raise ValueError(f"k: expected a whole number, found {k!r}")
        if not 1 <= k <= len(self.catalogue_):
            raise ValueError(f"k: expected 1 to {len(self.catalogue_)}, the rows of fit, found {k}")
        ids, scores = nearest(points, items, int(k), Executor.of(self.n_jobs))
        return Rankings(np.arange(len(points)), ids, scores)

    def scores(self, queries: Any, items: Any = None) -> Floats:
        """Return what rows are ranked by, minus :meth:`distances`: (queries, items), items of None being fit's X."""
        return 0.0 - self.distances(queries, items)

    def distances(self, X: Any, Y: Any = None) -> Floats:
        """Return the squared learned distance of every row of X to every row of Y, or of fit's X: (n, rows of Y).

        It is a sum of squared differences: the same bits in both directions, and exactly 0 between equal points.
        """
        points, items = self._mapped(X), self.catalogue_ if Y is None else self._mapped(Y)
        return squared_distances(points, items.astype(np.float64, copy=False))

    def get_metric(self) -> LearnedDistance:
        """Return the learned distance (not squared) of two rows as a function, for ``metric=`` of scikit-learn.

        It is a copy: a later fit does not change it. ``transform`` and a Euclidean search are much faster.

        Examples
        --------
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> X, y = [[0.0, 3.0], [0.2, 9.0], [1.0, 5.0], [1.2, 1.0]], [0, 0, 1, 1]
        >>> distance = MetricRanker(C=10).fit(X, y).get_metric()
        >>> KNeighborsClassifier(1, metric=distance).fit(X, y).predict([[0.1, 5.0]])
        array([0])
        """
        check_is_fitted(self)
        kernel = self._row_kernel()
        return LearnedDistance(self.components_.copy(), kernel, None if kernel is None else self.basis_)

    def score(self, X: Any, y: Any = None, *, relevance: Any = None) -> float:
        """Return the mean average precision with which rows of X, as queries, rank the rows of fit's X.

        The same measure for every ``loss``, so searches may compare them. Queries without a relevant row are left out.

        Parameters
        ----------
        X
            Queries.
        y
            Their labels, if fit had labels.
        relevance
            (queries, rows of fit's X), if fit had that.
        """
        points, items = self._placed(X)
        if relevance is not None:
            shape = (len(points), len(items))
            wanted = read_lists(relevance, shape, resolved(self, "loss"), self.unlisted, queries_are_items=False)
        elif hasattr(self, "catalogue_labels_"):
            wanted = ItemLabels(self.catalogue_labels_, getattr(self, "classes_", None)).of_rows(y, len(points))
        else:
            raise ValueError("relevance: expected the relevance of the catalogue's items, as fit had it, found None")
        return mean_average_precision(points, items, wanted)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what fit takes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.kernel == "linear"
        tags.input_tags.pairwise = isinstance(resolved(self, "kernel"), Precomputed)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, relevance: Any, queries: Any, query_weight: ArrayLike | None) -> TrainingData:
        """Check all that fit was given."""
        rules.check(self)
        if self.device not in (None, "cpu"):
            refuse_on_cluster(f"device={self.device!r}", "device=None, whose sums the workers add up")
        gpu_of("X", X, self.device)
        if isinstance(X, RowSource):  # items are read: every worker holds them as well
            if y is not None:
                raise ValueError("y: expected None with a source, which names its columns, found a value")
            executor = Executor.of(self.n_jobs)
            X, y = X.features.read(executor), X.labels(executor) if relevance is None else None
        items = self._points(X, "X", reset=True)
        if isinstance(queries, RowSource):
            points = self._in_files(queries, items)
        else:
            points = items if queries is None else self._points(queries, "queries")
        if queries is not None and isinstance(resolved(self, "kernel"), Precomputed):
            raise ValueError("queries: expected None for kernel='precomputed', found points")
        if y is None and relevance is None:
            raise ValueError("y: this ranker requires y to be passed, but the target y is None (or pass relevance=)")
        if y is not None and relevance is not None:
            raise ValueError("relevance: expected None where y is given, found both")
        if y is not None and queries is not None:
            raise ValueError("relevance: expected the relevance of every item for the queries given, found None")
        n_items, n_features = int(items.shape[0]), int(items.shape[1])
        if self.kernel == "linear" and self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"n_components: expected at most {n_features}, the features of X, found {self.n_components}"
            )
        if relevance is None:
            labels = ItemLabels.of(y, n_items)
            wanted = labels.of_items()
        else:
            shape, labels = (int(points.shape[0]), n_items), None
            loss = resolved(self, "loss")
            wanted = read_lists(relevance, shape, loss, self.unlisted, queries_are_items=queries is None)
        return TrainingData.of(items, points, wanted, labels, informative(wanted), query_weight)

    def _points(self, X: Any, name: str = "X", *, reset: bool = False) -> Any:
        """Return checked points in double precision, dense or CSR."""
        rows = check_points(self, X, reset=reset, sparse=self.kernel == "linear", name=name)
        return rows.astype(np.float64)

    def _in_files(self, queries: RowSource, items: Any) -> StoredRows:
        """Leave queries in their files, if nothing needs all of them at once."""
        n_features = int(items.shape[1])
        if self.kernel != "linear" or is_sparse(items) or self.device not in (None, "cpu"):
            found = "a device" if self.kernel == "linear" and not is_sparse(items) else "sparse X"
            found = found if self.kernel == "linear" else f"kernel={self.kernel!r}"
            raise ValueError(f"queries: expected arrays, or a source with dense X and kernel='linear', found {found}")
        if queries.n_features != n_features:
            raise ValueError(f"queries: expected {n_features} features, as X has, found {queries.n_features}")
        if n_features > len(items) + queries.n_rows and self.regularizer != "diagonal":
            raise ValueError(
                f"queries: expected arrays where features ({n_features}) are more than points, found a source"
            )
        return queries.features

    def _task(self, data: TrainingData) -> Task:
        return Task.of(
            data,
            loss=resolved(self, "loss"),
            C=float(self.C),
            regularizer=self.regularizer,
            kernel=resolved(self, "kernel"),
            targets=self.targets,
            pairs=self.pairs,
            executor=Executor.of(self.n_jobs),
            gpu=gpu_of("X", None, self.device),
        )

    def _keep(self, task: Task, fit: Fit) -> Self:
        for name in self._optional:  # of an earlier fit
            vars(self).pop(name, None)
        data, features = task.data, task.features
        self.components_ = features.components(task.problem.cone.components(fit.params))
        if features.basis is not None:
            self.basis_ = features.basis
        if features.gamma is not None:
            self.gamma_ = features.gamma
        # Not features.items @ L.T: features are centered where that helps training, and transform knows no center.
        self.catalogue_ = np.asarray(self._values(data.items) @ self.components_.T)
        if data.labels is not None:
            self.catalogue_labels_ = data.labels.labels
            if data.labels.classes is not None:
                self.classes_ = data.labels.classes
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self._warn_if_nothing_learned(task, fit.params)
        self.n_iter_, self.n_skipped_ = fit.history[-1].round, data.n_skipped
        self.model_card_ = replace(
            data.card, objective=self.objective_, lower_bound=self.lower_bound_, converged=fit.converged
        )
        return self

    def _warn_if_nothing_learned(self, task: Task, W: Floats) -> None:
        """Warn if the certificate proves that no W is much better than W = 0, or if W ranks worse than Euclid."""
        at_zero, setting = float(self.C) * task.problem.hinge.at_zero, f"(C={self.C:g}, loss={self.loss!r})"
        if self.lower_bound_ > NEXT_TO_NOTHING * at_zero:
            every_target = self.targets == "all" or task.data.labels is None
            hint = ", or set targets=k" if every_target and top_ranks(resolved(self, "loss")) is not None else ""
            warnings.warn(
                f"nothing or next to nothing was learned: the objective of W = 0 is {at_zero:.6g}, and no W is below "
                f"{self.lower_bound_:.6g}, {self.lower_bound_ / at_zero:.4f} of it {setting}: "
                f"raise C{hint}, or look at the features",
                NothingLearnedWarning,
                stacklevel=4,
            )
            return
        loss = task.ranking_loss(W)
        if loss > task.euclidean_loss + ROUNDED:
            more = "C" if self.n_components is None else "C, or n_components"
            warnings.warn(
                "worse than nothing was learned: the learned distance ranks the training queries worse than the "
                f"Euclidean one, 1 - {task.compared_by.name} is {loss:.4g} instead of {task.euclidean_loss:.4g} "
                f"{setting}: raise {more}, look at the features, or keep to the Euclidean distance",
                NothingLearnedWarning,
                stacklevel=4,
            )

    # --- answers -----------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _row_kernel(self) -> RowKernel | None:
        """Return the learned kernel; None for the linear distance."""
        kernel = resolved(self, "kernel")
        if kernel == "linear":
            return None
        return learned_kernel(kernel, self.gamma_ if has_gamma(kernel) else None)

    def _values(self, rows: Any) -> Any:
        """Return what ``components_`` maps: the rows, or their kernel values."""
        kernel = self._row_kernel()
        return rows if kernel is None else kernel.compare(rows.astype(np.float64), self.basis_)

    def _mapped(self, X: Any) -> Floats:
        """Map rows as ``fit`` mapped the catalog, in double precision."""
        check_is_fitted(self)
        return np.asarray(self._values(self._points(X)) @ self.components_.T)

    def _placed(self, X: Any) -> tuple[Floats, Floats]:
        """Map rows, and center them and the catalog alike, which keeps small differences of distances exact."""
        items = self.catalogue_.astype(np.float64)
        center = items.mean(axis=0)
        return np.asarray(self.transform(X), dtype=np.float64) - center, items - center

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays fit each other and the parameters."""
        super()._check_learned()
        kernel, labels = resolved(self, "kernel"), getattr(self, "catalogue_labels_", None)
        of_classes = labels is not None and labels.ndim == 1
        needed = {"basis_": kernel != "linear", "gamma_": has_gamma(kernel), "classes_": of_classes}
        for name, expected in needed.items():
            if hasattr(self, name) != expected:
                raise ValueError(f"{name}: expected {'one' if expected else 'none'} for this model, found otherwise")
        if kernel != "linear":
            check_basis(kernel, self.basis_, self.n_features_in_)
        width = self.n_features_in_ if kernel == "linear" else len(self.basis_)
        if self.components_.shape[1] != width:
            raise ValueError(f"components_: expected {width} columns, found {self.components_.shape[1]}")
        if not len(self.catalogue_):
            raise ValueError("catalogue_: expected at least one row, found none")
        if labels is not None:
            if len(labels) != len(self.catalogue_):
                raise ValueError(f"catalogue_labels_: expected {len(self.catalogue_)} rows, found {len(labels)}")
            most = len(self.classes_) - 1 if of_classes else 1
            if labels.max(initial=0) > most or not labels.size:
                raise ValueError(f"catalogue_labels_: expected numbers from 0 to {most}, found {labels.max(initial=0)}")
