"""What the user says becomes facts with its exchange, with the turn before it in mind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.log import store as log_store
from sync.log.model import EventDraft
from sync.understanding.capture import fact_extractor
from sync.understanding.model import Fact
from sync.understanding.projection import FactProjection
from sync.understanding.store import Turn, turn_before
from tests.support import REDACTOR, Device, new_server, open_device


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as device:
        yield device


async def say(device: Device, message: str, answer: str = "好的", *, erased: bool = False) -> None:
    """Record an exchange of one session as `memory/update` does. `erased`: its text is gone."""
    before = await device.database.read(turn_before, "s1")
    add_facts = fact_extractor(message, REDACTOR, device.clock, before)
    payload = REDACTOR.clean_payload({} if erased else {"question": message, "answer": answer})
    draft = EventDraft("exchange_recorded", payload, session_id="s1")
    drafts = await device.database.write(lambda connection: add_facts(connection, [draft]))
    await device.log.append(drafts)


async def facts_of(device: Device) -> list[Fact]:
    return list((await device.database.read(FactProjection().read)).facts)


async def test_remember_this_means_the_users_words_before_it(device: Device) -> None:
    await say(device, "备用钥匙在门口花盆下面")
    await say(device, "记住这个")
    assert [(one.statement, one.status.value) for one in await facts_of(device)] == [
        ("备用钥匙在门口花盆下面", "active")
    ]


async def test_of_a_question_remember_this_means_its_answer_which_is_a_candidate(device: Device) -> None:
    await say(device, "复利怎么算？", "本金乘以一加利率的年数次方")
    await say(device, "记住这个")
    assert [(one.statement, one.status.value, one.about) for one in await facts_of(device)] == [
        ("本金乘以一加利率的年数次方", "candidate", "unknown")
    ]


async def test_the_words_of_a_request_are_at_most_a_candidate_beside_its_answer(device: Device) -> None:
    await say(device, "求 18 和 24 的最大公约数", "是 6：两个数都能被 6 整除，而没有更大的数能整除两者")
    await say(device, "记住这个")
    assert [(one.statement[:9], one.status.value) for one in await facts_of(device)] == [
        ("求 18 和 24", "candidate"),
        ("是 6：两个数都能", "candidate"),
    ]


async def test_what_was_erased_is_not_remembered(device: Device) -> None:
    await say(device, "备用钥匙在门口花盆下面", erased=True)
    await say(device, "记住这个")
    assert await facts_of(device) == []


async def test_a_call_that_is_repeated_records_nothing_twice(device: Device) -> None:
    draft = EventDraft("exchange_recorded", REDACTOR.clean_payload({"question": "q"}), event_id="evt_1")
    add_facts = fact_extractor("我对花生过敏", REDACTOR, device.clock)
    for _ in range(2):
        await device.log.append(await device.database.write(lambda connection: add_facts(connection, [draft])))
    assert [one.fact_id for one in await facts_of(device)] == ["evt_1.fact.1"]


async def test_the_turn_before_is_the_last_one_of_its_session_as_it_was_said(device: Device) -> None:
    assert await device.database.read(turn_before, "s1") == Turn()
    said = ("evt_1", "s1", {"question": "第一问", "answer": "第一答…", "question_length": 3, "answer_length": 200})
    empty = ("evt_2", "s1", {"question": "（无文字）", "answer": "第二答", "question_length": 0, "answer_length": 3})
    other = ("evt_3", None, {"question": "别处", "answer": "别处答"})
    for event_id, session, payload in (said, empty, other):
        draft = EventDraft("exchange_recorded", REDACTOR.clean_payload(payload), session_id=session, event_id=event_id)
        await device.log.append([draft])
    whole = REDACTOR.clean_payload({"question": "第一问", "answer": "第一答，全文"})
    await device.log.append([EventDraft("exchange_text", whole, session_id="s1", event_id="evt_1.text")])
    second = await device.database.read(log_store.find_event, "evt_2")
    assert second is not None
    assert await device.database.read(turn_before, "s1", second.position) == Turn("第一问", "第一答，全文")
    assert await device.database.read(turn_before, "s1") == Turn("", "第二答")
    assert await device.database.read(turn_before, device.log.session_id) == Turn("别处", "别处答")
