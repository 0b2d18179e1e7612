"""Hypothesis strategies shared by the tests of the formats."""

from io import BytesIO

from hypothesis import strategies as st

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=" \ufeff"), min_size=1, max_size=6
)
"""What may stand between blanks in a text file."""
finite = st.floats(allow_nan=False, allow_infinity=False)
int64 = st.integers(-(2**63), 2**63 - 1)


def named(content: bytes, name: str = "file.txt") -> BytesIO:
    """Return an open file with a name, as the readers' messages show it."""
    file = BytesIO(content)
    file.name = name
    return file
