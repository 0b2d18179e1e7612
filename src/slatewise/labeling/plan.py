"""How a project is labeled: which item, which question, when to stop. Kept in the project's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias, cast

from slatewise.core import rules
from slatewise.core.rules import Rule, short_repr
from slatewise.labeling.questions.policies import (
    MarginRule,
    MostInformation,
    MostProbable,
    QuestionPolicy,
    RandomQuestion,
    Uncertainty,
)
from slatewise.labeling.store.leases import MOST_SECONDS, SECONDS
from slatewise.labeling.store.project import Project

By: TypeAlias = Literal["file order", "least sure", "most gain", "disagreement"]
ORDERS: tuple[By, ...] = ("file order", "least sure", "most gain", "disagreement")
QUESTIONS: Mapping[str, QuestionPolicy] = {
    "margin rule": MarginRule(),
    "most probable": MostProbable(),
    "information": MostInformation(),
    "uncertainty": Uncertainty(),
    "random": RandomQuestion(),
}
_SETTING = "plan"
_SHARE = rules.number("a share from 0 to 1", 0.0, 1.0)
_OPEN = rules.number("a probability between 0 and 1", 1e-9, 1.0 - 1e-9)


@dataclass(frozen=True)
class Plan:
    """How a project is labeled.

    Parameters
    ----------
    order : {"file order", "least sure", "most gain", "disagreement"}
        Which item comes next; see :mod:`slatewise.labeling.item_order`.
    policy : {"margin rule", "most probable", "information", "uncertainty", "random"}
        Which question comes next. Without a model: the label that was found most often.
    confidence
        The page says that an item may end once the model is this sure that no label was missed.
    share
        The share of items that are labeled without the model, all labels in their order: the model is calibrated and
        measured on these. Which ones depends on their ids and on ``seed``.
    seed
        The seed of that draw.
    overlap
        How many people label an item. With 1, answers of others and of imported files are known to all; with more,
        every person starts without them.
    lease_seconds
        How long an item is kept for a person who does not answer.
    list_length
        The length of the model's list.
    retrain_every
        The number of acts after which a new version of the model is trained; 0: only on request.
    """

    order: By = "most gain"
    policy: str = "margin rule"
    confidence: float = 0.95
    share: float = 0.05
    seed: int = 0
    overlap: int = 1
    lease_seconds: float = SECONDS
    list_length: int = 20
    retrain_every: int = 200

    _rules: ClassVar[Mapping[str, Rule]] = {
        "order": rules.one_of(*ORDERS),
        "policy": rules.one_of(*QUESTIONS),
        "confidence": _OPEN,
        "share": _SHARE,
        "seed": rules.count(0),
        "overlap": rules.count(),
        "lease_seconds": rules.number(f"seconds from 1 to {MOST_SECONDS:g}", 1.0, MOST_SECONDS),
        "list_length": rules.count(),
        "retrain_every": rules.count(0),
    }

    def __post_init__(self) -> None:
        rules.check(self)

    @classmethod
    def of(cls, project: Project) -> Plan:
        """Return the plan of a project: its settings, and defaults for the rest."""
        kept: object = project.settings.get(_SETTING, {})
        names = {field.name for field in fields(cls)}
        given: dict[str, Any] = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {"": kept}
        if not names.issuperset(given):
            raise ValueError(f"plan: expected some of {', '.join(sorted(names))}, found {short_repr(given)}")
        return cls(**given)

    def keep(self, project: Project) -> None:
        """Make it the plan of a project."""
        project.settings.set(_SETTING, asdict(self))
