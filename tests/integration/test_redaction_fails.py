"""A redaction that breaks lets nothing through and loses nothing: what was typed stays in the file for the next try."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.errors import RedactionFailed
from sync.log.model import Query
from sync.redaction import Span, redactor
from tests.integration.document_desk import Desk, on_a_desk

SECRET = "13812345678"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "home") as found:
        yield found


def broken(text: str) -> list[Span]:
    raise ValueError(text)


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("memory.db*"))


async def test_an_update_fails_and_nothing_of_it_is_stored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as while_broken:
        while_broken.setattr(redactor, "DETECTORS", (broken,))
        with pytest.raises(RedactionFailed):
            await desk.say(f"打 {SECRET}")
    assert (await desk.log.read(Query())).events == ()
    assert SECRET.encode() not in on_disk(desk.file.parent)
    await desk.say(f"打 {SECRET}")
    assert len((await desk.log.read(Query())).events) == 1


async def test_a_hand_edit_stays_in_the_file_and_becomes_an_event_at_the_next_look(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.said("一")
    desk.type_under("### 工作习惯", f"- 打 {SECRET}")
    typed = desk.text
    with monkeypatch.context() as while_broken:
        while_broken.setattr(redactor, "DETECTORS", (broken,))
        with pytest.raises(RedactionFailed):
            await desk.memory.settle()
    assert desk.text == typed
    assert await desk.hand_events() == []
    assert SECRET.encode() not in on_disk(desk.file.parent)
    await desk.memory.settle()
    (event,) = await desk.hand_events()
    assert SECRET not in str(event.payload)
    assert SECRET in desk.text
