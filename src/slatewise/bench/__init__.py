"""Ratios against peers, measured in one run. A benchmark never checks correctness; tests do that.

Each module has ``run(quick) -> Table``; a peer that is not installed is named in ``Table.left_out``.
"""

from slatewise.bench._table import Row, Table, best_seconds, installed

__all__ = ["Row", "Table", "best_seconds", "installed"]
