"""One heap for all threads, where the C library would give each its own."""

import platform
import sys

from bridge.rpc.heap import share_one_heap


def test_glibc_takes_the_wish_and_others_are_left_alone() -> None:
    asked = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    assert share_one_heap() is asked
