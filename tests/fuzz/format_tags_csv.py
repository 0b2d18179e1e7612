"""Tables of tagged rows under mutation: a column per label, and one column of tags beside ids."""

from functools import partial
from typing import BinaryIO

import numpy as np

from slatewise.data import MultiLabel, read_tags
from tests.data.reference_tags import reference_tag_table
from tests.fuzz import Format


def comparable(rows: MultiLabel) -> object:
    assert isinstance(rows.X, np.ndarray)
    flags = tuple(map(tuple, rows.Y.toarray().tolist()))
    ids = None if rows.ids is None else tuple(rows.ids.tolist())
    return tuple(row.tobytes() for row in rows.X), flags, tuple(rows.label_names.tolist()), ids


def by_prefix(file: BinaryIO) -> object:
    return comparable(read_tags(file, labels="is:"))


def by_column(file: BinaryIO) -> object:
    return comparable(read_tags(file, tags="tags", separator="|", id="id"))


TOKENS = (b'"', b'""', b"|", b"||", b"{", b"true", b"False", b"tags", b"id", b"is:", b",is:x", b"\xc2\xa0", b"1", b"0")

FORMATS = [
    Format(
        "tags_labels",
        (
            b"a,is:sky,b,is:sea\n1,0,2.5,1\n-3e2,1,.5,0\n",
            b'is:x;a\r\ntrue;7\r\n\r\nFalse;"8"\r\n',
            b'is:\xc3\xa9\tis:"\ta b\n0\t1\t3\n1\t1\t4',
        ),
        by_prefix,
        partial(reference_tag_table, prefix="is:"),
        TOKENS,
    ),
    Format(
        "tags_column",
        (
            b"id,a,tags\n1,2,sky|sea\n2,3,\n30,-4.5,sea\n",
            b'tags;b;id\n"x;y|z";1;"p ""q"""\n;2;r\n',
            b"id\ttags\ta\na.jpg\tsky\t1\nb.jpg\tsky|\xe5\x90\x8d\t2\n",
        ),
        by_column,
        reference_tag_table,
        TOKENS,
    ),
]
