"""The use cases of lessons: learn, edit, count, remove, import; a change is events and rows in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.errors import InvalidInput
from sync.lessons import projection, store
from sync.lessons.drafts import LessonDrafts
from sync.lessons.error_text import match_keys, quoted_names
from sync.lessons.matching import cure_of
from sync.lessons.mining import LessonCall
from sync.lessons.model import (
    ERROR,
    MAX_ID,
    PATTERN,
    Lesson,
    check_new,
    identity_of,
    merge_fields,
    new_record,
    text_field,
)
from sync.log import store as log_store
from sync.log.event_types import LESSON_OBSERVED, LESSON_REMOVED, LESSON_TYPES, USER_FEEDBACK
from sync.log.log import EventLog
from sync.log.model import GLOBAL_PROJECT, EventDraft, Origin, text_in
from sync.log.projections.runner import rebuild_and_retry
from sync.redaction import Redactor

R = TypeVar("R")
DraftErasure = Callable[[Transaction, Sequence[str]], Sequence[EventDraft]]  # the requests to erase these events
NOT_EDITABLE: Final = frozenset({"id", "occurrences", "usage_count"})  # never changed by an edit


@dataclass(frozen=True, slots=True)
class LearnResult:
    """`is_new`: recorded; else the known lesson, counted again. `related`: ids of lessons with common tags."""

    lesson: Lesson
    is_new: bool
    related: tuple[str, ...] = ()


class LessonService:
    """One profile's lessons."""

    def __init__(self, log: EventLog, redactor: Redactor, *, clock: Clock, draft_erasure: DraftErasure) -> None:
        self._log = log
        self._redactor = redactor
        self._clock = clock
        self._draft_erasure = draft_erasure
        self.drafts = LessonDrafts(redactor, clock)

    async def all(self) -> list[Lesson]:
        """Every lesson, oldest first."""
        return await self.read(store.all_lessons)

    async def find(self, lesson_id: str) -> Lesson:
        """A lesson by its id. Raises InvalidInput."""
        lesson = await self.read(lambda connection: store.find_lesson(connection, lesson_id))
        if lesson is None:
            raise _unknown(lesson_id)
        return lesson

    async def has_any(self) -> bool:
        """Whether the log has events about lessons, or feedback that may be one."""
        return bool(await self._log.newest_position((*LESSON_TYPES, USER_FEEDBACK)))

    async def replica_id(self) -> str:
        """The id of the database that has the lessons."""
        return await self._log.database.read(log_store.existing_replica_id)

    async def of_failed_calls(self) -> list[tuple[LessonCall, Lesson]]:
        """The newest failed calls, each with a lesson about its error that is active; none without lessons."""
        if not await self._log.newest_position((LESSON_OBSERVED,)):
            return []
        return await self.read(store.lessons_of_failed_calls)

    async def read(self, work: Callable[[Transaction], R]) -> R:
        """Read the tables, brought up to date first if another program added to the log and no other one writes."""
        database = self._log.database

        async def catch_up() -> None:
            if await database.write(partial(projection.catch_up, clock=self._clock)):
                await database.purge(wait_for_readers=False)

        async def read() -> R:
            if not await database.read(projection.is_current):
                await database.upkeep.run(catch_up)
            return await database.read(work)

        return await rebuild_and_retry(database, read, partial(projection.rebuild_inconsistent, clock=self._clock))

    async def write(self, decide: Callable[[Transaction], tuple[Sequence[EventDraft], Callable[[], R]]]) -> R:
        """Decide on up-to-date tables what to record, and record it, in one transaction."""

        def work(connection: Transaction) -> tuple[R, bool]:
            has_removed = projection.catch_up(connection, self._clock)
            drafts, result = decide(connection)
            if drafts:
                self._log.append_in(connection, drafts)
                has_removed = projection.catch_up(connection, self._clock) or has_removed
            return result(), has_removed

        database = self._log.database
        rebuild = partial(projection.rebuild_inconsistent, clock=self._clock)
        answer, has_removed = await rebuild_and_retry(database, lambda: database.write(work), rebuild)
        if has_removed:
            await database.purge(wait_for_readers=False)
        self._log.changed.increment()
        return answer

    async def learn(
        self, kind: str, given: Mapping[str, Any], *, project_id: str = GLOBAL_PROJECT, origin: Origin = Origin.USER
    ) -> LearnResult:
        """Record an error or a pattern, or count the one that is known. Raises InvalidInput naming all wrong fields."""
        check_new(kind, given)
        content = self._redactor.clean_payload(new_record(kind, given, self.drafts.now())).value
        return await self.write(
            lambda connection: self._learn_in(connection, kind, content, project_id=project_id, origin=origin)
        )

    def _learn_in(
        self, connection: Transaction, kind: str, content: dict[str, Any], *, project_id: str, origin: Origin
    ) -> tuple[list[EventDraft], Callable[[], LearnResult]]:
        twins = store.by_identity(connection, identity_of(kind, content))
        twin = next((lesson for lesson in twins if is_same_lesson(lesson, content)), None)
        lesson_id = twin.lesson_id if twin is not None else self.drafts.new_id(connection, kind, content["timestamp"])
        if twin is None:
            if kind == ERROR:
                keys = match_keys(text_field(content["error"], "type"), text_field(content["error"], "message"))
                content["occurrences"] = max(content["occurrences"], store.occurrences_of(connection, keys))
            drafts = [self.drafts.draft_learned(lesson_id, kind, content, "said", project_id, origin)]
        else:
            drafts = [self.drafts.draft_counted(lesson_id, "occurrences", project_id=project_id)]
            edited = with_news(twin, content)
            if edited != twin.content:
                confirms = {"source": "said"} if edited.get("solution") != twin.content.get("solution") else {}
                payload = {"kind": kind, "content": edited, **confirms}
                drafts.append(self.drafts.draft_edited(connection, lesson_id, payload))

        def result() -> LearnResult:
            lesson = store.find_lesson(connection, lesson_id)
            assert lesson is not None
            tags = set(lesson.tags)
            near = [one.lesson_id for one in store.all_lessons(connection) if tags & set(one.tags)] if tags else []
            return LearnResult(lesson, twin is None, tuple(name for name in near if name != lesson_id))

        return drafts, result

    async def edit(self, lesson_id: str, changes: Mapping[str, Any]) -> Lesson:
        """Replace fields of a lesson, of an object the given parts; an edit confirms it. Raises InvalidInput."""

        def decide(connection: Transaction) -> tuple[list[EventDraft], Callable[[], Lesson]]:
            lesson = store.find_lesson(connection, lesson_id)
            if lesson is None:
                raise _unknown(lesson_id)
            content = merge_fields(
                lesson.content, {name: value for name, value in changes.items() if name not in NOT_EDITABLE}
            )
            check_new(lesson.kind, content)
            payload = {"kind": lesson.kind, "content": content, "source": "said"}
            return [self.drafts.draft_edited(connection, lesson_id, payload)], lambda: _present(connection, lesson_id)

        return await self.write(decide)

    async def count(self, lesson_id: str, counter: str) -> Lesson:
        """Raise a counter: `helped`, `hurt`, `occurrences`. Raises InvalidInput."""

        def decide(connection: Transaction) -> tuple[list[EventDraft], Callable[[], Lesson]]:
            if store.find_lesson(connection, lesson_id) is None:
                raise _unknown(lesson_id)
            return [self.drafts.draft_counted(lesson_id, counter)], lambda: _present(connection, lesson_id)

        return await self.write(decide)

    async def remove(
        self,
        lesson_ids: Sequence[str],
        *,
        merges: Mapping[str, Sequence[Lesson]] | None = None,
        with_calls: bool = False,
    ) -> None:
        """Remove lessons, and request the erasure of their texts, and of the calls and the feedback they come from.

        `merges`: the lessons whose counts and projects a lesson that stays takes over. `with_calls`: erase every
        observed call. Raises InvalidInput.
        """

        def decide(connection: Transaction) -> tuple[list[EventDraft], Callable[[], None]]:
            for lesson_id in lesson_ids:
                if store.find_lesson(connection, lesson_id) is None:
                    raise _unknown(lesson_id)
            named = set(lesson_ids)
            texts = [
                event.event_id
                for event in log_store.read_by_types(connection, projection.TEXT_TYPES, after=0)
                if text_in(event, "lesson_id") in named
            ]
            if with_calls:
                observed = log_store.read_by_types(connection, (LESSON_OBSERVED,), after=0)
                calls = [event.event_id for event in observed]
            else:
                calls = list(projection.observations_of(connection, texts))
            calls += [name for lesson_id in lesson_ids for name in store.feedback_of(connection, lesson_id)]
            drafts = [self.drafts.draft(LESSON_REMOVED, lesson_id, {}) for lesson_id in lesson_ids]
            drafts += [
                self.drafts.draft_counted(
                    name, "occurrences", project_id=project_id, by=0 if place else merged.occurrences
                )
                for name, lessons in (merges or {}).items()
                for merged in lessons
                for place, project_id in enumerate(merged.project_ids)
            ]
            return [*drafts, *self._draft_erasure(connection, [*texts, *calls])], lambda: None

        await self.write(decide)

    async def recorded(self) -> list[Lesson]:
        """The lessons of the tables as they are; it brings nothing up to date and writes nothing."""
        database = self._log.database
        if not await self.has_any() or not await database.read(store.is_created):
            return []
        return await database.read(store.all_lessons)


def is_same_lesson(lesson: Lesson, content: Mapping[str, Any]) -> bool:
    """Whether a new record of the same identity is the same lesson: about the same names, or with no other cure.

    Of patterns: of one language, if both name one.
    """
    if lesson.kind == PATTERN:
        return len({one for one in (lesson.language, text_field(content, "language")) if one}) < 2
    if lesson.kind != ERROR or not _has_cure(content) or not _has_cure(lesson.content):
        return True
    ours, theirs = (quoted_names(text_field(one.get("error") or {}, "message")) for one in (lesson.content, content))
    return ours == theirs or cure_of(lesson.content) == cure_of(content)


def with_news(known: Lesson, content: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a known lesson with the tags of a new one, and with its cure.

    A stated cure replaces a mined one; another stated cure is appended to the actions.
    """
    edited = dict(known.content)
    tags, new_tags = edited.get("tags"), content.get("tags")
    if isinstance(tags, list | None) and isinstance(new_tags, list) and new_tags:
        edited["tags"] = [*(tags or ()), *(tag for tag in new_tags if tag not in (tags or ()))]
    former, solution = edited.get("solution"), content.get("solution")
    if not isinstance(solution, Mapping) or not _has_cure(content):
        return edited
    if known.source == "mined" or not isinstance(former, Mapping) or not _has_cure(known.content):
        return {**edited, "solution": solution}
    actions = former.get("actions") or []
    new_actions = solution.get("actions")
    news = [solution.get("description"), *(new_actions if isinstance(new_actions, list) else ())]
    if isinstance(actions, list):
        more = [one for one in news if one and one != former.get("description") and one not in actions]
        edited["solution"] = {**former, **({"actions": [*actions, *dict.fromkeys(map(str, more))]} if more else {})}
    return edited


def _has_cure(content: Mapping[str, Any]) -> bool:
    solution = content.get("solution")
    return isinstance(solution, Mapping) and any(bool(value) for value in solution.values())


def _present(connection: Transaction, lesson_id: str) -> Lesson:
    lesson = store.find_lesson(connection, lesson_id)
    assert lesson is not None
    return lesson


def _unknown(lesson_id: str) -> InvalidInput:
    hint = "`xiaobai-memory lessons list` shows the ids; nothing was changed."
    return InvalidInput(f"there is no lesson {lesson_id[:MAX_ID]}", field="id", hint=hint)
