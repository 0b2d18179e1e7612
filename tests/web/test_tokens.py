"""Tokens are long, kept as digests, compared to the end, and end when they are revoked."""

import hmac

import pytest

from slatewise.labeling import Project
from slatewise.labeling.page.access_tokens import new_token, project_keys, project_secret
from slatewise.web import tokens
from slatewise.web.tokens import ROLES, Digests, Visitor, digest_of, form_token, is_form_token, make_token


def test_tokens_are_random_and_their_digests_are_not_them():
    made = [make_token() for _ in range(100)]
    assert len({one.token for one in made}) == len({one.digest for one in made}) == 100
    assert all(one.token not in one.digest and len(one.digest) == 64 for one in made)


def test_all_digests_are_compared_whichever_is_right(monkeypatch):
    compared = []
    plain = hmac.compare_digest
    monkeypatch.setattr(tokens.hmac, "compare_digest", lambda one, two: compared.append(two) or plain(one, two))
    made = [make_token() for _ in range(5)]
    keys = Digests(lambda: [(one.digest, Visitor("annotator", number)) for number, one in enumerate(made)])
    for number, one in enumerate(made):
        compared.clear()
        assert keys.find(one.token).who == number
        assert len(compared) == 5
    assert keys.find(make_token().token) is None


@pytest.mark.parametrize("token", ["", "x", "slw_", "slw_" + "é" * 43, "slw_" + "a" * 44, None])
def test_what_is_no_token_finds_nobody(token):
    token = f" {make_token().token}" if token is None else token
    assert Digests(lambda: [(digest_of(token), Visitor("owner"))]).find(token) is None


def test_each_role_may_what_those_before_it_may():
    assert ROLES == ("annotator", "reviewer", "owner")
    for place, role in enumerate(ROLES):
        assert [Visitor(role).may(other) for other in ROLES] == [place >= number for number in range(3)]


def test_form_tokens_belong_to_one_secret_and_one_visitor():
    right = form_token(b"secret", "token")
    assert is_form_token(b"secret", "token", right)
    for secret, token, presented in (
        (b"other", "token", right), (b"secret", "other", right), (b"secret", "token", None),
        (b"secret", "token", right[:-1]), (b"secret", "token", "é"),
    ):  # fmt: skip
        assert not is_form_token(secret, token, presented)


def test_a_project_keeps_digests_and_a_revoked_token_ends_at_once(tmp_path):
    with Project.create(tmp_path / "tags.db", ["sea"]) as project:
        token = new_token(project, "Ann", "owner")
        keys = project_keys(project)
        assert keys.find(token) == Visitor("owner", 1)
        for file in tmp_path.iterdir():
            assert token.encode() not in file.read_bytes()
        project.tokens.revoke(1)
        assert keys.find(token) is None
        secret = project_secret(project)
    with Project.open(tmp_path / "tags.db") as again:
        assert project_secret(again) == secret
        assert len(secret) == 32
