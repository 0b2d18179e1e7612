"""How a project is labelled: what is asked, of which item, when to stop. Kept in the project's settings."""

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
    """How a project is labelled.

    Parameters
    ----------
    order : {"file order", "least sure", "most gain", "disagreement"}
        Which item comes next; see :mod:`slatewise.labeling.item_order`.
    policy : {"margin rule", "most probable", "information", "uncertainty", "random"}
        Which label is asked for next. Without a model: the label that was found most often.
    confidence
        A person is told that an item may end where the model is so sure that no label was missed.
    share
        Of the items, so many are labelled without the model, all labels in their order: what the model is worth is
        measured on these. Which ones depends on their ids and on ``seed``.
    seed
        Of that draw.
    overlap
        How many people label an item. With 1, nobody is asked what another person, or an imported file, said already;
        with more, everybody is asked as if they were alone.
    lease_seconds
        How long an item is kept for a person who says nothing.
    list_length
        How many labels the list of the model shows.
    retrain_every
        After so many acts a new version of the model is due; 0: only when somebody asks for one.
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
        """Return the plan of a project: what it was given, and for the rest what comes without saying."""
        kept: object = project.settings.get(_SETTING, {})
        names = {field.name for field in fields(cls)}
        given: dict[str, Any] = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {"": kept}
        if not names.issuperset(given):
            raise ValueError(f"plan: expected some of {', '.join(sorted(names))}, found {short_repr(given)}")
        return cls(**given)

    def keep(self, project: Project) -> None:
        """Make it the plan of a project."""
        project.settings.set(_SETTING, asdict(self))
