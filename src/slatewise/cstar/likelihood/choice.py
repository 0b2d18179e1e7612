"""Choosing the core and C by the held-out likelihood of label sets.

Candidates come in the order of their cost, and the next is tried only while the one before pays: the scores as they
are, a scale and a shift for every label, a small core by either rule, a larger one, other strengths. A rough fit of
some thousand rows, and of the thousand most frequent labels, is enough to choose by: a core label has to be there now
and then, and either rule looks at all pairs of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.numerics.strengths import Ends, random_folds, rough_fits, search_path, stopped_falling
from slatewise.core.running.executor import Executor
from slatewise.cstar.core_labels import greedy_core, residual_label
from slatewise.cstar.inference.any_size import SubsetRows, subset_sums
from slatewise.cstar.likelihood.fit import Settings, fit_any_size
from slatewise.cstar.likelihood.objective import AdjustedScores, AnySizeLikelihood
from slatewise.data.row_source import StoredRows

FOLDS = 3
SIZES = (5, 8)
"""The sizes of the core to try, unless there are fewer labels."""
STRENGTHS = (0.1, 0.3, 1.0)
"""The C to choose from."""
_MIDDLE = STRENGTHS[1]
_MOST_ROWS = 6000
"""Rows to choose by; drawn at random of more."""
_MOST_LABELS = 1000
_ROUGH = 10.0  # a gap larger by this factor is enough to choose by
_NO_CORE = np.zeros(0, dtype=np.int64)


def labels_to_choose_by(known: Bytes, weight: Floats, core: Ints) -> Ints:
    """Return all labels, in order; of more than 1,000, those of a given core and the most frequent ones.

    Examples
    --------
    >>> labels_to_choose_by(np.array([[1, 0, 1]], dtype=np.int8), np.ones(1), np.array([2]))
    array([0, 1, 2])
    """
    n_labels = known.shape[1]
    if n_labels <= _MOST_LABELS:
        return np.arange(n_labels, dtype=np.int64)
    often = np.zeros(n_labels)
    for row, counts in zip(known, weight, strict=True):
        often[row > 0] += counts
    often[core] = np.inf
    return np.sort(np.argsort(-often, kind="stable")[:_MOST_LABELS]).astype(np.int64)


def choose_terms(
    given: Floats | StoredRows,
    known: Bytes,
    weight: Floats,
    core: Literal["auto"] | int | Ints,
    strengths: Sequence[float],
    settings: Settings,
    executor: Executor,
) -> tuple[Ints, float]:
    """Return the core labels and C, given or chosen.

    Parameters
    ----------
    given, known, weight
        Log-odds (n, N), labels (n, N) with -1 for unknown ones, and the weights of rows.
    core
        Which labels, how many, or "auto".
    strengths
        The values of C to choose from; a single one is given.
    settings, executor
        What every fit shares: rho, the tolerance, the seed; and where to run.
    """
    is_given = isinstance(core, np.ndarray)
    if is_given and len(strengths) == 1:
        return core, strengths[0]
    labels = labels_to_choose_by(known, weight, core if is_given else _NO_CORE)
    choice = CoreChoice.of(_rows_to_choose_by(given, known, weight, labels, settings, executor), settings)
    if isinstance(core, str):
        best = choice.core_and_strength(strengths)
        return labels[best.core], best.C
    if not is_given:
        core = labels[choice.core(core, strengths[len(strengths) // 2]).core]
    C = choice.strength(np.searchsorted(labels, core), strengths).C if len(strengths) > 1 else strengths[0]
    return core, C


def _rows_to_choose_by(
    given: Floats | StoredRows, known: Bytes, weight: Floats, labels: Ints, settings: Settings, executor: Executor
) -> AnySizeLikelihood:
    """Return the rows to choose by, with these labels; of rows in files only the few that are drawn are read."""
    if not isinstance(given, np.ndarray):
        drawn = drawn_rows(len(weight), settings.random_state)
        if drawn is not None:
            few = np.ascontiguousarray(given[drawn].read(executor)[:, labels])
            of_labels = np.ascontiguousarray(known[drawn][:, labels])
            return AnySizeLikelihood(AdjustedScores(few, labels[:0]), of_labels, weight[drawn], executor.local)
        given = given.read(executor)
    return AnySizeLikelihood(AdjustedScores(given[:, labels], labels[:0]), known[:, labels], weight, executor.local)


def drawn_rows(n_rows: int, seed: int) -> Ints | None:
    """Draw rows to choose by, rising; None: there are few enough."""
    if n_rows <= _MOST_ROWS:
        return None
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:_MOST_ROWS])


class Tried(NamedTuple):
    """A candidate, its held-out loss, and its parameters on each fold."""

    core: Ints
    C: float
    """0: the scores as they are."""
    loss: float
    params: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class CoreChoice:
    """Rows to choose by; the core of their model is ignored."""

    rows: AnySizeLikelihood
    settings: Settings

    @classmethod
    def of(cls, rows: AnySizeLikelihood, settings: Settings) -> CoreChoice:
        """Draw rows where there are too many."""
        rough = replace(settings, tol=_ROUGH * settings.tol, callback=None)
        drawn = drawn_rows(len(rows.weight), settings.random_state)
        return cls(rows if drawn is None else rows.rows(drawn), rough)

    def core_and_strength(self, strengths: Sequence[float] = STRENGTHS) -> Tried:
        """Choose the number of core labels, which, and their strength."""
        if not self.folds:
            return Tried(_NO_CORE, strengths[0] if len(strengths) == 1 else 0.0, np.inf, [])
        best = self.strength(_NO_CORE, strengths)
        sizes = sorted({min(size, self.rows.model.n_labels) for size in SIZES})
        middle = strengths[len(strengths) // 2]
        grown = self.core(sizes[0], middle)
        if grown.loss >= best.loss:
            return best
        best = grown
        for size in sizes[1:]:
            core = self._extended(best.core, size)
            larger = self._tried(core, middle, [self._padded(params, size - len(best.core)) for params in best.params])
            if larger.loss >= best.loss:
                break
            best = larger
        return self._other_strengths(best, strengths)

    def core(self, size: int, C: float = _MIDDLE) -> Tried:
        """Choose the core of a size: by mutual information, or by what the scores leave unexplained."""
        if size == 0 or not self.folds:
            return Tried(self._informative(size), C, np.inf, [])
        kinds = {core.tobytes(): core for core in (self._informative(size), self._residual_core(_NO_CORE, size))}
        return min((self._tried(core, C, None) for core in kinds.values()), key=lambda tried: tried.loss)

    def strength(self, core: Ints, strengths: Sequence[float] = STRENGTHS) -> Tried:
        """Choose C for a core; if there are several, unchanged scores are a candidate too."""
        if not self.folds:
            return Tried(core, strengths[0] if len(strengths) == 1 else 0.0, np.inf, [])
        if len(strengths) == 1:
            return self._tried(core, strengths[0], None)
        as_given = [np.zeros(AdjustedScores(inner.model.given, core).n_params) for inner, _ in self.folds]
        unchanged = Tried(core, 0.0, sum(self._loss(fold, core, one) for fold, one in enumerate(as_given)), as_given)
        return min([unchanged, *self._path(core, strengths, None, stopped_falling)], key=lambda tried: tried.loss)

    # --- parts -------------------------------------------------------------------------------------------------------

    @cached_property
    def folds(self) -> list[tuple[AnySizeLikelihood, AnySizeLikelihood]]:
        """Rows to fit, and rows to validate on; none if there are too few."""
        n_rows = len(self.rows.weight)
        if n_rows < 2 * FOLDS:
            return []
        folds = random_folds(n_rows, FOLDS, self.settings.random_state)
        return [(self.rows.rows(inner), self.rows.rows(out)) for inner, out in folds]

    @cached_property
    def imputed_labels(self) -> Floats:
        """(n, N) labels; the likelier value of unknown ones."""
        known = self.rows.known
        return np.where(known < 0, self.rows.model.given > 0.0, known > 0).astype(np.float64)

    def _other_strengths(self, best: Tried, strengths: Sequence[float]) -> Tried:
        """Go up or down from the middle while it pays."""
        middle = len(strengths) // 2
        for path in (strengths[middle + 1 :], strengths[:middle][::-1]):
            tried = self._path(best.core, path, best.params, lambda losses: stopped_falling([best.loss, *losses]))
            better = min([best, *tried], key=lambda one: one.loss)
            if better is not best:
                return better
        return best

    def _tried(self, core: Ints, C: float, starts: Sequence[Floats] | None) -> Tried:
        return self._path(core, (C,), starts, stopped_falling)[0]

    def _path(self, core: Ints, strengths: Sequence[float], starts: Sequence[Floats] | None, ends: Ends) -> list[Tried]:
        """Try one strength after the other with a core."""

        def fit(fold: int, C: float, start: Floats | None) -> Floats:
            return self._fitted(self.folds[fold][0], core, C, start)

        path = search_path(
            strengths, len(self.folds), fit, lambda fold, found: self._loss(fold, core, found), ends, starts
        )
        return [Tried(core, step.strength, step.loss, step.found) for step in path]

    def _fitted(self, rows: AnySizeLikelihood, core: Ints, C: float, start: Floats | None) -> Floats:
        settings = replace(self.settings, C=C)
        with rough_fits():
            return fit_any_size(rows.model.given, rows.known, rows.weight, core, settings, rows.executor, start).params

    def _loss(self, fold: int, core: Ints, params: Floats) -> float:
        held_out = self.folds[fold][1]
        return replace(held_out, model=AdjustedScores(held_out.model.given, core)).value(params)

    def _informative(self, size: int) -> Ints:
        return greedy_core(self.imputed_labels, size, self.rows.weight)

    def _extended(self, core: Ints, size: int) -> Ints:
        """Return more labels by the rule that chose the core."""
        more = self._informative(size)
        return more if np.array_equal(more[: len(core)], core) else self._residual_core(core, size)

    def _residual_core(self, core: Ints, size: int) -> Ints:
        """Add labels, each chosen for what the scores and the core so far leave unexplained of the others."""
        rows, params = self.rows, None
        while len(core) < size:
            params = self._fitted(rows, core, _MIDDLE, params)
            model, known = AdjustedScores(rows.model.given, core), np.full(rows.known.shape, -1, dtype=np.int8)
            known[:, core] = rows.known[:, core]
            rows_given = SubsetRows(model.scores(params), model.star_pair(params), known)
            chance = subset_sums(rows_given, rows.weight, rows.executor).item
            expected = np.where(rows.known < 0, self.imputed_labels, chance)  # an unknown label has no residual
            core = np.append(core, residual_label(self.imputed_labels, expected, core, rows.weight))
            params = self._padded(params, 1)
        return core

    def _padded(self, params: Floats, n_core: int) -> Floats:
        """Return parameters for that many more core labels, whose pair terms are 0 at first."""
        return np.append(params, np.zeros(n_core * self.rows.model.n_labels))
