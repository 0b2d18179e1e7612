"""Keep the best few of many, in no memory but their own: a heap whose root is the worst that is kept.

The better of two has the larger score, or the same score and the smaller number.
"""

from __future__ import annotations

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def is_worse(score: float, number: int, other_score: float, other_number: int) -> bool:
    """Tell whether the first is the worse one."""
    return score < other_score or (score == other_score and number > other_number)


@kernel
def offer(scores: Floats, numbers: Ints, size: int, score: float, number: int) -> int:
    """Put one more into a heap of limited size, or leave it out; return the size of the heap."""
    if size == len(scores):
        if size and is_worse(scores[0], numbers[0], score, number):
            _sink(scores, numbers, size, score, number)
        return size
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if not is_worse(score, number, scores[parent], numbers[parent]):
            break
        scores[place], numbers[place] = scores[parent], numbers[parent]
        place = parent
    scores[place], numbers[place] = score, number
    return size + 1


@kernel
def best_first(scores: Floats, numbers: Ints, size: int) -> None:
    """Make of a heap a row, best first."""
    for last in range(size - 1, 0, -1):
        score, number = scores[last], numbers[last]
        scores[last], numbers[last] = scores[0], numbers[0]
        _sink(scores, numbers, last, score, number)


@kernel
def _sink(scores: Floats, numbers: Ints, size: int, score: float, number: int) -> None:
    """Put something in the place of the root, and the worst of what there is then at the root."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and is_worse(scores[child + 1], numbers[child + 1], scores[child], numbers[child]):
            child += 1
        if not is_worse(scores[child], numbers[child], score, number):
            break
        scores[place], numbers[place] = scores[child], numbers[child]
        place = child
    scores[place], numbers[place] = score, number
