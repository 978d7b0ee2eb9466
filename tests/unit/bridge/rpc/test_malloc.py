"""One heap for all threads instead of one for each."""

import platform
import sys

from bridge.rpc.malloc import limit_malloc_arenas


def test_glibc_gets_the_setting_and_others_are_left_alone() -> None:
    asked = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    assert limit_malloc_arenas() is asked
