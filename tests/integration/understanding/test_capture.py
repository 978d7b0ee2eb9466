"""What the user says becomes facts with its exchange, with the turn before it in mind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.log.model import EventDraft
from sync.understanding.capture import MAX_SESSIONS, LastTurns, fact_extractor
from sync.understanding.model import Fact
from sync.understanding.projection import FactProjection
from tests.support import REDACTOR, Device, new_server, open_device


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as device:
        yield device


async def say(device: Device, turns: LastTurns, message: str, answer: str = "好的", *, erased: bool = False) -> None:
    """Record an exchange of one session as `memory/update` does. `erased`: its text is gone afterwards."""
    add_facts = fact_extractor(message, REDACTOR, device.clock, turns.of("s1"))
    payload = REDACTOR.clean_payload({"question": message, "answer": answer})
    draft = EventDraft("exchange_recorded", payload, session_id="s1")
    drafts = await device.database.write(lambda connection: add_facts(connection, [draft]))
    recorded = await device.log.append(drafts)
    turns.note("s1", "gone" if erased else recorded[0].event.event_id, message, answer)


async def facts_of(device: Device) -> list[Fact]:
    return list((await device.database.read(FactProjection().read)).facts)


async def test_remember_this_means_the_users_words_before_it(device: Device) -> None:
    turns = LastTurns()
    await say(device, turns, "备用钥匙在门口花盆下面")
    await say(device, turns, "记住这个")
    assert [(one.statement, one.status.value) for one in await facts_of(device)] == [
        ("备用钥匙在门口花盆下面", "active")
    ]


async def test_of_a_question_remember_this_means_its_answer_which_is_a_candidate(device: Device) -> None:
    turns = LastTurns()
    await say(device, turns, "复利怎么算？", "本金乘以一加利率的年数次方")
    await say(device, turns, "记住这个")
    assert [(one.statement, one.status.value, one.about) for one in await facts_of(device)] == [
        ("本金乘以一加利率的年数次方", "candidate", "unknown")
    ]


async def test_what_was_erased_is_not_remembered(device: Device) -> None:
    turns = LastTurns()
    await say(device, turns, "备用钥匙在门口花盆下面", erased=True)
    await say(device, turns, "记住这个")
    assert await facts_of(device) == []


async def test_a_call_that_is_repeated_records_nothing_twice(device: Device) -> None:
    draft = EventDraft("exchange_recorded", REDACTOR.clean_payload({"question": "q"}), event_id="evt_1")
    add_facts = fact_extractor("我对花生过敏", REDACTOR, device.clock)
    for _ in range(2):
        await device.log.append(await device.database.write(lambda connection: add_facts(connection, [draft])))
    assert [one.fact_id for one in await facts_of(device)] == ["evt_1.fact.1"]


def test_the_last_turns_of_few_sessions_are_kept() -> None:
    turns = LastTurns()
    for number in range(MAX_SESSIONS + 1):
        turns.note(str(number), f"evt_{number}", "q", "a")
    assert turns.of("0") is None
    last = turns.of(str(MAX_SESSIONS))
    assert last is not None
    assert last.answer == "a"
