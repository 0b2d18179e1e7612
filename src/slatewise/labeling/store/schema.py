"""The tables of a project, as the steps that make them: a file of version ``FIRST + n`` has taken 1 + n.

An *act* is one thing that one person did to one item: gave an answer, was done with it, skipped it, or undid an earlier
act. Acts and the answers in them are only ever added, so the order of acts is that of their numbers, whatever the
clock. What stands is a view: acts that nobody undid, and of answers to one label by one person the last.

To change the tables add a step; steps that were released are never edited.
"""

from __future__ import annotations

from typing import TypeAlias

APPLICATION_ID = 0x736C7773
"""Marks the file as a project ("slws")."""

FIRST = 2
"""Version 1 was that of slatewise 0.2, which is not read."""

Step: TypeAlias = "tuple[str, ...]"
"""Statements that are executed in one transaction."""

_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE folders (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);

CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('image', 'text', 'audio', 'link')),
    content TEXT NOT NULL,
    folder INTEGER REFERENCES folders (number)
);

CREATE TABLE labels (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

CREATE TABLE former_names (name TEXT PRIMARY KEY, label INTEGER NOT NULL REFERENCES labels (number)) WITHOUT ROWID;

CREATE TABLE annotators (
    number INTEGER PRIMARY KEY,
    name TEXT UNIQUE,
    pseudonym TEXT NOT NULL UNIQUE
);

CREATE TABLE models (
    number INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    created INTEGER NOT NULL,
    note TEXT NOT NULL,
    last_act INTEGER NOT NULL
);

CREATE TABLE model_uses (number INTEGER PRIMARY KEY, model INTEGER REFERENCES models (number), time INTEGER NOT NULL);

CREATE TABLE acts (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('answer', 'done', 'skip', 'undo')),
    item INTEGER NOT NULL REFERENCES items (number),
    annotator INTEGER NOT NULL REFERENCES annotators (number),
    time INTEGER NOT NULL,
    milliseconds INTEGER CHECK (milliseconds >= 0),
    model INTEGER REFERENCES models (number),
    undoes INTEGER REFERENCES acts (number),
    CHECK ((kind = 'undo') = (undoes IS NOT NULL))
);
CREATE INDEX acts_of_item ON acts (item, annotator);
CREATE INDEX acts_of_annotator ON acts (annotator);
CREATE INDEX ends_of_items ON acts (item, annotator) WHERE kind IN ('done', 'skip');
CREATE UNIQUE INDEX undone_once ON acts (undoes) WHERE undoes IS NOT NULL;

CREATE TABLE answers (
    act INTEGER NOT NULL REFERENCES acts (number),
    label INTEGER NOT NULL REFERENCES labels (number),
    value INTEGER NOT NULL CHECK (value IN (1, 0, -1)),
    how TEXT NOT NULL CHECK (how IN ('question', 'volunteered', 'closed', 'confirmed', 'reviewed')),
    probability REAL CHECK (probability BETWEEN 0 AND 1),
    PRIMARY KEY (act, label)
) WITHOUT ROWID;

CREATE TABLE leases (
    item INTEGER NOT NULL REFERENCES items (number),
    annotator INTEGER NOT NULL REFERENCES annotators (number),
    until REAL NOT NULL,
    PRIMARY KEY (item, annotator)
) WITHOUT ROWID;

CREATE TABLE tokens (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('annotator', 'reviewer', 'owner')),
    annotator INTEGER NOT NULL REFERENCES annotators (number),
    created INTEGER NOT NULL,
    revoked INTEGER
);

CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    annotator INTEGER REFERENCES annotators (number),
    what TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE VIEW standing AS
SELECT * FROM acts
WHERE kind <> 'undo' AND NOT EXISTS (SELECT 1 FROM acts AS later WHERE later.undoes = acts.number);

CREATE VIEW state AS
SELECT item, annotator, label, value, how, probability, time, milliseconds, model, max(standing.number) AS act
FROM standing JOIN answers ON answers.act = standing.number
GROUP BY item, annotator, label;

CREATE VIEW marks AS
SELECT item, annotator, kind, time, milliseconds, model, max(number) AS act
FROM standing WHERE kind IN ('done', 'skip')
GROUP BY item, annotator
"""
# A column beside max() comes from the row that has the maximum: https://sqlite.org/lang_select.html#bareagg

_UNDO_OF_ONES_OWN = """
CREATE TRIGGER undo_of_ones_own BEFORE INSERT ON acts WHEN NEW.undoes IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'one undoes an act of ones own on the same item') WHERE NOT EXISTS (
        SELECT 1 FROM acts
        WHERE number = NEW.undoes AND kind <> 'undo' AND annotator = NEW.annotator AND item = NEW.item
    );
END
"""

_ONLY_ADDED = tuple(
    f"CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} are only ever added'); END"
    for table in ("acts", "answers", "audit", "model_uses")
    for change in ("UPDATE", "DELETE")
)

STEPS: tuple[Step, ...] = ((*(statement.strip() for statement in _TABLES.split(";")), _UNDO_OF_ONES_OWN, *_ONLY_ADDED),)
"""Every step that there is; see the module's text."""
