"""`doctor`: what is broken, and what to do about it."""

from typing import Any, Final

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Method, NoParams
from sync import contract, published


async def doctor(context: Context[AppProvider], params: NoParams) -> published.HealthJson:  # noqa: ARG001 - every row has params
    app = await context.app.wait_until_open()
    from sync.startup import doctor  # noqa: PLC0415 - it is there by now; before that an answer would have waited for it

    around = await doctor.check_environment(app.settings, is_sidecar=app.is_sidecar)
    return contract.health_to_json([*around, *await app.check_health()])


METHODS: Final[list[Method[AppProvider, Any]]] = [
    Method("doctor", NoParams, doctor, "Looks at everything a person can break; changes nothing."),
]
