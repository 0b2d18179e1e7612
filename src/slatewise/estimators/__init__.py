"""What estimators share, and the one that stands on nothing else.

In reading order: ``sklearn`` (the typed gateway to scikit-learn), ``transformer`` (estimators that map rows),
``query_ranker`` (rankers of graded rows by list), ``best_feature`` (:class:`slatewise.BestFeatureRanker`).
"""
