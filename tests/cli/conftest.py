"""Commands, run in this process."""

import io
from contextlib import contextmanager

import pytest

from slatewise.cli.main import main


@pytest.fixture
def run(capsys):
    """Run a command in this process: (exit code, stdout, stderr)."""

    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        out = capsys.readouterr()
        return stop.value.code, out.out, out.err

    return call


@pytest.fixture
def done(run):
    """Run a command that must succeed and say nothing on stderr; returns its stdout."""

    def call(*words):
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        return out

    return call


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal():
    """``with terminal() as printed``: 80 columns as stdout and stderr; ``printed()`` returns the lines there."""

    @contextmanager
    def eighty_columns():  # by the test itself: pytest takes both streams back between a fixture and its test
        screen = Terminal()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "SLATEWISE_QUIET": "0"}.items():
                patch.setenv(name, value)
            patch.setattr("sys.stdout", screen)
            patch.setattr("sys.stderr", screen)
            yield lambda: [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]

    return eighty_columns
