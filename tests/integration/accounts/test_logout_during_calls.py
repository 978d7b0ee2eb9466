"""Work during a logout: events recorded meanwhile, failures after their caller was cancelled."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Method, MethodTable, NoParams
from bridge.methods.registry import METHOD_TABLE
from bridge.sidecar import prepare_serving
from sync.accounts.profiles import change_installation, new_profile_id, with_active_profile
from sync.app import App
from sync.cloud.auth_port import AccountJson
from sync.cloud.contact import parse_contact
from sync.errors import CloudUnavailable, NotSynced
from sync.open_app import AppMode, open_app
from sync.runtime.supervision import finish_despite_cancel
from sync.settings.settings import Settings
from tests.fake_cloud.server import FakeCloud
from tests.in_memory_transport import RpcCallError, connect_in_memory
from tests.support import EMAIL, PASSWORD, SpyCloud, app_settings, draft, new_server


class LogoutInProgress(NamedTuple):
    settings: Settings
    cloud: SpyCloud
    app: App
    under_way: asyncio.Task[AccountJson]


@asynccontextmanager
async def logout_with_removal(tmp_path: Path) -> AsyncIterator[LogoutInProgress]:
    """A logout that removes the memory, while the server handles it."""
    settings = at(tmp_path)
    cloud = SpyCloud(FakeCloud(new_server()))
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert app.replicator is not None
        await app.replicator.sync_now()
        cloud.pause_calls()
        under_way = asyncio.create_task(app.login_flow.log_out(remove=True))
        await cloud.wait_for_call()
        yield LogoutInProgress(settings, cloud, app, under_way)


def at(folder: Path) -> Settings:
    return app_settings(folder)


async def test_what_is_said_while_a_logout_is_under_way_keeps_the_memory_here(tmp_path: Path) -> None:
    async with logout_with_removal(tmp_path) as (settings, cloud, app, leaving):
        (said,) = await app.log.append([draft("还没说完")])
        cloud.gate.set()
        with pytest.raises(NotSynced):
            await leaving
        assert not app.login_flow.profile_left.is_set()
        assert (await app.account.state()).state == "logged_out"
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert app.replicator is not None
        await app.replicator.sync_now()
        assert (await app.login_flow.log_out(remove=True)).state == "guest"
        (held,) = cloud.inner._server.user_logs.values()  # type: ignore[attr-defined]
        assert said.event.event_id in {event.event_id for event in held.events}


async def test_so_does_what_an_editor_saves_meanwhile(tmp_path: Path) -> None:
    async with logout_with_removal(tmp_path) as (settings, cloud, app, leaving):
        settings.memory_file.write_text("- 还没写完\n", "utf-8")
        cloud.gate.set()
        with pytest.raises(NotSynced):
            await leaving
        assert not app.login_flow.profile_left.is_set()
    assert "- 还没写完\n" in settings.memory_file.read_text("utf-8")


async def test_a_failure_after_its_caller_was_cancelled_twice_prints_no_traceback() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    fails = asyncio.Event()

    async def work() -> None:
        await fails.wait()
        raise CloudUnavailable("the answer was lost")

    caller = asyncio.create_task(finish_despite_cancel(work(), 60.0))
    for _ in range(2):
        await asyncio.sleep(0)
        caller.cancel()
    with suppress(asyncio.CancelledError):
        await caller
    fails.set()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert told == []


@pytest.mark.parametrize("is_soon_done", [False, True])
async def test_a_call_under_way_as_another_account_comes_in_is_answered_or_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_soon_done: bool
) -> None:
    monkeypatch.setattr("bridge.inflight_calls.DRAIN_TIMEOUT", 20.0 if is_soon_done else 0.05)
    settings, never, tidied = at(tmp_path), asyncio.Event(), list[int]()

    async def long_one(context: Context[AppProvider], _: NoParams) -> str:
        """As an import of years of talk: it works in steps, and tidies up after itself in the same memory."""
        app = await context.app.wait_until_open()
        context.notify("test/begun")
        try:
            await (app.login_flow.profile_left if is_soon_done else never).wait()
        finally:
            tidied.append(await app.log.newest_position())
        return app.profile.name

    row: Method[AppProvider, Any] = Method("test/long", NoParams, long_one, "Takes long.", timeout=None)
    async with (
        asyncio.timeout(20),
        connect_in_memory(*prepare_serving(MethodTable([*METHOD_TABLE.values(), row]), settings)) as client,
    ):
        await client.call("memory/update", {"userMessage": "前一位的话", "aiResponse": "好"})
        call = asyncio.create_task(client.call("test/long"))
        while (await client.notifications.get())[0] != "test/begun":
            pass
        former = change_installation(
            settings.data_dir, lambda now: with_active_profile(now, new_profile_id())
        ).document_of
        if is_soon_done:
            assert await call == former
        else:
            with pytest.raises(RpcCallError) as ended:
                await call
            data = ended.value.error["data"]
            assert (data["kind"], data["retryable"]) == ("account_changed", False)
            assert "as the former one" in data["hint"]
        assert len(tidied) == 1
        assert (await client.call("events/read"))["events"] == [], "of the next one"
