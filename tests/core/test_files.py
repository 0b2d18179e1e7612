"""Outputs appear whole or not at all."""

import gzip
import lzma
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from slatewise.core.files import atomic_file, atomic_path


def test_replaces_only_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_path(target) as temporary:
        temporary.with_name("none").rename(target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]
    with atomic_path(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_content_reaches_the_disk_before_the_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[bool, bool]] = []

    def record(handle: int) -> None:
        flushed.append((stat.S_ISDIR(os.fstat(handle).st_mode), (tmp_path / "out.txt").exists()))

    monkeypatch.setattr(os, "fsync", record)
    with atomic_path(tmp_path / "out.txt") as temporary:
        temporary.write_text("new")
    assert flushed == [(False, False), (True, True)]


def test_keeps_the_mode_and_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "out.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_gets_the_mode_of_a_plain_open(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with atomic_path(tmp_path / "atomic"):
        pass
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_nothing_is_left_where_the_target_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"), atomic_path(tmp_path / "folder"):
        pass
    assert os.listdir(tmp_path) == ["folder"]


def test_a_missing_folder_is_an_error_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "none" / "out.txt"):
        pytest.fail("the block must not start")


@pytest.mark.parametrize(("ending", "unpack"), [("", bytes), (".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_compresses_by_ending_with_the_same_bytes_every_time(tmp_path: Path, ending: str, unpack: object) -> None:
    contents = []
    for name in ("a.txt", "b.txt"):
        with atomic_file(tmp_path / (name + ending)) as file:
            file.write(b"42\n" * 100)
        contents.append((tmp_path / (name + ending)).read_bytes())
    assert callable(unpack)
    assert unpack(contents[0]) == b"42\n" * 100
    assert contents[0] == contents[1]


def test_errors_name_the_path_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.txt"
    with pytest.raises(FileNotFoundError) as error, atomic_path(path):
        pass
    assert error.value.filename == str(path)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_plain_file_is_not_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    target = tmp_path / "there"
    make(target)
    kind = stat.S_IFMT(target.stat().st_mode)
    with pytest.raises(OSError, match="expected a plain file"), atomic_path(target):
        pass
    assert stat.S_IFMT(target.stat().st_mode) == kind
    assert os.listdir(tmp_path) == ["there"]


def killed_writer(target: Path) -> None:
    """Run a process that dies by SIGKILL while it writes the target."""
    script = (
        "import os, signal, sys\n"
        "from slatewise.core.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert died.returncode == -signal.SIGKILL


def test_what_a_killed_writer_left_is_removed_by_the_next_of_that_target(tmp_path: Path) -> None:
    for name in ("out.txt", "out.txt.gz"):
        killed_writer(tmp_path / name)
    assert len(os.listdir(tmp_path)) == 2
    (other,) = tmp_path.glob(".out.txt.gz.*.part")
    mine = tmp_path / ".out.txt.notours.part"
    mine.write_text("mine")
    with atomic_path(tmp_path / "out.txt") as temporary:
        temporary.write_text("whole")
        assert sorted(os.listdir(tmp_path)) == sorted([other.name, mine.name, temporary.name])
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, mine.name, "out.txt"])


def test_the_file_of_a_living_writer_stays(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "out.txt") as first:
        first.write_text("first")
        with atomic_path(tmp_path / "out.txt") as second:
            second.write_text("second")
            assert first.read_text() == "first"
        assert (tmp_path / "out.txt").read_text() == "second"
        assert first.exists()
    assert (tmp_path / "out.txt").read_text() == "first"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_many_writers_of_one_target_do_not_take_each_other_s_files(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with atomic_file(tmp_path / "out.txt") as file:
            file.write(b"%d" % number * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    assert os.listdir(tmp_path) == ["out.txt"]
    assert len(set((tmp_path / "out.txt").read_text())) <= 2


def test_a_link_or_a_folder_of_such_a_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".out.txt.0123abcd.part").symlink_to(tmp_path / "precious")
    (tmp_path / ".out.txt.4567abcd.part").mkdir()
    with atomic_path(tmp_path / "out.txt") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "precious").read_text() == "precious"
    assert len(os.listdir(tmp_path)) == 4
