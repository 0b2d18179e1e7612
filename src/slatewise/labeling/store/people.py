"""Who answers, and who may enter: annotators, whose names can be removed, and digests of their tokens."""

from __future__ import annotations

import secrets

from slatewise.labeling.store import clocks
from slatewise.labeling.store.acts import Numbers, check_name, check_role, new_number
from slatewise.labeling.store.audit import log
from slatewise.labeling.store.database import Damaged, Database, checked_rows, types_of
from slatewise.labeling.store.records import Person, Token
from slatewise.web.tokens import Role


class People:
    """Reached as ``project.people``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def number(self, name: str) -> int:
        """Return the number of the annotator with this name, who is added where there is none."""
        check_name("annotator", name)
        query = "SELECT number FROM annotators WHERE name = ?"
        found = self._database.checked((int,), query, name)
        if found:
            return found[0][0]
        with self._database.write() as connection:
            row = (name, f"someone-{secrets.token_hex(4)}")
            connection.execute("INSERT OR IGNORE INTO annotators (name, pseudonym) VALUES (?, ?)", row)
            for (number,) in connection.execute(query, (name,)):
                return number
            raise Damaged("an index that lost an annotator")

    def all(self) -> list[Person]:
        """Return everybody who ever answered or may."""
        rows = self._database.checked(types_of(Person), "SELECT * FROM annotators ORDER BY number")
        return [Person(*row) for row in rows]

    def forget(self, number: int) -> str:
        """Remove a person's name from the file; return the pseudonym that the answers keep. The person's tokens end.

        Backups and exports of before still have the name.
        """
        with self._database.write() as connection:
            number = Numbers(connection).check("annotator", number)
            query = "SELECT pseudonym FROM annotators WHERE number = ?"
            ((pseudonym,),) = checked_rows(connection, (str,), query, (number,))
            connection.execute("UPDATE annotators SET name = NULL WHERE number = ?", (number,))
            ended = (clocks.now(), number)
            connection.execute("UPDATE tokens SET revoked = ? WHERE annotator = ? AND revoked IS NULL", ended)
            log(connection, "forget annotator", None, {"annotator": number})
        self._database.forget_the_past()
        return pseudonym


class Tokens:
    """Reached as ``project.tokens``; what a token is, and how one is made, says :mod:`slatewise.web`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, digest: str, role: Role, annotator: int) -> int:
        """Register the digest of a secret; return the token's number."""
        with self._database.write() as connection:
            annotator = Numbers(connection).check("annotator", annotator)
            row = (digest, check_role(role), annotator, clocks.now())
            query = "INSERT INTO tokens (digest, role, annotator, created) VALUES (?, ?, ?, ?)"
            number = new_number(connection.execute(query, row))
            log(connection, "add token", annotator, {"token": number, "role": role})
            return number

    def all(self) -> list[Token]:
        """Return all tokens, also those that ended."""
        rows = self._database.checked(types_of(Token), "SELECT * FROM tokens ORDER BY number")
        return [Token(*row) for row in rows]

    def revoke(self, number: int) -> None:
        """End a token."""
        with self._database.write() as connection:
            number = Numbers(connection).check("token", number)
            ended = (clocks.now(), number)
            connection.execute("UPDATE tokens SET revoked = ? WHERE number = ? AND revoked IS NULL", ended)
            log(connection, "revoke token", None, {"token": number})
