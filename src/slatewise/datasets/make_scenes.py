"""Scenes with tags that come together or exclude each other, and the exact probability of every tag set.

    scene z ~ prior ,   x | z ~ Normal(means[z], noise^2 I) ,   tags | z :

free tags are switched on independently with probability ``tag_given_scene[z, l]``; the tags of an exclusive group are
drawn one out of the group. Bayes' rule gives p(z | x), hence the marginal of every tag and the joint of any tag set.
Ranking tags by their marginals has the highest expected precision at every k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.splits import RandomState


@dataclass(frozen=True, eq=False)
class LabelScenes:
    """Rows ``X`` with tags ``Y`` (0/1), and the law they were drawn from."""

    X: Floats
    Y: NDArray[np.int8]
    scene: Ints
    prior: Floats
    means: Floats
    noise: float
    tag_given_scene: Floats
    groups: tuple[Ints, ...]
    """Exclusive groups: exactly one tag of each is on."""

    def posterior(self, X: ArrayLike | None = None) -> Floats:
        """Return p(scene | x), (rows, scenes), of these rows or of others."""
        rows = self.X if X is None else np.asarray(X, dtype=np.float64)
        squared = ((rows[:, None, :] - self.means) ** 2).sum(axis=2)
        log_joint = np.log(self.prior) - squared / (2 * self.noise**2)
        weights = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def marginals(self, X: ArrayLike | None = None) -> Floats:
        """Return p(tag on | x), (rows, tags)."""
        return self.posterior(X) @ self.tag_given_scene

    def best_ranking(self, X: ArrayLike | None = None) -> Ints:
        """Return the tags of every row, best first: no ranking has a higher expected precision at any k."""
        return np.argsort(-self.marginals(X), axis=1, kind="stable")

    def joint(self, Y: ArrayLike, X: ArrayLike | None = None) -> Floats:
        """Return p(tag set | x) of one 0/1 tag row a row of X."""
        on = np.asarray(Y, dtype=bool)
        free = np.ones(on.shape[1], dtype=bool)
        given_scene = np.ones((len(on), len(self.prior)))
        for group in self.groups:
            free[group] = False
            one = on[:, group].sum(axis=1) == 1
            given_scene *= np.where(one[:, None], on[:, group].astype(float) @ self.tag_given_scene[:, group].T, 0.0)
        for tag in np.flatnonzero(free):
            p = self.tag_given_scene[:, tag]
            given_scene *= np.where(on[:, tag, None], p, 1 - p)
        return (self.posterior(X) * given_scene).sum(axis=1)


def make_label_scenes(
    n_rows: int = 500,
    n_labels: int = 20,
    n_scenes: int = 5,
    *,
    n_features: int = 8,
    n_groups: int = 2,
    group_size: int = 3,
    noise: float = 1.0,
    random_state: RandomState = None,
) -> LabelScenes:
    """Draw scenes with correlated tags: the first ``n_groups * group_size`` tags form the exclusive groups.

    Examples
    --------
    >>> scenes = make_label_scenes(random_state=0)
    >>> scenes.X.shape, scenes.Y.shape, [group.tolist() for group in scenes.groups]
    ((500, 8), (500, 20), [[0, 1, 2], [3, 4, 5]])
    """
    grouped = n_groups * group_size
    if n_groups < 0 or (n_groups and group_size < 1) or grouped > n_labels:
        raise ValueError(f"n_groups: expected n_groups * group_size <= n_labels = {n_labels}, found {grouped}")
    if n_scenes < 1 or not noise > 0:
        raise ValueError(f"n_scenes, noise: expected at least one scene and noise > 0, found {n_scenes}, {noise}")
    rng = np.random.default_rng(random_state)
    prior = rng.dirichlet(np.full(n_scenes, 4.0))
    means = rng.normal(size=(n_scenes, n_features))
    # Beta(0.3, 0.9): in a given scene most tags are near 0 and some near 1, so tags of one scene come together.
    tag_given_scene = rng.beta(0.3, 0.9, size=(n_scenes, n_labels))
    groups = tuple(np.arange(g * group_size, (g + 1) * group_size, dtype=np.int64) for g in range(n_groups))
    for group in groups:
        tag_given_scene[:, group] = rng.dirichlet(np.full(group_size, 0.5), size=n_scenes)

    scene = rng.choice(n_scenes, n_rows, p=prior).astype(np.int64)
    X = means[scene] + noise * rng.normal(size=(n_rows, n_features))
    Y = (rng.random((n_rows, n_labels)) < tag_given_scene[scene]).astype(np.int8)
    for group in groups:
        drawn = rng.random(n_rows)[:, None] > np.cumsum(tag_given_scene[scene][:, group[:-1]], axis=1)
        Y[:, group] = np.arange(group_size) == drawn.sum(axis=1)[:, None]
    return LabelScenes(X, Y, scene, prior, means, noise, tag_given_scene, groups)
