"""Small graphs and every matching of them, one by one: the judge of sums, gradients and argmaxes.

Shares no code with what it judges.
"""

import numpy as np


def all_matchings(n_rows, n_columns, may_be_unmatched=False):
    """Every way to give rows different columns, as tuples; -1 for a row without one, where that is allowed."""

    def extend(begun):
        if len(begun) == n_rows:
            yield tuple(begun)
            return
        for column in range(n_columns):
            if column not in begun:
                yield from extend([*begun, column])
        if may_be_unmatched:
            yield from extend([*begun, -1])

    return list(extend([]))


def matching_weight(weights, matching, unmatched=None):
    return sum(unmatched if column < 0 else weights[row, column] for row, column in enumerate(matching))


def log_z_and_marginals(weights, unmatched=None):
    """By enumeration, the largest weight taken off first."""
    matchings = all_matchings(*weights.shape, unmatched is not None)
    logs = np.array([matching_weight(weights, matching, unmatched) for matching in matchings])
    mass = np.exp(logs - logs.max())
    marginals = np.zeros(weights.shape)
    for matching, amount in zip(matchings, mass / mass.sum(), strict=True):
        for row, column in enumerate(matching):
            if column >= 0:
                marginals[row, column] += amount
    return logs.max() + np.log(mass.sum()), marginals


def random_graphs(rng, shapes, n_features, unmatched_share=0.0):
    """Random edge features, with random matchings as targets."""
    graphs, matches = [], []
    for n_rows, n_columns in shapes:
        graphs.append(rng.normal(size=(n_rows, n_columns, n_features)))
        columns = np.full(n_rows, -1)
        columns[: min(n_rows, n_columns)] = rng.permutation(n_columns)[:n_rows]
        columns[rng.random(n_rows) < unmatched_share] = -1
        matches.append(rng.permutation(columns))
    return graphs, matches


def noisy_copies(rng, n_graphs, n_points, n_features=4, noise=0.5, useless=2):
    """Points and noisy copies in another order; the last features say nothing."""
    graphs, matches = [], []
    for _ in range(n_graphs):
        source, match = rng.normal(size=(n_points, n_features)), rng.permutation(n_points)
        target = np.empty_like(source)
        target[match] = source + noise * rng.normal(size=source.shape)
        target[:, n_features - useless :] = rng.normal(size=(n_points, useless))
        graphs.append((source[:, None] - target[None]) ** 2)
        matches.append(match)
    return graphs, matches
