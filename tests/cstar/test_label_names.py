"""Labels as people have them: every form of the same names gives the same ranker, and bad ones are refused by name."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import slatewise
from slatewise import CStarRanker, datasets

NAMES = ["boat", "car", "dog", "sea", "sky", "tree"]
N = 60


@pytest.fixture(scope="module")
def scenes():
    made = datasets.make_label_scenes(N, n_labels=6, n_features=4, n_groups=1, random_state=3)
    made.Y[5] = 0  # a row without any tag
    return made


@pytest.fixture(scope="module")
def tags(scenes):
    """The names of each row."""
    return [[name for name, flag in zip(NAMES, row, strict=True) if flag] for row in scenes.Y]


def fitted(X, y, **options):
    return CStarRanker(core=2, tol=0.1).fit(X, y, **options)


@pytest.fixture(scope="module")
def ranker(scenes):
    return fitted(scenes.X, scenes.Y, label_names=NAMES)


def forms(Y, tags):
    """The same labels in every form, and the arguments of fit for it."""
    boxed = np.empty(N, dtype=object)
    boxed[:] = [set(row) for row in tags]
    joined = ["|".join(row) for row in tags]
    return {
        "lists": (tags, {}),
        "lists in another order": ([row[::-1] for row in tags], {}),
        "tuples": (tuple(map(tuple, tags)), {}),
        "sets": ([set(row) for row in tags], {}),
        "frozen sets": ([frozenset(row) for row in tags], {}),
        "arrays": ([np.array(row, dtype=np.str_) for row in tags], {}),
        "an array of sets": (boxed, {}),
        "a pandas series": (pd.Series(tags, index=range(9, 9 + N)), {}),
        "a pandas column": (pd.DataFrame({"tags": tags}), {}),
        "a polars series": (pl.Series(tags), {}),
        "a polars column": (pl.DataFrame({"tags": tags}), {}),
        "an Arrow array": (pa.array(tags), {}),
        "a chunked Arrow array": (pa.chunked_array([tags[:7], tags[7:]]), {}),
        "joined": (joined, {"separator": "|"}),
        "joined by more": ([", ".join(row) for row in tags], {"separator": ", "}),
        "a series of joined names": (pd.Series(joined), {"separator": "|"}),
        "an array of joined names": (np.array(joined), {"separator": "|"}),
        "a polars series of joined names": (pl.Series(joined), {"separator": "|"}),
        "a pandas frame": (pd.DataFrame(Y, columns=NAMES), {}),
        "a polars frame": (pl.DataFrame(Y, schema=NAMES), {}),
        "an Arrow table": (pa.table({name: Y[:, at] for at, name in enumerate(NAMES)}), {}),
        "a frame of booleans": (pl.DataFrame(Y.astype(bool), schema=NAMES), {}),
        "a matrix": (Y, {"label_names": NAMES}),
        "sparse": (csr_array(Y), {"label_names": NAMES}),
        "names and their labels": (tags, {"label_names": NAMES}),
    }


def test_every_form_gives_the_same_ranker(scenes, tags, ranker):
    expected = ranker.score(scenes.X, scenes.Y)
    for form, (y, options) in forms(scenes.Y, tags).items():
        found = fitted(scenes.X, y, **options)
        assert found.label_names_.tolist() == NAMES, form
        assert found.pair_.tobytes() == ranker.pair_.tobytes(), form
        separator = {key: value for key, value in options.items() if key == "separator"}
        assert ranker.score(scenes.X, y, **separator) == expected, form
        assert found.score(scenes.X, y) == expected, form  # knows its separator


def test_names_may_be_more_and_in_another_order_than_the_rows_say(scenes, tags):
    names = ["zebra", *NAMES[::-1]]
    assert fitted(scenes.X, tags, label_names=names).label_names_.tolist() == names


def test_columns_of_a_frame_are_found_by_name(scenes, ranker):
    turned = pd.DataFrame(scenes.Y[:, ::-1], columns=NAMES[::-1])
    assert ranker.score(scenes.X, turned) == ranker.score(scenes.X, scenes.Y)
    strange = turned.rename(columns={"sea": "lake"})
    with pytest.raises(
        ValueError, match="y: expected the columns that fit saw, found 'lake' too and none called 'sea'"
    ):
        ranker.score(scenes.X, strange)
    unnamed = fitted(scenes.X, scenes.Y)
    assert unnamed.score(scenes.X, strange.iloc[:, ::-1]) == ranker.score(scenes.X, scenes.Y)  # by place


def test_answers_by_name(scenes, ranker):
    X = scenes.X[:3]
    known = np.full((3, 6), -1)
    known[0, [3, 4]], known[1, 0] = (1, 0), 1
    by_name = [
        [{"sea": 1, "sky": 0}, {"boat": True}, {}],
        pd.DataFrame({"sky": [0, -1, -1], "sea": [1, -1, -1], "boat": [-1, 1, -1]}),
    ]
    for given in by_name:
        assert ranker.rank(X, 3, given).to_dict() == ranker.rank(X, 3, known).to_dict()
        np.testing.assert_array_equal(ranker.next_question(X, given, 3), ranker.next_question(X, known, 3))
        np.testing.assert_array_equal(ranker.explain(X, 3, given).own, ranker.explain(X, 3, known).own)
    yes = np.where(known == 1, 1, -1)
    for given in ([{"sea"}, {"boat"}, set()], [["sea"], ["boat"], []]):
        np.testing.assert_array_equal(ranker.decision_function(X, 3, given), ranker.decision_function(X, 3, yes))
    numbered = fitted(scenes.X, scenes.Y)
    by_number = [{3: 1, 4: 0}, {0: 1}, {}]
    np.testing.assert_array_equal(numbered.decision_function(X, 3, by_number), ranker.decision_function(X, 3, known))


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([{"lake": 1}, {}], "expected names of labels that fit saw, found 'lake' in row 0"),
        ([{"sea"}, {"lake", "sea"}], "expected names of labels that fit saw, found 'lake' in row 1"),
        ([{}, {"sea": 2}], "expected -1, 0 or 1, found 2 of 'sea' in row 1"),
        ([{"sea": "yes"}, {}], "expected -1, 0 or 1, found 'yes' of 'sea' in row 0"),
        ([{"sea"}, 7], "expected a mapping or a set of names in every row, found 7 in row 1"),
        ([{"sea"}], "expected answers for each of 2 rows, found 1"),
        ([{"sea"}, [["sky"]]], r"expected names of labels that fit saw, found \['sky'\] in row 1"),
        (pd.DataFrame({"lake": [1, 1]}), "expected names of labels that fit saw, found 'lake'"),
        (pd.DataFrame({"sea": ["yes", "no"]}), "expected numbers, found dtype"),
    ],
)
def test_answers_that_cannot_be_meant(scenes, ranker, known, message):
    with pytest.raises(ValueError, match=f"known: {message}"):
        ranker.rank(scenes.X[:2], 3, known)


def test_the_core_by_name(tmp_path, scenes, tags):
    named = CStarRanker(core=["sky", "boat"], tol=0.1).fit(scenes.X, tags)
    assert named.core_.tolist() == [4, 0]
    assert named.explain(scenes.X[:2], 2).core.tolist() == ["sky", "boat"]
    np.testing.assert_array_equal(named.pair_, CStarRanker(core=[4, 0], tol=0.1).fit(scenes.X, scenes.Y).pair_)
    named.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    assert (back.core, back.label_names_.tolist()) == (["sky", "boat"], NAMES)
    assert back.score(scenes.X, tags) == named.score(scenes.X, scenes.Y)
    for core in (("sky",), np.array(["sky"])):
        assert CStarRanker(core=core, tol=0.5).fit(scenes.X, tags).core_.tolist() == [4]
    for core, message in [
        (["lake", "sky"], "core: expected names of labels that fit saw, found 'lake'"),
        (["sky", 3], "core: expected 'auto' or a whole number .* or label numbers or a list of names, found"),
        (["sky", "sky"], "core: expected .* once"),
    ]:
        with pytest.raises(ValueError, match=message):
            CStarRanker(core=core).fit(scenes.X, tags)
    with pytest.raises(ValueError, match="core: expected names of labels that fit saw, found 'sky'"):
        CStarRanker(core=["sky"]).fit(scenes.X, scenes.Y)  # whose labels are numbers


def test_scikit_learn_is_told_and_carries_names(scenes, tags):
    tagged = get_tags(CStarRanker())
    assert tagged.classifier_tags.multi_label
    assert tagged.target_tags.required
    pipe = make_pipeline(StandardScaler(), CStarRanker(core=1, tol=0.5))
    joined = ["|".join(row) for row in tags]
    pipe.fit(scenes.X, joined, cstarranker__separator="|")
    assert pipe[-1].label_names_.tolist() == NAMES
    assert pipe.score(scenes.X, joined) == pipe.score(scenes.X, scenes.Y)
    assert pipe[-1].rank(pipe[:-1].transform(scenes.X), 2).ids.dtype.kind == "U"
    by_name, by_place = (cross_val_score(pipe, scenes.X, y, cv=2, error_score="raise") for y in (tags, scenes.Y))
    np.testing.assert_array_equal(by_name, by_place)
    search = GridSearchCV(CStarRanker(tol=0.5), {"core": [0, ["sky", "sea"]]}, cv=2, error_score="raise")
    assert search.fit(scenes.X, tags).best_estimator_.label_names_.tolist() == NAMES


BAD = {
    "no label at all": ([set(), set(), set()], {}, r"expected at least two labels to rank, found 0: \[\]"),
    "lists without a label": ([[], [], []], {}, "expected at least two labels to rank, found 0"),
    "texts without a label": (["", "", ""], {"separator": "|"}, "expected at least two labels to rank, found 0"),
    "one label": ([{"sky"}, set(), {"sky"}], {}, r"expected at least two labels to rank, found 1: \['sky'\]"),
    "too few rows": ([{"sky"}, {"sea"}], {}, "expected names for 3 rows, found 2: inconsistent numbers of samples"),
    "an empty name": ([["sky", ""], ["sea"], []], {}, "names that are texts, .* found '' in row 0"),
    "a blank name": ([["sky"], ["sea", "  "], []], {}, "names that are texts, .* found '  ' in row 1"),
    "blanks around a name": ([["sky"], ["sea "], []], {}, "names that are texts, .* found 'sea ' in row 1"),
    "no name": ([["sky"], ["sea", None], []], {}, "names that are texts, .* found None in row 1"),
    "a number among names": ([["sky"], ["sea", 3], []], {}, "names that are texts, .* found 3 in row 1"),
    "a missing row": ([["sky"], None, ["sea"]], {}, r"an empty one where there are no labels\), found None in row 1"),
    "a missing row of a series": (pd.Series([["sky"], np.nan, ["sea"]]), {}, r"found nan in row 1"),
    "a missing row of polars": (pl.Series([["sky"], None, ["sea"]]), {}, r"found None in row 1"),
    "texts and sets": ([{"sky"}, "sea", {"sea"}], {}, "set of names in every row .* found 'sea' in row 1"),
    "mappings": ([{"sky": 1}, {"sea": 1}, {}], {}, "y: expected .*{'sky': 1} in row 0"),
    "a name twice": ([["sky", "sea", "sky"], ["sea"], []], {}, "every name once per row, found 'sky' again in row 0"),
    "a name twice in a text": (["a|b", "b|b", ""], {"separator": "|"}, "found 'b' again in row 1 .cut at '|'"),
    "nothing between separators": (["a|b", "b||a", ""], {"separator": "|"}, "found '' in row 1 .cut at '|'"),
    "a blank text": (["a|b", " ", ""], {"separator": "|"}, "found ' ' in row 1"),
    "a missing separator": (["sky|sea", "sea", ""], {}, r"found 'sky\|sea' in row 0; separator='\|' cuts"),
    "a separator for lists": ([["sky"], ["sea"], []], {"separator": "|"}, r"found \['sky'\] in row 0"),
    "a separator for numbers": (np.eye(3), {"separator": "|"}, "separator: expected one text per row in y"),
    "a missing text": (["sky|sea", None, ""], {"separator": "|"}, "found None in row 1; an empty text is"),
    "an empty separator": (["sky|sea", "sea", ""], {"separator": ""}, "separator: expected a text that is not empty"),
    "no separator": (["sky|sea", "sea", ""], {"separator": 3}, "separator: expected a text .* found 3"),
    "a name beyond the given": ([{"sky"}, {"lake"}, set()], {"label_names": ["sky", "sea"]},
                                "expected the labels 'sky', 'sea', found 'lake', first in row 1"),
    "given names twice": ([{"sky"}, set(), set()], {"label_names": ["sky", "sky"]}, "found 'sky' again"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_labels_that_cannot_be_meant(kind):
    y, options, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        CStarRanker().fit(np.arange(6.0).reshape(3, 2), y, **options)


def test_one_row():
    for y in ([{"sky", "sea"}], [["sky", "sea"]], pd.DataFrame([[1, 1]], columns=["sea", "sky"])):
        with pytest.warns(UserWarning, match="base: expected at least 5 rows .* found 1 different ones"):
            one = CStarRanker().fit([[1.0, 2.0]], y)
        assert sorted(one.rank([[1.0, 2.0]], 2)[0]) == ["sea", "sky"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{"lake", "sky"}, {"moor"}], "expected the labels .* and 1 more, found 'lake', 'moor', first in row 0"),
        (["sky|sea", "sky"], r"found 'sky\|sea' in row 0; separator='\|'"),
        ([{"sky"}], "expected names for 2 rows, found 1"),
        (["sky", "sea"], "expected 0/1 labels as in fit, .* found one class per row"),
    ],
)
def test_labels_to_score_by_that_fit_did_not_see(scenes, ranker, y, message):
    with pytest.raises(ValueError, match=f"y: expected .*{message}|{message}"):
        ranker.score(scenes.X[:2], y)


def test_names_for_a_ranker_without_them(scenes, tags):
    with pytest.raises(ValueError, match="y: expected 0/1 labels, as in fit, found names of several labels per row"):
        fitted(scenes.X, scenes.Y).score(scenes.X, tags)
    classes = fitted(scenes.X, np.array(NAMES)[np.arange(N) % 6])
    with pytest.raises(ValueError, match="y: expected one class per row, as in fit, found names of several labels"):
        classes.score(scenes.X, tags)
