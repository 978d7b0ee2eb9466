"""The sidecar process: the wire first, then an answer, then everything else.

Decisions
    The descriptors are claimed before the first import that could print. Settings come next, because a wrong one must
    end the program with a sentence. The application's own imports take longest, so they run in a thread while the
    loop already reads requests; a `load` that arrives meanwhile is answered by a glimpse where that is certain.
"""

import asyncio
import importlib
import logging
import logging.handlers
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from filelock import FileLock

from bridge.callers import Callers
from bridge.methods.door import Door
from bridge.methods.failures import exit_code, lines_for_people
from bridge.methods.registry import TABLE
from bridge.methods.table import Notify, Table
from bridge.rpc import endpoint
from bridge.rpc.descriptors import claim
from bridge.rpc.heap import share_one_heap
from bridge.rpc.stdio import serve
from sync.clock import SystemClock
from sync.document.answers import Loaded
from sync.document.glimpse import FirstGlimpse, Glimpse
from sync.errors import InvalidInput, XiaobaiError
from sync.files import make_private_folder, told
from sync.jobs import kept_up
from sync.profiles import PROFILES, Profile, known_installation
from sync.role import awaited_role
from sync.vault.vault import Vault

if TYPE_CHECKING:
    from sync.app import App
    from sync.log.model import Query
    from sync.settings import Settings

Opening = Callable[[Notify], AbstractAsyncContextManager[Door]]

LOG_BYTES: Final = 2 * 1024 * 1024
LOG_FILES: Final = 3
OWN_LOGGERS: Final = ("sync", "bridge", "xiaobai")  # `xiaobai.rpc` is the wire's


def main(flags: dict[str, Any]) -> int:
    """Serve until the client leaves; the exit code. Errors before that go to stderr with a hint."""
    descriptors = claim()
    share_one_heap()
    try:
        from sync.settings import Settings  # noqa: PLC0415 - after the claim: its imports may print

        settings = Settings.gather(**flags)
        log_to_stderr_and_file(settings)
        for warning in settings.warnings:
            logging.getLogger(__name__).warning("%s (README: warnings in status)", warning)
        return asyncio.run(_serve(settings, descriptors))
    except (XiaobaiError, BaseExceptionGroup) as error:
        os.write(2, ("\n".join(lines_for_people(error)) + "\n").encode())
        return exit_code(error)


class LateApp:
    """The application for whoever asks before it is open; `table` is what the local endpoint answers by."""

    def __init__(
        self, glimpse: FirstGlimpse | Glimpse | None, notify: Notify, callers: Callers, table: Table[Door]
    ) -> None:
        self._table = table
        self._glimpse = glimpse
        self._notify = notify
        self._callers = callers
        self._listening = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._app: asyncio.Future[App] = asyncio.get_running_loop().create_future()

    async def opened(self) -> "App":
        app = await asyncio.shield(self._app)
        self._callers.note()
        return app

    def listen(self) -> None:
        self._listening.set()

    def follow(self, app: "App", query: "Query") -> None:
        from bridge.following import Follower  # noqa: PLC0415 - it imports what was late

        self.unfollow()
        self._following = asyncio.create_task(Follower(app, query, self._notify).run())

    def unfollow(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None

    def glimpse(self, *, scope: Literal["user", "device"], max_chars: int | None) -> Loaded | None:
        if self._app.done() or self._glimpse is None:
            return None
        return self._glimpse.load(scope=scope, max_chars=max_chars)

    async def hold(self, settings: "Settings", over: asyncio.Event) -> None:
        """Open the application, keep it until `over`, close it; another one each time the account changes."""
        try:
            async with awaited_role(settings, over) as role:
                app_module = await asyncio.to_thread(importlib.import_module, "sync.app")
                async with AsyncExitStack() as local:
                    await local.enter_async_context(
                        endpoint.serving(settings.data_dir, self._table, EndpointDoor(self))
                    )
                    await self._hold_in_turn(settings, over, role, app_module, local)
        except BaseException as error:
            if not self._app.done():
                self._app.set_exception(error)
                self._app.exception()  # whoever waits is told by it, and so is the process
            raise

    async def _hold_in_turn(
        self, settings: "Settings", over: asyncio.Event, role: FileLock, app_module: Any, local: AsyncExitStack
    ) -> None:
        """One application after the other. `local`, the endpoint, ends before the last one closes under its calls."""
        before: App | None = None
        while not over.is_set():
            async with app_module.open_app(
                settings, app_module.Role.SIDECAR, held=role, handed=before.entrance.handed if before else None
            ) as app:
                await self._keep(app, over, arrived=before is not None)
                before = app
                if over.is_set():
                    await local.aclose()

    async def _keep(self, app: "App", over: asyncio.Event, *, arrived: bool) -> None:
        """Give the application to whoever asks until the process ends or another account comes in."""
        self._glimpse = None
        self._app.set_result(app)
        telling = asyncio.create_task(self._tell(app, arrived=arrived))
        leaving = asyncio.create_task(app.entrance.left.wait())
        ending = asyncio.create_task(over.wait())
        await asyncio.wait((leaving, ending), return_when=asyncio.FIRST_COMPLETED)
        for task in (telling, leaving, ending):
            task.cancel()
        self.unfollow()
        if not over.is_set():
            self._app = asyncio.get_running_loop().create_future()
            await self._callers.let_go()

    async def _tell(self, app: "App", *, arrived: bool) -> None:
        await self._listening.wait()
        from bridge.announcing import announce  # noqa: PLC0415 - it imports what was late

        await kept_up("notifications", lambda: announce(app, self._notify, arrived=arrived))


class EndpointDoor:
    """What a connection of the local endpoint finds: the same application, and no notifications yet."""

    def __init__(self, late: LateApp) -> None:
        self._late = late

    async def opened(self) -> "App":
        return await self._late.opened()

    def listen(self) -> None:
        return None

    def follow(self, app: "App", query: "Query") -> None:
        del app, query
        raise InvalidInput(
            "the local endpoint sends no notifications", field="follow", hint="Use events tail --follow."
        )

    def unfollow(self) -> None:
        return None

    def glimpse(self, *, scope: Literal["user", "device"], max_chars: int | None) -> Loaded | None:
        return self._late.glimpse(scope=scope, max_chars=max_chars)


async def _serve(settings: "Settings", descriptors: tuple[int, int]) -> int:
    table, opening = served(TABLE, settings)
    return await serve(table, opening, descriptors=descriptors)


def served(table: Table[Door], settings: "Settings") -> tuple[Table[Door], Opening]:
    """What a connection needs: the table, and the way to open what its rows ask for, one account after the other."""
    callers = Callers()
    heard = Table(callers.heard(method) for method in table.values())

    def opening(notify: Notify) -> AbstractAsyncContextManager[Door]:
        return _late_app(settings, notify, callers, heard)

    return heard, opening


@asynccontextmanager
async def _late_app(
    settings: "Settings", notify: Notify, callers: Callers, table: Table[Door]
) -> AsyncIterator[LateApp]:
    over = asyncio.Event()
    late = LateApp(_glimpse(settings), notify, callers, table)
    async with asyncio.TaskGroup() as group:
        group.create_task(late.hold(settings, over))
        yield late
        over.set()


def _glimpse(settings: "Settings") -> FirstGlimpse | Glimpse | None:
    if not settings.redaction.enabled:  # then what was said and is not in the file yet lies in a table of its own
        return None
    if settings.document.sharing == "user":  # what was pulled belongs into the document, and may not be in it yet
        return None
    installation = known_installation(settings.data_dir)
    if installation is None and settings.app_db is None and not (settings.data_dir / PROFILES).exists():
        return FirstGlimpse(settings.memory_file, SystemClock())
    if installation is None or installation.document_of is not None:  # then the file is another profile's still
        return None
    device_id, earlier_ids = installation.speaks_as(settings.device_id)
    return Glimpse(
        database=Profile.of(settings.data_dir, installation).database,
        memory_file=settings.memory_file,
        device_id=device_id,
        other_devices=settings.load.other_devices == "digest",
        cloud=settings.supabase_url is not None,
        vault=Vault.of(settings),
        earlier_ids=earlier_ids,
        clock=SystemClock() if settings.supabase_url is None and settings.app_db is None else None,
    )


def log_to_stderr_and_file(settings: "Settings") -> None:
    """Ids, counts, sizes and codes, never content; the file is private from birth and stays small.

    LOG_LEVEL is that of our own loggers. Libraries log what they are given (aiosqlite each statement with the document
    in it, watchdog every name in the folder of the file): of them only what they warn about is heard.
    """
    folder = settings.data_dir / "logs"
    make_private_folder(settings.data_dir)
    make_private_folder(folder)
    path = folder / "sidecar.log"
    with told(path):
        if path.is_symlink():  # no link is written through, whoever laid it
            path.unlink()
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    os.umask(0o077)  # rotation makes new files, SQLite its own; none of them is anybody else's
    file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    logging.basicConfig(
        level=max(logging.WARNING, logging.getLevelName(settings.log_level)),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        handlers=[logging.StreamHandler(), file],
    )
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level)
