"""The one-file HTML report: tables and plots inside, nothing fetched from anywhere.

``html.py`` has the page, ``plots.py`` the plots, as SVG.
"""

from slatewise.report.html import Page, write_picture
from slatewise.report.plots import bars, gains, lines, matchings, pair_graphs, points, slopes

__all__ = ["Page", "bars", "gains", "lines", "matchings", "pair_graphs", "points", "slopes", "write_picture"]
