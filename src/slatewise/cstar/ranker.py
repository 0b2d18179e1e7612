"""Rank labels that depend on each other, by the likelihood of label sets of any size."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import Features, require_in_range
from slatewise.core.declarations import JOBS_TEXT, learned, param, seed_text
from slatewise.core.errors import ModelFileError
from slatewise.core.numerics.result import Fit
from slatewise.core.rules import Rule
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import progress_bars, tell
from slatewise.core.seeds import RandomState
from slatewise.cstar.answers import AnySizePredictor, known_count_log_odds, mean_count, set_log_odds
from slatewise.cstar.base.classifiers import (
    MOST_LOG_ODDS,
    Base,
    Classifier,
    ClassifierBase,
    FittedBase,
    KernelLogOdds,
    LogisticBase,
    SvcBase,
)
from slatewise.cstar.base.logistic import Labels, LinearLogOdds
from slatewise.cstar.inference.any_size import chances
from slatewise.cstar.inference.fixed_size import MOST_SUMMED
from slatewise.cstar.inference.model import StarPair, symmetric_pair
from slatewise.cstar.likelihood.choice import STRENGTHS, choose_terms
from slatewise.cstar.likelihood.fit import (
    KnownCountTerms,
    Settings,
    fit_any_size,
    fit_known_count,
    has_known_count_terms,
)
from slatewise.cstar.likelihood.objective import AdjustedScores
from slatewise.cstar.rows import (
    check_given_scores,
    check_partly_known,
    core_of,
    merge_features,
    read_label_table,
    refuse_beside_source,
    rows_in_files,
)
from slatewise.cstar.star_ranker import CORE, Margins, StarRanker
from slatewise.data.row_source import RowSource
from slatewise.estimators.sklearn import available_if, check_features, check_is_fitted, check_rows, check_weights
from slatewise.persistence.checkpoint import Callbacks, Path, resumed
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

Decision: TypeAlias = Literal["f1", "subset", "hamming", "count"]

CLASSIFIER = Rule(
    "a classifier with fit and get_params",
    lambda value: isinstance(value, Classifier) and not isinstance(value, type),
)
MAX_TERM = 100.0
"""Of a pair term: exponentials of several are multiplied."""
_LEAST_RANGE = 0.1
_SVC_ARRAYS = ("base_coef_", "base_intercept_", "basis_", "gamma_")


def _has_base(ranker: CStarRanker) -> bool:
    if isinstance(ranker.base, str) and ranker.base == "precomputed":
        raise AttributeError("base_scores: expected a base that is learned, found base='precomputed'")
    return True


class CStarRanker(StarRanker):
    """Rank the labels of a row jointly: log-odds of every label, and pair terms with a few core labels.

    ``f(t) = sum_i t_i s_i(x) + sum over pairs with a core label of t_i t_j G_ij`` for a set t of labels. s are the
    log-odds of one classifier per label, and all is fitted so that the sets of the training rows are probable among
    sets of any size: the number of labels need not be known. Known labels of a row change the probabilities of the
    others. :class:`slatewise.CStarMarginRanker` is the model of the paper instead.

    Notes
    -----
    Training minimizes, over the pair terms G and, per label, a scale 1 + a and a shift v of the log-odds,

    ``1/2 (|a|^2 + |v|^2 + C / C_pair |G|^2) - C sum over rows of log-likelihood`` .

    Rows count by ``sample_weight``. Base features are standardized, so that their units change nothing; log-odds have a
    unit of their own.

    ``decision_function`` returns the log-odds of a label, given the known labels, and given k if the number of labels
    is known. ``rank`` lists the most probable labels with their log-odds; k cuts the lists and says nothing of how many
    labels apply. Labels known to apply come first with score inf, labels known not to apply are not listed.
    ``next_question`` goes on until all labels are known, unless k is.

    A label that no training row has, or that all have, is learned as that rare or frequent.

    Examples
    --------
    >>> from slatewise import CStarMarginRanker, CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarRanker().fit(scenes.X[:200], scenes.Y[:200])
    >>> ranker.rank(scenes.X[200:], k=3).ids.shape
    (100, 3)
    >>> ranker.predict_proba(scenes.X[200:]).shape
    (100, 20)
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    base: Literal["svc", "precomputed"] | Classifier | None = param(
        rules.NONE | rules.one_of("svc", "precomputed") | CLASSIFIER,
        """What learns the log-odds of single labels. None: logistic regression of every label on standardized features
        (of sparse X: scaled ones), its strength chosen by held-out likelihood. "svc": support vector machines with an
        rbf kernel. A scikit-learn classifier is cloned: once for all labels if it can learn several, else for every
        label. Five folds give scores of training rows by models that did not see them; all are calibrated on these.
        "precomputed": X is the (n, n_labels) matrix of log-odds, from -745 to 745, by models that were not trained on
        its rows. A ranker with a classifier of yours cannot be saved: fit on its out-of-fold log-odds for that.""",
        default=None,
        kw_only=False,
    )
    core: Literal["auto"] | int | Sequence[str] | ArrayLike = param(
        rules.one_of("auto") | CORE,
        """The number of labels, at most 10, that interact with all others, or which, by number or name. A number of
        them is chosen greedily by joint mutual information with all others, or by what the scores leave unexplained,
        whichever is better on inner folds. "auto": as many as make held-out rows more probable, at most 8. 0:
        independent labels.""",
        default="auto",
    )
    C: float | Literal["auto"] = param(
        rules.POSITIVE | rules.one_of("auto"),
        'Weight of the likelihood of a row against the regularizer. "auto": by inner validation.',
        default="auto",
    )
    C_pair: float | None = param(
        rules.POSITIVE | rules.NONE, "The same for the pair terms, with a number as C. None: C.", default=None
    )
    tol: float = param(rules.NOT_NEGATIVE, "Relative certified gap at which training ends.", default=1e-3)
    max_iter: int = param(rules.count(), "The maximum number of rounds.", default=500)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(rules.SEED, seed_text("Of the folds."), default=None)

    coef_: Floats = learned(
        rules.learned_array(1), "What log-odds of the base are multiplied by, per label.", shape=("label_names_",)
    )
    known_count_terms_: Floats = learned(
        rules.learned_array(2),
        """What takes the place of ``coef_``, ``intercept_`` and ``pair_`` for a known number of labels, fitted among
        sets of that size. Rows: what label scores are multiplied by, what is added to them, and G. Absent with one
        class or more than 10 labels per row, more than 1,000 labels, or partly known labels.""",
        shape=("rows", "label_names_"),
        optional=True,
    )
    base_coef_: NDArray[np.floating[Any]] = learned(
        rules.learned_array(2) | rules.learned_array(2, np.float32),
        'The base: weights of features (None) or of kernels with ``basis_`` ("svc"). Absent for other bases.',
        shape=("label_names_", "base_width"),
        optional=True,
    )
    base_intercept_: Floats = learned(
        rules.learned_array(1), "The intercepts of the base.", shape=("label_names_",), optional=True
    )
    basis_: Floats = learned(
        rules.learned_array(2),
        'The rows that the rbf kernel of base="svc" compares with.',
        shape=("base_width", "n_features_in_"),
        optional=True,
    )
    gamma_: float = learned(rules.LEARNED_POSITIVE, "The gamma of that kernel.", optional=True)
    _fitted_base: FittedBase = learned(rules.ANY, "", saved=False)

    def fit(
        self,
        X: ArrayLike | Sparse | RowSource,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        label_names: Sequence[str] | NDArray[np.str_] | None = None,
        separator: str | None = None,
        answered: ArrayLike | None = None,
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from rows with sets of labels.

        Parameters
        ----------
        X
            Features, or log-odds with ``base="precomputed"``. Features may be sparse, unless base is "svc". Log-odds
            may be a :func:`slatewise.cluster.source`, which names the labels too.
        y
            (n, n_labels) 0/1: an array, a data frame, whose columns name the labels, or sparse. Or names: a list, tuple
            or set of strings per row, empty for a row without labels; or one text per row, cut at ``separator``. Or one
            class per row, which is encoded one-hot. NaN or -1 in a matrix is an unknown label: the base learns from
            known ones; the likelihood sums unknown ones out and is no longer convex, so the search starts at the fit of
            the complete rows, and there is no lower bound.
        sample_weight
            One weight >= 0 per row.
        label_names
            The names of the labels; default: the columns of a data frame with string names, the names in y in order,
            else their numbers. With names in y: all possible ones.
        separator
            What stands between the names of a row, as in ``"sky|sea"``; an empty text is a row without labels.
        answered
            (n, n_labels) True for a label that an annotator was to answer for; columns of a frame go by their names.
            Known labels outside of it count as unknown: people volunteer labels that apply, and hardly ever others, so
            that such labels would be learned as far too frequent.
        callbacks
            Functions to call with a :class:`slatewise.core.numerics.result.Round` after every round.
        checkpoint
            A file that keeps what was computed so far. If it is there, and of the same data and settings, fit goes on
            from it and ends with the same bits as if it had never stopped. At the end the file is removed. The base is
            learned anew: a classifier of yours needs a random_state.

        Examples
        --------
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], ["sea|sky", "sea", "tree", "tree", "sky"]
        >>> ranker = CStarRanker(core=["sea"]).fit(X, y, separator="|")
        >>> ranker.label_names_.tolist(), ranker.core_.tolist(), ranker.predict([[0.0]]).shape
        (['sea', 'sky', 'tree'], [0], (1, 3))
        """
        rules.check(self)
        if isinstance(self.C, str) and self.C_pair is not None:
            raise ValueError(f"C_pair: expected None with C='auto', which goes for all terms, found {self.C_pair!r}")
        if isinstance(X, RowSource):
            beside = {"y": y, "sample_weight": sample_weight, "label_names": label_names, "separator": separator}
            refuse_beside_source({**beside, "answered": answered})
            return self._fit_source(X, callbacks, checkpoint)
        rows = self._features(X, reset=True)
        weight = check_weights(sample_weight, int(rows.shape[0]))
        require_in_range("sample_weight", weight)
        labels = read_label_table(y, len(weight), label_names, separator, answered)
        known = labels.known
        check_partly_known(known)
        core = "auto" if isinstance(self.core, str) else core_of(self.core, labels.names, MOST_SUMMED)
        if self.base == "precomputed":
            check_given_scores(rows, *known.shape)
            require_in_range("X", cast("Floats", rows))
            check_log_odds(float(rows.min()), float(rows.max()))
        used = (weight > 0) & np.any(known >= 0, axis=1)
        self._begin(labels, separator, used & np.any(known > 0, axis=1), int(len(used) - used.sum()))
        arrays = (rows,) if isinstance(rows, np.ndarray) else (rows.indptr[1:], rows.indices, rows.data)
        card = card_for(len(known), *arrays, known, weight)
        rows, known, weight = rows[used], known[used], weight[used]
        if isinstance(self.base, str | None):  # a classifier of the user's may take no weights
            rows, known, weight = merge_features(rows, known, weight)
        with self._progress():
            given = cast("Floats", rows) if self.base == "precomputed" else self._fit_base(rows, Labels(known, weight))
            return self._fit_terms(given, known, weight, core, card, callbacks, checkpoint)

    def predict(
        self, X: ArrayLike | Sparse, k: ArrayLike | None = None, decision: Decision | None = None
    ) -> NDArray[Any]:
        """Return the selected labels as 0/1 rows, or the class of each row if fit saw one class per row.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        k
            The number of labels of each row, if it is known; default: as many as the decision takes.
        decision : {"f1", "subset", "hamming", "count"}, optional
            What the set is best for: the expected F1 of the row (default), being right as a whole, or the fewest wrong
            labels; "count": the most probable labels, as many as are expected.
        """
        check_is_fitted(self)
        rows = self._rows(X, k if self.multilabel_ else None, None)
        return self._of_flags(self._predictor().chosen(rows, decision, Executor.of(self.n_jobs)))

    def predict_proba(self, X: ArrayLike | Sparse, known: ArrayLike | None = None) -> Floats:
        """Return the probability of each label, (n, n_labels), given the known labels.

        Among sets of any size; if fit saw one class per row, among these, so that they add up to 1.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        known
            As in :meth:`decision_function`.
        """
        return chances(self.decision_function(X, known=known))

    def predict_count(self, X: ArrayLike | Sparse) -> Ints:
        """Return the expected number of labels of each row, rounded.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        """
        margins = self._predictor().margins(self._rows(X, None, None), Executor.of(self.n_jobs))
        return np.rint(chances(margins).sum(axis=1)).astype(np.int64)

    @available_if(_has_base)
    def base_scores(self, X: ArrayLike | Sparse) -> Floats:
        """Return the log-odds of each label by the base alone, (n, n_labels), calibrated on the folds of training.

        They are the baseline of the ranker; ``label_scores`` are these, scaled and shifted to go with the pair terms.
        Not with ``base="precomputed"``.

        Parameters
        ----------
        X
            As in :meth:`fit`.

        Examples
        --------
        >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
        >>> CStarRanker().fit(X, [[0, 1], [0, 1], [1, 0], [1, 1], [1, 0]]).base_scores([[0.5]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._log_odds(self._features(X, reset=False))
        require_in_range("the scores of X", scores)
        return scores

    @property
    def label_margins(self) -> Margins:
        """How ``decision_function`` follows from label scores, ``pair_`` and ``core_``; for labeling."""
        terms: Floats | None = vars(self).get("known_count_terms_")
        return set_log_odds if terms is None else partial(known_count_log_odds, KnownCountTerms.of(terms))

    @property
    def needs_count(self) -> bool:
        """Whether ``label_margins`` needs the number of labels of a row: no."""
        return False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one ``.safetensors`` file; the file appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        if not isinstance(self.base, str | None):
            found = f"found {type(self.base).__name__}, whose code a file cannot hold"
            raise ModelFileError(
                f"base: expected None, 'svc' or 'precomputed' to save, {found}: fit on its out-of-fold log-odds with "
                "base='precomputed', and keep the classifier beside the file"
            )
        super().save(path)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _features(self, X: ArrayLike | Sparse, *, reset: bool) -> Features:
        """Return X as float64, sparse only for a base that takes it."""
        if isinstance(self.base, str):
            return check_rows(self, cast("ArrayLike", X), reset=reset).astype(np.float64)
        return check_features(self, X, reset=reset).astype(np.float64)

    def _fit_source(self, source: RowSource, callbacks: Callbacks, checkpoint: Path) -> Self:
        """Learn from log-odds that stay in their files; labels, which are small, are read."""
        if self.base != "precomputed":
            raise ValueError(
                f"base: expected 'precomputed' with a source, found {rules.short_repr(self.base)}: a base learns from "
                "rows in memory; fit it first, and give its out-of-fold log-odds"
            )
        executor = Executor.of(self.n_jobs)
        labels = read_label_table(source.labels(executor), source.n_rows, source.format.label_names)
        known = labels.known
        check_partly_known(known)
        core = "auto" if isinstance(self.core, str) else core_of(self.core, labels.names, MOST_SUMMED)
        check_given_scores(source.features, *known.shape)
        used = np.any(known >= 0, axis=1)
        self._begin(labels, None, used & np.any(known > 0, axis=1), int(len(used) - used.sum()))
        self.n_features_in_ = source.n_features
        rows = rows_in_files(source, known, used, executor)
        check_log_odds(rows.low, rows.high)
        card = replace(card_for(len(known), known), n_rows=len(known), data_sha256=source.sha256(rows.digest))
        log_odds = cast("Floats", rows.features)
        return self._fit_terms(log_odds, known[rows.numbers], rows.weight, core, card, callbacks, checkpoint)

    def _progress(self) -> AbstractContextManager[None]:
        """Show bars of all stages, unless scikit-learn's callbacks show the fit."""
        return nullcontext() if hasattr(self, "_skl_callbacks") else progress_bars(type(self).__name__)

    def _fit_base(self, rows: Features, labels: Labels) -> Floats:
        """Learn the base; return the log-odds of training rows by models that did not see them."""
        if self.base is None:
            learner: Base = LogisticBase()
        else:
            learner = SvcBase() if isinstance(self.base, str) else ClassifierBase(self.base)
        tell("base classifiers")
        log_odds, self._fitted_base = learner.cross_fit(rows, labels, self.seed_, Executor.of(self.n_jobs))
        for name, value in self._fitted_base.learned().items():
            setattr(self, name, value)
        return log_odds

    def _fit_terms(
        self,
        given: Floats,
        known: Bytes,
        weight: Floats,
        core: Literal["auto"] | int | Ints,
        card: ModelCard,
        callbacks: Callbacks,
        checkpoint: Path,
    ) -> Self:
        """Choose the core and C, fit scale, shift and pair terms of given log-odds (n, N), and keep them."""
        strengths = STRENGTHS if isinstance(self.C, str) else (float(self.C),)
        rho = 1.0 if self.C_pair is None or isinstance(self.C, str) else float(self.C) / float(self.C_pair)
        settings, executor = Settings(1.0, rho, self.tol, self.max_iter, self.seed_), Executor.of(self.n_jobs)
        # What a classifier of the user's makes of the data tells one from another.
        own = not isinstance(self.base, str | None)
        sha256, as_used = card.data_sha256, dict[str, str]()
        if own:
            sha256, as_used = card_for(0, given).data_sha256, {"base": type(self.base).__name__}
        with resumed(self, sha256, callbacks, checkpoint, as_used) as tell_round:
            if isinstance(core, str | int) or len(strengths) > 1:
                tell("choosing core labels and C")
            chosen, C = choose_terms(given, known, weight, core, strengths, settings, executor)
            model = AdjustedScores(given, chosen)
            fit = Fit(np.zeros(model.n_params), 0.0, 0.0, True, ())
            if C > 0.0:
                settings = replace(settings, C=C, callback=tell_round)
                fit = fit_any_size(given, known, weight, chosen, settings, executor)
                if self.multilabel_ and has_known_count_terms(known, weight):
                    tell("terms for a known number of labels")
                    terms = fit_known_count(given, known, weight, chosen, settings, executor, fit.params)
                    self.known_count_terms_ = terms.rows()
        a, v, G = model.unpack(fit.params)
        self.coef_, self.intercept_, self.pair_ = 1.0 + a, v.copy(), symmetric_pair(G, chosen)
        self.k_ = mean_count(known, weight)
        return self._finish(fit, chosen, C, C / rho, card)

    def _unary_scores(self, X: ArrayLike | Sparse) -> Floats:
        rows = self._features(X, reset=False)
        log_odds = cast("Floats", rows) if self.base == "precomputed" else self._log_odds(rows)
        return log_odds * self.coef_ + self.intercept_

    def _log_odds(self, rows: Features) -> Floats:
        """Return the log-odds of each label by the base."""
        if self.base is None:
            base: FittedBase = LinearLogOdds(self.base_coef_, self.base_intercept_)
        elif self.base == "svc":
            base = KernelLogOdds(self.gamma_, self.basis_, self.base_coef_, self.base_intercept_)
        else:
            base = self._fitted_base
        return np.clip(base.log_odds(rows), -MOST_LOG_ODDS, MOST_LOG_ODDS)

    def _predictor(self) -> AnySizePredictor:
        check_is_fitted(self)
        return AnySizePredictor(self.k_, not self.multilabel_, vars(self).get("known_count_terms_"))

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        if len(self.core_) > MOST_SUMMED:
            raise ValueError(f"core_: expected at most {MOST_SUMMED} labels, found {len(self.core_)}")
        pairs, terms = {"pair_": self.pair_}, vars(self).get("known_count_terms_")
        if terms is not None:
            if len(terms) != 2 + len(self.core_):
                raise ValueError(f"known_count_terms_: expected {2 + len(self.core_)} rows, found {len(terms)}")
            pairs["known_count_terms_"] = terms[2:]
        for name, pair in pairs.items():
            if np.abs(pair).max(initial=0.0) > MAX_TERM:
                raise ValueError(f"{name}: expected pair terms up to {MAX_TERM:g}, found larger ones")
            StarPair.of(pair, self.core_)
        expected = {"svc": _SVC_ARRAYS, "precomputed": ()}.get(str(self.base), _SVC_ARRAYS[:2])
        for name in _SVC_ARRAYS:
            if (name in vars(self)) != (name in expected):
                raise ValueError(f"{name}: expected only with a base that has it, found base={self.base!r}")
        if self.base is None and self.base_coef_.shape[1] != self.n_features_in_:
            raise ValueError(
                f"base_coef_: expected {self.n_features_in_} columns, one per feature, found {self.base_coef_.shape[1]}"
            )
        if self.base == "precomputed" and self.n_features_in_ != len(self.label_names_):
            expected = f"{len(self.label_names_)}, one given score per label"
            raise ValueError(f"n_features_in_: expected {expected}, found {self.n_features_in_}")

    def __sklearn_tags__(self) -> Any:
        """Say that X may be sparse for some bases."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not isinstance(self.base, str)
        return tags


def check_log_odds(low: float, high: float) -> None:
    """Warn if given scores, from ``low`` to ``high``, can hardly be log-odds.

    Raise ValueError if they are larger than those of any probability: sums of exponentials then lose small terms.
    """
    if max(-low, high) > MOST_LOG_ODDS:
        bound = f"{MOST_LOG_ODDS:g}"
        raise ValueError(
            f"X: expected log-odds from -{bound} to {bound}, found {low:.3g} to {high:.3g}; clip or scale them"
        )
    if low >= 0.0 and high <= 1.0:
        hint = "log(p / (1 - p)) if they are probabilities"
    elif high - low < _LEAST_RANGE:
        hint = "their size matters, and these say that all labels are equally likely"
    else:
        return
    warnings.warn(f"X: expected log-odds for the likelihood, found {low:.3g} to {high:.3g}: {hint}", stacklevel=3)
