"""Multi-label sets: Mulan's in npz form, and Corel5k with TagProp's histograms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from slatewise.data.npz import read_npz
from slatewise.datasets.records import About, MultiLabelSet, MultiViewSet


def load_mulan(about: About, folder: Path) -> MultiLabelSet:
    """Load one of Mulan's sets; a set whose rows are all for training has no split of its own."""
    read = read_npz(folder / f"{about.name.removeprefix('mulan_')}.npz")
    has_split = read.is_train is not None and not read.is_train.all()
    return MultiLabelSet(
        about, read.X, read.Y, read.label_names, read.feature_names, read.is_train if has_split else None
    )


def load_corel5k(about: About, folder: Path) -> MultiViewSet:
    """Load Corel5k: bag-of-words of SIFT and hue, and colour histograms, as counts."""
    with np.load(folder / "corel5k_tagprop.npz", allow_pickle=False) as parts:
        views = {name: csr_array(parts[name].astype(np.float64)) for name in ("DenseSift", "DenseHue")}
        for name in ("Rgb", "Lab"):
            data, indices, indptr = (parts[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            shape = tuple(parts[f"{name}_shape"].tolist())
            views[name] = csr_array((data.astype(np.float64), indices.astype(np.int32), indptr), shape=shape)
        Y = csr_array(parts["Y"].astype(np.float64))
        return MultiViewSet(about, views, Y, parts["label_names"], parts["image_id"], parts["is_train"])
