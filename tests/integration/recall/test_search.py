"""Search finds every recorded text and no removed one, and names the source of each hit."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sync.db.engine import Transaction
from sync.document.versions.rescan import rescan
from sync.log import store as log_store
from sync.recall.index import store
from sync.recall.index.item_filter import ItemFilter
from sync.recall.model import Scope, SearchRequest
from sync.recall.ranking.document_frequency import COMMON_TERM_ITEMS, GROWTH_DIVISOR, DocumentFrequencyCache
from sync.recall.search import INDEXER_TIMEOUT, MAX_AWAITED_BACKLOG, MAX_CANDIDATE_ROWS, MERGE_PAUSE, RecallService
from sync.redaction import Redactor
from sync.settings.sections import RecallSettings
from tests.integration.recall.harness import LetterCountEmbedder, RecallHarness, open_recall_harness
from tests.support import event, run_in_virtual_time

MOMENTS = 40  # steps of the loop; a question takes fewer
FACTS = (
    "支付接口失败后重试三次，每次间隔两秒",
    "周末和小李去吃了重庆火锅",
    "国庆节去黄山爬山，看了日出",
    "项目使用 FastAPI 与 PostgreSQL",
    "The children were running in the park yesterday",
    "fetchUserById 返回 E1001 时检查 retry_count",
    "桌面端是 Electron35，缓存在 SQLite3",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("重试", FACTS[0]),
        ("火锅", FACTS[1]),
        ("火鍋", FACTS[1]),
        ("爬山", FACTS[2]),
        ("锅", FACTS[1]),
        ("山", FACTS[2]),
        ("fastapi", FACTS[3]),
        ("用的什么数据库？PostgreSQL 吗", FACTS[3]),
        ("child runs", FACTS[4]),
        ("E1001", FACTS[5]),
        ("user id", FACTS[5]),
        ("RETRY_COUNT", FACTS[5]),
        ("ＦａｓｔＡＰＩ", FACTS[3]),
        ("sqlite", FACTS[6]),
        ("electron", FACTS[6]),
    ],
)
async def test_words_of_any_length_script_and_form_are_found(tmp_path: Path, query: str, expected: str) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts(*FACTS)
        assert (await harness.texts_found(query))[0] == expected


async def test_a_hit_says_where_it_comes_from(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        (said,) = await harness.record_texts(
            "爱吃火锅", ts="2025-12-31T23:30:00.000Z", project_id="proj_abcd1234", origin="user-typed", session_id="s1"
        )
        (hit,) = (await harness.search("火锅")).hits
        kept = hit.item
        assert (kept.event_id, kept.kind, kept.origin, kept.device_id) == (said, "fact", "tool", "device-a")
        assert (kept.project_id, kept.session_id, kept.date) == ("proj_abcd1234", "s1", "2026-01-01")  # as it was there
        assert 0 < hit.parts.cover <= 1
        assert hit.parts.semantic is None


async def test_every_type_that_carries_words_is_indexed(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("事实里有榴莲")
        await harness.record_texts("反馈里有榴莲", kind="user_feedback")
        await harness.record_texts("别的程序说榴莲", kind="invented_type", store=True)
        await harness.record_event("message", role="user", content="消息里有榴莲")
        await harness.record_event("exchange_recorded", question="榴莲好吃吗", answer="因人而异")
        await harness.record_event("entry_added", entry_id="ent_a", section=["用户偏好"], text="- 不吃榴莲", after=None)
        kinds = {hit.item.kind for hit in (await harness.search("榴莲")).hits}
        assert kinds == {"fact", "feedback", "invented_type", "message", "exchange", "entry"}


async def test_an_edited_line_is_found_by_its_new_words_only_and_a_removed_one_by_none(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        section = ["用户偏好", "工作习惯"]
        await harness.record_event("entry_added", entry_id="ent_a", section=section, text="- 早上喝咖啡", after=None)
        assert await harness.texts_found("咖啡") == ["早上喝咖啡"]
        await harness.record_event(
            "entry_edited", entry_id="ent_a", section=section, text="- 早上喝绿茶", base_hash="0"
        )
        assert await harness.texts_found("咖啡") == []
        assert await harness.texts_found("绿茶") == ["早上喝绿茶"]
        await harness.record_event("entry_removed", entry_id="ent_a", section=section)
        assert await harness.texts_found("绿茶") == []


async def test_a_daily_record_keeps_its_day_and_a_mark_its_origin(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        record: dict[str, Any] = {"record_id": "rec_a", "topic": "周末吃火锅", "facts": [], "code": [], "tags": []}
        payload = {**record, "date": "2025-12-15", "time": "00:30:00", "session": 1}
        draft = harness.device.intake.build({"type": "session_recorded", "payload": payload, "origin": "imported"})
        (recorded,) = await harness.device.log.append([draft])
        first = recorded.event.event_id

        async def hit() -> tuple[str, ...]:
            (kept,) = [found.item for found in (await harness.search("火锅 2025年12月15日")).hits]
            return kept.event_id, kept.date, kept.origin, *kept.marks

        assert await hit() == (first, "2025-12-15", "imported")
        mark = await harness.record_event("session_marked", **record, mark="important", on=True, marks=["important"])
        assert await hit() == (first, "2025-12-15", "imported", "important")
        await harness.record_event("daily_undone", undoes=mark, **record)
        assert await hit() == (first, "2025-12-15", "imported")
        edited = await harness.record_event(
            "session_edited", **record | {"topic": "周末在家吃火锅"}, changed=["topic"], by="hand"
        )
        assert (await hit())[:2] == (edited, "2025-12-15")
        by_hand = record | {"topic": "周末在家吃火锅"}
        mark = await harness.record_event("session_marked", **by_hand, mark="important", on=True, marks=["important"])
        await harness.record_event("daily_undone", undoes=mark, **by_hand)
        assert (await hit())[0] == edited, "an undone mark leaves the words to whoever said them"
        again = await harness.record_event(
            "session_edited", **record | {"topic": "周末在外吃火锅"}, changed=["topic"], by="hand"
        )
        assert (await hit())[0] == again
        await harness.record_event("daily_undone", undoes=again, **by_hand)
        assert (await hit())[:2] == (edited, "2025-12-15")
        taken = await harness.record_event("session_removed", record_id="rec_a", gone=True, reason="asked")
        await harness.record_event("daily_undone", undoes=taken, **by_hand)
        assert (await hit())[:2] == (edited, "2025-12-15")
        gone = await harness.record_event("session_removed", record_id="rec_a", gone=True, reason="asked")
        assert await harness.texts_found("火锅") == []
        await harness.record_event("daily_undone", undoes=gone, **record)
        assert await hit() == (first, "2025-12-15", "imported")
        shown = await harness.device.database.read(_picture)
        await harness.recall.projection_runner.rebuild()
        assert await harness.device.database.read(_picture) == shown


async def test_the_edited_half_of_an_exchange_replaces_it(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        said = await harness.record_event("exchange_recorded", question="周会几点", answer="下午三点")
        section = ["重要对话记录", "2026/2/2"]
        await harness.record_event(
            "entry_edited", entry_id=f"{said}.a", section=section, text="- AI 答：改到四点", base_hash="0"
        )
        assert await harness.texts_found("三点") == []
        assert await harness.texts_found("四点") == ["改到四点"]
        await harness.record_erasure(said)
        assert await harness.texts_found("四点") == []


async def test_what_is_forgotten_leaves_the_index_and_its_words(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        gone, stays = await harness.record_texts("密谋吃火锅", "公开吃火锅")
        assert len(await harness.texts_found("火锅")) == 2
        await harness.record_erasure(gone)
        assert await harness.texts_found("火锅") == ["公开吃火锅"]
        assert await harness.texts_found("密谋") == []
        await harness.record_erasure(stays)
        assert await harness.texts_found("火锅") == []
        assert await harness.device.database.read(store.item_totals) == (0, 0.0)


async def test_what_a_correction_changes_is_found_by_what_it_says_now_and_not_by_what_it_said(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        stricter = Redactor(extra_patterns=["蓝猫[0-9]+"])
        await harness.record_texts("代号叫蓝猫7391，去黄山用")
        await harness.record_event(
            "entry_added", entry_id="ent_a", section=[], text="- 蓝猫7392 是咖啡店的", after=None
        )
        await harness.record_event("entry_edited", entry_id="ent_a", section=[], text="- 只是一家咖啡店", base_hash="0")
        assert len(await harness.texts_found("蓝猫7391")) == 1
        await rescan(harness.device.log, stricter, harness.device.clock, local=True, apply=True)
        for _ in range(2):
            assert await harness.texts_found("黄山") == ["代号叫[自定义]，去黄山用"]
            assert await harness.texts_found("咖啡店") == ["只是一家咖啡店"]
            assert not any("蓝猫" in text for text in await harness.texts_found("蓝猫7391 蓝猫7392", limit=200))
            grown = await harness.device.database.read(_picture)
            await harness.recall.projection_runner.rebuild()
            assert await harness.device.database.read(_picture) == grown
        stricter = Redactor(extra_patterns=["蓝猫[0-9]+", "去黄山"])
        await rescan(harness.device.log, stricter, harness.device.clock, local=True, apply=True)
        assert await harness.texts_found("代号") == ["代号叫[自定义]，[自定义]用"]
        wishes = [event.event_id for event in await harness.device.events() if event.type == "payload_redacted"]
        await harness.record_erasure(*wishes)
        assert await harness.texts_found("代号") == []


async def test_no_term_of_what_is_forgotten_stays_in_the_word_index(tmp_path: Path) -> None:
    """A term that nothing holds any more lies in the index's own rows until its parts are merged."""
    async with open_recall_harness(tmp_path) as harness:
        (gone,) = await harness.record_texts("das Passwort ist xylokarp")
        assert await harness.texts_found("xylokarp")
        assert await _is_in_the_index(harness, b"ylokarp")
        await harness.record_texts(*FACTS)
        await harness.record_erasure(gone)
        assert await harness.texts_found("xylokarp") == []
        assert not await _is_in_the_index(harness, b"ylokarp")
        assert await harness.texts_found("火锅")


def test_a_question_does_not_wait_until_the_words_of_what_is_forgotten_have_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            keeping = asyncio.create_task(harness.recall.run_indexer())
            gone, _ = await harness.record_texts("das Passwort ist xylokarp", FACTS[0])
            await asyncio.sleep(60)
            await harness.record_erasure(gone)
            assert await harness.texts_found("xylokarp") == []
            assert await _is_in_the_index(harness, b"ylokarp")
            await asyncio.sleep(60)
            assert not await _is_in_the_index(harness, b"ylokarp")
            keeping.cancel()

    run_in_virtual_time(main())


async def test_words_leave_the_index_in_steps_that_another_start_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MERGE_PAGES", 1)
    async with open_recall_harness(tmp_path) as harness:
        (gone,) = await harness.record_texts("das Passwort ist xylokarp")
        for number in range(30):
            await harness.record_texts(*(f"{number} {other} {FACTS[other % 6]}" for other in range(60)))
            await harness.recall.catch_up()
        await harness.record_erasure(gone)
        await harness.recall.projection_runner.catch_up()
        assert await harness.device.database.write(partial(store.merge_step, is_first_step=True))
    async with open_recall_harness(tmp_path) as harness:
        assert await _is_in_the_index(harness, b"ylokarp")
        await harness.recall.catch_up()
        assert not await _is_in_the_index(harness, b"ylokarp")
        assert not await harness.device.database.read(store.is_unmerged)


def test_words_leave_the_index_also_where_others_come_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes between two steps may keep SQLite from letting go: all parts have to have become one."""
    monkeypatch.setattr(store, "MERGE_PAGES", 1)

    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            (gone,) = await harness.record_texts("das Passwort ist xylokarp")
            for number in range(5):
                await harness.record_texts(*(f"{number}x{other} {number * other}y" for other in range(60)))
                await harness.recall.projection_runner.catch_up()
            await harness.record_erasure(gone)
            leaving = asyncio.create_task(harness.recall.catch_up())
            await asyncio.sleep(MERGE_PAUSE / 2)
            assert await harness.device.database.read(store.is_unmerged)
            await harness.record_texts(FACTS[0])
            await harness.recall.projection_runner.catch_up()
            await leaving
            assert not await _is_in_the_index(harness, b"ylokarp")
            parts = await harness.device.rows("select distinct id >> 37 from recall_words_data where id >> 37 > 0")
            assert len(parts) == 1

    run_in_virtual_time(main())


async def _is_in_the_index(harness: RecallHarness, word: bytes) -> bool:
    blocks = await harness.device.rows("select block from recall_words_data")
    return word in b"".join(block for (block,) in blocks)


async def test_filters_by_project_kind_and_time(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("甲项目的部署", project_id="proj_aaaaaaaa", ts="2026-01-10T00:00:00.000Z")
        await harness.record_texts("乙项目的部署", project_id="proj_bbbbbbbb", ts="2026-01-20T00:00:00.000Z")
        await harness.record_texts("部署要快", kind="user_feedback", ts="2026-01-30T00:00:00.000Z")
        assert len(await harness.texts_found("部署")) == 3
        assert await harness.texts_found("部署", project_id="proj_aaaaaaaa") == ["甲项目的部署"]
        assert await harness.texts_found("部署", kinds=("feedback",)) == ["部署要快"]
        late = 1_768_867_200_000  # 2026-01-20
        assert await harness.texts_found("部署", until_ms=late) == ["甲项目的部署"]
        assert set(await harness.texts_found("部署", since_ms=late)) == {"乙项目的部署", "部署要快"}


@pytest.mark.parametrize("others", [1, 4])
async def test_a_project_is_searched_alone_whether_most_items_are_of_it_or_few(tmp_path: Path, others: int) -> None:
    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        await harness.record_texts("甲项目的部署", "甲项目的部署日", project_id="proj_aaaaaaaa")
        await harness.record_texts(*(f"乙项目的部署 {at}" for at in range(others)), project_id="proj_bbbbbbbb")
        await harness.embed()
        assert await harness.texts_found("部署", project_id="proj_aaaaaaaa") == ["甲项目的部署", "甲项目的部署日"]
        assert len(await harness.texts_found("部署", project_id="proj_bbbbbbbb")) == others


async def test_hidden_items_are_no_hits(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        await harness.record_event("entry_added", entry_id="e1", text="部署在周五", section="项目")
        await harness.record_texts("部署在周六")
        await harness.embed()
        assert len(await harness.texts_found("部署")) == 2
        assert await harness.texts_found("部署", hidden_ids=("e1",)) == ["部署在周六"]


async def test_what_was_recorded_on_a_day_in_words_comes_first_and_the_rest_after_it(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:  # it is 2026-02-02, a Monday
        await harness.record_texts("部署失败了", ts="2026-02-01T10:00:00.000Z")
        await harness.record_texts("部署成功了", ts="2026-01-20T10:00:00.000Z")
        assert await harness.texts_found("昨天的部署") == ["部署失败了", "部署成功了"]
        assert await harness.texts_found("上上周的部署") == ["部署成功了", "部署失败了"]
        assert len(await harness.texts_found("去年的部署")) == 2


async def test_old_memories_are_found_as_well_as_new_ones_unless_decay_is_asked_for(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        (old,) = await harness.record_texts("最喜欢的火锅店叫老灶", ts="2021-01-01T00:00:00.000Z")
        await harness.record_texts("路过一家火锅店", ts="2026-02-01T00:00:00.000Z")
        assert (await harness.search("火锅店 老灶")).hits[0].item.event_id == old
    async with open_recall_harness(tmp_path / "decay", preset="seed000") as harness:
        (old,) = await harness.record_texts("最喜欢的火锅店叫老灶", ts="2021-01-01T00:00:00.000Z")
        await harness.record_texts("路过一家火锅店", ts="2026-02-01T00:00:00.000Z")
        assert (await harness.search("火锅店 老灶")).hits[-1].item.event_id == old


async def test_the_recent_part_is_asked_first_and_the_old_one_where_it_says_too_little(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("旧的部署说明", ts="2024-01-01T00:00:00.000Z")
        await harness.record_texts("新的部署说明一", ts="2026-02-01T00:00:00.000Z")
        thin = await harness.search("部署", scope=Scope.RECENT)
        assert (len(thin.hits), thin.includes_old) == (2, True)
        await harness.record_texts("新的部署说明二", "新的部署说明三", ts="2026-02-01T00:00:00.000Z")
        enough = await harness.search("部署", scope=Scope.RECENT)
        assert (len(enough.hits), enough.includes_old) == (3, False)


async def test_recent_items_that_hold_hardly_a_word_of_it_do_not_hide_the_old_one(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        (old,) = await harness.record_texts("爬山去了莫干山，住在山脚的民宿", ts="2024-01-01T00:00:00.000Z")
        others = "民宿的发票要报销", "孩子画了一座民宿", "隔壁民宿装修很吵", "房东把民宿卖掉了"
        await harness.record_texts(*others, ts="2026-02-01T00:00:00.000Z")
        told = await harness.search("爬山去了莫干山的民宿", scope=Scope.RECENT)
        assert (told.includes_old, told.hits[0].item.event_id) == (True, old)


async def test_a_question_of_nothing_but_a_day_returns_that_day_or_nothing(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("买了新的键盘", "订了去黄山的票", ts="2025-12-31T04:00:00.000Z")
        await harness.record_texts("干了很多别的事", ts="2025-12-01T04:00:00.000Z")
        assert set(await harness.texts_found("12月31日干了什么")) == {"买了新的键盘", "订了去黄山的票"}
        assert await harness.texts_found("12月30日干了什么") == []


async def test_a_quoted_phrase_that_nothing_holds_is_no_condition(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("Melanie read Nothing is Impossible in May")
        assert await harness.texts_found('When did Melanie read "nothing was impossible"') != []


async def test_a_date_alone_finds_what_names_that_day_whenever_it_was_recorded(tmp_path: Path) -> None:
    named = "牙医预约改到2026年12月3日下午三点", "交房租的日子是12月3日", "Release is on 2026-12-03"
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts(*named, "有 12 个人，3 天后出发", "护照十二月四日到期")
        assert set(await harness.texts_found("12月3日")) == set(named)
        assert set(await harness.texts_found("十二月三日")) == set(named)
        assert set(await harness.texts_found("2026年12月3日")) == {named[0], named[2]}
        assert set(await harness.texts_found("2026-12-03")) == {named[0], named[2]}
        assert set(await harness.texts_found("what happened on December 4")) == {"护照十二月四日到期"}


async def test_what_holds_a_quoted_phrase_comes_first_and_the_rest_after_it(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts("火锅店老灶火锅", "开了一家新的火锅店在楼下那条街的拐角处")
        assert await harness.texts_found("新的“火锅店”") != []
        assert len(await harness.texts_found("“新的火锅”")) == 2
        assert (await harness.texts_found("“新的火锅”"))[0].startswith("开了")


async def test_importance_and_marks_move_a_hit_and_sensitive_ones_are_not_kept(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_event("memory_fact", content="部署脚本一号", tags=["outdated"])
        await harness.record_event("memory_fact", content="部署脚本二号")
        await harness.record_event("memory_fact", content="部署脚本三号", tags=["important"])
        await harness.record_event("memory_fact", content="部署脚本四号", tags=["sensitive"])
        assert await harness.texts_found("部署脚本") == ["部署脚本三号", "部署脚本二号", "部署脚本一号"]
        assert await harness.texts_found("outdated") == ["部署脚本一号"]


async def test_one_happening_kept_twice_is_one_hit_but_two_memories_are_two(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        said = "帮我把部署脚本改成先跑迁移再重启服务，并且在失败的时候自动回滚到上一个版本"
        whole = await harness.record_event("message", role="user", content=said)
        short = await harness.record_event("exchange_recorded", question=said[:30] + "...", answer="好的，脚本已经改好")
        (hit,) = (await harness.search("部署脚本迁移", kinds=("message", "exchange"))).hits
        assert {hit.item.event_id, *hit.duplicate_event_ids} == {whole, short}
        await harness.record_texts("买了三斤苹果", "买了三斤苹果", "买了四斤苹果")
        assert len(await harness.texts_found("苹果")) == 3


async def test_a_turn_lifts_what_was_said_beside_it(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        talk = (
            "Caro: Did you adopt a kitten?",
            "Mel: Yes, a grey one last week!",
            "Caro: Lovely.",
            "Mel: I bake bread.",
        )
        await harness.record_texts(*talk, session_id="talk-1")
        await harness.record_texts("Yes, grey curtains", session_id="talk-2")
        hits = (await harness.search("which kitten, the grey one?")).hits
        assert [hit.item.text for hit in hits][:2] == list(talk[:2])
        assert hits[1].neighbour_texts == (talk[0], talk[2])


async def test_what_another_device_said_is_found_with_its_name(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        foreign = event(
            1, device="device-b", replica="rep_b", type="memory_fact", payload={"content": "办公室的打印机"}
        )
        await harness.device.database.write(lambda connection: log_store.insert_events(connection, [foreign]))
        (hit,) = (await harness.search("打印机")).hits
        assert (hit.item.device_id, hit.item.event_id) == ("device-b", foreign.event_id)


async def test_an_index_that_grew_equals_a_rebuilt_one(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        ids = await harness.record_texts(*FACTS)
        await harness.record_event("entry_added", entry_id="ent_a", section=[], text="- 早上喝咖啡", after=None)
        await harness.search("x")
        await harness.record_event("entry_edited", entry_id="ent_a", section=[], text="- 早上喝绿茶", base_hash="0")
        await harness.record_erasure(ids[1])
        await harness.search("x")
        grown = await harness.device.database.read(_picture)
        await harness.recall.projection_runner.rebuild()
        assert await harness.device.database.read(_picture) == grown


async def test_the_index_of_a_salvaged_database_is_rebuilt(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts(*FACTS)
        assert await harness.texts_found("火锅")

        def salvaged(connection: Transaction) -> None:
            for name in ("recall_words", "recall_items", "recall_totals"):
                connection.exec_driver_sql(f"drop table {name}")
            log_store.reset_projections(connection)

        await harness.device.database.write(salvaged)
        assert await harness.texts_found("火锅")


async def test_the_same_question_is_answered_from_what_was_found_until_something_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts(*FACTS)
        first = await harness.search("火锅")
        with monkeypatch.context() as nothing_is_read:
            nothing_is_read.setattr(harness.device.database, "_reader", None)
            assert await harness.search("火锅") is first
        await harness.record_texts("又去吃火锅")
        assert len((await harness.search("火锅")).hits) == 2


def test_what_is_recorded_while_a_question_is_answered_is_found_by_the_next_one(tmp_path: Path) -> None:
    """At any moment: between completing the index and noting it, or while a result is cached."""

    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            await harness.record_texts(*FACTS)
            for moment in range(MOMENTS):
                await harness.record_texts(f"before moment{moment}")
                asked = [asyncio.create_task(harness.texts_found("重试", limit=200))]
                for _ in range(moment):
                    await asyncio.sleep(0)
                await harness.record_texts(f"重试 later{moment}")
                asked.append(asyncio.create_task(harness.texts_found(f"moment{moment}")))
                await asyncio.gather(*asked)
                assert f"重试 later{moment}" in await harness.texts_found(f"later{moment}")
                assert f"重试 later{moment}" in await harness.texts_found("重试", limit=200)

    run_in_virtual_time(main())


async def test_a_process_that_may_not_index_asks_what_is_there(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        guest = RecallService(harness.device.log, harness.device.clock, RecallSettings(), may_index=False)
        await harness.record_texts(*FACTS)
        assert (await guest.search(SearchRequest("火锅"))).hits == ()  # the index does not exist yet
        await harness.search("x")
        assert len((await guest.search(SearchRequest("火锅"))).hits) == 1


def test_if_no_process_indexes_only_the_first_query_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            guest = RecallService(harness.device.log, harness.device.clock, RecallSettings(), may_index=False)
            await harness.record_texts(*FACTS)
            asked_at = []
            for query in ("火锅", "爬山", "重试"):
                asked_at.append(asyncio.get_running_loop().time())
                await guest.search(SearchRequest(query))
            assert asked_at[1] - asked_at[0] >= INDEXER_TIMEOUT
            assert asked_at[2] == asked_at[1]

    run_in_virtual_time(main())


async def test_a_word_that_thousands_hold_is_found_where_the_filter_says(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        (old,) = await harness.record_texts("部署的第一天", project_id="proj_aaaaaaaa")
        await _many(harness, MAX_CANDIDATE_ROWS + 1)
        (hit,) = (await harness.search("部署", project_id="proj_aaaaaaaa")).hits
        assert hit.item.event_id == old
        assert (await harness.search("第一天的部署")).hits[0].item.event_id == old


async def test_common_terms_are_counted_again_when_the_index_has_grown_and_rare_ones_always(tmp_path: Path) -> None:
    counts = DocumentFrequencyCache()
    async with open_recall_harness(tmp_path) as harness:

        async def counted() -> dict[str, int]:
            await harness.recall.projection_runner.catch_up()

            def counting(connection: Transaction) -> dict[str, int]:
                items, _ = store.item_totals(connection)
                return counts.lookup(
                    ("部署", "火锅"),
                    items,
                    lambda term: store.count_items_with_term(connection, term, COMMON_TERM_ITEMS),
                )

            return await harness.device.database.read(counting)

        await _many(harness, COMMON_TERM_ITEMS * 2)
        assert (before := await counted())["火锅"] == 0
        assert before["部署"] == pytest.approx(COMMON_TERM_ITEMS * 2, rel=0.1)
        await _many(harness, COMMON_TERM_ITEMS * 2 // GROWTH_DIVISOR, first=COMMON_TERM_ITEMS * 2 + 1, text="部署 火锅")
        assert await counted() == {"部署": before["部署"], "火锅": COMMON_TERM_ITEMS * 2 // GROWTH_DIVISOR}
        await _many(harness, COMMON_TERM_ITEMS, first=COMMON_TERM_ITEMS * 4)
        assert (await counted())["部署"] == pytest.approx(COMMON_TERM_ITEMS * 3, rel=0.1)


async def _many(harness: RecallHarness, count: int, *, first: int = 1, text: str = "部署") -> None:
    def adding(connection: Transaction) -> None:
        made = [
            event(
                number, replica="rep_b", device="device-b", type="memory_fact", payload={"content": f"{text} {number}"}
            )
            for number in range(first, first + count)
        ]
        log_store.insert_events(connection, made)

    await harness.device.database.write(adding)


def _picture(connection: Transaction) -> tuple[Any, ...]:
    rows = [row._replace(first_id=0) for row in store.all_rows(connection)]
    terms = sorted({word for row in rows for word in row.terms()})
    words = [(term, store.items_with_terms(connection, [[term]], ItemFilter(), 1_000)) for term in terms]
    return rows, words, store.item_totals(connection)


def test_while_a_long_pull_is_under_way_the_index_waits_and_a_question_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            busy = True
            keeping = asyncio.create_task(harness.recall.run_indexer(lambda: busy))
            await harness.record_texts(FACTS[0])
            await asyncio.sleep(60)
            assert await harness.device.log.watermark("recall") == 0
            assert await harness.texts_found("重试") == [FACTS[0]]
            await harness.record_texts(FACTS[1])
            busy = False
            await asyncio.sleep(60)
            assert await harness.device.log.watermark("recall") == await harness.device.log.newest_position()
            keeping.cancel()

    run_in_virtual_time(main())


def test_after_a_large_pull_a_question_is_answered_at_once_from_what_is_indexed_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_recall_harness(tmp_path, inline=True) as harness:
            await harness.record_texts(*FACTS)
            assert (await harness.search("重试")).partial is False
            pulling = True
            keeping = asyncio.create_task(harness.recall.run_indexer(lambda: pulling))
            await asyncio.sleep(0)
            await _many(harness, MAX_AWAITED_BACKLOG + 200)
            asked_at = asyncio.get_running_loop().time()
            answer = await harness.search("重试")
            assert [hit.item.text for hit in answer.hits] == [FACTS[0]]
            assert answer.partial
            assert asyncio.get_running_loop().time() == asked_at
            assert await harness.device.log.watermark("recall") < MAX_AWAITED_BACKLOG
            pulling = False
            await asyncio.sleep(60)
            answer = await harness.search("部署", limit=1)
            assert (len(answer.hits), answer.partial) == (1, False)
            keeping.cancel()

    run_in_virtual_time(main())


async def test_a_line_below_the_heading_of_a_day_was_said_on_that_day(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        for name, heading, text in (("a", "2025/11/20", "nginx 重启"), ("b", "2025年10月18日", "蓝牙耳机断连")):
            section = ["重要对话记录", heading]
            await harness.record_event("entry_added", entry_id=name, section=section, text=f"- {text}", after=None)
        await harness.record_event("entry_added", entry_id="c", section=["用户偏好"], text="- 不吃榴莲", after=None)
        dates = {
            hit.item.text: hit.item.date for word in ("nginx", "耳机") for hit in (await harness.search(word)).hits
        }
        assert dates == {"nginx 重启": "2025-11-20", "蓝牙耳机断连": "2025-10-18"}
        assert await harness.texts_found("2025年11月20日聊了什么") == ["nginx 重启"]
