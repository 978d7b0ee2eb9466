"""An erased line does not come back from a buffer that was loaded before the erasure."""

import zlib
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import select

from sync.db.engine import Transaction
from sync.db.schema import erased_lines, events, written
from sync.document.erasure import erasure
from sync.log.event_types import ENTRY_ADDED, PAYLOAD_REDACTED
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft, Origin, Query
from tests.integration.document.harness import DocumentHarness, FakeAppCache, open_document_harness

HABITS = "### 工作习惯"
SECRET = "秘密口令是芝麻开门"
TYPED = "- 后来打的字"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path) as harness:
        yield harness


async def erase(harness: DocumentHarness, *event_ids: str) -> None:
    await harness.log.append(erasure.request_drafts(event_ids, harness.redactor))
    await harness.memory.reconcile()


async def told_and_erased(harness: DocumentHarness) -> str:
    """The file as an editor loaded it before the erasure."""
    await harness.record_and_reconcile("留下的")
    secret = await harness.record_exchange(SECRET)
    await harness.memory.reconcile()
    buffer = harness.text
    assert SECRET in buffer
    await erase(harness, secret)
    assert SECRET not in harness.text
    return buffer


def with_line(text: str, line: str = TYPED) -> str:
    return text.replace(f"{HABITS}\n", f"{HABITS}\n{line}\n", 1)


async def held(harness: DocumentHarness) -> str:
    """Every payload and every version."""

    def reading(connection: Transaction) -> str:
        payloads = connection.execute(select(events.c.payload)).scalars()
        versions = connection.execute(select(written.c.bytes)).scalars()
        return "\n".join([*payloads, *(zlib.decompress(data).decode() for data in versions)])

    return await harness.database.read(reading)


async def is_gone(harness: DocumentHarness, words: str = SECRET) -> None:
    await harness.memory.reconcile()
    assert words not in harness.text
    assert words not in (await harness.memory.view()).text
    assert words not in await held(harness)


async def test_a_stale_buffer_with_a_line_added_adds_that_line_alone(harness: DocumentHarness) -> None:
    buffer = await told_and_erased(harness)
    harness.text = with_line(buffer)
    await harness.memory.reconcile()
    assert f"{TYPED}\n" in harness.text
    assert "用户问：留下的\n- AI 答：好的\n" in harness.text, "the answer that reads like the erased one"
    await is_gone(harness)
    (added,) = [event for event in await harness.manual_edit_events() if event.type == ENTRY_ADDED]
    assert added.payload["text"] == TYPED


async def test_a_stale_buffer_with_other_line_endings_and_markers_adds_nothing(harness: DocumentHarness) -> None:
    buffer = await told_and_erased(harness)
    harness.file.write_bytes(buffer.replace("- 用户问", "*  用户问").replace("\n", "  \r\n").encode())
    await harness.memory.reconcile()
    await is_gone(harness)
    assert not [event for event in await harness.manual_edit_events() if event.type == ENTRY_ADDED]


async def test_an_editor_that_never_loads_again_adds_nothing_with_its_next_save(harness: DocumentHarness) -> None:
    buffer = await told_and_erased(harness)
    for number in range(3):
        buffer = with_line(buffer, f"{TYPED} {number}")
        harness.text = buffer
        await harness.memory.reconcile()
        harness.restart()
        await is_gone(harness)
    assert all(f"{TYPED} {number}\n" in harness.text for number in range(3))


async def test_a_stale_buffer_whose_last_line_names_no_version_adds_nothing(harness: DocumentHarness) -> None:
    buffer = await told_and_erased(harness)
    harness.text = with_line("".join(line for line in buffer.splitlines(keepends=True) if "最后更新" not in line))
    await harness.memory.reconcile()
    await is_gone(harness)
    assert f"{TYPED}\n" in harness.text


@pytest.mark.parametrize("kept_in_memory", [True, False], ids=["same process", "after a restart"])
async def test_a_page_that_an_app_loaded_before_the_erasure_adds_nothing(
    harness: DocumentHarness, *, kept_in_memory: bool
) -> None:
    await harness.record_and_reconcile("留下的")
    secret = await harness.record_exchange(SECRET)
    await harness.memory.reconcile()
    view = await harness.memory.view()
    await erase(harness, secret)
    if not kept_in_memory:
        harness.restart()
    edited = await harness.memory.save(with_line(view.text), view.sha256, confirmed=False)
    await is_gone(harness)
    await harness.memory.save(with_line(view.text, f"{TYPED}!"), edited.sha256, confirmed=True)
    await is_gone(harness)
    assert f"{TYPED}!\n" in harness.text


async def test_a_page_that_showed_an_exchange_before_any_version_had_it_adds_nothing(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("留下的")
    secret = await harness.record_exchange(SECRET)
    view = await harness.memory.view()
    assert SECRET in view.text
    await erase(harness, secret)
    await harness.memory.save(with_line(view.text), view.sha256, confirmed=False)
    await is_gone(harness)


async def test_the_same_words_typed_into_a_later_version_are_new(harness: DocumentHarness) -> None:
    await told_and_erased(harness)
    harness.add_line_under(HABITS, f"- 用户问：{SECRET}")
    await harness.memory.reconcile()
    assert f"{HABITS}\n- 用户问：{SECRET}\n" in harness.text
    view = await harness.memory.view()
    await erase(harness, (await harness.manual_edit_events())[-1].event_id)
    await is_gone(harness)
    loaded = await harness.memory.view()
    await harness.memory.save(with_line(view.text), view.sha256, confirmed=False)
    await is_gone(harness)
    await harness.memory.save(with_line(loaded.text, f"- 用户问：{SECRET}"), loaded.sha256, confirmed=False)
    assert f"- 用户问：{SECRET}\n" in harness.text


async def test_a_line_that_was_corrected_stays_corrected(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("留下的")
    secret = await harness.record_exchange(SECRET)
    await harness.memory.reconcile()
    buffer = harness.text
    (event,) = [event for event in (await harness.log.read(Query())).events if event.event_id == secret]
    payload = {**event.payload, "question": "秘密口令是[密码]"}
    told = harness.redactor.clean_payload_with_ids("event_id", secret, {"event_id": secret, "payload": payload})
    await harness.log.append([EventDraft(PAYLOAD_REDACTED, told, origin=Origin.TOOL)])
    await erase(harness, secret)
    assert "秘密口令是[密码]" in harness.text
    harness.text = with_line(buffer)
    await harness.memory.reconcile()
    await is_gone(harness)
    assert harness.text.count("秘密口令是[密码]") == 1
    assert f"{TYPED}\n" in harness.text


class TestTheAppsCache:
    async def test_what_the_app_writes_over_its_old_row_adds_nothing(self, tmp_path: Path) -> None:
        cache = FakeAppCache(tmp_path / "app.db")
        async with open_document_harness(tmp_path / "a", app_cache=cache.path) as harness:
            await harness.record_and_reconcile("留下的")
            secret = await harness.record_exchange(SECRET)
            await harness.memory.reconcile()
            buffer = harness.text
            cache.save(buffer)
            await harness.memory.reconcile()
            await erase(harness, secret)
            for number in range(2):
                buffer = with_line(buffer, f"{TYPED} {number}")
                cache.save(buffer)
                await harness.memory.reconcile()
                await is_gone(harness)
                assert f"{TYPED} {number}\n" in harness.text

    async def test_a_cloud_row_read_for_the_first_time_adds_no_erased_line(self, tmp_path: Path) -> None:
        cache = FakeAppCache(tmp_path / "app.db")
        async with open_document_harness(tmp_path / "a", app_cache=cache.path) as harness:
            buffer = await told_and_erased(harness)
            cache.save(with_line(buffer))
            await harness.memory.reconcile()
            await is_gone(harness)
            assert f"{TYPED}\n" in harness.text
            cache.save(with_line(harness.text, f"- 用户问：{SECRET}"))
            await harness.memory.reconcile()
            assert f"- 用户问：{SECRET}\n" in harness.text, "typed into what the app has loaded since"


class TestOtherDevices:
    async def test_an_edit_made_before_the_device_heard_of_the_erasure_goes_with_the_line(self, tmp_path: Path) -> None:
        async with (
            open_document_harness(tmp_path / "a") as here,
            open_document_harness(tmp_path / "b", device="device-b") as there,
        ):
            await there.record_and_reconcile("留下的")
            there.add_line_under(HABITS, f"- {SECRET}")
            await there.memory.reconcile()
            (added,) = [event for event in await there.manual_edit_events() if event.type == ENTRY_ADDED]
            await here.pull_from(there)
            await erasure.request(here.log, DraftBuilder(here.redactor), [added.event_id])
            await here.memory.reconcile()
            there.replace(f"- {SECRET}", f"- {SECRET}，改过")
            await there.memory.reconcile()
            await there.pull_from(here)
            await is_gone(there)
            await here.pull_from(there)
            assert SECRET not in await held(here)


async def test_a_number_that_the_log_knows_redacted_is_recognised(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    harness.add_line_under(HABITS, "- 手机号 13812345678")
    await harness.memory.reconcile()
    buffer = harness.text
    (added,) = [event for event in await harness.manual_edit_events() if event.type == ENTRY_ADDED]
    await erase(harness, added.event_id)
    redacted = harness.redactor.for_egress().clean("- 手机号 13812345678")
    assert redacted != "- 手机号 13812345678"
    harness.text = with_line(buffer.replace("- 手机号 13812345678", redacted), "- 手机号 13912345678")
    await harness.memory.reconcile()
    assert redacted not in harness.text
    assert "- 手机号 13912345678\n" in harness.text, "another number is another line"


async def test_no_hash_of_an_erased_line_can_be_made_without_the_key(tmp_path: Path) -> None:
    hashes = []
    for name in ("a", "b"):
        async with open_document_harness(tmp_path / name, device=f"device-{name}") as harness:
            await told_and_erased(harness)
            hashes.append(
                await harness.database.read(lambda one: set(one.execute(select(erased_lines.c.hash)).scalars()))
            )
    assert hashes[0]
    assert not hashes[0] & hashes[1]


async def test_no_hash_of_a_text_outlasts_it_in_the_log(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path) as harness:
        harness.clock.advance(days=-40)
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 口令一")
        await harness.memory.reconcile()
        harness.replace("- 口令一", "- 口令二")
        await harness.memory.reconcile()
        harness.replace("- 口令二\n", "")
        await harness.memory.reconcile()
        secret = await harness.record_exchange(SECRET)
        await harness.memory.reconcile()
        harness.clock.advance(days=40)
        harness.restart()
        await harness.memory.reconcile()
        texts = ["- 口令一", "- 口令二", f"- 用户问：{SECRET}"]
        hashes = [sha256(text.encode()).hexdigest() for text in texts]
        before = await held(harness)
        assert any(digest in before for digest in hashes)
        (added,) = [event for event in await harness.manual_edit_events() if event.type == ENTRY_ADDED]
        await erasure.request(harness.log, DraftBuilder(harness.redactor), [added.event_id, secret])
        await harness.memory.reconcile()
        after = await held(harness)
        assert not [digest for digest in hashes if digest in after]
