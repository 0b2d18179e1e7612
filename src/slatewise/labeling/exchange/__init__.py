"""Answers in and out of a project, one format per file; ``formats.py`` has the two public functions.

What goes out is what stands; what was undone or superseded stays in the project, whose own file is the archive.
"""
