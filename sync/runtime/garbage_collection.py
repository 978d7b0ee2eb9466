"""The collector of reference cycles, kept from work that frees nothing.

Imports make hundreds of thousands of objects that stay. Without these two functions a command spends a fifth of its
processor time on collections during its imports, and as much on the one at exit.
"""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing during the imports in this block, and never examine what exists after it again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def skip_collection_at_exit() -> None:
    """The operating system takes the memory back."""
    atexit.register(gc.freeze)
