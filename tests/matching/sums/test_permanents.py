"""Sums over matchings against every matching, against each other, and against SciPy."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from tests.matchings import all_matchings, log_sum_and_marginals, random_weights
from tests.plain_python import compiled_and_plain

from slatewise.inference import permanent, tied_permanent, with_unmatched
from slatewise.matching.sums import exact
from slatewise.matching.sums.exact import METHODS, by_candidates, log_permanents, most_sets, plan, scale

SQUARE = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)]
WIDE = [(1, 2), (1, 5), (2, 3), (3, 6), (4, 7), (5, 8), (7, 8)]


def methods_for(n_rows, n_columns):
    square = ["subsets"] if n_rows == n_columns else []
    return [*square, *(["glynn"] if n_rows == n_columns and n_rows > 5 else []), "rows", "candidates"]


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("shape", SQUARE + WIDE, ids=str)
def test_equal_to_every_matching(shape, spread):
    rng = np.random.default_rng(0)
    w = np.concatenate([random_weights(rng, 2, *shape, spread), random_weights(rng, 2, *shape, spread, 0.4)])
    truth = [log_sum_and_marginals(matrix) for matrix in w]
    for method in methods_for(*shape):
        result = permanent(w, method)
        assert result.exact
        for number, (log_z, marginals) in enumerate(truth):
            off = max(abs(result.log_z[number] - log_z), np.abs(result.marginals[number] - marginals).max())
            assert off <= 1e-11, method
            assert off <= result.error[number] + 1e-13, method  # the judge rounds too


@pytest.mark.parametrize("forbidden", range(0, 512, 7))
def test_threes_with_any_edges_forbidden(forbidden):
    w = np.random.default_rng(forbidden).normal(size=(3, 3))
    w.flat[[k for k in range(9) if forbidden >> k & 1]] = -np.inf
    if np.isneginf(w[np.arange(3), all_matchings(3, 3)].sum(axis=1)).all():
        with pytest.raises(ValueError, match="found none in matrix 0"):
            permanent(w)
        return
    log_z, marginals = log_sum_and_marginals(w)
    result = permanent(w)
    assert result.log_z == pytest.approx(log_z, abs=1e-14)
    np.testing.assert_allclose(result.marginals, marginals, atol=1e-14)


@pytest.mark.parametrize("size", [1e4, 1e8])
def test_rounding_of_large_threes_is_admitted(size):
    """A large number a row and a column changes nothing in the marginals but their rounding."""
    rng = np.random.default_rng(11)
    w, a, b = rng.normal(size=(200, 3, 3)), *(size * rng.normal(size=(2, 200, 3)))
    before, after = permanent(w), permanent(w + a[:, :, None] + b[:, None, :])
    off = np.abs(after.marginals - before.marginals).max(axis=(1, 2))
    assert (off <= after.error).all()
    assert (after.error <= 1e-13 * size).all()


def test_a_three_without_a_matching_is_named_in_a_large_batch():
    w = np.zeros((9000, 3, 3))
    w[7001, 2] = -np.inf
    with pytest.raises(ValueError, match="found none in matrix 7001"):
        permanent(w)


@pytest.mark.parametrize("size", [9, 12, 13, 16, 17, 19])
@pytest.mark.parametrize("spread", [1.0, 20.0, 300.0])
def test_subsets_and_glynn_agree(size, spread):
    w = random_weights(np.random.default_rng(size), 1, size, size, spread, 0.2)
    positive, signed = permanent(w, "subsets"), permanent(w, "glynn")
    np.testing.assert_allclose(signed.log_z, positive.log_z, atol=1e-10, rtol=0)
    np.testing.assert_allclose(signed.marginals, positive.marginals, atol=1e-10, rtol=0)


def test_subsets_and_glynn_agree_on_22_rows():
    w = np.random.default_rng(0).normal(size=(22, 22))
    positive, signed = permanent(w, "subsets"), permanent(w, "glynn")
    assert abs(signed.log_z - positive.log_z) <= 1e-10
    assert np.abs(signed.marginals - positive.marginals).max() <= 1e-10
    assert signed.method == "glynn"
    assert signed.error <= exact.MOST_ROUNDING  # it did not fall back


@pytest.mark.parametrize("weights", [np.ones((14, 14)), np.eye(14) + 1e-9, np.tri(14) + np.eye(14, k=1)])
def test_glynn_on_matrices_with_known_extremes(weights):
    """All equal, nearly a permutation, and triangular with one more diagonal: rounding stays below what is said."""
    w = np.log(np.maximum(weights, 1e-300))
    positive, signed = permanent(w, "subsets"), permanent(w, "glynn")
    assert abs(signed.log_z - positive.log_z) <= signed.error
    assert np.abs(signed.marginals - positive.marginals).max() <= signed.error


def test_cancelling_matrices_fall_back_to_the_subsets(monkeypatch):
    w = np.random.default_rng(0).normal(size=(3, 9, 9))
    monkeypatch.setattr(exact, "MOST_ROUNDING", 0.0)
    np.testing.assert_array_equal(permanent(w, "glynn").marginals, permanent(w, "subsets").marginals)


@pytest.mark.parametrize("shape", [(14, 14), (9, 14), (6, 40)], ids=str)
def test_rows_columns_and_matched_mass(shape):
    result = permanent(random_weights(np.random.default_rng(1), 3, *shape, 10.0))
    np.testing.assert_allclose(result.marginals.sum(axis=2), 1.0, atol=1e-12)
    used = result.marginals.sum(axis=1)
    assert used.max() <= 1.0 + 1e-12
    np.testing.assert_allclose(used.sum(axis=1), shape[0], atol=1e-11)


@pytest.mark.parametrize("shape", [(4, 4), (10, 10), (3, 7), (9, 12)], ids=str)
def test_marginals_are_the_gradient(shape):
    rng, step = np.random.default_rng(2), 1e-5
    w = rng.normal(size=shape)
    marginals = permanent(w).marginals
    for _ in range(8):
        direction = rng.normal(size=shape)
        ahead, back = permanent(w + step * direction).log_z, permanent(w - step * direction).log_z
        assert (ahead - back) / (2 * step) == pytest.approx(np.sum(direction * marginals), abs=1e-7)


def test_whole_numbers_summed_without_rounding():
    """Ryser's inclusion and exclusion over columns, in Python's integers."""
    size = 13
    weights = [[1 + (7 * i + 3 * j * j) % 11 for j in range(size)] for i in range(size)]
    exact = 0
    for subset in range(1, 1 << size):
        columns = [j for j in range(size) if subset >> j & 1]
        exact += (-1) ** (size - len(columns)) * math.prod(sum(row[j] for j in columns) for row in weights)
    result = permanent(np.log(weights))
    assert result.log_z == pytest.approx(math.log(exact), abs=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 10), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_symmetries(n_rows, more, seed):
    """Permuting rows and columns permutes the marginals; a constant a row moves log Z only, one a column if square."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(n_rows, n_rows + more))
    rows, columns = rng.permutation(n_rows), rng.permutation(n_rows + more)
    a, b = rng.normal(size=n_rows), rng.normal(size=n_rows + more) * (more == 0)
    before, after = permanent(w), permanent((w + a[:, None] + b)[rows][:, columns])
    assert after.log_z == pytest.approx(before.log_z + a.sum() + b.sum(), abs=1e-10)
    np.testing.assert_allclose(after.marginals, before.marginals[rows][:, columns], atol=1e-11)


@pytest.mark.parametrize("shape", [(5000, 3, 3), (40, 11, 11), (1, 17, 17), (30, 7, 12), (9, 20, 20)], ids=str)
def test_threads_do_not_change_the_bits(shape):
    w = np.random.default_rng(4).normal(size=shape)
    if shape[0] == 9:
        w = np.where(np.abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 2, w, -np.inf)
    one, two = permanent(w, n_jobs=1), permanent(w, n_jobs=2)
    assert one.log_z.tobytes() == two.log_z.tobytes()
    assert one.marginals.tobytes() == two.marginals.tobytes()


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 5), (7, 1, 1), (2, 9, 9), (1, 2, 4), (1, 17, 17)], ids=str)
def test_weights_are_left_as_they_were(shape):
    w = np.random.default_rng(5).normal(size=shape)
    before = w.copy()
    for method in ("auto", "candidates", "bethe"):
        permanent(w, method)
    np.testing.assert_array_equal(w, before)


JIT_OFF = """
import numpy as np
from slatewise.inference import permanent, sample_matchings, tied_log_sum
rng = np.random.default_rng(0)
cases = ((9, 2, 2), "auto"), ((2, 3, 3), "auto"), ((2, 3, 3), "bethe"), ((1, 7, 7), "glynn"), ((1, 2, 3), "rows")
for shape, method in cases:
    print(permanent(rng.normal(size=shape), method, n_jobs=1).log_z.tolist())
print(tied_log_sum(rng.normal(size=7), [3, 2, 1, 1], [3.0, 2.0, 1.0, 0.0]).marginals.ravel().tolist())
for shape, method in (((4, 4), "tables"), ((3, 3), "huber-law"), ((2, 3), "tables"), ((2, 3), "chain")):
    print(sample_matchings(rng.normal(size=shape), 4, 0, method).matchings.ravel().tolist())
"""


def test_with_the_jit_off():
    """The kernels are plain Python underneath."""
    outputs = [text.splitlines() for text in compiled_and_plain(JIT_OFF)]
    assert len(outputs[0]) == 10
    for compiled, plain in zip(*outputs, strict=True):
        np.testing.assert_allclose(json.loads(compiled), json.loads(plain), atol=1e-12)


def test_one_matrix_gives_numbers():
    result = permanent(np.log([[1.0, 3.0], [1.0, 1.0]]))
    assert isinstance(result.log_z, float)
    assert isinstance(result.error, float)
    assert result.marginals.shape == (2, 2)
    assert permanent(np.zeros((0, 3, 3))).log_z.shape == (0,)


def test_the_seam_of_learners():
    w = np.random.default_rng(6).normal(size=(3, 4, 4))
    log_z, marginals = log_permanents(w)
    np.testing.assert_array_equal(log_z, permanent(w).log_z)
    np.testing.assert_array_equal(marginals, permanent(w).marginals)


def band(size, width):
    w = np.random.default_rng(size).normal(size=(size, size))
    return np.where(np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= width, w, -np.inf)


def test_auto_chooses_by_size_and_candidates():
    rng = np.random.default_rng(7)
    assert permanent(rng.normal(size=(8, 8))).method == "subsets"
    assert permanent(rng.normal(size=(9, 9))).method == "glynn"
    assert permanent(rng.normal(size=(5, 9))).method == "rows"
    assert permanent(band(40, 3)).method == "candidates"
    bound = permanent(rng.normal(size=(40, 40)))
    assert (bound.method, bound.kind, bound.exact) == ("bethe", "bound", False)
    assert permanent(rng.normal(size=(22, 60))).method == "bethe"


@pytest.mark.parametrize("size", [30, 100])
def test_tridiagonal_permanents_follow_their_recurrence(size):
    """p_n = a_n p_{n-1} + b_n c_n p_{n-2}, beyond any table; shuffling rows and columns changes nothing."""
    w = band(size, 1)
    before, now = 0.0, w[0, 0]
    for k in range(1, size):
        before, now = now, np.logaddexp(w[k, k] + now, w[k, k - 1] + w[k - 1, k] + before)
    rng = np.random.default_rng(0)
    result = permanent(w[rng.permutation(size)][:, rng.permutation(size)])
    assert result.method == "candidates"
    assert result.log_z == pytest.approx(now, abs=1e-10)
    np.testing.assert_allclose(result.marginals.sum(axis=0), 1.0, atol=1e-12)


def test_many_open_columns_are_refused():
    wide = random_weights(np.random.default_rng(0), 1, 3, 70, 1.0)
    assert most_sets(plan(wide[0] > -np.inf)) == np.inf
    with pytest.raises(ValueError, match=r"log_weights: expected at most 64 open columns, found more"):
        by_candidates(wide)


def test_too_many_reachable_sets_are_refused(monkeypatch):
    monkeypatch.setattr("slatewise.matching.sums.exact.MOST_STEPS", 10)
    with pytest.raises(ValueError, match="log_weights: expected few candidates per row, found more than 10 steps"):
        permanent(np.zeros((6, 6)), "candidates")


def test_private_columns_leave_rows_unmatched():
    """Against every partial matching."""
    rng = np.random.default_rng(8)
    w, alone = rng.normal(size=(3, 4)), rng.normal(size=3)
    z, marginals = 0.0, np.zeros((3, 5))
    for choice in np.ndindex(5, 5, 5):  # column 4: unmatched
        taken = [j for j in choice if j < 4]
        if len(set(taken)) == len(taken):
            weight = np.exp(sum(w[i, j] if j < 4 else alone[i] for i, j in enumerate(choice)))
            z += weight
            marginals[np.arange(3), choice] += weight
    result = permanent(with_unmatched(w, alone))
    assert result.log_z == pytest.approx(np.log(z), abs=1e-12)
    np.testing.assert_allclose(result.marginals[:, :4], marginals[:, :4] / z, atol=1e-12)
    np.testing.assert_allclose(np.diag(result.marginals[:, 4:]), marginals[:, 4] / z, atol=1e-12)
    assert with_unmatched(np.zeros((2, 3, 4)), np.zeros((2, 3))).shape == (2, 3, 7)


def test_tied_ratings_are_block_permanents():
    rng = np.random.default_rng(9)
    w, rows, columns = rng.normal(size=(7, 7)), np.array([2, 0, 1, 1, 0, 2, 2]), np.array([2, 2, 2, 1, 1, 0, 0])
    log_z, marginals = log_sum_and_marginals(np.where(rows[:, None] == columns, w, -np.inf))
    result = tied_permanent(w, rows, columns)
    assert result.log_z == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(result.marginals, marginals, atol=1e-13)


def test_tied_ratings_of_large_blocks_are_bounds():
    result = tied_permanent(np.random.default_rng(0).normal(size=(30, 30)), [0] * 30, [0] * 30)
    assert result.kind == "bound"
    assert not result.exact


def test_a_dominant_term_far_below_the_diagonal_is_found():
    weights = np.full((8, 8), -np.inf)
    weights[np.arange(8), np.arange(8)] = 75.0
    weights[0, 0] = -746.0
    weights[np.arange(8), (np.arange(8) + 1) % 8] = -229.0 / 8
    expected = np.logaddexp(7 * 75.0 - 746.0, -229.0)
    assert permanent(weights, "subsets").log_z == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (9, 9), (3, 8)], ids=str)
def test_duals_are_those_of_the_best_assignment(shape):
    w = random_weights(np.random.default_rng(10), 5, *shape, 50.0, 0.3)
    scaled = scale(w)
    for number, matrix in enumerate(w):
        rows, columns = linear_sum_assignment(np.where(np.isneginf(matrix), -1e6, matrix), maximize=True)
        assert scaled.offset[number] == pytest.approx(matrix[rows, columns].sum(), abs=1e-9)
        assert scaled.weights[number].max() <= 1.0 + 1e-12
        np.testing.assert_allclose(scaled.weights[number][np.arange(shape[0]), scaled.best[number]], 1.0, atol=1e-12)
        assert (scaled.v >= -1e-12).all()
        assert set(scaled.best[number]) <= set(all_matchings(1, shape[1])[:, 0])


@pytest.mark.parametrize("size", [1e300, -1e300])
@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (10, 10), (3, 5)], ids=str)
def test_the_largest_weights_stay_in_range(shape, size):
    for method in ("auto", "candidates"):
        result = permanent(np.full(shape, size), method)
        assert result.log_z == pytest.approx(shape[0] * size, rel=1e-13)
        np.testing.assert_allclose(result.marginals, 1 / shape[1], atol=1e-13)


IMPOSSIBLE = np.zeros((2, 3, 3))
IMPOSSIBLE[1, :2, :2] = -np.inf


@pytest.mark.parametrize("method", ["auto", "subsets", "rows", "candidates", "bethe"])
def test_no_matching_is_an_error(method):
    message = "log_weights: expected a matching with finite weight, found none in matrix 1"
    with pytest.raises(ValueError, match=message):
        permanent(IMPOSSIBLE, method)


def test_no_matching_is_an_error_in_larger_matrices():
    w = np.zeros((2, 10, 10))
    w[1, 4] = -np.inf
    for method in METHODS:
        with pytest.raises(ValueError, match="found none in matrix 1"):
            permanent(w, method)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"log_weights: expected shape \(M, N\) or \(B, M, N\) with 1 <= M <= N, found \(2,\)"),
        (np.zeros((3, 2)), r"log_weights: expected shape .* found \(3, 2\)"),
        (np.zeros((0, 0)), r"log_weights: expected shape .* found \(0, 0\)"),
        ([[0.0, np.nan]], r"log_weights: expected finite numbers or -inf, found nan at \[0, 1\]"),
        ([[np.inf, 0.0]], r"log_weights: expected finite numbers or -inf, found inf at \[0, 0\]"),
        (np.full((3, 3), 1e308), r"log_weights: expected at most 1e\+300 in size, found 1e\+308 at \[0, 0\]"),
        ([[-np.inf, -1e301]], r"log_weights: expected at most 1e\+300 in size, found -1e\+301 at \[0, 1\]"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        permanent(weights)


@pytest.mark.parametrize(
    ("weights", "method", "message"),
    [
        (np.zeros((2, 2)), "ryser", "method: expected one of auto, subsets, .*, found 'ryser'"),
        (np.zeros((2, 3)), "glynn", r"method: expected 'rows', 'candidates' or 'bethe' for \(2, 3\), found 'glynn'"),
        (np.zeros((3, 3)), "glynn", "log_weights: expected more than 5 rows for method 'glynn', found 3"),
        (np.zeros((34, 34)), "glynn", "log_weights: expected at most 32 rows for method 'glynn', found 34"),
        (np.zeros((30, 30)), "subsets", "log_weights: expected tables of at most 2048 MiB .* needs 16384 MiB"),
        (np.zeros((30, 31)), "rows", "log_weights: expected tables of at most 2048 MiB .* found 30 x 31"),
    ],
)
def test_methods_that_do_not_fit(weights, method, message):
    with pytest.raises(ValueError, match=message):
        permanent(weights, method)


def test_bad_classes_and_private_columns():
    with pytest.raises(ValueError, match=r"row_classes: expected one class per row, 2, found shape \(3,\)"):
        tied_permanent(np.zeros((2, 2)), [0, 0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"column_classes: expected \[0, 0\] in some order, found \[0, 1\]"):
        tied_permanent(np.zeros((2, 2)), [0, 0], [0, 1])
    with pytest.raises(ValueError, match=r"log_weights: expected one square matrix, found shape \(1, 2, 3\)"):
        tied_permanent(np.zeros((2, 3)), [0, 0], [0, 0])
    with pytest.raises(ValueError, match=r"log_weights: expected shape \(.., M, N\), found \(2,\)"):
        with_unmatched([0.0, 1.0], 0.0)
