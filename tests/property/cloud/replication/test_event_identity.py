"""After any sequence of import, damage, fork, LAN exchange and sync, devices and server agree on events and facts."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.cloud import replication_store
from sync.jsonl.event_import import EventImport
from sync.jsonl.model import ImportCounts
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.envelope import to_json
from sync.log.model import CLOUD, Event, EventDraft, RemoteCursor
from sync.understanding.projection import FactProjection
from tests.fake_cloud.server import FakeServer
from tests.integration.lan.harness import devices, meet
from tests.proof import examples
from tests.support import REDACTOR, Device, event, introduce, new_server, signer_of

EDITORS = ("vim", "emacs", "nano")
FOREIGN = [  # a file of somebody else, as two devices may import it
    to_json(event(n, device="elsewhere", type="memory_fact", payload={"content": f"我用 {name} 编辑器写代码"}, hlc=hlc))
    for n, name, hlc in ((1, "vim", "0193a5b2c3d4-0001"), (2, "emacs", "0293a5b2c3d4-0001"))
]

device = st.integers(0, 2)
pair = st.tuples(device, device).filter(lambda two: two[0] != two[1])
step = st.one_of(
    st.tuples(st.just("state"), device, st.sampled_from(EDITORS)),
    st.tuples(st.just("program"), device, st.sampled_from(("fact-1", "fact-2"))),
    st.tuples(st.just("import"), pair),
    st.tuples(st.just("foreign"), device),
    st.tuples(st.just("damage"), device, st.integers(0, 9)),
    st.tuples(st.just("fork"), device),
    st.tuples(st.just("meet"), pair),
    st.tuples(st.just("sync"), device),
    st.tuples(st.just("restore"), st.integers(0, 9)),
)


async def follow(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = new_server()
        async with devices(Path(folder), server, "a", "b", "c") as three:
            for one in three:
                await one.log_in()
                await introduce(one.log, *(other.log for other in three))
            for kind, who, *more in steps:
                await take(three, server, kind, who, more)
            for _ in range(4):
                for one in three:
                    await one.replicator.sync_now()
            (memory,) = server.user_logs.values()
            there = identities(memory.events)
            payloads = {e.event_id: dict(e.payload) for e in memory.events}
            first = await facts(three[0])
            for one in three:
                held = await one.events()
                assert identities(held) == there
                assert {e.event_id: dict(e.payload) for e in held} == payloads
                assert await facts(one) == first
                assert await one.log.quarantine.list_refused() == []
                assert await one.log.find_problems() == []


async def take(three: list[Device], server: FakeServer, kind: str, who: Any, more: list[Any]) -> None:
    match kind:
        case "import":
            signed = await signer_of(three[who[0]].log).sign(await three[who[0]].events())
            await import_lines(three[who[1]], [to_json(one) for one in signed])
        case "meet":
            await meet(three[who[0]], three[who[1]])
        case "restore":
            for user, memory in server.user_logs.items():
                server.restore(user, min(who, memory.head), epoch=f"epoch-{memory.head}-{who}")
        case _:
            await act(three[who], kind, *more)


async def act(one: Device, kind: str, what: Any = None) -> None:
    match kind:
        case "state":
            words = {"content": f"我用 {what} 编辑器写代码", "kind": "habit", "slot": "editor"}
            await one.log.append([EventDraft("memory_fact", REDACTOR.clean_payload(words))])
            one.clock.advance(1)
        case "program":
            value = {"event_id": what, "type": "note_taken", "payload": {"text": what}}
            await one.log.append([one.intake.build_appended(value)])
        case "foreign":
            await import_lines(one, FOREIGN)
        case "damage":
            held = [item.event_id for item in await one.events() if item.server_seq is not None]
            if held:
                await one.database.write(log_store.replace_payload, held[what % len(held)], {})
                await one.database.write(outbox_store.save_cursor, CLOUD, RemoteCursor())  # as a salvage does
        case "fork":
            await one.database.write(replication_store.fork_replica, one.clock)
        case "sync":
            await one.replicator.sync_now()


async def import_lines(one: Device, lines: list[dict[str, Any]]) -> None:
    importing = EventImport(one.log, one.intake, signer_of(one.log), one.clock)
    await importing.take([(str(line["event_id"]), line) for line in lines], ImportCounts())


def identities(events: list[Event]) -> set[tuple[str, str, str, str]]:
    return {(one.event_id, one.device_id, one.hlc, one.type) for one in events}


async def facts(one: Device) -> object:
    return (await one.database.read(FactProjection(clock=one.clock).read)).facts


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(step, max_size=10))
def test_devices_and_server_agree_at_rest(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(follow(steps))
