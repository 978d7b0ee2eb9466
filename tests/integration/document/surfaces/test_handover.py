"""The handover of the memory file between two profiles: no edit is lost, and no text gets into the other profile."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from sync.document.erasure import erasure
from sync.document.markdown.version_labels import parse_time_label
from sync.document.ownership.other_profiles import OtherProfiles, ProfilePaths
from sync.document.surfaces.handover import hand_over, replace_document
from sync.document.surfaces.memory_file import MemoryFileDeps
from sync.document.surfaces.notices import Notice
from sync.document.surfaces.write_in_progress import MAX_WRITE_PAUSE
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import InvalidInput, StorageBusy
from sync.log.ingest import DraftBuilder
from sync.log.model import Query
from sync.system.atomic_swap import DISPLACED_SUFFIX, displaced_files
from tests.integration.document.harness import DocumentHarness, FakeAppCache, open_document_harness
from tests.proof import first_in_test


@dataclass
class TwoProfiles:
    """Two profiles of one machine, Ann's and Ben's, and the file they take turns with."""

    ann: DocumentHarness
    ben: DocumentHarness
    anns: ProfilePaths
    bens: ProfilePaths

    @property
    def file(self) -> Path:
        return self.ann.file

    async def to_ben(self) -> None:
        await self._hand_over(self.ann, self.anns, self.ben, self.bens)

    async def to_ann(self) -> None:
        await self._hand_over(self.ben, self.bens, self.ann, self.anns)

    async def _hand_over(
        self, leaving: DocumentHarness, home: ProfilePaths, arriving: DocumentHarness, next_home: ProfilePaths
    ) -> None:
        """Hand over as the program does: the leaving profile's service knows no other profile."""
        between = OtherProfiles(home.database, lambda: [next_home], DatabaseEncryption())
        alone = leaving.new_service(MemoryFileDeps(parked_folder=home.parked_folder))
        await hand_over(alone, home, arriving.memory, between, sleep=arriving.sleep)

    def parked(self, neighbour: ProfilePaths) -> list[str]:
        return [path.read_text("utf-8") for path in neighbour.parked_folder.glob("*.md")]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[TwoProfiles]:
    anns = ProfilePaths(tmp_path / "ann" / "memory.db", tmp_path / "ann" / "parked")
    bens = ProfilePaths(tmp_path / "ben" / "memory.db", tmp_path / "ben" / "parked")
    async with AsyncExitStack() as stack:
        file = tmp_path / "xiaobai-ai-memory.md"
        ann = await stack.enter_async_context(
            open_document_harness(
                tmp_path / "ann",
                file=file,
                other_profiles=OtherProfiles(anns.database, lambda: [bens], DatabaseEncryption()),
            )
        )
        ben = await stack.enter_async_context(
            open_document_harness(
                tmp_path / "ben",
                file=file,
                other_profiles=OtherProfiles(bens.database, lambda: [anns], DatabaseEncryption()),
            )
        )
        ben.clock.advance(hours=1)
        await ann.record_and_reconcile("安的第一句", "安的第二句")
        yield TwoProfiles(ann, ben, anns, bens)


async def test_a_new_user_s_place_is_empty_and_the_other_s_document_comes_back_byte_for_byte(
    house: TwoProfiles,
) -> None:
    before = house.file.read_bytes()
    await house.to_ben()
    assert not house.file.exists()
    assert not (await house.ben.memory.view()).exists
    await house.ben.record_and_reconcile("本的话")
    assert "安" not in house.ben.text
    await house.to_ann()
    assert house.file.read_bytes() == before
    await house.to_ben()
    assert "本的话" in house.ben.text
    assert house.parked(house.anns) == house.parked(house.bens) == []


async def test_an_edit_before_the_handover_belongs_to_the_leaving_profile(house: TwoProfiles) -> None:
    house.ann.add_line_under("### 工作习惯", "- 离开前打的一行")
    await house.to_ben()
    assert [event.payload["text"] for event in await house.ann.manual_edit_events()] == ["- 离开前打的一行"]
    assert await house.ben.manual_edit_events() == []
    await house.to_ann()
    assert "离开前打的一行" in house.ann.text


async def test_a_save_during_the_handover_belongs_to_the_leaving_profile(house: TwoProfiles) -> None:
    await house.ben.record_and_reconcile("占位")  # so that there is a version to be written over the file
    await house.to_ann()
    typed = house.ann.text.replace("### 工作习惯\n", "### 工作习惯\n- 最后一刻\n", 1)
    house.ben.external_actions = [lambda: house.file.write_text(typed, "utf-8")]
    await house.to_ben()
    assert "最后一刻" not in house.ben.text
    await house.to_ann()
    assert "最后一刻" in house.ann.text + "".join(house.parked(house.anns))


@pytest.mark.parametrize("had", [True, False], ids=["over the leaving one's", "where there was no file"])
async def test_an_old_buffer_of_the_arriving_profile_saved_then_belongs_to_it(house: TwoProfiles, *, had: bool) -> None:
    """Simulated as seed 7143: a leaving account without a document took the other's lines for its own."""
    leaving, arriving = (house.ann, house.ben) if had else (house.ben, house.ann)
    if had:
        await house.to_ben()
        await house.ben.record_and_reconcile("本的话")
    typed = arriving.text.replace("### 工作习惯\n", "### 工作习惯\n- 旧窗口里的一行\n", 1)
    await (house.to_ann() if had else house.to_ben())
    leaving.external_actions = [lambda: house.file.write_text(typed, "utf-8")]
    arriving.external_actions = [
        lambda: None,
        *leaving.external_actions,
    ]  # not while it is looked whose the file is, but then
    await (house.to_ben() if had else house.to_ann())
    assert await leaving.manual_edit_events() == []
    assert "旧窗口" not in (await leaving.memory.view()).text
    await arriving.memory.reconcile()
    assert "旧窗口里的一行" in arriving.text
    assert house.parked(house.anns) == house.parked(house.bens) == []


async def test_a_save_in_pieces_is_waited_for_and_belongs_to_the_leaving_profile(house: TwoProfiles) -> None:
    data = house.ann.text.replace("### 常用命令\n", "### 常用命令\n- 安最后打的\n", 1).encode()
    house.ben.clock.time = house.ann.clock.time
    with house.file.open("wb", buffering=0) as file:

        def write(part: bytes) -> None:
            file.write(part)
            os.utime(house.file, (house.ben.clock.time.timestamp(),) * 2)

        write(data[: len(data) // 2])
        house.ben.external_actions = [lambda: None, lambda: None, lambda: write(data[len(data) // 2 :])]
        await house.to_ben()
    assert [event.payload["text"] for event in await house.ann.manual_edit_events()] == ["- 安最后打的"]
    assert await house.ben.manual_edit_events() == []
    assert not list(house.anns.parked_folder.glob("*.md"))


async def test_a_file_that_stays_cut_off_is_handed_over_after_a_while(house: TwoProfiles) -> None:
    data = house.ann.text.encode()
    house.file.write_bytes(data[: len(data) // 2])
    os.utime(house.file, (house.ann.clock.time.timestamp(),) * 2)
    await house.to_ben()
    assert not house.file.exists()


async def test_an_unreadable_file_is_parked_with_the_leaving_profile(house: TwoProfiles) -> None:
    house.file.write_bytes(b"\xff\xfe\x00 no text")
    await house.to_ben()
    assert not house.file.exists()
    assert [path.read_bytes() for path in house.anns.parked_folder.glob("*.md")] == [b"\xff\xfe\x00 no text"]


async def test_what_looks_lost_is_parked_too_and_what_was_there_comes_back(house: TwoProfiles) -> None:
    await house.ann.record_and_reconcile(*(f"第 {number} 句" for number in range(8)))
    before = house.ann.text
    shrunk = "".join(line for line in before.splitlines(keepends=True) if not line.startswith("- "))
    house.ann.text = shrunk
    await house.to_ben()
    assert house.parked(house.anns) == [shrunk]
    await house.to_ann()
    assert house.ann.text == before


async def test_done_again_after_it_was_cut_short_it_ends_the_same(house: TwoProfiles) -> None:
    await house.ben.record_and_reconcile(
        "本的话"
    )  # written over Ann's file: as if Ben's sidecar had died right after the swap
    await house.to_ben()
    first = house.file.read_bytes()
    await house.to_ben()
    assert house.file.read_bytes() == first
    assert "安" not in house.ben.text
    assert await house.ben.manual_edit_events() == []


@pytest.mark.parametrize("wrote", [True, False], ids=["both wrote", "one never did"])
async def test_an_edit_of_the_arriving_document_before_a_retry_belongs_to_that_profile(
    house: TwoProfiles, *, wrote: bool
) -> None:
    (house.ben if wrote else house.ann).clock.advance(hours=1)
    arriving, leaving = (house.ben, house.ann) if wrote else (house.ann, house.ben)
    await arriving.record_and_reconcile(
        "到来者的话"
    )  # the file is his already, and the sidecar died before it could note that
    arriving.add_line_under("### 工作习惯", "- 到来者打的一行")
    await (house.to_ben() if wrote else house.to_ann())
    assert [event.payload["text"] for event in await arriving.manual_edit_events()] == ["- 到来者打的一行"]
    assert await leaving.manual_edit_events() == []
    assert "到来者" not in (await leaving.memory.view()).text
    assert "到来者打的一行" in arriving.text
    assert house.parked(house.bens) == []


async def test_a_retry_for_a_profile_without_a_document_ingests_nothing_of_the_others(house: TwoProfiles) -> None:
    await house.ann.record_and_reconcile(
        "安的第三句"
    )  # the file is Ann's already: only the note that it was Ben's is still to go
    before = house.file.read_bytes()
    await house.to_ann()
    assert house.file.read_bytes() == before
    assert await house.ben.manual_edit_events() == []
    assert not (await house.ben.memory.view()).exists
    assert house.parked(house.anns) == house.parked(house.bens) == []


async def test_a_profile_that_cannot_be_opened_keeps_the_bytes_of_its_document(house: TwoProfiles) -> None:
    before = house.file.read_text("utf-8")
    between = OtherProfiles(house.anns.database, lambda: [house.bens], DatabaseEncryption())
    await hand_over(None, house.anns, house.ben.memory, between, sleep=house.ben.sleep)
    assert not house.file.exists()
    assert house.parked(house.anns) == [before]


async def test_if_the_owner_wants_no_copy_none_is_kept(house: TwoProfiles) -> None:
    house.ann.add_line_under("### 工作习惯", "- 不要留下")
    await replace_document(house.ben.memory, sleep=house.ben.sleep)
    assert not house.file.exists()
    assert house.parked(house.anns) == []


def without_footer(text: str) -> str:
    return text.rpartition("**最后更新**")[0]


def cut_within(text: str, line: str) -> str:
    return text[: text.index(line) + len(line) - 2]


EDITS_OF_ANNS: dict[str, Callable[[str], str]] = {
    "edited": lambda text: text.replace("安的", "安再说的"),
    "without the label, and edited": lambda text: without_footer(text).replace("安的第一句", "安再说的"),
    "without the label, in another style": lambda text: without_footer(text).replace("\n- ", "\n  * "),
    "cut off behind a line that she typed": lambda text: cut_within(with_line_typed(text), "- 用户问：安的第一句"),
    "cut off within the first line that is hers": lambda text: cut_within(text, "- 用户问：安的第一句"),
    "without the label": without_footer,
    "with the label of another program": lambda text: f"{without_footer(text)}**最后更新**：2026/1/9 00:00:00\n",
    "with other line endings": lambda text: text.replace("\n", "\r\n"),
}


def with_line_typed(text: str) -> str:
    return text.replace("### 工作习惯\n", "### 工作习惯\n- 安在旧窗口里打的\n", 1)


class TestStaleBuffers:
    @pytest.mark.parametrize("bens", [(), ("本的话",)], ids=["over nothing", "over a document"])
    @pytest.mark.parametrize("edit", first_in_test(list(EDITS_OF_ANNS), 5))
    async def test_of_the_other_account_are_parked_and_never_taken_in(
        self, house: TwoProfiles, edit: str, bens: tuple[str, ...]
    ) -> None:
        buffer = EDITS_OF_ANNS[edit](house.ann.text).encode()
        await house.to_ben()
        await house.ben.record_and_reconcile(*bens)
        own = house.file.read_bytes() if bens else None
        house.file.write_bytes(buffer)
        await house.ben.memory.reconcile()
        assert (house.file.read_bytes() if house.file.exists() else None) == own
        assert await house.ben.manual_edit_events() == []
        assert [path.read_bytes() for path in house.anns.parked_folder.glob("*.md")] == [buffer]
        assert Notice.STRANGER in house.ben.memory.notices

    @pytest.mark.parametrize("bens", [(), ("本的话",)], ids=["over nothing", "over a document"])
    async def test_written_in_pieces_are_parked_whole(self, house: TwoProfiles, bens: tuple[str, ...]) -> None:
        """A piece may hold only what she typed, or half a line (simulated as seed 22140)."""
        buffer = with_line_typed(house.ann.text).encode()
        await house.to_ben()
        await house.ben.record_and_reconcile(*bens)
        with house.file.open("wb", buffering=0) as file:
            for number in range(16):
                file.write(buffer[number * len(buffer) // 16 : (number + 1) * len(buffer) // 16])
                os.utime(house.file, (house.ben.clock.time.timestamp(),) * 2)
                house.ben.clock.advance(seconds=2)
                await house.ben.memory.reconcile()
        assert await house.ben.manual_edit_events() == []
        assert [path.read_bytes() for path in house.anns.parked_folder.glob("*.md")] == [buffer]

    async def test_that_another_program_wrote_into_the_cloud_are_parked_and_replaced(self, house: TwoProfiles) -> None:
        buffer = with_line_typed(house.ann.text)
        await house.to_ben()
        await house.ben.record_and_reconcile("本的话")
        assert await house.ben.memory.ingest_cloud_document(buffer)
        assert await house.ben.manual_edit_events() == []
        assert house.parked(house.anns) == [buffer]

    async def test_forget_with_the_memory_and_keep_what_else_they_say(self, house: TwoProfiles) -> None:
        buffer = house.ann.text.replace("### 工作习惯\n", "### 工作习惯\n- 安在旧窗口里打的\n", 1)
        buffer = buffer.replace("安的第一句", "安的第一句 又加了几个字")
        await house.to_ben()
        await house.ben.record_and_reconcile("本的话")
        house.file.write_text(buffer, "utf-8")
        await house.ben.memory.reconcile()
        await house.to_ann()
        first = (await house.ann.log.read(Query())).events[0]
        await erasure.request(house.ann.log, DraftBuilder(house.ann.redactor), [first.event_id])
        await house.ann.memory.reconcile()
        (parked,) = house.parked(house.anns)
        assert "安的第一句" not in parked
        assert "- 安在旧窗口里打的\n" in parked
        assert "安的第二句" in parked

    async def test_are_taken_away_where_the_active_profile_has_nothing_to_put_there(self, house: TwoProfiles) -> None:
        buffer = house.ann.text
        await house.to_ben()
        house.file.write_text(buffer, "utf-8")
        await house.ben.memory.reconcile()
        assert not house.file.exists()
        assert house.parked(house.anns) == [buffer]
        assert not (await house.ben.memory.view()).exists

    async def test_saved_at_the_moment_of_a_write_that_was_killed_are_parked_for_their_owner(
        self, house: TwoProfiles
    ) -> None:
        buffer = house.ann.text.replace("### 工作习惯\n", "### 工作习惯\n- 安在旧窗口里打的\n", 1)
        await house.to_ben()
        await house.ben.record_and_reconcile("本的话")
        house.file.with_name(f".{house.file.name}.0a1b2c3d{DISPLACED_SUFFIX}").write_text(buffer, "utf-8")
        await house.ben.memory.swap_recovery.recover()
        assert house.parked(house.anns) == [buffer]
        assert house.parked(house.bens) == []
        assert displaced_files(house.file) == []

    async def test_of_the_app_s_settings_page_are_refused(self, house: TwoProfiles) -> None:
        shown = await house.ann.memory.view()
        await house.to_ben()
        with pytest.raises(InvalidInput, match="another account"):
            await house.ben.memory.save(shown.text, shown.sha256, confirmed=True)
        assert await house.ben.manual_edit_events() == []

    async def test_the_first_page_of_a_new_account_is_its_own_also_in_the_second_of_the_other_s(
        self, house: TwoProfiles
    ) -> None:
        """Its document is a template still, whose label is the time (seeds 549, 1610, 1963)."""
        label = (await house.ann.newest_version()).label
        moment = parse_time_label(label or "")
        assert moment is not None
        house.ben.clock.time = moment.replace(tzinfo=house.ben.clock.time.tzinfo)
        await house.to_ben()
        shown = await house.ben.memory.view()
        assert shown.document.label == label
        text = shown.text.replace("### 工作习惯\n", "### 工作习惯\n- 本在设置页里打的\n", 1)
        await house.ben.memory.save(text, shown.sha256, confirmed=False)
        assert [event.payload["text"] for event in await house.ben.manual_edit_events()] == ["- 本在设置页里打的"]

    async def test_our_own_are_still_hand_edits(self, house: TwoProfiles) -> None:
        await house.to_ben()
        await house.ben.record_and_reconcile("本的话")
        house.ben.add_line_under("### 工作习惯", "- 本打的一行")
        await house.ben.memory.reconcile()
        assert [event.payload["text"] for event in await house.ben.manual_edit_events()] == ["- 本打的一行"]
        assert house.parked(house.anns) == []

    async def test_a_file_that_the_new_account_makes_by_hand_is_its_own_after_a_pause(self, house: TwoProfiles) -> None:
        await house.to_ben()
        house.file.write_text("## 用户偏好\n\n- 本手写的一行", "utf-8")
        os.utime(house.file, (house.ben.clock.time.timestamp(),) * 2)
        await house.ben.memory.reconcile()
        assert await house.ben.manual_edit_events() == []
        house.ben.clock.advance(seconds=MAX_WRITE_PAUSE)
        await house.ben.memory.reconcile()
        assert [event.payload["text"] for event in await house.ben.manual_edit_events()] == ["- 本手写的一行"]
        assert house.parked(house.anns) == []

    async def test_in_the_app_s_cache_are_left_there(self, house: TwoProfiles, tmp_path: Path) -> None:
        text = house.ann.text
        await house.to_ben()
        cache = FakeAppCache(tmp_path / "app.db")
        cache.save(text)
        house.ben.app_cache = cache.path
        house.ben.restart()
        await house.ben.memory.reconcile()
        assert await house.ben.manual_edit_events() == []
        assert not (await house.ben.memory.view()).exists
        assert Notice.STRANGER in house.ben.memory.notices


async def test_an_editor_that_saves_without_end_keeps_the_file_and_causes_an_error(house: TwoProfiles) -> None:
    rounds = iter(range(100))

    def save() -> None:
        text = f"{house.ann.text if house.file.exists() else ''}\n- 第 {next(rounds)} 次\n"
        house.file.write_text(text, "utf-8")

    house.ben.external_actions = [save] * 40
    try:
        await house.to_ben()
    except StorageBusy:
        return
    parked = "".join(house.parked(house.anns))
    await house.to_ann()
    assert "第 0 次" in house.ann.text + parked
