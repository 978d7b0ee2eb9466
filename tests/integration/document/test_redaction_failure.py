"""If redaction fails, nothing is stored unredacted and nothing is lost: an edit stays in the file for a retry."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.errors import RedactionFailed
from sync.log.model import Query
from sync.redaction import SecretSpan, redactor
from tests.integration.document.harness import DocumentHarness, open_document_harness

SECRET = "13812345678"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as found:
        yield found


def broken(text: str) -> list[SecretSpan]:
    raise ValueError(text)


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("memory.db*"))


async def test_an_update_fails_and_nothing_of_it_is_stored(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as while_broken:
        while_broken.setattr(redactor, "DETECTORS", (broken,))
        with pytest.raises(RedactionFailed):
            await harness.record_exchange(f"打 {SECRET}")
    assert (await harness.log.read(Query())).events == ()
    assert SECRET.encode() not in on_disk(harness.file.parent)
    await harness.record_exchange(f"打 {SECRET}")
    assert len((await harness.log.read(Query())).events) == 1


async def test_a_hand_edit_stays_in_the_file_and_becomes_an_event_at_the_next_look(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.record_and_reconcile("一")
    harness.add_line_under("### 工作习惯", f"- 打 {SECRET}")
    typed = harness.text
    with monkeypatch.context() as while_broken:
        while_broken.setattr(redactor, "DETECTORS", (broken,))
        with pytest.raises(RedactionFailed):
            await harness.memory.reconcile()
    assert harness.text == typed
    assert await harness.manual_edit_events() == []
    assert SECRET.encode() not in on_disk(harness.file.parent)
    await harness.memory.reconcile()
    (event,) = await harness.manual_edit_events()
    assert SECRET not in str(event.payload)
    assert SECRET in harness.text
