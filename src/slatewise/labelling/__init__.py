"""Interactive labelling: ask a person about a few labels of a row, and infer the rest.

A policy chooses the question, an annotator (simulated here) answers, a c-star ranker ranks the labels given the
answers; :func:`simulate` plays it and measures, :func:`calibrate` turns margins into probabilities.
"""

from slatewise.labelling.annotators import Annotator, Noisy, Truthful, Unsure
from slatewise.labelling.confidence import Confidence, calibrate
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

__all__ = [
    "PAPER_QUESTIONS",
    "POLICIES",
    "Annotator",
    "Confidence",
    "GivenLogOdds",
    "GivenScores",
    "LabelRanker",
    "LabelRows",
    "MarginRule",
    "Noisy",
    "PolicyComparison",
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
    "simulate",
]
