"""Settings of latent factors: what is minimized, by which engine, in how many stages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Singles
from slatewise.core.declarations import Settings, param, settings
from slatewise.factors.pair_terms import PAIR_TERMS, PairTerm
from slatewise.factors.tables import Segment

Auto: TypeAlias = Literal["auto"]

WATCHED = 20
"""Depth of the recall of held-out pairs, where no list is handed over."""

RATE = rules.SINGLE_POSITIVE | rules.one_of("auto")

NORM = rules.NORM | rules.one_of("auto")

DROPOUT = rules.number("a number from 0 to 0.99", 0.0, 0.99)

_CUDA = rules.Rule(
    "'cuda' or 'cuda:0'",
    lambda value: isinstance(value, str) and re.fullmatch(r"cuda(:\d+)?", value, re.ASCII) is not None,
)


class Warp(Settings, shorthand="warp"):
    """Weight of a pair by the rank r of its item: sum of i ** -alpha over i <= r. The top of the list matters most."""

    alpha: float = param(
        rules.NOT_NEGATIVE, "1 is that of the paper; a larger one weights the top still more.", default=1.0
    )


class AUC(Settings, shorthand="auc"):
    """Weight of a pair by the rank of its item, all ranks alike."""


class Stages(Settings, takes_number=True):
    """Stages of structured ranking: each moves the items by the list of the stage before.

    A stage is kept only if recall on held-out pairs rose, and a warning says where it did not.
    """

    n: int = param(rules.count(), "The maximum number of stages; 1 is the plain latent ranker.", default=1)
    k: int = param(
        rules.count(1, rules.MOST_LISTED),
        """The number of items of a list that a stage takes over, and the depth of the recall that is watched, but at
        most a quarter of the catalog.""",
        default=20,
    )
    pair: Literal["semidefinite", "bilinear", "both"] = param(
        rules.one_of(*PAIR_TERMS),
        """How a list moves an item: by S'S, which can only say that items belong together; by S'T, which can also say
        that they do not; or by S'S + A'B, ``(S d).(S dbar_j) + (A d).(B dbar_j)``.""",
        default="semidefinite",
    )
    position_weights: Literal["reciprocal"] | Sequence[float] = param(
        rules.one_of("reciprocal") | rules.WEIGHTS,
        'w_j of the item at rank j of the list, k numbers; "reciprocal": 1 / j.',
        default="reciprocal",
    )
    self_weight: float = param(
        rules.WEIGHT,
        """Where queries are items too: the weight of the query in its own list. Queries whose id no item has are in
        none. With "semidefinite" a pair then teaches both directions.""",
        default=0.0,
    )
    learning_rate: float | Auto = param(
        RATE,
        """AdaGrad's learning rate of S, T, A and B. "auto": searched on the held-out pairs, else 0.1.""",
        default=0.1,
    )
    max_norm: float | Auto = param(
        NORM, """The largest norm of a row of S, T, A and B. "auto": searched, else 1.""", default=1.0
    )

    def __post_init__(self) -> None:
        """Check that there is a weight for each rank."""
        super().__post_init__()
        if not isinstance(self.position_weights, str) and len(self.position_weights) != self.k:
            raise ValueError(
                f"Stages.position_weights: expected {self.k} numbers, as many as k, found {len(self.position_weights)}"
            )

    def weights(self) -> Singles:
        """Return w_1 to w_k of equations 2 and 4."""
        if isinstance(self.position_weights, str):
            return (1.0 / np.arange(1, self.k + 1)).astype(np.float32)
        return np.asarray(self.position_weights, dtype=np.float32)


class Blocked(Settings, shorthand="blocked"):
    """Exact counts of violators by matrix products; the same bits with any number of threads."""

    negatives: Literal["all"] | int = param(
        rules.count() | rules.one_of("all"),
        """What a pair is compared with: all items, or this number sampled per step and the current top k of a query
        with enough pairs. Queries that are sessions need all.""",
        default="all",
    )
    batch_size: int | None = param(
        rules.count() | rules.NONE,
        "Pairs of a step. None: a hundredth of them, between 64 and 2,048.",
        default=None,
    )


class Sampled(Settings, shorthand="sampled"):
    """Draws items until one violates: cheap steps, not reproducible with more than one thread, for ids only.

    Stages after the first are blocked.
    """

    max_draws: int | None = param(
        rules.count() | rules.NONE, "The maximum number of draws. None: the number of other items.", default=None
    )


class Gpu(Settings, shorthand="gpu"):
    """As blocked, on one GPU, in float16 and with the mean over all violators.

    The same bits on the same GPU. Needs ``pip install 'slatewise[gpu]'``.
    """

    device: str = param(_CUDA, "The GPU.", default="cuda")
    batch_size: int | None = param(
        rules.count() | rules.NONE,
        "Pairs of a step. None: a hundredth of them, between 64 and 2,048.",
        default=None,
    )


Loss: TypeAlias = Warp | AUC

Engine: TypeAlias = Blocked | Sampled | Gpu

LOSSES, ENGINES = settings(Warp, AUC), settings(Blocked, Sampled, Gpu)

COMPONENTS_TEXT = "Width n of the vectors."

LOSS_TEXT = "What a violated pair weighs: the top of the list matters most, or all ranks alike."

ENGINE_TEXT = """How an epoch is computed: exact counts ("blocked"), drawn items ("sampled"), or on a GPU ("gpu")."""

RATE_TEXT = """AdaGrad's learning rate of U, V and b. "auto": try several values for 4 epochs and continue with the best
recall on held-out pairs, which takes two or three times as long; without held-out pairs 0.3."""

NORM_TEXT = """The largest norm of a row of U and V. "auto": searched in the same way; without held-out pairs 1.5."""

DROPOUT_TEXT = "Share of the entries of a query's vector that are left out, at random, in each step of training."

EPOCHS_TEXT = "The maximum number of passes over the pairs, per stage."

PATIENCE_TEXT = "The number of epochs without a better recall after which a stage ends."


class Factors(Settings, shorthand="default"):
    """Latent factors beside other scores."""

    n_components: int = param(rules.count(1, rules.MOST_COMPONENTS), COMPONENTS_TEXT, default=100)
    loss: str | Loss = param(LOSSES, LOSS_TEXT, default="warp")
    engine: str | Blocked | Gpu = param(settings(Blocked, Gpu), ENGINE_TEXT, default="blocked")
    learning_rate: float | Auto = param(RATE, RATE_TEXT, default="auto")
    max_norm: float | Auto = param(NORM, NORM_TEXT, default="auto")
    dropout: float = param(DROPOUT, DROPOUT_TEXT, default=0.5)
    epochs: int = param(rules.count(), EPOCHS_TEXT, default=12)
    patience: int = param(rules.count(), PATIENCE_TEXT, default=3)


STARTS: Mapping[str, float] = {"learning_rate": 0.3, "max_norm": 1.5, "stage_learning_rate": 0.1, "stage_norm": 1.0}
"""Where a search begins, and what "auto" is where no pairs are held out."""

STARTS_OF_SUMS: Mapping[str, float] = {**STARTS, "learning_rate": 0.6, "max_norm": 2.5}
"""What "auto" is for sums of items without a base where sessions are too many to search (docs/results/sessions.rst)."""


@dataclass(frozen=True)
class Steps:
    """AdaGrad's learning rates and the largest norms of rows, of U and V and of S."""

    learning_rate: float
    max_norm: float
    stage_learning_rate: float
    stage_norm: float


@dataclass(frozen=True)
class EpochReport:
    """What callbacks get after each epoch; printed, how far the fit is."""

    stage: int
    epoch: int
    loss: float
    violated: float
    recall: float | None
    """Recall on the held-out pairs; None where none are held out."""
    epochs: int
    """The maximum number of epochs, of a trial those of the trial."""
    depth: int = WATCHED
    """The number of items among which a held-out one counts as found."""
    searching: str = ""
    """In a trial: the parameter that is searched for and the number of its values, as "learning rate 2/4"."""

    def __str__(self) -> str:
        stage = f"stage {self.stage}, " if self.stage else ""
        searching = f"searching {self.searching}, " if self.searching else ""
        figure = f"loss {self.loss:.3g}"
        if self.recall is not None:
            figure = f"recall@{self.depth} {self.recall:.3f}".replace(" 0.", " .")
        return f"{stage}{searching}epoch {self.epoch}/{self.epochs}, {figure}"


@dataclass(frozen=True, eq=False)
class TrainingSettings:
    """The settings of one fit, all shorthands resolved."""

    n_components: int
    epochs: int
    validation_fraction: float
    patience: int
    seed: int = 0
    """Of everything random."""
    loss: Loss = field(default_factory=Warp)
    stages: Stages = field(default_factory=Stages)
    engine: Engine = field(default_factory=Blocked)
    learning_rate: float | Auto = "auto"
    max_norm: float | Auto = "auto"
    dropout: float = 0.0
    callbacks: Sequence[Callable[[EpochReport], None]] = ()
    depth: int = WATCHED
    """Depth of the recall of the held-out pairs."""
    starts: Mapping[str, float] = field(default_factory=lambda: STARTS)
    """What "auto" is before anything is tried."""

    @property
    def term(self) -> Callable[[Segment], PairTerm]:
        """How a list moves an item, from the columns of S."""
        return PAIR_TERMS[self.stages.pair]

    @property
    def rank_power(self) -> float:
        """Rank i weighs ``i ** -rank_power``."""
        return float(self.loss.alpha) if isinstance(self.loss, Warp) else 0.0
