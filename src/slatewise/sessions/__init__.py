"""Next items of sessions, by similar sessions, by counts, by a blend of both and by factors.

estimator    what all models of sessions share
neighbors, cooccurrence, blend    the models without training
tuning, cross_fit    settings chosen on the last sessions; scores of sessions that a model has not seen
"""
