"""The HTTP service (extra ``serve``): models behind ``/v1/models/{name}/rank``, ``scores``, ``explain``, and so on.

A request's way: ``slatewise.web`` (who may ask) > ``app.py`` (routes) > ``door.py`` (what a model takes: types that
check and document at once) > ``batching.py`` (questions that can be answered together are) > the estimator >
``codec.py``.
``models.py`` keeps the models and notices new files; ``worker.py`` is one process, ``supervisor.py`` several.
"""
