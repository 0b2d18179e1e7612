"""Rank labels that depend on each other: c-star models trained for precision (Mensink, Verbeek, Caetano 2011)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.checks import require_in_range
from slatewise.core.executor import Executor
from slatewise.core.former_answers import FormerRows
from slatewise.core.label_names import known_like, read_labels
from slatewise.core.label_sets import merge_rows
from slatewise.core.rankings import Rankings
from slatewise.core.results import Round
from slatewise.core.row_kernels import KERNELS
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.cstar.checks import checked_counts, checked_known
from slatewise.cstar.explanation import Explanation, explain_selection
from slatewise.cstar.fitting import Trained, prepare, train
from slatewise.cstar.inference import best_set, margins, star_margins
from slatewise.cstar.label_count import fit_label_count, predict_label_count
from slatewise.cstar.label_scores import (
    KernelScores,
    LabelScores,
    LinearScores,
    Prepared,
    PretrainedScores,
)
from slatewise.cstar.lists import Selection, StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import symmetric_pair
from slatewise.cstar.settings import check_learned, check_log_odds, check_settings, check_truth
from slatewise.cstar.sums import log_odds, most_probable, star_log_odds
from slatewise.cstar.training import LEARNERS
from slatewise.model.saving import SavedEstimator, card_for
from slatewise.model.sklearn import check_is_fitted, check_rows, check_weights, say_multi_label

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Margins: TypeAlias = Callable[..., Floats]
"""Of (s, pair, core, k, known), as :func:`slatewise.cstar.inference.star_margins`."""
ScoreKind: TypeAlias = Literal["linear", "pretrained", "rbf", "chi2", "intersection", "precomputed"]


class CStarRanker(SavedEstimator):
    """Rank the labels of a row jointly: scores of single labels plus pair terms with a few core labels.

    ``f(t) = sum_i t_i s_i(x) + sum over pairs with a core label of t_i t_j G_ij``, maximised exactly over the sets t of
    k labels, and trained so that the best set is the relevant one (structured hinge of precision at k); or, with
    ``surrogate="likelihood"``, so that the relevant set is probable, and then ranked by how probable each label is.

    Parameters
    ----------
    core : "auto", int, array of label indices or list of label names
        How many labels interact with all others, or which. "auto": 5, or all where there are fewer. 0: independent
        labels.
    core_by : {"information", "gain"}
        How a number of core labels is chosen: greedily by joint mutual information with all others (with the
        likelihood: or by what the given scores leave unexplained, whichever is better on inner folds), or by the gain
        in break-even precision on inner folds (slower; may end with fewer).
    scores : {"linear", "pretrained", "rbf", "chi2", "intersection", "precomputed"}
        How single labels are scored. "pretrained": X is the (n, n_labels) matrix of given scores, of which a scale and
        a shift per label are learnt. "precomputed": X is a kernel matrix. The unit of X does not matter, see the notes.
    k : "relevant" or int
        Labels selected in training: as many as are relevant (break-even precision, convex), or a fixed number.
    surrogate : {"max-margin", "likelihood"}
        What is minimised in training: the hinge, or minus the log-likelihood of the relevant set among all sets of as
        many labels. The likelihood needs given scores that are log-odds, from -745 to 745 (a warning says where they
        can hardly be), ``k="relevant"`` and a core of at most 10; it helps more where labels are noisy.
    C : float or "auto"
        Weight of the surrogate against the regularizer: of the mean hinge over rows, and of the likelihood per row.
        "auto": by inner validation, together with ``C_pair``.
    C_pair : float, optional
        The same for the pair terms; default: ``C``.
    learner : {"bcfw", "bundle", "subgradient"}
        Of the hinge; the first two certify their result.
    tol : float
        Relative duality gap at which training ends.
    max_iter : int
        Most epochs (bcfw), rounds (bundle) or passes (subgradient).
    gamma : float, optional
        Of the rbf and chi2 kernels; by default as the spread of X asks for, so that the unit of X does not matter.
    n_components : int, optional
        Most basis rows of a kernel (Nystroem); default: all that matter, the exact kernel machine.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` whenever the gap is certified.
    checkpoint : path, optional
        Where bcfw keeps its state (not with a fixed k), and the bundle and the likelihood what was computed so far; fit
        goes on from there if the file is of the same data and settings, with the same bits as if it had never stopped,
        and removes it at the end.
    n_threads : int, optional
        Threads over blocks of rows; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Order of the rows in training. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    core_, pair_, coef_, intercept_
        Core labels; G with one row per core label; what scores single labels, for X as it was given.
    label_names_
        What the labels are called in every answer, and what the columns of ``predict`` and ``decision_function`` are:
        the columns of a data frame, the names in y, ``label_names`` or the classes; else their numbers.
    classes_, multilabel_
        The classes where fit saw one class per row; else the numbers of the labels, and ``multilabel_`` is True.
    k_
        Rounded mean number of relevant labels of a training row: how many ``rank`` and ``predict`` return.
    objective_, lower_bound_, n_iter_
        The certificate: no parameters have an objective below the bound. With a fixed k, of the last convex problem.
        The objective is that of the notes, of features in its units.
    C_, C_pair_
        What was given or chosen. ``C_ == 0``: ``C="auto"`` left the given scores as they are.
    n_skipped_
        Rows without a relevant label (or of weight 0), which say nothing about break-even precision.

    Notes
    -----
    Training minimises, over the weights of features W and of pairs G,

    ``1/2 (|W|^2 + C / C_pair |G|^2) + C mean over rows of hinge``, or with the likelihood
    ``1/2 (|W|^2 + C / C_pair |G|^2) - C sum over rows of log-likelihood`` .

    Rows count by ``sample_weight``, in the sum and in the mean. The features are those of ``scores="linear"`` with mean
    0 and variance 1 in every column; of a kernel divided by its mean value of a row with itself (1 for rbf and chi2);
    given scores divided, for the hinge, by their spread. So a change of units of X changes neither the fit nor what C
    means; ``coef_`` applies to X as given. Log-odds have a unit of their own: the likelihood takes them as they are.

    A label that is never relevant in training stays selectable; training pushes it down like any other wrong label.

    Examples
    --------
    >>> from slatewise import CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarRanker(core=3).fit(scenes.X[:200], scenes.Y[:200])
    >>> ranker.rank(scenes.X[200:], k=3).ids.shape
    (100, 3)
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    learned: ClassVar[Mapping[str, Rule]] = {
        "core_": rules.whole_array(1),
        "pair_": rules.learned_array(2),
        "coef_": rules.learned_array(1) | rules.learned_array(2),
        "intercept_": rules.learned_array(1),
        "basis_": rules.learned_array(2) | rules.whole_array(1),
        "gamma_": rules.LEARNED_POSITIVE,
        "k_": rules.count(),
        "count_coef_": rules.learned_array(1),
        "classes_": rules.CLASSES,
        "label_names_": rules.NAMES | rules.CLASSES,
        "multilabel_": rules.BOOLEAN,
        "C_": rules.NOT_NEGATIVE,
        "C_pair_": rules.NOT_NEGATIVE,
        "objective_": rules.SEEN,
        "lower_bound_": rules.SEEN,
        "n_iter_": rules.count(0),
        "n_skipped_": rules.count(0),
    }
    file_version: ClassVar[int] = 2
    core_: Ints
    pair_: Floats
    coef_: Floats
    intercept_: Floats
    basis_: NDArray[Any]
    gamma_: float
    k_: int
    count_coef_: Floats
    classes_: NDArray[Any]
    label_names_: NDArray[Any]
    multilabel_: bool
    separator_: str | None = None
    """What fit was given; a file does not keep it."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "core": rules.one_of("auto")
        | rules.count(0)
        | rules.vector("label numbers", 0, whole=True, empty=True)
        | rules.LISTED_NAMES,
        "scores": rules.one_of("linear", "pretrained", *KERNELS),
        "k": rules.count() | rules.one_of("relevant"),
        "C": rules.POSITIVE | rules.one_of("auto"),
        "C_pair": rules.POSITIVE | rules.NONE,
        "learner": rules.one_of(*LEARNERS),
        "tol": rules.NOT_NEGATIVE,
        "max_iter": rules.count(),
        "gamma": rules.POSITIVE | rules.NONE,
        "n_components": rules.count() | rules.NONE,
        "core_by": rules.one_of("information", "gain"),
        "surrogate": rules.one_of("max-margin", "likelihood"),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_threads": rules.THREADS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        core: Literal["auto"] | int | Sequence[str] | ArrayLike = "auto",
        scores: ScoreKind = "linear",
        k: Literal["relevant"] | int = "relevant",
        C: float | Literal["auto"] = 1.0,
        C_pair: float | None = None,
        learner: Literal["bcfw", "bundle", "subgradient"] = "bcfw",
        tol: float = 1e-3,
        max_iter: int = 500,
        gamma: float | None = None,
        n_components: int | None = None,
        core_by: Literal["information", "gain"] = "information",
        surrogate: Literal["max-margin", "likelihood"] = "max-margin",
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.core = core
        self.scores = scores
        self.k = k
        self.C = C
        self.C_pair = C_pair
        self.learner = learner
        self.tol = tol
        self.max_iter = max_iter
        self.gamma = gamma
        self.n_components = n_components
        self.core_by = core_by
        self.surrogate = surrogate
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        label_names: Sequence[str] | NDArray[np.str_] | None = None,
        separator: str | None = None,
    ) -> Self:
        """Learn from rows with sets of labels.

        Parameters
        ----------
        X
            Features, given scores or kernel, as ``scores`` says.
        y
            (n, n_labels) 0/1: an array, a data frame, whose columns name the labels, or sparse. Or names: a list, tuple
            or set of strings per row, empty where a row has no label; or one text per row, cut at ``separator``. Or one
            class per row, which is encoded one-hot.
        sample_weight
            One weight >= 0 per row.
        label_names
            What the labels are called; default: the columns of a data frame with string names, the names in y in
            order, else their numbers. With names in y: all that there may be.
        separator
            What stands between the names of a row, as in ``"sky|sea"``; an empty text is a row without labels.

        Examples
        --------
        >>> ranker = CStarRanker(core=["sea"]).fit([[0.0], [1.0], [2.0]], ["sea|sky", "sea", "tree"], separator="|")
        >>> ranker.label_names_.tolist(), ranker.core_.tolist(), ranker.predict([[0.0]]).shape
        (['sea', 'sky', 'tree'], [0], (1, 3))
        """
        rules.check(self)
        executor = Executor.of(self.n_threads)
        rows = check_rows(self, X, reset=True).astype(np.float64)
        labels, self.label_names_, classes = read_labels(y, len(rows), label_names, separator)
        self.separator_ = separator
        weight = check_weights(sample_weight, len(rows))
        require_in_range("sample_weight", weight)
        if self.scores != "linear":  # whose unit is taken off
            require_in_range("X", rows)
        check_settings(self, rows, labels)
        if self.surrogate == "likelihood":
            check_log_odds(rows)
        used = (weight > 0) & ((labels.sum(axis=1) > 0) | (self.k != "relevant"))
        if not used.any():
            raise ValueError("y: expected a row with a relevant label, found none whose sample_weight is not zero")
        self._settle_seed()
        self.n_skipped_ = int(len(rows) - used.sum())
        self.multilabel_ = classes is None
        self.classes_ = np.arange(labels.shape[1]) if classes is None else classes
        card = card_for(len(rows), rows, labels, weight)
        if self.scores == "precomputed":
            prepared = prepare(self, rows, labels, weight)
            prepared = replace(prepared, phi=prepared.phi[used])
            rows, labels, weight = rows[used], labels[used], weight[used]
        else:
            rows, labels, weight = merge_rows(rows[used], labels[used], weight[used])
            prepared = prepare(self, rows, labels, weight)
        trained = train(self, prepared, labels, weight, card.data_sha256, executor)
        self._keep(trained, prepared, rows, labels, weight)
        self.model_card_ = replace(
            card, objective=self.objective_, lower_bound=self.lower_bound_, converged=trained.fit.converged
        )
        return self

    def label_scores(self, X: ArrayLike) -> Floats:
        """Return what each label scores by itself, (n, n_labels): the model without its pair terms."""
        return self._scores(X)

    @property
    def label_margins(self) -> Margins:
        """How ``decision_function`` is computed from label scores, ``pair_`` and ``core_``."""
        return MARGINS[self.surrogate]

    def decision_function(self, X: ArrayLike, k: ArrayLike | None = None, known: ArrayLike | None = None) -> Floats:
        """Return, for each row and label, the best score with the label in minus the best with it out.

        With the likelihood: the log-odds of the label, given that k are relevant and what is known.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            Labels to select: a number, or one per row; default ``k_``.
        known
            (n, n_labels): 1 yes, 0 no, -1 unknown; labels that are forced get +inf or -inf. By name: one mapping per
            row, ``{"sky": 1, "sea": 0}``, one set of names per row, which are yes, or a data frame; what they do not
            mention is unknown.

        Notes
        -----
        With more than 16 core labels a best score may be the best found within a node limit: then an
        :class:`~slatewise.cstar.inference.UnprovenWarning` says so, and
        :func:`~slatewise.inference.star_max_marginals` on ``label_scores``, ``pair_`` and ``core_`` gives the bounds.
        """
        lists = self._lists(self._scores(X), k, known)
        return DECISIONS[self.surrogate](lists, Executor.of(self.n_threads))

    def rank(self, X: ArrayLike, k: ArrayLike | None = None, known: ArrayLike | None = None) -> Rankings:
        """Return the k labels of the best set of each row, best first.

        Labels are scored by how much the best score falls without them. With the likelihood: the k most probable
        labels, of which most are expected to be right, scored by their log-odds. What must be in scores inf.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k, known
            As in :meth:`decision_function`.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(50, 3))
        >>> ranker = CStarRanker(core=0).fit(X, X > 0.2, label_names=["sea", "sky", "tree"])
        >>> ranker.rank([[2.0, 0.5, -1.0]], k=2).to_dict()  # doctest: +ELLIPSIS
        {0: {'sea': ..., 'sky': ...}}
        """
        lists = self._lists(self._scores(X), k, known)
        chosen = self._selected(lists)
        offsets = np.concatenate(([0], np.cumsum(lists.k)))
        names = self.label_names_[chosen.items]
        return FormerRows.of(Rankings.of_lists(np.arange(len(lists.k)), names, chosen.scores, offsets))

    def predict(self, X: ArrayLike, k: ArrayLike | None = None) -> NDArray[Any]:
        """Return the selected labels as 0/1 rows; the class of each row where fit saw one class per row."""
        scores = self._scores(X)
        lists = self._lists(scores, k if self.multilabel_ else 1, None)
        labels = self._selected(lists).items
        if not self.multilabel_:
            return self.classes_[labels]
        flags = np.zeros(scores.shape, dtype=np.int64)
        flags[np.repeat(np.arange(len(flags)), lists.k), labels] = 1
        return flags

    def predict_count(self, X: ArrayLike) -> Ints:
        """Estimate the number of relevant labels of each row, for use as ``k``."""
        return predict_label_count(self._scores(X), self.count_coef_)

    def score(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None, separator: str | None = None
    ) -> float:
        """Return the break-even precision: k is a row's number of relevant labels; rows without any are left out.

        Parameters
        ----------
        X, y
            As in :meth:`fit`; names, and columns of a data frame, are those that fit saw, in any order.
        sample_weight
            One weight >= 0 per row.
        separator
            As in :meth:`fit`; default: what fit was given, unless y has other forms than texts.
        """
        scores = self._scores(X)
        labels = check_truth(self, y, len(scores), separator)
        weight = check_weights(sample_weight, len(scores)) * (labels.sum(axis=1) > 0)
        require_in_range("sample_weight", weight)
        if not weight.any():
            raise ValueError("y: expected a row of weight > 0 with a relevant label, found none")
        lists = self._lists(scores, labels.sum(axis=1).astype(np.int64), None)
        chosen = self._selected(lists).items
        rows = np.repeat(np.arange(len(labels)), lists.k)
        hits = np.bincount(rows, labels[rows, chosen], len(labels)) / np.maximum(lists.k, 1)
        return float(np.average(hits, weights=weight))

    def next_question(self, X: ArrayLike, known: ArrayLike, k: ArrayLike | None = None) -> Ints:
        """Return the label to ask next in each row, -1 where none is left to ask: the answers decide all of them.

        The label whose best score with it in is closest to the best with it out: where the model is least sure. What
        ``decision_function`` says of more than 16 core labels holds here too.
        """
        distance = np.abs(self.decision_function(X, k, known))
        question = np.argmin(distance, axis=1).astype(np.int64)
        # A label that is known, or that the answers already decide, has an infinite margin.
        return np.where(np.isfinite(distance.min(axis=1)), question, -1)

    def explain(self, X: ArrayLike, k: int | None = None, known: ArrayLike | None = None) -> Explanation:
        """Say, for the selected labels of each row, what their own score gave and what each core label gave."""
        scores = self._scores(X)
        lists = self._lists(scores, k, known)
        chosen = self._selected(lists).items
        selected = chosen.reshape(len(scores), int(lists.k.max(initial=0)))
        why = explain_selection(scores, self.pair_, self.core_, selected)
        return replace(why, labels=self.label_names_[why.labels], core=self.label_names_[why.core])

    def check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super().check_learned()
        check_learned(self)

    def __sklearn_tags__(self) -> Any:
        """Say that y is needed, and may have several labels per row."""
        return say_multi_label(super().__sklearn_tags__())

    # --- parts -------------------------------------------------------------------------------------------------------

    def _keep(self, trained: Trained, prepared: Prepared, X: Floats, Y: Floats, weight: Floats) -> None:
        fit, self.core_, self.C_, self.C_pair_ = trained
        n_labels = Y.shape[1]
        split = n_labels * prepared.phi.shape[1]
        W, G = fit.params[:split].reshape(n_labels, -1), fit.params[split:].reshape(len(self.core_), n_labels)
        self.coef_, self.intercept_ = prepared.coefficients(W)
        self.pair_ = symmetric_pair(G, self.core_)
        kernel = prepared.scores if isinstance(prepared.scores, KernelScores) else None
        self.basis_ = np.empty((0, 0)) if kernel is None else kernel.basis
        self.gamma_ = 1.0 if kernel is None else float(getattr(kernel.kernel, "gamma", 1.0))
        sizes = Y.sum(axis=1)
        self.k_ = int(np.clip(np.rint(np.average(sizes, weights=weight)), 1, n_labels))
        self.count_coef_ = fit_label_count(prepared.scores.scores(X, self.coef_, self.intercept_), sizes, weight)
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.n_iter_ = fit.history[-1].round if fit.history else 0

    def _label_scores(self) -> LabelScores:
        if self.scores == "linear":
            return LinearScores()
        if self.scores == "pretrained":
            return PretrainedScores()
        return KernelScores(KERNELS[self.scores](self.gamma_), self.basis_)

    def _lists(self, scores: Floats, k: ArrayLike | None, known: ArrayLike | None) -> StarLists:
        counts = checked_counts(self.k_ if k is None else k, scores.shape)
        # Copied: the arrays of a mapped file are read-only, for which the kernels would be compiled anew.
        pair = StarPair.laid_out(self.pair_.copy(), self.core_.copy())
        told = known_like(known, len(scores), self.label_names_)
        return StarLists(scores, pair, counts, checked_known(told, counts, scores.shape))

    def _selected(self, lists: StarLists) -> Selection:
        return SELECTIONS[self.surrogate](lists, Executor.of(self.n_threads))

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.ascontiguousarray(self._label_scores().scores(rows, self.coef_, self.intercept_))
        require_in_range("the scores of X", scores)
        return scores


MARGINS: dict[str, Margins] = {"max-margin": star_margins, "likelihood": star_log_odds}
DECISIONS = {"max-margin": margins, "likelihood": log_odds}
SELECTIONS = {"max-margin": best_set, "likelihood": most_probable}
"""The same of lists that were checked, and which labels to select."""
