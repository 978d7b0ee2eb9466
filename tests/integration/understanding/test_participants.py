"""Facts in what applies to every event: erasure, retention, archives."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from sync.archive.service import ArchiveService
from sync.document.erasure.erasure import request, request_drafts
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft, Origin, Query
from sync.retention.service import RetentionConfig, RetentionService
from sync.understanding.answers import edit_draft, verdict_draft
from sync.understanding.fact_events import statement_draft, statement_drafts
from sync.understanding.model import AnswerKind, FactKind, FactSection, Statement
from sync.understanding.projection import FactProjection, Facts
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import signer_of

OLD: Final = "2025-01-02T03:04:05.000Z"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def state(harness: DocumentHarness, *texts: str, name: str = "evt_1", ts: str | None = None) -> list[str]:
    """Record an exchange with these statements; the ids of its events."""
    payload = harness.redactor.clean_payload({"question": "，".join(texts), "answer": "好的"})
    exchange = EventDraft("exchange_recorded", payload, event_id=name, origin=Origin.MODEL, ts=ts)
    statements = [Statement(text, FactKind.PREFERENCE, FactSection.PERSONAL) for text in texts]
    recorded = await harness.log.append([exchange, *statement_drafts(statements, exchange, harness.redactor)])
    return [one.event.event_id for one in recorded]


async def propose(harness: DocumentHarness, text: str, *, ts: str | None = None) -> str:
    value = {"type": "memory_fact", "payload": {"content": text}, "ts": ts}
    (recorded,) = await harness.log.append([DraftBuilder(harness.redactor).build_appended(value)])
    return recorded.event.event_id


async def facts_of(harness: DocumentHarness) -> Facts:
    return await harness.database.read(FactProjection().read)


async def texts(harness: DocumentHarness) -> dict[str, str]:
    return {fact.statement: fact.status.value for fact in (await facts_of(harness)).facts}


async def erase(harness: DocumentHarness, *event_ids: str) -> set[str]:
    named = await request(harness.log, DraftBuilder(harness.redactor), event_ids)
    await harness.memory.reconcile()
    return set(named)


async def words_left(harness: DocumentHarness) -> str:
    return "".join(str(dict(event.payload)) for event in (await harness.log.read(Query())).events)


async def test_an_erased_exchange_takes_its_facts_and_their_edits_along(harness: DocumentHarness) -> None:
    exchange, vim, cat = await state(harness, "我用 Vim", "我养猫")
    await state(harness, "我养狗", name="evt_2")
    (edited,) = await harness.log.append([edit_draft(await facts_of(harness), vim, "我用 Neovim", harness.redactor)])

    assert await erase(harness, exchange) == {exchange, vim, cat, edited.event.event_id}

    assert await texts(harness) == {"我养狗": "active"}
    left = await words_left(harness)
    assert [word for word in ("Vim", "Neovim", "猫") if word in left] == []


async def test_an_erased_edit_takes_the_fact_along_and_no_other(harness: DocumentHarness) -> None:
    exchange, vim, _ = await state(harness, "我用 Vim", "我养猫")
    (edited,) = await harness.log.append([edit_draft(await facts_of(harness), vim, "我用 Neovim", harness.redactor)])

    assert await erase(harness, edited.event.event_id) == {vim, edited.event.event_id}

    assert await texts(harness) == {"我养猫": "active"}
    assert "我用 Vim" in (await words_left(harness)), f"the words of {exchange} itself are another event"


async def test_what_was_said_of_an_exchange_before_its_erasure_arrived_is_erased_too(harness: DocumentHarness) -> None:
    exchange, vim = await state(harness, "我用 Vim")
    _, same = await state(harness, "我用 Vim", name="evt_2")
    facts = await facts_of(harness)
    await harness.memory.reconcile()
    await harness.log.append([DraftBuilder(harness.redactor).build_erasure([exchange, vim])])
    source = EventDraft("exchange_recorded", harness.redactor.clean_payload({}), event_id=exchange)
    dog = Statement("我养柯基", FactKind.POSSESSION, FactSection.PERSONAL)
    late = [
        statement_draft(dog, source, "evt_1.fact.model", harness.redactor, extractor="model"),
        edit_draft(facts, vim, "我用 Neovim", harness.redactor),
    ]
    await harness.log.append(late)

    for _ in range(2):  # the request, then that of this device
        await harness.memory.reconcile()

    assert await texts(harness) == {"我用 Vim": "active"}, "the other exchange says it too"
    assert (await facts_of(harness)).facts[0].fact_id == same
    left = await words_left(harness)
    assert [word for word in ("Neovim", "柯基") if word in left] == []


async def test_the_correction_of_a_fact_is_erased_with_its_exchange(harness: DocumentHarness) -> None:
    exchange, vim = await state(harness, "我用 Vim")
    payload = {"event_id": vim, "payload": {"content": "我用 [密钥]"}}
    draft = EventDraft("payload_redacted", harness.redactor.clean_payload(payload), origin=Origin.TOOL)
    (corrected,) = await harness.log.append([draft])
    assert await erase(harness, exchange) == {exchange, vim, corrected.event.event_id}


async def test_a_correction_made_before_an_erasure_arrived_does_not_undo_it(harness: DocumentHarness) -> None:
    exchange, vim = await state(harness, "我用 Vim，密码是 x")
    await harness.memory.reconcile()
    payload = {"event_id": vim, "payload": {"content": "我用 Vim，密码是 [密钥]"}}
    corrected = EventDraft("payload_redacted", harness.redactor.clean_payload(payload), origin=Origin.TOOL)
    await harness.log.append([corrected, *request_drafts([vim], harness.redactor)])
    await harness.memory.reconcile()
    assert list(await texts(harness)) == ["我用 Vim，密码是 [密钥]"]

    await harness.log.append([DraftBuilder(harness.redactor).build_erasure([exchange, vim])])
    for _ in range(2):
        await harness.memory.reconcile()

    assert await texts(harness) == {}
    assert "Vim" not in await words_left(harness)


async def test_a_fact_of_two_exchanges_stays_with_the_other_one(harness: DocumentHarness) -> None:
    exchange, _ = await state(harness, "我用 Vim")
    _, second = await state(harness, "我用 Vim", name="evt_2")
    await erase(harness, exchange)
    (fact,) = (await facts_of(harness)).facts
    assert (fact.fact_id, fact.evidence) == (second, ("evt_2",))


async def test_retention_keeps_the_facts_of_the_user_and_lets_proposals_expire(harness: DocumentHarness) -> None:
    await state(harness, "我用 Vim", ts=OLD)
    confirmed, proposed = await propose(harness, "项目使用 React", ts=OLD), await propose(harness, "用 k8s", ts=OLD)
    await harness.log.append(
        [verdict_draft(AnswerKind.CONFIRMED, await facts_of(harness), confirmed, harness.redactor)]
    )
    await harness.memory.reconcile()
    folder = harness.database.path.parent
    places = folder / "archives", folder / "archives.lock"
    config = RetentionConfig(*places, 30, -1, has_cloud=False)
    service = RetentionService(
        harness.log, DraftBuilder(harness.redactor), config, signer_of(harness.log), clock=harness.clock
    )
    await service.apply(service.build_rules(None, None), lambda *_: None)
    await harness.memory.reconcile()

    assert await texts(harness) == {"我用 Vim": "active", "项目使用 React": "active"}
    assert proposed not in (await facts_of(harness)).statements


async def test_an_archive_carries_the_facts_to_another_device(harness: DocumentHarness, tmp_path: Path) -> None:
    _, vim = await state(harness, "我用 Vim")
    await propose(harness, "用 k8s")
    await harness.log.append([edit_draft(await facts_of(harness), vim, "我用 Neovim", harness.redactor)])
    path = tmp_path / "all.xbm"
    await archive_of(harness).export(path, document=b"", settings={}, passphrase=None, on_progress=lambda *_: None)
    async with open_document_harness(tmp_path / "b") as other:
        for _ in range(2):
            await archive_of(other).import_path(
                path, passphrase=None, dry_run=False, on_progress=lambda *_: None, is_mine=True
            )
        assert await texts(other) == {"我用 Neovim": "active", "用 k8s": "candidate"}


def archive_of(harness: DocumentHarness) -> ArchiveService:
    return ArchiveService(
        harness.log,
        DraftBuilder(harness.redactor),
        harness.memory.importer,
        signer_of(harness.log),
        clock=harness.clock,
    )
