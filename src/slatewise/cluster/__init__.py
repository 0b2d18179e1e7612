"""Many machines: the workers of a Ray cluster add up what learners minimise, and answer in batches (extra ``[ray]``).

Data stays with the workers and parameters travel. Blocks and the order of their sums come from the data alone, so a fit
has the same bits on one thread, on several, and on any number of workers.
"""

from slatewise.cluster.batch import rank
from slatewise.cluster.context import ray
from slatewise.cluster.evaluation import evaluate
from slatewise.cluster.source import source
from slatewise.core.errors import ClusterError

__all__ = ["ClusterError", "evaluate", "rank", "ray", "source"]
