"""Events of another device with anything in any field of any type: they stop nothing, and the user's text stays."""

import random
from pathlib import Path
from typing import Any, Final

from sync.context.model import TurnRequest
from sync.document.capture.exchange_events import ExchangeInput
from sync.log import store as log_store
from sync.log.event_catalogue import EVENT_TYPES
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import EventScope, scope_of
from sync.open_app import AppMode
from sync.recall.model import SearchRequest
from tests.integration.db.rebuild.test_salvage import Home
from tests.support import event

SEED: Final = 5
EVENTS_PER_TYPE: Final = 25
ODD: Final[tuple[Any, ...]] = (
    *(None, True, 1, -1, 1.5, 2**70, "", "x", "长" * 300, [], [None], [[]], ["x", {}], {}, {"a": {"b": []}}),
    *("2026-99-99", "../../etc", "﷽"),
)
TYPES: Final = sorted(
    name for name in EVENT_TYPES if scope_of(name) is EventScope.CLOUD and name != PAYLOAD_FORGOTTEN
)  # an erasure is carried out


def odd_payloads(chance: random.Random, names: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Payloads of every type whose fields hold anything, ids of the user's own events among it."""
    found = []
    for event_type in TYPES * EVENTS_PER_TYPE:
        fields = [name.rstrip("?") for name in EVENT_TYPES[event_type].payload if " " not in name]
        payload = {name: chance.choice((*ODD, *names)) for name in fields if chance.random() < 0.8}
        found.append((event_type, payload))
    return found


async def test_odd_events_of_another_device_stop_nothing(tmp_path: Path) -> None:
    chance, home = random.Random(SEED), Home(tmp_path)
    async with home.app(AppMode.HELPER) as app:
        said = [await app.memory_service.update(ExchangeInput(f"我用 PostgreSQL {n}", "好")) for n in range(3)]
        await app.reconcile_memory_file()
        own = [str(one.event_id) for one in said]
        odd = [
            event(number, replica="rep_b", device="device-b", type=event_type, payload=payload,
                  origin=chance.choice(["user-typed", "tool", "peer", "imported", "zzz"]), session_id="s1")
            for number, (event_type, payload) in enumerate(odd_payloads(chance, [*own, "s1"]), start=1)
        ]  # fmt: skip
        await app.log.database.write(log_store.insert_events, odd)
    async with home.app(AppMode.HELPER) as app:
        loaded = await app.memory_service.load(wait_ms=0)
        assert all(f"我用 PostgreSQL {number}" in loaded.document for number in range(3))
        await app.reconcile_memory_file()
        assert "我用 PostgreSQL 0" in app.settings.memory_file.read_text("utf-8")
        await app.event_files.write_all(60)
        assert (await app.recall().search(SearchRequest("PostgreSQL"))).hits
        await app.context().turn(TurnRequest(SearchRequest("我用什么数据库，PostgreSQL 吗"), session_id="s2"))
        await app.facts().current()
        await app.daily().reconcile()
        await app.daily().status()
        await app.insights().report(days=30)
        assert await app.check_health()
        await app.status()
        forgotten = (await app.erasure.request(own[:1])).named
        assert own[0] in forgotten
        await app.daily().record_service.forget_session("s1")
        assert "我用 PostgreSQL 0" not in (await app.memory_service.load(wait_ms=0)).document
