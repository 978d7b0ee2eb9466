"""Notifications to clients: one for each change of the memory."""

import asyncio
from pathlib import Path
from typing import Any

from bridge.notifications import send_change_notifications
from sync.document.capture.exchange_events import ExchangeInput
from sync.open_app import AppMode, open_app
from tests.support import app_settings


async def test_an_event_is_announced_once_however_often_it_is_noticed(tmp_path: Path) -> None:
    settings = app_settings(tmp_path)
    told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    def notify(method: str, params: object = None, /) -> None:
        told.put_nowait((method, params))

    async with open_app(settings, AppMode.SIDECAR) as app:
        announcing = asyncio.create_task(send_change_notifications(app, notify, account_changed=False))
        offsets = []
        for number in range(2):
            await app.memory_service.update(ExchangeInput(f"question {number}", "answer"))
            method, params = await told.get()
            assert method == "memory/changed"
            offsets.append(params["nextOffset"])
            app.log.changed.increment()  # as the look at other processes' writes does
            app.account.changed.increment()  # told behind the memory
            assert (await told.get())[0] == "auth/changed"
        announcing.cancel()
    assert offsets == sorted(set(offsets))
