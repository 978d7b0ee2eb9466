"""Whatever a peer sends as an event is stored or left out, and what was stored is taken in by the next device."""

import asyncio
import json
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.lan import store
from sync.lan.protocol import frames, records
from sync.lan.protocol.frames import MAX_NUMBER, ProtocolError
from sync.log.envelope import to_wire
from tests.integration.lan.harness import devices, meet
from tests.proof import examples
from tests.support import event, new_server

NUMBERS = ("0", "-1", "1.0", "1e400", str(MAX_NUMBER + 1), str(2**64), "1" + "0" * 400)
TEXTS = (
    '""',
    '" "',
    '"\\ud800"',
    '"a\\u0000"',
    '"a\\\\u0000"',
    '"\\u202e"',
    f'"{"x" * 300}"',
    '"2026-02-30T10:00:00Z"',
)
TYPES = ('"payload_forgotten"', '"payload_expired"', '"lesson_learned"', '"device_revoked"', '"entry_added"')
OTHERS = ("null", "true", "[]", "{}", "[" * 900 + "]" * 900, '{"a":' * 500 + "1" + "}" * 500, '{"\\u0000":"\\ud800"}')
NAMING = (
    '{"event_ids":"evt"}',
    '{"event_ids":[1,null,{}]}',
    '{"event_ids":["evt_1"]}',
    '{"text":{"event_id":"evt_1"}}',
)
FIELDS = (
    *to_wire(event(1)),
    "server_ts",
    "seq",
    "reach",
    "signature",
    "erasure_state",
    "imported_device_id",
    "unknown",
)

change = st.tuples(st.sampled_from(FIELDS), st.sampled_from((*NUMBERS, *TEXTS, *TYPES, *OTHERS, *NAMING)))


async def take_in(events: list[list[tuple[str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with devices(Path(folder), new_server(), "a", "b") as (a, b):
            for number, changes in enumerate(events, 1):
                sent = to_wire(event(number, replica="rep_x", device="device-x"))
                fields = {name: json.dumps(value) for name, value in sent.items()} | dict(changes)
                record = ",".join(f'"{name}":{value}' for name, value in fields.items())
                with suppress(ProtocolError):
                    message = frames.decode(f'{{"type":"events","epoch":"e","events":[{{{record}}}]}}'.encode())
                    assert isinstance(message, frames.Events)
                    received = records.parse_records(message.events, {"rep_x": ((1, len(events)),)})
                    await a.database.write(store.store_events, received, a.clock, own_device_ids=["device-a"])
            link = await meet(a, b)
            assert all(side.is_level for side in link.sides)
            assert await b.event_ids() == {record["event_id"] for record in link.records_of(0)}


@settings(max_examples=examples(16))
@given(st.lists(st.lists(change, min_size=1, max_size=3), max_size=30))
def test_what_a_peer_sends_is_stored_or_left_out_and_what_was_stored_is_passed_on(
    events: list[list[tuple[str, str]]],
) -> None:
    asyncio.run(take_in(events))
