"""One simulated device: a folder, a disk, a clock, a network line, and the runs of its program.

A run opens the real application (`open_app`) as the sidecar does, again after each switch between accounts. It ends
orderly, by an error at the start, or by death at a point. The next run finds only what is on disk.
"""

import asyncio
import contextvars
import random
import shutil
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from sync.accounts.sidecar_lock import hold_sidecar_lock
from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.errors import XiaobaiError
from sync.open_app import AppMode, open_app
from sync.runtime.supervision import background_tasks, supervise
from sync.settings.sections import DailySettings, DocumentSettings, RecallSettings, SyncSettings
from sync.settings.settings import Settings
from sync.settings.values import HttpAddress, KeepLimit
from tests.simulation.checks.expected_state import ExpectedState
from tests.simulation.host.device_files import DeviceFiles
from tests.simulation.host.network import NetworkLine, SimulatedCloud, SimulatedServer
from tests.simulation.host.simulated_host import (
    CURRENT,
    DeviceClock,
    ProcessDied,
    SimulatedDisk,
    SimulatedHost,
    SimulatedProcess,
)
from tests.simulation.workload.editor import EditorUser, digest_of

CALLERS_PATIENCE: Final = 5.0  # seconds; as `bridge.inflight_calls`
OPENS_WITHIN: Final = 60.0  # seconds of simulated time; only a defect takes longer


@dataclass
class ProgramRun:
    """One run of the program."""

    process: SimulatedProcess
    context: contextvars.Context
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    app: App | None = None
    owner: str | None = None  # of the open profile
    runner: asyncio.Task[None] | None = None


class _WatcherStub:
    """Replaces watchdog: the simulation reports changes of the file itself."""

    alive = True

    def renew(self) -> None: ...


@dataclass
class SimulationContext:
    """What all devices of a run share."""

    folder: Path
    host: SimulatedHost
    server: SimulatedServer
    expected_state: ExpectedState
    on_trace: Callable[[str], None]
    defect: Callable[[str], None]
    living: bool
    push_events: int


class SimulatedDevice(DeviceFiles):
    """One installation and its user."""

    def __init__(self, name: str, around: SimulationContext, seed: str, line: NetworkLine) -> None:
        self.name = name
        self.around = around
        super().__init__(around.folder / name)
        self.folder.mkdir()
        self.clock, self.chance = DeviceClock(f"clock {seed}"), random.Random(f"machine {seed}")
        self.disk = SimulatedDisk()
        self.line = line
        self.file_errors = self.database_errors = self.slowest = 0.0
        self.life: ProgramRun | None = None
        self.unanswered: dict[str, tuple[str | None, ExchangeInput]] = {}
        self.backup: tuple[int, Path] | None = None
        self.emptied = False  # whether it lacks former events until the server returns them
        self.copy_of: str | None = None
        self.was_recreated = self.login_failed = False  # its database is younger than its facts; the last login failed
        self.last_owner: str | None = None  # the account when the program was last seen
        self.guests: str | None = None  # the profile of the guest
        self.settings = Settings(
            data_dir=self.folder / "data",
            memory_file=self.memory_file,
            device_id=f"device-{name}",
            device_name=name,
            token_store="file",
            # unused: the cloud is passed in; retention waits for a cloud that is set
            supabase_url=HttpAddress("https://simulated.example"),
            supabase_key=SecretStr("simulated"),
            daily=DailySettings(home=self.folder / "home"),
            recall=RecallSettings(embeddings="off"),  # models run in a process of their own
            # keep_days: clocks jump by years here, and folded words could not be searched
            document=DocumentSettings(poll_seconds=60.0, keep_days=KeepLimit(-1)),
            sync=SyncSettings(poll_seconds=300.0, push_events=around.push_events),
        )
        self.person = EditorUser(name, self.memory_file, around.expected_state, self.on_external_save)
        self.page = EditorUser(
            name, self.memory_file, around.expected_state, self.on_external_save
        )  # the app's settings page
        self.read_to: dict[Path, int] = {}  # by database, the highest position that another program has read
        self.page_text = ""  # a manually saved daily page that was not ingested yet

    # --- runs ------------------------------------------------------------------------------------------------

    @property
    def app(self) -> App | None:
        """The application, unless it is dead, closed, or being replaced for another account."""
        life = self.life
        if life is None or not life.process.alive or life.app is None or life.app.login_flow.profile_left.is_set():
            return None
        return life.app

    @property
    def owner(self) -> str | None:
        return self.life.owner if self.life else None

    async def started(self) -> App | None:
        """The application, started if necessary; None if it cannot be opened now."""
        while self.life is None or not self.life.process.alive:
            await self.wait_until_dead()
            if self.life is None:  # of several waiting callers, one starts the next run
                self._start()
        life = self.life
        assert life is not None
        assert life.runner is not None
        if self.app is None:
            life.opened.clear()
        opening = asyncio.ensure_future(life.opened.wait())
        await asyncio.wait({opening, life.runner}, timeout=OPENS_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()
        return self.app

    def _start(self) -> None:
        process = self.new_process()
        context = contextvars.copy_context()
        context.run(CURRENT.set, process)
        life = ProgramRun(process, context)
        process.ended = partial(_call_soon, self._cancel_dead_run, life)
        self.life = life
        life.runner = self.spawn(self._run(life), life)

    def new_process(self) -> SimulatedProcess:
        return SimulatedProcess(
            self.name,
            self.chance,
            self.disk,
            self.around.on_trace,
            file_errors=self.file_errors,
            database_errors=self.database_errors,
            slowest=self.slowest,
        )

    def spawn(self, work: Coroutine[Any, Any, None], life: ProgramRun | None = None) -> asyncio.Task[None]:
        """Run work of the program; it ends with the run."""
        life = life or self.life
        assert life is not None
        task = asyncio.get_running_loop().create_task(work, context=life.context)
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
        return task

    async def _run(self, life: ProgramRun) -> None:
        try:
            with hold_sidecar_lock(self.settings, timeout=0.0) as held:
                life.process.held.append(partial(held.release, force=True))
                while not life.over.is_set():
                    cloud = self.cloud_of(life.process)
                    async with open_app(
                        self.settings, AppMode.HELPER, sidecar_lock=held, clock=self.clock, cloud=cloud
                    ) as app:
                        await app.devices.record_own_name()
                        await app.document.view()
                        life.owner = await app.account.owner_id()
                        if life.owner is None:
                            self.guests = app.profile.name
                        self._record_owner(life.owner)
                        life.app = app
                        life.opened.set()
                        await self._open(life, app)
                        life.opened.clear()
                        life.app = None
        except XiaobaiError as error:
            self.around.on_trace(f"{self.name} could not go on: {error.kind}")
        except ProcessDied:
            return
        finally:
            life.process.alive = False
            life.app = None

    async def _open(self, life: ProgramRun, app: App) -> None:
        """Keep the app open until the account changes or the program has to end."""
        async with AsyncExitStack() as stack:
            if self.around.living:
                jobs = [supervise("file", partial(app._run_file_sync, _WatcherStub()))]  # type: ignore[arg-type]
                if app.replicator is not None:
                    jobs.append(supervise("cloud", app.replicator.run))
                await stack.enter_async_context(background_tasks(jobs))
            waits = [asyncio.ensure_future(event.wait()) for event in (app.login_flow.profile_left, life.over)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        calls = life.tasks - {life.runner}
        if calls:  # an application is not closed under a call that uses it
            await asyncio.wait(calls, timeout=CALLERS_PATIENCE)
        if app.replicator is not None:
            await app.replicator.stop()

    def cloud_of(self, process: SimulatedProcess) -> SimulatedCloud:
        return SimulatedCloud(self.around.server, self.line, self.clock, process, self.around.on_trace)

    def _cancel_dead_run(self, life: ProgramRun) -> None:
        """Cancel the tasks of a dead run, once: a second cancellation would leave something open."""
        for task in life.tasks:
            if not task.cancelling():
                task.cancel()

    def kill(self, why: str) -> None:
        if self.life is not None:
            self.life.process.die(why)

    async def wait_until_dead(self) -> None:
        """Wait until all tasks of a dead run have ended."""
        life = self.life
        if life is None or life.process.alive:
            return
        while life.tasks:
            self._cancel_dead_run(life)
            ended, stuck = await asyncio.wait(life.tasks, timeout=OPENS_WITHIN)
            for task in stuck if not ended else ():
                task.cancel()  # the first one was caught
        if self.life is life:  # otherwise another waiting caller has started the next run
            life.process.release()
            self.life = None

    async def shut_down(self) -> None:
        """End the program orderly."""
        if self.life is not None and self.life.process.alive:
            self.life.over.set()
            await asyncio.gather(*self.life.tasks, return_exceptions=True)
        await self.wait_until_dead()

    def _record_owner(self, owner: str | None) -> None:
        self.last_owner = owner
        heir = self._guest_heir(owner)
        if heir:
            self.around.expected_state.owned_by(self.name, heir)
            self.person.whose = self.person.whose or heir  # also an editor that was open before the login
        self.unanswered = {
            key: (owner, exchange)
            for key, (said_by, exchange) in self.unanswered.items()
            if (said_by or heir) == owner  # requests of a removed memory are not repeated
        }

    def _guest_heir(self, owner: str | None) -> str | None:
        """The account that owns the guest's facts: the first that logged in."""
        became = {database.parent.name: whose for database, whose in self.profiles()}
        return (
            became.get(self.guests) if self.guests else None
        ) or owner  # otherwise its events were moved to the new account

    async def refresh_owner(self) -> None:
        """Update the logged-in account."""
        app, life = self.app, self.life
        if app is not None and life is not None and not app.login_flow.profile_left.is_set():
            life.owner = await app.account.owner_id()
            self._record_owner(life.owner)

    # --- files on disk --------------------------------------------------------------------------------------

    def on_external_save(self, path: Path) -> None:
        """Another program wrote the file."""
        if path.exists():
            self.around.host.touch(path, self.clock.skew)
            self.around.expected_state.restate(path.read_bytes().decode("utf-8", "replace"))
        self.disk.record_editor_save(path)
        if self.app is not None:
            self.app._file_changes.increment()

    def on_overwrite(self, path: Path) -> None:
        """The program is about to replace a file; a version of the memory file must exist (I8)."""
        if path != self.memory_file or not path.exists():
            return
        data = path.read_bytes()
        if (
            data.strip()
            and not self.has_version(digest_of(data))
            and not self.is_parked(data)
            and "removing" not in self.installation()
            and not self.has_copy_without_erased(data, self.around.expected_state.forgotten)
        ):
            self.around.defect(f"{self.name}: a document that nobody has a copy of was written over")

    def restored_from(self, folder: Path) -> None:
        """Replace the home with its backup."""
        shutil.rmtree(self.folder)
        shutil.copytree(folder, self.folder)
        self.disk = SimulatedDisk()
        self._owners.clear()
        self.read_to.clear()
        self.person.buffer = ""
        self.was_recreated = True
        if self.memory_file.exists():
            self.around.host.touch(self.memory_file, self.clock.skew)

    def lose_power(self) -> None:
        self.kill("power loss")
        for path in self.disk.lose_power(self.chance, self.around.host.touch):
            self.around.on_trace(f"{self.name} lost what was not synced of {path.name}")


def _call_soon(call: Callable[[ProgramRun], None], life: ProgramRun) -> None:
    asyncio.get_running_loop().call_soon(call, life)
