"""Latent structured ranking of pairs (Weston, Blitzer 2012), and a reranker for any scorer.

ranker          LatentRanker: queries known by ids; what it shares with rows of features
feature_ranker  LatentFeatureRanker: queries that are rows of features
fold_in         vectors of queries that fit did not see, from their items
reranker        StructuredReranker, a stage on top of the scores of any model
base_scores     the scores of that model, checked and in one form
"""
