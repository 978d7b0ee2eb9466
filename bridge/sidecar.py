"""The sidecar process: the wire first, then an answer, then everything else.

Decisions
    The descriptors are claimed before the first import that could print. Settings come next, because a wrong one must
    end the program with a sentence. The application's own imports take longest, so they run in a thread while the
    loop already reads requests; a cold load answers a `load` that arrives meanwhile, if its answer is certain.
"""

import asyncio
import importlib
import logging
import logging.handlers
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from filelock import FileLock

from bridge.api.app_provider import AppProvider
from bridge.api.errors import exit_code_of, terminal_lines
from bridge.api.method_table import MethodTable, Notify, RequestClient
from bridge.inflight_calls import InflightCalls
from bridge.methods.registry import METHOD_TABLE
from bridge.rpc import local_endpoint
from bridge.rpc.malloc import configure_malloc
from bridge.rpc.stdio_descriptors import claim_stdio
from bridge.rpc.stdio_transport import serve_stdio
from sync.accounts.profiles import PROFILES_FOLDER, Profile, read_installation
from sync.accounts.sidecar_lock import wait_for_sidecar_lock
from sync.clock import SystemClock
from sync.document.read.cold_load import ColdLoad, FirstStartLoad
from sync.document.read.results import LoadResult
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import InvalidInput, StorageError, XiaobaiError
from sync.runtime.garbage_collection import paused_collection
from sync.runtime.supervision import supervise
from sync.system.files import make_private_folder, translate_os_errors
from sync.texts.language import LanguageChoice, environment_locale

if TYPE_CHECKING:
    from sync.app import App
    from sync.log.model import Query
    from sync.settings.settings import Settings

ProviderFactory = Callable[[Notify], AbstractAsyncContextManager[AppProvider]]

FIRST_METHODS: Final = ("initialize", "memory/load")  # what a client asks first must not wait for an import
MAX_LOG_BYTES: Final = 2 * 1024 * 1024
MAX_LOG_FILES: Final = 3
OWN_LOGGERS: Final = ("sync", "bridge", "xiaobai")  # `xiaobai.rpc` is the wire's


def main(flags: dict[str, Any]) -> int:
    """Serve until the client leaves; the exit code. Errors before that go to stderr with a hint."""
    descriptors = claim_stdio()
    configure_malloc()
    try:
        from sync.settings.settings import Settings  # noqa: PLC0415 - after the claim: its imports may print

        settings = Settings.from_sources(**flags)
        log_to_stderr_and_file(settings)
        for warning in settings.warnings:
            logging.getLogger(__name__).warning("%s (docs/operations.md)", warning)
        return asyncio.run(_serve_stdio(settings, descriptors))
    except (XiaobaiError, BaseExceptionGroup) as error:
        os.write(2, ("\n".join(terminal_lines(error)) + "\n").encode())
        return exit_code_of(error)


class PendingAppProvider:
    """The application for callers before it is open; `table` holds the methods of the local endpoint."""

    def __init__(
        self,
        cold_loader: FirstStartLoad | ColdLoad | None,
        notify: Notify,
        inflight_calls: InflightCalls,
        table: MethodTable[AppProvider],
    ) -> None:
        self._table = table
        self._cold_loader = cold_loader
        self._holds_lock = False  # before, another process may be the sidecar
        self._notify = notify
        self._inflight_calls = inflight_calls
        self._notifications_enabled = asyncio.Event()
        self._subscription_task: asyncio.Task[None] | None = None
        self._model_offer: tuple[RequestClient, int] | None = None
        self._app: asyncio.Future[App] = asyncio.get_running_loop().create_future()

    async def wait_until_open(self) -> "App":
        app = await asyncio.shield(self._app)
        self._inflight_calls.register_current_task()
        return app

    def enable_notifications(self) -> None:
        self._notifications_enabled.set()

    def offer_model(self, request_client: RequestClient, max_calls_per_day: int) -> None:
        """Offer it to this application, and to the next one after a change of the account."""
        self._model_offer = request_client, max_calls_per_day
        if self._app.done():
            _offer_model(self._app.result(), *self._model_offer)

    def subscribe(self, app: "App", query: "Query") -> None:
        from bridge.event_subscription import EventSubscription  # noqa: PLC0415 - it imports what was late

        self.unsubscribe()
        self._subscription_task = asyncio.create_task(EventSubscription(app, query, self._notify).run())

    def unsubscribe(self) -> None:
        if self._subscription_task is not None:
            self._subscription_task.cancel()
            self._subscription_task = None

    def use_locale(self, locale: str) -> None:
        if self._cold_loader is not None:
            self._cold_loader.language.locale = locale

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        if self._app.done() or self._cold_loader is None or not self._holds_lock:
            return None
        return self._cold_loader.load(scope=scope, max_chars=max_chars)

    async def run(self, settings: "Settings", shutdown: asyncio.Event) -> None:
        """Open the application, keep it until `shutdown`, close it; open another one each time the account changes."""
        try:
            async with wait_for_sidecar_lock(settings, shutdown) as role:
                self._holds_lock = True
                with paused_collection():
                    app_module = await asyncio.to_thread(importlib.import_module, "sync.open_app")
                async with AsyncExitStack() as local:
                    await local.enter_async_context(
                        local_endpoint.serve_endpoint(settings.data_dir, self._table, EndpointAppProvider(self))
                    )
                    await self._run_apps_in_turn(settings, shutdown, role, app_module, local)
        except BaseException as error:
            if not self._app.done():
                self._app.set_exception(error)
                self._app.exception()  # the callers that wait and the process raise it
            raise

    async def _run_apps_in_turn(
        self,
        settings: "Settings",
        shutdown: asyncio.Event,
        sidecar_lock: FileLock,
        app_module: Any,
        endpoint_stack: AsyncExitStack,
    ) -> None:
        """Open one application after the other. The endpoint ends before the last one closes under its calls."""
        before: App | None = None
        while not shutdown.is_set():
            async with app_module.open_app(
                settings,
                app_module.AppMode.SIDECAR,
                sidecar_lock=sidecar_lock,
                app_session=before.login_flow.app_session if before else None,
            ) as app:
                await self._provide_app(app, shutdown, account_changed=before is not None)
                before = app
                if shutdown.is_set():
                    await endpoint_stack.aclose()

    async def _provide_app(self, app: "App", shutdown: asyncio.Event, *, account_changed: bool) -> None:
        """Provide the application until the process ends or another account logs in."""
        self._cold_loader = None
        if self._model_offer is not None:
            _offer_model(app, *self._model_offer)
        self._app.set_result(app)
        telling = asyncio.create_task(self._send_notifications(app, account_changed=account_changed))
        leaving = asyncio.create_task(app.login_flow.profile_left.wait())
        ending = asyncio.create_task(shutdown.wait())
        await asyncio.wait((leaving, ending), return_when=asyncio.FIRST_COMPLETED)
        for task in (telling, leaving, ending):
            task.cancel()
        self.unsubscribe()
        if not shutdown.is_set():
            self._app = asyncio.get_running_loop().create_future()
            await self._inflight_calls.drain()

    async def _send_notifications(self, app: "App", *, account_changed: bool) -> None:
        await self._notifications_enabled.wait()
        from bridge.notifications import send_change_notifications  # noqa: PLC0415 - it imports what was late

        await supervise(
            "notifications", lambda: send_change_notifications(app, self._notify, account_changed=account_changed)
        )


class EndpointAppProvider:
    """The provider of a connection to the local endpoint: the same application, without notifications."""

    def __init__(self, provider: PendingAppProvider) -> None:
        self._provider = provider

    async def wait_until_open(self) -> "App":
        return await self._provider.wait_until_open()

    def enable_notifications(self) -> None:
        return None

    def offer_model(self, request_client: RequestClient, max_calls_per_day: int) -> None:
        del request_client, max_calls_per_day  # a command ends before a model is needed

    def subscribe(self, app: "App", query: "Query") -> None:
        del app, query
        raise InvalidInput(
            "the local endpoint sends no notifications", field="follow", hint="Use events tail --follow."
        )

    def unsubscribe(self) -> None:
        return None

    def use_locale(self, locale: str) -> None:
        self._provider.use_locale(locale)

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        return self._provider.cold_load(scope=scope, max_chars=max_chars)


def _offer_model(app: "App", request_client: RequestClient, max_calls_per_day: int) -> None:
    from bridge.client_model import ClientModel  # noqa: PLC0415 - only if a model is offered

    app.model.offer(ClientModel(request_client), source="client", max_calls_per_day=max_calls_per_day)


async def _serve_stdio(settings: "Settings", descriptors: tuple[int, int]) -> int:
    table, opening = prepare_serving(METHOD_TABLE, settings)
    return await serve_stdio(table, opening, descriptors=descriptors)


def prepare_serving(
    table: MethodTable[AppProvider], settings: "Settings"
) -> tuple[MethodTable[AppProvider], ProviderFactory]:
    """The table of a connection, and the factory of the provider that its methods ask for."""
    callers = InflightCalls()
    wrapped = table.wrapped(callers.wrap_method)
    for name in FIRST_METHODS:
        wrapped[name]  # resolve it now

    def opening(notify: Notify) -> AbstractAsyncContextManager[AppProvider]:
        return _open_provider(settings, notify, callers, wrapped)

    return wrapped, opening


@asynccontextmanager
async def _open_provider(
    settings: "Settings", notify: Notify, inflight_calls: InflightCalls, table: MethodTable[AppProvider]
) -> AsyncIterator[PendingAppProvider]:
    over = asyncio.Event()
    late = PendingAppProvider(_cold_loader(settings), notify, inflight_calls, table)
    async with asyncio.TaskGroup() as group:
        group.create_task(late.run(settings, over))
        yield late
        over.set()


def _cold_loader(settings: "Settings") -> FirstStartLoad | ColdLoad | None:
    if not settings.redaction.enabled:  # then text that is not in the file yet is in a table of its own
        return None
    installation = read_installation(settings.data_dir)
    language = LanguageChoice(settings.document.language, environment_locale())
    is_new = not any(folder.exists() for folder in (settings.data_dir / PROFILES_FOLDER, settings.jsonl_root))
    if installation is None and settings.app_db is None and is_new:
        return FirstStartLoad(settings.memory_file, SystemClock(), language)
    if installation is None or installation.document_of is not None:  # then the file is another profile's still
        return None
    device_id, earlier_ids = installation.device_identity(settings.device_id)
    return ColdLoad(
        database=Profile.of(settings.data_dir, installation).database,
        memory_file=settings.memory_file,
        device_id=device_id,
        includes_other_devices=settings.load.other_devices == "digest",
        has_cloud=settings.supabase_url is not None,
        vault=DatabaseEncryption.of(settings),
        earlier_ids=earlier_ids,
        language=language,
        clock=SystemClock() if settings.supabase_url is None and settings.app_db is None else None,
    )


def log_to_stderr_and_file(settings: "Settings") -> None:
    """Ids, counts, sizes and codes, never content; the file is private from birth and stays small.

    LOG_LEVEL is that of our own loggers. Libraries log what they are given (aiosqlite each statement with the document
    in it, watchdog every name in the folder of the file): of theirs only warnings are logged.
    """
    make_private_folder(settings.data_dir)
    os.umask(0o077)  # rotation makes new files, SQLite its own; none of them is anybody else's
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    failure: StorageError | None = None
    try:
        handlers.append(_log_file(settings.data_dir / "logs"))
    except StorageError as error:  # stops no memory
        failure = error
    logging.basicConfig(
        level=max(logging.WARNING, logging.getLevelName(settings.log_level)),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        handlers=handlers,
    )
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level)
    if failure is not None:
        logging.getLogger(__name__).warning("no log file is written: %s", failure.message)


def _log_file(folder: Path) -> logging.Handler:
    make_private_folder(folder)
    path = folder / "sidecar.log"
    with translate_os_errors(path):
        if path.is_symlink():  # a link is never followed
            path.unlink()
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return logging.handlers.RotatingFileHandler(
        path, maxBytes=MAX_LOG_BYTES, backupCount=MAX_LOG_FILES, encoding="utf-8"
    )
