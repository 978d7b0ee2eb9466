"""`index/embeddings.json` on disk: it follows the vectors, and what is forgotten leaves it before anything else."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sync.files import stamp
from sync.memory.daily.model import content
from sync.recall.lending import LentVectors
from sync.recall.meaning import Meaning
from sync.recall.search import Recall
from sync.sections import RecallSettings
from sync.signals import Signal
from tests.integration.daily_desk import Desk
from tests.integration.recall_desk import LetterEmbedder
from tests.support import BROKEN_AFTER, Device, in_virtual_time, new_server, open_device, running

Said = list[tuple[int, str]]


@dataclass
class Household:
    """A desk of daily records whose texts get vectors."""

    desk: Desk
    recall: Recall

    async def make(self) -> None:
        """Make the vectors of all there is, as the sidecar does in the background, and tell."""
        await self.recall.follower.catch_up()
        while await self.recall.meaning.embed_some():
            pass
        self.recall.meaning.changed.set()

    async def embed(self) -> None:
        await self.make()
        await self.desk.room.settle()

    def said(self, root: Path | None = None) -> Said | None:
        """Session and first line of each entry; None where there is no file."""
        path = (root or self.desk.root) / "index" / "embeddings.json"
        if not path.exists():
            return None
        return [(one["session"], one["text"].split("\n")[0]) for one in json.loads(path.read_text("utf-8"))["entries"]]


@asynccontextmanager
async def household(folder: Path, device: Device | None = None, **more: Any) -> AsyncIterator[Household]:
    if device is None:
        async with open_device(folder, new_server(), inline=True) as opened, household(folder, opened, **more) as found:
            yield found
        return
    changed = Signal()
    meaning = Meaning(device.database, LetterEmbedder(), clean=str, patience=BROKEN_AFTER, changed=changed)
    recall = Recall(device.log, device.clock, RecallSettings(), moves=True, meaning=meaning)
    try:
        yield Household(Desk(device, vectors=LentVectors(device.database, changed), **more), recall)
    finally:
        await meaning.close()


async def test_each_session_that_has_a_vector_stands_in_it_private_where_its_page_lies(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能", "端口是 8080")
        await house.desk.keep("火锅")
        await house.desk.keep("项目里的", project=True)
        assert house.said() is None, "no vector was made yet"
        await house.embed()
        assert house.said() == [(1, "记忆功能"), (2, "火锅")]
        assert house.said(house.desk.own_root) == [(1, "项目里的")]
        told = json.loads(house.desk.embeddings.read_text("utf-8"))
        assert (told["version"], told["model"]) == ("1.0", "letters")
        assert told["entries"][0]["text"] == "记忆功能\n端口是 8080"
        (same,) = await LetterEmbedder().embed([told["entries"][0]["text"]], query=False)
        assert told["entries"][0]["embedding"] == pytest.approx(memoryview(same).cast("f").tolist(), abs=0.01)
        if os.name == "posix":
            assert stat.S_IMODE(house.desk.embeddings.stat().st_mode) == 0o600


async def test_it_is_written_where_it_would_say_something_else_and_not_otherwise(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        await house.embed()
        before = stamp(house.desk.embeddings)
        await house.desk.device.note("别的话")
        await house.embed()
        assert stamp(house.desk.embeddings) == before
        again = Desk(house.desk.device, vectors=LentVectors(house.desk.device.database, Signal()))
        await again.room.settle()
        assert stamp(house.desk.embeddings) == before, "nor by the next start"


async def test_what_is_edited_or_removed_leaves_at_once_and_the_new_words_come_with_their_vector(
    tmp_path: Path,
) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        first = (await house.desk.room.book()).shown()[0]
        await house.desk.keep("火锅")
        await house.desk.keep("爬山")
        second = (await house.desk.room.book()).shown()[1]
        await house.embed()
        await house.desk.room.deeds.edit(first.record_id, content("记忆功能，新的"), ("topic",))
        await house.desk.room.deeds.remove(second.record_id)
        await house.desk.room.settle()
        assert house.said() == [(3, "爬山")], "the index has not followed yet"
        await house.embed()
        assert house.said() == [(1, "记忆功能，新的"), (3, "爬山")]


async def test_what_is_forgotten_leaves_it_before_the_index_follows(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        await house.desk.keep("秘密的计划")
        secret = (await house.desk.room.book()).shown()[1]
        await house.embed()
        await house.desk.room.deeds.forget(secret.record_id)
        await house.desk.room.settle()
        assert not house.desk.embeddings.exists() or "秘密" not in house.desk.embeddings.read_text("utf-8")
        await house.embed()
        assert house.said() == [(1, "记忆功能")]


async def test_an_edit_that_is_forgotten_leaves_no_word_of_it(tmp_path: Path) -> None:
    """The record is there as it was before; the vector of the forgotten words is still in the tables."""
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        (known,) = (await house.desk.room.book()).shown()
        edited = await house.desk.room.deeds.edit(known.record_id, content("秘密的计划"), ("topic",))
        await house.embed()
        assert house.said() == [(1, "秘密的计划")]
        assert edited.event_id is not None
        device = house.desk.device
        await device.log.record([device.intake.forgotten([edited.event_id])])
        await house.desk.room.settle()
        assert await house.desk.topics() == ["记忆功能"]
        assert house.said() is None


async def test_it_goes_where_no_vectors_are_kept_any_more_or_nothing_is_left(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        await house.embed()
        off = Desk(house.desk.device)
        await off.room.settle()
        assert house.said() is None
        house.recall.meaning.changed.set()
        on = Desk(house.desk.device, vectors=LentVectors(house.desk.device.database, Signal()))
        await on.room.settle()
        assert house.said() == [(1, "记忆功能")]
        await on.room.deeds.remove((await on.room.book()).shown()[0].record_id)
        await on.room.settle()
        assert house.said() is None


async def test_semantic_enabled(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        await house.embed()
        await house.desk.option("semantic.enabled", value=False)
        await house.desk.room.settle()
        assert house.said() is None
        await house.desk.option("semantic.enabled", value=True)
        await house.desk.room.settle()
        assert house.said() == [(1, "记忆功能")]


async def test_max_file_size_mb(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.option("storage.max_file_size_mb", 0.0005)
        for topic in ("一", "二", "三"):
            await house.desk.keep(topic)
        await house.embed()
        assert house.said() == [(3, "三")]


async def test_a_file_of_another_program_is_never_touched_and_is_told(tmp_path: Path) -> None:
    async with household(tmp_path) as house:
        await house.desk.keep("记忆功能")
        house.desk.embeddings.write_text('{"entries": []}', "utf-8")
        await house.embed()
        (told,) = house.desk.pages.notices.items()
        assert told == (str(house.desk.embeddings), "was written by somebody else and is left as it is")
        await house.desk.room.deeds.remove((await house.desk.room.book()).shown()[0].record_id)
        await house.embed()
        assert house.desk.embeddings.read_text("utf-8") == '{"entries": []}'
        house.desk.embeddings.unlink()
        await house.desk.keep("火锅")
        await house.embed()
        assert house.said() == [(2, "火锅")]
        house.desk.embeddings.write_text("edited", "utf-8")
        await house.desk.keep("爬山")
        await house.embed()
        assert house.desk.embeddings.read_text("utf-8") == "edited"


async def test_another_account_of_this_machine_takes_it_away(tmp_path: Path) -> None:
    async with household(tmp_path / "a") as first, household(tmp_path / "b", profile="prof_b") as second:
        await first.desk.keep("甲的")
        await first.embed()
        second.desk.places.home = first.desk.home
        await second.desk.keep("乙的")
        assert first.said() is None
        await second.embed()
        assert first.said() == [(1, "乙的")]


def test_a_sidecar_writes_it_as_soon_as_there_are_vectors(tmp_path: Path) -> None:
    async def main() -> None:
        async with household(tmp_path) as house:
            await house.desk.keep("记忆功能")
            with running(house.desk.room.keeper.keep_pages()):
                await asyncio.sleep(1.0)
                assert house.said() is None
                await house.make()
                await asyncio.sleep(0.1)  # the next look at the pages is seconds away
                assert house.said() == [(1, "记忆功能")]

    in_virtual_time(main())
