"""``random_state`` of every estimator: a seed, None, or a RandomState or Generator of which a fit draws one seed."""

import copy
import json

import numpy as np
import pytest
from sklearn.base import clone

from slatewise import (
    CollaborativeRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    LatentFeatureRanker,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    SessionRanker,
    StructuredReranker,
    datasets,
    load,
)
from slatewise._registry import ESTIMATORS, estimator_class
from slatewise.factors import Factors
from slatewise.matching import Likelihood, Sample, Slates
from slatewise.persistence.file import read_model

MADE = datasets.make_queries(n_queries=8, random_state=0)
QUERIES = (MADE.X[:, :4], MADE.y, MADE.qid)
SCENES = datasets.make_label_scenes(60, random_state=0)
SESSIONS = datasets.make_sessions(60, 20, random_state=0).sessions
PAIRS = SESSIONS.pairs()
GRAPHS = np.random.default_rng(0).normal(size=(4, 4, 4, 3))
MATCHES = [np.random.default_rng(place).permutation(4) for place in range(4)]
SMALL = {"n_components": 3, "epochs": 2}
FITS = {
    "margin": (MarginRanker("auc", C="auto"), QUERIES),
    "matching": (MatchingRanker(Slates(3, 0.1, 1)), QUERIES),
    "graph": (GraphMatcher(Likelihood(Sample(20)), l2=0.1, max_iter=5), (list(GRAPHS), MATCHES)),
    "cstar": (CStarRanker(core=2, C=1.0), (SCENES.X[:, :5], SCENES.Y[:, :4])),
    "cstar margin": (CStarMarginRanker(core=2, C=1.0), (SCENES.X[:, :5], SCENES.Y[:, :4])),
    "latent": (LatentRanker(**SMALL, learning_rate=0.1, max_norm=2.5), (PAIRS.queries, PAIRS.items)),
    "features": (
        LatentFeatureRanker(**SMALL, learning_rate=0.1, max_norm=2.5),
        (SCENES.X[:, :5], SCENES.Y[:, :4]),
    ),
    "sessions": (SessionRanker(Factors(**SMALL, learning_rate=0.1, max_norm=2.5)), (SESSIONS,)),
    "collaborative": (CollaborativeRanker(), (PAIRS.queries, PAIRS.items)),
    "reranker": (StructuredReranker(np.eye(20), validation_fraction=0.0, **SMALL), (PAIRS.queries, PAIRS.items)),
}
SOURCES = {"Generator": np.random.default_rng, "RandomState": np.random.RandomState}


def fitted(name, random_state, **run):
    estimator, data = FITS[name]
    return clone(estimator).set_params(random_state=random_state).fit(*data, **run)


def drawn(source):
    """Draw the next seed."""
    is_generator = isinstance(source, np.random.Generator)
    return int(source.integers(2**32) if is_generator else source.randint(2**32, dtype=np.int64))


def following(source):
    """What the next seed is, without drawing it."""
    return drawn(copy.deepcopy(source))


def assert_same_bits(one, two):
    assert {*one._learned} & vars(one).keys() == {*two._learned} & vars(two).keys()
    for name in {*one._learned} & vars(one).keys():
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_all_estimators_with_random_state_are_here():
    with_seed = {name for name in ESTIMATORS if "random_state" in estimator_class(name)._rules}
    assert {type(estimator).__name__ for estimator, _ in FITS.values()} == with_seed


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_draws_one_seed_and_is_that_of_the_seed(name, source):
    rng, twin = SOURCES[source](3), SOURCES[source](3)
    first, second = drawn(twin), drawn(twin)
    assert first != second
    one = fitted(name, rng)
    assert one.seed_ == first
    assert_same_bits(one, fitted(name, first))
    assert following(rng) == second
    assert one.fit(*FITS[name][1]).seed_ == second


def test_every_further_epoch_draws_a_seed():
    twin = np.random.default_rng(3)
    ranker = fitted("latent", np.random.default_rng(3))
    assert [ranker.seed_, ranker.partial_fit(*FITS["latent"][1]).seed_] == [drawn(twin), drawn(twin)]


@pytest.mark.parametrize("name", FITS)
def test_none_is_the_seed_0_and_numbers_of_numpy_are_seeds(name):
    nothing = fitted(name, None)
    assert nothing.seed_ == 0
    assert_same_bits(nothing, fitted(name, np.int64(0)))


@pytest.mark.parametrize("name", FITS)
def test_a_clone_has_a_source_of_its_own(name):
    estimator = clone(FITS[name][0]).set_params(random_state=np.random.default_rng(3))
    copied = clone(estimator)
    assert copied.random_state is not estimator.random_state
    assert copied.fit(*FITS[name][1]).seed_ == estimator.fit(*FITS[name][1]).seed_


@pytest.mark.parametrize("name", FITS)
def test_a_file_has_the_seed_that_was_drawn(tmp_path, name):
    one = fitted(name, np.random.default_rng(3))
    one.save(tmp_path / "model")
    assert read_model(tmp_path / "model").params["random_state"] == one.seed_
    back = load(tmp_path / "model")
    assert (back.random_state, back.seed_) == (one.seed_, one.seed_)
    back.set_params(**({"base": np.eye(20)} if name == "reranker" else {}))
    assert_same_bits(one, clone(back).fit(*FITS[name][1]))


def test_what_is_drawn_after_fit_is_drawn_with_its_seed(tmp_path):
    for name, ask in (
        ("matching", lambda ranker: ranker.loss(*QUERIES)),
        ("graph", lambda matcher: matcher.marginals(GRAPHS)),
    ):
        rng = np.random.default_rng(3)
        one = fitted(name, rng)
        then = following(rng)
        first = ask(one)
        np.testing.assert_array_equal(first, ask(one))
        assert following(rng) == then
        one.save(tmp_path / "model")
        np.testing.assert_array_equal(first, ask(load(tmp_path / "model")))


def test_a_fit_that_was_refused_draws_nothing():
    for estimator, data in FITS.values():
        rng = np.random.default_rng(3)
        then = following(rng)
        with pytest.raises(ValueError, match=r"expected|inconsistent"):
            clone(estimator).set_params(random_state=rng).fit(data[0], [])
        assert following(rng) == then


@pytest.mark.parametrize("name", ["margin", "cstar", "latent"])
def test_a_checkpoint_belongs_to_the_seed(tmp_path, name):
    def stop(_):
        raise KeyboardInterrupt

    state = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fitted(name, np.random.default_rng(3), checkpoint=state, callbacks=[stop])
    with pytest.raises(ValueError, match="checkpoint: expected the state of this data and these settings"):
        fitted(name, np.random.default_rng(4), checkpoint=state)
    again = fitted(name, np.random.default_rng(3), checkpoint=state)
    assert_same_bits(again, fitted(name, again.seed_))


@pytest.mark.parametrize("value", [np.random, np.random.MT19937(0), np.random.SeedSequence(0), "0", [1, 2], -1, 2**63])
def test_other_things_are_refused(value):
    with pytest.raises(ValueError, match=r"random_state: expected None or a whole number from 0 to .+ or Generator,"):
        MarginRanker(random_state=value).fit(*QUERIES)


def test_no_object_reaches_a_file(tmp_path):
    fitted("margin", np.random.RandomState(0)).save(tmp_path / "model")
    assert isinstance(json.loads(json.dumps(read_model(tmp_path / "model").params))["random_state"], int)
