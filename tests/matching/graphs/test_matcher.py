import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.matched_graphs import all_matchings, log_z_and_marginals, matching_weight, noisy_copies, random_graphs

import slatewise
from slatewise import GraphMatcher, datasets
from slatewise.core.errors import ModelFileError
from slatewise.datasets.records import MatchingSet
from slatewise.matching import Likelihood, Sample
from slatewise.persistence.file import ModelState, read_model, write_model
from slatewise_papers.rankmatch.images import house_problem


@pytest.fixture(scope="module")
def copies():
    return noisy_copies(np.random.default_rng(0), 20, 6)


@pytest.fixture(scope="module")
def partial():
    return random_graphs(np.random.default_rng(1), [(3, 3), (4, 3), (3, 5)], 2, 0.4)


@pytest.fixture(scope="module")
def fitted(copies):
    return GraphMatcher(l2=0.01).fit(*copies)


@pytest.fixture(scope="module")
def fitted_by_samples(copies):
    return GraphMatcher(Likelihood(Sample(20), part_size=4), l2=0.1, max_iter=3).fit(*copies)


@pytest.fixture(scope="module")
def fitted_partial(partial):
    return GraphMatcher(l2=0.1).fit(*partial)


SETTINGS = [
    {},
    {"surrogate": "max-margin"},
    {"surrogate": Likelihood(part_size=3)},
    {"surrogate": Likelihood("bethe"), "l2": 1.0},
    {"surrogate": Likelihood(Sample(30)), "max_iter": 20},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_learned_features_match_new_graphs(copies, settings):
    test = noisy_copies(np.random.default_rng(2), 50, 6)
    matcher = GraphMatcher(**settings).fit(*copies)
    alike = np.mean([matching_errors(-graph.sum(axis=2), match) for graph, match in zip(*test, strict=True)])
    assert 1.0 - matcher.score(*test) < 0.6 * alike
    assert matcher.certified_ == (matcher.get_params().get("surrogate__inference", "exact") == "exact")
    assert matcher.lower_bound_ <= matcher.objective_
    if matcher.certified_:
        assert matcher.objective_ - matcher.lower_bound_ <= 1e-3 * matcher.objective_


def matching_errors(weights, match):
    best = max(all_matchings(*weights.shape), key=lambda matching: matching_weight(weights, matching))
    return np.mean(np.array(best) != match)


def test_predictions_and_probabilities_equal_enumeration(fitted_partial, partial):
    graphs, matches = partial
    unmatched = fitted_partial.unmatched_
    found = zip(
        graphs,
        matches,
        fitted_partial.predict(graphs),
        fitted_partial.marginals(graphs),
        fitted_partial.log_likelihood(graphs, matches),
        strict=True,
    )
    for graph, match, best, marginals, log_p in found:
        weights = graph @ fitted_partial.coef_
        every = all_matchings(*weights.shape, True)
        assert tuple(best) == max(every, key=lambda one, w=weights: matching_weight(w, one, unmatched))
        log_z, edges = log_z_and_marginals(weights, unmatched)
        np.testing.assert_allclose(marginals, edges, atol=1e-12)
        assert log_p == pytest.approx(matching_weight(weights, match, unmatched) - log_z, abs=1e-10)


def test_samples_have_the_marginals(fitted_partial, partial):
    graphs, _ = partial
    drawn = fitted_partial.sample(graphs, 4000, random_state=0)
    for graph, matchings, marginals in zip(graphs, drawn, fitted_partial.marginals(graphs), strict=True):
        assert matchings.shape == (4000, len(graph))
        shares = (matchings[:, :, None] == np.arange(graph.shape[1])).mean(axis=0)
        assert np.abs(shares - marginals).max() < 5 * np.sqrt(0.25 / 4000)
    again = fitted_partial.sample(graphs, 4000, random_state=0)
    assert all((one == other).all() for one, other in zip(drawn, again, strict=True))


@pytest.mark.parametrize("surrogate", ["likelihood", "max-margin"])
@pytest.mark.parametrize(("inference", "most"), [("bethe", 0.1), (Sample(2000), 0.06)])
def test_estimated_marginals_come_near(copies, surrogate, inference, most):
    graphs, matches = copies[0][:3], copies[1][:3]
    matcher = GraphMatcher(surrogate, l2=10.0).fit(*copies)
    for one, two in zip(matcher.marginals(graphs, inference=inference), matcher.marginals(graphs), strict=True):
        assert 0.0 < np.abs(one - two).max() < most
    exact = matcher.log_likelihood(graphs, matches)
    above = matcher.log_likelihood(graphs, matches, inference=inference) - exact
    assert (above > -1e-9).all()
    assert (above < 6 * np.log(2) / 2).all()  # as far as the Bethe bound can lie below log Z


def test_marginals_are_summed_as_in_training_unless_another_way_is_given(copies):
    graphs, _ = copies
    matcher = GraphMatcher(Likelihood("bethe"), l2=1.0).fit(*copies)
    for one, other in zip(matcher.marginals(graphs), matcher.marginals(graphs, inference="bethe"), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(
        ValueError, match=r"inference: expected one of exact, bethe or 'sample' or Sample.*, found 'all'"
    ):
        matcher.marginals(graphs, inference="all")


def test_unmatched_rows_without_a_score_for_them_are_impossible(fitted, copies):
    graphs, _ = copies
    assert not hasattr(fitted, "unmatched_")
    assert fitted.log_likelihood(graphs[:1], [[-1, 0, 1, 2, 3, 4]])[0] == -np.inf


def test_a_given_score_decides_who_stays_unmatched(copies):
    never, always = (GraphMatcher(l2=1e6, unmatched=score).fit(*copies) for score in (-1.0, 1.0))
    assert all((match >= 0).all() for match in never.predict(copies[0]))
    assert all((match == -1).all() for match in always.predict(copies[0]))
    assert never.unmatched_ == -1.0
    assert not hasattr(never.set_params(unmatched="auto").fit(*copies), "unmatched_")


def test_l2_by_validation(copies):
    matcher = GraphMatcher(l2="auto", tol=1e-2).fit(*copies)
    assert matcher.l2_ > 0
    assert matcher.score(*copies) > 0.5


def test_callbacks_see_every_round(copies):
    rounds = []
    matcher = GraphMatcher().fit(*copies, callbacks=[rounds.append])
    assert rounds[-1].objective == matcher.objective_
    assert [one.round for one in rounds] == list(range(1, matcher.n_iter_ + 1))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_threads_do_not_change_the_bits(copies, settings):
    one, two = (GraphMatcher(n_jobs=n, **settings).fit(*copies) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_order_of_columns_does_not_matter(copies):
    graphs, matches = copies
    order = np.random.default_rng(3).permutation(6)
    turned = [graph[:, order] for graph in graphs]
    back = [np.argsort(order)[match] for match in matches]
    one, two = GraphMatcher().fit(graphs, matches), GraphMatcher().fit(turned, back)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)


def test_more_than_24_rows_are_cut_into_parts_unless_forbidden():
    graphs, matches = noisy_copies(np.random.default_rng(4), 2, 26)
    message = r"inference: expected 'bethe' or 'sample' for .* 26 rows; in training part_size= makes smaller parts"
    with pytest.raises(ValueError, match=message):
        GraphMatcher(Likelihood(part_size=None)).fit(graphs, matches)
    matcher = GraphMatcher().fit(graphs, matches)
    assert matcher.certified_
    assert matcher.score(graphs, matches) > 0.5
    parts = GraphMatcher(Likelihood(part_size=10)).fit(graphs, matches)
    np.testing.assert_array_equal(matcher.coef_, parts.coef_)
    with pytest.raises(ValueError, match="inference: expected 'bethe' or 'sample'"):
        matcher.marginals(graphs)
    assert matcher.marginals(graphs, inference="bethe")[0].shape == (26, 26)


def test_a_part_may_have_no_column_left():
    graphs, matches = noisy_copies(np.random.default_rng(6), 30, 8)
    graphs = [graph[:, 3:] for graph in graphs]
    matches = [np.where(match >= 3, match - 3, -1) for match in matches]
    whole, parts = (GraphMatcher(Likelihood(part_size=size)).fit(graphs, matches) for size in (None, 3))
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=0.3)
    assert parts.unmatched_ == pytest.approx(whole.unmatched_, abs=0.3)


@pytest.mark.usefixtures("shared_data")
def test_parts_teach_what_tells_similar_points_apart():
    """On the frames 90 apart parts cut at random left 29% of the very pairs learned from wrong, max-margin 3%."""
    problem = house_problem(datasets.load("cmu_house", MatchingSet), 90, seed=0)
    matcher = GraphMatcher(Likelihood(part_size=10), tol=1e-2).fit(problem.train.graphs, problem.train.matches)
    assert problem.train.errors(matcher.coef_).mean() < 0.2
    assert problem.test.errors(matcher.coef_).mean() < 0.2


def test_an_unknown_log_z_is_refused():
    graphs, matches = noisy_copies(np.random.default_rng(5), 2, 18)
    matcher = GraphMatcher(Likelihood(Sample(10), part_size=6), max_iter=5).fit(graphs, matches)
    assert matcher.marginals(graphs)[0].shape == (18, 18)
    with pytest.raises(ValueError, match="inference: expected 'exact' or 'bethe'"):
        matcher.log_likelihood(graphs, matches)


# Contracts


def test_parameters_and_clone():
    matcher = GraphMatcher(Likelihood(Sample(30), part_size=5), l2=0.5)
    assert clone(matcher).get_params() == matcher.get_params()
    assert matcher.get_params()["surrogate__part_size"] == 5
    assert GraphMatcher().set_params(surrogate__inference="bethe").surrogate == Likelihood("bethe")
    with pytest.raises(ValueError, match="surrogate__part_size: expected a parameter of surrogate='likelihood'"):
        GraphMatcher("max-margin").set_params(surrogate__part_size=5)
    assert GraphMatcher().set_params(l2=2.0).l2 == 2.0


def test_before_fit():
    for call in (GraphMatcher().predict, GraphMatcher().marginals, GraphMatcher().sample):
        with pytest.raises(NotFittedError):
            call([np.zeros((2, 2, 1))])
    with pytest.raises(NotFittedError):
        GraphMatcher().score([np.zeros((2, 2, 1))], [[0, 1]])


@pytest.mark.parametrize("which", ["fitted", "fitted_partial", "fitted_by_samples"])
def test_saved_and_loaded_it_predicts_the_same(which, request, tmp_path):
    matcher = request.getfixturevalue(which)
    graphs = request.getfixturevalue("partial" if which == "fitted_partial" else "copies")[0]
    matcher.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    assert type(back) is GraphMatcher
    assert back.get_params() == matcher.get_params()
    assert back.model_card_ == matcher.model_card_
    assert back.model_card_.n_lists == len(graphs)
    for name in ("unmatched_", "certified_", "n_iter_"):
        assert getattr(back, name, "absent") == getattr(matcher, name, "absent")
    for one, other in zip(back.marginals(graphs), matcher.marginals(graphs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "change",
    [
        {"values": {"unmatched_": "0"}},
        {"values": {"unmatched_": None}},
        {"params": {"surrogate": "magic"}},
        {"params": {"surrogate": {"type": "Likelihood", "n_samples": 3}}},
        {"params": {"surrogate": {"type": "Likelihood", "inference": {"type": "Slates"}}}},
        {"params": {"surrogate": {"type": "Likelihood", "inference": {"type": "Sample", "n_samples": 0}}}},
        {"arrays": {"coef_": np.zeros(3)}},
        {"arrays": {"coef_": np.full(4, np.nan)}},
    ],
)
def test_a_file_with_other_content_is_refused(tmp_path, fitted, change):
    fitted.save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    parts = {name: getattr(state, name) for name in ("estimator", "params", "values", "arrays", "card")}
    for name, values in change.items():
        parts[name] = {**parts[name], **values}
    write_model(tmp_path / "m", ModelState(**parts))
    with pytest.raises(ModelFileError):
        slatewise.load(tmp_path / "m")


GRAPH = np.zeros((2, 3, 1))


@pytest.mark.parametrize(
    ("graphs", "matches", "message"),
    [
        ([], [], "edge_features: expected at least one graph"),
        ([np.zeros((2, 3))], [[0, 1]], r"edge_features\[0\]: expected 3 dimensions"),
        ([GRAPH, np.zeros((2, 3, 2))], [[0, 1]] * 2, r"edge_features\[1\]: expected 1 features per edge, found 2"),
        ([np.zeros((0, 3, 1))], [[]], r"edge_features\[0\]: expected at least one row"),
        ([GRAPH + np.inf], [[0, 1]], r"edge_features\[0\]: expected finite numbers, found inf at edge \(0, 0\)"),
        ([GRAPH + np.nan], [[0, 1]], "found nan at edge"),
        ([np.full((2, 3, 1), "a")], [[0, 1]], "expected numbers"),
        ([GRAPH], [[0, 1], [0, 1]], "matches: expected one matching per graph, 1, found 2"),
        ([GRAPH], [[0]], r"matches\[0\]: expected one column per row, shape \(2,\)"),
        ([GRAPH], [[0, 0]], r"matches\[0\]: expected each column at most once, found 0 for 2 rows"),
        ([GRAPH], [[0, 3]], "expected columns from 0 to 2, or -1 for none, found 3"),
        ([GRAPH], [[0, -2]], "or -1 for none, found -2"),
        ([GRAPH], [[0.0, 1.0]], "expected whole numbers"),
    ],
)
def test_bad_graphs_are_named(graphs, matches, message):
    with pytest.raises(ValueError, match=message):
        GraphMatcher().fit(graphs, matches)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l2": 0.0}, "l2: expected a finite number > 0 or 'auto'"),
        ({"l2": "much"}, "l2: expected"),
        ({"l2": "auto"}, "l2: expected a number where there is one graph"),
        (
            {"surrogate": "hinge"},
            r"surrogate: expected 'likelihood' or Likelihood\(...\) or 'max-margin', found 'hinge'",
        ),
        ({"unmatched": np.inf}, "unmatched: expected a finite number or 'auto'"),
        ({"tol": -1.0}, "tol: expected a finite number >= 0"),
        ({"tol": float("nan")}, "tol: expected a finite number >= 0"),
        ({"max_iter": 0.5}, "max_iter: expected a whole number from 1"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        GraphMatcher(**settings).fit([GRAPH], [[0, 1]])


def test_bad_fields_are_refused_when_the_object_is_made():
    with pytest.raises(ValueError, match=r"Likelihood\.inference: expected one of exact, bethe or 'sample' or Sample"):
        Likelihood("all")
    with pytest.raises(ValueError, match=r"Likelihood\.part_size: expected a whole number from 2"):
        Likelihood(part_size=1)
    with pytest.raises(ValueError, match=r"Sample\.n_samples: expected a whole number from 1"):
        Sample(0)


def test_what_cannot_be_matched_is_refused(fitted):
    with pytest.raises(ValueError, match=r"edge_features\[1\]: expected no more rows than columns.*found 3 and 2"):
        fitted.predict([np.zeros((2, 2, 4)), np.zeros((3, 2, 4))])
    with pytest.raises(ValueError, match=r"edge_features\[0\]: expected 4 features per edge, found 1"):
        fitted.predict([GRAPH])
    with pytest.raises(ValueError, match=r"edge_features\[0\]: expected at most 1e\+50 in size"):
        fitted.predict([np.full((2, 2, 4), 1e308)])
    with pytest.raises(ValueError, match="n: expected a whole number >= 1"):
        fitted.sample([np.zeros((2, 2, 4))], 0)
