"""What estimators share, and BestFeatureRanker, which needs nothing more.

base            Estimator: declared parameters and attributes, get_params and set_params, files, callbacks
sklearn         the typed gateway to scikit-learn, and checks of rows, targets, classes and weights
lists           graded rows, list by list
query_ranker    rankers of such rows: fit(X, y, qid), predict, rank, score
best_feature    BestFeatureRanker
"""
