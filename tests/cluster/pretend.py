"""Workers without Ray, in this process: everything that would travel is pickled, as Ray would do it."""

import pickle

from slatewise.cluster.workers import shares
from slatewise.core.arrays import read_lazy
from slatewise.core.running.block_sums import Tree
from slatewise.core.running.executor import ONE_THREAD


def travelled(value):
    return pickle.loads(pickle.dumps(value))


class PretendWorkers:
    def __init__(self, n_workers):
        self.n_workers, self.rounds, self.sent = n_workers, 0, 0

    def require_open(self):
        """Pretend ones are never closed."""

    def place_blocks(self, blocks, shared):
        runs = [
            (first, read_lazy([*travelled(blocks[first:last])])) for first, last in shares(len(blocks), self.n_workers)
        ]
        return _Held(self, runs, read_lazy(travelled(shared)))

    def gather(self, function, parameters, blocks):
        return [found for _, found in self.each(function, parameters, blocks)]

    def each(self, function, parameters, blocks):
        for number, block in enumerate(blocks):
            yield number, function(travelled(parameters), travelled(block))


class _Held:
    def __init__(self, workers, runs, shared):
        self.workers, self.runs, self.shared = workers, runs, shared

    def sum(self, what, parameters):
        self.workers.rounds += 1
        whole = Tree(what.add)
        for first, blocks in self.runs:
            at = travelled(parameters)
            found = travelled(ONE_THREAD.subtrees(travelled(what), self.shared, at, blocks, first).subtrees)
            self.workers.sent += len(found)
            for subtree in found:
                whole.push(subtree)
        return whole.total()
