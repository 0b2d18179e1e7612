"""Rank labels that depend on each other: c-star models trained for precision (Mensink, Verbeek, Caetano 2011)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.checks import Features, require_in_range
from slatewise.core.errors import ModelFileError
from slatewise.core.executor import Executor
from slatewise.core.label_names import columns_like, known_like, read_labels
from slatewise.core.label_sets import frame_columns, merge_rows
from slatewise.core.rankings import Rankings
from slatewise.core.results import Round
from slatewise.core.row_kernels import KERNELS
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.cstar.answering import (
    Answering,
    Asked,
    SetsOfAnySize,
    SetsOfSize,
    not_told,
    set_log_odds,
    told_log_odds,
)
from slatewise.cstar.base import MOST_LOG_ODDS, Classifier, FittedBase, KernelLogOdds
from slatewise.cstar.checks import Known
from slatewise.cstar.explanation import Explanation, explain_selection
from slatewise.cstar.fitting import Trained, base_of, is_foreign, prepare, train, train_sets, training_scores
from slatewise.cstar.inference import best_set, margins, star_margins
from slatewise.cstar.label_count import fit_label_count, mean_count, predict_label_count
from slatewise.cstar.label_scores import (
    KernelScores,
    LabelScores,
    LinearScores,
    PretrainedScores,
)
from slatewise.cstar.logistic import Labels, LinearLogOdds
from slatewise.cstar.pair import StarPair
from slatewise.cstar.partly_known import split_labels, with_unknown
from slatewise.cstar.same_rows import merge_features, rows_in_files
from slatewise.cstar.settings import check_learned, check_log_odds, check_settings, check_source, check_truth
from slatewise.cstar.subsets import chances
from slatewise.cstar.sums import log_odds, most_probable, star_log_odds
from slatewise.cstar.told_terms import ToldTerms
from slatewise.cstar.training import LEARNERS
from slatewise.data.row_source import RowSource
from slatewise.estimators.base import SavedEstimator
from slatewise.estimators.sklearn import (
    available_if,
    check_features,
    check_is_fitted,
    check_rows,
    check_weights,
    say_multi_label,
)
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Margins: TypeAlias = Callable[..., Floats]
"""Of (s, pair, core, k, known), as :func:`slatewise.cstar.inference.star_margins`."""
ScoreKind: TypeAlias = Literal["base", "linear", "pretrained", "rbf", "chi2", "intersection", "precomputed"]
Surrogate: TypeAlias = Literal["likelihood", "likelihood-k", "max-margin"]
Decision: TypeAlias = Literal["f1", "subset", "hamming", "count"]


class _Training(NamedTuple):
    """Rows to learn from."""

    rows: Floats
    """Features, log-odds, or a kernel matrix."""
    told: Known
    """(n, N) 1, 0, or -1 where nobody knows."""
    weight: Floats


def _has_probabilities(ranker: CStarRanker) -> bool:
    if ranker.surrogate == "max-margin":
        raise AttributeError("predict_proba: expected surrogate 'likelihood' or 'likelihood-k', found 'max-margin'")
    return True


def _has_base(ranker: CStarRanker) -> bool:
    if ranker.scores != "base":
        raise AttributeError(f"base_scores: expected scores 'base', found {ranker.scores!r}")
    return True


CLASSIFIER = Rule(
    "a classifier with fit and get_params",
    lambda value: isinstance(value, Classifier) and not isinstance(value, type),
)


class CStarRanker(SavedEstimator):
    """Rank the labels of a row jointly: scores of single labels plus pair terms with a few core labels.

    ``f(t) = sum_i t_i s_i(x) + sum over pairs with a core label of t_i t_j G_ij`` for a set t of labels. As it comes, s
    are the log-odds of one classifier per label, and all is fitted so that the sets of the training rows are probable
    among sets of any size: nobody needs to know how many labels are right. Answers to a few labels change what is
    expected of the others. The paper's own method, sets of k labels trained for precision at k, is
    ``scores="linear", surrogate="max-margin"``.

    Parameters
    ----------
    core : "auto", int, array of label numbers or list of label names
        How many labels interact with all others, or which. "auto": with the likelihood, as many
        as make held-out rows likelier, at most 8; else 5, or all where there are fewer. 0: independent labels.
    core_by : {"information", "gain"}
        How a number of core labels is chosen: greedily by joint mutual information with all others (with a
        likelihood: or by what the scores leave unexplained, whichever is better on inner folds), or, not with
        "likelihood", by the gain in break-even precision on inner folds (slower; may end with fewer).
    scores : {"base", "linear", "pretrained", "rbf", "chi2", "intersection", "precomputed"}
        How single labels are scored. "base": by ``base``, learnt here. "pretrained": X is the (n, n_labels) matrix of
        given scores, of rows that their model was not trained on. Of both a scale and a shift per label are learnt.
        "precomputed": X is a kernel matrix. The unit of X does not matter, see the notes.
    k : "relevant" or int
        Labels selected in training: as many as are relevant (break-even precision, convex), or a fixed number.
    surrogate : {"likelihood", "likelihood-k", "max-margin"}
        What is minimised in training: minus the log-likelihood of the relevant set among all sets, or among the sets of
        as many labels, or the hinge of precision at k. The likelihoods need log-odds (``scores`` "base" or
        "pretrained", from -745 to 745; a warning says where given ones can hardly be), ``k="relevant"`` and a core of
        at most 10.
    C : float or "auto"
        Weight of the surrogate against the regularizer: of the likelihood per row, and of the mean hinge over rows.
        "auto": by inner validation, together with ``C_pair``.
    C_pair : float, optional
        The same for the pair terms; default: ``C``.
    learner : {"bcfw", "bundle", "subgradient"}
        Of the hinge; the first two certify their result.
    tol : float
        Relative duality gap at which training ends.
    max_iter : int
        Most epochs (bcfw), rounds (bundle, likelihoods) or passes (subgradient).
    gamma : float, optional
        Of the rbf and chi2 kernels; by default as the spread of X asks for, so that the unit of X does not matter.
    n_components : int, optional
        Most basis rows of a kernel (Nystroem); default: all that matter, the exact kernel machine.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` whenever the gap is certified.
    checkpoint : path, optional
        Where bcfw keeps its state (not with a fixed k), and the bundle and the likelihoods what was computed so far;
        fit goes on from there if the file is of the same data and settings, with the same bits as if it had never
        stopped, and removes it at the end. Base scores are learnt anew: a classifier of yours needs a random_state.
    n_jobs : int, optional
        Threads over blocks of rows; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Order of the rows in training, and folds. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.
    base : None, "svc" or a scikit-learn classifier
        What learns the scores of single labels. None: logistic regression of every label on standardised features
        (of sparse X: scaled ones), its strength chosen by held-out likelihood. "svc": support vector machines with an
        rbf kernel. A classifier is cloned: once for all labels where it can learn several, else for every label. Five
        folds make scores of training rows by models that did not see them; all are calibrated on these. A model with a
        classifier of yours cannot be saved: give its out-of-fold log-odds with ``scores="pretrained"`` for that.

    Attributes
    ----------
    core_, pair_, coef_, intercept_
        Core labels; G with one row per core label; what scores single labels, for X as it was given; with a base: what
        its log-odds are multiplied by, and what is added to them.
    told_
        With the likelihood: what takes the place of these where the number of labels is told, fitted among sets of as
        many labels. Rows: what label scores are multiplied by, what is added to them, and G. Empty where nothing does:
        with one class or more than 10 labels per row, more than 1,000 labels, or labels that are not known.
    base_coef_, base_intercept_, basis_, gamma_
        The base: of features (None) or of the rbf kernel with ``basis_`` ("svc").
    label_names_
        What the labels are called in every answer, and what the columns of ``predict`` and ``decision_function`` are:
        the columns of a data frame, the names in y, ``label_names`` or the classes; else their numbers.
    classes_, multilabel_
        The classes where fit saw one class per row; else the numbers of the labels, and ``multilabel_`` is True.
    k_
        Rounded mean number of relevant labels of a training row: how many ``rank`` lists.
    objective_, lower_bound_, n_iter_
        The certificate: no parameters have an objective below the bound. With a fixed k, of the last convex problem;
        where labels are not known there is none, -inf. The objective is that of the notes, of features in its units.
    C_, C_pair_
        What was given or chosen. ``C_ == 0``: ``C="auto"`` left the scores of single labels as they are.
    n_skipped_
        Rows that were left out: of weight 0, of which no label is known, and, but for "likelihood", without a relevant
        label.

    Notes
    -----
    Training minimises, over the weights of features W and of pairs G,

    ``1/2 (|W|^2 + C / C_pair |G|^2) - C sum over rows of log-likelihood``, or with max-margin
    ``1/2 (|W|^2 + C / C_pair |G|^2) + C mean over rows of hinge`` .

    Rows count by ``sample_weight``, in the sum and in the mean. The features are those of ``scores="linear"`` with mean
    0 and variance 1 in every column; of a kernel divided by its mean value of a row with itself (1 for rbf and chi2);
    base or given scores divided, for the hinge, by their spread. So a change of units of X changes neither the fit nor
    what C means; ``coef_`` applies to X as given. Log-odds have a unit of their own: the likelihoods take them as they
    are, and W is how far scale and shift are from 1 and 0.

    A label that is never relevant in training stays selectable; training pushes it down like any other wrong label.

    Examples
    --------
    >>> from slatewise import CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarRanker().fit(scenes.X[:200], scenes.Y[:200])
    >>> ranker.rank(scenes.X[200:], k=3).ids.shape
    (100, 3)
    >>> ranker.predict_proba(scenes.X[200:]).shape
    (100, 20)
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "core_": rules.whole_array(1),
        "pair_": rules.learned_array(2),
        "coef_": rules.learned_array(1) | rules.learned_array(2),
        "intercept_": rules.learned_array(1),
        "told_": rules.learned_array(2),
        "base_coef_": rules.learned_array(2) | rules.learned_array(2, np.float32),
        "base_intercept_": rules.learned_array(1),
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
    core_: Ints
    pair_: Floats
    coef_: Floats
    intercept_: Floats
    told_: Floats
    base_coef_: NDArray[np.floating[Any]]
    base_intercept_: Floats
    basis_: NDArray[Any]
    gamma_: float
    k_: int
    count_coef_: Floats
    classes_: NDArray[Any]
    label_names_: NDArray[Any]
    multilabel_: bool
    separator_: str | None = None
    """What fit was given; a file does not keep it."""
    _foreign: FittedBase

    _rules: ClassVar[Mapping[str, Rule]] = {
        "core": rules.one_of("auto")
        | rules.count(0)
        | rules.vector("label numbers", 0, whole=True, empty=True)
        | rules.LISTED_NAMES,
        "scores": rules.one_of("base", "linear", "pretrained", *KERNELS),
        "k": rules.count() | rules.one_of("relevant"),
        "C": rules.POSITIVE | rules.one_of("auto"),
        "C_pair": rules.POSITIVE | rules.NONE,
        "learner": rules.one_of(*LEARNERS),
        "tol": rules.NOT_NEGATIVE,
        "max_iter": rules.count(),
        "gamma": rules.POSITIVE | rules.NONE,
        "n_components": rules.count() | rules.NONE,
        "core_by": rules.one_of("information", "gain"),
        "surrogate": rules.one_of("likelihood", "likelihood-k", "max-margin"),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_jobs": rules.JOBS,
        "random_state": rules.SEED,
        "base": rules.NONE | rules.one_of("svc") | CLASSIFIER,
    }

    def __init__(
        self,
        core: Literal["auto"] | int | Sequence[str] | ArrayLike = "auto",
        scores: ScoreKind = "base",
        k: Literal["relevant"] | int = "relevant",
        C: float | Literal["auto"] = "auto",
        C_pair: float | None = None,
        learner: Literal["bcfw", "bundle", "subgradient"] = "bcfw",
        tol: float = 1e-3,
        max_iter: int = 500,
        gamma: float | None = None,
        n_components: int | None = None,
        core_by: Literal["information", "gain"] = "information",
        surrogate: Surrogate = "likelihood",
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        base: Literal["svc"] | Classifier | None = None,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.base = base

    def fit(
        self,
        X: ArrayLike | Sparse | RowSource,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        label_names: Sequence[str] | NDArray[np.str_] | None = None,
        separator: str | None = None,
        answered: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows with sets of labels.

        Parameters
        ----------
        X
            Features, given scores or kernel, as ``scores`` says. Features for a base may be sparse ("svc": not). Or,
            for "pretrained" and "linear", a :func:`slatewise.cluster.source`, which names the labels too.
        y
            (n, n_labels) 0/1: an array, a data frame, whose columns name the labels, or sparse. Or names: a list, tuple
            or set of strings per row, empty where a row has no label; or one text per row, cut at ``separator``. Or one
            class per row, which is encoded one-hot. With the likelihood, NaN or -1 in a matrix says that a label is not
            known. The base learns from what is known; in the likelihood what is not known is summed out, which is no
            longer convex: the search starts at the fit of the complete rows, and there is no lower bound. Labels that
            no row has, or all rows have, are learnt as that rare or frequent; rows of which none has a label at all are
            refused.
        sample_weight
            One weight >= 0 per row.
        label_names
            What the labels are called; default: the columns of a data frame with string names, the names in y in
            order, else their numbers. With names in y: all that there may be.
        separator
            What stands between the names of a row, as in ``"sky|sea"``; an empty text is a row without labels.
        answered
            (n, n_labels) True where somebody was asked for the label; columns of a frame go by their names. Known
            labels that nobody was asked for count as not known: people volunteer what is there, and hardly ever what is
            not, so a label that is known only because it is there would teach that it is there wherever one looks.

        Examples
        --------
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], ["sea|sky", "sea", "tree", "tree", "sky"]
        >>> ranker = CStarRanker(core=["sea"]).fit(X, y, separator="|")
        >>> ranker.label_names_.tolist(), ranker.core_.tolist(), ranker.predict([[0.0]]).shape
        (['sea', 'sky', 'tree'], [0], (1, 3))
        """
        rules.check(self)
        executor = Executor.of(self.n_jobs)
        if isinstance(X, RowSource):
            given = {"y": y, "sample_weight": sample_weight, "label_names": label_names, "separator": separator}
            given["answered"] = answered
            return self._fit_files(X, [name for name, value in given.items() if value is not None], executor)
        rows = self._rows(X, reset=True)
        told = self._labels(y, int(rows.shape[0]), label_names, separator, answered)
        weight = check_weights(sample_weight, len(told))
        require_in_range("sample_weight", weight)
        check_settings(self, rows, told)
        if self.scores == "pretrained" and self.surrogate != "max-margin":
            check_log_odds(float(rows.min()), float(rows.max()))
        seen = (weight > 0) & (told >= 0).any(axis=1)
        used = seen & self._says_something(told)
        self._begin(told, used)
        card = card_for(len(told), *_as_arrays(rows), told, weight)
        if self.scores == "base":
            kept = self._fit_base(rows[seen], told[seen], weight[seen], executor)
        elif self.scores == "precomputed":
            kept = _Training(cast("Floats", rows), told, weight)
        else:
            kept = _Training(*merge_rows(cast("Floats", rows)[used], told[used], weight[used]))
        sha = card_for(0, kept.rows).data_sha256 if is_foreign(self) else card.data_sha256
        trained = self._train(kept, used if self.scores == "precomputed" else None, sha, executor)
        return self._certified(card, trained)

    def label_scores(self, X: ArrayLike | Sparse) -> Floats:
        """Return what each label scores by itself, (n, n_labels): the model without its pair terms."""
        return self._scores(X)

    @available_if(_has_base)
    def base_scores(self, X: ArrayLike | Sparse) -> Floats:
        """Return the log-odds of each label by the base alone, (n, n_labels): what it knew before labels met.

        Calibrated on the folds of training, and the plain thing to set the ranker beside; ``label_scores`` are these,
        scaled and shifted to go with the pair terms. Only with ``scores="base"``.

        Examples
        --------
        >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
        >>> CStarRanker().fit(X, [[0, 1], [0, 1], [1, 0], [1, 1], [1, 0]]).base_scores([[0.5]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._base_log_odds(self._rows(X, reset=False))
        require_in_range("the scores of X", scores)
        return scores

    @property
    def label_margins(self) -> Margins:
        """How ``decision_function`` is computed from label scores, ``pair_`` and ``core_``."""
        terms = ToldTerms.of(self.told_)
        return MARGINS[self.surrogate] if terms is None else partial(told_log_odds, terms)

    @property
    def needs_count(self) -> bool:
        """Whether ``label_margins`` must be told how many labels are right."""
        return self.surrogate != "likelihood"

    def decision_function(
        self, X: ArrayLike | Sparse, k: ArrayLike | None = None, known: ArrayLike | None = None
    ) -> Floats:
        """Return, for each row and label, how much it belongs in: larger than 0 where more likely in than out.

        With the likelihood: the log-odds of the label, given what is known, and given that k labels are relevant where
        k is told. With "likelihood-k" always given k; with max-margin the best score with the label in minus the best
        with it out, among sets of k labels.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            How many labels are relevant: a number, or one per row; default: not told ("likelihood"), or ``k_``.
        known
            (n, n_labels): 1 yes, 0 no, -1 unknown; labels that are forced get +inf or -inf. By name: one mapping per
            row, ``{"sky": 1, "sea": 0}``, one set of names per row, which are yes, or a data frame; what they do not
            mention is unknown. More than k labels known to be relevant, where k is told, are an error.

        Notes
        -----
        With max-margin and more than 16 core labels a best score may be the best found within a node limit: then an
        :class:`~slatewise.cstar.inference.UnprovenWarning` says so, and
        :func:`~slatewise.inference.star_max_marginals` on ``label_scores``, ``pair_`` and ``core_`` gives the bounds.
        """
        return self._answering().margins(self._asked(self._scores(X), k, known), Executor.of(self.n_jobs))

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike | Sparse, known: ArrayLike | None = None) -> Floats:
        """Return the probability of each label, (n, n_labels), given what is known; not with max-margin.

        Among sets of any size; with "likelihood-k" among sets of ``k_`` labels, and where fit saw one class per row
        among these, so that they add up to 1.
        """
        return chances(self.decision_function(X, known=known))

    def rank(self, X: ArrayLike | Sparse, k: ArrayLike | None = None, known: ArrayLike | None = None) -> Rankings:
        """Return labels of each row, best first.

        With the likelihood: the most probable labels, scored by their log-odds. k only says how many to list, and says
        nothing of how many are right; labels known to be in come first and score inf, labels known to be out are not
        listed, and no answer is one too many. With the other surrogates: the k labels of the best set (max-margin),
        scored by how much the best score falls without them, or the k most probable labels given that k are right.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            How many labels: a number, or one per row; default ``k_``.
        known
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
        listed = self._answering().listed(self._asked(self._scores(X), k, known), Executor.of(self.n_jobs))
        offsets = np.concatenate(([0], np.cumsum(listed.counts)))
        names = self.label_names_[listed.items]
        return Rankings.of_lists(np.arange(len(listed.counts)), names, listed.scores, offsets)

    def predict(
        self, X: ArrayLike | Sparse, k: ArrayLike | None = None, decision: Decision | None = None
    ) -> NDArray[Any]:
        """Return the selected labels as 0/1 rows; the class of each row where fit saw one class per row.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            How many labels to select, where that is known; default: as the decision says, or ``k_`` without one.
        decision : {"f1", "subset", "hamming", "count"}, optional
            With the likelihood, what the set is best for: the expected F1 of the row (default), being right as a whole,
            fewest wrong labels; or the most probable labels, as many as are expected.
        """
        asked = self._asked(self._scores(X), k if self.multilabel_ else None, None)
        flags = self._answering().decided(asked, decision, Executor.of(self.n_jobs))
        return flags.astype(np.int64) if self.multilabel_ else self.classes_[flags.argmax(axis=1)]

    def predict_count(self, X: ArrayLike | Sparse) -> Ints:
        """Estimate the number of relevant labels of each row: with the likelihood, as many as are expected."""
        scores = self._scores(X)
        if self.needs_count:
            return predict_label_count(scores, self.count_coef_)
        margins = self._answering().margins(self._asked(scores, None, None), Executor.of(self.n_jobs))
        return np.rint(chances(margins).sum(axis=1)).astype(np.int64)

    def score(
        self,
        X: ArrayLike | Sparse,
        y: Any,
        sample_weight: ArrayLike | None = None,
        separator: str | None = None,
        told: bool = True,
    ) -> float:
        """Return the break-even precision: of as many labels as are relevant in a row; rows without any are left out.

        Parameters
        ----------
        X, y
            As in :meth:`fit`, all labels known; names, and columns of a data frame, are those that fit saw, in any
            order.
        sample_weight
            One weight >= 0 per row.
        separator
            As in :meth:`fit`; default: what fit was given, unless y has other forms than texts.
        told
            Whether the model is told how many labels of each row are relevant, as in the paper, before it ranks them.
        """
        scores = self._scores(X)
        labels = check_truth(self, y, len(scores), separator)
        weight = check_weights(sample_weight, len(scores)) * (labels.sum(axis=1) > 0)
        require_in_range("sample_weight", weight)
        if not weight.any():
            raise ValueError("y: expected a row of weight > 0 with a relevant label, found none")
        counts, asked = labels.sum(axis=1).astype(np.int64), self._asked(scores, None, None)
        executor, answering = Executor.of(self.n_jobs), self._answering()
        chosen = answering.told(asked, counts, executor) if told else not_told(answering, asked, counts, executor)
        rows = np.repeat(np.arange(len(labels)), counts)
        hits = np.bincount(rows, labels[rows, chosen], len(labels)) / np.maximum(counts, 1)
        return float(np.average(hits, weights=weight))

    def next_question(self, X: ArrayLike | Sparse, known: ArrayLike, k: ArrayLike | None = None) -> Ints:
        """Return the label to ask next in each row, -1 where none is left to ask: the answers decide all of them.

        The label whose ``decision_function`` is closest to 0: where the model is least sure. Without k the likelihood
        asks until all labels are known; what ``decision_function`` says of more than 16 core labels holds here too.
        """
        distance = np.abs(self.decision_function(X, k, known))
        question = np.argmin(distance, axis=1).astype(np.int64)
        # A label that is known, or that the answers already decide, has an infinite margin.
        return np.where(np.isfinite(distance.min(axis=1)), question, -1)

    def explain(self, X: ArrayLike | Sparse, k: int | None = None, known: ArrayLike | None = None) -> Explanation:
        """Say, for the labels that ``rank`` lists, what their own score gave and what each core label gave.

        Where lists differ in length because labels are known to be out, all are cut to the shortest.
        """
        scores = self._scores(X)
        listed = self._answering().listed(self._asked(scores, k, known), Executor.of(self.n_jobs))
        shortest = int(listed.counts.min(initial=scores.shape[1])) if len(listed.counts) else 0
        first = np.cumsum(listed.counts) - listed.counts
        selected = listed.items[first[:, None] + np.arange(shortest)]
        why = explain_selection(scores, self.pair_, self.core_, selected)
        return replace(why, labels=self.label_names_[why.labels], core=self.label_names_[why.core])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one ``.safetensors`` file; the file appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        if is_foreign(self):
            found = f"found {type(self.base).__name__}, of which a file could not hold the code"
            raise ModelFileError(
                f"base: expected None or 'svc' to save, {found}: fit on its out-of-fold log-odds with "
                "scores='pretrained', and keep the classifier beside the file"
            )
        super().save(path)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        check_learned(self)

    def __sklearn_tags__(self) -> Any:
        """Say that y is needed, and may have several labels per row, and where X may be sparse."""
        tags = say_multi_label(super().__sklearn_tags__())
        tags.input_tags.sparse = self.scores == "base" and self.base != "svc"
        return tags

    # --- parts -------------------------------------------------------------------------------------------------------

    def _fit_files(self, source: RowSource, given: list[str], executor: Executor) -> Self:
        """Learn from rows that stay in their files; labels, of which there are few, are held here."""
        if given:
            raise ValueError(f"{given[0]}: expected None with a source, which names its columns, found a value")
        check_source(self)
        told = self._labels(source.labels(executor), source.n_rows, source.format.label_names, None, None)
        check_settings(self, cast("Floats", source.features), told)
        used = (told >= 0).any(axis=1) & self._says_something(told)
        self._begin(told, used)
        self.n_features_in_ = source.n_features
        rows = rows_in_files(source, told, used, executor)
        if self.scores == "pretrained":
            check_log_odds(rows.low, rows.high)
        card = replace(card_for(len(told), told), n_rows=len(told), data_sha256=source.sha256(rows.digest))
        kept = _Training(cast("Floats", rows.features), told[rows.places], rows.weight)
        return self._certified(card, self._train(kept, None, card.data_sha256, executor))

    def _begin(self, told: Known, used: NDArray[np.bool_]) -> None:
        """Refuse rows of which none says anything, and forget what was learnt before."""
        if not (used & ((told > 0).any(axis=1) | (self.k != "relevant"))).any():
            raise ValueError("y: expected a row with a relevant label, found none whose sample_weight is not zero")
        self._settle_seed()
        self.n_skipped_ = int(len(told) - used.sum())
        self.base_coef_, self.base_intercept_ = np.empty((0, 0)), np.empty(0)
        self.basis_, self.gamma_ = np.empty((0, 0)), 1.0

    def _certified(self, card: ModelCard, trained: Trained) -> Self:
        self.model_card_ = replace(
            card, objective=self.objective_, lower_bound=self.lower_bound_, converged=trained.fit.converged
        )
        return self

    def _rows(self, X: ArrayLike | Sparse, *, reset: bool) -> Features:
        """Return X as float64, sparse only where a base takes that; bounded but where a unit is taken off."""
        if self.scores == "base" and self.base != "svc":
            return check_features(self, X, reset=reset).astype(np.float64)
        rows = check_rows(self, cast("ArrayLike", X), reset=reset).astype(np.float64)
        if reset and self.scores != "linear":
            require_in_range("X", rows)
        return rows

    def _labels(
        self, y: Any, n_rows: int, label_names: Any, separator: str | None, answered: ArrayLike | None
    ) -> Known:
        """Return (n, N) of 1, 0, and -1 where a label is not known; keep what the labels are called."""
        split = split_labels(y)
        if split.unknown is not None and label_names is None:
            label_names = frame_columns(y)  # which the numbers without what is not known no longer have
        labels, self.label_names_, classes = read_labels(split.labels, n_rows, label_names, separator)
        self.separator_, self.multilabel_ = separator, classes is None
        self.classes_ = np.arange(labels.shape[1]) if classes is None else classes
        if answered is not None:
            if classes is not None:
                raise ValueError("answered: expected None with one class per row, found a mask")
            answered = columns_like("answered", answered, self.label_names_)
        return with_unknown(labels.astype(np.int8), split.unknown, answered, self.surrogate)

    def _says_something(self, told: Known) -> NDArray[np.bool_]:
        """Return the rows that training can use: a row without labels says nothing about break-even precision."""
        if self.surrogate == "likelihood" or self.k != "relevant":
            return np.ones(len(told), dtype=np.bool_)
        return np.any(told > 0, axis=1)

    def _fit_base(self, X: Features, told: Known, weight: Floats, executor: Executor) -> _Training:
        """Learn base scores; return those of the rows that the rest is learnt from, by models that did not see them."""
        if not is_foreign(self):  # whose classifier may take no weights
            X, told, weight = merge_features(X, told, weight)
        out_of_fold, fitted = base_of(self).cross_fit(X, Labels(told, weight), self.seed_, executor)
        self.base_coef_, self.base_intercept_, self.basis_, self.gamma_ = fitted.arrays()
        self._foreign = fitted
        used = self._says_something(told)
        return (
            _Training(out_of_fold, told, weight)
            if used.all()
            else _Training(out_of_fold[used], told[used], weight[used])
        )

    def _train(self, kept: _Training, used: NDArray[np.bool_] | None, data_sha256: str, executor: Executor) -> Trained:
        """Learn from scores or features; ``used`` are the rows of a kernel matrix that count."""
        if self.surrogate == "likelihood":
            trained = train_sets(self, kept.rows, kept.told, kept.weight, data_sha256, executor)
            count_coef = np.zeros(kept.told.shape[1] + 1)  # the likelihood itself says how many are expected
        else:
            Y = kept.told.astype(np.float64)
            prepared = prepare(self, kept.rows, Y, kept.weight, executor)
            if used is not None:
                prepared = replace(prepared, phi=prepared.phi[used])
                kept, Y = _Training(kept.rows[used], kept.told[used], kept.weight[used]), Y[used]
            trained = train(self, prepared, Y, kept.weight, data_sha256, executor)
            if isinstance(prepared.scores, KernelScores):
                self.basis_, self.gamma_ = prepared.scores.basis, float(getattr(prepared.scores.kernel, "gamma", 1.0))
            scores = training_scores(prepared, kept.rows, trained, executor)
            count_coef = fit_label_count(scores, Y.sum(axis=1), kept.weight)
        fit, self.core_, self.C_, self.C_pair_, self.coef_, self.intercept_, self.pair_, self.told_ = trained
        self.count_coef_, self.k_ = count_coef, mean_count(kept.told, kept.weight)
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.n_iter_ = fit.history[-1].round if fit.history else 0
        return trained

    def _base(self) -> FittedBase:
        if is_foreign(self):
            return self._foreign
        if self.base == "svc":
            return KernelLogOdds(self.gamma_, self.basis_, self.base_coef_, self.base_intercept_)
        return LinearLogOdds(self.base_coef_, self.base_intercept_)

    def _base_log_odds(self, rows: Features) -> Floats:
        return np.clip(self._base().log_odds(rows), -MOST_LOG_ODDS, MOST_LOG_ODDS)

    def _label_scores(self) -> LabelScores:
        if self.scores == "linear":
            return LinearScores()
        if self.scores in ("base", "pretrained"):
            return PretrainedScores()
        return KernelScores(KERNELS[self.scores](self.gamma_), self.basis_)

    def _answering(self) -> Answering:
        check_is_fitted(self)
        if self.surrogate == "likelihood":
            return SetsOfAnySize(self.k_, not self.multilabel_, ToldTerms.of(self.told_))
        return SetsOfSize(self.k_ if self.multilabel_ else 1, *BY_SIZE[self.surrogate])

    def _asked(self, scores: Floats, k: ArrayLike | None, known: ArrayLike | None) -> Asked:
        told = known_like(known, len(scores), self.label_names_)
        # Copied: the arrays of a mapped file are read-only, for which the kernels would be compiled anew.
        return Asked(scores, StarPair.laid_out(self.pair_.copy(), self.core_.copy()), k, told)

    def _scores(self, X: ArrayLike | Sparse) -> Floats:
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.scores == "base":
                rows = self._base_log_odds(rows)
            given = self._label_scores().scores(cast("Floats", rows), self.coef_, self.intercept_)
            scores = np.ascontiguousarray(given)
        require_in_range("the scores of X", scores)
        return scores


def _as_arrays(rows: Features) -> tuple[NDArray[Any], ...]:
    """Return what to hash; the first has one entry per row."""
    return (rows,) if isinstance(rows, np.ndarray) else (rows.indptr[1:], rows.indices, rows.data)


MARGINS: dict[str, Margins] = {
    "likelihood": set_log_odds,
    "likelihood-k": star_log_odds,
    "max-margin": star_margins,
}
BY_SIZE = {"likelihood-k": (log_odds, most_probable), "max-margin": (margins, best_set)}
"""Margins of lists that were checked, and which labels to select."""
