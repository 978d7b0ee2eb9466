"""The labelled steps, and how a process kills itself at one of them.

The program contains nothing of this: the child process (`crash_process.py`) wraps attributes that are looked up at each
call. A step that no scenario passes, or that a scenario promises and never passes, fails the tests.
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
    "redact": "sync.document.read.memory_service:draft_exchange_events",
    "insert": "sync.log.store:append",
    "deliver": "sync.log.outbox_store:enqueue",
    "commit": "sqlalchemy.engine.default:DefaultDialect.do_commit",
    "answer": "bridge.rpc.response_writer:ResponseWriter.answer",
    # the document
    "take in an edit": "sync.document.versions.file_history:FileHistory.ingest_file",
    "record an edit": "sync.document.versions.writer:VersionWriter.record_operations",
    "version": "sync.document.store:append",
    "watermark": "sync.log.store:set_watermark",
    "swap": "sync.document.surfaces.memory_file:compare_and_swap",
    "temporary file": "sync.system.files:write_temporary",
    "fsync": "os:fsync",
    "rename": "pathlib:Path.replace",
    "exchange": "sync.system.atomic_swap:_system_rename",
    "note on disk": "sync.document.versions.file_history:FileHistory.mark_on_disk",
    "save": "sync.document.versions.file_history:FileHistory.save",
    "restore": "sync.document.versions.file_history:FileHistory.restore",
    "set aside": "sync.document.versions.file_history:FileHistory.keep_as_version",
    "take in the cache": "sync.document.surfaces.app_cache:AppCacheHistory._ingest_document",
    "fill the cache": "sync.document.surfaces.app_cache:swap_content",
    "note in the cache": "sync.document.surfaces.app_cache:AppCacheHistory._record_written",
    # erasure, archives, import
    "wish": "sync.document.erasure.erasure:request",
    "correct": "sync.document.erasure.erasure:apply_corrections",
    "carry out the wish": "sync.document.erasure.erasure:apply",
    "forget in what is parked": "sync.document.erasure.parked_documents:write_private",
    "purge": "sync.db.engine:Database.purge",
    "put the archive": "sync.archive.archive_file:_move_into_place",
    "let the log say what goes": "sync.retention.service:RetentionService._expire",
    "write an archive anew": "sync.retention.service:rewrite",
    "bring in": "sync.jsonl.event_import:EventImport._take_in",
    # daily pages and JSONL files
    "begin with a page": "sync.daily.pages.page_files:PageFiles.begin_import",
    "took a page in": "sync.daily.pages.page_files:PageFiles.finish_import",
    "note of the pages": "sync.daily.pages.page_checkpoints:write_private",
    "daily page": "sync.daily.pages.page_files:compare_and_swap",
    "take a page away": "sync.daily.pages.page_files:remove_unchanged",
    "drop the note of a page": "sync.daily.pages.page_checkpoints:remove_private",
    "append to the event files": "sync.jsonl.event_file:_write_at",
    "put a built file": "sync.jsonl.event_file:EventFile.install_built",
    "small file": "sync.jsonl.event_file:write_private",
    # notes of a project
    "put a note": "sync.notes.folder:compare_and_swap",
    "take a note away": "sync.notes.folder:remove_unchanged",
    "keep the hashes of a write": "sync.system.swap_journal:write_private",
    "drop the hashes of a write": "sync.system.swap_journal:remove_private",
    "record a note": "sync.notes.workspace:NoteWorkspace.record",
    # the first start, and that of a newer program
    "installation": "sync.accounts.profiles:_write_installation",
    "migrate": "sync.db.engine:migrate",
    "statement": "sqlalchemy.engine:Connection.exec_driver_sql",
    "mint a replica": "sync.log.store:ensure_replica_id",
    # the cloud
    "register": "sync.cloud.supabase.lazy:LazyCloud.register_device",
    "snapshot": "sync.document.surfaces.cloud_document:SnapshotRow",
    "send": "sync.cloud.supabase.lazy:LazyCloud.sync",
    "apply": "sync.cloud.replication_store:apply_answer",
    "acknowledge": "sync.log.outbox_store:acknowledge",
    "add what others said": "sync.log.store:insert_events",
    "move the cursor": "sync.log.outbox_store:save_cursor",
    "refresh": "sync.cloud.auth.account:Account._refresh_with_retry",
    "save the session": "sync.cloud.auth.session_storage:_SecretSessionStorage.save",
    "drop the session": "sync.cloud.auth.session_storage:_SecretSessionStorage.delete",
    "save the device key": "sync.system.secret_store:FileSecretStore.save",
    "claim": "sync.cloud.auth.owner_store:claim_profile",
    "keep the list of devices": "sync.accounts.devices:write_private",
    # from one account to another
    "choose a profile": "sync.accounts.switching:find_profile_for",
    "leave": "sync.accounts.login:change_installation",
    "complete": "sync.accounts.switching:complete_switch",
    "hand over": "sync.accounts.switching:hand_over",
    "replace the document": "sync.accounts.switching:replace_document",
    "put the other document": "sync.document.surfaces.handover:compare_and_swap",
    "take the file away": "sync.document.surfaces.handover:remove_unchanged",
    "carry over": "sync.accounts.switching:_copy_guest_events",
    "change the installation": "sync.accounts.switching:change_installation",
    "remove a profile": "sync.accounts.switching:remove_profile",
    "unlink": "os:unlink",
    # salvage
    "copy the damaged": "shutil:copyfile",
    "rebuild": "sync.db.rebuild.salvage:_rebuild",
    "copy rows": "sync.db.rebuild.row_copy:_insert_rows",
    "complete the log": "sync.db.rebuild.salvage:_complete",
    "sync the new": "sync.db.rebuild.salvage:sync_to_disk",
    "put in place": "sync.db.rebuild.salvage:_swap_in_salvaged",
    "move aside": "pathlib:Path.rename",
    "let the log follow": "sync.db.rebuild.salvage:_move_companion_files",
    "renumber": "sync.log.store:renumber_as_new_replica",
    # encryption at rest, on and off
    "make the key": "sync.encryption.database_encryption:DatabaseEncryption._create_key",
    "set the mark": "sync.encryption.encrypted_marker:write_marker",
    "copy all rows": "sync.db.rebuild.convert:copy_all_rows",
    "check the converted": "sync.db.rebuild.convert:check_converted",
    "put the converted in place": "sync.db.rebuild.convert:swap_in",
    "remove the mark": "sync.encryption.encrypted_marker:remove_marker",
}


class StepCounter:
    """Count and record the passages of all steps, and act at the chosen one."""

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
    """Die as by the out-of-memory killer: no handler runs, nothing is flushed or released."""
    os.kill(os.getpid(), signal.SIGKILL)


def instrument_steps(passing: StepCounter) -> None:
    """Wrap every step with `passing`."""
    for step in STEPS:
        owner, name = location_of_step(step)
        setattr(owner, name, _wrap_step(step, getattr(owner, name), passing))


def location_of_step(step: str) -> tuple[Any, str]:
    """The module or class where the step is looked up, and its name there."""
    module, _, path = STEPS[step].partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def _wrap_step(step: str, call: Callable[..., Any], passing: StepCounter) -> Callable[..., Any]:
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
