"""What a person sees of an item: the next question and why, the model's list, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from slatewise.core.arrays import Floats, Ints
from slatewise.labeling.reasons import Reason
from slatewise.labeling.scored_items import Basis

Word: TypeAlias = Literal["yes", "no", "don't know"]
WORDS: dict[str, int] = {"yes": 1, "no": 0, "don't know": -1}
SAID: dict[int, Word] = {1: "yes", 0: "no", -1: "don't know"}


class Question(NamedTuple):
    """A label to ask for."""

    label: int
    name: str
    probability: float | None
    """That it is there, given the answers; None where no model is asked."""
    reason: Reason


class ListedLabel(NamedTuple):
    """A label of the list."""

    label: int
    name: str
    probability: float | None
    said: Word | None
    """What the person said of it; None: nothing."""


@dataclass(frozen=True, eq=False)
class ItemView:
    """An item as it stands for one person; made anew after every act."""

    item: int
    question: Question | None
    """None where nothing is left to ask."""
    listed: tuple[ListedLabel, ...]
    """What the person said yes to, then the most probable labels without an answer; the latter only with a model."""
    answered: tuple[ListedLabel, ...]
    """All that the person answered, whatever it was, by the number of the label."""
    order: Ints
    """(labels,) all labels, those said to be there first, then by probability, those said not to be there last."""
    probability: Floats
    """(labels,) that they are there, given the answers; NaN without the model."""
    asked: int
    """How many questions the person answered."""
    instead_of: int
    """How many there would be without a model: one per label."""
    chance: float
    """That nothing that was not asked is there; NaN where no model says so."""
    enough: bool
    """Whether that is as much as the plan wants, or nothing is left to ask."""
    calibrated: bool
    """Whether ``enough`` keeps its promise; else it is what the model believes."""
    honest: bool
    """Whether the item is labelled without the model, so that it can be measured."""
    basis: Basis
    version: int | None
    """The version of the model."""
    notes: tuple[str, ...]
    """What the person should know: that there is no model yet, that somebody else has the item, and so on."""
