"""Functions of blocks that go well or wrong in a worker."""

import time


def same(shared, at):
    return at


def fails(at, block):
    if block == at:
        raise ValueError(f"block: expected another one than {block}")
    return 0.0, block


def hungry(at, block):
    raise MemoryError


def leaves(wrong, path):
    """Leave a file a little later, or fail at once."""
    if path == wrong:
        raise ValueError(f"path: expected another one than {path}")
    time.sleep(0.2)
    path.touch()
