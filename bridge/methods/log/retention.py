"""`retention/plan` and `retention/apply`: archive what is old, then forget it on this device."""

from typing import Annotated, Any, Final

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Method, Params
from sync.published.retention import RetentionJson

PROGRESS_TOKEN: Final = "retention"  # noqa: S105 - of `$/progress`, in events


class BoundsParams(Params, frozen=True):
    """In place of the settings `privacy.retention_days` and `privacy.retention_megabytes`."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    megabytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None


async def plan(context: Context[AppProvider], params: BoundsParams) -> RetentionJson:
    app = await context.app.wait_until_open()
    from sync.contract import retention  # noqa: PLC0415 - the room, which a start need not load
    from sync.retention.policy import RetentionResult  # noqa: PLC0415 - likewise

    room = app.retention()
    return retention.retention_to_json(
        RetentionResult(await room.plan(room.build_rules(params.days, params.megabytes))), applied=False
    )


async def apply(context: Context[AppProvider], params: BoundsParams) -> RetentionJson:
    app = await context.app.wait_until_open()
    from sync.contract import retention  # noqa: PLC0415 - as above

    def heard(done: int, total: int) -> None:
        context.report_progress(PROGRESS_TOKEN, {"kind": "report", "title": "retention", "done": done, "total": total})

    room = app.retention()
    done = await room.apply(room.build_rules(params.days, params.megabytes), heard)
    if done.forgotten:
        await app.apply_erasures(vacuum=True)
    return retention.retention_to_json(done, applied=True)


METHODS: Final[list[Method[AppProvider, Any]]] = [
    Method(
        "retention/plan",
        BoundsParams,
        plan,
        "What is old enough to go from this device, and what stays; changes nothing.",
    ),
    Method(
        "retention/apply",
        BoundsParams,
        apply,
        "Archive what is old, then forget it here; the cloud and other devices keep theirs.",
        timeout=None,
    ),
]
