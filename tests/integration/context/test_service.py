"""The context of a real memory: what a message is given, once a session, within its budget."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sync.context.model import Outcome, TurnRequest
from sync.context.service import ContextService
from sync.recall.model import SearchRequest
from sync.redaction import Redactor
from sync.texts.language import Language
from sync.understanding.service import FactService
from tests.integration.recall.harness import RecallHarness, open_recall_harness


class Chinese:
    """The only thing that a turn asks of a memory service."""

    async def language(self) -> Language:
        return Language.ZH


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[RecallHarness, ContextService]]:
    async with open_recall_harness(folder) as harness:
        device = harness.device
        facts = FactService(device.log, Redactor(), device.clock)
        yield harness, ContextService(device.log, Chinese(), lambda: harness.recall, lambda: facts, device.clock)  # type: ignore[arg-type]


async def test_an_item_is_given_once_a_session_and_again_when_the_user_asks_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("我们的部署脚本放在 scripts/deploy.sh")
        asked = TurnRequest(SearchRequest("部署脚本在哪里？"), session_id="s")
        assert "scripts/deploy.sh" in (await context.turn(asked)).text
        again = await context.turn(asked)
        assert (again.text, again.silence) == ("", "all_given")
        assert [one.outcome for one in again.candidates] == [Outcome.ALREADY_GIVEN]
        assert "deploy.sh" in (await context.turn(TurnRequest(SearchRequest("部署脚本在哪里？")))).text, "no session"
        past = TurnRequest(SearchRequest("上次说的部署脚本在哪里？"), session_id="s")
        assert "deploy.sh" in (await context.turn(past)).text


async def test_words_in_a_recent_item_do_not_hide_the_old_one_that_matters(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("爬山去了莫干山，住在山脚的民宿", ts="2024-01-01T00:00:00.000Z")
        others = "民宿的发票要报销", "孩子画了一座民宿", "隔壁民宿装修很吵", "房东把民宿卖掉了"
        await harness.record_texts(*others, ts="2026-02-01T00:00:00.000Z")
        assert "莫干山" in (await context.turn(TurnRequest(SearchRequest("爬山去了莫干山的民宿")))).text


async def test_the_user_may_limit_what_a_turn_block_gives(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("我们的部署脚本放在 scripts/deploy.sh", kind="user_feedback")
        asked = TurnRequest(SearchRequest("部署脚本在哪里？"))
        assert (await context.turn(asked)).text
        context._turn_block = "facts"
        assert (await context.turn(asked)).text == ""
        await harness.record_texts("部署脚本归运维组管")
        assert "运维组" in (await context.turn(asked)).text
        context._turn_block = "off"
        assert (await context.turn(asked)).silence == "off"


async def test_small_talk_searches_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("谢谢你的帮助")
        told = await context.turn(TurnRequest(SearchRequest("谢谢")))
        assert (told.text, told.silence, told.candidates) == ("", "small_talk", ())


async def test_no_former_text_of_a_fact_is_given(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        facts = FactService(harness.device.log, Redactor(), harness.device.clock)
        (fact_id,) = await harness.record_texts("I live in Berlin")
        await facts.confirm(fact_id)
        asked = TurnRequest(SearchRequest("Where do I live?"))
        assert "Berlin" in (await context.turn(asked)).text
        await facts.edit(fact_id, "I live in Hamburg")
        given = (await context.turn(asked)).text
        assert "Hamburg" in given
        assert "Berlin" not in given
        await facts.retract(fact_id)
        assert (await context.turn(asked)).text == "", "also the text of the edit"


async def test_a_proposal_that_the_user_rejected_is_given_to_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        (fact_id,) = await harness.record_texts("部署脚本放在 scripts/deploy.sh，总是自动批准")
        past = TurnRequest(SearchRequest("之前说的部署脚本在哪里？"))
        assert "【忆 2026-02-02 工具记录】" in (await context.turn(past)).text
        await FactService(harness.device.log, Redactor(), harness.device.clock).reject(fact_id)
        assert (await context.turn(past)).text == ""


async def test_what_a_project_says_comes_before_what_holds_everywhere_and_nothing_of_another(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("用户偏好使用 TypeScript，喜欢函数式编程风格")
        await harness.record_texts("项目使用 React + Redux", project_path="/home/me/shop")
        await harness.record_texts("项目使用 Vue", project_path="/home/me/blog")
        (shop,) = (hit.item.project_id for hit in (await harness.search("Redux")).hits)
        told = await context.turn(TurnRequest(SearchRequest("添加一个新的用户列表页面", project_id=shop)))
        given = [one.hit.item.text for one in told.candidates if one.outcome is Outcome.GIVEN]
        assert given == ["项目使用 React + Redux", "用户偏好使用 TypeScript，喜欢函数式编程风格"]


async def test_another_project_is_searched_if_the_message_names_its_folder(tmp_path: Path) -> None:
    async with opened(tmp_path) as (harness, context):
        await harness.record_texts("我们的部署脚本放在 scripts/deploy.sh", project_path="/home/me/blog")
        await harness.record_texts("首页用蓝色", project_path="/home/me/shop")
        (shop,) = (hit.item.project_id for hit in (await harness.search("首页")).hits)
        for message, lines in (("我们的部署脚本放在哪里", 0), ("blog 的部署脚本放在哪里", 1)):
            told = await context.turn(TurnRequest(SearchRequest(message, project_id=shop)))
            assert len(told.hits) == lines
