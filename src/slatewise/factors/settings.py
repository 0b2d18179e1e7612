"""What a fit is told: the parameters of a LatentRanker or a StructuredReranker, checked and resolved once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from slatewise.factors.pair_terms import PAIR_TERMS, PairTerm
from slatewise.factors.tables import Segment, Singles
from slatewise.factors.training import EpochReport

Auto: TypeAlias = Literal["auto"]
STARTS: Mapping[str, float] = {"learning_rate": 0.3, "max_norm": 1.5, "stage_learning_rate": 0.1, "stage_norm": 1.0}
"""Where a search begins, and what "auto" is where no pairs are held out to judge by."""
STARTS_OF_SUMS: Mapping[str, float] = {**STARTS, "learning_rate": 0.6, "max_norm": 2.5}
"""What "auto" is for sums of items without a base where sessions are too many to search (docs/results/sessions.rst)."""

DROPOUT = 0.5
"""What "auto" is for sessions; for other queries it is 0."""


@dataclass(frozen=True)
class Steps:
    """AdaGrad's steps and the largest norms of rows, of U and V and of S."""

    learning_rate: float
    max_norm: float
    stage_learning_rate: float
    stage_norm: float


@dataclass(frozen=True, eq=False)
class LatentSettings:
    """The parameters of a fit under their own names; :class:`slatewise.LatentRanker` says what they mean."""

    n_components: int
    stages: int
    k: int
    pair: str
    stage_learning_rate: float | Auto
    stage_norm: float | Auto
    epochs: int
    validation_fraction: float
    patience: int
    batch_size: int | None
    position_weights: Singles
    """w_1 to w_k."""
    callbacks: Sequence[Callable[[EpochReport], None]]
    seed: int = 0
    """Of everything random."""
    learning_rate: float | Auto = "auto"
    max_norm: float | Auto = "auto"
    loss: str = "warp"
    alpha: float = 1.0
    engine: str = "blocked"
    negatives: int | Literal["catalogue"] = "catalogue"
    own_weight: float = 0.0
    max_draws: int | None = None
    window: int | None = 20
    dropout: float = 0.0
    starts: Mapping[str, float] = field(default_factory=lambda: STARTS)
    """What "auto" is before anything is tried."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LatentSettings:
        """Take parameters that follow their rules; raise ValueError where they do not go together."""
        known: dict[str, Any] = {one.name: given[one.name] for one in fields(cls) if one.name in given}
        known["position_weights"] = position_weights(known["k"], known.get("position_weights", "reciprocal"))
        known["callbacks"] = known["callbacks"] or ()
        if known.get("dropout") == "auto":
            known["dropout"] = 0.0
        return cls(**known)

    @property
    def term(self) -> Callable[[Segment], PairTerm]:
        """How a list moves an item, from the columns of S."""
        return PAIR_TERMS[self.pair]

    @property
    def rank_power(self) -> float:
        """Place i weighs ``i ** -rank_power``."""
        return float(self.alpha) if self.loss == "warp" else 0.0

    def steps(self, instead: Mapping[str, float] | None = None) -> Steps:
        """Return what to train with: something else where "auto" is given."""
        given, instead = {name: getattr(self, name) for name in STARTS}, instead or self.starts
        return Steps(**{name: instead[name] if value == "auto" else float(value) for name, value in given.items()})

    def report(self, seen: EpochReport) -> None:
        """Tell all callbacks."""
        for callback in self.callbacks:
            callback(seen)


def position_weights(k: int, given: Any = "reciprocal") -> Singles:
    """Return w_1 to w_k of equations 2 and 4."""
    if isinstance(given, str):
        return (1.0 / np.arange(1, k + 1)).astype(np.float32)
    if len(given) != k:
        raise ValueError(f"position_weights: expected {k} numbers, as many as k, found {len(given)}")
    return np.asarray(given, dtype=np.float32)
