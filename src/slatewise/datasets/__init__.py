"""Named public data sets, splits that cut no list, and generators with known best rankings.

Data sets are in a folder of folders, one per set, that ``SLATEWISE_DATA`` names; none of them is in the package.

loading          find a data set by name, in a folder or by a download, and load it
table            every data set: what it is, its terms, its files, and the function that reads them
records          what ``load`` returns, one record per kind of data
readers, letor   the functions of the table; those of LETOR, with official runs and figures
splits           training, validation and test rows by list or by time
shapes           outlines with known matchings, and shape contexts
make_interacting, make_queries, make_scenes, make_sessions   lists, queries, label sets, sessions with a known law
"""

from slatewise.datasets.loading import DatasetNotFound, Description, describe, load, load_official_runs, names
from slatewise.datasets.make_interacting import InteractingLists, make_interacting_lists
from slatewise.datasets.make_queries import MadeQueries, make_queries
from slatewise.datasets.make_scenes import LabelScenes, make_label_scenes
from slatewise.datasets.make_sessions import MadeSessions, make_sessions
from slatewise.datasets.shapes import (
    Silhouettes,
    edge_features,
    make_silhouettes,
    shape_context,
    shear_points,
)
from slatewise.datasets.splits import Split, by_time, k_fold_by_list

__all__ = [
    "DatasetNotFound",
    "Description",
    "InteractingLists",
    "LabelScenes",
    "MadeQueries",
    "MadeSessions",
    "Silhouettes",
    "Split",
    "by_time",
    "describe",
    "edge_features",
    "k_fold_by_list",
    "load",
    "load_official_runs",
    "make_interacting_lists",
    "make_label_scenes",
    "make_queries",
    "make_sessions",
    "make_silhouettes",
    "names",
    "shape_context",
    "shear_points",
]
