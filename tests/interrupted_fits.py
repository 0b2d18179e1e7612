"""Fits that can be killed from inside, each in its own process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from functools import cache

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from slatewise import (
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionRanker,
    datasets,
    losses,
)
from slatewise.factors import Factors, Stages
from slatewise.matching import Likelihood, Sample, Slates
from tests.matched_graphs import noisy_copies


@cache
def queries():
    made = datasets.make_queries(n_queries=14, random_state=0)
    return made.X, made.y, made.qid


@cache
def copies():
    return noisy_copies(np.random.default_rng(0), 8, 5)


@cache
def scored_labels():
    scenes = datasets.make_label_scenes(90, n_labels=7, random_state=1)
    return scenes.Y + np.random.default_rng(0).normal(size=scenes.Y.shape), scenes.Y


@cache
def scenes():
    made = datasets.make_label_scenes(120, n_labels=6, random_state=1)
    return made.X, made.Y


@cache
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2], y[::2]


FITS = {
    "margin": (MarginRanker("map", C=100.0, tol=1e-4), queries),
    "margin, C chosen": (MarginRanker("auc", C="auto"), queries),
    "matching": (MatchingRanker(Slates(3, 0.1, 2)), queries),
    "matching, l2 chosen": (MatchingRanker(Slates(3, 0.1, 1), l2="auto"), queries),
    "matching, max-margin": (MatchingRanker(Slates(3, 0.1, 2), l2=0.1, surrogate="max-margin"), queries),
    "graphs": (GraphMatcher(l2=1e-3, tol=1e-6), copies),
    "graphs, l2 chosen": (GraphMatcher(Likelihood(part_size=3), l2="auto"), copies),
    "graphs, max-margin": (GraphMatcher(l2=1e-3, surrogate="max-margin"), copies),
    "graphs, drawn": (GraphMatcher(Likelihood(Sample(20)), max_iter=12), copies),
    "labels": (CStarMarginRanker(core=2, C=10.0), scenes),
    "labels, default": (CStarRanker(), scenes),
    "labels, precomputed": (CStarRanker("precomputed", core=2), scored_labels),
    "labels, bundle": (CStarMarginRanker(core=2, C=30.0, solver="bundle", tol=0.1), scenes),
    "points": (MetricRanker(losses.Precision(3), C=100.0), wine),
}


@cache
def sessions():
    pairs = datasets.make_sessions(150, 40, random_state=0).sessions.pairs()
    return pairs.queries, pairs.items


@cache
def prefixes():
    return (datasets.make_sessions(120, 40, random_state=0).sessions,)


KILLED = FITS | {
    "sessions": (LatentRanker(6, stages=Stages(3, k=5), epochs=4, validation_fraction=0.1), sessions),
    "prefixes": (SessionRanker(Factors(6, epochs=4), window=3, validation_fraction=0.1), prefixes),
}


def exit_code(name, state, stop_at):
    """Fit in another process that kills itself in round ``stop_at``: a fork of one that has only imported this."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.interrupted_fits"])
    process = context.Process(target=_fit_and_die, args=(name, state, stop_at))
    process.start()
    process.join()
    return process.exitcode


def _fit_and_die(name, state, stop_at):
    estimator, data = KILLED[name]
    seen = []

    def watch(round_):
        seen.append(round_)
        if len(seen) == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    estimator.fit(*data(), checkpoint=state, callbacks=[watch])
