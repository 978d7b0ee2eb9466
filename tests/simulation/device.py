"""One simulated device: a folder, a disk, a clock, a line to the server, and the lives of its program.

A life opens the real application (`open_app`) as the sidecar does, again after each switch between accounts, and ends
in good order, by an error of the start, or by death at a point. What a dead life has left on disk is all that the next
one finds.
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
from typing import Any, Final, Literal

from sync.app import App, Role, open_app
from sync.document.capture import Exchange
from sync.errors import XiaobaiError
from sync.jobs import kept_up, running
from sync.role import sidecar_role
from sync.sections import Address, Bound, DailySettings, DocumentSettings, RecallSettings, SyncSettings
from sync.settings import Secret, Settings
from tests.simulation.home import Home
from tests.simulation.ledger import Ledger
from tests.simulation.machine import CURRENT, DeviceClock, Disk, Machine, Process, ProcessDied
from tests.simulation.network import Line, SimulatedCloud, SimulatedServer
from tests.simulation.person import Person, digest_of

CALLERS_PATIENCE: Final = 5.0  # seconds; as `bridge.callers`
OPENS_WITHIN: Final = 60.0  # seconds of simulated time; only a defect takes longer


@dataclass
class Life:
    """One life of the program."""

    process: Process
    context: contextvars.Context
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    app: App | None = None
    owner: str | None = None  # of the profile that is open
    runner: asyncio.Task[None] | None = None


class _Eyes:
    """Stands for watchdog: the simulation says itself when something happened to the file."""

    alive = True

    def renew(self) -> None: ...


@dataclass
class Surroundings:
    """What all devices of a history have in common."""

    folder: Path
    machine: Machine
    server: SimulatedServer
    ledger: Ledger
    told: Callable[[str], None]
    defect: Callable[[str], None]
    sharing: Literal["device", "user"]
    living: bool
    push_events: int


class Device(Home):
    """One installation and its person."""

    def __init__(self, name: str, around: Surroundings, seed: str, line: Line) -> None:
        self.name = name
        self.around = around
        super().__init__(around.folder / name)
        self.folder.mkdir()
        self.clock = DeviceClock(f"clock {seed}")
        self.chance = random.Random(f"machine {seed}")
        self.disk = Disk()
        self.line = line
        self.file_errors = self.database_errors = self.slowest = 0.0
        self.life: Life | None = None
        self.unanswered: dict[str, tuple[str | None, Exchange]] = {}
        self.backup: tuple[int, Path] | None = None
        self.began_anew = False  # whether its database is younger than its words
        self.emptied = False  # whether it lacks what it had, until the server gives that back
        self.copy_of: str | None = None
        self.last_owner: str | None = None  # whoever was logged in when the program was last seen
        self.guests: str | None = None  # the profile of what was said before anybody logged in
        self.settings = Settings(
            data_dir=self.folder / "data",
            memory_file=self.memory_file,
            device_id=f"device-{name}",
            device_name=name,
            token_store="file",
            # of no account's own: the cloud is handed over; retention waits for one that stands in the settings
            supabase_url=Address("https://simulated.example"),
            supabase_key=Secret("simulated"),
            daily=DailySettings(home=self.folder / "home"),
            recall=RecallSettings(embeddings="off"),  # models think in a process of their own
            # keep_days: clocks jump by years here, and words that folded into a day's line could not be looked for
            document=DocumentSettings(sharing=around.sharing, poll_seconds=60.0, keep_days=Bound(-1)),
            sync=SyncSettings(poll_seconds=300.0, push_events=around.push_events),
        )
        self.person = Person(name, self.memory_file, around.ledger, self.saved)
        self.page = Person(name, self.memory_file, around.ledger, self.saved)  # the app's settings page
        self.read_to: dict[Path, int] = {}  # by database, how far somebody else's program has read at most
        self.page_text = ""  # a page of the daily records that was saved by hand and that nobody has taken in

    # --- lives -----------------------------------------------------------------------------------------------

    @property
    def app(self) -> App | None:
        """The application, unless it is dead, closed, or about to make place for another account's."""
        life = self.life
        if life is None or not life.process.alive or life.app is None or life.app.entrance.left.is_set():
            return None
        return life.app

    @property
    def owner(self) -> str | None:
        return self.life.owner if self.life else None

    async def started(self) -> App | None:
        """The application, started if need be; None where it cannot be opened now."""
        while self.life is None or not self.life.process.alive:
            await self.reaped()
            if self.life is None:  # of several that waited for the end of a life, one starts the next
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
        life = Life(process, context)
        process.ended = partial(_soon, self._killed, life)
        self.life = life
        life.runner = self.spawn(self._lived(life), life)

    def new_process(self) -> Process:
        return Process(
            self.name,
            self.chance,
            self.disk,
            self.around.told,
            file_errors=self.file_errors,
            database_errors=self.database_errors,
            slowest=self.slowest,
        )

    def spawn(self, work: Coroutine[Any, Any, None], life: Life | None = None) -> asyncio.Task[None]:
        """Something the program does; it ends with the program's life."""
        life = life or self.life
        assert life is not None
        task = asyncio.get_running_loop().create_task(work, context=life.context)
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
        return task

    async def _lived(self, life: Life) -> None:
        try:
            with sidecar_role(self.settings, patience=0.0) as held:
                life.process.held.append(partial(held.release, force=True))
                while not life.over.is_set():
                    cloud = self.cloud_of(life.process)
                    async with open_app(self.settings, Role.HELPER, held=held, clock=self.clock, cloud=cloud) as app:
                        await app.devices.introduce()
                        await app.document.view()
                        life.owner = await app.account.owner_id()
                        if life.owner is None:
                            self.guests = app.profile.name
                        self._known_as(life.owner)
                        life.app = app
                        life.opened.set()
                        await self._open(life, app)
                        life.opened.clear()
                        life.app = None
        except XiaobaiError as error:
            self.around.told(f"{self.name} could not go on: {error.kind}")
        except ProcessDied:
            return
        finally:
            life.process.alive = False
            life.app = None

    async def _open(self, life: Life, app: App) -> None:
        """Until another account comes in, or the program is told to leave."""
        async with AsyncExitStack() as stack:
            if self.around.living:
                jobs = [kept_up("file", partial(app._keep_file, _Eyes()))]  # type: ignore[arg-type]
                if app.replicator is not None:
                    jobs.append(kept_up("cloud", app.replicator.run))
                await stack.enter_async_context(running(jobs))
            waits = [asyncio.ensure_future(event.wait()) for event in (app.entrance.left, life.over)]
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

    def cloud_of(self, process: Process) -> SimulatedCloud:
        return SimulatedCloud(self.around.server, self.line, self.clock, process, self.around.told)

    def _killed(self, life: Life) -> None:
        """Cancel what a dead life still does, once: cancelled again on its way out, something would stay open."""
        for task in life.tasks:
            if not task.cancelling():
                task.cancel()

    def kill(self, why: str) -> None:
        if self.life is not None:
            self.life.process.die(why)

    async def reaped(self) -> None:
        """Wait until nothing of a dead life moves any more."""
        life = self.life
        if life is None or life.process.alive:
            return
        while life.tasks:
            self._killed(life)
            ended, stuck = await asyncio.wait(life.tasks, timeout=OPENS_WITHIN)
            for task in stuck if not ended else ():
                task.cancel()  # the first one was caught
        if self.life is life:  # else somebody else who waited here has started the next one
            life.process.let_go()
            self.life = None

    async def left(self) -> None:
        """End the program in good order."""
        if self.life is not None and self.life.process.alive:
            self.life.over.set()
            await asyncio.gather(*self.life.tasks, return_exceptions=True)
        await self.reaped()

    def _known_as(self, owner: str | None) -> None:
        self.last_owner = owner
        heir = self._heir(owner)
        if heir:
            self.around.ledger.owned_by(self.name, heir)
            self.person.whose = self.person.whose or heir  # also what an editor has had open since before the login
        self.unanswered = {
            key: (owner, exchange)
            for key, (said_by, exchange) in self.unanswered.items()
            if (said_by or heir) == owner  # what somebody said whose memory is not here any more is not sent again
        }

    def _heir(self, owner: str | None) -> str | None:
        """Who has what a guest said: the first to log in, whom another may have followed before anybody looked."""
        became = {database.parent.name: whose for database, whose in self.profiles()}
        return (became.get(self.guests) if self.guests else None) or owner  # else it was carried over, to who came

    async def look_who(self) -> None:
        """Notice who is logged in now."""
        app, life = self.app, self.life
        if app is not None and life is not None and not app.entrance.left.is_set():
            life.owner = await app.account.owner_id()
            self._known_as(life.owner)

    # --- what lies on the disk -------------------------------------------------------------------------------

    def saved(self, path: Path) -> None:
        """Somebody else than the program wrote the file."""
        if path.exists():
            self.around.machine.touch(path)
            self.around.ledger.says_anew(path.read_bytes().decode("utf-8", "replace"))
        self.disk.saved_by_hand(path)
        if self.app is not None:
            self.app._file_touched.set()

    def overwritten(self, path: Path) -> None:
        """The program is about to rename onto a file: of the memory file a copy must exist (I8)."""
        if path != self.memory_file or not path.exists():
            return
        data = path.read_bytes()
        digest = digest_of(data)
        if data.strip() and not self.knows(digest) and not self.parked(data) and "removing" not in self.installation():
            self.around.defect(f"{self.name}: a document that nobody has a copy of was written over")

    def restored_from(self, folder: Path) -> None:
        """The home as it was, in the place of the home as it is."""
        shutil.rmtree(self.folder)
        shutil.copytree(folder, self.folder)
        self.disk = Disk()
        self._owners.clear()
        self.read_to.clear()
        self.person.buffer = ""
        self.began_anew = True
        if self.memory_file.exists():
            self.around.machine.touch(self.memory_file)

    def lose_power(self) -> None:
        self.kill("power loss")
        for path in self.disk.lose_power(self.chance, self.around.machine.touch):
            self.around.told(f"{self.name} lost what was not synced of {path.name}")


def _soon(call: Callable[[Life], None], life: Life) -> None:
    asyncio.get_running_loop().call_soon(call, life)
