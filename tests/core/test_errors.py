"""What a message quotes cannot write to a terminal, whoever made the file."""

import io
import pickle
import warnings

import pytest

from slatewise import data
from slatewise.cli import main as cli
from slatewise.core.errors import DataError, DataWarning, ModelFileError, printable

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202e\u2028\udcff"


@pytest.mark.parametrize("text", [HOSTILE, "plain", "é 名 😀", "a\tb", "", "\x7f", "".join(map(chr, range(0x300)))])
def test_only_visible_characters_are_left_and_those_stay(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert repr(text)[1:-1].replace("\\\\", "\\").replace("\\'", "'") == shown


@pytest.mark.parametrize(
    "message",
    [
        DataError(HOSTILE, 1, 1, HOSTILE, HOSTILE),
        ModelFileError(f"{HOSTILE}: expected one thing, found {HOSTILE}"),
        DataWarning(f"left out 1 row; {HOSTILE}"),
    ],
)
def test_every_message_is_printable(message: Exception) -> None:
    assert str(message).isprintable()
    assert str(pickle.loads(pickle.dumps(message))) == str(message)


def test_the_file_s_own_name_is_kept_for_programs() -> None:
    file = io.BytesIO(b"bad\n")
    file.name = HOSTILE
    with pytest.raises(DataError) as caught:
        data.read_run(file)
    assert caught.value.name == HOSTILE
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "error", [OSError(2, "No such file", f"{HOSTILE}.txt"), ValueError(f"x: expected y, found {HOSTILE}")]
)
def test_the_command_line_prints_no_control_characters(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        warnings.simplefilter("always")
        warnings.warn(f"mind {HOSTILE}", stacklevel=1)
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main(["fit"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert all(line.isprintable() and line.startswith("slatewise: ") for line in err.splitlines())
