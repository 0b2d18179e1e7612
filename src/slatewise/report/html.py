"""A page of headings, paragraphs, tables and figures, written as one HTML file that opens anywhere, offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

from slatewise.core.files import atomic_path

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --paper: #fff; --faint: #d8dde6; --accent: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ee; --paper: #12161d; --faint: #333b48; --accent: #6ea8fe; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem; }
h1 { border-bottom: 3px solid var(--accent); padding-bottom: .3rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--faint); text-align: left; }
th { vertical-align: bottom; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; background: #fff; border: 1px solid var(--faint); border-radius: .4rem; padding: .5rem; }
figure svg { width: 100%; height: auto; }
figcaption { color: #4a5263; font-size: .9rem; }
"""


class Page:
    """Collects the parts of a report in reading order.

    Examples
    --------
    >>> page = Page("Two numbers")
    >>> page.table("Means", ["system", "NDCG@10"], [["ours", "0.5"]])
    >>> "<caption>Means</caption>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """Add a section heading."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """Add plain text."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def table(self, caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table; cells that are numbers are set flush right."""
        numbers = [all(_is_number(row[place]) or not row[place] for row in rows) for place in range(len(columns))]
        head = "".join(
            f'<th scope="col"{_NUMBER if number else ""}>{escape(column)}</th>'
            for column, number in zip(columns, numbers, strict=True)
        )
        body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
        self._parts.append(
            f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def figure(self, svg: str, caption: str) -> None:
        """Add an inline SVG picture, as :mod:`slatewise.report.plots` draws them."""
        self._parts.append(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>")

    def html(self) -> str:
        """Return the whole page."""
        title = escape(self._title)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
            f"<body><h1>{title}</h1>\n" + "\n".join(self._parts) + "\n</body></html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; missing folders are made, and the file appears whole or not at all."""
        _write(path, self.html())


def write_picture(path: str | os.PathLike[str], svg: str) -> None:
    """Write a picture by itself, on white: its ink is dark, and a page around it may be too."""
    _write(path, svg.replace("<svg ", '<svg style="background:#fff" ', 1))


def _write(path: str | os.PathLike[str], text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(text)


_NUMBER = ' class="number"'


def _cell(text: str) -> str:
    return f"<td{_NUMBER if _is_number(text) else ''}>{escape(text)}</td>"


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix("%").removesuffix("x"))
    except ValueError:
        return False
    return True
