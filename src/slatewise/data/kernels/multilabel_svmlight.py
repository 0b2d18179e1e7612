"""One pass over multi-label SVMlight text: ``label,label,... index:value ...``, a row per line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.running.kernel import kernel
from slatewise.data.kernels.decimal import GOOD, Bytes
from slatewise.data.kernels.svmlight import (
    LABEL_RANGE,
    LABEL_REPEATED,
    LABEL_SET,
    Entries,
    Errors,
    Rules,
    comment,
    features,
)
from slatewise.data.kernels.text import at_line_end, at_token_end, next_line, skip_blanks, whole


class MultiLabelRows(NamedTuple):
    """Labels of all rows one after the other, and for each row how many labels and entries it has."""

    labels: NDArray[np.int32]
    label_counts: Ints
    lengths: Ints


@kernel
def _is_feature(text: Bytes, at: int) -> bool:
    """Say whether the token here is a feature: a row that starts with one has no labels."""
    while not at_token_end(text, at):
        if text[at] == 58:
            return True
        at += 1
    return False


@kernel
def _labels(text: Bytes, at: int, size: int, end_label: int, labels: NDArray[np.int32]) -> tuple[int, int, int]:
    """Read whole numbers with commas between; return (position, labels written so far, code)."""
    start, first = at, size
    while True:
        label, end = whole(text, at)
        if end == at or not (text[end] == 44 or at_token_end(text, end)):
            return start, first, LABEL_SET
        if label >= np.uint64(end_label):
            return at, first, LABEL_RANGE
        labels[size] = np.int64(label)
        size += 1
        at = end + 1
        if text[end] != 44:
            break
    ours = labels[first:size]
    ours.sort()
    for i in range(1, len(ours)):
        if ours[i] == ours[i - 1]:
            return start, first, LABEL_REPEATED
    return end, size, GOOD


@kernel
def multilabel_rows(
    text: Bytes, rules: Rules, end_label: int, entries: Entries, rows: MultiLabelRows, errors: Errors
) -> tuple[int, int, int]:
    """Fill ``entries``, ``rows`` and ``errors``; return how many entries, rows and errors there are."""
    at = row = size = n_labels = wrong = 0
    while at < len(text):
        at = skip_blanks(text, at)
        if at_line_end(text, at):
            at = next_line(text, at)
            continue
        code, new_size, new_labels = GOOD, size, n_labels
        is_row = text[at] != 35
        if is_row:
            if not _is_feature(text, at):
                at, new_labels, code = _labels(text, at, n_labels, end_label, rows.labels)
            if code == GOOD:
                at, new_size, code = features(text, at, size, rules, entries)
        if code == GOOD and text[at] == 35:
            _, _, at, code = comment(text, at)
        if code != GOOD:
            errors.positions[wrong], errors.codes[wrong] = at, code
            wrong += 1
        elif is_row:
            rows.label_counts[row], rows.lengths[row] = new_labels - n_labels, new_size - size
            row, size, n_labels = row + 1, new_size, new_labels
        at = next_line(text, at)
    return size, row, wrong
