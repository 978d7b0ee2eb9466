"""`retention/plan` and `retention/apply`: archive what is old, then forget it on this device."""

from typing import Annotated, Final

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Params
from sync.app import App
from sync.contract import retention
from sync.contract.retention import RetentionJson
from sync.retention.policy import RetentionResult

PROGRESS_TOKEN: Final = "retention"  # noqa: S105 - of `$/progress`, in events


class BoundsParams(Params, frozen=True):
    """In place of the settings `privacy.retention_days` and `privacy.retention_megabytes`."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    megabytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None


async def plan(app: App, params: BoundsParams) -> RetentionJson:
    """Events that may be removed from this device, and those that stay; changes nothing."""
    service = app.retention()
    return retention.retention_to_json(
        RetentionResult(await service.plan(service.build_rules(params.days, params.megabytes))), applied=False
    )


async def apply(context: Context[AppProvider], params: BoundsParams) -> RetentionJson:
    """Archive old events, then remove them here; the server and other devices keep theirs."""
    app = await context.app.wait_until_open()
    report, service = context.progress_reporter(PROGRESS_TOKEN, "retention"), app.retention()
    done = await service.apply(service.build_rules(params.days, params.megabytes), report)
    if done.forgotten:
        await app.erasure.apply(vacuum=True)
    return retention.retention_to_json(done, applied=True)
