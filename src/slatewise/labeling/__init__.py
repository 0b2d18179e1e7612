"""Interactive labeling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers, and a rule says when a row is done. :func:`simulate` and :func:`simulate_stopping` measure this,
:func:`calibrate` turns margins into probabilities, :func:`calibrate_stopping` makes a rule keep its promise. Answers of
real people are kept in a :class:`Project`; a :class:`Session` asks one person.

In reading order:

``questions/``           rows with open labels, policies, stopping rules, simulations: no project, no files
``store/``               a project: one SQLite file of items, labels, people and all their acts
``plan.py``              how a project is labeled: order, policy, confidence, number of people
``item_data.py``         features or log-odds of the items, in a file beside the project
``scored_items.py``      the label scores of all items, by a model, given scores or frequencies
``calibration_set.py``   items labeled without the model: what it is worth on them, how sure it must be to stop
``item_order.py``        which item comes next
``labeling_state.py``    all of these together, for the sessions of one project; follows new answers and versions
``item_state.py``        one item as one person sees it: the next question and why, the list, how sure it is
``session.py``           one person's way through a project: next item, answer, undo, done
``retraining.py``        new versions of the model, in a process of their own
``progress_report.py``   counts, pace and questions saved
``agreement.py``         how much people agree, and what they dispute
``exchange/``            answers in and out: CSV, JSON lines, Label Studio, npz, SVMlight
``setup/``               a new project from pictures, tables, label lists, or the demo
``page/``                the labeling page: an HTTP interface and what a browser shows (extra ``label``)

The path of an answer: page -> session -> project (on the disk) -> votes -> known labels -> snapshot of the labeling
state -> the next question of the item, the order of the others, and from time to time a new version of the model.

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
    from slatewise.labeling.labeling_state import LabelingState
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
    "LabelingState",
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

_MODULES = {
    "agreement": "Agreement cohen_kappa krippendorff_alpha",
    "calibration_set": "Quality",
    "exchange.formats": "export_answers import_answers",
    "exchange.label_studio": "label_studio_config",
    "item_data": "ItemData",
    "item_state": "ItemView",
    "labeling_state": "LabelingState",
    "plan": "Plan",
    "progress_report": "ProgressReport",
    "questions.confidence": "Confidence calibrate",
    "questions.next_question": "next_questions next_rows",
    "questions.policies": "FileOrder LeastSure MarginRule MostGain MostInformation MostProbable "
    "QuestionPolicy RandomQuestion RowPolicy Situation Uncertainty",
    "questions.rows": "GivenLogOdds GivenScores LabelRanker LabelRows consistent",
    "questions.simulation": "Annotator Noisy PAPER_QUESTIONS POLICIES PolicyComparison SimulationResult "
    "Truthful Unsure compare_policies simulate",
    "questions.stopping": "Outlook StoppingRule",
    "questions.stopping_simulation": "StoppingResult calibrate_stopping simulate_stopping",
    "retraining": "Trainer keep_model qualities retrain",
    "session": "Session",
    "store.project": "Project",
    "store.records": "Item",
}
_HOMES = {name: f"slatewise.labeling.{module}" for module, names in _MODULES.items() for name in names.split()}

__getattr__ = lazy_getattr(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
