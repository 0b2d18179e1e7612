"""Match the points of sheared outlines: learn what to compare, then read how certain each match is."""

# ---
import numpy as np
from scipy.optimize import linear_sum_assignment

from slatewise import GraphMatcher, datasets

pairs = datasets.make_silhouettes(n_pairs=120, n_points=10, largest_shear=1.0, random_state=0)
context = datasets.shape_context
features = [datasets.edge_features(context(a), context(b)) for a, b in zip(pairs.source, pairs.target, strict=True)]
train, test = slice(0, 80), slice(80, None)

matcher = GraphMatcher(l2=0.01).fit(features[train], pairs.matches[train])
print(f"certified: {matcher.lower_bound_:.3f} <= optimum <= {matcher.objective_:.3f}")

# Unlearned, every part of the description counts the same: the plain assignment of smallest distance.
plain = [linear_sum_assignment(graph.sum(axis=2))[1] for graph in features[test]]
print(f"points matched right: unlearned {np.mean(np.array(plain) == pairs.matches[test]):.3f}")
print(f"                      learned   {matcher.score(features[test], pairs.matches[test]):.3f}")

# The exact probability of every edge, over all 10! matchings, and matchings drawn from them.
print(matcher.marginals(features[test])[0].max(axis=1).round(2))
print(matcher.sample(features[test], n=3, random_state=0)[0])

# Rows without a partner: -1 in the targets, and the score of staying unmatched is learned too.
hidden = [graph[:, :8] for graph in features]
partners = [np.where(match < 8, match, -1) for match in pairs.matches]
partial = GraphMatcher(l2=0.01).fit(hidden[train], partners[train])
print(f"with two targets hidden: {partial.score(hidden[test], partners[test]):.3f}")

matcher.save("points.safetensors")
