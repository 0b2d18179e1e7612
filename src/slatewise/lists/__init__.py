"""Blocks of lists: flat arrays plus offsets, or queries against one shared catalogue. Never one object a query.

List l of :class:`Lists` owns the rows ``offsets[l]:offsets[l + 1]``. ``blocks`` cuts by bytes of data only, so the
cuts, and with them every sum in block order, are the same at any number of threads. NumPy is all this imports; SciPy
comes in when sparse data does.
"""

from slatewise.lists.catalogue import CatalogueLists
from slatewise.lists.checks import BLOCK_BYTES, Float, Int
from slatewise.lists.graded import GradedLists, list_weights
from slatewise.lists.groups import Groups, group_rows
from slatewise.lists.rows import Lists
from slatewise.lists.targets import Targets

__all__ = [
    "BLOCK_BYTES",
    "CatalogueLists",
    "Float",
    "GradedLists",
    "Groups",
    "Int",
    "Lists",
    "Targets",
    "group_rows",
    "list_weights",
]
