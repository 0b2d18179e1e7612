"""Sphinx settings."""

from slatewise import __version__

project = "slatewise"
author = "The slatewise developers"
copyright = "2026, the slatewise developers"
release = version = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
templates_path: list[str] = []
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_title = "slatewise"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = False
nitpicky = False
suppress_warnings = ["ref.python"]  # types in docstrings: a loss and a measure are both called NDCG
