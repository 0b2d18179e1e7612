"""Multi-label SVMlight read slowly: the judge of the fast reader."""

from __future__ import annotations

import re

from tests.data.reference_svmlight import Bad, bits, feature_row, split_lines, tokens_and_comment
from tests.fuzz import Rejected

_LABELS = re.compile(rb"[0-9]+(,[0-9]+)*")


def _row(line: bytes, n_features: int, n_labels: int) -> tuple[tuple[int, ...], tuple[tuple[int, float], ...]] | None:
    tokens, _ = tokens_and_comment(line)
    if not tokens:
        return None
    labels: list[int] = []
    if b":" not in tokens[0]:
        if not _LABELS.fullmatch(tokens[0]):
            raise Bad
        texts = [text.lstrip(b"0") or b"0" for text in tokens.pop(0).split(b",")]
        if any(len(text) > 19 for text in texts):
            raise Bad
        labels = sorted(int(text) for text in texts)
        if len(set(labels)) < len(labels) or labels[-1] >= n_labels:
            raise Bad
    return tuple(labels), feature_row(tokens, 1, n_features)


def read(data: bytes, *, skip: bool, n_features: int, n_labels: int) -> tuple[object, ...]:
    """Return labels and features of each row, and the lines left out."""
    rows, skipped = [], []
    for number, line in enumerate(split_lines(data), start=1):
        try:
            row = _row(line, n_features, n_labels)
        except Bad:
            if not skip:
                raise Rejected(number) from None
            skipped.append(number)
            continue
        if row is not None:
            rows.append(row)
    return (
        tuple(labels for labels, _ in rows),
        tuple(tuple(index for index, _ in features) for _, features in rows),
        bits([value for _, features in rows for _, value in features]),
        len(skipped),
        tuple(skipped[:5]),
    )
