"""Items and hits as the index returns them."""

from sync.log.authorship import authorship
from sync.recall.model import Hit, ScoreParts, StoredItem

DAY = 86_400_000


def make_item(item_id: int, text: str, **changes: object) -> StoredItem:
    values = {
        "item_id": item_id,
        "event_id": f"evt_{item_id}",
        "entry_id": None,
        "kind": "fact",
        "text": text,
        "date": "2026-02-02",
        "ts": "2026-02-02T10:00:00.000Z",
        "ts_ms": item_id * DAY,
        "project_id": "proj_global",
        "project_path": None,
        "session_id": "s",
        "device_id": "device-a",
        "origin": "user-typed",
        "importance": 0.5,
        "marks": (),
    }
    values |= changes
    door = {} if values["origin"] == "user-typed" else {"door": "program"}
    written = authorship("memory_fact", str(values["origin"]), str(values["device_id"]), door)
    return StoredItem(**{"written": written, **values})  # type: ignore[arg-type]


def hit(item_id: int, text: str, **changes: object) -> Hit:
    return Hit(make_item(item_id, text, **changes), 1.0, ScoreParts(1.0, None, 0.8, 1.0))
