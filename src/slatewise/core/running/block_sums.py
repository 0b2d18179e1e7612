"""One sum over blocks of data, added in the shape of one tree: the bits do not depend on which worker has which block.

    sum = part(point, block_0) + part(point, block_1) + ... ,      point = begin(shared, parameters)

Blocks come from the data alone. Neighbors are added first, then neighboring pairs, then pairs of pairs: blocks 2i and
2i + 1, sums of two 2i and 2i + 1, and so on; what is left over at the right end is added last. A run of blocks is a few
whole subtrees, so a worker with a run returns one sum per subtree, and the driver adds these. Up to three blocks that
is the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Shared = TypeVar("Shared")
Parameters = TypeVar("Parameters")
Point = TypeVar("Point")
Block = TypeVar("Block")
Result = TypeVar("Result")
ValueAndSlope: TypeAlias = tuple[float, NDArray[np.float64]]


@dataclass(frozen=True)
class BlockSum(Generic[Shared, Parameters, Point, Block, Result]):
    """What is added up: three functions of a module, so that another process can import them by name."""

    begin: Callable[[Shared, Parameters], Point]
    """Make of the parameters what every block needs, once a round."""
    part: Callable[[Point, Block], Result]
    add: Callable[[Result, Result], Result]

    def __post_init__(self) -> None:
        for function in (self.begin, self.part, self.add):
            require_of_module(function)


class PlacedBlocks(Protocol[Shared, Block]):
    """Blocks that stay where they are added up, with the data that all of them share."""

    def sum(self, what: BlockSum[Shared, Parameters, Any, Block, Result], parameters: Parameters) -> Result:
        """Add up all blocks at some parameters."""
        ...


@dataclass(frozen=True, eq=False)
class BlockObjective:
    """A risk as a sum over placed blocks, which learners minimize by its cuts or by its gradient."""

    held: PlacedBlocks[Any, Any]
    what: BlockSum[Any, NDArray[np.float64], Any, Any, ValueAndSlope]
    n_params: int
    """Length of the parameter vector."""
    total: float = 1.0
    """What the sum is divided by, such as the weights of all lists."""

    def cut(self, w: NDArray[np.float64]) -> ValueAndSlope:
        """Return (offset, gradient) of the plane that touches a hinge at w."""
        value, slope = self.held.sum(self.what, w)
        return value / self.total, slope / self.total

    def value_and_grad(self, params: NDArray[np.float64]) -> ValueAndSlope:
        """Return the value and the gradient of a smooth risk."""
        return self.cut(params)


class Cluster(Protocol):
    """Workers in other processes, each with some blocks."""

    def place_blocks(self, blocks: Sequence[Block], shared: Shared) -> PlacedBlocks[Shared, Block]:
        """Give every worker its blocks, and all of them the shared data."""
        ...

    def gather(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> list[Result]:
        """Return ``function(parameters, block)`` of every block, in their order."""
        ...


class Subtree(NamedTuple):
    """The sum of the blocks ``number * 2**level`` to ``(number + 1) * 2**level - 1``."""

    level: int
    number: int
    total: Any


@dataclass
class Tree(Generic[Result]):
    """Adds what comes in the order of the blocks, from any block on.

    Examples
    --------
    >>> tree = Tree(lambda one, other: f"({one}{other})")
    >>> for number, letter in enumerate("abcdef"):
    ...     tree.push(Subtree(0, number, letter))
    >>> tree.total()
    '(((ab)(cd))(ef))'
    """

    add: Callable[[Result, Result], Result]
    subtrees: list[Subtree] = field(default_factory=list[Subtree])
    """As large as they can be so far, one after the other."""

    def push(self, last: Subtree) -> None:
        """Add the next subtree."""
        while last.number % 2 and self.subtrees and self.subtrees[-1][:2] == (last.level, last.number - 1):
            total = self.add(self.subtrees.pop().total, last.total)
            last = Subtree(last.level + 1, last.number // 2, total)
        self.subtrees.append(last)

    def total(self) -> Result:
        """Return the sum of all that came, which began with block 0."""
        *before, last = self.subtrees
        total = last.total
        for subtree in reversed(before):
            total = self.add(subtree.total, total)
        return total


def require_of_module(function: Callable[..., object]) -> None:
    """Raise TypeError unless another process can import the function by its name."""
    name = getattr(function, "__qualname__", "<object>")
    if "<" in name:
        raise TypeError(f"blocks: expected a function of a module, found {name}")


def add_value_and_slope(one: ValueAndSlope, other: ValueAndSlope) -> ValueAndSlope:
    """Add numbers and vectors.

    Examples
    --------
    >>> add_value_and_slope((1.0, np.ones(2)), (2.0, np.ones(2)))
    (3.0, array([2., 2.]))
    """
    return one[0] + other[0], one[1] + other[1]
