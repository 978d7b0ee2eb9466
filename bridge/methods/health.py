"""`doctor`: what is broken, and what to do about it."""

from typing import Any, Final

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams
from sync import contract, published


async def doctor(context: Context[Door], params: NoParams) -> published.HealthJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()
    from sync import health  # noqa: PLC0415 - it is there by now; before that an answer would have waited for it

    around = await health.around(app.settings, serving=app.is_sidecar)
    return contract.health([*around, *await app.examine()])


METHODS: Final[list[Method[Door, Any]]] = [
    Method("doctor", NoParams, doctor, "Looks at everything a person can break; changes nothing."),
]
