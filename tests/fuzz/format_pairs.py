"""Pair files under mutation: plain, and with a header and weights."""

from functools import partial
from typing import BinaryIO

from slatewise.data import Pairs, read_pairs
from tests.data.reference_text import reference_pairs
from tests.fuzz import Format

NAMES = ("user", "item", "plays")
TOKENS = (
    b'"',
    b'""',
    b'"a,b"',
    b",",
    b";",
    b"\t",
    b" ",
    b"007",
    b"+7",
    b"-0",
    b"9223372036854775808",
    b"\xc2\xa0",
    b"|",
)


def comparable(pairs: Pairs) -> object:
    weights = None if pairs.weights is None else pairs.weights.tobytes()
    return tuple(pairs.queries.tolist()), tuple(pairs.items.tolist()), weights


def plain(file: BinaryIO) -> object:
    return comparable(read_pairs(file))


def weighted(file: BinaryIO) -> object:
    return comparable(read_pairs(file, columns=NAMES[:2], weight=NAMES[2], header=True))


FORMATS = [
    Format(
        "pairs",
        (
            b"1,2\n3,4\n-5,6\n",
            b'a,"x, y",1\r\n"b ""c""",z,2\r\n\r\n"q",z,2\r\n',
            b"u1\ti1\nu2\t\xc3\xa9 i\nu3\t'i\"",
            b" 1  2 3\n4\t5 6 \n",
            b"10;20;x\n30;40;\n",
        ),
        plain,
        reference_pairs,
        TOKENS,
    ),
    Format(
        "pairs_weighted",
        (
            b"user,item,plays\n1,2,3\n4,5,.5\n",
            b'\n"plays";user;x;item\n1e3;a;;b\n-2.5;c;;"d;e"\n',
            b"item\tuser\tplays\n1\t2\t0\n3\t4\t7.",
            b"user item plays\n a  b 1\n",
        ),
        weighted,
        partial(reference_pairs, names=NAMES),
        (*TOKENS, b"user", b"item", b"plays"),
    ),
]
