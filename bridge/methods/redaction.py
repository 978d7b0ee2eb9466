"""`redaction/check`: what the rules would do with a text."""

import asyncio
from typing import Any, Final

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync.published.redaction import RedactionCheckJson, RescanJson


class Check(Params, frozen=True):
    text: str


async def check(context: Context[Door], params: Check) -> RedactionCheckJson:
    app = await context.app.opened()
    from sync.contract import redaction  # noqa: PLC0415 - the rules, which a start need not load

    return redaction.checked(await asyncio.to_thread(app.intake.redactor.examine, params.text))


class Rescan(Params, frozen=True):
    """`apply`: correct what is found; without it nothing is changed."""

    apply: bool = False


async def rescan(context: Context[Door], params: Rescan) -> RescanJson:
    app = await context.app.opened()
    from sync.contract import redaction  # noqa: PLC0415 - as above
    from sync.document import rescan as reading  # noqa: PLC0415 - SQLAlchemy's 200 ms, which a start need not spend

    local = app.settings.redaction.enabled
    found = await reading.rescan(
        app.log, app.intake.redactor, app.clock, local=local, apply=params.apply, archives=app.retention()
    )
    if found.applied and found.corrected:
        await app.let_go(whole=True)
    return redaction.rescanned(found)


METHODS: Final[list[Method[Door, Any]]] = [
    Method("redaction/check", Check, check, "What redaction makes of a text, with counts by kind; keeps nothing."),
    Method(
        "redaction/rescan",
        Rescan,
        rescan,
        "Reads log and archives under the rules of today; with apply, corrects them here and everywhere else.",
        timeout=None,
    ),
]
