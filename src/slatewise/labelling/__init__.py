"""Interactive labelling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers, and a rule says when a row is done; :func:`simulate` and :func:`simulate_stopping` play it and measure,
:func:`calibrate` turns margins into probabilities, :func:`calibrate_stopping` makes a rule keep its promise.
"""

from slatewise.labelling.annotators import Annotator, Noisy, Truthful, Unsure
from slatewise.labelling.asking import next_questions, next_rows
from slatewise.labelling.confidence import Confidence, calibrate
from slatewise.labelling.policies import (
    MarginRule,
    MostInformation,
    MostProbable,
    QuestionPolicy,
    RandomQuestion,
    Situation,
    Uncertainty,
)
from slatewise.labelling.row_policies import FileOrder, LeastSure, MostGain, RowPolicy
from slatewise.labelling.rows import GivenLogOdds, GivenScores, LabelRanker, LabelRows, consistent
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

__all__ = [
    "PAPER_QUESTIONS",
    "POLICIES",
    "Annotator",
    "Confidence",
    "FileOrder",
    "GivenLogOdds",
    "GivenScores",
    "LabelRanker",
    "LabelRows",
    "LeastSure",
    "MarginRule",
    "MostGain",
    "MostInformation",
    "MostProbable",
    "Noisy",
    "Outlook",
    "PolicyComparison",
    "QuestionPolicy",
    "RandomQuestion",
    "RowPolicy",
    "SimulationResult",
    "Situation",
    "StoppingResult",
    "StoppingRule",
    "Truthful",
    "Uncertainty",
    "Unsure",
    "calibrate",
    "calibrate_stopping",
    "compare_policies",
    "consistent",
    "next_questions",
    "next_rows",
    "simulate",
    "simulate_stopping",
]
