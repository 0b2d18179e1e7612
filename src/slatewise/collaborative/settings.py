"""Settings of the parts of a collaborative ranker."""

from __future__ import annotations

from typing import Literal, TypeAlias

from slatewise.core import rules
from slatewise.core.declarations import Settings, param

Auto: TypeAlias = Literal["auto"]
_POSITIVE = rules.number("a number from 1e-6 to 1e9", 1e-6, 1e9) | rules.one_of("auto")


class ItemItem(Settings, shorthand="item-item"):
    """Weights between items: each item of a history votes for others (EASE, weighted by users)."""

    regularization: float | Auto = param(
        _POSITIVE,
        """Strength of the penalty on the weights. "auto": searched on held-out interactions, from 100.""",
        default="auto",
    )
    dropout: float = param(
        rules.number("a number from 0 to 10", 0.0, 10.0),
        "Penalty in proportion to how often an item occurs, as dropping entries of histories at random has.",
        default=0.3,
    )
    n_neighbors: int = param(
        rules.count(), "The number of weights that are kept for each item, those of largest size.", default=1000
    )
    most_items: int = param(
        rules.count(1, rules.MOST_COMPONENTS),
        """With more items and more users than this, the weights are those between this number of the most frequent
        items, with a warning; with fewer users up to four times as many have weights. The fit takes 4 bytes times its
        square, 3.6 GB by default.""",
        default=30_000,
    )


class LowPass(Settings, shorthand="low-pass"):
    """A low-pass filter on the graph of users and items; needs no training."""

    n_components: int = param(
        rules.count(1, rules.MOST_COMPONENTS), "The number of singular vectors of the smooth term.", default=256
    )
    smooth_weight: float | Auto = param(
        _POSITIVE,
        """Weight of the smooth term beside that of common users. "auto": searched, from 0.3.""",
        default="auto",
    )


class ALS(Settings, shorthand="als"):
    """Implicit alternating least squares with a regularization scaled by counts (iALS)."""

    n_components: int = param(
        rules.count(1, rules.MOST_COMPONENTS), "The number of coordinates of the vectors.", default=256
    )
    regularization: float | Auto = param(
        _POSITIVE, """Penalty on the vectors, per interaction. "auto": searched, from 0.01.""", default="auto"
    )
    unobserved_weight: float | Auto = param(
        _POSITIVE,
        """Weight of a pair that was not seen, relative to one that was. "auto": searched, from 0.03.""",
        default="auto",
    )
    epochs: int = param(rules.count(), "The number of passes over users and items.", default=12)


Part: TypeAlias = ItemItem | LowPass | ALS
