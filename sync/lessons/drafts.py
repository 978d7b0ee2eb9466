"""Events about lessons, before they are recorded."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.model import ID_PREFIX
from sync.log.event_types import LESSON_COUNTED, LESSON_EDITED, LESSON_LEARNED
from sync.log.model import GLOBAL_PROJECT, EventDraft, Origin
from sync.redaction import Redactor

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LessonDrafts:
    """Builds the events. Their texts pass the redactor; ids of lessons stay as they are."""

    redactor: Redactor
    clock: Clock

    def now(self) -> str:
        """The time as a record has it: `2026-02-25T14:30:00Z`."""
        return self.clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_id(self, connection: Transaction, kind: str, timestamp: str = "", *, besides: Collection[str] = ()) -> str:
        """`timestamp`: of the record, whose day the id has; today without one."""
        named = timestamp[:10].replace("-", "") if _DAY.match(timestamp) else ""
        day = f"{ID_PREFIX[kind]}-{named or f'{self.clock.now().astimezone(UTC):%Y%m%d}'}-"
        lesson_id = store.next_id(connection, day)
        while lesson_id in besides:
            lesson_id = f"{day}{int(lesson_id.removeprefix(day)) + 1:03}"
        return lesson_id

    def draft_learned(
        self,
        lesson_id: str,
        kind: str,
        content: Mapping[str, Any],
        source: str,
        project_id: str,
        origin: Origin,
        **more: Any,
    ) -> EventDraft:
        """A new lesson as an event. Raises TooLarge."""
        payload = {"kind": kind, "source": source, "content": dict(content), **more}
        return self.draft(LESSON_LEARNED, lesson_id, payload, project_id, origin)

    def draft_edited(self, connection: Transaction, lesson_id: str, payload: Mapping[str, Any]) -> EventDraft:
        """The record of a lesson after a change. An edited correction repeats feedback, and goes with it."""
        feedback = store.feedback_of(connection, lesson_id)
        return self.draft(LESSON_EDITED, lesson_id, {**payload, "evidence": feedback} if feedback else payload)

    def draft_counted(
        self,
        lesson_id: str,
        counter: str,
        *,
        project_id: str = GLOBAL_PROJECT,
        session_id: str | None = None,
        by: int = 1,
    ) -> EventDraft:
        payload: dict[str, Any] = {"counter": counter, "by": by, "at": self.now()}
        if session_id is not None:
            payload["session_id"] = session_id
        return self.draft(LESSON_COUNTED, lesson_id, payload, project_id, Origin.TOOL)

    def draft(
        self,
        event_type: str,
        lesson_id: str,
        payload: Mapping[str, Any],
        project_id: str = GLOBAL_PROJECT,
        origin: Origin = Origin.USER,
    ) -> EventDraft:
        clean = self.redactor.clean_payload_with_ids("lesson_id", lesson_id, payload)
        return EventDraft(event_type, clean, project_id=project_id, origin=origin)
