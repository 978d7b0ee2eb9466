"""Erasure for the methods that ask for it: by ids, by words, and what is left to do when it returns."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from sync.daily.commands.erasure_replies import ErasureStatus
from sync.document.erasure import erasure
from sync.errors import CloudError, StorageError

if TYPE_CHECKING:  # importing them is what a starting sidecar has not done yet
    from sync.app import App
    from sync.daily.commands.erasure_replies import ErasureStatus
    from sync.document.erasure.selection import ErasureSelection
    from sync.log.model import Event

CLOUD_CONFIRM_TIMEOUT: Final = 3.0  # seconds that an answer waits for the server to confirm an erasure


async def find_matching(app: "App", choice: "ErasureSelection") -> "list[Event]":
    """Every event that is meant, those in archives first."""
    here = await erasure.select_events(app.log, choice)
    known = {event.event_id for event in here}
    return [*(event for event in await app.retention().find_archived(choice) if event.event_id not in known), *here]


async def request_erasure(app: "App", event_ids: Sequence[str]) -> list[str]:
    """Erase these events and what says the same, here and everywhere; which of them were held."""
    again = await app.retention().archived_corrections_of(frozenset(event_ids))
    held = await erasure.request(app.log, app.draft_builder, [*event_ids, *again])
    await app.apply_erasures()
    return held


async def erase_and_confirm(app: "App", event_ids: Sequence[str]) -> "ErasureStatus":
    """Erase these events and what says the same; what is left to do."""
    if not event_ids:
        return ErasureStatus(0)
    held = await request_erasure(app, event_ids)
    if app.is_sidecar:
        await app.event_files.write_pending()
    return ErasureStatus(
        len(held), "done" if await _is_applied_here(app) else "soon", await _cloud_confirmation(app) if held else "none"
    )


async def _is_applied_here(app: "App") -> bool:
    return app.is_sidecar and not await app.log.database.read(erasure.has_pending)


async def _cloud_confirmation(app: "App") -> Literal["none", "done", "later"]:
    """Whether the server has the erasure; it never had anything of a memory that nobody logged in to."""
    if app.replicator is None or (await app.account.state()).state in {"not_configured", "guest"}:
        return "none"
    if app.is_sidecar:
        try:
            async with asyncio.timeout(CLOUD_CONFIRM_TIMEOUT):
                await app.replicator.sync_unless_backing_off()
        except (TimeoutError, CloudError, StorageError):  # kept in `status`; the erasure waits in the outbox
            return "later"
    return "done" if (await app.log.outbox()).pending == 0 else "later"
