"""CollaborativeRanker: forms of input, answers of known and new users, explanations, files, errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array

import slatewise
from slatewise import CollaborativeRanker
from slatewise.collaborative import ALS, ItemItem, LowPass
from slatewise.collaborative.choice import LADDERS, HeldOut, choose, harmful, is_better, standard
from slatewise.collaborative.interactions import Interactions
from slatewise.collaborative.parts import ItemItem as FittedItemItem
from slatewise.collaborative.parts import fit_part, scale_of
from slatewise.core.running.executor import Executor

SMALL = (ItemItem(), LowPass(n_components=8), ALS(n_components=8, epochs=3))


def tastes(n_users=120, n_items=40, n_groups=4, seed=0):
    """Draw users who mostly take items of one group; return pairs of names."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n_items) % n_groups
    users, items = [], []
    for user in range(n_users):
        likely = np.where(groups == user % n_groups, 8.0, 1.0)
        for item in rng.choice(n_items, 8, replace=False, p=likely / likely.sum()):
            users.append(f"u{user:03d}")
            items.append(f"i{item:02d}")
    return np.array(users), np.array(items)


@pytest.fixture(scope="module")
def pairs():
    return tastes()


@pytest.fixture(scope="module")
def ranker(pairs):
    return CollaborativeRanker(SMALL, validation_fraction=0).fit(*pairs)


def histories_of(pairs):
    found = {}
    for user, item in zip(*pairs, strict=True):
        found.setdefault(str(user), []).append(str(item))
    return found


def test_every_form_of_input_learns_the_same(pairs, ranker):
    users, items = pairs
    frame = CollaborativeRanker(SMALL, validation_fraction=0).fit(pd.DataFrame({"user": users, "item": items}))
    lists = CollaborativeRanker(SMALL, validation_fraction=0).fit(list(histories_of(pairs).values()))
    rows, columns = (np.unique(one, return_inverse=True)[1] for one in pairs)
    matrix = CollaborativeRanker(SMALL, validation_fraction=0).fit(coo_array((np.ones(len(rows)), (rows, columns))))
    for other in (frame, lists, matrix):
        assert other.item_factors_.tobytes() == ranker.item_factors_.tobytes()
        assert other.item_item_weights_.tobytes() == ranker.item_item_weights_.tobytes()
        assert other.low_pass_vectors_.tobytes() == ranker.low_pass_vectors_.tobytes()
    assert frame.user_ids_.tolist() == sorted(histories_of(pairs))
    assert matrix.rank([3], k=2).ids.dtype == np.int64


def test_known_and_new_users_with_the_same_history_have_the_same_answers(pairs, ranker):
    histories = histories_of(pairs)
    names = sorted(histories)
    known, new = ranker.rank(names, k=5), ranker.rank([histories[name] for name in names], k=5)
    np.testing.assert_array_equal(known.ids, new.ids)
    np.testing.assert_array_equal(known.scores, new.scores)


def test_seen_items_are_left_out_unless_wanted(pairs, ranker):
    histories = histories_of(pairs)
    found = ranker.rank(["u000", "u001"], k=40 - 8)
    for number, name in enumerate(("u000", "u001")):
        assert not set(found.ids[number]) & set(histories[name])
    every = ranker.rank(["u000"], k=40, exclude_seen=False)
    assert sorted(every.ids[0]) == ranker.item_ids_.tolist()


def test_answers_are_the_sorted_scores(ranker):
    scores = ranker.scores(["u005"], ranker.item_ids_)[0]
    found = ranker.rank(["u005"], k=40, exclude_seen=False)
    order = np.argsort(-scores, kind="stable")
    np.testing.assert_array_equal(found.ids[0], ranker.item_ids_[order])
    np.testing.assert_array_equal(found.scores[0], scores[order])


def test_users_get_items_of_their_group(pairs, ranker):
    best = ranker.rank(np.unique(pairs[0]), k=1).ids[:, 0]
    own = [int(item[1:]) % 4 == number % 4 for number, item in enumerate(best)]
    assert np.mean(own) > 0.9


def test_filters(ranker):
    assert ranker.rank(["u000"], k=3, candidates=["i01", "i02"], exclude_seen=False).ids.tolist() != []
    assert set(ranker.rank(["u000"], k=2, candidates=["i01", "i02"], exclude_seen=False).ids[0]) == {"i01", "i02"}
    best = ranker.rank(["u000"], k=2).ids[0]
    assert ranker.rank(["u000"], k=1, exclude=[[best[0]]]).ids[0, 0] == best[1]


def test_a_user_without_history_gets_popular_items_and_is_marked(ranker):
    with pytest.warns(UserWarning, match="1 of 2 users have no history"):
        found = ranker.rank([[], ["i01"]], k=3)
    assert found.nothing_known.tolist() == [True, False]
    counts = np.bincount(ranker.history_items_, minlength=40)
    assert counts[np.searchsorted(ranker.item_ids_, found.ids[0])].tolist() == sorted(counts, reverse=True)[:3]


def test_unknown_ids(ranker):
    with pytest.raises(ValueError, match="nobody"):
        ranker.rank(["nobody"])
    with pytest.warns(UserWarning, match="1 of 2"):
        found = ranker.rank(["u000", "nobody"], unknown="ignore")
    assert found.nothing_known.tolist() == [False, True]
    with pytest.warns(UserWarning, match="left out of histories"):
        same = ranker.rank([["i01", "never seen"]], unknown="ignore")
    np.testing.assert_array_equal(same.ids, ranker.rank([["i01"]]).ids)


@pytest.mark.parametrize("part", SMALL, ids=lambda part: type(part).__name__)
def test_contributions_of_each_part_add_up(pairs, part):
    ranker = CollaborativeRanker(part, validation_fraction=0).fit(*pairs)
    _adds_up(ranker, "u007", "i03")


def test_contributions_of_the_blend_add_up(ranker):
    _adds_up(ranker, "u007", "i03")
    _adds_up(ranker, ["i01", "i05"], "i09")


def _adds_up(ranker, query, item):
    found = ranker.explain(query, item)
    score = ranker.scores([query], [item])[0, 0]
    assert sum(found.values()) == pytest.approx(score, rel=1e-5, abs=1e-5)
    assert list(found)[-1] == "average item"


def test_similar_items_are_of_the_same_group(ranker):
    found = ranker.similar_items(["i01", "i02"], k=3)
    assert found.query_ids.tolist() == ["i01", "i02"]
    assert all(int(item[1:]) % 4 == 1 for item in found.ids[0])


def test_recall_counts_hidden_pairs(pairs):
    users, items = pairs
    hidden = np.random.default_rng(0).random(len(users)) < 0.2
    ranker = CollaborativeRanker(SMALL, validation_fraction=0).fit(users[~hidden], items[~hidden])
    found = ranker.recall(users[hidden], items[hidden], (5, 40))
    lists = ranker.rank(users[hidden], k=5)
    expected = np.mean([item in row for item, row in zip(items[hidden], lists.ids, strict=True)])
    assert found[5] == pytest.approx(expected)
    assert found[40] == 1.0
    assert ranker.score(users[hidden], items[hidden]) == ranker.recall(users[hidden], items[hidden], (20,))[20]


def test_a_file_answers_as_the_ranker(tmp_path, ranker):
    ranker.save(tmp_path / "model.safetensors")
    loaded = slatewise.load(tmp_path / "model.safetensors")
    assert loaded.parts_ == ranker.parts_
    np.testing.assert_array_equal(loaded.rank(["u003"]).scores, ranker.rank(["u003"]).scores)


def test_the_same_bits_with_any_number_of_threads(pairs):
    one, two = (CollaborativeRanker(SMALL, n_jobs=n).fit(*pairs) for n in (1, 2))
    assert one.parts_ == two.parts_
    np.testing.assert_array_equal(one.rank(["u000"]).scores, two.rank(["u000"]).scores)


def test_settings_that_are_given_are_kept(pairs):
    given = (ItemItem(regularization=7.0), ALS(n_components=4, epochs=1, regularization=0.5))
    found = CollaborativeRanker(given).fit(*pairs).parts_
    assert found[0] == given[0]
    assert found[1].regularization == 0.5


@pytest.mark.parametrize("part", SMALL, ids=lambda part: type(part).__name__)
def test_no_neighbor_of_the_choice_is_better_by_more_than_noise(pairs, part):
    held, executor = HeldOut.of(Interactions.of(*pairs).matrix, 0.2, 0), Executor(1)

    def gains_of(settings):
        return held.gains(fit_part(settings, held.training, 0, executor).scores, executor)

    chosen = choose(part, held, 0, executor)
    gains = gains_of(chosen)
    for name, ladder in LADDERS[type(part)].items():
        at = ladder.index(getattr(chosen, name))
        for step in {max(at - 1, 0), min(at + 1, len(ladder) - 1)} - {at}:
            assert not is_better(gains_of(replace(chosen, **{name: ladder[step]})), gains)


def test_settings_that_are_numbers_are_not_searched(pairs):
    held = HeldOut.of(Interactions.of(*pairs).matrix, 0.2, 0)
    given = ItemItem(regularization=7.0)
    assert choose(given, held, 0, Executor(1)) == standard(given) == given
    assert choose(ALS(4, regularization=0.2, epochs=1), held, 0, Executor(1)).regularization == 0.2


def test_a_part_that_harms_is_found(pairs):
    matrix = Interactions.of(*pairs).matrix
    held, executor = HeldOut.of(matrix, 0.2, 0), Executor(1)
    good = fit_part(ItemItem(regularization=100.0), held.training, 0, executor)
    bad = FittedItemItem(csr_array(-good.weights))
    random = FittedItemItem(csr_array(np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)))
    assert harmful(held, [good, bad], executor) == 1
    assert harmful(held, [random, good], executor) == 0
    assert harmful(held, [good, good], executor) is None


def test_hidden_interactions_leave_every_user_one(pairs):
    matrix = Interactions.of(*pairs).matrix
    held = HeldOut.of(matrix, 0.9, 0)
    assert np.diff(held.training.indptr).min() >= 1
    assert held.training.nnz < matrix.nnz


def test_gains_are_those_of_the_definition(make_matrix):
    matrix = make_matrix(30, 50, 0.3)
    held = HeldOut.of(matrix, 0.4, 0)
    scores = np.random.default_rng(0).standard_normal((held.histories.shape[0], 50)).astype(np.float32)
    given = iter(np.split(scores, range(128, len(scores), 128)))
    found = held.gains(lambda rows: next(given).copy(), Executor(1))
    for row, values in enumerate(scores):
        seen, hidden = (set(part[[row]].indices.tolist()) for part in (held.histories, held.hidden))
        order = [item for item in np.argsort(-values) if item not in seen][:20]
        gain = sum(1 / np.log2(rank + 2) for rank, item in enumerate(order) if item in hidden)
        best = sum(1 / np.log2(rank + 2) for rank in range(min(20, len(hidden))))
        assert found[row] == pytest.approx(gain / best)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], ["x", "y"]), "items: expected one per user, 1, found 2"),
        (([], []), "at least one interaction"),
        (
            (["a"], ["x"], [-1.0]),
            r"sample_weight: weights must be numbers from 0 to 1e\+10, got -1\.0 at interaction 0",
        ),
        ((["a"], ["x"], [np.nan]), "got nan at interaction 0"),
        ((["a"], ["x"], [1e11]), "numbers from 0 to"),
        ((["a", "a"], ["x", "x"], [9e9, 9e9]), "the weights of a pair must add up to at most"),
        ((["a", "b"], ["x", "y"], [[1.0], [1.0, 2.0]]), "expected 2 numbers, found lists of several lengths"),
        ((["a"], ["x"], [0.0]), "zeros only"),
        ((csr_array((3, 3)),), "users: expected at least one interaction"),
        ((np.eye(3),), "users: expected lists of ids or a sparse matrix .*, found a dense matrix"),
        ((np.eye(3, dtype=int),), "found a dense matrix"),
        ((pd.DataFrame({"user": ["a"], "item": ["x"], "weight": [None]}),), "weight"),
        ((pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "weight": [1.0, np.nan]}),), "row 1: .* missing value"),
        ((["a"], ["x"], [1.0, 2.0]), "expected 1 numbers"),
        ((csr_array([[1.0, -2.0]]),), r"users: weights must be .*, got -2\.0"),
        ((pd.DataFrame({"user": ["a"], "song": ["x"]}),), "a column called 'item'"),
    ],
)
def test_bad_interactions_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CollaborativeRanker().fit(*arguments)


@pytest.mark.parametrize("parts", ["svd", (), ("als", ALS()), 3, (ItemItem(), None)])
def test_bad_parts_are_named(parts):
    with pytest.raises(ValueError, match="parts: expected 'auto'"):
        CollaborativeRanker(parts).fit(["a"], ["x"])


def test_pairs_that_occur_twice_count_once_without_weights():
    one = CollaborativeRanker(SMALL, validation_fraction=0).fit(["a", "b", "a"], ["x", "y", "x"])
    assert one.history_weights_.tolist() == [1.0, 1.0]
    two = CollaborativeRanker(SMALL, validation_fraction=0).fit(["a", "b", "a"], ["x", "y", "x"], [1.0, 1.0, 2.0])
    assert two.history_weights_.tolist() == [3.0, 1.0]


def test_one_item_and_one_user_are_enough():
    ranker = CollaborativeRanker().fit([["tea"]])
    assert ranker.rank([0], exclude_seen=False).ids.tolist() == [["tea"]]
    assert len(ranker.rank([0])[0]) == 0


def test_iterators_are_read_once(pairs, ranker):
    names = ["u000", "u001"]
    np.testing.assert_array_equal(ranker.rank(iter(names)).ids, ranker.rank(names).ids)
    histories = [["i01"], ["i02", "i03"]]
    np.testing.assert_array_equal(ranker.scores(iter(histories), ["i05"]), ranker.scores(histories, ["i05"]))
    assert ranker.recall(iter(names), ["i05", "i06"]) == ranker.recall(names, ["i05", "i06"])


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 1e11])
def test_matrices_of_queries_have_weights(ranker, value):
    with pytest.raises(ValueError, match="queries: weights must be numbers from 0"):
        ranker.rank(csr_array(([value], [3], [0, 1]), shape=(1, 40)))


def test_zeros_and_repeated_entries_of_matrices_count_as_in_fit(ranker):
    zero = csr_array(([0.0], [3], [0, 1]), shape=(1, 40))
    with pytest.warns(UserWarning, match="no history"):
        found = ranker.rank(zero, k=40)
    assert found.nothing_known.tolist() == [True]
    assert len(found[0]) == 40
    twice = csr_array(([1.0, 1.0], [3, 3], [0, 2]), shape=(1, 40))
    once = csr_array(([2.0], [3], [0, 1]), shape=(1, 40))
    np.testing.assert_array_equal(ranker.scores(twice, ["i05"]), ranker.scores(once, ["i05"]))
    assert (twice.nnz, zero.nnz) == (2, 1)


def test_dense_histories_are_refused(pairs):
    rows, columns = (np.unique(one, return_inverse=True)[1] for one in pairs)
    matrix = csr_array((np.ones(len(rows)), (rows, columns)))
    numbered = CollaborativeRanker(LowPass(8), validation_fraction=0).fit(matrix)
    for dense in (matrix.toarray(), matrix.toarray().astype(int)):
        with pytest.raises(ValueError, match=r"queries: .* found a dense matrix"):
            numbered.rank(dense)
    assert len(numbered.rank(np.array([[3, 4], [5, 6]]), k=2)) == 2


def test_filters_of_recall_stay_beside_their_pairs(ranker):
    users, items = ["u002", "u000", "u002"], ["i01", "i02", "i03"]
    every = {"exclude_seen": False, "candidates": [["i01"], ["i02"], ["i04"]]}
    assert ranker.recall(users, items, (40,), **every)[40] == pytest.approx(2 / 3)
    hidden = {"exclude_seen": False, "exclude": [["i01"], [], []]}
    assert ranker.recall(users, items, (40,), **hidden)[40] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("item", "n"), [([], 0), (["i01", "i02"], 2)])
def test_one_item_is_explained(ranker, item, n):
    with pytest.raises(ValueError, match=f"item: expected one id, found {n}"):
        ranker.explain("u000", item)


def test_an_item_may_have_the_name_of_the_last_entry():
    baskets = [["average item", "b"], ["b", "c"], ["c", "average item"]]
    _adds_up(CollaborativeRanker(SMALL, validation_fraction=0).fit(baskets), ["average item"], "c")


def test_popularity_explains_users_without_a_history(ranker):
    with pytest.warns(UserWarning, match="no history"):
        found, score = ranker.explain([], "i03"), ranker.scores([[]], ["i03"])[0, 0]
    assert found == {"popularity": score}


def test_warnings_name_the_line_of_the_caller(ranker):
    calls = (
        lambda: ranker.rank(["nobody"], unknown="ignore"),
        lambda: ranker.recall(["nobody"], ["i01"], unknown="ignore"),
        lambda: ranker.score([[], ["i01"]], ["i02", "i03"]),
        lambda: CollaborativeRanker(ItemItem(most_items=2), validation_fraction=0).fit([["a", "b"], ["b", "c"], ["c"]]),
    )
    for call in calls:
        with pytest.warns(UserWarning, match=r"fit|history|frequent") as caught:
            call()
        assert {one.filename for one in caught} == {__file__}


def test_a_fit_warns_of_items_without_weights():
    ranker = CollaborativeRanker((ItemItem(most_items=2), LowPass(2)), validation_fraction=0)
    message = r"those of the 2 most frequent of 4 items, with 57\.1% of the interactions"
    with pytest.warns(UserWarning, match=message):
        ranker.fit([["a", "b"], ["b", "c"], ["c", "d"], ["a"]])
    assert ranker.item_item_weights_.size == 2
    assert sorted(ranker.rank([["b"]]).ids[0]) == ["a", "c", "d"]


def test_one_user_to_measure_on_decides_nothing():
    found = CollaborativeRanker(SMALL, validation_fraction=0.5, random_state=0).fit([["a", "b", "c"]])
    assert found.parts_ == tuple(standard(part) for part in SMALL)


def test_equal_scores_have_one_scale():
    mean, scale = scale_of(np.float32([[3e5, 3e5 + 0.03125, 3e5], [0, 0, 0], [1e-40, 0, 0], [1e20, -1e20, 3e19]]))
    assert scale[:, 0].tolist() == [300000.0, 1.0, 1.0, pytest.approx(8.29e19, rel=0.01)]
    assert np.isfinite(mean).all()


@pytest.mark.parametrize("weight", [1e-38, 1e-10, 1e10])
def test_extreme_weights_have_finite_scores(weight):
    rng = np.random.default_rng(0)
    matrix = csr_array((rng.random((15, 20)) < 0.3) * (weight * rng.random((15, 20))))
    ranker = CollaborativeRanker(SMALL, validation_fraction=0).fit(matrix)
    assert np.isfinite(ranker.scores(np.arange(15), np.arange(20))).all()


def test_contributions_add_up_where_single_precision_ends():
    ranker = CollaborativeRanker(ALS(4, 1e-6, 1e-6, epochs=2), validation_fraction=0).fit([["a", "b"], ["b", "c"]])
    ranker.item_factors_ = np.full_like(ranker.item_factors_, 1e10)
    assert sum(ranker.explain(["a"], "c").values()) == pytest.approx(ranker.scores([["a"]], ["c"])[0, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("history_weights_", np.float32(-1.0), "history_weights_: expected numbers > 0"),
        ("history_weights_", np.float32(0.0), "history_weights_: expected numbers > 0"),
        ("weights_", 1e30, "weights_: expected"),
        ("low_pass_vectors_", np.float32(1e9), "low_pass_vectors_: expected"),
    ],
)
def test_files_with_other_numbers_are_refused(tmp_path, pairs, name, value, message):
    ranker = CollaborativeRanker(SMALL, validation_fraction=0).fit(*pairs)
    array = getattr(ranker, name).copy()
    array[0] = value
    setattr(ranker, name, array)
    with pytest.raises(ValueError, match=message):
        ranker.save(tmp_path / "model.safetensors")


def test_a_file_without_interactions_is_refused(tmp_path, pairs):
    ranker = CollaborativeRanker("low-pass", validation_fraction=0).fit(*pairs)
    ranker.history_items_, ranker.history_weights_ = ranker.history_items_[:0], ranker.history_weights_[:0]
    ranker.history_offsets_ = np.zeros_like(ranker.history_offsets_)
    with pytest.raises(ValueError, match="history_items_: expected at least one interaction"):
        ranker.save(tmp_path / "model.safetensors")


def test_read_only_and_unsorted_matrices_are_left_as_they_are():
    matrix = csr_array(([2.0, 0.0, 1.0, 1.0], [1, 0, 2, 2], [0, 2, 4]), shape=(2, 3))
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    ranker = CollaborativeRanker(SMALL, validation_fraction=0).fit(matrix)
    assert ranker.history_weights_.tolist() == [2.0, 2.0]
    assert ranker.rank(matrix, k=1).ids.shape == (2, 1)
    assert matrix.data.tolist() == [2.0, 0.0, 1.0, 1.0]
