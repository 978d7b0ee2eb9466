"""Import records of other programs and of edited files as lessons."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.files.hand_edits import edited_content
from sync.lessons.files.tree import ImportedRecord
from sync.lessons.model import MAX_ID, content_key, identity_of
from sync.lessons.service import LessonService
from sync.log.model import GLOBAL_PROJECT, EventDraft, Origin

_CleanedRecord = tuple[ImportedRecord, dict[str, Any]]  # with its redacted content


class LessonImports:
    """Imports into one profile's lessons."""

    def __init__(self, lessons: LessonService) -> None:
        self._lessons = lessons

    async def import_records(self, records: Sequence[ImportedRecord], *, dry_run: bool) -> dict[str, int]:
        """Import another program's records with their ids, value for value; one that is known is not imported again."""
        cleaned = await asyncio.to_thread(self._cleaned, records)

        def decide(connection: Transaction) -> tuple[list[EventDraft], Callable[[], dict[str, int]]]:
            drafts, counts = self._draft_imports(connection, cleaned)
            return ([] if dry_run else drafts), lambda: counts

        return await self._lessons.write(decide)

    async def take_edits(self, records: Sequence[ImportedRecord], *, gone: Collection[str]) -> None:
        """Edit the lessons that edited files show, and import their other records.

        `gone`: ids that were written into the files; a lesson of one of them that is not known was removed.
        """
        cleaned = await asyncio.to_thread(self._cleaned, records)

        def decide(connection: Transaction) -> tuple[list[EventDraft], Callable[[], None]]:
            drafts: list[EventDraft] = []
            others: list[_CleanedRecord] = []
            edited: set[str] = set()
            for item in cleaned:
                one, lesson_id = item[0], item[0].record.get("id")
                lesson = store.find_lesson(connection, lesson_id) if isinstance(lesson_id, str) else None
                if lesson is None or lesson.kind != one.kind:
                    others += [item] if lesson is not None or lesson_id not in gone else []
                elif (content := edited_content(lesson, one.record)) is not None:
                    if lesson.lesson_id in edited:  # another file has it too, with other values
                        others.append(item)
                        continue
                    edited.add(lesson.lesson_id)
                    payload = {"kind": lesson.kind, "content": content, "source": "said"}
                    drafts.append(self._lessons.drafts.draft_edited(connection, lesson.lesson_id, payload))
            return [*drafts, *self._draft_imports(connection, others)[0]], lambda: None

        await self._lessons.write(decide)

    def _cleaned(self, records: Sequence[ImportedRecord]) -> list[_CleanedRecord]:
        """Redacted before the transaction, which would keep other writers waiting."""
        return [(one, self._lessons.drafts.redactor.clean_payload(one.record).value) for one in records]

    def _draft_imports(
        self, connection: Transaction, records: Sequence[_CleanedRecord]
    ) -> tuple[list[EventDraft], dict[str, int]]:
        """The events of an import, and its counts."""
        drafts, taken, renamed, known = [], set[str](), 0, 0
        contents: set[tuple[str, str]] = set()
        if any(not isinstance(one.record.get("id"), str) for one, _ in records):
            contents = {(one.kind, content_key(one.content)) for one in store.all_lessons(connection)}
        for one, content in records:
            lesson_id = one.record.get("id")
            has_id = isinstance(lesson_id, str) and 0 < len(lesson_id) <= MAX_ID and lesson_id.isprintable()
            has_id = has_id and content.get("id") == lesson_id  # the redactor left it as it is
            held = store.find_lesson(connection, lesson_id) if isinstance(lesson_id, str) and has_id else None
            is_known = held is not None and identity_of(one.kind, held.content) == identity_of(one.kind, content)
            if is_known or (not has_id and (one.kind, content_key(content)) in contents):
                known += 1
                continue
            if not isinstance(lesson_id, str) or not has_id or lesson_id in taken or held is not None:
                lesson_id, renamed = self._lessons.drafts.new_id(connection, one.kind, besides=taken), renamed + 1
            taken.add(lesson_id)
            contents.add((one.kind, content_key(content)))
            drafts.append(
                self._lessons.drafts.draft_learned(
                    lesson_id, one.kind, content, "imported", GLOBAL_PROJECT, Origin.IMPORTED
                )
            )
        return drafts, {"found": len(records), "recorded": len(drafts), "known": known, "renamed": renamed}
