"""Interactive labelling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers; :func:`simulate` plays it and measures, :func:`calibrate` turns margins into probabilities. What real people
say is kept in a :class:`Project`.

Names load on first use: a project of answers needs no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise.core.by_name import on_first_use

if TYPE_CHECKING:
    from slatewise.labelling.annotators import Annotator, Noisy, Truthful, Unsure
    from slatewise.labelling.confidence import Confidence, calibrate
    from slatewise.labelling.exchange.formats import export_answers, import_answers
    from slatewise.labelling.exchange.label_studio import label_studio_config
    from slatewise.labelling.policies import MarginRule, QuestionPolicy, RandomQuestion, Situation, Uncertainty
    from slatewise.labelling.rows import GivenLogOdds, GivenScores, LabelRanker, LabelRows, consistent
    from slatewise.labelling.simulation import (
        PAPER_QUESTIONS,
        POLICIES,
        PolicyComparison,
        SimulationResult,
        compare_policies,
        simulate,
    )
    from slatewise.labelling.store.project import Project
    from slatewise.labelling.store.records import Item

__all__ = [
    "PAPER_QUESTIONS",
    "POLICIES",
    "Annotator",
    "Confidence",
    "GivenLogOdds",
    "GivenScores",
    "Item",
    "LabelRanker",
    "LabelRows",
    "MarginRule",
    "Noisy",
    "PolicyComparison",
    "Project",
    "QuestionPolicy",
    "RandomQuestion",
    "SimulationResult",
    "Situation",
    "Truthful",
    "Uncertainty",
    "Unsure",
    "calibrate",
    "compare_policies",
    "consistent",
    "export_answers",
    "import_answers",
    "label_studio_config",
    "simulate",
]

_HOMES = {
    "PAPER_QUESTIONS": "slatewise.labelling.simulation",
    "POLICIES": "slatewise.labelling.simulation",
    "Annotator": "slatewise.labelling.annotators",
    "Confidence": "slatewise.labelling.confidence",
    "GivenLogOdds": "slatewise.labelling.rows",
    "GivenScores": "slatewise.labelling.rows",
    "Item": "slatewise.labelling.store.records",
    "LabelRanker": "slatewise.labelling.rows",
    "LabelRows": "slatewise.labelling.rows",
    "MarginRule": "slatewise.labelling.policies",
    "Noisy": "slatewise.labelling.annotators",
    "PolicyComparison": "slatewise.labelling.simulation",
    "Project": "slatewise.labelling.store.project",
    "QuestionPolicy": "slatewise.labelling.policies",
    "RandomQuestion": "slatewise.labelling.policies",
    "SimulationResult": "slatewise.labelling.simulation",
    "Situation": "slatewise.labelling.policies",
    "Truthful": "slatewise.labelling.annotators",
    "Uncertainty": "slatewise.labelling.policies",
    "Unsure": "slatewise.labelling.annotators",
    "calibrate": "slatewise.labelling.confidence",
    "compare_policies": "slatewise.labelling.simulation",
    "consistent": "slatewise.labelling.rows",
    "export_answers": "slatewise.labelling.exchange.formats",
    "import_answers": "slatewise.labelling.exchange.formats",
    "label_studio_config": "slatewise.labelling.exchange.label_studio",
    "simulate": "slatewise.labelling.simulation",
}

_found = on_first_use(globals(), _HOMES)


def __getattr__(name: str) -> object:
    return _found(name)


def __dir__() -> list[str]:
    return sorted(__all__)
