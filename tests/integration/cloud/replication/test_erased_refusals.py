"""An event that the server had refused and that is then erased: no word of it is left, and none is sent."""

from sync.db.engine import Transaction
from sync.document.erasure import erasure
from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN
from sync.log.model import EventDraft
from tests.fake_cloud.server import FakeServer
from tests.support import REDACTOR, Device

WORDS = "只有被拒绝的事件才有的词"


async def refuse_and_erase(device: Device, server: FakeServer, erasing_type: str) -> str:
    """Record an event that the server refuses, and erase it; its id. The server accepts it from now on."""
    (event_id,) = await device.record_notes(WORDS)
    server.refused_event_ids.add(event_id)
    assert (await device.replicator.sync_now()).quarantined == 1
    payload = REDACTOR.clean_payload({"event_ids": [event_id]})
    await device.log.append([EventDraft(type=erasing_type, payload=payload)])

    def apply(connection: Transaction) -> None:
        pending = erasure.next_pending(connection, device.log.device_id)
        assert pending is not None
        erasure.apply(connection, pending, device.clock)

    await device.database.write(apply)
    server.refused_event_ids.clear()
    return event_id


async def sent_events(device: Device) -> list[tuple[str, str, object]]:
    """What the next round sends, after every refused event was released by hand."""
    device.cloud.requests.clear()
    await device.log.quarantine.release(None, "pending")
    await device.replicator.sync_now()
    sent = [event for request in device.cloud.requests for event in request.events]
    return [(event.event_id, event.type, event.payload) for event in sent]


async def stored_text(device: Device) -> str:
    """All rows of all tables."""
    tables = await device.rows("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    return "\n".join([str(await device.rows(f'select * from "{name}"')) for (name,) in tables])


async def test_a_refused_event_that_retention_took_is_not_sent_again(device: Device, server: FakeServer) -> None:
    """The server would store it empty and ignore its words for good, should an import bring them back."""
    await refuse_and_erase(device, server, PAYLOAD_EXPIRED)
    assert await device.rows("select * from quarantine") == []
    assert await device.rows("select state from deliveries") == [("dropped",)]
    assert WORDS not in await stored_text(device)
    assert await sent_events(device) == []
    assert server.user_logs["user-1"].events == []


async def test_a_refused_event_that_a_user_erased_is_sent_only_without_its_words(
    device: Device, server: FakeServer
) -> None:
    event_id = await refuse_and_erase(device, server, PAYLOAD_FORGOTTEN)
    assert WORDS not in await stored_text(device)
    refused, request = await sent_events(device)
    assert refused == (event_id, "note_taken", {})
    assert request[1:] == (PAYLOAD_FORGOTTEN, {"event_ids": [event_id]})
