"""`retention/plan` and `retention/apply`: archive what is old, then forget it on this device."""

from typing import Annotated, Any, Final

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync.published.retention import RetentionJson

TOKEN: Final = "retention"  # noqa: S105 - of `$/progress`, in events


class Bounds(Params, frozen=True):
    """In place of the settings `privacy.retention_days` and `privacy.retention_megabytes`."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    megabytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None


async def plan(context: Context[Door], params: Bounds) -> RetentionJson:
    app = await context.app.opened()
    from sync.contract import retention  # noqa: PLC0415 - the room, which a start need not load
    from sync.retention.model import Applied  # noqa: PLC0415 - likewise

    room = app.retention()
    return retention.retention(Applied(await room.plan(room.rules(params.days, params.megabytes))), applied=False)


async def apply(context: Context[Door], params: Bounds) -> RetentionJson:
    app = await context.app.opened()
    from sync.contract import retention  # noqa: PLC0415 - as above

    def heard(done: int, total: int) -> None:
        context.progress(TOKEN, {"kind": "report", "title": "retention", "done": done, "total": total})

    room = app.retention()
    done = await room.apply(room.rules(params.days, params.megabytes), heard)
    if done.forgotten:
        await app.let_go(whole=True)
    return retention.retention(done, applied=True)


METHODS: Final[list[Method[Door, Any]]] = [
    Method(
        "retention/plan", Bounds, plan, "What is old enough to go from this device, and what stays; changes nothing."
    ),
    Method(
        "retention/apply",
        Bounds,
        apply,
        "Archive what is old, then forget it here; the cloud and other devices keep theirs.",
        timeout=None,
    ),
]
