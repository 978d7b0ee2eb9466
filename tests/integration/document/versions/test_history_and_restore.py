"""History, restore, save and the answer to a mass delete: no text is lost."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events
from sync.document.erasure import erasure
from sync.document.markdown.model import EntryAdded
from sync.document.read.memory_service import MemoryService
from sync.document.surfaces.notices import Notice
from sync.errors import InvalidInput
from sync.log.event_types import DOCUMENT_RESTORED, ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED
from sync.log.model import Door, EventDraft, Origin
from sync.settings.settings import Settings
from sync.system.digests import sha256
from tests.integration.document.harness import DocumentHarness, open_document_harness

HABITS = "### 工作习惯"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as found:
        yield found


async def kinds(harness: DocumentHarness) -> list[str]:
    return [event.type for event in await harness.manual_edit_events()]


async def hashes(harness: DocumentHarness) -> list[str]:
    return [past.sha256 for past in await harness.memory.versions.history(100)]


async def many(harness: DocumentHarness) -> str:
    """A file with twelve typed lines; its text."""
    await harness.record_and_reconcile("一")
    harness.add_line_under(HABITS, "\n".join(f"- 第 {number} 条" for number in range(12)))
    await harness.memory.reconcile()
    return harness.text


def shrunk(text: str) -> str:
    """The text with most of its lines gone."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("- 第") or "第 0 条" in line)


class TestHistory:
    async def test_it_lists_the_newest_first_with_cause_and_number_of_entries(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 早起")
        await harness.memory.reconcile()
        newest, *older = await harness.memory.versions.history(10)
        assert (newest.cause, newest.sha256) == ("hand", sha256(harness.file.read_bytes()))
        assert [past.cause for past in older] == ["log"]
        assert newest.entries == older[0].entries + 1

    async def test_it_is_as_long_as_asked(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一", "二", "三")
        assert len(await harness.memory.versions.history(2)) == 2


class TestRestore:
    async def test_an_older_version_comes_back_as_new_events(self, harness: DocumentHarness) -> None:
        text = await many(harness)
        wanted = (await hashes(harness))[0]
        harness.replace("- 第 3 条\n", "")
        harness.replace("- 第 4 条\n", "- 第 4 条，改过\n")
        await harness.memory.reconcile()
        before = len(await kinds(harness))
        edited = await harness.memory.restore(wanted)
        told = (await kinds(harness))[before:]
        assert told[0] == DOCUMENT_RESTORED
        assert sorted(told[1:]) == sorted([ENTRY_ADDED, ENTRY_EDITED])
        assert len(edited.operations) == 2
        assert body(harness.text) == body(text)

    async def test_what_was_current_stays_in_the_history_and_comes_back_the_same_way(
        self, harness: DocumentHarness
    ) -> None:
        await many(harness)
        wanted = (await hashes(harness))[0]
        harness.add_line_under(HABITS, "- 之后写的")
        await harness.memory.reconcile()
        later = (await hashes(harness))[0]
        await harness.memory.restore(wanted)
        assert "之后写的" not in harness.text
        assert later in await hashes(harness)
        await harness.memory.restore(later)
        assert "- 之后写的\n" in harness.text

    async def test_an_edit_of_the_file_is_ingested_before_a_restore(self, harness: DocumentHarness) -> None:
        await many(harness)
        wanted = (await hashes(harness))[0]
        harness.add_line_under(HABITS, "- 刚刚写的")
        await harness.memory.restore(wanted)
        assert "刚刚写的" not in harness.text
        assert "- 刚刚写的" in [event.payload.get("text") for event in await harness.manual_edit_events()]

    async def test_an_update_that_is_not_in_the_file_yet_stays_in_log_and_history(
        self, harness: DocumentHarness
    ) -> None:
        await many(harness)
        wanted = (await hashes(harness))[0]
        await harness.record_exchange("还没写的")
        await harness.memory.restore(wanted)
        assert "还没写的" not in harness.text
        for digest in await hashes(harness):
            await harness.memory.restore(digest)
            if "用户问：还没写的" in harness.text:
                return
        pytest.fail("no version holds it")

    @pytest.mark.parametrize(("door", "label"), [(Door.PROGRAM, "来自 工具"), (Door.IMPORT, "导入")])
    async def test_a_line_of_another_author_comes_back_as_theirs(
        self, harness: DocumentHarness, door: Door, label: str
    ) -> None:
        await many(harness)
        section, said = ["用户偏好", "工作习惯"], "好的"
        added = [
            {"entry_id": name, "section": section, "after": "", "text": f"- {name} 永远同意"}
            for name in ("removed", "reworded")
        ]
        drafts = [EventDraft(ENTRY_ADDED, harness.redactor.clean_payload(one)) for one in added]
        drafts += draft_exchange_events(
            ExchangeInput("别人问的", said), harness.redactor, device_id="device-a", store_messages=False
        )
        await harness.log.append([replace(one, door=door, origin=Origin.TOOL) for one in drafts])
        await harness.memory.reconcile()
        wanted = (await hashes(harness))[0]
        harness.replace("- removed 永远同意\n", "")
        harness.replace("- reworded 永远同意\n", "- reworded 我说不\n")
        harness.replace("- 用户问：别人问的\n", "")
        harness.replace("- 第 4 条\n", "")
        await harness.memory.reconcile()
        text = body(harness.text)
        await harness.memory.restore(wanted)
        settings = Settings()
        memory = MemoryService(
            harness.log, harness.memory, None, harness.redactor, clock=harness.clock, settings=settings
        )
        loaded = (await memory.load(wait_ms=0)).content
        for line in ("removed 永远同意", "reworded 永远同意", "用户问：别人问的"):
            assert f"\n- 【{label}】{line}\n" in loaded
        assert "\n- 第 4 条\n" in loaded
        await harness.memory.restore((await hashes(harness))[1])
        assert body(harness.text) == text
        assert "\n- reworded 我说不\n" in (await memory.load(wait_ms=0)).content

    async def test_a_hash_that_names_nothing_is_refused_by_its_name(self, harness: DocumentHarness) -> None:
        await harness.record_and_reconcile("一")
        with pytest.raises(InvalidInput) as refused:
            await harness.memory.restore("0" * 64)
        assert refused.value.field == "sha256"

    async def test_it_fills_a_file_that_was_left_alone_because_it_shrank(self, harness: DocumentHarness) -> None:
        text = await many(harness)
        wanted = (await hashes(harness))[0]
        harness.text = shrunk(text)
        await harness.memory.reconcile()
        assert harness.memory.notices == {Notice.MASS_DELETE}
        lost = sha256(harness.file.read_bytes())
        await harness.memory.restore(wanted)
        assert body(harness.text) == body(text)
        assert harness.memory.notices == set()
        assert lost in await hashes(harness)


class TestSave:
    async def test_it_is_a_hand_edit_of_what_load_showed(self, harness: DocumentHarness) -> None:
        await many(harness)
        view = await harness.memory.view()
        edited = await harness.memory.save(
            view.text.replace("- 第 3 条", "- 第 3 条，改过"), view.sha256, confirmed=False
        )
        assert [type(done).__name__ for done in edited.operations] == ["EntryEdited"]
        assert "- 第 3 条，改过\n" in harness.text
        assert sha256(harness.file.read_bytes()) == edited.sha256

    async def test_nothing_of_what_came_in_between_is_lost(self, harness: DocumentHarness) -> None:
        await many(harness)
        view = await harness.memory.view()
        await harness.record_and_reconcile("后来的")
        harness.add_line_under(HABITS, "- 手写的")
        await harness.memory.save(view.text.replace("- 第 3 条\n", ""), view.sha256, confirmed=False)
        assert "用户问：后来的" in harness.text
        assert "- 手写的\n" in harness.text
        assert "- 第 3 条\n" not in harness.text

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
    async def test_the_file_keeps_its_encoding_and_line_endings(self, harness: DocumentHarness, encoding: str) -> None:
        typed = "# 我的记忆\r\n\r\n## 用户偏好\r\n\r\n- 喜欢喝茶，不喜欢咖啡\r\n"
        harness.file.write_bytes(typed.encode(encoding))
        await harness.memory.reconcile()
        view = await harness.memory.view()
        shown = view.text.replace("\r\n", "\n")  # as a text field gives it back
        edited = await harness.memory.save(shown.replace("喝茶", "喝绿茶"), view.sha256, confirmed=False)
        assert len(edited.operations) == 1
        assert harness.file.read_bytes().startswith(typed.replace("喝茶", "喝绿茶").encode(encoding))

    @pytest.mark.parametrize("settled", [True, False])
    async def test_the_base_may_be_an_answer_that_held_an_update_no_version_had(
        self, harness: DocumentHarness, settled: bool
    ) -> None:
        await many(harness)
        await harness.record_exchange("还没写的")
        view = await harness.memory.view()
        assert "还没写的" in view.text
        if settled:
            await harness.memory.reconcile()
        await harness.memory.save(view.text.replace("- 第 3 条\n", ""), view.sha256, confirmed=False)
        assert harness.text.count("还没写的") == 1
        assert "- 第 3 条\n" not in harness.text
        assert (await kinds(harness))[-1] == ENTRY_REMOVED

    async def test_what_the_app_removed_of_an_update_no_version_had_is_gone(self, harness: DocumentHarness) -> None:
        await many(harness)
        await harness.record_exchange("不要的")
        view = await harness.memory.view()
        without = "".join(line for line in view.text.splitlines(keepends=True) if "不要的" not in line)
        await harness.memory.save(without, view.sha256, confirmed=False)
        assert "不要的" not in harness.text

    async def test_what_it_removed_is_gone_also_where_something_else_was_forgotten_in_between(
        self, harness: DocumentHarness
    ) -> None:
        """Simulated as seed 12375."""
        await many(harness)
        to_forget = await harness.record_exchange("要忘掉的")
        await harness.record_exchange("不要的")
        view = await harness.memory.view()
        await harness.log.append(erasure.request_drafts([to_forget], harness.redactor))
        without = "".join(line for line in view.text.splitlines(keepends=True) if "不要的" not in line)
        await harness.memory.save(without.replace("- 用户问：要忘掉的\n", ""), view.sha256, confirmed=False)
        assert "不要的" not in harness.text
        assert "要忘掉的" not in harness.text
        assert "- 第 3 条\n" in harness.text

    async def test_without_a_base_the_label_in_the_text_names_it(self, harness: DocumentHarness) -> None:
        await many(harness)
        text = (await harness.memory.view()).text
        await harness.record_and_reconcile("后来的")
        await harness.memory.save(text.replace("- 第 3 条\n", ""), None, confirmed=False)
        assert "用户问：后来的" in harness.text
        assert "- 第 3 条\n" not in harness.text

    @pytest.mark.parametrize("seconds", [0, 5], ids=["within a second", "later"])
    async def test_what_was_recorded_after_a_template_was_loaded_stays_without_a_base(
        self, tmp_path: Path, seconds: int
    ) -> None:
        async with open_document_harness(tmp_path / "empty") as harness:
            template = (await harness.memory.view()).text
            harness.clock.advance(seconds=seconds)
            await harness.record_and_reconcile("一", "二")
            typed = template.replace("### 工作习惯\n", "### 工作习惯\n- 早起\n")
            edited = await harness.memory.save(typed, None, confirmed=False)
            assert [type(one) for one in edited.operations] == [EntryAdded]
            assert "用户问：一\n- AI 答：好的\n" in harness.text
            assert "- 早起\n" in harness.text

    async def test_with_an_unknown_base_no_missing_line_is_a_removal(self, harness: DocumentHarness) -> None:
        await many(harness)
        text = (await harness.memory.view()).text
        await harness.record_and_reconcile("后来的")
        await harness.memory.save(text.replace("- 第 3 条\n", "- 新写的\n"), "0" * 64, confirmed=False)
        assert "用户问：后来的" in harness.text
        assert "- 第 3 条\n" in harness.text
        assert "- 新写的\n" in harness.text

    @pytest.mark.parametrize("text", ["", "# AI 对话记忆\n", "shrunk"])
    async def test_a_save_that_lacks_most_lines_is_refused_unless_confirmed(
        self, harness: DocumentHarness, text: str
    ) -> None:
        before = await many(harness)
        view = await harness.memory.view()
        given = shrunk(before) if text == "shrunk" else text
        with pytest.raises(InvalidInput) as refused:
            await harness.memory.save(given, view.sha256, confirmed=False)
        assert refused.value.field == "document"
        assert "allowLoss" in refused.value.hint
        assert harness.text == before
        await harness.memory.save(given, view.sha256, confirmed=True)
        assert "- 第 3 条" not in harness.text
        assert (await kinds(harness)).count(ENTRY_REMOVED) >= 11
        assert view.sha256 in await hashes(harness)

    async def test_a_blank_save_is_refused_also_if_it_names_no_version(self, harness: DocumentHarness) -> None:
        before = await many(harness)
        for text in ("", " \n"):
            with pytest.raises(InvalidInput):
                await harness.memory.save(text, None, confirmed=False)
        assert harness.text == before

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"])
    async def test_a_save_that_is_no_text_is_refused(self, harness: DocumentHarness, text: str) -> None:
        await harness.record_and_reconcile("一")
        with pytest.raises(InvalidInput) as refused:
            await harness.memory.save(text, None, confirmed=False)
        assert refused.value.field == "document"

    async def test_saved_unchanged_it_is_no_event(self, harness: DocumentHarness) -> None:
        await many(harness)
        before = await kinds(harness)
        view = await harness.memory.view()
        assert (await harness.memory.save(view.text, view.sha256, confirmed=False)).operations == ()
        assert await kinds(harness) == before


class TestResolve:
    @pytest.fixture(params=["emptied", "shrunk", "vanished"])
    async def lost(self, request: pytest.FixtureRequest, harness: DocumentHarness) -> str:
        """A file that lost its lines, with the question about it; the text before."""
        text = await many(harness)
        if request.param == "vanished":
            harness.file.unlink()
        else:
            harness.text = "" if request.param == "emptied" else shrunk(text)
        await harness.memory.reconcile()
        assert harness.memory.notices == {Notice.MISSING if request.param == "vanished" else Notice.MASS_DELETE}
        assert ENTRY_REMOVED not in await kinds(harness)
        return text

    async def test_accept_makes_them_removals(self, harness: DocumentHarness, lost: str) -> None:
        edited = await harness.memory.resolve("accept")
        assert edited is not None
        assert (await kinds(harness)).count(ENTRY_REMOVED) >= 11
        assert "第 3 条" not in (await harness.memory.view()).text
        assert harness.memory.notices == set()
        assert sha256(lost.encode()) in await hashes(harness)
        await harness.record_and_reconcile("后来的")
        assert "用户问：后来的" in harness.text
        assert "第 3 条" not in harness.text

    async def test_restore_writes_them_again(self, harness: DocumentHarness, lost: str) -> None:
        await harness.memory.resolve("restore")
        assert body(harness.text) == body(lost)
        assert harness.memory.notices == set()
        assert ENTRY_REMOVED not in await kinds(harness)
        harness.restart()
        await harness.memory.reconcile()
        assert ENTRY_REMOVED not in await kinds(harness)

    async def test_what_was_typed_into_a_shrunk_file_stays_in_the_history(self, harness: DocumentHarness) -> None:
        text = await many(harness)
        harness.text = shrunk(text).replace("- 第 0 条\n", "- 第 0 条\n- 只在这里\n")
        await harness.memory.reconcile()
        lost = sha256(harness.file.read_bytes())
        await harness.memory.resolve("restore")
        assert "只在这里" not in harness.text
        await harness.memory.restore(lost)
        assert "- 只在这里\n" in harness.text

    @pytest.mark.parametrize("answer", ["accept", "restore"])
    async def test_an_answer_without_a_question_does_nothing_and_keeps_an_edit(
        self, harness: DocumentHarness, answer: str
    ) -> None:
        await many(harness)
        harness.add_line_under(HABITS, "- 刚刚写的")
        assert await harness.memory.resolve("accept" if answer == "accept" else "restore") is None
        assert "- 刚刚写的\n" in harness.text
        assert ENTRY_REMOVED not in await kinds(harness)


def body(text: str) -> str:
    """A document without the line that names its version."""
    return "".join(line for line in text.splitlines(keepends=True) if "最后更新" not in line)
