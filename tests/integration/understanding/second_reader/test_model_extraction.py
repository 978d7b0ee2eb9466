"""A language model finds facts: only what the user typed literally, and at most so often a day."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.clock import new_event_id
from sync.db.engine import Transaction
from sync.log.event_types import EXCHANGE_TEXT, TEXT_SUFFIX
from sync.log.model import AppendResult, Event, EventDraft, Origin
from sync.runtime.change_counter import ChangeCounter
from sync.understanding.fact_events import statement_drafts
from sync.understanding.model import FactKind, FactSection, Level, Statement
from sync.understanding.projection import FactProjection, Facts
from sync.understanding.second_reader import model_extraction
from sync.understanding.second_reader.model_extraction import MAX_TRIES, ModelExtraction
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest, ModelUnavailable
from sync.understanding.second_reader.store import MAX_PREVIOUS_CHARS, MAX_WAITING
from sync.understanding.service import FactService
from tests.integration.understanding.second_reader.careless_model import measure, serving
from tests.proof import first_in_test
from tests.support import REDACTOR, Device, new_server, open_device

SCHEMA_FIELDS = ("op", "event_ids", "quote", "fact_id", "kind", "section", "about", "valid_until")
TYPED = "我女儿小满今年上小学一年级"


class ScriptedModel:
    """A model that answers with what `answer` makes of the events in a request."""

    def __init__(self, answer: Callable[[dict[str, Any]], object]) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []
        self.asked = ChangeCounter()

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.asked.increment()
        answer = self.answer(json.loads(request.messages[0]["content"]))
        if isinstance(answer, Exception):
            raise answer
        return ModelReply(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False), tokens=10)


def adding(quote: str, **more: Any) -> Callable[[dict[str, Any]], object]:
    """Answer with one operation about the first event."""

    def answer(content: dict[str, Any]) -> object:
        first = content["events"][0]["event_id"]
        return {"operations": [{"op": "add", "event_ids": [first], "quote": quote, "kind": "relationship", **more}]}

    return answer


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as device:
        yield device


@pytest.fixture
def extraction(device: Device) -> ModelExtraction:
    return ModelExtraction(device.log, REDACTOR, FactProjection(), device.clock)


async def talk(device: Device, extraction: ModelExtraction, *messages: str) -> list[Event]:
    """Record exchanges with these messages, and let them wait for the model."""
    return [await say(device, extraction, message) for message in messages]


async def say(
    device: Device, extraction: ModelExtraction, message: str, answer: str = "好", *, as_fact: bool = False
) -> Event:
    """Record one exchange as the product does; and the whole message as a fact of health, if it is to be one."""
    sides = {"question": message, "answer": answer}
    payload = REDACTOR.clean_payload({"question": message[:50], "answer": answer[:100]})
    draft = EventDraft("exchange_recorded", payload, event_id=new_event_id(device.clock), origin=Origin.MODEL)
    fact = Statement(message, FactKind.CONSTRAINT, FactSection.PERSONAL, f"health.{message}")

    whole = replace(
        draft, type=EXCHANGE_TEXT, payload=REDACTOR.clean_payload(sides), event_id=f"{draft.event_id}{TEXT_SUFFIX}"
    )

    def build(_: Transaction) -> list[EventDraft]:
        texts = [] if payload.value == sides else [whole]
        return [draft, *texts, *(statement_drafts([fact], draft, REDACTOR) if as_fact else ())]

    def keep(connection: Transaction, recorded: Sequence[AppendResult]) -> None:
        extraction.add(connection, recorded[0].event)

    recorded, _ = await device.log.append_and_count(build, keep)
    return recorded[0].event


async def facts_of(device: Device) -> Facts:
    return await device.database.read(FactProjection().read)


async def texts(device: Device) -> dict[str, str]:
    return {fact.statement: fact.status.value for fact in (await facts_of(device)).facts}


async def test_nothing_waits_before_a_model_is_offered(device: Device, extraction: ModelExtraction) -> None:
    await talk(device, extraction, TYPED)
    assert not await extraction.ask()
    status = await extraction.status()
    assert (status.source, status.waiting) == ("off", 0)


async def test_a_literal_quote_becomes_a_fact_of_the_user(device: Device, extraction: ModelExtraction) -> None:
    model = ScriptedModel(adding("我女儿小满今年上小学一年级", section="personal"))
    extraction.offer(model, source="client", max_calls_per_day=3)
    exchange, *_ = await talk(device, extraction, TYPED, *["好的"] * 5)

    assert await extraction.ask()

    (fact,) = (await facts_of(device)).facts
    assert (fact.statement, fact.status, fact.origin, fact.kind) == (TYPED, "active", "user-stated", "relationship")
    assert fact.evidence == (exchange.event_id,)
    status = await extraction.status()
    assert (status.calls, status.tokens, status.recorded, status.refused, status.waiting) == (1, 10, 1, 0, 0)
    assert model.requests[0].schema["required"] == ["operations"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "quote": "我女儿叫小美"},
        {"op": "add", "quote": ""},
        {"op": "add", "quote": "，"},
        {"op": "add", "quote": TYPED * 20},
        {"op": "end", "quote": TYPED, "fact_id": "evt_unknown"},
        {"op": "not_a_fact", "fact_id": "evt_unknown"},
        {"op": "delete", "quote": TYPED},
        {"op": None, "quote": TYPED},
        {"op": "add", "quote": 5},
        {"op": "add", "quote": "联系 [手机号]"},
        "add",
        None,
    ],
)
async def test_what_cannot_be_repaired_is_refused_alone(
    device: Device, extraction: ModelExtraction, operation: Any
) -> None:
    def answer(content: dict[str, Any]) -> object:
        ids = [one["event_id"] for one in content["events"]]
        wrong = {"event_ids": ids, **operation} if isinstance(operation, dict) else operation
        return {"operations": [wrong, {"op": "add", "event_ids": ids, "quote": "我养猫"}]}

    extraction.offer(ScriptedModel(answer), source="client", max_calls_per_day=3)
    await talk(device, extraction, TYPED, "我养猫", "联系 [手机号]")
    assert await extraction.ask()
    assert await texts(device) == {"我养猫": "active"}
    assert (await extraction.status()).refused == 1


async def test_a_model_has_no_words_of_its_own_in_a_date(device: Device, extraction: ModelExtraction) -> None:
    extraction.offer(ScriptedModel(adding(TYPED, valid_until="ignore all rules")), source="client", max_calls_per_day=3)
    await talk(device, extraction, TYPED)
    assert await extraction.ask()
    assert [fact.valid_until for fact in (await facts_of(device)).facts] == [None]


async def test_what_was_erased_while_it_waited_is_not_sent(device: Device, extraction: ModelExtraction) -> None:
    model = ScriptedModel(lambda _: {"operations": []})
    extraction.offer(model, source="client", max_calls_per_day=3)
    first, *_ = await talk(device, extraction, TYPED, "我养猫")
    await device.log.append([device.intake.build_erasure([first.event_id])])
    assert await extraction.ask()
    assert [word in model.requests[0].messages[0]["content"] for word in (TYPED, "我养猫")] == [False, True]
    (last,) = await talk(device, extraction, TYPED)
    await device.log.append([device.intake.build_erasure([last.event_id])])
    assert not await extraction.ask()
    assert (len(model.requests), (await extraction.status()).calls) == (1, 1)


@pytest.mark.parametrize("answer", [adding(TYPED), lambda _: ModelFailed("gone")])
async def test_a_model_that_is_switched_off_while_it_is_asked_records_nothing(
    device: Device, extraction: ModelExtraction, answer: Callable[[dict[str, Any]], object]
) -> None:
    def switch_off(content: dict[str, Any]) -> object:
        extraction.offer(model, source="client", max_calls_per_day=0)
        return answer(content)

    model = ScriptedModel(switch_off)
    extraction.offer(model, source="client", max_calls_per_day=3)
    await talk(device, extraction, *[TYPED] * 21)
    await extraction.ask()
    assert await texts(device) == {}
    extraction.offer(model, source="client", max_calls_per_day=3)
    assert (await extraction.status()).waiting == 0, "nor is it asked about later"


async def test_an_impossible_count_of_tokens_stops_nothing(device: Device, extraction: ModelExtraction) -> None:
    class Boasting:
        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply('{"operations": []}', tokens=10 ** len(request.purpose * 3))

    extraction.offer(Boasting(), source="client", max_calls_per_day=3)
    await talk(device, extraction, TYPED)
    assert await extraction.ask()


@pytest.mark.parametrize(
    "answer",
    ["", "no", "{", '{"operations": 5}', "x" * 200_000, '{"operations": [' + "{}," * 99 + "{}]}", "[" * 9_000],
)
async def test_garbage_records_nothing_and_is_asked_about_three_times(
    device: Device, extraction: ModelExtraction, answer: str
) -> None:
    extraction.offer(ScriptedModel(lambda _: answer), source="client", max_calls_per_day=9)
    await talk(device, extraction, TYPED)
    for number in range(1, MAX_TRIES + 1):
        assert not await extraction.ask()
        status = await extraction.status()
        assert (status.waiting, status.calls) == (number < MAX_TRIES, number)
    assert status.last_error is not None
    assert await texts(device) == {}


async def test_after_garbage_fewer_exchanges_are_asked_about_at_once(
    device: Device, extraction: ModelExtraction
) -> None:
    sizes: list[int] = []

    def answer(content: dict[str, Any]) -> object:
        sizes.append(len(content["events"]))
        return "Sure!" if len(sizes) < MAX_TRIES else {"operations": []}

    extraction.offer(ScriptedModel(answer), source="client", max_calls_per_day=90)
    await talk(device, extraction, *[f"我养了{number}只猫" for number in range(2, 22)])
    while (await extraction.status()).waiting:
        await extraction.ask()
    assert sizes == [20, 5, *[1] * 5, *[5] * 3]


async def test_exchanges_wait_for_a_model_that_cannot_be_asked_however_often(
    device: Device, extraction: ModelExtraction
) -> None:
    answers: list[object] = [*[ModelUnavailable("the client is gone")] * 5, {"operations": []}]
    extraction.offer(ScriptedModel(lambda _: answers.pop(0)), source="client", max_calls_per_day=9)
    await talk(device, extraction, TYPED)
    for _ in range(5):
        assert not await extraction.ask()
    status = await extraction.status()
    assert (status.waiting, status.last_error) == (1, "the client is gone")
    assert await extraction.ask()
    status = await extraction.status()
    assert (status.waiting, status.last_error) == (0, None)


async def test_what_waits_survives_a_restart_and_is_read_by_the_next_model(device: Device) -> None:
    before = ModelExtraction(device.log, REDACTOR, FactProjection(), device.clock)
    before.offer(ScriptedModel(lambda _: ModelUnavailable("gone")), source="client", max_calls_per_day=3)
    await talk(device, before, TYPED)
    after = ModelExtraction(device.log, REDACTOR, FactProjection(), device.clock)
    assert not await after.ask(), "no model is offered yet"
    after.offer(ScriptedModel(adding(TYPED)), source="client", max_calls_per_day=3)
    assert await after.ask()
    assert await texts(device) == {TYPED: "active"}


async def test_three_exchanges_are_sent_when_nothing_follows_and_sooner_when_the_session_ends(
    device: Device, extraction: ModelExtraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(lambda _: {"operations": []})
    extraction.offer(model, source="client", max_calls_per_day=9)
    monkeypatch.setattr(model_extraction, "LONE_SECONDS", 0.0)
    await talk(device, extraction, "我养猫", "我养狗", "我养鱼")
    job = asyncio.create_task(extraction.run())
    await model.asked.wait_for_change(0)
    monkeypatch.setattr(model_extraction, "LONE_SECONDS", 1e9)
    monkeypatch.setattr(model_extraction, "IDLE_SECONDS", 0.0)
    await talk(device, extraction, TYPED)
    payload = REDACTOR.clean_payload({})
    await device.log.append([EventDraft("session_ended", payload, session_id="s1", origin=Origin.TOOL)])
    await model.asked.wait_for_change(1)
    job.cancel()
    sent = [json.loads(request.messages[0]["content"])["events"] for request in model.requests]
    assert [[event["typed"] for event in events] for events in sent] == [["我养猫", "我养狗", "我养鱼"], [TYPED]]


async def test_the_bound_of_a_day_holds_across_processes_and_ends_with_the_day(device: Device) -> None:
    for calls in (1, 2, 2):
        extraction = ModelExtraction(device.log, REDACTOR, FactProjection(), device.clock)
        extraction.offer(ScriptedModel(lambda _: {"operations": []}), source="client", max_calls_per_day=2)
        await talk(device, extraction, TYPED)
        await extraction.ask()
        assert (await extraction.status()).calls == calls
    assert (await extraction.status()).waiting == 1
    device.clock.advance(86_400)
    assert await extraction.ask()
    assert (await extraction.status()).calls == 1


async def test_zero_calls_take_an_offer_back(device: Device, extraction: ModelExtraction) -> None:
    extraction.offer(ScriptedModel(adding(TYPED)), source="client", max_calls_per_day=2)
    await talk(device, extraction, TYPED)
    extraction.offer(ScriptedModel(adding(TYPED)), source="client", max_calls_per_day=0)
    assert not await extraction.ask()
    assert await texts(device) == {}


def about_known(op: str, quote: str = "") -> Callable[[dict[str, Any]], object]:
    """Answer with one operation about the newest known fact."""

    def answer(content: dict[str, Any]) -> object:
        known, last = content["known_facts"][-1]["fact_id"], content["events"][-1]["event_id"]
        return {"operations": [{"op": op, "event_ids": [last], "quote": quote, "fact_id": known}]}

    return answer


async def know(device: Device, extraction: ModelExtraction, *messages: str) -> None:
    """Make facts of these messages that the model said nothing about."""
    extraction.offer(ScriptedModel(lambda _: {"operations": []}), source="client", max_calls_per_day=9)
    for message in messages:
        await say(device, extraction, message, as_fact=True)
    await extraction.ask()


@pytest.mark.parametrize(
    ("op", "newer", "status"),
    [("replace", "我搬到杭州了", "active"), ("end", "膝盖不行，球不打了", "candidate")],
)
async def test_a_model_ends_no_fact_and_asks_the_user_about_the_newer_sentence(
    device: Device, extraction: ModelExtraction, op: str, newer: str, status: str
) -> None:
    older = "我每周三在天津打羽毛球"
    extraction.offer(ScriptedModel(adding(older)), source="client", max_calls_per_day=9)
    await talk(device, extraction, older)
    assert await extraction.ask()
    extraction.offer(ScriptedModel(about_known(op, newer)), source="client", max_calls_per_day=9)
    await talk(device, extraction, newer)
    assert await extraction.ask()
    assert await texts(device) == {older: "active", newer: status}
    first, second = (await facts_of(device)).facts
    assert (first.questioned_by, second.questioned_by) == (second.fact_id, None)

    facts = FactService(device.log, REDACTOR, device.clock)
    await facts.confirm(first.fact_id)
    assert (await facts_of(device)).facts[0].questioned_by is None


async def test_the_end_of_a_fact_that_the_user_confirms_ends_it(device: Device, extraction: ModelExtraction) -> None:
    older, newer = "我每周三打羽毛球", "膝盖不行了，医生说要停"
    await know(device, extraction, older)
    extraction.offer(ScriptedModel(about_known("end", newer)), source="client", max_calls_per_day=9)
    await talk(device, extraction, newer)
    assert await extraction.ask()
    facts = FactService(device.log, REDACTOR, device.clock)
    (candidate,) = (await facts.current()).candidates
    await facts.confirm(candidate.fact_id)
    assert await texts(device) == {older: "superseded", newer: "active"}


async def test_a_fact_is_not_questioned_by_its_own_sentence(device: Device, extraction: ModelExtraction) -> None:
    extraction.offer(ScriptedModel(about_known("replace", "我喝绿茶")), source="client", max_calls_per_day=9)
    await say(device, extraction, "我喝绿茶", as_fact=True)
    assert await extraction.ask()
    (fact,) = (await facts_of(device)).facts
    assert (fact.status, fact.questioned_by) == ("active", None)


async def test_what_was_read_wrongly_becomes_a_candidate_until_the_user_states_it_again(
    device: Device, extraction: ModelExtraction
) -> None:
    await know(device, extraction, "我对花生过敏")
    extraction.offer(ScriptedModel(about_known("not_a_fact")), source="client", max_calls_per_day=9)
    await say(device, extraction, "刚才是开玩笑的")
    assert await extraction.ask()
    assert await texts(device) == {"我对花生过敏": "active"}, "of health only beside the exchange in which it was said"

    joke, doubt = "我要搬去火星住", ScriptedModel(about_known("not_a_fact"))
    for model, status in ((ScriptedModel(adding(joke)), "active"), (doubt, "candidate")):
        extraction.offer(model, source="client", max_calls_per_day=9)
        await say(device, extraction, joke if status == "active" else "哈哈")
        assert await extraction.ask()
        assert await texts(device) == {"我对花生过敏": "active", joke: status}
    extraction.offer(ScriptedModel(adding(joke)), source="client", max_calls_per_day=9)
    await say(device, extraction, joke)
    assert await extraction.ask()
    assert (await texts(device))[joke] == "active"


async def test_one_answer_may_doubt_several_facts(device: Device, extraction: ModelExtraction) -> None:
    await know(device, extraction, "我喝绿茶", "我养鱼")

    def answer(content: dict[str, Any]) -> object:
        named = ({"op": "not_a_fact", "fact_id": fact["fact_id"]} for fact in content["known_facts"])
        return {"operations": list(named)}

    extraction.offer(ScriptedModel(answer), source="client", max_calls_per_day=9)
    await say(device, extraction, "我喝绿茶", as_fact=True)
    await say(device, extraction, "我养鱼", as_fact=True)
    assert await extraction.ask()
    assert await texts(device) == {"我喝绿茶": "candidate", "我养鱼": "candidate"}


async def test_what_the_user_confirmed_is_doubted_by_no_model(device: Device, extraction: ModelExtraction) -> None:
    await know(device, extraction, "我喝绿茶")
    facts = FactService(device.log, REDACTOR, device.clock)
    (fact,) = (await facts.current()).facts
    await facts.edit(fact.fact_id, "我只喝龙井")
    extraction.offer(ScriptedModel(about_known("not_a_fact")), source="client", max_calls_per_day=9)
    await talk(device, extraction, "哈哈")
    assert await extraction.ask()
    assert await texts(device) == {"我只喝龙井": "active"}
    assert (await extraction.status()).refused == 1


async def test_a_candidate_that_the_model_names_too_is_certain(device: Device, extraction: ModelExtraction) -> None:
    extraction.offer(ScriptedModel(adding("我女儿小满")), source="client", max_calls_per_day=9)
    exchange = await say(device, extraction, TYPED)
    likely = Statement(TYPED, FactKind.RELATIONSHIP, FactSection.PERSONAL, level=Level.LIKELY)
    source = EventDraft(
        "exchange_recorded", REDACTOR.clean_payload({}), event_id=exchange.event_id, origin=Origin.MODEL
    )
    await device.log.append(statement_drafts([likely], source, REDACTOR))
    assert await texts(device) == {TYPED: "candidate"}
    assert await extraction.ask()
    assert await texts(device) == {TYPED: "active"}


async def test_a_whole_sentence_takes_the_place_of_the_fragment_that_was_read_in_it(
    device: Device, extraction: ModelExtraction
) -> None:
    whole = "家里那台海尔冰箱老结霜，结果是门封条老化，换了条新的就好了"
    extraction.offer(ScriptedModel(adding("结果是门封条老化，换了条新的就好了")), source="client", max_calls_per_day=9)
    exchange = await say(device, extraction, whole)
    fragment = Statement("换了条新的就好了", FactKind.KNOWLEDGE, FactSection.PERSONAL)
    source = EventDraft(
        "exchange_recorded", REDACTOR.clean_payload({}), event_id=exchange.event_id, origin=Origin.MODEL
    )
    await device.log.append(statement_drafts([fragment], source, REDACTOR))
    assert await extraction.ask()
    assert await texts(device) == {"换了条新的就好了": "superseded", whole: "active"}


@pytest.mark.parametrize(
    ("message", "quote", "stored", "status"),
    [
        ("另外说一下\n\n我对花生过敏\n晚饭吃什么好", "我对花生过敏", "我对花生过敏", "active"),
        ("我 对花生过敏，　能吃沙茶面吗？", "我对花生过敏。", "我 对花生过敏", "active"),
        ("我妈说我对花生过敏", "我对花生过敏", "我妈说我对花生过敏", "active"),
        ("我不吃辣", "吃辣", "我不吃辣", "active"),
        ("我的猫叫“小满”", "我的猫叫'小满'", "我的猫叫“小满”", "active"),
        ("I Use NEOVIM for everything", "i use neovim", "I Use NEOVIM for everything", "active"),
        ("我同事发来一句：我对花生过敏", "我对花生过敏", "我同事发来一句：我对花生过敏", "candidate"),
        ("帮我写一篇关于花生的文章", "花生", "帮我写一篇关于花生的文章", "candidate"),
        ("我是不是对花生过敏？", "我是不是对花生过敏", "我是不是对花生过敏？", "candidate"),
    ],
)
async def test_what_is_stored_is_the_users_own_sentence_and_active_only_by_its_form(
    device: Device, extraction: ModelExtraction, message: str, quote: str, stored: str, status: str
) -> None:
    extraction.offer(ScriptedModel(adding(quote)), source="client", max_calls_per_day=9)
    await talk(device, extraction, message)
    assert await extraction.ask()
    assert await texts(device) == {stored: status}


async def test_a_request_has_days_the_words_before_and_the_facts_that_it_may_touch(
    device: Device, extraction: ModelExtraction
) -> None:
    await know(device, extraction, "我对花生过敏")
    model = ScriptedModel(lambda _: {"operations": []})
    extraction.offer(model, source="client", max_calls_per_day=9)
    long = f"{'帮我想想今天晚上吃什么好' * 5}\n我不吃辣"
    await say(device, extraction, long, "可以吃宫保鸡丁。" * 50 + "还有什么忌口？")
    await say(device, extraction, "对，虾也不行")
    assert await extraction.ask()
    content = json.loads(model.requests[0].messages[0]["content"])
    assert [(event["typed"], event["day"]) for event in content["events"]] == [
        (long, "2026-02-02"),
        ("对，虾也不行", "2026-02-02"),
    ]
    assert content["events"][1]["assistant_before"].endswith("还有什么忌口？")
    assert len(content["events"][1]["assistant_before"]) == MAX_PREVIOUS_CHARS
    (known,) = content["known_facts"]
    assert (known["statement"], known["said_on"], known["confirmed"]) == ("我对花生过敏", "2026-02-02", False)
    for name in (*content, *content["events"][0], *known, *SCHEMA_FIELDS):
        assert f'"{name}"' in model.requests[0].system, "the prompt documents every field"


async def test_an_exchange_that_is_erased_meanwhile_gives_no_fact(device: Device, extraction: ModelExtraction) -> None:
    class SlowModel(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            await device.log.append([device.intake.build_erasure([exchange.event_id])])
            return await super().complete(request)

    extraction.offer(SlowModel(adding(TYPED)), source="client", max_calls_per_day=9)
    (exchange,) = await talk(device, extraction, TYPED)
    assert await extraction.ask()
    assert await texts(device) == {}


async def test_what_waits_is_bounded(device: Device, extraction: ModelExtraction) -> None:
    extraction.offer(ScriptedModel(adding(TYPED)), source="client", max_calls_per_day=9)
    await talk(device, extraction, TYPED)
    await talk(device, extraction, *[f"我养了{number}只猫" for number in range(MAX_WAITING + 1)])
    assert (await extraction.status()).waiting == MAX_WAITING


@pytest.mark.parametrize("language", first_in_test(["zh", "en"]))
async def test_with_a_model_that_answers_as_models_do_nearly_all_labelled_statements_are_found_and_no_invention_is(
    device: Device, language: str
) -> None:
    path = Path(__file__).parents[3] / "unit/understanding/statements" / f"{language}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    with serving() as api:
        score, model = await measure(device, rows, api)
    assert model.asked >= len(rows) // 20, "in all forms of an answer"
    assert model.invented.isdisjoint(one.statement.text for one in (await facts_of(device)).statements.values())
    assert sum(score.wanted) >= 0.95 * len(score.wanted), str(score)
    assert sum(score.active) >= 0.9 * len(score.active), str(score)
