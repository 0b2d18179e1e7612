"""Estimators: validate, choose parts, delegate; no numerics of their own."""

from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.estimators.saving import load

__all__ = ["BestFeatureRanker", "load"]
