"""Capture tool calls: count repeated errors, find their cures, and answer with the lesson that matches.

A call leaves two traces: a `tool_call` event with tool, kinds of command and file and the exit code, which replicates,
and, near an error, a `lesson_observed` event with the command and the text of the error, which stays on this device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.commands import command_of, command_shape, file_path_of, file_shape, language_of
from sync.lessons.error_text import error_key, errors_in, is_interrupt, keys_in_output
from sync.lessons.matching import MatchedLesson, MatchRequest, fits_names
from sync.lessons.mining import LessonCall, MinedCure, mine, possible_cure
from sync.lessons.model import ERROR, Lesson, new_record
from sync.lessons.service import LessonService
from sync.log.event_types import LESSON_LEARNED, LESSON_OBSERVED, TOOL_CALL
from sync.log.model import GLOBAL_PROJECT, EventDraft, Origin
from sync.redaction import Redactor

MAX_OUTPUT: Final = 20_000  # characters of an output or error, its end, in which errors are looked for
MAX_MESSAGE: Final = 1_000  # characters of an error that are kept

IsPaused = Callable[[Transaction, str | None], bool]


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """`counted`: lessons whose error occurred again; `mined`: new lessons; `match`: what to show."""

    is_failure: bool
    counted: tuple[str, ...]
    mined: tuple[str, ...]
    match: MatchedLesson
    is_recorded: bool = True  # not in a conversation that is not to be saved


class LessonCapture:
    """Captures and matches for one profile. `is_paused`: whether nothing of a session is to be saved."""

    def __init__(self, lessons: LessonService, redactor: Redactor, is_paused: IsPaused = lambda *_: False) -> None:
        self._lessons = lessons
        self._redactor = redactor
        self._is_paused = is_paused

    async def match(self, request: MatchRequest) -> MatchedLesson:
        """The lesson for a call; a hint counts once, and is given once in a session."""
        request = self._cleaned(request)
        found = await self._lessons.read(lambda connection: store.match(connection, request))
        if found.lesson_id is None:
            return found

        def decide(connection: Transaction) -> tuple[Sequence[EventDraft], Callable[[], MatchedLesson]]:
            again = store.match(connection, request)
            drafts = [] if self._is_paused(connection, request.session_id) else self._hint_events(again, request)
            return drafts, lambda: again

        return await self._lessons.write(decide)

    async def capture(self, request: MatchRequest, *, is_interrupted: bool) -> CaptureResult:
        """Record a call that has run. An interrupt by the user is recorded as a call and is no error.

        Its lesson counts as shown, as that of `match`.
        """
        request = self._cleaned(request)
        exit_code = request.exit_code
        interrupted = is_interrupted or is_interrupt(exit_code, request.error or "")
        is_failure = not interrupted and request.has_failed
        if not interrupted and is_interrupt(exit_code, request.output or "") and is_failure:
            is_failure, interrupted = False, True
        call = self._call_of(request, is_failure=is_failure)
        tool_call = self._tool_call(request, call, exit_code, succeeded=None if interrupted else not is_failure)

        def decide(connection: Transaction) -> tuple[Sequence[EventDraft], Callable[[], CaptureResult]]:
            if self._is_paused(connection, request.session_id):
                found = store.match(connection, request) if is_failure else MatchedLesson("none")
                return (), lambda: CaptureResult(is_failure, (), (), found, is_recorded=False)
            return self._capture_in(connection, request, call, tool_call, is_failure=is_failure)

        result = await self._lessons.write(decide)
        if not result.is_recorded:
            return result
        if shown := self._hint_events(result.match, request):
            await self._lessons.write(lambda _: (shown, lambda: None))
        return result

    def _capture_in(
        self,
        connection: Transaction,
        request: MatchRequest,
        call: LessonCall,
        tool_call: EventDraft,
        *,
        is_failure: bool,
    ) -> tuple[list[EventDraft], Callable[[], CaptureResult]]:
        before = store.calls_of_session(connection, call.session_id)
        calls = [*before, call]
        drafts = [tool_call]
        if call.error_key is not None or store.is_near_error(connection, request):
            drafts.append(self._observation(call))
        mined = self._draft_mined(connection, calls)
        if call.error_key is not None:
            for session_id in store.sessions_with_error(connection, call.error_key):
                if session_id != call.session_id:
                    ended = store.calls_of_session(connection, session_id)
                    mined += self._draft_mined(connection, ended, is_ended=True, error=call.error_key, besides=mined)
        drafts += mined
        keys = keys_in_output(request.error, request.output) if call.error_key is not None else ()
        counted = [lesson for lesson in store.by_keys(connection, keys) if lesson.state != "held_back"]
        drafts += [
            self._lessons.drafts.draft_counted(
                one.lesson_id, "occurrences", project_id=call.project_id, session_id=call.session_id
            )
            for one in counted
        ]
        new = [draft for draft in mined if draft.type == LESSON_LEARNED]

        def result() -> CaptureResult:
            found = store.match(connection, request) if is_failure else MatchedLesson("none")
            names = tuple(str(draft.payload.value["lesson_id"]) for draft in new)
            return CaptureResult(is_failure, tuple(one.lesson_id for one in counted), names, found)

        return drafts, result

    def _draft_mined(
        self,
        connection: Transaction,
        calls: Sequence[LessonCall],
        *,
        is_ended: bool = False,
        error: str | None = None,
        besides: Sequence[EventDraft] = (),
    ) -> list[EventDraft]:
        """The lessons, or the further evidence, in the calls of a session."""
        drafts: list[EventDraft] = []
        for found in mine(calls, is_ended=is_ended):
            if error in {None, found.error.error_key}:
                drafts += self._draft_cure(connection, found, number=len(drafts) + len(besides))
        return drafts

    def _draft_cure(self, connection: Transaction, found: MinedCure, *, number: int) -> list[EventDraft]:
        key = found.error.error_key or ""
        text = f"{found.error.error_type}: {found.error.message}"
        known = [lesson for lesson in store.by_keys(connection, (key,)) if fits_names(lesson.content, text)]
        action = found.cure.action_text
        for lesson in known:
            if action in _actions_of(lesson):
                _, sessions = store.find_evidence(connection, lesson.lesson_id)
                if lesson.source not in {"mined", "imported"} or found.error.session_id in sessions:
                    return []
                return [
                    self._lessons.drafts.draft_counted(
                        lesson.lesson_id,
                        "supported",
                        project_id=found.error.project_id,
                        session_id=found.error.session_id,
                    )
                ]
        if any(lesson.state in {"candidate", "held"} for lesson in known):
            return []
        taken = list[str]()
        for _ in range(number + 1):
            taken.append(self._lessons.drafts.new_id(connection, ERROR, besides=taken))
        lesson_id = taken[-1]
        content = _mined_record(found, self._lessons.drafts.now())
        content["occurrences"] = max(1, store.occurrences_of(connection, (key,)))
        return [
            self._lessons.drafts.draft_learned(
                lesson_id, ERROR, content, "mined", found.error.project_id, Origin.TOOL,
                session_id=found.error.session_id, shares_term=found.shares_term,
            )
        ]  # fmt: skip

    def _hint_events(self, found: MatchedLesson, request: MatchRequest) -> list[EventDraft]:
        if found.lesson_id is None:
            return []
        return [self._lessons.drafts.draft_counted(found.lesson_id, "shown", session_id=request.session_id)]

    def _cleaned(self, request: MatchRequest) -> MatchRequest:
        """The request without secrets: what is compared is what was stored. Texts are cut after they are redacted."""
        tool_input = request.tool_input
        if isinstance(tool_input, Mapping):
            named = {
                "command": command_of(tool_input, limit=None),
                "file_path": file_path_of(tool_input, limit=None),
            }
            tool_input = {name: value for name, value in named.items() if value}
        given = {"tool": request.tool, "output": request.output, "error": request.error}
        clean = self._redactor.clean_payload(
            {**given, "tool_input": tool_input, "session_id": request.session_id}
        ).value
        cut = {name: clean[name] and clean[name][-MAX_OUTPUT:] for name in ("output", "error", "session_id")}
        return replace(request, **{**clean, **cut})

    def _call_of(self, request: MatchRequest, *, is_failure: bool) -> LessonCall:
        command, file_path = command_of(request.tool_input), file_path_of(request.tool_input)
        call = LessonCall(
            2**62, request.session_id or "", request.project_id or GLOBAL_PROJECT, request.tool, command, file_path
        )
        found = (*errors_in(request.error or ""), *errors_in(request.output or "")) if is_failure else ()
        typed = sorted(found, key=lambda one: not one.type)
        if not typed:
            return call
        error = typed[0]
        text = "\n".join(part for part in (request.output, request.error) if part)
        return replace(
            call,
            error_key=error_key(error.type, error.message),
            error_type=error.type,
            message=error.message[:MAX_MESSAGE],
            language=language_of(command=command, file_path=file_path, text=text),
        )

    def _tool_call(
        self, request: MatchRequest, call: LessonCall, exit_code: int | None, *, succeeded: bool | None
    ) -> EventDraft:
        details: dict[str, Any] = {
            "command": command_shape(call.command),
            "file_path": file_shape(call.file_path),
            "exit_code": exit_code,
        }
        payload: dict[str, Any] = {
            "tool": request.tool,
            "details": {k: v for k, v in details.items() if v not in ("", None)},
        }
        if succeeded is not None:
            payload["success"] = succeeded
        return EventDraft(
            TOOL_CALL, self._redactor.clean_payload(payload), project_id=call.project_id,
            session_id=request.session_id, origin=Origin.TOOL,
        )  # fmt: skip

    def _observation(self, call: LessonCall) -> EventDraft:
        payload = {
            "tool": call.tool,
            "command": call.command,
            "file_path": call.file_path,
            "error_key": call.error_key,
            "error_type": call.error_type,
            "message": call.message,
            "language": call.language,
        }
        clean = self._redactor.clean_payload_with_ids(
            "session_id", call.session_id, {name: value for name, value in payload.items() if value}
        )
        return EventDraft(LESSON_OBSERVED, clean, project_id=call.project_id, origin=Origin.TOOL)


def propose(connection: Transaction) -> dict[str, Any]:
    """Fields of a lesson about the newest captured error; empty if there is none. Its cure need not have helped yet."""
    failure = store.newest_failure(connection)
    if failure is None:
        return {}
    calls = store.calls_of_session(connection, failure.session_id)
    at = next((place for place, call in enumerate(calls) if call.position == failure.position), len(calls))
    cure = possible_cure(calls, at) if at < len(calls) else None
    files = [call.file_path for call in (failure, cure) if call is not None and call.file_path]
    return {
        "language": failure.language,
        "error": {"type": failure.error_type, "message": failure.message},
        "context": {"task": failure.command, "related_files": list(dict.fromkeys(files))},
        "solution": {"description": "", "actions": [cure.action_text] if cure is not None else []},
    }


def _actions_of(lesson: Lesson) -> list[Any]:
    solution = lesson.content.get("solution")
    actions = solution.get("actions") if isinstance(solution, Mapping) else None
    return actions if isinstance(actions, list) else []


def _mined_record(found: MinedCure, timestamp: str) -> dict[str, Any]:
    """The record of a cure that was found; Chinese if the error is."""
    error, action = found.error, found.cure.action_text
    is_chinese = any("\u4e00" <= char <= "\u9fff" for char in error.message)
    if found.cure.command:
        description = (
            "随后执行了下面的命令，错误没有再出现" if is_chinese else "after this command the error did not come back"
        )
    else:
        description = (
            "随后修改了下面的文件，错误没有再出现"
            if is_chinese
            else "after an edit of this file the error did not come back"
        )
    given = {
        "language": error.language,
        "error": {"type": error.error_type, "message": error.message},
        "context": {"task": error.command, "related_files": [path for path in (found.cure.file_path,) if path]},
        "solution": {"description": description, "actions": [action]},
    }
    return new_record(ERROR, given, timestamp)
