"""Speed dating: who met whom, and who said yes."""

from __future__ import annotations

import csv
import lzma
from pathlib import Path

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.records import About, MeetingSet

_FIRST, _LAST = "age", "amb5_1"
_TEXT = {"field", "undergra", "from", "zipcode", "career"}
"""Columns between the first and the last that are words (a postal code is no number)."""


def load_speed_dating(about: About, folder: Path) -> MeetingSet:
    """Load the dates, with what people said of themselves when they signed up.

    Ratings made during or after the dates are left out: they give the answer away.
    """
    with lzma.open(folder / "speed_dating.csv.xz", "rt", encoding="latin-1", newline="") as lines:
        header, *rows = csv.reader(lines)
    column = {name: index for index, name in enumerate(header)}
    before = header[column[_FIRST] : column[_LAST] + 1]
    features = ["gender", *(name for name in before if name not in _TEXT)]

    def numbers(name: str) -> Floats:
        return np.array([float(row[column[name]].replace(",", "") or "nan") for row in rows])

    def whole(name: str) -> Ints:
        return numbers(name).astype(np.int64)

    person_ids, first_row, subject = np.unique(whole("iid"), return_index=True, return_inverse=True)
    answers = np.column_stack([numbers(name) for name in features])
    met = numbers("pid")
    known = np.isfinite(met)
    partner = np.full(len(rows), -1, dtype=np.int64)
    partner[known] = np.searchsorted(person_ids, met[known].astype(np.int64))
    return MeetingSet(
        about,
        answers[first_row],
        np.array(features),
        person_ids,
        subject,
        partner,
        whole("wave"),
        whole("dec"),
        whole("match"),
    )
