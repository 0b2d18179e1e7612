"""One step of the blocked engine, pair by pair in float64, and the objective it descends; shares no code with it."""

import numpy as np


def rank_weight(count, n_items, power=1.0):
    alpha = np.arange(1, n_items + 1) ** -power
    return alpha[:count].sum() / alpha.sum()


def violators(x, Z, positive):
    scores = Z @ x
    return [j for j in range(len(Z)) if j != positive and scores[j] + 1 > scores[positive]]


def shares(x, Z, positive, power=1.0, drawn=None, listed=()):
    """Items that a pair pushes down, each with its share of the pair's weight L(r)/L(D)."""
    bad = violators(x, Z, positive)
    if drawn is None:
        return {j: rank_weight(len(bad), len(Z), power) / len(bad) for j in bad}
    inside = [j for j in listed if j in bad]
    others = [j for j in drawn if j not in listed and j != positive]
    scale = (len(Z) - 1 - len([j for j in listed if j != positive])) / max(len(others), 1)
    outside = [j for j in others if j in bad]
    total = len(inside) + scale * len(outside)
    if total == 0:
        return {}
    rank = min(max(int(total + 0.5), 1), len(Z) - 1)
    weight = rank_weight(rank, len(Z), power)
    return dict.fromkeys(inside, weight / total) | dict.fromkeys(outside, weight * scale / total)


def objective(X, Z, pairs, weights, pushed):
    """Sum over pairs of weight times hinge, at given shares: what a step goes down on."""
    total = 0.0
    for (q, d), weight, share in zip(pairs, weights, pushed, strict=True):
        for j, part in share.items():
            total += weight * part * (1 - X[q] @ Z[d] + X[q] @ Z[j])
    return total


def ascent(X, Z, pairs, weights, pushed):
    """Minus the gradient of the objective."""
    gx, gz = np.zeros(X.shape), np.zeros(Z.shape)
    for (q, d), weight, share in zip(pairs, weights, pushed, strict=True):
        for j, part in share.items():
            gx[q] += weight * part * (Z[d] - Z[j])
            gz[d] += weight * part * X[q]
            gz[j] -= weight * part * X[q]
    return gx, gz


def adagrad(values, accumulators, gradient, segments):
    """Step and project, segment by segment; returns new values and accumulators."""
    values, accumulators = values.copy(), accumulators.copy()
    for number, (start, stop, step, norm) in enumerate(segments):
        for row in range(len(values)):
            g = gradient[row, start:stop]
            if step == 0 or not g.any():
                continue
            accumulators[row, number] += (g * g).mean()
            values[row, start:stop] += step * g / np.sqrt(accumulators[row, number])
            length = np.linalg.norm(values[row, start:stop])
            if length > norm:
                values[row, start:stop] *= norm / length
    return values, accumulators


def parts(answer):
    """Ids and scores, (queries, k), of lists that are equally long."""
    return answer.ids, answer.scores
