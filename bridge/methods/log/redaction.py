"""`redaction/check`: what the rules would do with a text."""

import asyncio

from bridge.api.method_table import Params
from sync.app import App
from sync.contract import redaction
from sync.contract.redaction import RedactionCheckJson, RescanJson
from sync.document.versions import rescan as reading


class CheckParams(Params, frozen=True):
    text: str


async def check(app: App, params: CheckParams) -> RedactionCheckJson:
    """Redact a text and count findings by kind; stores nothing."""
    return redaction.check_to_json(await asyncio.to_thread(app.draft_builder.redactor.examine, params.text))


class RescanParams(Params, frozen=True):
    """`apply`: correct what is found; without it nothing is changed."""

    apply: bool = False


async def rescan(app: App, params: RescanParams) -> RescanJson:
    """Examine log and archives with the current rules; with apply, correct them on every device."""
    local = app.settings.redaction.enabled
    found = await reading.rescan(
        app.log, app.draft_builder.redactor, app.clock, local=local, apply=params.apply, archives=app.retention()
    )
    if found.applied and found.corrected:
        await app.erasure.apply(vacuum=True)
    return redaction.rescan_to_json(found)
