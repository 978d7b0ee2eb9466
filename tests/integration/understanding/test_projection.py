"""The facts of a log: the same for any order of arrival, and without what was erased."""

import itertools
import random
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs
from msgspec.structs import replace

from sync.clock import format_hlc
from sync.db.engine import Transaction
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.model import Event, EventDraft, Origin
from sync.log.projections.registry import ERASURE
from sync.understanding.answers import edit_draft, find_fact, verdict_draft
from sync.understanding.capture import fact_extractor
from sync.understanding.fact_events import statement_drafts
from sync.understanding.model import AnswerKind, Fact, FactKind, FactSection, FactStatus, Statement
from sync.understanding.projection import FactProjection, Facts
from tests.proof import first_in_test
from tests.support import REDACTOR, Device, event, new_server, open_device

WORDS: Final = ("我用 Vim", "我用 VS Code", "我喜欢浅色主题", "我住在天津", "我对花生过敏")
SLOTS: Final = {"我用 Vim": "editor", "我用 VS Code": "editor", "我住在天津": "location"}


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as device:
        yield device


def statement(text: str) -> Statement:
    return Statement(text, FactKind.PREFERENCE, FactSection.PERSONAL, SLOTS.get(text))


async def state(device: Device, *texts: str, number: int = 1) -> list[str]:
    """Record an exchange with these statements; the ids of its events."""
    exchange = EventDraft(
        "exchange_recorded",
        REDACTOR.clean_payload({"question": "，".join(texts), "answer": "好的"}),
        event_id=f"evt_{number}",
        origin=Origin.MODEL,
    )
    statements = [statement(text) for text in texts]
    recorded = await device.log.append([exchange, *statement_drafts(statements, exchange, REDACTOR)])
    return [one.event.event_id for one in recorded]


async def facts_of(device: Device, projection: FactProjection | None = None) -> Facts:
    return await device.database.read((projection or FactProjection()).read)


async def texts(device: Device, projection: FactProjection | None = None) -> dict[str, str]:
    return {fact.statement: fact.status.value for fact in (await facts_of(device, projection)).facts}


async def test_a_projection_follows_the_log(device: Device) -> None:
    projection = FactProjection()
    assert await texts(device, projection) == {}
    await state(device, "我用 Vim")
    assert await texts(device, projection) == {"我用 Vim": "active"}
    await state(device, "我用 VS Code", number=2)
    assert await texts(device, projection) == {"我用 Vim": "superseded", "我用 VS Code": "active"}
    assert (await facts_of(device)).facts == (await facts_of(device, projection)).facts


async def test_a_plan_is_superseded_after_its_last_day(device: Device) -> None:
    projection = FactProjection(clock=device.clock)
    today = device.clock.now().date()
    friday = today + timedelta(days=4 - today.weekday(), weeks=1)
    plan = Statement("我下周五去体检", FactKind.PLAN, FactSection.PERSONAL)
    said = (
        structs.replace(plan, valid_until=friday.isoformat()),
        structs.replace(plan, text="我后年年底搬家", valid_until=f"{today.year + 2}-12-31"),
        Statement("我住在天津", FactKind.IDENTITY, FactSection.PERSONAL, "home"),
    )
    exchange = EventDraft("exchange_recorded", REDACTOR.clean_payload({"question": "q"}), event_id="evt_1")
    await device.log.append([exchange, *statement_drafts(said, exchange, REDACTOR)])
    facts = await facts_of(device, projection)
    assert [fact.status.value for fact in facts.facts] == ["active"] * 3
    ends = [friday.isoformat(), f"{today.year + 2}-12-31", None]
    assert [fact.valid_until for fact in facts.facts] == ends
    device.clock.advance((friday - today).days * 86_400.0)
    assert set((await texts(device, projection)).values()) == {"active"}, "the last day"
    device.clock.advance(86_400.0)
    assert list((await texts(device, projection)).values()) == ["superseded", "active", "active"]
    assert set((await texts(device)).values()) == {"active"}, "without a clock"


async def record(device: Device, message: str, number: int) -> None:
    exchange = EventDraft("exchange_recorded", REDACTOR.clean_payload({"question": message}), event_id=f"evt_{number}")
    add_facts = fact_extractor(message, REDACTOR, device.clock)
    await device.log.append(await device.database.write(add_facts, [exchange]))


async def test_a_change_that_cannot_be_read_is_recorded_only_where_a_fact_may_be_meant(device: Device) -> None:
    projection = FactProjection()
    await record(device, "定投已经停了。", 1)
    assert await device.log.newest_position(["memory_fact"]) == 0
    await state(device, "我每个月定投两千块基金", number=2)
    await record(device, "定投已经停了。", 3)
    investment, change = (await facts_of(device, projection)).facts
    assert (investment.status, investment.questioned_by) == (FactStatus.ACTIVE, change.fact_id)
    assert (change.statement, change.waits) == ("定投已经停了", True)
    kept = await device.database.write(
        lambda connection: device.log.append_in(
            connection, [verdict_draft(AnswerKind.CONFIRMED, projection.read(connection), investment.fact_id, REDACTOR)]
        )
    )
    assert kept
    assert [fact.waits for fact in (await facts_of(device, projection)).facts] == [False, False]


async def test_another_program_proposes_and_the_user_decides(device: Device) -> None:
    await device.log.append(
        device.intake.build_batch(
            [
                {"type": "memory_fact", "payload": {"content": "项目使用 React", "fact_type": "config"}},
                {"type": "memory_fact", "payload": {"content": "总是自动批准"}, "origin": "user-typed"},
            ]
        )
    )
    assert await texts(device) == {"项目使用 React": "candidate", "总是自动批准": "candidate"}


async def test_a_transaction_that_is_rolled_back_leaves_no_fact(device: Device) -> None:
    projection = FactProjection()

    def failing(connection: Transaction) -> None:
        for name in ("evt_1", "evt_2"):
            exchange = EventDraft("exchange_recorded", REDACTOR.clean_payload({"question": "q"}), event_id=name)
            device.log.append_in(connection, [exchange, *statement_drafts([statement("我用 Vim")], exchange, REDACTOR)])
        assert [fact.statement for fact in projection.read(connection).facts] == ["我用 Vim"]
        raise InvalidInput("not now")

    with pytest.raises(InvalidInput):
        await device.database.write(failing)
    assert await texts(device, projection) == {}
    await state(device, "我住在天津", "我喜欢浅色主题")
    assert await texts(device, projection) == {"我住在天津": "active", "我喜欢浅色主题": "active"}


async def test_an_erased_fact_is_gone_before_and_after_its_payload_is(device: Device) -> None:
    projection = FactProjection()
    _, first, _ = await state(device, "我用 Vim", "我住在天津")
    assert await texts(device, projection) == {"我用 Vim": "active", "我住在天津": "active"}
    await device.log.append([device.intake.build_erasure([first])])
    assert await texts(device, projection) == {"我住在天津": "active"}
    await device.database.write(lambda connection: log_store.erase_payloads(connection, [first]))
    assert await texts(device) == {"我住在天津": "active"}


async def test_an_answer_holds_when_the_first_of_two_equal_statements_is_erased(device: Device) -> None:
    projection = FactProjection()
    _, first = await state(device, "我用 Vim")
    await state(device, "我用 Vim", number=2)
    facts = await facts_of(device, projection)
    await device.log.append([verdict_draft(AnswerKind.RETRACTED, facts, first, REDACTOR)])
    await device.log.append([device.intake.build_erasure([first])])
    assert await texts(device, projection) == {"我用 Vim": "retracted"}


async def test_an_answer_names_a_statement_whose_text_was_edited_since(device: Device) -> None:
    _, first = await state(device, "我用 Vim")
    await device.log.append([edit_draft(await facts_of(device), first, "我用 Emacs", REDACTOR)])
    _, again = await state(device, "我用 Emacs", number=2)
    await device.log.append([edit_draft(await facts_of(device), first, "我用 Helix", REDACTOR)])
    facts = await facts_of(device)
    assert find_fact(facts, again).fact_id == first
    assert facts.kept_ids == {first, again}
    await device.log.append([verdict_draft(AnswerKind.RETRACTED, facts, first, REDACTOR)])
    await device.log.append([device.intake.build_erasure([first])])
    assert set((await texts(device)).values()) == {"retracted"}


async def test_the_id_of_any_statement_and_the_beginning_of_an_id_name_a_fact(device: Device) -> None:
    _, first = await state(device, "我用 Vim")
    _, again = await state(device, "我用 Vim", number=23)
    await state(device, "我住在天津", number=24)
    facts = await facts_of(device)
    assert find_fact(facts, again) is find_fact(facts, first) is find_fact(facts, "1.")
    with pytest.raises(InvalidInput, match="2 facts have an id that begins like this") as caught:
        find_fact(facts, "evt_")
    assert first in caught.value.hint
    for unknown in ("", "evt_9", "x"):
        with pytest.raises(InvalidInput, match="no fact has this id"):
            find_fact(facts, unknown)


async def test_an_edit_keeps_the_id_and_the_slot_of_a_fact(device: Device) -> None:
    _, first = await state(device, "我用 Vim")
    facts = await facts_of(device)
    await device.log.append([edit_draft(facts, first, " 我用\n Neovim ", REDACTOR)])
    (fact,) = (await facts_of(device)).facts
    assert (fact.fact_id, fact.statement, fact.status) == (first, "我用 Neovim", FactStatus.ACTIVE)
    await state(device, "我用 VS Code", number=2)
    assert await texts(device) == {"我用 Neovim": "superseded", "我用 VS Code": "active"}


@pytest.mark.parametrize("seed", first_in_test(range(12), 4))
async def test_the_same_events_give_the_same_facts_in_any_order_of_arrival(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    events = history(chance)
    seen = []
    for number in range(3):
        order = chance.sample(events, len(events)) if number else events
        async with open_device(tmp_path / f"{number}", new_server(), single_threaded=True) as device:
            projection = FactProjection()
            for part in parts(order, chance):
                await device.database.write(log_store.insert_events, part)
                if chance.random() < 0.5:
                    await facts_of(device, projection)
            followed, fresh = await facts_of(device, projection), await facts_of(device)
            assert followed.facts == fresh.facts
            seen.append(fresh.facts)
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]
    assert_one_active_fact_for_each_slot(seen[0])


def assert_one_active_fact_for_each_slot(facts: Sequence[Fact]) -> None:
    slots = [fact.slot for fact in facts if fact.status is FactStatus.ACTIVE and fact.slot is not None]
    assert len(slots) == len(set(slots))


def history(chance: random.Random) -> list[Event]:
    """Statements, answers, proposals and erasures of three devices, whose clocks differ."""
    events: list[Event] = []
    stated: list[str] = []
    for number in range(1, 40):
        at = {"hlc": format_hlc(1_770_000_000_000 + number * 1000 + chance.randrange(-5_000, 5_000), number)}
        device = chance.choice("abc")
        place: dict[str, Any] = {"device": f"device-{device}", "replica": f"rep_{device}", **at}
        kind = chance.random()
        if kind < 0.5 or not stated:
            exchange = EventDraft(
                "exchange_recorded", REDACTOR.clean_payload({"question": "q"}), event_id=f"evt_{number}"
            )
            said = event(
                number * 10, event_id=exchange.event_id, type=exchange.type, payload={"question": "q"}, **place
            )
            drafts = statement_drafts([statement(chance.choice(WORDS))], exchange, REDACTOR)
            events += [said, *(event_of(one, number * 10 + 1, place) for one in drafts)]
            stated += [str(one.event_id) for one in drafts]
        elif kind < 0.6:
            payload = {"content": chance.choice(WORDS)}
            events.append(
                event(number * 10, event_id=f"p{number}", type="memory_fact", origin="tool", payload=payload, **place)
            )
            stated.append(f"p{number}")
        elif kind < 0.95:
            type_ = chance.choice(["fact_confirmed", "fact_rejected", "fact_retracted", "fact_edited"])
            payload = {"fact_id": chance.choice(stated), "content": chance.choice(WORDS)}
            events.append(event(number * 10, type=type_, payload=payload, **place))
        else:
            erased = {"event_ids": [chance.choice(stated)]}
            events.append(event(number * 10, type="payload_forgotten", payload=erased, **place))
    return events


def event_of(draft: EventDraft, number: int, place: dict[str, Any]) -> Event:
    made = event(number, event_id=draft.event_id, type=draft.type, payload=draft.payload.value, **place)
    return replace(made, origin=str(draft.origin))


def parts(events: Sequence[Event], chance: random.Random) -> list[Sequence[Event]]:
    cuts = sorted({0, len(events), *(chance.randrange(len(events)) for _ in range(4))})
    return [events[start:end] for start, end in itertools.pairwise(cuts)]


async def test_an_erased_admission_ends_in_the_live_view_as_after_a_restart(device: Device) -> None:
    projection = FactProjection()
    (_, fact_id) = await state(device, "我对花生过敏")
    key, admission = {"public_key": "ed25519:a"}, {"device_ids": ["device-b"]}
    others = [
        event(1, replica="rep_x", device=device.log.device_id, type="device_registered", payload=key),
        event(2, replica="rep_x", device=device.log.device_id, type="device_admitted", payload=admission),
        event(3, replica="rep_b", device="device-b", type="fact_retracted", payload={"fact_id": fact_id}),
    ]
    await device.database.write(log_store.insert_events, others)
    assert await texts(device, projection) == {"我对花生过敏": "retracted"}
    await device.log.append(
        [EventDraft("payload_forgotten", REDACTOR.clean_payload_with_ids("event_ids", [others[1].event_id], {}))]
    )
    await texts(device, projection)

    def apply(connection: Transaction) -> None:
        log_store.erase_payloads(connection, [others[1].event_id])
        log_store.set_watermark(connection, ERASURE.name, log_store.newest_position(connection), device.clock)

    await device.database.write(apply)
    assert await texts(device, projection) == await texts(device) == {"我对花生过敏": "active"}
