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
    from slatewise.labeling.annotators import Annotator, Noisy, Truthful, Unsure
    from slatewise.labeling.asking import next_questions, next_rows
    from slatewise.labeling.confidence import Confidence, calibrate
    from slatewise.labeling.exchange.formats import export_answers, import_answers
    from slatewise.labeling.exchange.label_studio import label_studio_config
    from slatewise.labeling.item_data import ItemData
    from slatewise.labeling.item_view import ItemView
    from slatewise.labeling.model_files import keep_model
    from slatewise.labeling.plan import Plan
    from slatewise.labeling.policies import (
        MarginRule,
        MostInformation,
        MostProbable,
        QuestionPolicy,
        RandomQuestion,
        Situation,
        Uncertainty,
    )
    from slatewise.labeling.progress_report import ProgressReport
    from slatewise.labeling.quality import Quality
    from slatewise.labeling.retraining import Trainer, qualities, retrain
    from slatewise.labeling.row_policies import FileOrder, LeastSure, MostGain, RowPolicy
    from slatewise.labeling.rows import GivenLogOdds, GivenScores, LabelRanker, LabelRows, consistent
    from slatewise.labeling.session import Session
    from slatewise.labeling.simulation import (
        PAPER_QUESTIONS,
        POLICIES,
        PolicyComparison,
        SimulationResult,
        compare_policies,
        simulate,
    )
    from slatewise.labeling.stopping import Outlook, StoppingRule
    from slatewise.labeling.stopping_calibration import calibrate_stopping
    from slatewise.labeling.stopping_simulation import StoppingResult, simulate_stopping
    from slatewise.labeling.store.project import Project
    from slatewise.labeling.store.records import Item
    from slatewise.labeling.workbench import Workbench

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
    "Annotator": "slatewise.labeling.annotators",
    "Confidence": "slatewise.labeling.confidence",
    "FileOrder": "slatewise.labeling.row_policies",
    "GivenLogOdds": "slatewise.labeling.rows",
    "GivenScores": "slatewise.labeling.rows",
    "Item": "slatewise.labeling.store.records",
    "ItemData": "slatewise.labeling.item_data",
    "ItemView": "slatewise.labeling.item_view",
    "LabelRanker": "slatewise.labeling.rows",
    "LabelRows": "slatewise.labeling.rows",
    "LeastSure": "slatewise.labeling.row_policies",
    "MarginRule": "slatewise.labeling.policies",
    "MostGain": "slatewise.labeling.row_policies",
    "MostInformation": "slatewise.labeling.policies",
    "MostProbable": "slatewise.labeling.policies",
    "Noisy": "slatewise.labeling.annotators",
    "Outlook": "slatewise.labeling.stopping",
    "PAPER_QUESTIONS": "slatewise.labeling.simulation",
    "POLICIES": "slatewise.labeling.simulation",
    "Plan": "slatewise.labeling.plan",
    "PolicyComparison": "slatewise.labeling.simulation",
    "ProgressReport": "slatewise.labeling.progress_report",
    "Project": "slatewise.labeling.store.project",
    "Quality": "slatewise.labeling.quality",
    "QuestionPolicy": "slatewise.labeling.policies",
    "RandomQuestion": "slatewise.labeling.policies",
    "RowPolicy": "slatewise.labeling.row_policies",
    "Session": "slatewise.labeling.session",
    "SimulationResult": "slatewise.labeling.simulation",
    "Situation": "slatewise.labeling.policies",
    "StoppingResult": "slatewise.labeling.stopping_simulation",
    "StoppingRule": "slatewise.labeling.stopping",
    "Trainer": "slatewise.labeling.retraining",
    "Truthful": "slatewise.labeling.annotators",
    "Uncertainty": "slatewise.labeling.policies",
    "Unsure": "slatewise.labeling.annotators",
    "Workbench": "slatewise.labeling.workbench",
    "calibrate": "slatewise.labeling.confidence",
    "calibrate_stopping": "slatewise.labeling.stopping_calibration",
    "cohen_kappa": "slatewise.labeling.agreement",
    "compare_policies": "slatewise.labeling.simulation",
    "consistent": "slatewise.labeling.rows",
    "export_answers": "slatewise.labeling.exchange.formats",
    "import_answers": "slatewise.labeling.exchange.formats",
    "keep_model": "slatewise.labeling.model_files",
    "krippendorff_alpha": "slatewise.labeling.agreement",
    "label_studio_config": "slatewise.labeling.exchange.label_studio",
    "next_questions": "slatewise.labeling.asking",
    "next_rows": "slatewise.labeling.asking",
    "qualities": "slatewise.labeling.retraining",
    "retrain": "slatewise.labeling.retraining",
    "simulate": "slatewise.labeling.simulation",
    "simulate_stopping": "slatewise.labeling.stopping_simulation",
}

_found = lazy_getattr(globals(), _HOMES)


def __getattr__(name: str) -> object:
    return _found(name)


def __dir__() -> list[str]:
    return sorted(__all__)
