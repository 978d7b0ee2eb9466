"""Consecutive events and the state that they lead to."""

from itertools import count
from typing import Any

from sync.clock import timestamp, to_unix_ms
from sync.insights import queries
from sync.insights.state import DAY_MS, InsightsState
from sync.log.model import DOOR_FIELD, Door, Event
from tests.support import START, event

NOW = to_unix_ms(START)


class EventSequence:
    """Builds consecutive events, by default in one session."""

    def __init__(self) -> None:
        self.state = InsightsState()
        self.events: list[Event] = []
        self._numbers = count(1)

    def tell(self, kind: str, *, session: str = "s1", **more: Any) -> str:
        number = next(self._numbers)
        given: dict[str, Any] = {
            name: more.pop(name) for name in ("project_id", "origin", "local_date", "door") if name in more
        }
        given |= {"extra": {DOOR_FIELD: str(given.pop("door", Door.COMMAND))}} if kind == "user_feedback" else {}
        given |= {"session_id": session, "ts": timestamp(START), "position": number}
        told = event(number, type=kind, payload=more, event_id=f"evt_{number}", **given)
        self.events.append(told)
        self.state.apply(told)
        return told.event_id

    def tool(self, stage: str | None = None, **more: Any) -> str:
        if stage is not None:
            more["stage"] = stage
        return self.tell("tool_call", **more)

    def one(self, days_later: float = 0.0) -> queries.ScoredInstinct:
        (found,) = queries.scored_instincts(self.state, NOW + int(days_later * DAY_MS))
        return found
