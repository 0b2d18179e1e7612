"""Loops that tell how far they are."""

import pytest

from slatewise.core.running.progress import listening, tell, track


class Diary:
    def __init__(self):
        self.lines = []

    def begin(self, what, total):
        self.lines.append(("begin", what, total))
        return len(self.lines)

    def advance(self, loop):
        self.lines.append(("advance", loop))

    def end(self, loop):
        self.lines.append(("end", loop))

    def tell(self, text):
        self.lines.append(("tell", text))


def test_a_loop_is_the_loop_itself_where_nobody_listens():
    assert list(track(range(3), "round")) == [0, 1, 2]
    tell("nobody hears this")


def test_loops_are_told_from_begin_to_end():
    diary = Diary()
    with listening(diary):
        for item in track(["a", "b"], "letter"):
            tell(item)
    assert diary.lines == [
        ("begin", "letter", 2),
        ("tell", "a"),
        ("advance", 1),
        ("tell", "b"),
        ("advance", 1),
        ("end", 1),
    ]


def test_the_total_of_a_generator_is_given_or_unknown():
    diary = Diary()
    with listening(diary):
        list(track(iter("ab"), "letter"))
        list(track(iter("ab"), "letter", total=2))
    begun = [line for line in diary.lines if line[0] == "begin"]
    assert begun == [("begin", "letter", None), ("begin", "letter", 2)]


def test_a_loop_that_breaks_is_taken_away_and_the_listener_goes_with_its_block():
    diary = Diary()

    def broken():
        for _ in track(range(3), "round"):
            raise RuntimeError

    with listening(diary), pytest.raises(RuntimeError):
        broken()
    assert diary.lines[-1] == ("end", 1)
    list(track(range(3), "round"))
    assert diary.lines[-1] == ("end", 1)
