"""The store of a labeling project: :class:`slatewise.labeling.Project`, over one SQLite file.

In reading order: ``schema.py`` (tables and views of the file), ``database.py`` (how it is read and written, and its
errors), ``records.py`` (what comes out), ``acts.py`` (checks of what goes in), ``tables.py`` (one class per table:
people, labels, items, versions of the model, settings, audit log), ``leases.py`` (who works on what; clocks and locks),
``known_labels.py`` (votes, and what is known by majority), ``project.py`` (all of it together).
"""
