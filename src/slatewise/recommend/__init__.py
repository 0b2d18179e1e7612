"""What every recommender shares: ids, histories, filters, search, evaluation.

recommender  Recommender: rank, scores, recall and score over a predictor that is made once
ids          where each id is among those that fit saw
histories    sessions as numbers, to learn from and as queries
filters      exclude, exclude_seen and candidates of every ``rank``
quantized    a catalog in bytes, for few queries
evaluation   recall, and the gain of each query
export       item vectors for an index of nearest neighbors
"""
