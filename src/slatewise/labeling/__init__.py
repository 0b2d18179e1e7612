"""Interactive labeling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers, and a rule says when a row is done; :func:`simulate` and :func:`simulate_stopping` play it and measure,
:func:`calibrate` turns margins into probabilities, :func:`calibrate_stopping` makes a rule keep its promise. What real
people say is kept in a :class:`Project`; a :class:`Session` asks one of them.

Names load on first use: a project of answers needs no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.labeling.agreement import Agreement, cohen_kappa, krippendorff_alpha
    from slatewise.labeling.calibration_set import Quality
    from slatewise.labeling.exchange.formats import export_answers, import_answers
    from slatewise.labeling.exchange.label_studio import label_studio_config
    from slatewise.labeling.item_data import ItemData
    from slatewise.labeling.item_state import ItemView
    from slatewise.labeling.labeling_state import Workbench
    from slatewise.labeling.plan import Plan
    from slatewise.labeling.progress_report import ProgressReport
    from slatewise.labeling.questions.confidence import Confidence, calibrate
    from slatewise.labeling.questions.next_question import next_questions, next_rows
    from slatewise.labeling.questions.policies import (
        FileOrder,
        LeastSure,
        MarginRule,
        MostGain,
        MostInformation,
        MostProbable,
        QuestionPolicy,
        RandomQuestion,
        RowPolicy,
        Situation,
        Uncertainty,
    )
    from slatewise.labeling.questions.rows import GivenLogOdds, GivenScores, LabelRanker, LabelRows, consistent
    from slatewise.labeling.questions.simulation import (
        PAPER_QUESTIONS,
        POLICIES,
        Annotator,
        Noisy,
        PolicyComparison,
        SimulationResult,
        Truthful,
        Unsure,
        compare_policies,
        simulate,
    )
    from slatewise.labeling.questions.stopping import Outlook, StoppingRule
    from slatewise.labeling.questions.stopping_simulation import StoppingResult, calibrate_stopping, simulate_stopping
    from slatewise.labeling.retraining import Trainer, keep_model, qualities, retrain
    from slatewise.labeling.session import Session
    from slatewise.labeling.store.project import Project
    from slatewise.labeling.store.records import Item

__all__ = [
    "PAPER_QUESTIONS",
    "POLICIES",
    "Agreement",
    "Annotator",
    "Confidence",
    "FileOrder",
    "GivenLogOdds",
    "GivenScores",
    "Item",
    "ItemData",
    "ItemView",
    "LabelRanker",
    "LabelRows",
    "LeastSure",
    "MarginRule",
    "MostGain",
    "MostInformation",
    "MostProbable",
    "Noisy",
    "Outlook",
    "Plan",
    "PolicyComparison",
    "ProgressReport",
    "Project",
    "Quality",
    "QuestionPolicy",
    "RandomQuestion",
    "RowPolicy",
    "Session",
    "SimulationResult",
    "Situation",
    "StoppingResult",
    "StoppingRule",
    "Trainer",
    "Truthful",
    "Uncertainty",
    "Unsure",
    "Workbench",
    "calibrate",
    "calibrate_stopping",
    "cohen_kappa",
    "compare_policies",
    "consistent",
    "export_answers",
    "import_answers",
    "keep_model",
    "krippendorff_alpha",
    "label_studio_config",
    "next_questions",
    "next_rows",
    "qualities",
    "retrain",
    "simulate",
    "simulate_stopping",
]

_HOMES = {
    "Agreement": "slatewise.labeling.agreement",
    "Annotator": "slatewise.labeling.questions.simulation",
    "Confidence": "slatewise.labeling.questions.confidence",
    "FileOrder": "slatewise.labeling.questions.policies",
    "GivenLogOdds": "slatewise.labeling.questions.rows",
    "GivenScores": "slatewise.labeling.questions.rows",
    "Item": "slatewise.labeling.store.records",
    "ItemData": "slatewise.labeling.item_data",
    "ItemView": "slatewise.labeling.item_state",
    "LabelRanker": "slatewise.labeling.questions.rows",
    "LabelRows": "slatewise.labeling.questions.rows",
    "LeastSure": "slatewise.labeling.questions.policies",
    "MarginRule": "slatewise.labeling.questions.policies",
    "MostGain": "slatewise.labeling.questions.policies",
    "MostInformation": "slatewise.labeling.questions.policies",
    "MostProbable": "slatewise.labeling.questions.policies",
    "Noisy": "slatewise.labeling.questions.simulation",
    "Outlook": "slatewise.labeling.questions.stopping",
    "PAPER_QUESTIONS": "slatewise.labeling.questions.simulation",
    "POLICIES": "slatewise.labeling.questions.simulation",
    "Plan": "slatewise.labeling.plan",
    "PolicyComparison": "slatewise.labeling.questions.simulation",
    "ProgressReport": "slatewise.labeling.progress_report",
    "Project": "slatewise.labeling.store.project",
    "Quality": "slatewise.labeling.calibration_set",
    "QuestionPolicy": "slatewise.labeling.questions.policies",
    "RandomQuestion": "slatewise.labeling.questions.policies",
    "RowPolicy": "slatewise.labeling.questions.policies",
    "Session": "slatewise.labeling.session",
    "SimulationResult": "slatewise.labeling.questions.simulation",
    "Situation": "slatewise.labeling.questions.policies",
    "StoppingResult": "slatewise.labeling.questions.stopping_simulation",
    "StoppingRule": "slatewise.labeling.questions.stopping",
    "Trainer": "slatewise.labeling.retraining",
    "Truthful": "slatewise.labeling.questions.simulation",
    "Uncertainty": "slatewise.labeling.questions.policies",
    "Unsure": "slatewise.labeling.questions.simulation",
    "Workbench": "slatewise.labeling.labeling_state",
    "calibrate": "slatewise.labeling.questions.confidence",
    "calibrate_stopping": "slatewise.labeling.questions.stopping_simulation",
    "cohen_kappa": "slatewise.labeling.agreement",
    "compare_policies": "slatewise.labeling.questions.simulation",
    "consistent": "slatewise.labeling.questions.rows",
    "export_answers": "slatewise.labeling.exchange.formats",
    "import_answers": "slatewise.labeling.exchange.formats",
    "keep_model": "slatewise.labeling.retraining",
    "krippendorff_alpha": "slatewise.labeling.agreement",
    "label_studio_config": "slatewise.labeling.exchange.label_studio",
    "next_questions": "slatewise.labeling.questions.next_question",
    "next_rows": "slatewise.labeling.questions.next_question",
    "qualities": "slatewise.labeling.retraining",
    "retrain": "slatewise.labeling.retraining",
    "simulate": "slatewise.labeling.questions.simulation",
    "simulate_stopping": "slatewise.labeling.questions.stopping_simulation",
}

_found = lazy_getattr(globals(), _HOMES)


def __getattr__(name: str) -> object:
    return _found(name)


def __dir__() -> list[str]:
    return sorted(__all__)
