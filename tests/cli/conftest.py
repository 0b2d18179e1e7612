"""Commands, run in this process."""

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
