"""QAPLIB: quadratic assignment problems with their best known values."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from slatewise.datasets.records import About, QapInstance, QapSet


def load_qaplib(about: About, folder: Path) -> QapSet:
    """Load every ``name.txt`` with its ``name.sln.txt``."""
    names = sorted(path.name.removesuffix(".sln.txt") for path in folder.glob("*.sln.txt"))
    return QapSet(about, {name: _instance(folder, name) for name in names})


def _instance(folder: Path, name: str) -> QapInstance:
    n, *entries = (int(word) for word in (folder / f"{name}.txt").read_text().split())
    if len(entries) != 2 * n * n:
        raise ValueError(f"{folder / name}.txt: expected two matrices of {n} x {n} numbers, found {len(entries)}")
    A, B = np.array(entries, dtype=np.int64).reshape(2, n, n)
    _, best_value, *places = (
        int(word) for word in re.split(r"[\s,]+", (folder / f"{name}.sln.txt").read_text().strip())
    )
    plain = QapInstance(name, A, B, best_value, None)
    # Solution files count from 1 or from 0, and some state the permutation of B's rows: its inverse.
    permutation = np.array(places, dtype=np.int64) - min(places)
    for candidate in (permutation, np.argsort(permutation)):
        if plain.value(candidate) == best_value:
            return QapInstance(name, A, B, best_value, candidate)
    return plain
