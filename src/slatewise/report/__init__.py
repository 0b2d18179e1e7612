"""The one-file HTML report: tables and plots inside, nothing fetched from anywhere."""

from slatewise.report.html import Page
from slatewise.report.plots import bars, lines, points

__all__ = ["Page", "bars", "lines", "points"]
