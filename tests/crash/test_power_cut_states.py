"""Every state of the folder that POSIX allows after a power cut while the document was written: it is made up for.

The document is written to a temporary file, which is flushed, gets the name of what will be taken out, and is
exchanged with the old one (a first one is renamed); then the folder is flushed. Before the folder's flush each name may
lie on the disk or not, and before the file's its bytes may be there in part.
A zero-length or mixed document is no legal state: its bytes were flushed before the name was theirs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.log.model import Query
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from sync.system.atomic_swap import DISPLACED_SUFFIX
from sync.system.files import PRIVATE_FILE
from tests.acceptance.environment import question_counts
from tests.proof import first_in_test
from tests.support import app_settings

TEMPORARY: Final = ".memory.md.0a1b2c3d.tmp"
OUT: Final = f".memory.md.0a1b2c3d{DISPLACED_SUFFIX}"
WRITTEN: Final = {"no temporary file": None, "empty": 0.0, "a byte": 1e-9, "half": 0.5, "whole": 1.0}


@dataclass(frozen=True)
class State:
    """`file`: old, new, or none if there was none before; `temporary`: how much of the temporary file is there.

    `aside`: the file beside it, with what was moved out.
    """

    before: bool
    file: str
    temporary: str
    aside: str = "nothing"

    def __str__(self) -> str:
        write = "a later" if self.before else "the first"
        return f"{write} write: {self.file} file, temporary {self.temporary}, {self.aside} aside"


def legal() -> Iterator[State]:
    for before in (True, False):
        for temporary in WRITTEN:
            yield State(before, "old" if before else "no", temporary)
        for temporary in ("no temporary file", "whole"):  # the new name is flushed, the removal of the other may not be
            yield State(before, "new", temporary)
    for file in ("old", "new"):
        for aside in ("old", "new"):
            yield State(before=True, file=file, temporary="no temporary file", aside=aside)


@pytest.mark.parametrize("state", first_in_test(legal(), 4), ids=str)
async def test_after_a_power_cut_the_file_is_whole_nothing_is_lost_and_nothing_is_left_over(
    tmp_path: Path, state: State
) -> None:
    settings = app_settings(tmp_path)
    old, new = await version_stored_and_not_written(settings, before=state.before)
    leave(tmp_path, state, old, new)
    async with open_app(settings, AppMode.SIDECAR) as app:
        await app.reconcile_memory_file()
        expected = {"早先的问题": 1, "刚才的问题": 1} if state.before else {"刚才的问题": 1}
        assert question_counts(settings.memory_file.read_text("utf-8")) == expected
        assert settings.memory_file.read_bytes() == new
        assert [event.type for event in (await app.log.read(Query())).events] == ["exchange_recorded"] * len(expected)
        assert app.document.notices == set()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "memory.md"]


async def version_stored_and_not_written(settings: Settings, *, before: bool) -> tuple[bytes | None, bytes]:
    """The bytes that were in the file, and those of the version that the database has by now."""
    if before:
        async with open_app(settings, AppMode.HELPER) as app:
            await say(app, "早先的问题")
    old = settings.memory_file.read_bytes() if before else None
    async with open_app(settings, AppMode.GUEST) as app:
        await say(app, "刚才的问题")
        version = await app.document.versions.catch_up()
    assert version is not None
    return old, version.snapshot.document.data


async def say(app: App, question: str) -> None:
    await app.memory_service.update(ExchangeInput(question, "好"))


def leave(folder: Path, state: State, old: bytes | None, new: bytes) -> None:
    """Make the folder what the power cut left."""
    path = folder / "memory.md"
    assert (path.read_bytes() if path.exists() else None) == old
    if state.file == "new":
        path.write_bytes(new)
    aside = {"old": old, "new": new}.get(state.aside)
    if aside is not None:
        (folder / OUT).write_bytes(aside)
    written = WRITTEN[state.temporary]
    if written is not None:
        temporary = folder / TEMPORARY
        temporary.write_bytes(new[: math.ceil(written * len(new))])
        temporary.chmod(PRIVATE_FILE)
