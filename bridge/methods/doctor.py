"""`doctor`: what is broken, and what to do about it."""

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, NoParams
from sync.contract.health import HealthJson, health_to_json
from sync.startup.doctor import check_environment


async def doctor(context: Context[AppProvider], params: NoParams) -> HealthJson:  # noqa: ARG001 - every row has params
    app = await context.app.wait_until_open()
    around = await check_environment(app.settings, is_sidecar=app.is_sidecar)
    return health_to_json([*around, *await app.check_health()])
