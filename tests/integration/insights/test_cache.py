"""The insights cache: up to date with the log, byte-identical after a rebuild, never written to the log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.insights.cache import CACHE_FILE, InsightsCache
from sync.insights.service import InsightsService
from sync.insights.state import decode
from sync.log import store as log_store
from tests.support import Device, new_server, open_device


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as opened:
        yield opened


def insights(device: Device, *, writes: bool = True) -> InsightsService:
    return InsightsService(device.log, device.folder / "insights.json", clock=device.clock, may_write_cache=writes)


async def correct(device: Device, text: str) -> str:
    given: dict[str, Any] = {"feedback_type": "correction", "content": text}
    drafts = [device.intake.build({"type": "user_feedback", "payload": given})]
    (recorded,) = await device.log.append(drafts)
    return recorded.event.event_id


async def texts(found: InsightsService) -> list[str]:
    return [item.text for item in await found.instincts(project_id=None, limit=100)]


async def test_the_cache_grows_with_the_log_and_a_rebuilt_one_has_the_same_bytes(device: Device) -> None:
    for number in range(5):
        await correct(device, f"规则 {number}")
        await insights(device).current_state()  # each another process
    cache = device.folder / "insights.json"
    grown = cache.read_bytes()
    kept = decode(grown)
    assert kept is not None
    newest = (await device.events())[-1]
    assert (kept.source_watermark, kept.source_event_id) == (newest.position, newest.event_id)
    await insights(device).rebuild()
    assert cache.read_bytes() == grown
    assert len(await device.events()) == 5, "nothing is written back"


async def test_what_is_forgotten_leaves_the_cache(device: Device) -> None:
    found = insights(device)
    secret = await correct(device, "忘掉这句")
    await correct(device, "留下这句")
    assert sorted(await texts(found)) == ["忘掉这句", "留下这句"]
    await device.log.append([device.intake.build_erasure([secret])])
    assert await texts(found) == ["留下这句"]
    kept = found.cache_path.read_bytes()
    assert "忘掉".encode() not in kept
    await device.database.write(lambda connection: log_store.erase_payloads(connection, [secret]))
    await insights(device).rebuild()
    assert found.cache_path.read_bytes() == kept


async def test_a_cache_older_than_an_erasure_is_deleted_before_insights_are_used(device: Device) -> None:
    cache = InsightsCache(device.log, device.folder / CACHE_FILE)
    await cache.remove_if_stale()
    secret = await correct(device, "忘掉这句")
    await insights(device).current_state()
    await cache.remove_if_stale()
    assert cache.path.exists(), "nothing was taken back"
    await device.log.append([device.intake.build_erasure([secret])])
    await cache.remove_if_stale()
    assert not cache.path.exists()
    await insights(device).current_state()
    await cache.remove_if_stale()
    assert cache.path.exists(), "it is newer than the wish"
    cache.path.write_bytes(b"junk")
    await cache.remove_if_stale()
    assert not cache.path.exists(), "it may hold anything"


async def test_what_is_forgotten_while_the_log_is_read_is_in_no_view(device: Device) -> None:
    for turns in range(12):  # of the loop: before, between and after what is read
        secret = await correct(device, f"忘掉 {turns}")
        found = insights(device, writes=False)
        reading = asyncio.create_task(found.current_state())
        for _ in range(turns):
            await asyncio.sleep(0)
        await device.log.append([device.intake.build_erasure([secret])])
        await reading
        assert await texts(found) == []


@pytest.mark.parametrize("junk", [b"", b"junk", b'{"format":1,"source_watermark":2,"source_event_id":"evt_other"}'])
async def test_a_cache_of_another_log_is_rebuilt(device: Device, junk: bytes) -> None:
    await correct(device, "一")
    await correct(device, "二")
    (device.folder / "insights.json").write_bytes(junk)
    assert sorted(await texts(insights(device))) == ["一", "二"]


async def test_who_does_not_hold_the_role_reads_and_writes_nothing(device: Device) -> None:
    await correct(device, "一")
    assert await texts(insights(device, writes=False)) == ["一"]
    assert not (device.folder / "insights.json").exists()
