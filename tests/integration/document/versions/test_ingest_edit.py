"""Which version an edit is compared with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.document.markdown.parse import parse
from sync.document.versions.writer import EditResult
from sync.system.digests import sha256
from tests.integration.document.harness import DocumentHarness, open_document_harness


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path) as opened:
        yield opened


async def kinds_of(harness: DocumentHarness, text: str, *, confirmed: bool = False) -> list[str]:
    """The operations of an edit, by their names."""
    data = text.encode()
    edited = await harness.memory.versions.ingest_file(sha256(data), parse(data), confirmed=confirmed)
    assert isinstance(edited, EditResult)
    return [type(operation).__name__ for operation in edited.operations]


async def test_the_label_in_the_footer_names_the_base(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    loaded = harness.text
    harness.clock.advance(minutes=1)
    await harness.record_and_reconcile("二")
    assert await kinds_of(harness, loaded.replace("- 用户问：一\n", "")) == ["EntryRemoved"], "二 was not loaded"


async def test_without_a_label_the_lines_decide(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一", "二")
    body, _, _ = harness.text.rpartition("*最后更新")
    removed = body.replace("- 用户问：一\n", "") + "*再见*\n"
    assert await kinds_of(harness, removed) == ["EntryAdded", "EntryRemoved"]


async def test_a_first_file_has_no_base(harness: DocumentHarness) -> None:
    assert await kinds_of(harness, "# 记忆\n\n- 早起\n") == ["EntryAdded"]


async def test_a_confirmed_edit_is_compared_with_the_newest_version(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一", "二", "三", "四")
    assert await kinds_of(harness, "# 记忆\n\n- 早起\n", confirmed=True) == ["EntryAdded", *["EntryRemoved"] * 8]
