"""The labelled steps, and how a process is made to kill itself at one of them.

Nothing of this is in the program: a step is any attribute that is looked up when it is called, wrapped by the child
that runs the program (`child.py`). A step that no scenario passes, or one that a scenario promises and never passes,
fails the tests, so the table cannot rot.
"""

import asyncio
import functools
import importlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

When = Literal["before", "after"]

STEPS: Final[dict[str, str]] = {
    # capture
    "redact": "sync.document.conversation:exchange_drafts",
    "insert": "sync.log.store:record",
    "deliver": "sync.log.outbox_store:deliver",
    "commit": "sqlalchemy.engine.default:DefaultDialect.do_commit",
    "answer": "bridge.rpc.outgoing:Outgoing.answer",
    # the document
    "take in an edit": "sync.document.versions:Versions.take_in",
    "record an edit": "sync.document.versions:Versions._record",
    "version": "sync.document.store:append",
    "watermark": "sync.log.store:set_watermark",
    "swap": "sync.document.memory_file:compare_and_swap",
    "temporary file": "sync.files:_temporary",
    "fsync": "os:fsync",
    "rename": "pathlib:Path.replace",
    "exchange": "sync.files:_rename",
    "note on disk": "sync.document.versions:Versions.seen_on_disk",
    "save": "sync.document.versions:Versions.save",
    "restore": "sync.document.versions:Versions.restore",
    "set aside": "sync.document.versions:Versions.set_aside",
    "take in the cache": "sync.document.versions:Versions.take_in_app_cache",
    "fill the cache": "sync.document.cache_ring:swap_content",
    "note in the cache": "sync.document.cache_ring:CacheRing._left_with",
    # what is forgotten, archived and brought in
    "wish": "sync.document.forgetting:ask",
    "correct": "sync.document.forgetting:correct",
    "carry out the wish": "sync.document.forgetting:carry_out",
    "forget in what is parked": "sync.document.parked:write_private",
    "purge": "sync.db.engine:Database.purge",
    "put the archive": "sync.archive.filing:_put",
    "let the log say what goes": "sync.retention.room:Retention._expire",
    "write an archive anew": "sync.retention.room:rewrite",
    "bring in": "sync.archive.room:Archive._take",
    # the daily pages, and the files of the events
    "begin with a page": "sync.memory.daily.files:Pages.begin",
    "took a page in": "sync.memory.daily.files:Pages.took",
    "note of the pages": "sync.memory.daily.noted:write_private",
    "daily page": "sync.memory.daily.files:compare_and_swap",
    "take a page away": "sync.memory.daily.files:remove_unchanged",
    "drop the note of a page": "sync.memory.daily.noted:remove_private",
    "append to the event files": "sync.tree.files:_write_at",
    "put a built file": "sync.tree.files:EventFile.take_built",
    "small file": "sync.tree.files:write_private",
    # the first start, and a newer program's
    "installation": "sync.profiles:_write",
    "migrate": "sync.db.engine:migrate",
    "statement": "sqlalchemy.engine:Connection.exec_driver_sql",
    "mint a replica": "sync.log.store:open_replica",
    # the cloud
    "register": "sync.cloud.late:LateCloud.register_device",
    "snapshot": "sync.cloud.port:SnapshotRow.__init__",
    "send": "sync.cloud.late:LateCloud.sync",
    "apply": "sync.cloud.store:apply",
    "acknowledge": "sync.log.outbox_store:acknowledge",
    "add what others said": "sync.log.store:add_all",
    "move the cursor": "sync.log.outbox_store:move_cursor",
    "refresh": "sync.cloud.account:Account._exchanged",
    "save the session": "sync.cloud.tokens:_Kept.save",
    "drop the session": "sync.cloud.tokens:_Kept.delete",
    "save the device key": "sync.secret_store:FileSecret.save",
    "claim": "sync.cloud.store:claim",
    "keep the list of devices": "sync.devices:write_private",
    # from one account to another
    "choose a profile": "sync.switch:other_home",
    "leave": "sync.entrance:change_installation",
    "complete": "sync.switch:complete",
    "hand over": "sync.switch:hand_over",
    "replace the document": "sync.switch:replace_document",
    "put the other document": "sync.document.handover:compare_and_swap",
    "take the file away": "sync.document.handover:remove_unchanged",
    "carry over": "sync.switch:_carry_over",
    "change the installation": "sync.switch:change_installation",
    "remove a profile": "sync.switch:remove_profile",
    "unlink": "os:unlink",
    # salvage
    "copy the damaged": "shutil:copyfile",
    "rebuild": "sync.db.salvage:_rebuilt",
    "copy rows": "sync.db.copying:_insert",
    "repair": "sync.db.salvage:complete",
    "sync the new": "sync.db.salvage:synced",
    "put in place": "sync.db.salvage:_put_in_place",
    "move aside": "pathlib:Path.rename",
    "let the log follow": "sync.db.salvage:_follow",
    "renumber": "sync.log.store:renumber",
    # encryption at rest, on and off
    "make the key": "sync.vault.vault:Vault._make",
    "set the mark": "sync.vault.mark:put",
    "copy all rows": "sync.db.conversion:copy_rows",
    "check the converted": "sync.db.conversion:check",
    "put the converted in place": "sync.db.conversion:put_in_place",
    "remove the mark": "sync.vault.mark:remove",
}


class Passing:
    """Counts the passages of all steps; writes them down, and acts at the wanted one."""

    def __init__(self, wanted: tuple[str, When, int] | None, noted: Path | None, act: Callable[[], None]) -> None:
        self._wanted = wanted
        self._act = act
        self._counts: Counter[tuple[str, When]] = Counter()
        self._guard = threading.Lock()
        self._noted = None if noted is None else os.open(noted, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def __call__(self, step: str, when: When) -> None:
        with self._guard:
            self._counts[step, when] += 1
            number = self._counts[step, when]
        if self._noted is not None:
            os.write(self._noted, f"{step}:{when}\n".encode())
        if (step, when, number) == self._wanted:
            self._act()


def kill_myself() -> None:
    """As the out-of-memory killer does it: no handler, no buffer, no lock is given back by us."""
    os.kill(os.getpid(), signal.SIGKILL)


def wrap(passing: Passing) -> None:
    """Put `passing` around every step."""
    for step in STEPS:
        owner, name = place_of(step)
        setattr(owner, name, _around(step, getattr(owner, name), passing))


def place_of(step: str) -> tuple[Any, str]:
    """The module or class where the step is looked up, and its name there."""
    module, _, path = STEPS[step].partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def _around(step: str, call: Callable[..., Any], passing: Passing) -> Callable[..., Any]:
    if asyncio.iscoroutinefunction(call):

        @functools.wraps(call)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            passing(step, "before")
            value = await call(*args, **kwargs)
            passing(step, "after")
            return value

        return waiting

    @functools.wraps(call)
    def calling(*args: Any, **kwargs: Any) -> Any:
        passing(step, "before")
        value = call(*args, **kwargs)
        passing(step, "after")
        return value

    return calling
