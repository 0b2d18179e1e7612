"""Session files under mutation."""

from typing import BinaryIO

import numpy as np

from slatewise.data import read_sessions
from tests.data.reference_text import reference_sessions
from tests.fuzz import Format


def sessions(file: BinaryIO) -> object:
    found = read_sessions(file)
    return tuple(found.items.tolist()), tuple(np.diff(found.offsets).tolist())


FORMATS = [
    Format(
        "sessions",
        (
            b"1,2,3\n4\n5,6\n-7,8\n",
            b"9\r\n10\r\n11;12\r\n",
            b"a\tb b\tc\nd\n\xc3\xa9\tf",
            b"1 2  3\n 4 5 \n6\n",
            b"5\n6\n7",
        ),
        sessions,
        reference_sessions,
        (b'"', b",", b";", b"\t", b" ", b",,", b"007", b"+7", b"-0", b"9223372036854775808", b"\xc2\xa0", b"|"),
    )
]
