"""An erased line does not come back from a buffer that was loaded before the erasure."""

import zlib
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy import Connection, select

from sync.db.tables import erased_lines, events, written
from sync.document import forgetting
from sync.document.capture import ADDED
from sync.log.intake import Intake
from sync.log.model import Draft, Origin, Query
from sync.log.withdrawn import REDACTED
from tests.integration.document_desk import AppCache, Desk, on_a_desk

HABITS = "### 工作习惯"
SECRET = "秘密口令是芝麻开门"
TYPED = "- 后来打的字"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path) as desk:
        yield desk


async def erase(desk: Desk, *event_ids: str) -> None:
    await desk.log.record(forgetting.wishes(event_ids, desk.redactor))
    await desk.memory.settle()


async def told_and_erased(desk: Desk) -> str:
    """The file as an editor loaded it before the erasure."""
    await desk.said("留下的")
    secret = await desk.say(SECRET)
    await desk.memory.settle()
    buffer = desk.text
    assert SECRET in buffer
    await erase(desk, secret)
    assert SECRET not in desk.text
    return buffer


def with_line(text: str, line: str = TYPED) -> str:
    return text.replace(f"{HABITS}\n", f"{HABITS}\n{line}\n", 1)


async def held(desk: Desk) -> str:
    """Every payload and every version."""

    def reading(connection: Connection) -> str:
        payloads = connection.execute(select(events.c.payload)).scalars()
        versions = connection.execute(select(written.c.bytes)).scalars()
        return "\n".join([*payloads, *(zlib.decompress(data).decode() for data in versions)])

    return await desk.database.read(reading)


async def is_gone(desk: Desk, words: str = SECRET) -> None:
    await desk.memory.settle()
    assert words not in desk.text
    assert words not in (await desk.memory.view()).text
    assert words not in await held(desk)


async def test_a_stale_buffer_with_a_line_added_adds_that_line_alone(desk: Desk) -> None:
    buffer = await told_and_erased(desk)
    desk.text = with_line(buffer)
    await desk.memory.settle()
    assert f"{TYPED}\n" in desk.text
    assert "用户问：留下的\n- AI 答：好的\n" in desk.text, "the answer that reads like the erased one"
    await is_gone(desk)
    (added,) = [event for event in await desk.hand_events() if event.type == ADDED]
    assert added.payload["text"] == TYPED


async def test_a_stale_buffer_with_other_line_endings_and_markers_adds_nothing(desk: Desk) -> None:
    buffer = await told_and_erased(desk)
    desk.file.write_bytes(buffer.replace("- 用户问", "*  用户问").replace("\n", "  \r\n").encode())
    await desk.memory.settle()
    await is_gone(desk)
    assert not [event for event in await desk.hand_events() if event.type == ADDED]


async def test_an_editor_that_never_loads_again_adds_nothing_with_its_next_save(desk: Desk) -> None:
    buffer = await told_and_erased(desk)
    for number in range(3):
        buffer = with_line(buffer, f"{TYPED} {number}")
        desk.text = buffer
        await desk.memory.settle()
        desk.restart()
        await is_gone(desk)
    assert all(f"{TYPED} {number}\n" in desk.text for number in range(3))


async def test_a_stale_buffer_whose_last_line_names_no_version_adds_nothing(desk: Desk) -> None:
    buffer = await told_and_erased(desk)
    desk.text = with_line("".join(line for line in buffer.splitlines(keepends=True) if "最后更新" not in line))
    await desk.memory.settle()
    await is_gone(desk)
    assert f"{TYPED}\n" in desk.text


@pytest.mark.parametrize("kept_in_memory", [True, False], ids=["same process", "after a restart"])
async def test_a_page_that_an_app_loaded_before_the_erasure_adds_nothing(desk: Desk, *, kept_in_memory: bool) -> None:
    await desk.said("留下的")
    secret = await desk.say(SECRET)
    await desk.memory.settle()
    view = await desk.memory.view()
    await erase(desk, secret)
    if not kept_in_memory:
        desk.restart()
    edited = await desk.memory.save(with_line(view.text), view.sha256, meant=False)
    await is_gone(desk)
    await desk.memory.save(with_line(view.text, f"{TYPED}!"), edited.sha256, meant=True)
    await is_gone(desk)
    assert f"{TYPED}!\n" in desk.text


async def test_a_page_that_showed_an_exchange_before_any_version_had_it_adds_nothing(desk: Desk) -> None:
    await desk.said("留下的")
    secret = await desk.say(SECRET)
    view = await desk.memory.view()
    assert SECRET in view.text
    await erase(desk, secret)
    await desk.memory.save(with_line(view.text), view.sha256, meant=False)
    await is_gone(desk)


async def test_the_same_words_typed_into_a_later_version_are_new(desk: Desk) -> None:
    await told_and_erased(desk)
    desk.type_under(HABITS, f"- 用户问：{SECRET}")
    await desk.memory.settle()
    assert f"{HABITS}\n- 用户问：{SECRET}\n" in desk.text
    view = await desk.memory.view()
    await erase(desk, (await desk.hand_events())[-1].event_id)
    await is_gone(desk)
    loaded = await desk.memory.view()
    await desk.memory.save(with_line(view.text), view.sha256, meant=False)
    await is_gone(desk)
    await desk.memory.save(with_line(loaded.text, f"- 用户问：{SECRET}"), loaded.sha256, meant=False)
    assert f"- 用户问：{SECRET}\n" in desk.text


async def test_a_line_that_was_corrected_stays_corrected(desk: Desk) -> None:
    await desk.said("留下的")
    secret = await desk.say(SECRET)
    await desk.memory.settle()
    buffer = desk.text
    (event,) = [event for event in (await desk.log.read(Query())).events if event.event_id == secret]
    payload = {**event.payload, "question": "秘密口令是[密码]"}
    told = desk.redactor.naming("event_id", secret, {"event_id": secret, "payload": payload})
    await desk.log.record([Draft(REDACTED, told, origin=Origin.TOOL)])
    await erase(desk, secret)
    assert "秘密口令是[密码]" in desk.text
    desk.text = with_line(buffer)
    await desk.memory.settle()
    await is_gone(desk)
    assert desk.text.count("秘密口令是[密码]") == 1
    assert f"{TYPED}\n" in desk.text


class TestTheAppsCache:
    async def test_what_the_app_writes_over_its_old_row_adds_nothing(self, tmp_path: Path) -> None:
        cache = AppCache(tmp_path / "app.db")
        async with on_a_desk(tmp_path / "a", app_cache=cache.path) as desk:
            await desk.said("留下的")
            secret = await desk.say(SECRET)
            await desk.memory.settle()
            buffer = desk.text
            cache.save(buffer)
            await desk.memory.settle()
            await erase(desk, secret)
            for number in range(2):
                buffer = with_line(buffer, f"{TYPED} {number}")
                cache.save(buffer)
                await desk.memory.settle()
                await is_gone(desk)
                assert f"{TYPED} {number}\n" in desk.text

    async def test_a_row_that_is_read_for_the_first_time_adds_nothing(self, tmp_path: Path) -> None:
        cache = AppCache(tmp_path / "app.db")
        async with on_a_desk(tmp_path / "a", app_cache=cache.path) as desk:
            buffer = await told_and_erased(desk)
            cache.save(with_line(buffer))
            await desk.memory.settle()
            await is_gone(desk)
            assert f"{TYPED}\n" in desk.text
            cache.save(with_line(desk.text, f"- 用户问：{SECRET}"))
            await desk.memory.settle()
            assert f"- 用户问：{SECRET}\n" in desk.text, "typed into what the app has loaded since"


class TestOtherDevices:
    async def test_the_stale_editor_of_another_device_adds_nothing(self, tmp_path: Path) -> None:
        async with (
            on_a_desk(tmp_path / "a", sharing="user") as here,
            on_a_desk(tmp_path / "b", sharing="user", device="device-b") as there,
        ):
            await here.said("留下的")
            secret = await here.say(SECRET)
            await here.memory.settle()
            await there.hear(here)
            buffer = there.text
            assert SECRET in buffer
            await erase(here, secret)
            await there.hear(here)
            there.text = with_line(buffer)
            await there.memory.settle()
            await here.hear(there)
            for desk in (here, there):
                await is_gone(desk)
                assert f"{TYPED}\n" in desk.text

    @pytest.mark.parametrize("sharing", ["device", "user"])
    async def test_an_edit_made_before_the_device_heard_of_the_erasure_goes_with_the_line(
        self, tmp_path: Path, sharing: Literal["device", "user"]
    ) -> None:
        async with (
            on_a_desk(tmp_path / "a", sharing=sharing) as here,
            on_a_desk(tmp_path / "b", sharing=sharing, device="device-b") as there,
        ):
            await there.said("留下的")
            there.type_under(HABITS, f"- {SECRET}")
            await there.memory.settle()
            (added,) = [event for event in await there.hand_events() if event.type == ADDED]
            await here.hear(there)
            await forgetting.ask(here.log, Intake(here.redactor), [added.event_id])
            await here.memory.settle()
            there.replace(f"- {SECRET}", f"- {SECRET}，改过")
            await there.memory.settle()
            await there.hear(here)
            await is_gone(there)
            await here.hear(there)
            assert SECRET not in await held(here)


async def test_a_number_that_the_log_knows_redacted_is_recognised(desk: Desk) -> None:
    await desk.said("一")
    desk.type_under(HABITS, "- 手机号 13812345678")
    await desk.memory.settle()
    buffer = desk.text
    (added,) = [event for event in await desk.hand_events() if event.type == ADDED]
    await erase(desk, added.event_id)
    redacted = desk.redactor.for_leaving().clean("- 手机号 13812345678")
    assert redacted != "- 手机号 13812345678"
    desk.text = with_line(buffer.replace("- 手机号 13812345678", redacted), "- 手机号 13912345678")
    await desk.memory.settle()
    assert redacted not in desk.text
    assert "- 手机号 13912345678\n" in desk.text, "another number is another line"


async def test_no_hash_of_an_erased_line_can_be_made_without_the_key(tmp_path: Path) -> None:
    hashes = []
    for name in ("a", "b"):
        async with on_a_desk(tmp_path / name, device=f"device-{name}") as desk:
            await told_and_erased(desk)
            hashes.append(await desk.database.read(lambda one: set(one.execute(select(erased_lines.c.hash)).scalars())))
    assert hashes[0]
    assert not hashes[0] & hashes[1]


@pytest.mark.parametrize("sharing", ["device", "user"])
async def test_no_hash_of_a_text_outlasts_it_in_the_log(tmp_path: Path, sharing: Literal["device", "user"]) -> None:
    async with on_a_desk(tmp_path, sharing=sharing) as desk:
        desk.clock.move(days=-40)
        await desk.said("一")
        desk.type_under(HABITS, "- 口令一")
        await desk.memory.settle()
        desk.replace("- 口令一", "- 口令二")
        await desk.memory.settle()
        desk.replace("- 口令二\n", "")
        await desk.memory.settle()
        secret = await desk.say(SECRET)
        await desk.memory.settle()
        desk.clock.move(days=40)
        desk.restart()
        await desk.memory.settle()
        texts = ["- 口令一", "- 口令二", f"- 用户问：{SECRET}"]
        hashes = [sha256(text.encode()).hexdigest() for text in texts]
        before = await held(desk)
        assert any(digest in before for digest in hashes)
        (added,) = [event for event in await desk.hand_events() if event.type == ADDED]
        await forgetting.ask(desk.log, Intake(desk.redactor), [added.event_id, secret])
        await desk.memory.settle()
        after = await held(desk)
        assert not [digest for digest in hashes if digest in after]
