"""The store of a labeling project: :class:`slatewise.labeling.Project` in ``project.py``, over one SQLite file.

``schema.py`` says what the file holds, ``database.py`` how it is written, ``records.py`` what comes out.
"""
