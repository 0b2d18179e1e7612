"""Results kept and given again: any deterministic learner goes on to the same bits, and calls nothing twice."""

import numpy as np
import pytest

from slatewise.core.numerics.bundle import Cuts, one_slack
from slatewise.core.numerics.lbfgs import minimize
from slatewise.core.numerics.replay import OracleLog, replay_context, replayed

TARGET = np.linspace(-2.0, 3.0, 7)


class Distances:
    """The sum of distances from a point, a little rounded, by its value or by a plane; counts its calls."""

    def __init__(self):
        self.n_params, self.calls = len(TARGET), 0

    def value_and_grad(self, w):
        self.calls += 1
        far = np.sqrt(0.01 + (w - TARGET) ** 2)
        return float(far.sum()), (w - TARGET) / far

    def cut(self, w):
        value, slope = self.value_and_grad(w)
        return value - float(slope @ w), slope


def by_cuts(objective):
    return one_slack(objective, Cuts(np.ones(len(TARGET))), 0.7, tol=1e-6)


def by_gradients(objective):
    return minimize(objective, 0.3, np.zeros(len(TARGET)), tol=1e-9)


@pytest.mark.parametrize("learn", [by_cuts, by_gradients])
def test_from_every_state_on_disk_a_learner_goes_on_to_the_same_bits(learn):
    plain, kept = Distances(), Distances()
    once, states = learn(plain), []
    with replay_context(OracleLog(None, states.append)):
        first = learn(kept)
    assert kept.calls == plain.calls > 15
    assert first.params.tobytes() == once.params.tobytes()
    for state in states:
        fresh = Distances()
        with replay_context(OracleLog(state, lambda _: None)):
            again = learn(fresh)
        assert again.params.tobytes() == once.params.tobytes()
        assert again.history == once.history
        assert fresh.calls == plain.calls - len(state["calls"])


def test_states_are_written_seldom_and_lose_little():
    states = []
    log = OracleLog(None, states.append)
    for number in range(1000):
        log.call(lambda w: (1.0, w), np.array([float(number)]))
    sizes = [len(state["calls"]) for state in states]
    assert sizes[:16] == list(range(1, 17))
    assert all(later - earlier <= earlier // 16 + 1 for earlier, later in zip(sizes, [*sizes[1:], 1000], strict=True))
    assert sum(sizes) < 18 * 1000


def test_another_call_forgets_the_rest():
    states = []
    log = OracleLog(None, states.append)
    for number in (1.0, 2.0, 3.0):
        log.call(lambda w: (10 * w[0], w), np.array([number]))
    again = OracleLog(states[-1], states.append)
    found, replaying = [], []
    for number in (1.0, 7.0, 3.0):
        found.append(again.call(lambda w: (-w[0], w), np.array([number]))[0])
        replaying.append(again.replaying)
    assert found == [10.0, -7.0, -3.0]
    assert replaying == [True, False, False]
    assert len(states[-1]["calls"]) == 3


def test_results_may_differ_in_length_and_are_the_callers_to_change():
    states = []
    log = OracleLog(None, states.append)
    for size in (2, 0, 3):
        _, vector = log.call(lambda w: (0.5, w + 1.0), np.zeros(size))
        vector[:] = 9.0
    again = OracleLog(states[-1], states.append)
    for size in (2, 0, 3):
        value, vector = again.call(lambda w: (np.nan, w), np.zeros(size))
        assert (value, vector.tolist()) == (0.5, [1.0] * size)


def test_a_fit_inside_a_fit_keeps_its_own():
    states = []
    with replay_context(OracleLog(None, states.append)), replay_context(None):
        assert replayed(abs_of) is abs_of
    assert replayed(abs_of) is abs_of
    assert not states


def abs_of(w):
    return float(np.abs(w).sum()), np.sign(w)
