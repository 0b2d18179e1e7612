"""Tables of events under mutation."""

from typing import BinaryIO

from slatewise.data import read_events
from tests.data.reference_text import reference_events
from tests.fuzz import Format


def events(file: BinaryIO) -> object:
    found = read_events(file, user="no such column")
    return tuple(tuple(items.tolist()) for items in found), tuple(found.ids.tolist())


FORMATS = [
    Format(
        "events",
        (
            b"session,item\n1,2\n3,4\n1,6\n",
            b'time;session;item\r\n3;a;"x; y"\r\n1.5;a;z\r\n\r\n-2;b;z\r\n',
            b"item\tx\tsession\ttime\na\t\t1\t2024-05-01\nb\t\t1\t2024-04-30T10:00:00Z\n",
            b" session  item\n 7  8\n7 9",
        ),
        events,
        reference_events,
        (b'"', b",", b";", b"\t", b" ", b"007", b"-0", b"1e999", b"nan", b"2024-13-01", b"session", b"item", b"time"),
    )
]
