"""The proxy of a server, for any values that other programs put into the environment."""

import pytest

from sync.cloud.supabase.proxy import proxy_for

PROJECT = "https://abc.supabase.co"
CLASH = {"http": "http://127.0.0.1:7890", "https": "http://127.0.0.1:7890", "all": "socks5://127.0.0.1:7891"}


@pytest.mark.parametrize(
    ("url", "told", "proxy"),
    [
        (PROJECT, {}, None),
        (PROJECT, CLASH, "http://127.0.0.1:7890"),
        (PROJECT, {"all": "socks5://127.0.0.1:7891"}, "socks5://127.0.0.1:7891"),
        (PROJECT, {"all": "socks://127.0.0.1:7891/"}, "socks5://127.0.0.1:7891/"),
        (PROJECT, {"https": "", "all": "socks5h://me:pass@there:1080"}, "socks5h://me:pass@there:1080"),
        (PROJECT, {"https": "127.0.0.1:7890"}, "http://127.0.0.1:7890"),
        (PROJECT, {"http": "http://127.0.0.1:7890", "ftp": "http://127.0.0.1:7890"}, None),
        (PROJECT, {"all": "what?"}, "http://what?"),
    ],
)
def test_the_scheme_s_own_proxy_comes_before_the_one_for_all(url: str, told: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, told) == proxy


@pytest.mark.parametrize(
    ("url", "no_proxy", "left_out"),
    [
        (PROJECT, "*", True),
        (PROJECT, "localhost, 127.0.0.1,supabase.co", True),
        (PROJECT, ".supabase.co", True),
        (PROJECT, "ABC.Supabase.co", True),
        (PROJECT, "base.co,[::1],10.0.0.0/8,,", False),
        ("http://127.0.0.1:54321", "localhost,127.0.0.1,::1", True),
        ("http://127.0.0.1:54321", "127.0.0.1:54321", True),
        ("http://127.0.0.1:54321", "127.0.0.1:1", False),
        ("http://[::1]:54321", "::1", True),
        ("http://[::1]:54321", "[::1]", True),
        ("http://me@localhost:54321", "localhost", True),
    ],
)
def test_a_server_that_is_named_as_left_out_is_asked_directly(url: str, no_proxy: str, left_out: bool) -> None:
    assert (proxy_for(url, {**CLASH, "no": no_proxy}) is None) is left_out
