"""Who may enter, and what a request may do, for every page and service of slatewise: plain ASGI, nothing to install.

``guard.py`` is the one middleware; it asks ``site.py`` (where we are), ``requests.py`` (is the request decent),
``tokens.py``, ``cookies.py`` and ``wrong_tokens.py`` (who is it), ``body.py`` (how much, how slow) and ``headers.py``
(what a browser may do with the answer). ``files.py`` serves files of a folder and none outside. ``server.py`` runs an
application (uvicorn).
"""
