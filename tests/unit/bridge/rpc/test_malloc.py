"""One heap for all threads, where the C library would give each its own."""

import platform
import sys

from bridge.rpc.malloc import limit_malloc_arenas


def test_glibc_takes_the_wish_and_others_are_left_alone() -> None:
    asked = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    assert limit_malloc_arenas() is asked
