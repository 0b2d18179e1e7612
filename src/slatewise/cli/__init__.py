"""The command line: ``slatewise fit``, ``rank``, ``evaluate``, ``serve``, ``label``, ``demo`` and others.

In reading order:

- ``main.py`` has the commands; they import what they need when they run, so that ``slatewise --help`` is fast.
- ``options.py`` declares the options that several commands share: how data is read, filters, the cluster.
- ``tasks.py`` has a task for each kind of data: read it, fit, rank and measure. ``inputs.py`` reads files by their
  content or ending, and named data sets; ``runs.py`` measures a run against judgments.
- ``remote.py`` ranks with a service (``rank --url``).
- ``label.py`` has the commands of labeling projects, ``demo.py`` the demo, and ``console.py`` prints tables.
"""
