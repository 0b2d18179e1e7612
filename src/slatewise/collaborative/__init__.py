"""Recommend items to users by what they and others have, in no order.

settings       the parts: item-item weights, a low-pass filter, factors by alternating least squares
interactions   users and items in the forms that people have them, as one sparse matrix
item_item      weights between items (EASE, weighted by users), over ``inverse``, a tiled in-place inverse
low_pass       a low-pass filter on the graph of users and items
als            alternating least squares, over ``kernels/als``
parts          the fitted parts, their scores and contributions, and their blend
choice         settings by held-out interactions, and parts that harm
ranker         CollaborativeRanker
"""

from slatewise.collaborative.settings import ALS, ItemItem, LowPass

__all__ = ["ALS", "ItemItem", "LowPass"]
