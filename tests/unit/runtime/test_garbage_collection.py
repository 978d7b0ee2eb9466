"""The collector rests during imports and at exit."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sync.runtime.garbage_collection import paused_collection

AT_EXIT = """
import gc
from sync.runtime.garbage_collection import skip_collection_at_exit
class Cycle:
    def __init__(self): self.itself = self
    def __del__(self): print("collected")
skip_collection_at_exit()
Cycle()
"""


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_nothing_is_collected_during_imports_and_what_they_made_is_frozen() -> None:
    before = gc.get_freeze_count()
    with paused_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > before


def test_collections_go_on_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), paused_collection():
        raise ImportError
    assert gc.isenabled()


def test_the_last_collection_of_a_process_is_skipped() -> None:
    finished = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True)
    assert finished.stdout == ""
