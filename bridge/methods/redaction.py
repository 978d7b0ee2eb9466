"""`redaction/check`: what the rules would do with a text."""

import asyncio
from typing import Any, Final

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync.published.redaction import RedactionCheckJson


class Check(Params, frozen=True):
    text: str


async def check(context: Context[Door], params: Check) -> RedactionCheckJson:
    app = await context.app.opened()
    from sync.contract import redaction  # noqa: PLC0415 - the rules, which a start need not load

    return redaction.checked(await asyncio.to_thread(app.intake.redactor.examine, params.text))


METHODS: Final[list[Method[Door, Any]]] = [
    Method("redaction/check", Check, check, "What redaction makes of a text, with counts by kind; keeps nothing."),
]
