"""Agreement against its definitions, pair by pair and slowly, and against published examples."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slatewise.labeling import Agreement, Item, Project, cohen_kappa, krippendorff_alpha


def slow_alpha(rows):
    """1 - D_o / D_e from lists of pairable values, by fractions."""
    units = [[value for value in unit if value >= 0] for unit in zip(*rows, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    n = len(values)
    observed = sum(Fraction(sum(a != b for a, b in permutations(unit, 2)), len(unit) - 1) for unit in units)
    expected = Fraction(sum(a != b for a, b in permutations(values, 2)))
    return None if not expected else float(1 - (observed / n) / (expected / (n * (n - 1))))


def slow_kappa(one, other):
    both = [(a, b) for a, b in zip(one, other, strict=True) if a >= 0 and b >= 0]
    if not both:
        return None
    n = len(both)
    agree = Fraction(sum(a == b for a, b in both), n)
    chance = Fraction(sum(a == b for (a, _) in both for (_, b) in both), n * n)
    return None if chance == 1 else float((agree - chance) / (1 - chance))


def published(text):
    return [[-1 if value == "." else int(value) for value in row.split()] for row in text.strip().splitlines()]


FOUR_OBSERVERS = published(
    """
    1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 .
    """
)
THREE_CODERS = published(
    """
    . . . . . 3 4 1 2 1 1 3 3 . 3
    1 . 2 1 3 3 4 3 . . . . . . .
    . . 2 1 3 4 4 . 2 1 1 3 3 . 4
    """
)


@pytest.mark.parametrize(("rows", "given"), [(FOUR_OBSERVERS, 0.743), (THREE_CODERS, 0.691)])
def test_published_alphas(rows, given):
    assert round(slow_alpha(rows), 3) == given
    assert krippendorff_alpha(rows) == pytest.approx(slow_alpha(rows))


RATINGS = arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(0, 6)), elements=st.integers(-1, 2))


@given(RATINGS)
@settings(max_examples=100)
def test_alpha_is_its_definition(rows):
    expected = slow_alpha(rows.tolist()) if rows.size else None
    assert krippendorff_alpha(rows) == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


@given(RATINGS)
@settings(max_examples=100)
def test_kappa_is_its_definition(rows):
    one, other = rows[0], rows[-1]
    expected = slow_kappa(one.tolist(), other.tolist())
    assert cohen_kappa(one, other) == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


def test_what_is_no_answer_is_refused():
    with pytest.raises(ValueError, match="answers: expected whole numbers"):
        krippendorff_alpha([[0.5, 1.0]])
    with pytest.raises(ValueError, match="other: expected as many"):
        cohen_kappa([1], [1, 0])


@pytest.fixture(scope="module")
def given():
    """(people, items, labels): 1, 0 or -1."""
    return np.random.default_rng(0).integers(-1, 2, size=(3, 4, 3))


@pytest.fixture(scope="module")
def project(tmp_path_factory, given):
    items = [Item(f"text {number}", "text", "Waves.") for number in range(4)]
    file = tmp_path_factory.mktemp("agreement") / "tags.db"
    with Project.create(file, ["sea", "sky", "tree"], items) as made:
        people = [made.people.number(name) for name in ("Ann", "Bob", "Cid", "Rex")]
        for (who, item, label), value in np.ndenumerate(given):
            made.answer(item, label, int(value), people[who])
        yield made


def test_a_project_is_measured_as_its_answers_are(project, given):
    found = Agreement.of(project)
    by_unit = given.reshape(3, -1).tolist()
    assert found.alpha == pytest.approx(slow_alpha(by_unit))
    for label in range(3):
        expected = slow_alpha(given[:, :, label].tolist())
        assert found.alpha_by_label[label] == pytest.approx(np.nan if expected is None else expected, nan_ok=True)
    assert [pair.annotators for pair in found.pairs] == [(1, 2), (1, 3), (2, 3)]
    for pair, (one, other) in zip(found.pairs, combinations(by_unit, 2), strict=True):
        assert pair.kappa == pytest.approx(slow_kappa(one, other))
        both = [(a, b) for a, b in zip(one, other, strict=True) if a >= 0 and b >= 0]
        assert pair.n_common == len(both)
        assert pair.same == pytest.approx(sum(a == b for a, b in both) / len(both))


def test_the_review_queue_is_what_they_dispute(project, given):
    queue = Agreement.of(project).disputes
    disputed = [(i, j) for i in range(4) for j in range(3) if {0, 1} <= set(given[:, i, j].tolist())]
    assert [(dispute.item, dispute.label) for dispute in queue] == disputed
    for dispute in queue:
        here = given[:, dispute.item, dispute.label]
        assert dispute.yes == tuple((np.flatnonzero(here == 1) + 1).tolist())
        assert dispute.no == tuple((np.flatnonzero(here == 0) + 1).tolist())
    first = queue[0]
    project.answer(first.item, first.label, 1, 4, how="reviewed")
    after = Agreement.of(project)
    assert after.disputes == queue[1:]
    assert after.alpha == pytest.approx(slow_alpha(given.reshape(3, -1).tolist()))  # answers of reviewers do not count
    project.undo(4)
