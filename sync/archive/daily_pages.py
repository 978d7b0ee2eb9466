"""Turn a folder of daily pages into records.

A record's id is derived from its day, time, project and text, so another import records nothing new. A record with
the same moment and topic as an existing one is that record. Pages in a project's folder (`.cursor/skills/memories`)
belong to the project; pages in the home folder name theirs.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from sync.clock import Clock, timestamp, utc_offset_minutes
from sync.daily.model import Record, record_payload
from sync.daily.pages.page_format import DayPage, PageSession
from sync.errors import InvalidInput, RedactionFailed
from sync.log.event_types import SESSION_RECORDED
from sync.log.ingest import DraftBuilder
from sync.log.model import Door, EventDraft, Origin, project_id_for

MEMORIES_FOLDER: Final = (".cursor", "skills", "memories")
_TITLE: Final = re.compile(r"\ufeff?\s*# \d{4}-\d{2}-\d{2} 对话记忆")

RecordMoment = tuple[str, str, str]  # day, time, topic


def is_page(text: str) -> bool:
    return _TITLE.match(text) is not None


def project_of(path: Path) -> str | None:
    """Return the project whose memories folder holds a path; None elsewhere and in the home folder."""
    for parent in (path, *path.parents):
        if parent.parts[-3:] == MEMORIES_FOLDER and parent.parents[2] != Path.home():
            return str(parent.parents[2])
    return None


def draft_page_events(
    page: DayPage, project: str | None, intake: DraftBuilder, clock: Clock, on_refused: Callable[[str, str], None]
) -> Iterator[tuple[RecordMoment, EventDraft]]:
    """Yield the events of one page."""
    for session in page.sessions:
        try:
            yield (
                (page.day, session.time, session.content.topic),
                _draft_record_event(page, session, session.origin or project, intake, clock),
            )
        except (InvalidInput, RedactionFailed) as error:
            on_refused(f"{page.day} Session {session.number}", error.message)
        except OverflowError:
            on_refused(f"{page.day} Session {session.number}", "its time is out of the calendar")


def _draft_record_event(
    page: DayPage, session: PageSession, path: str | None, intake: DraftBuilder, clock: Clock
) -> EventDraft:
    project_id = project_id_for(path)
    text = f"{page.day}\n{session.time}\n{project_id}\n{session.content.full_text}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    record = Record(
        record_id=f"rec_{digest}",
        event_id="",
        date=page.day,
        time=session.time,
        number=session.number,
        content=session.content,
        project_id=project_id,
        project_path=path,
        device_id="",
        author="hand",
        marks=session.marks,
    )
    moment = clock.local(datetime.fromisoformat(f"{page.day}T{session.time}"))
    return EventDraft(
        type=SESSION_RECORDED,
        payload=intake.redactor.clean_payload(record_payload(record)),
        project_id=project_id,
        project_path=None if path is None else intake.redactor.clean(path),
        event_id=f"evt_{digest}",
        ts=timestamp(moment),
        origin=Origin.IMPORTED,
        door=Door.IMPORT,
        local_date=page.day,
        utc_offset=utc_offset_minutes(moment),
    )
