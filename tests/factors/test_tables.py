import numpy as np

from slatewise.core.running.executor import Executor
from slatewise.factors.tables import Entries, Segment, Table, step_rows


def test_a_gradient_too_small_to_have_a_square_moves_nothing():
    table = Table.zeros(2, 16, (Segment(0, 3, 0.3, 1.0), Segment(3, 4, 0.2)))
    entries = Entries(np.array([0, 1]), np.ones(2, dtype=np.float32), np.array([0, 1]))
    vectors = np.zeros((2, 16), dtype=np.float32)
    vectors[0, 0], vectors[1, :4] = 3e-23, 1.0  # its square is the least above 0, the mean of three is none
    step_rows(table, entries, vectors, Executor(1))
    assert not table.values[0].any()
    np.testing.assert_allclose(table.values[1, :4], [0.3, 0.3, 0.3, 0.2], rtol=1e-6)
