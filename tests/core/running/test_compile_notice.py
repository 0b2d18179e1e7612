"""A person at a terminal is told that kernels compile; pipes, warm calls and whoever asks for silence are not."""

import io
import os
from contextlib import contextmanager

import numba
import pytest
from numba.core import event

from slatewise.core.running.kernel import COMPILE_NOTICE, CompileNotice
from slatewise.core.running.progress import listening


class Diary:
    def __init__(self):
        self.lines = []

    def begin(self, what, total):
        self.lines.append(what)
        return 7

    def advance(self, loop):
        raise AssertionError("a compilation has no rounds")

    def end(self, loop):
        self.lines.append(loop)

    def tell(self, text):
        raise AssertionError("nothing to tell")


def fresh_kernel(module="slatewise.core.kernels.made_up"):
    def inner(number):
        return number + 1

    inner.__module__ = module
    compiled = numba.njit(inner)

    def outer(number):
        return compiled(number) * 2

    outer.__module__ = module
    return numba.njit(outer)


@contextmanager
def terminal(quiet="0"):
    """A pseudo terminal as stderr; yields a function that returns what was printed there since.

    The package's own listener does not listen meanwhile: it prints there too once compilations have taken a second.
    """
    screen, end = os.openpty()
    event.unregister("numba:compile", COMPILE_NOTICE)
    # Not in a fixture: pytest takes stderr back between a fixture and its test.
    with pytest.MonkeyPatch.context() as patch, os.fdopen(end, "w") as stderr:
        patch.setenv("SLATEWISE_QUIET", quiet)
        patch.setattr("sys.stderr", stderr)

        def read():
            print(".", end="", file=stderr, flush=True)  # where to stop
            text = ""
            while not text.endswith("."):
                text += os.read(screen, 1000).decode()
            return text[:-1]

        try:
            yield read
        finally:
            event.register("numba:compile", COMPILE_NOTICE)
    os.close(screen)


LINE = "slatewise: compiling kernels (once per process: no folder to keep them in)\r\n"


def test_a_listener_is_told_once_per_outermost_kernel_and_not_of_warm_calls():
    diary, kernel = Diary(), fresh_kernel()
    with listening(diary):
        assert kernel(3) == 8
        assert kernel(4) == 10
        fresh_kernel("elsewhere")(3)
    assert diary.lines == ["compiling outer (once per process: no folder to keep them in)", 7]


def test_kept_kernels_compile_once_per_machine():
    from slatewise.core.kernels import rows
    from slatewise.core.running.kernel import _how_often

    kept = next(value for value in vars(rows).values() if hasattr(value, "py_func"))
    assert _how_often(kept) == "once per machine"


@pytest.mark.parametrize("spent", [0.0, 1000.0], ids=["a fast machine", "a slow one"])
def test_a_terminal_gets_one_line(monkeypatch, spent):
    monkeypatch.setattr(COMPILE_NOTICE, "patience", 1.0 - spent)  # what compilations before this test have taken
    with terminal() as read, event.install_listener("numba:compile", CompileNotice(patience=0)):
        fresh_kernel()(3)
        assert read() == LINE
        fresh_kernel()(3)
        assert read() == ""


def start_and_end():
    data = {"dispatcher": fresh_kernel()}
    return (event.Event("numba:compile", status, data) for status in event.EventStatus)


def test_the_line_comes_while_it_still_compiles():
    notice = CompileNotice(patience=0.001)
    start, end = start_and_end()
    with terminal() as read:
        notice.notify(start)
        notice._timer.join()
        assert read() == LINE
        notice.notify(end)


def test_short_waits_add_up():
    notice = CompileNotice(patience=1000.0)
    start, end = start_and_end()
    with terminal() as read:
        notice.notify(start)
        notice._began -= 1001.0
        notice.notify(end)
        assert read() == ""
        notice.notify(start)
        assert read() == LINE
        notice.notify(end)


def test_nothing_on_request():
    with terminal(quiet="1") as read, event.install_listener("numba:compile", CompileNotice(patience=0)):
        fresh_kernel()(3)
        assert read() == ""


@pytest.mark.parametrize("stderr", [io.StringIO(), None], ids=["a pipe", "none"])
def test_nothing_where_nobody_looks(monkeypatch, stderr):
    monkeypatch.setenv("SLATEWISE_QUIET", "0")
    monkeypatch.setattr("sys.stderr", stderr)
    with event.install_listener("numba:compile", CompileNotice(patience=0)):
        fresh_kernel()(3)
    assert stderr is None or stderr.getvalue() == ""
