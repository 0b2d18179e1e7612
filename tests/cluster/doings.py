"""Functions of blocks that go well or wrong in a worker."""


def same(shared, at):
    return at


def fails(at, block):
    if block == at:
        raise ValueError(f"block: expected another one than {block}")
    return 0.0, block


def hungry(at, block):
    raise MemoryError
