"""`insights/*`: what the log tells about how somebody works; read-only (seed 002 §6.2-6.3, seed 000's report)."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync.log.model import NAME_LENGTH
from sync.published.insights import InstinctsJson, NextJson, ProfileJson, ReportJson

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class Next(Params, frozen=True):
    """Where somebody stands: a stage, or a session; without either, the newest session of the project or of all."""

    project_id: Name | None = None
    session_id: Name | None = None
    stage: Name | None = None
    limit: Limit = 5


class Profile(Params, frozen=True):
    project_id: Name | None = None
    limit: Limit = 10


class Instincts(Params, frozen=True):
    project_id: Name | None = None
    status: Literal["promoted", "candidate", "retired"] | None = None
    limit: Limit = 100


class Report(Params, frozen=True):
    """`days`: of activity, up to today."""

    format: Literal["markdown", "html"] = "markdown"
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30


async def following(context: Context[Door], params: Next) -> NextJson:
    app = await context.app.opened()
    from sync.contract import insights  # noqa: PLC0415 - the room, which a start need not load

    room = app.insights()
    session_id = app.intake.session(params.session_id)
    found = await room.following(
        project_id=params.project_id, session_id=session_id, stage=params.stage, limit=params.limit
    )
    return insights.following(found, room.source_watermark)


async def profile(context: Context[Door], params: Profile) -> ProfileJson:
    app = await context.app.opened()
    from sync.contract import insights  # noqa: PLC0415 - as above

    found = await app.insights().profile(project_id=params.project_id, limit=params.limit)
    return insights.profile(found, app.insights().source_watermark)


async def instincts(context: Context[Door], params: Instincts) -> InstinctsJson:
    app = await context.app.opened()
    from sync.contract import insights  # noqa: PLC0415 - as above

    found = await app.insights().instincts(project_id=params.project_id, status=params.status, limit=params.limit)
    return insights.instincts(found, app.insights().source_watermark)


async def report(context: Context[Door], params: Report) -> ReportJson:
    app = await context.app.opened()
    from sync.contract import insights  # noqa: PLC0415 - as above

    return insights.report(await app.insights().report(days=params.days), params.format)


METHODS: Final[list[Method[Door, Any]]] = [
    Method("insights/next", Next, following, "What usually comes next, with its evidence.", timeout=None),
    Method("insights/profile", Profile, profile, "Languages, tools, stages, hours, preferences.", timeout=None),
    Method("insights/instincts", Instincts, instincts, "What experience suggests, the surest first.", timeout=None),
    Method("insights/report", Report, report, "The analysis report: Markdown, or one HTML page.", timeout=None),
]
