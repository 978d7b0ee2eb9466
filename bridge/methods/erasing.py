"""Erasure for the methods that ask for it: by ids, by words, and what is left to do when it returns."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from sync.errors import CloudError, StorageError

if TYPE_CHECKING:  # importing them is what a starting sidecar has not done yet
    from sync.app import App
    from sync.document.choosing import Choice
    from sync.log.model import Event
    from sync.memory.daily.erasure import Erased

CLOUD_WITHIN: Final = 3.0  # seconds that an answer waits for the server to confirm an erasure


async def matching(app: "App", choice: "Choice") -> "list[Event]":
    """Every event that is meant, those in archives first."""
    from sync.document import forgetting  # noqa: PLC0415 - SQLAlchemy's 200 ms, which a start need not spend

    here = await forgetting.chosen(app.log, choice)
    known = {event.event_id for event in here}
    return [*(event for event in await app.retention().archived(choice) if event.event_id not in known), *here]


async def forget(app: "App", event_ids: Sequence[str]) -> list[str]:
    """Erase these events and what says the same, here and everywhere; which of them were held."""
    from sync.document import forgetting  # noqa: PLC0415 - as above

    again = await app.retention().repeating(frozenset(event_ids))
    held = await forgetting.ask(app.log, app.intake, [*event_ids, *again])
    await app.let_go()
    return held


async def erase(app: "App", event_ids: Sequence[str]) -> "Erased":
    """Erase these events and what says the same; what is left to do."""
    from sync.memory.daily.erasure import Erased  # noqa: PLC0415 - as above

    if not event_ids:
        return Erased(0)
    held = await forget(app, event_ids)
    if app.is_sidecar:
        await app.events.settle()
    return Erased(len(held), "done" if await _is_done(app) else "soon", await _in_cloud(app) if held else "none")


async def _is_done(app: "App") -> bool:
    from sync.document import forgetting  # noqa: PLC0415 - as above

    return app.is_sidecar and not await app.log.database.read(forgetting.is_asked)


async def _in_cloud(app: "App") -> Literal["none", "done", "later"]:
    """Whether the server has the erasure; it never had anything of a memory that nobody logged in to."""
    if app.replicator is None or (await app.account.state()).state in {"not_configured", "guest"}:
        return "none"
    if app.is_sidecar:
        try:
            async with asyncio.timeout(CLOUD_WITHIN):
                await app.replicator.ask()
        except (TimeoutError, CloudError, StorageError):  # kept in `status`; the erasure waits in the outbox
            return "later"
    return "done" if (await app.log.outbox()).pending == 0 else "later"
