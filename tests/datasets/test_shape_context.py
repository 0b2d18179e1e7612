import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise import datasets
from slatewise.datasets import edge_features, shape_context, shear_points
from slatewise.datasets.records import MatchingSet


def slow_context(points, others):
    """The definition, a pair at a time."""
    distances = [[np.hypot(*(there - here)) for there in others] for here in points]
    unit = np.mean(distances)
    counts = np.zeros((len(points), 5, 12))
    for i, here in enumerate(points):
        for j, there in enumerate(others):
            ring = sum(distances[i][j] / unit >= end for end in (1 / 8, 1 / 4, 1 / 2, 1, 2))
            if distances[i][j] > 0 and ring < 5:
                angle = np.arctan2(there[1] - here[1], there[0] - here[0]) % (2 * np.pi)
                counts[i, ring, min(int(angle // (np.pi / 6)), 11)] += 1
    return counts.reshape(len(points), 60)


@given(st.integers(0, 1000), st.integers(2, 12), st.booleans())
def test_counts_equal_the_definition(seed, n, apart):
    rng = np.random.default_rng(seed)
    points, others = rng.normal(size=(n, 2)), rng.normal(size=(7, 2))
    found = shape_context(points, others) if apart else shape_context(points)
    np.testing.assert_array_equal(found, slow_context(points, others if apart else points))


def test_place_and_size_do_not_matter():
    points = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_array_equal(shape_context(points), shape_context(4.0 * points + [3.0, -2.0]))


def test_house_equals_its_source(shared_data):
    """The source looks from the other points towards each point: half a turn."""
    house = datasets.load("cmu_house", MatchingSet, folder=shared_data)
    found = np.array([shape_context(points) for points in house.points]).reshape(-1, 5, 12)
    given_counts = house.shape_context.reshape(-1, 5, 12)
    agree = np.roll(found, 6, axis=2) == given_counts
    assert agree.mean() > 0.99  # points on the border of two cells fall to either side


def test_edges_are_squared_differences():
    rng = np.random.default_rng(1)
    source, target = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    edges = edge_features(source, target)
    for i in range(3):
        for j in range(5):
            np.testing.assert_array_equal(edges[i, j], (source[i] - target[j]) ** 2)


def test_sheared_points_are_those_of_the_outline():
    outline = np.random.default_rng(2).normal(size=(30, 2))
    images = shear_points(outline, 40, 6, largest_shear=0.4, random_state=3)
    assert images.shape == (40, 6, 2)
    plain = shear_points(outline, 1, 6, largest_shear=0.0, random_state=3)[0]
    assert all((plain[i] == outline).all(axis=1).any() for i in range(6))
    for points in images:
        shear = np.linalg.lstsq(plain, points, rcond=None)[0].T
        np.testing.assert_allclose(np.diag(shear), 1.0, atol=1e-10)
        factors = np.abs(shear[[0, 1], [1, 0]])
        assert factors.min() < 1e-10
        assert factors.max() <= 0.4 + 1e-10
    np.testing.assert_array_equal(images, shear_points(outline, 40, 6, largest_shear=0.4, random_state=3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shape_context([[1.0, 2.0, 3.0]]), "points: expected finite points of a plane"),
        (lambda: shape_context([[1.0, np.nan]]), "points: expected finite"),
        (lambda: shape_context([[1.0, 2.0]], [[1.0]]), "others: expected finite"),
        (lambda: shape_context([[1.0, 2.0], [1.0, 2.0]]), "points: expected at least two different points"),
        (lambda: edge_features([[1.0]], [[1.0, 2.0]]), "source, target: expected rows of as many features"),
        (lambda: shear_points([[0, 0], [1, 1]], 2, 3, largest_shear=1.0), "outline: expected at least 3 points"),
        (lambda: shear_points([[0, 0], [1, 1]], 2, 2, largest_shear=-1.0), "largest_shear: expected a number >= 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
