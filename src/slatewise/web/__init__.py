"""One web stack for the service and the labeling page: tokens, limits, errors, headers, logs and shutdown.

A request passes these files in this order:

1. ``server.py`` runs an application with uvicorn: the listening socket, limits for slow clients, a graceful stop.
2. ``guard.py`` is the one middleware. It uses ``site.py`` (the addresses of the server), ``requests.py`` (checks of the
   head, limits of the body) and ``tokens.py`` (tokens, their cookie, wrong attempts).
3. The application, in ``serve`` or ``labeling.page``. ``codec.py`` reads bodies by types of msgspec and writes answers,
   ``files.py`` serves files of a folder and none outside.

``asgi.py`` has the types of ASGI, short answers and the security headers of all answers; ``logs.py`` writes JSON lines.
All but ``codec.py`` (msgspec) and ``server.py`` (uvicorn) need nothing installed.
"""
