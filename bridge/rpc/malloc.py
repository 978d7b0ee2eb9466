"""How the C library's allocator keeps memory for a process."""

import ctypes
import sys
from typing import Final

M_MMAP_THRESHOLD: Final = -3  # these two are of glibc's malloc.h
M_ARENA_MAX: Final = -8
LARGE_BLOCK: Final = 256 * 1024  # bytes; the text of a document of some thousand exchanges


def configure_malloc() -> bool:
    """Let all threads share one heap, and large blocks go back at once. Call it before the first thread is started.

    glibc gives each thread a heap of its own, so that many threads need not wait for each other. Ours mostly wait for a
    disk or a server, and what is imported in a thread would stay beside what the first heap has free: 1 MB of an idle
    sidecar. Freed blocks that are as large as a document would leave holes in the heap, which small objects then split
    (docs/decisions/006-memory-of-a-long-document.md). Return False for other C libraries, which have neither setting.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all((mallopt(M_ARENA_MAX, 1), mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)))
