"""Rankers from flat settings, so that a test can vary one of them."""

from functools import partial

from slatewise import LatentFeatureRanker, LatentRanker, SessionRanker, StructuredReranker
from slatewise.factors import Blocked, Factors, Gpu, Sampled, Stages, Warp

OF_STAGES = {"k": "k", "pair": "pair", "position_weights": "position_weights", "own_weight": "self_weight"}
OF_STAGES |= {"stage_learning_rate": "learning_rate", "stage_norm": "max_norm"}
ENGINES = {"blocked": Blocked, "gpu": Gpu}
OF_FACTORS = ("loss", "engine", "learning_rate", "max_norm", "dropout", "epochs", "patience")


def grouped(settings):
    """Put settings that belong to an object into it."""
    settings = dict(settings)
    stages = {ours: settings.pop(name) for name, ours in OF_STAGES.items() if name in settings}
    if stages:
        settings["stages"] = Stages(settings.get("stages", 1), **stages)
    blocked = {name: settings.pop(name) for name in ("negatives", "batch_size") if name in settings}
    if blocked:
        settings["engine"] = ENGINES[settings.get("engine", "blocked")](**blocked)
    if "max_draws" in settings:
        settings["engine"] = Sampled(settings.pop("max_draws"))
    if "alpha" in settings:
        settings["loss"] = Warp(settings.pop("alpha"))
    return settings


def to_fit(make):
    """Give ``callbacks`` and ``checkpoint`` to every fit of what is made."""

    def made(*arguments, **settings):
        run = {name: settings.pop(name) for name in ("callbacks", "checkpoint") if name in settings}
        ranker = make(*arguments, **settings)
        if run:
            ranker.fit = partial(ranker.fit, **run)
        return ranker

    return made


@to_fit
def make_latent(n_components=100, **settings):
    return LatentRanker(n_components, **grouped(settings))


@to_fit
def make_featured(n_components=100, **settings):
    return LatentFeatureRanker(n_components, **grouped(settings))


@to_fit
def make_session_ranker(n_components=100, **settings):
    if "window" in settings and settings["window"] is None:
        settings.setdefault("base", None)
    settings = grouped(settings)
    factors = {name: settings.pop(name) for name in OF_FACTORS if name in settings}
    return SessionRanker(Factors(n_components, **factors), **settings)


@to_fit
def make_reranker(base=None, n_components=50, **settings):
    of_stages = {"learning_rate": "stage_learning_rate", "max_norm": "stage_norm"}
    settings = {of_stages.get(name, name): value for name, value in settings.items()}
    batch_size = {"batch_size": settings.pop("batch_size")} if "batch_size" in settings else {}
    return StructuredReranker(base, n_components=n_components, **grouped(settings), **batch_size)
