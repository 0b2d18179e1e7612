"""The HTTP service (extra ``serve``): models behind ``/v1/models/{name}/rank``, ``scores``, ``explain``, and so on.

In reading order, the path of a request:

- ``supervisor.py`` binds the socket and runs one worker, or several in processes of their own; ``settings.py`` has what
  they are started with: model files, limits, tokens.
- ``worker.py`` is one process: the guard of ``slatewise.web`` before the application, on the socket.
- ``app.py`` has the routes: it reads a body, checks it, and turns errors into answers.
- ``endpoints/`` say for each kind of model what it answers, by types that check requests and document them.
- ``batching.py`` answers requests together where possible, in threads, and returns errors and warnings to the request
  that caused them.
- ``models.py`` loads the models, warms them up, and swaps them when their files change.
- ``openapi.py`` writes the document of the loaded models, ``metrics.py`` the figures for Prometheus.
"""
