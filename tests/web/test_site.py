"""Where a server stands, and whose request it is."""

import pytest

from slatewise.web.site import Site
from tests.web.asking import scope_of

ORIGINS = {
    "https://label.example.org": "https://label.example.org",
    "https://LABEL.example.org:443/": "https://label.example.org",
    "http://192.168.1.5:8000": "http://192.168.1.5:8000",
    "http://[fe80::1]:80": "http://[fe80::1]",
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_site_is_known_as_browsers_know_it(origin):
    site = Site.public(origin)
    assert site.origins == {ORIGINS[origin]}
    assert site.hosts == {ORIGINS[origin].partition("://")[2]}
    assert site.needs_token
    assert site.secure == origin.lower().startswith("https")


@pytest.mark.parametrize("origin", ["", "label.example.org", "ftp://x", "https://a/b", "https://a:x", "https://a b"])
def test_what_is_no_address_is_refused(origin):
    with pytest.raises(ValueError, match="origin: expected an address as https://label"):
        Site.public(origin)


def test_this_machine_needs_no_token():
    assert not Site.local(8000).needs_token
    assert Site.local(80).hosts == {"127.0.0.1", "localhost", "[::1]"}


FORWARDED = ("x-forwarded-for", "198.51.100.1, 203.0.113.9")


@pytest.mark.parametrize(
    ("behind_proxy", "client", "headers", "expected"),
    [
        (False, ("203.0.113.7", 1), [FORWARDED], "203.0.113.7"),
        (True, ("127.0.0.1", 1), [FORWARDED], "203.0.113.9"),
        (True, ("127.0.0.1", 1), [("x-forwarded-for", "203.0.113.1"), FORWARDED], "203.0.113.9"),
        (True, ("127.0.0.1", 1), [], "127.0.0.1"),
        (True, ("127.0.0.1", 1), [("x-forwarded-for", "nonsense")], "127.0.0.1"),
        (True, ("203.0.113.7", 1), [FORWARDED], "203.0.113.7"),
        (False, ("2001:db8:1:2:3:4:5:6", 1), [], "2001:db8:1:2::/64"),
        (False, None, [], "unknown"),
        (False, ("/run/socket", 0), [], "/run/socket"),
    ],
)
def test_a_client_is_whom_the_proxy_says_and_nobody_else(behind_proxy, client, headers, expected):
    site = Site.public("https://label.example.org", behind_proxy=behind_proxy)
    assert site.client(scope_of(headers=headers, client=client)) == expected
