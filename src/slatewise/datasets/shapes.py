"""Outlines and landmarks to match."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slatewise.datasets.records import About, MatchingSet, OutlineSet
from slatewise.datasets.splits import Split


def load_outlines(about: About, folder: Path) -> OutlineSet:
    """Load MPEG-7's silhouettes: 65 classes of 20 outlines, class after class."""
    with np.load(folder / "mpeg7_contours.npz", allow_pickle=False) as parts:
        curves = parts["curves"].astype(np.float64)
        classes, instances, two, points = curves.shape
        outlines = curves.reshape(classes * instances, two, points).transpose(0, 2, 1)
        y = np.repeat(np.arange(classes, dtype=np.int64), instances)
        return OutlineSet(about, np.ascontiguousarray(outlines), y, parts["class_names"])


def load_house(about: About, folder: Path) -> MatchingSet:
    """Load the CMU house: 30 landmarks in 111 frames, and the source's pairs of frames."""
    with np.load(folder / "cmu_house.npz", allow_pickle=False) as parts:
        which = ("train", "validate", "test")
        separations = range(0, 100, 10)
        pairs = {
            gap: Split(*(parts[f"pairs_sep{gap:02d}_{part}"].astype(np.int64) for part in which)) for gap in separations
        }
        frames = Split(*(parts[f"split_{part}"].astype(np.int64) for part in which))
        return MatchingSet(
            about, parts["points"], parts["shape_context"], parts["delaunay_adj"].astype(bool), frames, pairs
        )
