"""Listening logs: order, artists without ids, the split by days, bad lines."""

import gzip
from io import BytesIO

import numpy as np
import pytest

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import ListeningLog, read_listening_log


def play(user, stamp, artist="", name="", track="song"):
    return f"{user}\t{stamp}\t{artist}\t{name}\t\t{track}\n"


def read(*lines, **options):
    return read_listening_log(BytesIO("".join(lines).encode()), **options)


def test_plays_come_in_the_order_of_time_whoever_is_first_in_the_file():
    log = read(
        play("u2", "2009-05-02T10:00:00Z", "m1", "A"),
        play("u1", "2009-05-04T12:00:00Z", "m2", "B"),
        play("u2", "2009-05-01T10:00:00Z", "m2", "B"),
        play("u1", "2009-05-04T12:00:00Z", "m3", "C"),  # the same second: the later line is the earlier play
    )
    assert log.users.tolist() == [0, 0, 1, 1]
    assert [log.artist_names[artist] for artist in log.artists] == ["B", "A", "C", "B"]
    assert log.seconds[2] == log.seconds[3] == np.datetime64("2009-05-04T12:00:00").astype(int)


def test_an_artist_is_its_id_or_else_its_name():
    log = read(
        play("u", "2009-05-04T04:00:00Z", "m1", "Air"),
        play("u", "2009-05-04T03:00:00Z", "m2", "Air"),
        play("u", "2009-05-04T02:00:00Z", "", "Air"),
        play("u", "2009-05-04T01:00:00Z", "m1", "AIR"),
        play("u", "2009-05-04T00:00:00Z", "m3", ""),
    )
    assert log.artists.tolist() == [3, 0, 2, 1, 0]
    assert log.artist_names == ("Air", "Air", "Air", "m3")


def slow_split(log, every):
    """Pairs, one play after the other."""
    parts = ([], [])
    for i in range(len(log.users) - 1):
        days = [int(log.seconds[j]) // 86400 for j in (i, i + 1)]
        tested = [day % every == every - 1 for day in days]
        if log.users[i] == log.users[i + 1] and log.artists[i] != log.artists[i + 1] and tested[0] == tested[1]:
            parts[tested[0]].append((int(log.artists[i]), int(log.artists[i + 1])))
    return parts


def test_one_day_in_five_is_for_testing():
    rng = np.random.default_rng(0)
    users = np.sort(rng.integers(0, 6, 900))
    seconds = rng.integers(0, 30 * 86400, 900)
    order = np.lexsort((seconds, users))
    log = ListeningLog(users, seconds[order], rng.integers(0, 5, 900), tuple("abcde"))
    for every in (5, 2):
        parts = [list(zip(p.queries.tolist(), p.items.tolist(), strict=True)) for p in log.split_by_day(every)]
        assert parts == [*slow_split(log, every)]
    assert 0.1 < len(log.split_by_day()[1].queries) / len(log.split_by_day()[0].queries) < 0.4
    with pytest.raises(ValueError, match="every: expected a whole number >= 2, found 1"):
        log.split_by_day(1)


def test_files_may_be_packed_and_empty(tmp_path):
    path = tmp_path / "log.tsv.gz"
    path.write_bytes(gzip.compress(play("u", "2009-05-04T04:00:00Z", "m1", "Air").encode()))
    assert read_listening_log(path).artist_names == ("Air",)
    empty = read("")
    assert len(empty.users) == 0
    assert len(empty.split_by_day()[0].queries) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("u\t2009-05-04T04:00:00Z\tm\tname\ttrack\n", ":1:36: expected 6 fields between tabs, found 5"),
        (play("", "2009-05-04T04:00:00Z", "m"), ":1:1: expected a listener, found an empty field"),
        (play("user", "yesterday", "m"), ":1:6: expected a time such as 2009-05-04T23:08:57Z, found 'yesterday'"),
        (play("u", "2009-05-04T04:00:00Z"), ":1:24: expected an artist's id or name, found two empty fields"),
    ],
)
def test_bad_lines_are_placed(line, message):
    with pytest.raises(DataError) as error:
        read(line)
    assert str(error.value).endswith(message)
    with pytest.warns(DataWarning, match="left out 1 row"):
        log = read(line, play("u", "2009-05-04T04:00:00Z", "m1", "Air"), on_error="skip")
    assert len(log.users) == log.skipped.count == 1
