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

from sync.daily.model import normalised_content
from sync.recall.search import RecallService
from sync.recall.semantic.semantic_index import SemanticIndex
from sync.recall.semantic.vector_reader import VectorReader
from sync.runtime.change_counter import ChangeCounter
from sync.settings.sections import RecallSettings
from sync.system.files import stat_stamp
from tests.integration.daily.harness import DailyHarness
from tests.integration.recall.harness import LetterCountEmbedder
from tests.support import BROKEN_AFTER, Device, background_task, new_server, open_device, run_in_virtual_time

Said = list[tuple[int, str]]


@dataclass
class DailyWithVectors:
    """A harness of daily records whose texts get vectors."""

    harness: DailyHarness
    recall: RecallService

    async def make(self) -> None:
        """Make the vectors of all there is, as the sidecar does in the background, and tell."""
        await self.recall.projection_runner.catch_up()
        while await self.recall.semantic_index.embed_next():
            pass
        self.recall.semantic_index.changed.increment()

    async def embed(self) -> None:
        await self.make()
        await self.harness.service.reconcile()

    def said(self, root: Path | None = None) -> Said | None:
        """Session and first line of each entry; None without a file."""
        path = (root or self.harness.root) / "index" / "embeddings.json"
        if not path.exists():
            return None
        return [(one["session"], one["text"].split("\n")[0]) for one in json.loads(path.read_text("utf-8"))["entries"]]


@asynccontextmanager
async def open_daily_with_vectors(
    folder: Path, device: Device | None = None, **more: Any
) -> AsyncIterator[DailyWithVectors]:
    if device is None:
        async with (
            open_device(folder, new_server(), single_threaded=True) as opened,
            open_daily_with_vectors(folder, opened, **more) as found,
        ):
            yield found
        return
    changed = ChangeCounter()
    meaning = SemanticIndex(
        device.database, LetterCountEmbedder(), redact=str, query_timeout=BROKEN_AFTER, changed=changed
    )
    recall = RecallService(device.log, device.clock, RecallSettings(), may_index=True, semantic_index=meaning)
    try:
        yield DailyWithVectors(DailyHarness(device, vectors=VectorReader(device.database, changed), **more), recall)
    finally:
        await meaning.close()


async def test_each_session_with_a_vector_is_in_the_private_file_beside_its_page(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能", "端口是 8080")
        await house.harness.record("火锅")
        await house.harness.record("项目里的", project=True)
        assert house.said() is None, "no vector was made yet"
        await house.embed()
        assert house.said() == [(1, "记忆功能"), (2, "火锅")]
        assert house.said(house.harness.project_root) == [(1, "项目里的")]
        told = json.loads(house.harness.embeddings.read_text("utf-8"))
        assert (told["version"], told["model"]) == ("1.0", "letters")
        assert told["entries"][0]["text"] == "记忆功能\n端口是 8080"
        (same,) = await LetterCountEmbedder().embed([told["entries"][0]["text"]], query=False)
        assert told["entries"][0]["embedding"] == pytest.approx(memoryview(same).cast("f").tolist(), abs=0.01)
        if os.name == "posix":
            assert stat.S_IMODE(house.harness.embeddings.stat().st_mode) == 0o600


async def test_it_is_written_where_it_would_say_something_else_and_not_otherwise(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        await house.embed()
        before = stat_stamp(house.harness.embeddings)
        await house.harness.device.record_notes("别的话")
        await house.embed()
        assert stat_stamp(house.harness.embeddings) == before
        again = DailyHarness(house.harness.device, vectors=VectorReader(house.harness.device.database, ChangeCounter()))
        await again.service.reconcile()
        assert stat_stamp(house.harness.embeddings) == before, "nor by the next start"


async def test_what_is_edited_or_removed_leaves_at_once_and_the_new_words_come_with_their_vector(
    tmp_path: Path,
) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        first = (await house.harness.service.current_records()).visible()[0]
        await house.harness.record("火锅")
        await house.harness.record("爬山")
        second = (await house.harness.service.current_records()).visible()[1]
        await house.embed()
        await house.harness.service.record_service.edit(
            first.record_id, normalised_content("记忆功能，新的"), ("topic",)
        )
        await house.harness.service.record_service.remove(second.record_id)
        await house.harness.service.reconcile()
        assert house.said() == [(3, "爬山")], "the index has not followed yet"
        await house.embed()
        assert house.said() == [(1, "记忆功能，新的"), (3, "爬山")]


async def test_what_is_forgotten_leaves_it_before_the_index_follows(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        await house.harness.record("秘密的计划")
        secret = (await house.harness.service.current_records()).visible()[1]
        await house.embed()
        await house.harness.service.record_service.forget(secret.record_id)
        await house.harness.service.reconcile()
        assert not house.harness.embeddings.exists() or "秘密" not in house.harness.embeddings.read_text("utf-8")
        await house.embed()
        assert house.said() == [(1, "记忆功能")]


async def test_an_edit_that_is_forgotten_leaves_no_word_of_it(tmp_path: Path) -> None:
    """The record is there as it was before; the vector of the forgotten words is still in the tables."""
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        (known,) = (await house.harness.service.current_records()).visible()
        edited = await house.harness.service.record_service.edit(
            known.record_id, normalised_content("秘密的计划"), ("topic",)
        )
        await house.embed()
        assert house.said() == [(1, "秘密的计划")]
        assert edited.event_id is not None
        device = house.harness.device
        await device.log.append([device.intake.build_erasure([edited.event_id])])
        await house.harness.service.reconcile()
        assert await house.harness.topics() == ["记忆功能"]
        assert house.said() is None


async def test_it_goes_where_no_vectors_are_kept_any_more_or_nothing_is_left(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        await house.embed()
        off = DailyHarness(house.harness.device)
        await off.service.reconcile()
        assert house.said() is None
        house.recall.semantic_index.changed.increment()
        on = DailyHarness(house.harness.device, vectors=VectorReader(house.harness.device.database, ChangeCounter()))
        await on.service.reconcile()
        assert house.said() == [(1, "记忆功能")]
        await on.service.record_service.remove((await on.service.current_records()).visible()[0].record_id)
        await on.service.reconcile()
        assert house.said() is None


async def test_semantic_enabled(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        await house.embed()
        await house.harness.set_option("semantic.enabled", value=False)
        await house.harness.service.reconcile()
        assert house.said() is None
        await house.harness.set_option("semantic.enabled", value=True)
        await house.harness.service.reconcile()
        assert house.said() == [(1, "记忆功能")]


async def test_max_file_size_mb(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.set_option("storage.max_file_size_mb", 0.0005)
        for topic in ("一", "二", "三"):
            await house.harness.record(topic)
        await house.embed()
        assert house.said() == [(3, "三")]


async def test_a_file_of_another_program_is_never_changed_and_gives_a_notice(tmp_path: Path) -> None:
    async with open_daily_with_vectors(tmp_path) as house:
        await house.harness.record("记忆功能")
        house.harness.embeddings.write_text('{"entries": []}', "utf-8")
        await house.embed()
        (told,) = house.harness.pages.notices.items()
        assert told == (str(house.harness.embeddings), "was written by somebody else and is left as it is")
        await house.harness.service.record_service.remove(
            (await house.harness.service.current_records()).visible()[0].record_id
        )
        await house.embed()
        assert house.harness.embeddings.read_text("utf-8") == '{"entries": []}'
        house.harness.embeddings.unlink()
        await house.harness.record("火锅")
        await house.embed()
        assert house.said() == [(2, "火锅")]
        house.harness.embeddings.write_text("edited", "utf-8")
        await house.harness.record("爬山")
        await house.embed()
        assert house.harness.embeddings.read_text("utf-8") == "edited"


async def test_another_account_of_this_machine_takes_it_away(tmp_path: Path) -> None:
    async with (
        open_daily_with_vectors(tmp_path / "a") as first,
        open_daily_with_vectors(tmp_path / "b", profile="prof_b") as second,
    ):
        await first.harness.record("甲的")
        await first.embed()
        second.harness.places.home = first.harness.home
        await second.harness.record("乙的")
        assert first.said() is None
        await second.embed()
        assert first.said() == [(1, "乙的")]


def test_a_sidecar_writes_it_as_soon_as_there_are_vectors(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_daily_with_vectors(tmp_path) as house:
            await house.harness.record("记忆功能")
            with background_task(house.harness.service.worker.run_page_sync()):
                await asyncio.sleep(1.0)
                assert house.said() is None
                await house.make()
                await asyncio.sleep(0.1)  # the next look at the pages is seconds away
                assert house.said() == [(1, "记忆功能")]

    run_in_virtual_time(main())
