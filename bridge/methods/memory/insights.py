"""`insights/*`: how the user works, derived from the log; read-only."""

from typing import Annotated, Final, Literal

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.contract import insights
from sync.contract.insights import InstinctsJson, NextJson, ProfileJson, ReportJson
from sync.contract.lessons import HintJson, line_to_json
from sync.insights.features import action_name
from sync.log.event_types import LESSON_TYPES
from sync.log.model import MAX_NAME_LENGTH

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]

MAX_LESSONS: Final = 5  # of one instinct


class NextParams(Params, frozen=True):
    """The starting point: a stage, or a session; by default the newest session of the project or of all."""

    project_id: Name | None = None
    session_id: Name | None = None
    stage: Name | None = None
    limit: Limit = 5


class ProfileParams(Params, frozen=True):
    project_id: Name | None = None
    limit: Limit = 10


class Instincts(Params, frozen=True):
    project_id: Name | None = None
    status: Literal["promoted", "candidate", "retired"] | None = None
    limit: Limit = 100


class ReportParams(Params, frozen=True):
    """`days`: of activity, up to today."""

    format: Literal["markdown", "html"] = "markdown"
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30


async def next_steps(app: App, params: NextParams) -> NextJson:
    """The usual next steps, with their evidence."""
    service = app.insights()
    session_id = app.draft_builder.safe_session_id(params.session_id)
    found = await service.next_steps(
        project_id=params.project_id, session_id=session_id, stage=params.stage, limit=params.limit
    )
    return insights.next_steps_to_json(found, service.source_watermark)


async def profile(app: App, params: ProfileParams) -> ProfileJson:
    """Languages, tools, stages, hours, preferences."""
    found = await app.insights().profile(project_id=params.project_id, limit=params.limit)
    return insights.profile_to_json(found, app.insights().source_watermark)


async def instincts(app: App, params: Instincts) -> InstinctsJson:
    """Learned patterns, the surest first, each with its lessons."""
    found = await app.insights().instincts(project_id=params.project_id, status=params.status, limit=params.limit)
    actions = await _lessons_by_action(app) if any(one.kind == "fails" for one in found) else {}
    lessons = {one.instinct_id: actions[one.text] for one in found if one.kind == "fails" and one.text in actions}
    if any(one.kind == "correct" for one in found):
        lessons |= await _corrections(app)
    return insights.instincts_to_json(found, app.insights().source_watermark, lessons)


async def report(app: App, params: ReportParams) -> ReportJson:
    """The analysis report: Markdown, or one HTML page."""
    return insights.report_to_json(
        await app.insights().report(days=params.days), params.format, await app.memory_service.language()
    )


async def _corrections(app: App) -> dict[str, list[HintJson]]:
    """The lesson of each correction, by the id of its instinct."""
    from sync.lessons.matching import counted_line  # noqa: PLC0415 - most calls need no lessons
    from sync.lessons.store import corrections  # noqa: PLC0415

    found = await app.lessons().read(corrections)
    return {
        name: [line_to_json(one, counted_line(one.lesson_id, one.title, one.occurrences))]
        for name, one in found.items()
    }


async def _lessons_by_action(app: App) -> dict[str, list[HintJson]]:
    """The lessons about the errors of each action that failed, newest failure first, each once."""
    if not await app.log.newest_position(LESSON_TYPES):
        return {}
    from sync.lessons.commands import command_shape, file_shape  # noqa: PLC0415 - most logs have no lessons
    from sync.lessons.matching import hint_text  # noqa: PLC0415

    found: dict[str, dict[str, HintJson]] = {}
    for call, lesson in await app.lessons().of_failed_calls():
        action = action_name(call.tool, command_shape(call.command), file_shape(call.file_path))
        text = hint_text(lesson.lesson_id, lesson.content, lesson.occurrences)
        if action is not None and text:
            found.setdefault(action, {})[lesson.lesson_id] = line_to_json(lesson, text)
    return {action: list(lines.values())[:MAX_LESSONS] for action, lines in found.items()}
