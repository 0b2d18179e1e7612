"""What estimators share, and the one that stands on nothing else.

base            Estimator: declared parameters and attributes, get_params and set_params, files, callbacks
sklearn         the typed gateway to scikit-learn, and checks of rows, targets, classes and weights
lists           graded rows, list by list
query_ranker    rankers of such rows: fit(X, y, qid), predict, rank, score
best_feature    BestFeatureRanker
"""
