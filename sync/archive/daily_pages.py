"""A folder of daily pages (seed 000 §3.2) as records of this log.

Decisions
    A record gets its id from its day, time, project and words, so the same folder again records nothing new, on
    whatever device. One that says the same at the same moment as a record here is that record: this program's own
    folder brings nothing.
    Pages of a project's folder (`.cursor/skills/memories` in it) are of that project; in the home they name theirs.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from sync.clock import Clock, timestamp, utc_offset_minutes
from sync.daily.model import Record, record_payload
from sync.daily.pages.page_format import DayPage, PageSession, parse
from sync.errors import InvalidInput, RedactionFailed
from sync.log.event_types import SESSION_RECORDED
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft, Origin, project_id_for
from sync.system.files import translate_os_errors

MEMORIES_FOLDER: Final = (".cursor", "skills", "memories")
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024  # bytes of one page
_NAME: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.\d+)?\.md")
_TITLE: Final = re.compile(r"\ufeff?\s*# \d{4}-\d{2}-\d{2} 对话记忆")

RecordMoment = tuple[str, str, str]  # of a record: its day, time and topic


def is_page(text: str) -> bool:
    return _TITLE.match(text) is not None


def list_pages(folder: Path) -> list[Path]:
    """The pages in a folder, or in its `daily`, oldest day first. Raises StorageError."""
    with translate_os_errors(folder):
        found = [path for place in (folder, folder / "daily") if place.is_dir() for path in place.iterdir()]
    return sorted((path for path in found if _NAME.fullmatch(path.name) and path.is_file()), key=lambda path: path.name)


def project_of(path: Path) -> str | None:
    """The project whose folder of memories a path lies in; None elsewhere and in the home."""
    for parent in (path, *path.parents):
        if parent.parts[-3:] == MEMORIES_FOLDER and parent.parents[2] != Path.home():
            return str(parent.parents[2])
    return None


def draft_page_events(
    text: str, project: str | None, intake: DraftBuilder, clock: Clock, on_refused: Callable[[str, str], None]
) -> Iterator[tuple[RecordMoment, EventDraft]]:
    """The events of one page. Raises InvalidInput where it is none."""
    page = parse(text)
    for note in page.sessions:
        try:
            yield (
                (page.day, note.time, note.content.topic),
                _draft_record_event(page, note, note.origin or project, intake, clock),
            )
        except (InvalidInput, RedactionFailed) as error:
            on_refused(f"{page.day} Session {note.number}", error.message)
        except OverflowError:
            on_refused(f"{page.day} Session {note.number}", "its time is out of the calendar")


def _draft_record_event(
    page: DayPage, note: PageSession, path: str | None, intake: DraftBuilder, clock: Clock
) -> EventDraft:
    project_id = project_id_for(path)
    words = f"{page.day}\n{note.time}\n{project_id}\n{note.content.full_text}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:32]
    record = Record(
        record_id=f"rec_{digest}",
        event_id="",
        date=page.day,
        time=note.time,
        number=note.number,
        content=note.content,
        project_id=project_id,
        project_path=path,
        device_id="",
        author="hand",
        marks=note.marks,
    )
    moment = clock.local(datetime.fromisoformat(f"{page.day}T{note.time}"))
    return EventDraft(
        type=SESSION_RECORDED,
        payload=intake.redactor.clean_payload(record_payload(record)),
        project_id=project_id,
        project_path=None if path is None else intake.redactor.clean(path),
        event_id=f"evt_{digest}",
        ts=timestamp(moment),
        origin=Origin.IMPORTED,
        local_date=page.day,
        utc_offset=utc_offset_minutes(moment),
    )
