"""The labeling page (extra ``label``): one server of one project, its HTTP interface and what a browser shows.

:func:`serve` runs it, :func:`make_app` returns it as an ASGI application. Everything that changes something is a POST
with a JSON body, and is on the disk when the reply comes. ``/openapi.json`` documents bodies and errors.

In reading order: ``app.py`` (the application and the server), ``routes.py`` (the routes, and how a request is checked),
``bodies.py`` (types of bodies), ``page_state.py`` (the state of the server and of each person), ``openapi.py`` (the
document), ``access_tokens.py`` (tokens of a project). Guard, limits, headers and errors are in :mod:`slatewise.web`.

====  ========================  =========  =================================================================
GET   /                         everybody  the page; ``/static/...`` are its parts
GET   /enter                    public     the form for a token
GET   /api/me                   everybody  who one is, the form token, labels, formats
POST  /api/next                 annotator  take up the open item again, or leave it and open the best next one
POST  /api/answer               annotator  yes, no or don't know, of any label
POST  /api/done, /api/skip      annotator  end the open item, and open the next one
POST  /api/undo                 annotator  take the last act back
GET   /api/items/3              annotator  an item; ``/api/items/3/file`` its picture or sound
GET   /api/progress             annotator  counts, pace, questions saved
GET   /api/agreement            reviewer   Cohen's kappa and Krippendorff's alpha
GET   /api/review               reviewer   what people disagree about
POST  /api/review               reviewer   settle it
GET   /api/models               annotator  versions, what they are worth, what the trainer does
POST  /api/models/train         owner      train a new version
POST  /api/models/use           owner      put a version in use: an earlier one to roll back
GET   /api/export?format=long   owner      all answers as a file
====  ========================  =========  =================================================================

*Who.* On a machine of one's own everybody is the owner, and ``?annotator=Ann`` says who labels (default: the name of
the account). Elsewhere a token does. A program without a bearer token sends ``Origin`` and ``X-Form-Token``.

*Recorded once.* A reply has ``turn``, the number of the person's last act; the next request sends it back. If a reply
is lost, the same request can be sent again, even to a server that was killed and started since: an act is not recorded
twice. If something else was done meanwhile, in another window, the request is refused with 409.

*Errors* are ``{"detail": "label: expected ..., found ..."}``. 503 means that the project cannot be written to at the
moment (disk full, read-only): nothing was recorded, and the same can be sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.labeling.page.app import make_app, serve

__all__ = ["make_app", "serve"]

__getattr__ = lazy_getattr(
    globals(), {"make_app": "slatewise.labeling.page.app", "serve": "slatewise.labeling.page.app"}
)


def __dir__() -> list[str]:
    return sorted(__all__)
