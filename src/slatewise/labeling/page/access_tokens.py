"""Access tokens of a project, as the guard of :mod:`slatewise.web` checks them."""

from __future__ import annotations

import secrets

from slatewise.labeling.store.project import Project
from slatewise.web.tokens import Digests, Role, Visitor, make_token

_SECRET = "secret"


def new_token(project: Project, name: str, role: Role = "annotator") -> str:
    """Give somebody a token, and return it: the only time that it is seen.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Project.create(Path(folder, "tags.db"), ["sea"]) as project:
    ...     token = new_token(project, "Ann", "reviewer")
    ...     visitor = project_keys(project).find(token)
    >>> visitor.role, visitor.who
    ('reviewer', 1)
    """
    new = make_token()
    project.tokens.add(new.digest, role, project.people.number(name))
    return new.token


def project_keys(project: Project) -> Digests:
    """Return what knows the tokens of a project that were not revoked."""
    return Digests(
        lambda: [
            (token.digest, Visitor(token.role, token.annotator)) for token in project.tokens.all() if not token.revoked
        ]
    )


def project_secret(project: Project) -> bytes:
    """Return the secret of a project, made at its first use: pages outlive a restart of the server."""
    if project.settings.get(_SECRET) is None:
        project.settings.set(_SECRET, secrets.token_hex(32))
    return bytes.fromhex(project.settings.get(_SECRET))
