"""Many machines: the workers of a Ray cluster add up what learners minimize, and rank in batches (extra ``[ray]``).

Data stays with the workers and parameters travel. Blocks and the order of their sums come from the data alone, so a fit
has the same bits on one thread, on several, and on any number of workers.

``context.py`` opens a cluster, ``workers.py`` is the driver's side of one round of sums, and ``worker.py`` runs in each
process. ``source.py`` names files whose rows only the workers read; ``batch.py`` ranks and measures Parquet files.
"""

from slatewise.cluster.batch import evaluate, rank
from slatewise.cluster.context import ray
from slatewise.cluster.source import source
from slatewise.core.errors import ClusterError

__all__ = ["ClusterError", "evaluate", "rank", "ray", "source"]
