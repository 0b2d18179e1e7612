import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slatewise.cstar.core_labels import greedy_core, residual_label
from slatewise.data.labels import merge_rows


def information(Y, core, other, weight=None):
    """I(z_other ; z_core) by counting every cell that occurs, with half a count more in each."""
    cells = {}
    for row, times in zip(Y, np.ones(len(Y)) if weight is None else weight, strict=True):
        for value in (0, 1):
            cells.setdefault((tuple(row[core]), value), 0.5)
        cells[tuple(row[core]), row[other]] += times
    total = sum(cells.values())
    value = 0.0
    for (setting, label), count in cells.items():
        joint = count / total
        left = sum(cells[setting, other] for other in (0, 1)) / total
        right = sum(count for (_, other), count in cells.items() if other == label) / total
        value += joint * np.log(joint / (left * right))
    return value


@given(st.integers(0, 10_000))
def test_each_step_takes_the_most_informative_label(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((25, 5)) < rng.random(5)).astype(float)
    core = greedy_core(Y, 3)
    assert len(set(core)) == 3
    for size in range(3):
        before = core[:size].tolist()
        gains = {
            c: sum(information(Y, [*before, c], i) for i in range(5) if i not in (*before, c))
            for c in range(5)
            if c not in before
        }
        assert gains[core[size]] >= max(gains.values()) - 1e-9


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    Y = (rng.random((20, 6)) < 0.4).astype(float)
    weight = rng.integers(1, 4, 20).astype(float)
    repeated = np.repeat(Y, weight.astype(int), axis=0)
    np.testing.assert_array_equal(greedy_core(Y, 3, weight), greedy_core(repeated, 3))


@given(st.integers(0, 10_000))
def test_what_large_weights_round_away_is_never_less_than_nothing(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((25, 4)) < rng.random(4)).astype(float)
    weight = 1e17 * rng.random(25)
    gains = [sum(information(Y, [c], i, weight) for i in range(4) if i != c) for c in range(4)]
    core = greedy_core(Y, 3, weight)
    assert len(set(core)) == 3
    assert gains[core[0]] >= max(gains) - 1e-9


def test_many_settings_take_little_room():
    Y = (np.random.default_rng(1).random((4000, 13)) < 0.5).astype(float)
    tracemalloc.start()
    core = greedy_core(Y, 12)  # some 1500 settings at the end
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(core)) == 12
    assert peak < 8 << 20


def test_equal_rows_are_joined():
    X = np.array([[0.0], [1.0], [0.0], [-0.0]])
    Y = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    rows, labels, weight = merge_rows(X, Y, np.array([1.0, 2.0, 3.0, 4.0]))
    found = {(float(x[0]), *map(int, y)): w for x, y, w in zip(rows, labels, weight, strict=True)}
    assert found == {(0.0, 1, 0): 4.0, (1.0, 1, 0): 2.0, (0.0, 0, 1): 4.0}


def test_a_residual_label_has_the_largest_excess():
    rng = np.random.default_rng(7)
    Y, chance = (rng.random((60, 5)) < 0.4).astype(float), rng.uniform(0.1, 0.7, (60, 5))
    Y[:, 3] = Y[:, 1]
    weight = rng.random(60)
    gains = np.zeros(5)
    for i in range(5):
        for j in set(range(5)) - {i}:
            total = sum(w * (y[i] - p[i]) * (y[j] - p[j]) for w, y, p in zip(weight, Y, chance, strict=True))
            spread = sum(w * p[i] * (1 - p[i]) * p[j] * (1 - p[j]) for w, p in zip(weight, chance, strict=True))
            gains[i] += max(total**2 / max(spread, 1.0) - 1.0, 0.0)
    first = residual_label(Y, chance, np.zeros(0, dtype=np.int64), weight)
    assert first == np.argmax(gains)
    assert residual_label(Y, chance, np.array([first]), weight) == np.argsort(-gains)[1]
