"""Facts as lines of the document: shown, replaced, and retracted or edited by hand; with real files and databases."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.document.erasure.erasure import request
from sync.log.event_types import ENTRY_ADDED, ENTRY_REMOVED, FACT_EDITED, FACT_RETRACTED, MEMORY_FACT, PAYLOAD_FORGOTTEN
from sync.log.ingest import DraftBuilder
from sync.log.model import GLOBAL_PROJECT, EventDraft, Origin, Query
from sync.understanding.answers import edit_draft, verdict_draft
from sync.understanding.fact_events import statement_drafts
from sync.understanding.model import AnswerKind, Change, FactKind, FactSection, FactStatus, Statement
from sync.understanding.projection import FactProjection, Facts
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import REDACTOR
from tests.unit.document.examples import FULL

ALLERGY = Statement("我对花生过敏", FactKind.CONSTRAINT, FactSection.PERSONAL, "diet.allergy")
DARK = Statement("我更喜欢深色主题", FactKind.PREFERENCE, FactSection.TECHNICAL_PREFERENCES, "theme")
LIGHT = Statement("改用浅色", FactKind.PREFERENCE, FactSection.TECHNICAL_PREFERENCES, "theme", change=Change.REPLACES)
SHORT = Statement("回答尽量简短", FactKind.PREFERENCE, FactSection.COMMUNICATION_STYLE)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def state(
    harness: DocumentHarness, *statements: Statement, project: str = GLOBAL_PROJECT, session: str | None = None
) -> str:
    """Record an exchange in which the user states these facts, as `update` does; its id."""
    harness.clock.advance(seconds=1)
    number = await harness.log.newest_position()
    exchange = EventDraft(
        "exchange_recorded",
        REDACTOR.clean_payload({"question": "，".join(one.text for one in statements), "answer": "好的"}),
        event_id=f"evt_{harness.log.device_id}_{number}",
        origin=Origin.MODEL,
        project_id=project,
        session_id=session,
    )
    recorded = await harness.log.append([exchange, *statement_drafts(statements, exchange, REDACTOR)])
    return recorded[0].event.event_id


async def facts_of(harness: DocumentHarness) -> Facts:
    return await harness.database.read(FactProjection().read)


async def statuses(harness: DocumentHarness) -> dict[str, str]:
    return {fact.statement: str(fact.status) for fact in (await facts_of(harness)).facts}


async def events_of(harness: DocumentHarness, *types: str) -> list[Any]:
    return [event for event in (await harness.log.read(Query(limit=10_000))).events if event.type in types]


def line_under(text: str, heading: str) -> list[str]:
    lines = text.partition(f"### {heading}\n")[2].partition("\n#")[0].splitlines()
    return [line for line in lines if line.startswith("- ")]


class TestShown:
    async def test_each_section_shows_its_facts_at_once_and_in_the_file(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY, DARK, SHORT)
        shown = (await harness.memory.view()).text
        await harness.memory.reconcile()
        for text in (shown, harness.text):
            assert line_under(text, "个人情况") == ["- 我对花生过敏"]
            assert line_under(text, "技术偏好") == ["- 我更喜欢深色主题"]
            assert line_under(text, "沟通风格") == ["- 回答尽量简短"]
            assert line_under(text, "工作习惯") == ["- （待补充）"]

    async def test_an_existing_document_gets_the_new_subsection_with_its_first_line(
        self, harness: DocumentHarness
    ) -> None:
        harness.text = FULL
        await harness.memory.reconcile()
        before = harness.text.splitlines()
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 我对花生过敏"]
        assert [line for line in before if not line.startswith("**最后更新**") and line not in harness.text] == []
        assert [cause for _, cause in await harness.versions()][-1] == "facts"

    async def test_a_later_statement_replaces_the_line(self, harness: DocumentHarness) -> None:
        await state(harness, DARK, session="evening")
        await harness.memory.reconcile()
        await state(harness, LIGHT, session="morning")
        await harness.memory.reconcile()
        assert line_under(harness.text, "技术偏好") == ["- 改用浅色"]
        lines = await events_of(harness, ENTRY_ADDED, ENTRY_REMOVED)
        assert [one.session_id for one in lines if one.payload["section"][:1] == ["用户偏好"]] == [
            "evening",
            "morning",
            "morning",
        ]

    async def test_a_candidate_a_project_and_what_is_over_have_no_line(self, harness: DocumentHarness) -> None:
        over = Statement("周五去天津", FactKind.PLAN, FactSection.PERSONAL, valid_until="2026-01-07")
        later = Statement("下周去宁波", FactKind.PLAN, FactSection.PERSONAL, valid_until="2026-01-16")
        project = Statement("用 FastAPI", FactKind.DECISION, FactSection.TECHNICAL_PREFERENCES)
        await state(harness, over, later)
        await state(harness, project, project="proj_web")
        proposal = {"content": "喜欢爬山", "kind": "preference", "section": "personal"}
        draft = EventDraft(MEMORY_FACT, REDACTOR.clean_payload(proposal), origin=Origin.TOOL)
        (proposed,) = await harness.log.append([draft])
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 下周去宁波"]
        assert "FastAPI" not in harness.text.partition("## 重要对话记录")[0]
        confirmed = verdict_draft(AnswerKind.CONFIRMED, await facts_of(harness), proposed.event.event_id, REDACTOR)
        await harness.log.append([confirmed])
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 下周去宁波", "- 喜欢爬山"]

    async def test_a_plan_loses_its_line_on_the_day_after_it(self, harness: DocumentHarness) -> None:
        await state(harness, Statement("周五去天津", FactKind.PLAN, FactSection.PERSONAL, valid_until="2026-01-09"))
        await state(harness, Statement("周六去宁波", FactKind.PLAN, FactSection.PERSONAL, valid_until="2026-01-10"))
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 周五去天津", "- 周六去宁波"]
        harness.clock.advance(days=2)
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 周六去宁波"]
        harness.clock.advance(days=1)
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == []

    async def test_a_line_that_says_the_same_is_not_doubled(self, harness: DocumentHarness) -> None:
        harness.text = FULL.replace("### 工作习惯\n- （待补充）", "### 工作习惯\n* 我对花生过敏。")
        await harness.memory.reconcile()
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        assert harness.text.partition("## 重要对话记录")[0].count("花生") == 1
        harness.replace("* 我对花生过敏。\n", "")
        await harness.memory.reconcile()
        assert await statuses(harness) == {"我对花生过敏": FactStatus.RETRACTED}
        assert "花生" not in harness.text.partition("## 重要对话记录")[0]


class TestByHand:
    async def test_a_removed_line_retracts_its_fact_for_good(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY, SHORT)
        await harness.memory.reconcile()
        harness.replace("- 我对花生过敏\n", "")
        await harness.memory.reconcile()
        (retracted,) = await events_of(harness, FACT_RETRACTED)
        assert retracted.payload["reason"] == "document"
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == []
        assert await statuses(harness) == {"我对花生过敏": "retracted", "回答尽量简短": "active"}

    async def test_an_edited_line_edits_its_fact_and_stays_as_typed(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        harness.replace("- 我对花生过敏", "* 我对花生和虾过敏  ")
        await harness.memory.reconcile()
        await harness.memory.reconcile()
        assert "* 我对花生和虾过敏  \n" in harness.text
        assert await statuses(harness) == {"我对花生和虾过敏": "active"}

    async def test_a_moved_line_and_another_bullet_say_nothing_about_the_fact(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        harness.replace("- 我对花生过敏\n", "")
        harness.add_line_under("### 工作习惯", "* 我对花生过敏")
        await harness.memory.reconcile()
        assert await statuses(harness) == {"我对花生过敏": "active"}
        assert await events_of(harness, FACT_EDITED, FACT_RETRACTED) == []
        assert harness.text.count("* 我对花生过敏") == 1

    async def test_a_longer_line_stays_whole_and_its_fact_is_cut(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        harness.replace("- 我对花生过敏", "- 我对花生过敏" + "，很严重" * 40)
        await harness.memory.reconcile()
        await harness.memory.reconcile()
        assert "- 我对花生过敏" + "，很严重" * 40 + "\n" in harness.text
        (fact,) = (await facts_of(harness)).active
        assert (len(fact.statement), fact.statement[-1]) == (120, "…")

    async def test_an_edit_by_command_changes_the_line(self, harness: DocumentHarness) -> None:
        await state(harness, ALLERGY)
        await harness.memory.reconcile()
        fact_id = (await facts_of(harness)).active[0].fact_id
        await harness.log.append([edit_draft(await facts_of(harness), fact_id, "我对虾过敏", REDACTOR)])
        await harness.memory.reconcile()
        assert line_under(harness.text, "个人情况") == ["- 我对虾过敏"]

    async def test_a_line_with_a_number_in_front_is_read_as_it_was_written(self, harness: DocumentHarness) -> None:
        await state(harness, Statement("1. 先写测试", FactKind.HABIT, FactSection.WORK_HABITS))
        await harness.memory.reconcile()
        harness.add_line_under("### 沟通风格", "- 另一行")
        await harness.memory.reconcile()
        assert line_under(harness.text, "工作习惯") == ["- 1\\. 先写测试"]
        assert await events_of(harness, FACT_EDITED) == []


async def test_an_erased_exchange_takes_the_lines_of_its_facts_away(harness: DocumentHarness) -> None:
    event_id = await state(harness, ALLERGY)
    await state(harness, SHORT)
    await harness.memory.reconcile()
    harness.replace("- 我对花生过敏", "- 我对花生和虾过敏")
    await harness.memory.reconcile()
    await request(harness.log, DraftBuilder(REDACTOR, clock=harness.clock), [event_id])
    await harness.memory.reconcile()
    assert "花生" not in harness.text
    assert line_under(harness.text, "沟通风格") == ["- 回答尽量简短"]
    assert "花生" not in str([event.payload for event in (await harness.log.read(Query(limit=10_000))).events])


async def test_a_line_that_was_written_after_the_request_was_made_goes_too(harness: DocumentHarness) -> None:
    """Another device, or this one a moment before, names what it holds: the exchange and the fact, not the line."""
    event_id = await state(harness, ALLERGY)
    await state(harness, SHORT)
    await harness.memory.reconcile()
    named = [event_id, f"{event_id}.fact.1"]
    payload = REDACTOR.clean_payload_with_ids("event_ids", named, {})
    await harness.log.append([EventDraft(PAYLOAD_FORGOTTEN, payload, origin=Origin.TOOL)])
    await harness.memory.reconcile()
    assert line_under(harness.text, "个人情况") == []
    assert line_under(harness.text, "沟通风格") == ["- 回答尽量简短"]
    assert "花生" not in str([event.payload for event in (await harness.log.read(Query(limit=10_000))).events])


class TestSeveralDevices:
    @pytest.fixture
    async def others(self, tmp_path: Path) -> AsyncIterator[DocumentHarness]:
        async with open_document_harness(tmp_path / "b", device="device-b") as harness:
            yield harness

    async def test_a_document_of_its_own_shows_what_was_stated_on_its_device(
        self, harness: DocumentHarness, others: DocumentHarness
    ) -> None:
        await state(harness, ALLERGY, DARK)
        await others.record_and_reconcile("那边的问题")
        await others.pull_from(harness)
        assert line_under(others.text, "个人情况") == ["- （待补充）"]
        await state(others, LIGHT)
        await others.memory.reconcile()
        await harness.memory.reconcile()
        await harness.pull_from(others)
        assert line_under(harness.text, "技术偏好") == []
        assert line_under(others.text, "技术偏好") == ["- 改用浅色"]
