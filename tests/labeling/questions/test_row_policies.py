"""Which row next, against enumeration."""

import numpy as np
import pytest
from tests.cstar.inference.test_any_size import entropy
from tests.labeling.questions.test_stopping import ROWS, SETS, N, situations

from slatewise.labeling import (
    FileOrder,
    GivenLogOdds,
    GivenScores,
    LabelRows,
    LeastSure,
    MostGain,
    Situation,
    StoppingRule,
    next_rows,
    simulate_stopping,
)
from slatewise.labeling.questions.policies import cost_to_stop


@pytest.mark.parametrize("seed", range(5))
def test_worth_of_rows_by_enumeration(seed: int) -> None:
    _, rows, answered, known, chance = situations(seed)
    situation = Situation(rows, known, rows.margins(known), ~answered)
    np.testing.assert_array_equal(FileOrder().worth(situation), np.zeros(ROWS))
    np.testing.assert_allclose(LeastSure().worth(situation), entropy(chance), atol=1e-10)
    # Of all answers, the best expects this many wrong labels; those with an answer cannot be put right.
    seen = SETS[:, None, :] != SETS[None, :, :]
    fewest = np.array([(chance[row] @ seen @ ~answered[row]).min() for row in range(ROWS)])
    questions = cost_to_stop(situation.margins, situation.askable, 0.95, np.ones(N))
    np.testing.assert_allclose(MostGain().worth(situation) * questions, fewest, atol=1e-10)


@pytest.mark.parametrize("propose", [None, 0.5])
def test_independent_labels_take_the_predicted_number_of_questions(propose: float | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(-1.5, 2.0, size=(300, 8))
    Y = rng.integers(0, 2, X.shape)
    rule = StoppingRule(0.9, propose)
    rows = LabelRows.of(GivenLogOdds(8), X, None)
    hidden = rule.look(rows, np.full(X.shape, -1)).hidden
    result = simulate_stopping(GivenLogOdds(8), X, Y, rule)
    cost = cost_to_stop(X, hidden, 0.9, np.ones(8))
    np.testing.assert_array_equal(cost, np.maximum(result.questions, 1))


def test_rows_that_may_stop_are_left_out_and_ties_go_by_the_file() -> None:
    _, rows, answered, known, _ = situations(2)
    rule = StoppingRule(0.7)
    busy = np.flatnonzero(~rule.stop(rows, known, answered))
    assert 0 < len(busy) < ROWS
    np.testing.assert_array_equal(next_rows(rows, known, 100, answered, rule, FileOrder()), busy)
    for policy in (LeastSure(), MostGain(rule), None):
        found = next_rows(rows, known, 100, answered, rule, policy)
        assert sorted(found) == list(busy)
        np.testing.assert_array_equal(next_rows(rows, known, 3, answered, rule, policy), found[:3])
    assert len(next_rows(rows, np.zeros((ROWS, N)), 5)) == 0


def test_a_visit_is_worth_more_where_it_costs_less() -> None:
    rows = LabelRows.of(GivenLogOdds(2), [[0.0, -9.0], [-9.0, 0.0]], None)
    unknown = np.full((2, 2), -1)
    assert next_rows(rows, unknown, policy=MostGain(costs=[5.0, 1.0])).tolist() == [1]
    assert next_rows(rows, unknown, policy=MostGain(costs=[1.0, 5.0])).tolist() == [0]


def test_what_is_refused() -> None:
    rows = LabelRows.of(GivenLogOdds(2), np.zeros((3, 2)), None)
    with pytest.raises(ValueError, match="n: expected a whole number >= 1, found 0"):
        next_rows(rows, np.full((3, 2), -1), 0)
    with pytest.raises(ValueError, match=r"costs: expected one number per label, shape \(2,\)"):
        next_rows(rows, np.full((3, 2), -1), policy=MostGain(costs=[1.0, 2.0, 3.0]))
    counted = LabelRows.of(GivenScores(2), np.zeros((3, 2)), 1)
    with pytest.raises(ValueError, match="k: expected None"):
        next_rows(counted, np.full((3, 2), -1))
