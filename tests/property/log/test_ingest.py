"""Any JSON is refused by the name of its field, or is stored and read back unchanged."""

import asyncio
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.db.engine import Database
from sync.errors import InvalidInput
from sync.log import store
from sync.log.envelope import from_wire, to_wire
from sync.log.ingest import DraftBuilder, parse_event_query
from sync.log.log import EventLog
from sync.log.model import Event, Query
from sync.redaction import Redactor
from tests.proof import examples
from tests.support import FixedClock

UNTOUCHED = Redactor(enabled=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)
NAMES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=64)
ANYTHING = VALUES | st.just("2026-02-02T10:00:00Z") | st.floats() | st.text(max_size=10)
FIELDS = ["type", "payload", "schema_version", "event_id", "project_id", "project_path", "session_id", "ts", "origin"]


def recorded(drafts: list[Any]) -> list[Event]:
    """Append to a new log, reopen its file, and return the events."""

    async def run() -> list[Event]:
        with tempfile.TemporaryDirectory() as folder:
            path, clock = Path(folder) / "memory.db", FixedClock()
            database = await Database.open(path)
            await database.write(lambda connection: store.ensure_replica_id(connection, clock))
            await EventLog(database, clock, device_id="device-a", session_id="s").append(drafts)
            await database.close()
            reopened = await Database.open(path)
            page = await EventLog(reopened, clock, device_id="device-a", session_id="s").read(Query())
            await reopened.close()
            return list(page.events)

    return asyncio.run(run())


@settings(max_examples=examples(60))
@given(payload=OBJECTS, extra=OBJECTS, name=NAMES)
def test_json_comes_back_value_for_value(payload: dict[str, Any], extra: dict[str, Any], name: str) -> None:
    unknown = {f"x_{key}": value for key, value in extra.items()}
    draft = DraftBuilder(UNTOUCHED, store_messages=True).build({"type": name, "payload": payload, **unknown})
    (event,) = recorded([draft])
    assert event.type == name
    assert same(event.payload, payload)
    assert same(event.extra, unknown)
    back = from_wire(json.loads(json.dumps(to_wire(event))))
    assert same(to_wire(back), to_wire(event))


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is not 1.0 and not True."""
    return json.dumps(one, sort_keys=True, ensure_ascii=False) == json.dumps(other, sort_keys=True, ensure_ascii=False)


@settings(max_examples=examples(300))
@given(value=st.dictionaries(st.sampled_from(FIELDS) | TEXTS, ANYTHING, max_size=6) | ANYTHING)
def test_ingest_raises_only_its_own_errors(value: Any) -> None:
    with suppress(InvalidInput):
        assert DraftBuilder(UNTOUCHED).build(value).type


@settings(max_examples=examples(300))
@given(value=st.dictionaries(st.sampled_from(["after", "limit", "types", "since_ts", "project_id"]), ANYTHING))
def test_a_filter_raises_only_its_own_errors(value: Any) -> None:
    try:
        wanted = parse_event_query(value)
    except InvalidInput:
        return
    assert 1 <= wanted.limit <= 1000
    assert 0 <= wanted.after < 2**63
