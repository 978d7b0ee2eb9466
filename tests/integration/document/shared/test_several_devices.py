"""One document on several devices, with real files and databases; the test carries the events."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.cloud import replication_store as cloud_store
from sync.cloud.port import SyncAnswer
from sync.cloud.sync_decisions import PageVerdict
from sync.document import store as document_store
from sync.document.erasure.erasure import request
from sync.document.markdown.model import Version
from sync.document.markdown.version_labels import is_shared_label
from sync.errors import StorageError
from sync.log.ingest import DraftBuilder
from sync.log.model import Query, RemoteCursor
from sync.settings.sections import DocumentSettings
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import REDACTOR

HABITS = "### 工作习惯"
STYLE = "### 沟通风格"


class DeviceGroup:
    """Devices of one user; `level` gives every device all events."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.all: list[DocumentHarness] = []

    async def open(self, name: str, *, sharing: bool = True) -> DocumentHarness:
        mode = open_document_harness(
            self._folder / name, device=f"device-{name}", sharing="user" if sharing else "device"
        )
        harness = await self._stack.enter_async_context(mode)
        self.all.append(harness)
        return harness

    async def level(self, *, redacted: bool = False) -> str:
        """Assert that the files of all sharing devices are the same (after redaction), and return the text."""
        for harness in self.all:
            await harness.memory.reconcile()
        for _ in range(2):
            for harness in self.all:
                await harness.pull_from(*self.all)
        texts = {harness.text for harness in self.all if harness.options.sharing == "user"}
        if redacted:
            texts = {REDACTOR.clean(text) for text in texts}
        assert len(texts) == 1, texts
        return texts.pop()


@pytest.fixture
async def harnesses(tmp_path: Path) -> AsyncIterator[DeviceGroup]:
    async with AsyncExitStack() as stack:
        yield DeviceGroup(tmp_path, stack)


def reopen_with_sharing(harness: DocumentHarness, *, sharing: bool) -> None:
    """Start the device again with another setting."""
    harness.options = DocumentSettings(sharing="user" if sharing else "device")
    harness.restart()


async def newest(harness: DocumentHarness) -> Version:
    return await harness.newest_version()


class TestTogether:
    async def test_lines_of_each_device_are_in_both_files_byte_for_byte(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        await b.record_and_reconcile("乙问")
        await harnesses.level()
        a.add_line_under(HABITS, "- 早起")
        b.add_line_under(STYLE, "- 简短")
        text = await harnesses.level()
        for line in ("用户问：甲问", "用户问：乙问", f"{HABITS}\n- 早起\n", f"{STYLE}\n- 简短\n"):
            assert line in text
        assert is_shared_label((await newest(a)).label)

    async def test_edits_of_different_words_of_a_line_are_merged(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("一 二 三 四 五 六 七 八")
        await harnesses.level()
        a.replace("二", "贰")
        b.replace("七", "柒")
        text = await harnesses.level()
        assert "- 用户问：一 贰 三 四 五 六 柒 八\n" in text

    async def test_edits_of_the_same_word_both_stay(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("喝红茶")
        await harnesses.level()
        a.replace("红茶", "绿茶")
        b.replace("红茶", "白茶")
        text = await harnesses.level()
        assert text.count("喝绿茶") == text.count("喝白茶") == 1
        a.replace("- 用户问：喝绿茶\n", "")
        text = await harnesses.level()
        assert "喝绿茶" not in text
        assert "喝白茶" in text

    async def test_an_edit_wins_over_a_removal_and_an_uncontested_removal_stays(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("留下", "走开")
        await harnesses.level()
        a.replace("- 用户问：留下\n", "")
        a.replace("- 用户问：走开\n", "")
        b.replace("用户问：留下", "用户问：留下吧")
        text = await harnesses.level()
        assert "- 用户问：留下吧\n" in text
        assert "走开" not in text

    async def test_an_edit_made_before_an_erasure_arrived_goes_with_the_line_and_no_longer_quotes_it(
        self, harnesses: DeviceGroup
    ) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        a.add_line_under(HABITS, "- 早起以后先喝水，再给蓝色的猫喂食，然后看书")
        await harnesses.level()
        (typed,) = await a.manual_edit_events()
        await request(b.log, DraftBuilder(b.redactor), [typed.event_id])
        a.replace("蓝色的猫", "狗")
        assert "早起" not in await harnesses.level()
        for harness in harnesses.all:
            assert "蓝色的猫" not in str((await harness.log.read(Query())).events)

    @pytest.mark.parametrize("forgotten", ["绿茶", "白茶"])
    async def test_an_erased_conflict_copy_goes_from_every_device(self, harnesses: DeviceGroup, forgotten: str) -> None:
        """The lower line has an id that no event names; a device without the conflict has no such line."""
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("喝红茶")
        await harnesses.level()
        a.replace("红茶", "绿茶")
        b.replace("红茶", "白茶")
        assert forgotten in await harnesses.level()
        (edited,) = (event for event in await a.manual_edit_events() if forgotten in str(event.payload["text"]))
        await request(a.log, DraftBuilder(a.redactor), [edited.event_id])
        await harnesses.level()
        await harnesses.open("late")
        assert forgotten not in await harnesses.level()
        for harness in harnesses.all:
            assert forgotten not in str(
                await harness.database.read(partial(document_store.export_page, after=0, limit=100))
            )

    async def test_all_conflict_copies_of_an_erased_line_go_with_it(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        event_id = await a.record_exchange("我每天下午都喝红茶")
        await harnesses.level()
        a.replace("红茶", "绿茶")
        b.replace("红茶", "白茶")
        await harnesses.level()
        a.replace("白茶", "奶茶")  # the conflict copy conflicts with another edit
        b.replace("白茶", "花茶")
        assert (await harnesses.level()).count("喝") == 3
        await request(b.log, DraftBuilder(b.redactor), [event_id])
        await harnesses.open("c")
        assert "喝" not in await harnesses.level()
        for harness in harnesses.all:
            assert "喝" not in str((await harness.log.read(Query())).events)
            assert "喝" not in str(await harness.database.read(partial(document_store.export_page, after=0, limit=100)))

    async def test_a_stale_buffer_removes_nothing_of_other_devices(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("旧的")
        buffer = await harnesses.level()
        await b.record_and_reconcile("新的")
        b.add_line_under(HABITS, "- 早起")
        await harnesses.level()
        a.text = buffer.replace(f"{STYLE}\n", f"{STYLE}\n- 简短\n")
        text = await harnesses.level()
        for line in ("旧的", "新的", "- 早起", "- 简短"):
            assert line in text

    async def test_lines_that_changed_places_blank_lines_and_headings_are_shared(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("开始")
        a.add_line_under(HABITS, "- 一\n- 二\n- 三")
        await harnesses.level()
        b.replace("- 一\n- 二\n- 三", "- 三\n- 一\n\n- 二")
        b.replace("## 常用操作", "## 计划\n\n### 今年\n\n## 常用操作")
        text = await harnesses.level()
        assert f"{HABITS}\n- 三\n- 一\n\n- 二\n" in text
        assert "## 计划\n\n### 今年\n" in text
        a.replace("### 今年\n", "")
        assert "### 今年" not in await harnesses.level()

    async def test_a_heading_in_a_file_without_known_base_is_shared_and_a_removed_one_stays_removed(
        self, harnesses: DeviceGroup
    ) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("开始")
        a.replace("## 常用操作", "## 旧计划\n\n## 常用操作")
        await harnesses.level()
        a.replace("## 旧计划\n\n", "")
        await harnesses.level()
        b.text = "# AI 对话记忆\n\n## 旧计划\n\n## 新计划\n\n**最后更新**：2020/1/1 00:00:00\n"
        text = await harnesses.level()
        assert ("## 新计划\n" in text, "## 旧计划\n" in text) == (True, False)
        assert "用户问：开始" in text

    async def test_reconciling_again_writes_and_records_nothing(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        a.add_line_under(HABITS, "- 早起")
        await harnesses.level()
        before = [
            (harness.text, await harness.versions(), len(await harness.manual_edit_events())) for harness in (a, b)
        ]
        for harness in (a, b):
            harness.restart()
            await harness.memory.reconcile()
            await harness.memory.reconcile()
        assert [
            (harness.text, await harness.versions(), len(await harness.manual_edit_events())) for harness in (a, b)
        ] == before

    async def test_load_shows_received_events_before_the_file_does(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        await b.pull_from(a)
        await b.record_exchange("乙问")
        view = await b.memory.view()
        assert "用户问：甲问" in view.text
        assert "用户问：乙问" in view.text
        assert "乙问" not in b.text


class TestLabels:
    async def test_a_late_event_makes_another_label(self, harnesses: DeviceGroup) -> None:
        """The newest time stays the same, but a stale buffer must not be taken for the newer version."""
        a, b = await harnesses.open("a"), await harnesses.open("b")
        a.clock.advance(hours=-1)
        await a.record_and_reconcile("早先")
        await b.record_and_reconcile("后来")
        buffer = b.text
        await b.pull_from(a)
        labels = [label for label, _ in await b.versions()]
        assert len(set(labels)) == len(labels) == 2
        b.text = buffer.replace(f"{HABITS}\n", f"{HABITS}\n- 早起\n")
        text = await harnesses.level()
        for line in ("早先", "后来", "- 早起"):
            assert line in text

    async def test_the_time_is_that_of_the_newest_event_where_it_was_recorded(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        b.clock.advance(days=3)
        await harnesses.level()
        assert (await newest(b)).label == "2026/1/8 09:00:00 · 1"


class TestRawText:
    async def test_raw_text_stays_on_its_device_and_the_rest_is_the_same(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("开始")
        a.add_line_under(HABITS, "- 电话 13812345678 晚上打")
        await harnesses.level(redacted=True)
        assert "- 电话 13812345678 晚上打\n" in a.text
        assert "- 电话 [手机号] 晚上打\n" in b.text
        b.replace("- 电话 [手机号] 晚上打", "- 我的电话是 [手机号]，早上打")
        await harnesses.level(redacted=True)
        assert "- 我的电话是 13812345678，早上打\n" in a.text
        assert a.text.replace("13812345678", "[手机号]") == b.text
        a.replace("13812345678", "13987654321")
        await harnesses.level(redacted=True)
        assert "13987654321" in a.text
        b.replace("是 [手机号]", "没有了")
        assert "- 我的电话没有了，早上打\n" in await harnesses.level()

    async def test_a_heading_too(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("开始")
        a.replace("## 常用操作", "## 张三 13812345678\n\n- 同事\n\n## 常用操作")
        await harnesses.level(redacted=True)
        b.replace("- 同事", "- 老同事")
        await harnesses.level(redacted=True)
        assert "## 张三 13812345678\n\n- 老同事\n" in a.text
        assert "## 张三 [手机号]\n\n- 老同事\n" in b.text


class TestComingAndGoing:
    async def test_lines_of_each_device_from_before_sharing_appear_once(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a", sharing=False), await harnesses.open("b", sharing=False)
        await a.record_and_reconcile("甲问")
        a.add_line_under(HABITS, "- 早起")
        await a.memory.reconcile()
        await b.record_and_reconcile("乙问")
        await a.pull_from(b)
        await b.pull_from(a)
        assert "乙问" not in a.text
        reopen_with_sharing(a, sharing=True)
        reopen_with_sharing(b, sharing=True)
        text = await harnesses.level()
        for line in ("用户问：甲问", "用户问：乙问", "- 早起"):
            assert text.count(line) == 1

    async def test_a_file_that_was_copied_by_hand_is_not_doubled(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a", sharing=False), await harnesses.open("b", sharing=False)
        await a.record_and_reconcile("甲问")
        a.add_line_under(HABITS, "- 早起\n- 早起")
        await a.memory.reconcile()
        b.text = a.text
        await b.memory.reconcile()
        reopen_with_sharing(a, sharing=True)
        reopen_with_sharing(b, sharing=True)
        text = await harnesses.level()
        assert text.count("用户问：甲问") == text.count("AI 答：好的") == 1
        assert text.count("- 早起") == 2
        a.replace("- 早起\n- 早起\n", "- 早起\n")
        assert (await harnesses.level()).count("- 早起") == 1

    async def test_a_device_that_does_not_share_keeps_its_document_and_changes_only_its_own_lines(
        self, harnesses: DeviceGroup
    ) -> None:
        a, b, own = await harnesses.open("a"), await harnesses.open("b"), await harnesses.open("c", sharing=False)
        await a.record_and_reconcile("甲问")
        await own.record_and_reconcile("丙问")
        text = await harnesses.level()
        assert "丙问" in text
        assert "甲问" not in own.text
        own.replace("- 用户问：丙问\n", "- 用户问：丙改\n")
        assert "丙改" in await harnesses.level()
        assert b.text == a.text

    async def test_after_leaving_the_document_stays_and_later_edits_are_this_device_s_own(
        self, harnesses: DeviceGroup
    ) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        await a.record_and_reconcile("甲问")
        await b.record_and_reconcile("乙问")
        text = await harnesses.level()
        reopen_with_sharing(b, sharing=False)
        await b.memory.reconcile()
        assert b.text == text
        b.replace("- 用户问：甲问\n", "")
        await b.record_and_reconcile("乙又问")
        await a.record_and_reconcile("甲又问")
        await harnesses.level()
        assert "甲又问" not in b.text
        assert "乙又问" in b.text
        assert "用户问：甲问\n" not in b.text
        assert "- 用户问：甲问\n" in a.text
        assert "乙又问" in a.text

    async def test_a_device_that_joins_late_has_the_same_bytes_even_with_its_own_file(
        self, harnesses: DeviceGroup
    ) -> None:
        a = await harnesses.open("a")
        await a.record_and_reconcile("甲问")
        a.add_line_under(HABITS, "- 早起")
        await a.memory.reconcile()
        late, own = await harnesses.open("late"), await harnesses.open("own")
        own.text = "# 我的记忆\n\n## 用户偏好\n\n### 工作习惯\n- 早起\n- 晚睡\n"
        await own.pull_from(a)
        await late.pull_from(a)
        for harness in (a, late):
            await harness.pull_from(own)
        assert late.text == a.text
        assert own.text == a.text.replace("# AI 对话记忆", "# 我的记忆")
        assert a.text.count("- 早起") == a.text.count("- 晚睡") == 1


class TestTheDeviceSOwn:
    async def test_front_matter_line_endings_and_an_entry_too_large_for_an_event_stay_its_own(
        self, harnesses: DeviceGroup
    ) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        large = "- " + "大" * 30_000
        a.file.write_bytes(
            f"---\nkind: memory\n---\n# 记\r\n\r\n## 用户偏好\r\n\r\n{HABITS}\r\n- 一\r\n{large}\r\n- 二\r\n".encode()
        )
        await a.memory.reconcile()
        await b.record_and_reconcile("乙问")
        await a.pull_from(b)
        await b.pull_from(a)
        data = a.file.read_bytes().decode()
        assert data.startswith("---\nkind: memory\n---\n")
        assert f"{HABITS}\r\n- 一\r\n{large}\r\n- 二\r\n" in data
        assert "\n" not in data.removeprefix("---\nkind: memory\n---\n").replace("\r\n", "")
        assert "大" not in b.text
        assert f"{HABITS}\n- 一\n- 二\n" in b.text


class TestOrder:
    async def test_the_server_time_bounds_a_clock_years_ahead_once_it_is_known(self, harnesses: DeviceGroup) -> None:
        a, b = await harnesses.open("a"), await harnesses.open("b")
        a.clock.advance(days=3000)
        await a.record_and_reconcile("甲问")
        await b.record_and_reconcile("乙问")
        await harnesses.level()
        assert str((await newest(b)).label).startswith("2034/")
        for harness in (a, b):
            await number_events(harness, "2026-01-08T01:00:00.000Z")
            await harness.memory.reconcile()
        assert a.text == b.text
        assert (await newest(a)).label == (await newest(b)).label == "2026/1/8 09:00:00 · 2"
        assert "2034" not in a.text, a.text

    async def test_a_failed_write_leaves_nothing_in_the_next_rendering(
        self, harnesses: DeviceGroup, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a = await harnesses.open("a")
        await a.record_and_reconcile("甲问")
        with monkeypatch.context() as patch:
            patch.setattr(document_store, "append", full_at_the_second(document_store.append))
            a.add_line_under(HABITS, "- 早起")
            with pytest.raises(StorageError):
                await a.memory.reconcile()
        a.replace("- 早起", "- 晚睡")
        await a.memory.reconcile()
        assert "早起" not in a.text
        assert f"{HABITS}\n- 晚睡\n" in a.text
        assert (await newest(a)).label == "2026/1/8 09:00:00 · 2"


def full_at_the_second(append: Callable[..., Version]) -> Callable[..., Version]:
    """The disk is full when the second version, the merged one, is stored."""
    calls = count(1)

    def appending(*arguments: Any, **options: Any) -> Version:
        if next(calls) == 2:
            raise StorageError("the disk is full")
        return append(*arguments, **options)

    return appending


async def number_events(harness: DocumentHarness, server_ts: str) -> None:
    """Give every event a server number and this server time, as a sync does."""
    known = sorted((await harness.log.read(Query())).events, key=lambda event: event.event_id)
    stored = tuple(replace(event, server_seq=seq, server_ts=server_ts) for seq, event in enumerate(known, start=1))
    cursor = RemoteCursor("epoch", len(stored), stored[-1].event_id, len(stored), server_ts)
    answer = SyncAnswer("epoch", len(stored), 0, False, stored, (), server_ts)
    verdict = PageVerdict(reset=False, cursor=cursor, caught_up=True)
    await harness.database.write(
        lambda connection: cloud_store.apply_answer(connection, answer, verdict, harness.clock)
    )
