"""Files of a folder, and none outside."""

import os

import pytest

from slatewise.web.files import open_inside, send_file
from tests.web.asking import ask


@pytest.fixture
def folder(tmp_path):
    """photos/ with files and links, and a secret beside it."""
    photos = tmp_path / "photos"
    (photos / "deep").mkdir(parents=True)
    (tmp_path / "photos-of-others").mkdir()
    for name in ("secret.txt", "photos-of-others/x.png"):
        (tmp_path / name).write_bytes(b"secret")
    (photos / "a b.png").write_bytes(b"\x89PNG")
    (photos / "deep" / "c.ogg").write_bytes(bytes(range(100)))
    (photos / "page.html").write_text("<script>alert(1)</script>")
    (photos / "inside.png").symlink_to(photos / "a b.png")
    (photos / "out.png").symlink_to(tmp_path / "secret.txt")
    (photos / "out").symlink_to(tmp_path)
    (photos / "loop").symlink_to(photos / "loop")
    os.mkfifo(photos / "pipe.png")
    return photos


def get(folder, path, method="GET", headers=()):
    async def app(scope, receive, send):
        await send_file(scope, send, folder, path)

    return ask(app, method, "/", headers)


def test_files_inside_are_served(folder):
    answered = get(folder, "a b.png")
    assert (answered.status, answered.body) == (200, b"\x89PNG")
    assert answered.headers["content-type"] == "image/png"
    assert answered.headers["content-length"] == "4"
    assert "sandbox" in answered.headers["content-security-policy"]
    assert get(folder, "inside.png").body == b"\x89PNG"
    assert get(folder, "deep/c.ogg").headers["content-type"] == "audio/ogg"


def test_other_kinds_of_files_are_never_shown(folder):
    headers = get(folder, "page.html").headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment"


OUTSIDE = [
    "../secret.txt", "deep/../../secret.txt", "/etc/passwd", "out.png", "out/secret.txt", "loop", "pipe.png", "deep",
    "", ".", "..", "nothing.png", "a\0.png", "..\\secret.txt", "C:/secret.txt", "../photos-of-others/x.png",
    "deep/" * 3000 + "x", "a b.png/x",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: repr(path[:30]))
def test_nothing_outside_is_served(folder, path):
    answered = get(folder, path)
    assert (answered.status, answered.body) == (404, b"file: expected one that is there\n")
    with pytest.raises(FileNotFoundError, match="expected a file inside the folder"):
        open_inside(folder, path)


def test_a_folder_that_is_a_link_is_the_folder_it_leads_to(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert get(tmp_path / "link", "a b.png").status == 200
    assert get(tmp_path / "link", "out.png").status == 404


def test_a_file_swapped_while_it_is_opened_is_refused(folder, tmp_path, monkeypatch):
    """Between the look at the links and the opening, somebody puts a link to a secret there."""
    plain = os.open

    def swapped(path, *arguments):
        (folder / "a b.png").unlink()
        (folder / "a b.png").symlink_to(tmp_path / "secret.txt")
        return plain(path, *arguments)

    monkeypatch.setattr(os, "open", swapped)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(FileNotFoundError):
        open_inside(folder, "a b.png")
    monkeypatch.undo()
    if before:
        assert len(os.listdir("/proc/self/fd")) == before  # nothing is left open


WHOLE = bytes(range(100))


@pytest.mark.parametrize(
    ("wanted", "status", "body"),
    [
        (None, 200, WHOLE),
        ("bytes=0-9", 206, WHOLE[:10]),
        ("bytes=90-", 206, WHOLE[90:]),
        ("bytes=-5", 206, WHOLE[95:]),
        ("bytes=-500", 206, WHOLE),
        ("bytes=95-500", 206, WHOLE[95:]),
        ("bytes=100-", 416, None),
        ("bytes=9-2", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=-", 200, WHOLE),
        ("bytes=0-1,5-6", 200, WHOLE),
        ("lines=1-2", 200, WHOLE),
        ("bytes=99999999999999999999-", 200, WHOLE),
    ],
)
def test_parts_of_a_file(folder, wanted, status, body):
    answered = get(folder, "deep/c.ogg", headers=[] if wanted is None else [("range", wanted)])
    assert answered.status == status
    assert body is None or answered.body == body
    if status == 206:
        first = WHOLE.index(body)
        assert answered.headers["content-range"] == f"bytes {first}-{first + len(body) - 1}/100"


def test_what_a_browser_has_is_not_sent_again(folder):
    tag = get(folder, "a b.png").headers["etag"]
    answered = get(folder, "a b.png", headers=[("if-none-match", tag)])
    assert (answered.status, answered.body) == (304, b"")
    (folder / "a b.png").write_bytes(b"other")
    assert get(folder, "a b.png", headers=[("if-none-match", tag)]).status == 200


def test_heads_have_no_body(folder):
    answered = get(folder, "a b.png", "HEAD")
    assert (answered.status, answered.body, answered.headers["content-length"]) == (200, b"", "4")
