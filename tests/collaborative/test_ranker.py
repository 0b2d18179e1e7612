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
from slatewise.collaborative.parts import fit_part
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
        ((["a"], ["x"], [-1.0]), r"finite numbers >= 0, got -1\.0 at interaction 0"),
        ((["a"], ["x"], [np.nan]), "got nan at interaction 0"),
        ((["a"], ["x"], [0.0]), "zeros only"),
        ((["a"], ["x"], [1.0, 2.0]), "expected 1 numbers"),
        ((csr_array([[1.0, -2.0]]),), r"got -2\.0"),
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
