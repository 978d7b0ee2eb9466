"""How much memory threads take for themselves."""

import ctypes
import sys
from typing import Final

M_ARENA_MAX: Final = -8  # of glibc's malloc.h


def limit_malloc_arenas() -> bool:
    """Let all threads of the process allocate from one heap; call it before the first is started. Whether it did.

    glibc gives each thread a heap of its own, so that many threads need not wait for each other. Ours mostly wait for a
    disk or a server, and what is imported in a thread would stay beside what the first heap has free: 1 MB of an idle
    sidecar. Other C libraries have one heap anyway, and nothing is done.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_ARENA_MAX, 1))
