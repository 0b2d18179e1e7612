"""Learn a distance by which the right items come first: metric learning to rank (McFee and Lanckriet 2010)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.rankings import Rankings
from slatewise.core.results import Fit, Round
from slatewise.core.row_kernels import KERNELS
from slatewise.core.rules import Rule
from slatewise.estimators.base import SavedEstimator
from slatewise.estimators.sklearn import check_is_fitted
from slatewise.estimators.transformer import Transforms, check_points
from slatewise.metric_learning.catalogue_precision import mean_average_precision
from slatewise.metric_learning.cuts import Cuts
from slatewise.metric_learning.interleave import ORACLES
from slatewise.metric_learning.learned_distance import LearnedDistance, squared_distances
from slatewise.metric_learning.mahalanobis import nearest
from slatewise.metric_learning.metric_fit import MetricProblem, MetricSearch, fit_metric
from slatewise.metric_learning.settings import (
    REGULARIZERS,
    check_learned,
    labels_like,
    listed,
    warn_if_nothing_learnt,
)
from slatewise.metric_learning.task import Task, as_float64, make_task
from slatewise.persistence.checkpoint import Checkpoint

Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Literal["auc", "precision", "map", "mrr", "ndcg", "knn"]
KernelName: TypeAlias = Literal["linear", "rbf", "chi2", "intersection", "precomputed"]


class MetricRanker(Transforms, SavedEstimator):
    """Learn a distance such that ranking by it puts relevant items first.

    ``F(W) = tr(W) + C * mean over queries of the hinge of a ranking loss``, W positive semidefinite: the hinge bounds
    the loss of ranking all items by ``(q - i)' W (q - i)``, and its maximum over rankings is found exactly. The minimum
    is certified: no W has an objective below ``lower_bound_``. Where that is above .97 of the objective of W = 0, next
    to nothing can be learnt, which is a warning.

    Which loss? For neighbours that vote, "precision", "ndcg", "knn" and "mrr" look at the first ranks only, and ask no
    class to be one heap; "auc" and "map" order whole lists, in few dimensions.

    Standardise the features first. Regularizers charge a feature by its unit, and where units differ by orders of
    magnitude training often runs all its passes without a certificate.

    Parameters
    ----------
    loss : {"auc", "precision", "map", "mrr", "ndcg", "knn"}
        What a ranking of P relevant and N irrelevant items loses, 0 to 1; r_1 < .. < r_P are the ranks, from 1, of the
        relevant ones, and t of them are among the first k' = min(k, P + N). Items that tie count in their worst order.

        - "auc": pairs in the wrong order, sum of (r_i - i) / PN;
        - "precision": 1 - t / min(k', P);
        - "map": 1 - (1/P) sum of i / r_i;
        - "mrr": 1 - 1 / r_1;
        - "ndcg": 1 - (1/D) sum of d(r_i) over r_i <= m, m = min(k, P), D = d(1) + .. + d(m), d(1) = d(2) = 1, then
          d(r) = 1 / log2(r). With grades (see ``threshold``): 1 - DCG / DCG of the best order, over the first k, with
          gain 2^g - 1 and the same d;
        - "knn": 1 if 2t <= k', a vote lost or drawn, else 0.
    k : int
        Ranks that count in "precision", "ndcg" and "knn".
    C : float
        Weight of the hinge against the regularizer. What it means depends on ``pairs``.
    regularizer : {"trace", "frobenius", "diagonal"}
        tr(W), which favours few directions; half the sum of squares of W; tr(W) of a diagonal W, a weight per feature.
    tol : float
        Relative certified gap at which training ends.
    max_iter : int
        Most passes over the queries.
    kernel : {"linear", "rbf", "chi2", "intersection", "precomputed"}
        Learn the distance between points, or between their images in the feature space of a kernel.
    gamma : float, optional
        Of the rbf and chi2 kernels.
    n_components : int, optional
        Most dimensions that ``transform`` maps to; default: as many as the optimum has, which are few. The linear
        metric is first trained without a limit, then goes on from its largest eigenvalues among W of that rank (weights
        of so many features, where W is diagonal). ``objective_`` is of the W kept, ``lower_bound_`` holds for W of any
        rank: their gap is proven, and contains what the limit costs. With a kernel: its most basis rows.
    threshold : float, optional
        The smallest ``relevance`` that counts as relevant; default: any > 0. Only loss "ndcg" without a threshold tells
        grades apart: whole numbers g up to 127 with gain 2^g - 1.
    unlisted : {"irrelevant", "ignored"}
        What items count that ``relevance`` does not store for a query. "ignored": a query ranks what it stores only,
        where an item of relevance <= 0 is irrelevant; ``relevance`` must be sparse then, as a dense one lists all.
    targets : "auto", "all" or int
        Which of the relevant items are to come first: all, or the so many nearest to the query before learning (its
        target neighbours, as in large-margin nearest neighbours); the others are left out. With "all" every pair of a
        relevant and an irrelevant item counts, also far behind the first k, and classes that are not one heap
        leave nothing to learn. "auto": k for "precision", "ndcg", "knn" and "mrr" where fit is given ``y``, else "all".
    pairs : {"top", "all"}
        Over how many pairs of a relevant and an irrelevant item ``psi``, by which scores enter the hinge, is a mean.
        "all" is the paper's: P N. "top": P min(b, N), where b irrelevant items in front lose what there is to lose: k
        for "precision" and "ndcg", half of k, rounded up, for "knn", 1 for "mrr" (N: the items of the lowest grade,
        where there are grades). A distance that lowers the loss is then as large, and as dear, as with "auc" and "map",
        which are P N either way. With "all" it takes a C larger by N / b, with regularizer "frobenius" by (N / b)^2.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` after every step.
    checkpoint : path, optional
        Where the state is kept after every step; fit goes on from there if the file is of the same data and settings,
        with the same bits as if it had never stopped, and removes it at the end.
    n_jobs : int, optional
        Threads over blocks of queries; the result has the same bits with any number. -1: all cores.
    device : {None, "cpu", "cuda", "cuda:0", ...}
        "cuda": fit on a GPU (``pip install 'slatewise[gpu]'``): scores, and the sums over rankings, in float64 in tiles
        of queries, with the same bits in every run on one GPU. "auc" and "map" find the rankings there too, of scores
        rounded to 2^-30 of their range: cut and bound hold as they are, and the objective is checked against this
        rounding as against any other. A file does not keep the device: what was learnt is ranked by on the CPU.

    Attributes
    ----------
    components_
        L (rank, features) with W = L'L: a low-rank map to where the learned distance is Euclidean. With a kernel, a map
        of the kernel values with ``basis_``.
    catalogue_
        The mapped rows of X, which ``rank`` returns the numbers of.
    objective_, lower_bound_, n_iter_
        The certificate, and the passes over the queries it took.
    n_skipped_
        Queries that say nothing: without relevant or without irrelevant items, or of weight 0.

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

    _learned: ClassVar[Mapping[str, Rule]] = {
        "components_": rules.learned_array(2),
        "basis_": rules.learned_array(2) | rules.whole_array(1),
        "gamma_": rules.LEARNED_POSITIVE,
        "catalogue_": rules.learned_array(2),
        "catalogue_labels_": rules.whole_array(1) | rules.whole_array(2, "int8"),
        "classes_": rules.CLASSES,
        "objective_": rules.SEEN,
        "lower_bound_": rules.SEEN,
        "n_iter_": rules.count(0),
        "n_skipped_": rules.count(0),
    }
    components_: Floats
    basis_: NDArray[Any]
    gamma_: float
    catalogue_: NDArray[Any]
    catalogue_labels_: NDArray[Any]
    classes_: NDArray[Any]
    objective_: float
    lower_bound_: float
    n_iter_: int
    n_skipped_: int

    _rules: ClassVar[Mapping[str, Rule]] = {
        "loss": rules.one_of(*ORACLES),
        "k": rules.count(),
        "C": rules.POSITIVE,
        "regularizer": rules.one_of(*REGULARIZERS),
        "tol": rules.POSITIVE,
        "max_iter": rules.count(),
        "kernel": rules.one_of("linear", *KERNELS),
        "gamma": rules.POSITIVE | rules.NONE,
        "n_components": rules.count() | rules.NONE,
        "threshold": rules.FINITE | rules.NONE,
        "unlisted": rules.one_of("irrelevant", "ignored"),
        "targets": rules.count() | rules.one_of("auto", "all"),
        "pairs": rules.one_of("top", "all"),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_jobs": rules.JOBS,
        "device": rules.DEVICE,
    }
    _not_saved: ClassVar[tuple[str, ...]] = (*SavedEstimator._not_saved, "device")

    def __init__(
        self,
        loss: Loss = "auc",
        k: int = 3,
        C: float = 1.0,
        regularizer: Literal["trace", "frobenius", "diagonal"] = "trace",
        tol: float = 1e-3,
        max_iter: int = 2000,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        n_components: int | None = None,
        threshold: float | None = None,
        unlisted: Literal["irrelevant", "ignored"] = "irrelevant",
        targets: int | Literal["auto", "all"] = "auto",
        pairs: Literal["top", "all"] = "top",
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.loss = loss
        self.k = k
        self.C = C
        self.regularizer = regularizer
        self.tol = tol
        self.max_iter = max_iter
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.threshold = threshold
        self.unlisted = unlisted
        self.targets = targets
        self.pairs = pairs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        relevance: Any = None,
        queries: Any = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows with labels, or from queries with lists of relevant rows.

        Parameters
        ----------
        X
            (n, d) the items, dense or sparse; without ``queries`` every row is a query as well, and ranks all others.
        y
            One class per row, or (n, labels) of 0 and 1: rows are relevant to each other that share a label.
        relevance
            Instead of y, (queries, n), usually sparse: what each query wants of the rows of X.
        queries
            (queries, d) points that ask but are no items; with ``relevance`` only.
        query_weight
            One weight >= 0 per query. (It is not called ``sample_weight``: a row given twice is also one more item to
            be ranked, so weights of queries cannot stand for repeated rows.)

        Returns
        -------
        self
        """
        task = make_task(self, X, y, relevance, queries, query_weight)
        checkpoint = Checkpoint.of(self, task.card.data_sha256)

        def tell(round_: Round, search: MetricSearch) -> None:
            checkpoint.write(search.arrays())
            for callback in self.callbacks or ():
                callback(round_)

        fit = fit_metric(
            self._problem(task),
            tol=self.tol,
            max_iter=self.max_iter,
            rank=self._target_rank,
            resume=checkpoint.start(),
            callback=tell,
        )
        checkpoint.remove()
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
    ) -> list[MetricRanker]:
        """Fit one ranker for each C; each starts from the one before and from all cuts so far, which hold for any C.

        Parameters
        ----------
        X, y, relevance, queries, query_weight
            As in :meth:`fit`.
        Cs
            Numbers > 0, best in ascending order.

        Returns
        -------
        list of MetricRanker
            In the order of ``Cs``; parameters other than ``C`` are this ranker's, which stays as it is.
        """
        strengths = [float(C) for C in Cs]
        params = {**self.get_params(deep=False), "checkpoint": None}
        rankers = [MetricRanker(**cast("dict[str, Any]", {**params, "C": C})) for C in strengths]
        for ranker in rankers:
            rules.check(ranker)
        if not rankers:
            return []
        task = make_task(rankers[0], X, y, relevance, queries, query_weight)
        cuts, start = None, None

        def tell(round_: Round, search: MetricSearch) -> None:
            for callback in self.callbacks or ():
                callback(round_)

        for ranker in rankers:
            seen = {name: value for name, value in vars(rankers[0]).items() if name.endswith("_in_")}
            vars(ranker).update(seen)
            fit = fit_metric(
                ranker._problem(task),
                tol=self.tol,
                max_iter=self.max_iter,
                rank=self._target_rank,
                cuts=cuts,
                start=start,
                callback=tell,
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
        kernel = None if self.kernel == "linear" else KERNELS[self.kernel](self.gamma_)
        return LearnedDistance(self.components_.copy(), kernel, self.basis_)

    def score(self, X: Any, y: Any = None, *, relevance: Any = None) -> float:
        """Return the mean average precision with which rows of X, as queries, rank the rows of fit's X.

        The same measure whatever ``loss`` and ``k`` are, so searches may compare them. Queries without a relevant row
        are left out.

        Parameters
        ----------
        X
            Queries.
        y
            Their labels, where fit had labels.
        relevance
            (queries, rows of fit's X), where fit had that.
        """
        points, items = self._placed(X)
        shape = (len(points), len(items))
        wanted = (
            labels_like(self, y, len(points))
            if relevance is None
            else listed(self, relevance, shape, np.full(len(points), -1, dtype=np.int64))
        )
        return mean_average_precision(points, items, wanted)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        check_learned(self)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what fit takes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.kernel == "linear"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- parts -------------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _problem(self, task: Task) -> MetricProblem:
        return MetricProblem(task.hinge, *REGULARIZERS[self.regularizer], float(self.C))

    def _keep(self, task: Task, fit: Fit) -> Self:
        L = REGULARIZERS[self.regularizer][0].components(fit.params)
        self.components_ = task.features.components(L)
        self.basis_, self.gamma_ = task.features.basis, task.gamma
        # Not features.items @ L.T: features are centred where that helps training, and transform knows no centre.
        self.catalogue_ = np.asarray(self._values(task.items) @ self.components_.T)
        self.catalogue_labels_, self.classes_ = task.labeling.labels, task.labeling.classes
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        warn_if_nothing_learnt(self, task, fit.params)
        self.n_iter_, self.n_skipped_ = fit.history[-1].round, task.n_skipped
        self.model_card_ = replace(
            task.card, objective=self.objective_, lower_bound=self.lower_bound_, converged=fit.converged
        )
        return self

    @property
    def _target_rank(self) -> int | None:
        """A kernel's features are as few as ``n_components`` already."""
        return None if self.n_components is None or self.kernel != "linear" else int(self.n_components)

    def _placed(self, X: Any) -> tuple[Floats, Floats]:
        """Map rows, and centre them and the catalogue alike, which keeps small differences of distances exact."""
        items = self.catalogue_.astype(np.float64)
        centre = items.mean(axis=0)
        return np.asarray(self.transform(X), dtype=np.float64) - centre, items - centre

    def _mapped(self, X: Any) -> Floats:
        """Map rows as ``fit`` mapped the catalogue, in double precision."""
        check_is_fitted(self)
        rows = check_points(self, X, reset=False, sparse=self.kernel == "linear")
        return np.asarray(self._values(as_float64(rows)) @ self.components_.T)

    def _values(self, rows: Any) -> Any:
        if self.kernel == "linear":
            return rows
        return KERNELS[self.kernel](self.gamma_).compare(rows.astype(np.float64), self.basis_)
