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
    """What redaction makes of a text, with counts by kind; keeps nothing."""
    return redaction.check_to_json(await asyncio.to_thread(app.draft_builder.redactor.examine, params.text))


class RescanParams(Params, frozen=True):
    """`apply`: correct what is found; without it nothing is changed."""

    apply: bool = False


async def rescan(app: App, params: RescanParams) -> RescanJson:
    """Reads log and archives under the rules of today; with apply, corrects them here and everywhere else."""
    local = app.settings.redaction.enabled
    found = await reading.rescan(
        app.log, app.draft_builder.redactor, app.clock, local=local, apply=params.apply, archives=app.retention()
    )
    if found.applied and found.corrected:
        await app.erasure.apply(vacuum=True)
    return redaction.rescan_to_json(found)
