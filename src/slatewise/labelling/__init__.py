"""Interactive labelling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers, and a rule says when a row is done; :func:`simulate` and :func:`simulate_stopping` play it and measure,
:func:`calibrate` turns margins into probabilities, :func:`calibrate_stopping` makes a rule keep its promise. What real
people say is kept in a :class:`Project`; a :class:`Session` asks one of them.

Names load on first use: a project of answers needs no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise.core.by_name import on_first_use

if TYPE_CHECKING:
    from slatewise.labelling.agreement import Agreement, cohen_kappa, krippendorff_alpha
    from slatewise.labelling.annotators import Annotator, Noisy, Truthful, Unsure
    from slatewise.labelling.asking import next_questions, next_rows
    from slatewise.labelling.confidence import Confidence, calibrate
    from slatewise.labelling.exchange.formats import export_answers, import_answers
    from slatewise.labelling.exchange.label_studio import label_studio_config
    from slatewise.labelling.item_data import ItemData
    from slatewise.labelling.item_view import ItemView
    from slatewise.labelling.model_files import keep_model
    from slatewise.labelling.plan import Plan
    from slatewise.labelling.policies import (
        MarginRule,
        MostInformation,
        MostProbable,
        QuestionPolicy,
        RandomQuestion,
        Situation,
        Uncertainty,
    )
    from slatewise.labelling.progress_report import ProgressReport
    from slatewise.labelling.quality import Quality
    from slatewise.labelling.retraining import Trainer, qualities, retrain
    from slatewise.labelling.row_policies import FileOrder, LeastSure, MostGain, RowPolicy
    from slatewise.labelling.rows import GivenLogOdds, GivenScores, LabelRanker, LabelRows, consistent
    from slatewise.labelling.session import Session
    from slatewise.labelling.simulation import (
        PAPER_QUESTIONS,
        POLICIES,
        PolicyComparison,
        SimulationResult,
        compare_policies,
        simulate,
    )
    from slatewise.labelling.stopping import Outlook, StoppingRule
    from slatewise.labelling.stopping_calibration import calibrate_stopping
    from slatewise.labelling.stopping_simulation import StoppingResult, simulate_stopping
    from slatewise.labelling.store.project import Project
    from slatewise.labelling.store.records import Item
    from slatewise.labelling.workbench import Workbench

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
    "Agreement": "slatewise.labelling.agreement",
    "Annotator": "slatewise.labelling.annotators",
    "Confidence": "slatewise.labelling.confidence",
    "FileOrder": "slatewise.labelling.row_policies",
    "GivenLogOdds": "slatewise.labelling.rows",
    "GivenScores": "slatewise.labelling.rows",
    "Item": "slatewise.labelling.store.records",
    "ItemData": "slatewise.labelling.item_data",
    "ItemView": "slatewise.labelling.item_view",
    "LabelRanker": "slatewise.labelling.rows",
    "LabelRows": "slatewise.labelling.rows",
    "LeastSure": "slatewise.labelling.row_policies",
    "MarginRule": "slatewise.labelling.policies",
    "MostGain": "slatewise.labelling.row_policies",
    "MostInformation": "slatewise.labelling.policies",
    "MostProbable": "slatewise.labelling.policies",
    "Noisy": "slatewise.labelling.annotators",
    "Outlook": "slatewise.labelling.stopping",
    "PAPER_QUESTIONS": "slatewise.labelling.simulation",
    "POLICIES": "slatewise.labelling.simulation",
    "Plan": "slatewise.labelling.plan",
    "PolicyComparison": "slatewise.labelling.simulation",
    "ProgressReport": "slatewise.labelling.progress_report",
    "Project": "slatewise.labelling.store.project",
    "Quality": "slatewise.labelling.quality",
    "QuestionPolicy": "slatewise.labelling.policies",
    "RandomQuestion": "slatewise.labelling.policies",
    "RowPolicy": "slatewise.labelling.row_policies",
    "Session": "slatewise.labelling.session",
    "SimulationResult": "slatewise.labelling.simulation",
    "Situation": "slatewise.labelling.policies",
    "StoppingResult": "slatewise.labelling.stopping_simulation",
    "StoppingRule": "slatewise.labelling.stopping",
    "Trainer": "slatewise.labelling.retraining",
    "Truthful": "slatewise.labelling.annotators",
    "Uncertainty": "slatewise.labelling.policies",
    "Unsure": "slatewise.labelling.annotators",
    "Workbench": "slatewise.labelling.workbench",
    "calibrate": "slatewise.labelling.confidence",
    "calibrate_stopping": "slatewise.labelling.stopping_calibration",
    "cohen_kappa": "slatewise.labelling.agreement",
    "compare_policies": "slatewise.labelling.simulation",
    "consistent": "slatewise.labelling.rows",
    "export_answers": "slatewise.labelling.exchange.formats",
    "import_answers": "slatewise.labelling.exchange.formats",
    "keep_model": "slatewise.labelling.model_files",
    "krippendorff_alpha": "slatewise.labelling.agreement",
    "label_studio_config": "slatewise.labelling.exchange.label_studio",
    "next_questions": "slatewise.labelling.asking",
    "next_rows": "slatewise.labelling.asking",
    "qualities": "slatewise.labelling.retraining",
    "retrain": "slatewise.labelling.retraining",
    "simulate": "slatewise.labelling.simulation",
    "simulate_stopping": "slatewise.labelling.stopping_simulation",
}

_found = on_first_use(globals(), _HOMES)


def __getattr__(name: str) -> object:
    return _found(name)


def __dir__() -> list[str]:
    return sorted(__all__)
