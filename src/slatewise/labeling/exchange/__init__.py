"""Answers in and out of a project, one format per file; ``formats.py`` has the two public functions.

``statements.py`` has the form between files and projects; ``tables.py``, ``json_lines.py`` and ``label_studio.py``
write and read it.

Exports contain the answers that stand; undone and replaced ones stay in the project, whose own file is the
archive.
"""
