"""What all reproductions and benchmarks stand on: loops, statistics, published figures and timing."""

import warnings

import numpy as np
import pytest

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise_papers.framework.arrays import folds, logit, out_of_fold, sigmoid, standardized
from slatewise_papers.framework.reproduction import Published, Row
from slatewise_papers.framework.running import expected_warnings, kept_or_made, over_sets, over_splits
from slatewise_papers.framework.statistics import compared, mean_and_error, sums_of_groups
from slatewise_papers.framework.timing import by_turns, each_seconds, milliseconds, numbers_printed


def test_values_of_methods_are_in_the_order_of_splits():
    found = over_splits([1, 2, 3], lambda split: [("a", split), *[("b", -split)][: split > 1]], "split")
    assert found == {"a": [1, 2, 3], "b": [-2, -3]}


@pytest.mark.parametrize(("data", "names"), [(None, ["one", "other"]), ("other", ["other"])])
def test_all_sets_or_the_one_that_is_named(data, names):
    found = over_sets("a title", ("one", "other"), data, lambda name: [Row(name, {}, None)])
    assert [row.name for row in found.rows] == names
    assert (found.paper, found.data) == ("a title", ", ".join(names))


def test_other_warnings_are_not_ignored():
    with expected_warnings():
        warnings.warn("a rough fit", ConvergenceWarning, stacklevel=1)
        warnings.warn("2 lists are left out", UserWarning, stacklevel=1)
        with pytest.warns(RuntimeWarning):
            warnings.warn("something else", RuntimeWarning, stacklevel=1)


def test_a_file_is_read_and_not_made_again(tmp_path):
    path = tmp_path / "folder" / "part.json"
    assert kept_or_made(path, lambda: {"a": 1}) == {"a": 1}
    assert kept_or_made(path, lambda: {"a": 2}) == {"a": 1}
    assert kept_or_made(None, lambda: {"a": 2}) == {"a": 2}
    assert [one.name for one in path.parent.iterdir()] == ["part.json"]


def test_one_split_has_no_error():
    assert mean_and_error("x", [2.0]) == {"x": 2.0}
    assert mean_and_error("x", [1.0, 3.0]) == {"x": 2.0, "x_se": 1.0}


def test_methods_that_differ_in_every_list_have_a_small_p_value():
    rng = np.random.default_rng(0)
    base = rng.random(40)
    found = compared(["far", "same"], [base + 1.0, base], [base, base])
    assert found["far"] == pytest.approx(1.0)
    assert found["far_p"] < 0.01
    assert found["same_p"] == 1.0


def test_the_mean_over_groups_is_that_over_rows():
    values, group = np.array([1.0, 2.0, 6.0, 3.0]), np.array([7, 7, 2, 7])
    assert sums_of_groups(values, group, 10.0).mean() == pytest.approx(10.0 * values.mean())


def test_published_figures_and_gains():
    paper = Published(("a", "b"), {"one": (1.0, 2.0), "other": (3.04, 2.5), "short": (1.0,)})
    assert paper.of("short") == {"a": 1.0}
    assert paper.of("neither") is None
    assert paper.gain("other", "one", ["b"]) == {"a": 2.0, "b": 0.5, "b_relative": 25.0}
    assert paper.gain("other", "neither") is None


def test_calls_take_turns_and_the_first_are_not_counted():
    order: list[tuple[str, int]] = []
    calls = {name: lambda value, name=name: order.append((name, value)) for name in ("a", "b")}
    taken = by_turns(calls, range(3), warm_up=1)
    assert order == [(name, value) for value in range(3) for name in ("a", "b")]
    assert [len(each) for each in taken.values()] == [2, 2]


def test_quantiles_are_in_milliseconds():
    assert milliseconds([0.001, 0.002, 0.003]) == pytest.approx(2.0)
    assert all(one >= 0.0 for one in each_seconds(abs, [1, 2]))


def test_a_new_process_prints_numbers():
    assert numbers_printed("import sys; print(int(sys.argv[1]) + 1, 0.5)", 2) == [3.0, 0.5]


def test_rows_are_scaled_by_the_first_ones():
    X = np.array([[0.0, 5.0], [2.0, 5.0]])
    rows, others = standardized(X, np.array([[4.0, 6.0]]))
    assert rows.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert others.tolist() == [[3.0, 1.0]]


def test_log_odds_and_back():
    p = np.array([0.1, 0.5, 0.9])
    assert sigmoid(logit(p)) == pytest.approx(p)
    assert np.isfinite(logit(np.array([0.0, 1.0]), 1e-6)).all()


def test_no_row_is_scored_by_a_model_that_saw_it():
    X = np.arange(10.0)[:, None]

    def fit(rows, Y):
        seen = set(rows[:, 0].tolist())
        return lambda new: np.array([[float(one in seen)] for one in new[:, 0].tolist()])

    assert out_of_fold(fit, X, np.zeros((10, 1))).max() == 0.0
    assert sorted(np.concatenate([test for _, test in folds(10)]).tolist()) == list(range(10))
