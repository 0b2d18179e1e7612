"""One AdaGrad step of the rows of a table, from a sparse sum of given vectors.

    g_r = sum over entries (r, c, v) of c * vectors[v]

A row is cut into segments of columns, each with its own accumulator, step and largest norm::

    a <- a + mean g^2,    w <- w + step * g / sqrt(a),    w <- w * min(1, norm / |w|)

Entries are put in the order of their rows first and keep their order inside a row, so one thread adds up a row and the
bits do not depend on how rows are shared out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import square

if TYPE_CHECKING:
    from slatewise.factors.tables import Entries, Moves


@kernel
def order_by_row(rows: Ints, ends: Ints, order: Ints, touched: Ints) -> int:
    """Sort entries by row: those of row r are at ``ends[r - 1]`` to ``ends[r]`` of ``order``, in the order they had.

    ``ends`` has a place per row of the table and comes in as zeros. ``touched`` gets the rows that have entries; return
    how many.
    """
    for row in rows:
        ends[row] += 1
    total, count = 0, 0
    for row in range(len(ends)):
        here = ends[row]
        ends[row] = total
        total += here
        if here:
            touched[count] = row
            count += 1
    for entry in range(len(rows)):
        row = rows[entry]
        order[ends[row]] = entry
        ends[row] += 1
    return count


@kernel
def update_rows(
    table: Singles,
    accumulators: Singles,
    moves: Moves,
    touched: Ints,
    ends: Ints,
    order: Ints,
    entries: Entries,
    vectors: Singles,
    gradient: Singles,
) -> None:
    """Step the ``touched`` rows; ``ends`` and ``order`` come from :func:`order_by_row`."""
    width, (starts, stops, steps, norms) = table.shape[1], moves
    for row in touched:
        for f in range(width):
            gradient[f] = 0.0
        begin = ends[row - 1] if row else 0
        for place in range(begin, ends[row]):
            entry = order[place]
            coefficient = entries.coefficients[entry]
            vector = vectors[entries.sources[entry]]
            for f in range(width):
                gradient[f] += coefficient * vector[f]
        values = table[row]
        for part in range(len(starts)):
            start, stop = starts[part], stops[part]
            size = square(gradient[start:stop])
            if steps[part] == 0.0 or size == 0.0:
                continue
            accumulators[row, part] += size / (stop - start)
            if accumulators[row, part] == 0.0:  # a gradient too small to have a square
                continue
            scale = np.float32(steps[part] / np.sqrt(accumulators[row, part]))
            for f in range(start, stop):
                values[f] += scale * gradient[f]
            length = np.sqrt(square(values[start:stop]))
            if length > norms[part]:
                shrink = np.float32(norms[part] / length)
                for f in range(start, stop):
                    values[f] *= shrink
