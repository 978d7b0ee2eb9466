"""Which version an edit is compared with, and the reason that its result gives."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.document.markdown.parse import parse
from sync.document.versions.writer import BaseReason, EditResult
from sync.system.digests import sha256
from tests.integration.document.harness import DocumentHarness, open_document_harness


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path) as opened:
        yield opened


async def ingest(harness: DocumentHarness, text: str, *, confirmed: bool = False) -> EditResult:
    data = text.encode()
    edited = await harness.memory.versions.ingest_file(sha256(data), parse(data), confirmed=confirmed)
    assert edited is not None
    return edited


def reason_of(result: EditResult) -> BaseReason | None:
    return None if result.base is None else result.base.reason


async def test_the_label_in_the_footer_names_the_base(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    loaded = harness.text
    harness.clock.advance(minutes=1)
    await harness.record_and_reconcile("二")

    result = await ingest(harness, loaded.replace("用户问：一", "用户问：壹"))

    assert reason_of(result) is BaseReason.NAMED
    assert result.base is not None
    assert result.base.version is not None
    assert result.base.version.snapshot.document.text == loaded


async def test_without_a_label_the_lines_decide(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一", "二")
    body, _, _ = harness.text.rpartition("*最后更新")

    result = await ingest(harness, body.replace("用户问：一", "用户问：壹") + "*再见*\n")

    assert reason_of(result) is BaseReason.INFERRED


async def test_a_first_file_has_no_base(harness: DocumentHarness) -> None:
    result = await ingest(harness, "# 记忆\n\n- 早起\n")

    assert reason_of(result) is BaseReason.UNKNOWN
    assert [type(operation).__name__ for operation in result.operations] == ["EntryAdded"]


async def test_a_confirmed_edit_is_compared_with_the_newest_version(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一", "二", "三", "四")

    result = await ingest(harness, "# 记忆\n\n- 早起\n", confirmed=True)

    assert reason_of(result) is BaseReason.CONFIRMED
