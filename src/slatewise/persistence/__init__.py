"""Model files and checkpoints.

In reading order: ``file`` (the format and its checksums), ``saving`` (``save`` and ``load`` of every estimator),
``checkpoint`` (the state of a fit that was interrupted).
"""
