"""The settings of the allocator."""

import platform
import sys

from bridge.rpc.malloc import configure_malloc


def test_glibc_gets_the_settings_and_others_are_left_alone() -> None:
    asked = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    assert configure_malloc() is asked
