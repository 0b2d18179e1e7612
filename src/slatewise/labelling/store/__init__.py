"""The store of a labelling project: :class:`slatewise.labelling.Project` in ``project.py``, over one SQLite file.

``schema.py`` says what the file holds, ``database.py`` how it is written, ``records.py`` what comes out.
"""
