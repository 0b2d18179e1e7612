"""Everything that is counted over all answers, at once."""

from __future__ import annotations

from typing import NamedTuple

from slatewise.labeling.agreement import Agreement
from slatewise.labeling.progress_report import ProgressReport


class Report(NamedTuple):
    """How far the project is."""

    last_act: int
    """The last act that is counted for sure."""
    progress: ProgressReport
    agreement: Agreement
