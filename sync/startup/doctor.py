"""`doctor`: check everything that a user can break, without changing it, and say what to do.

`check_environment` needs only the settings, so it works if the program cannot start. `check_open_app` checks what only
an open program knows. Findings name paths, sizes, codes and counts; never content, a token or a key.
"""

import asyncio
import contextlib
import os
import platform
import shlex
import socket
import sqlite3
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sync.accounts.profiles import Profile, acquire_sidecar_lock, read_installation, read_sidecar_pid
from sync.clock import Clock
from sync.cloud.auth.account import Account
from sync.cloud.auth.session_storage import FileSessionStorage, open_session_storage
from sync.cloud.replication.replicator import Replicator
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.document.markdown.parse import parse
from sync.document.surfaces.app_cache import read_content
from sync.document.surfaces.memory_file import MemoryFile
from sync.document.surfaces.notices import RESOLVABLE, VERSION_NOTICES
from sync.document.surfaces.watcher import Watcher
from sync.document.versions.rescan import needs_rescan
from sync.encryption import encrypted_marker
from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import driver_errors
from sync.errors import AlreadyRunning, DocumentUntouchable, StorageError, XiaobaiError
from sync.log.log import EventLog, user_visible_outbox
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter
from sync.settings.data_dir import CONFIG_FILE, ENV_PREFIX
from sync.settings.settings import Settings, key_kind
from sync.startup.checks import HealthCheck, check_folder, run_checks
from sync.startup.open_database import has_begun
from sync.system.files import read_once, resolve_target
from sync.system.shared_folders import conflict_copies, sharing_of

MAX_CLOCK_SKEW_SECONDS: Final = 300.0  # tokens and the order of events tolerate less
CONNECT_TIMEOUT: Final = 5.0  # seconds
READ_TIMEOUT: Final = 5.0  # seconds to wait for a writer
MAX_SHOWN_PATHS: Final = 5  # paths named in one finding


async def check_environment(settings: Settings, *, is_sidecar: bool) -> list[HealthCheck]:
    """Check what can be seen from outside. `is_sidecar`: this process holds the sidecar lock."""
    config = settings.data_dir / CONFIG_FILE
    found = str(config) if config.exists() else f"no {config}: the environment and the defaults"
    files = settings.jsonl_root if settings.writes_event_files else None
    checks: dict[str, Callable[[], Any]] = {
        "program": check_program,
        "settings": lambda: HealthCheck("settings", ok=True, found=found),
        "data folder": lambda: _check_data_folder(settings.data_dir),
        "event files": lambda: check_folder("event files", files, "EVENTS_DIR"),
        "permissions": lambda: _check_permissions(settings),
        "database": lambda: asyncio.to_thread(_check_databases, settings),
        "sidecar": lambda: _check_sidecar(settings, is_sidecar),
        "file": lambda: _check_memory_file(settings.memory_file),
        "watcher": lambda: _check_watcher(settings.memory_file),
        "app cache": lambda: [] if settings.app_db is None else _check_app_cache(settings.app_db),
        "session": lambda: asyncio.to_thread(_check_session_store, settings),
        "key": lambda: _check_api_key(settings),
        "address": lambda: _check_server_address(settings),
    }
    return await run_checks(checks)


async def check_open_app(
    document: MemoryFile,
    events: EventLog,
    account: Account,
    replicator: Replicator | None,
    clock: Clock,
    redactor: Redactor,
) -> list[HealthCheck]:
    """Check what an open program knows. If a user is logged in, run one sync round."""
    checks: dict[str, Callable[[], Any]] = {
        "document": lambda: _check_document(document),
        "log": lambda: _check_log(events),
        "outbox": lambda: _check_outbox(events),
        "redaction": lambda: _check_redaction_rules(events, redactor),
        "login": lambda: _check_cloud(events, account, replicator, clock),
    }
    return await run_checks(checks)


async def _check_cloud(
    events: EventLog, account: Account, replicator: Replicator | None, clock: Clock
) -> list[HealthCheck]:
    state = await account.state()
    if replicator is None or state.state != "logged_in":
        hint = "" if replicator is None else "xiaobai-memory login"
        return [HealthCheck("login", ok=None, found=state.state.replace("_", " "), hint=hint)]
    checks = [HealthCheck("login", ok=True, found=state.label or state.user_id or "logged in")]
    if events.database.upkeep.is_locked_out:
        checks.append(HealthCheck("cloud", ok=None, found="not asked: another process is writing this memory"))
        return [*checks, await _check_clock(replicator, clock, synced_now=False)]
    try:
        await replicator.sync_now()
    except XiaobaiError as error:
        checks.append(HealthCheck("cloud", ok=False, found=f"{error.kind}: {error.message}", hint=error.hint))
        return [*checks, await _check_clock(replicator, clock, synced_now=False)]
    cursor = (await replicator.status()).cursor
    checks.append(HealthCheck("cloud", ok=True, found=f"level at {cursor.seq}"))
    return [*checks, await _check_clock(replicator, clock, synced_now=True)]


def check_program() -> HealthCheck:
    found = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}"
    return HealthCheck("program", ok=True, found=found)


# --- this machine ------------------------------------------------------------------------------------------


def _check_data_folder(folder: Path) -> HealthCheck:
    if (sharing := sharing_of(folder)) is None:
        return check_folder("data folder", folder, "DATA_DIR")
    hint = f"Set {ENV_PREFIX}DATA_DIR to a folder of this machine alone: a database that is synchronised may break."
    return HealthCheck("data folder", ok=False, found=f"{folder} is shared with other machines ({sharing})", hint=hint)


def _check_permissions(settings: Settings) -> HealthCheck:
    if os.name != "posix":
        return HealthCheck("permissions", ok=None, found="kept by the user's own profile folder")
    open_to_others = [
        path for path in _private_paths(settings) if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]
    links = [f"{path} is a link to {resolve_target(path)}" for path in _private_paths(settings) if path.is_symlink()]
    if not open_to_others:
        if links:
            hint = "Check that you made these links; what is remembered lies there."
            return HealthCheck("permissions", ok=None, found=", ".join(links[:MAX_SHOWN_PATHS]), hint=hint)
        return HealthCheck("permissions", ok=True, found="only this user can read database, session and logs")
    shown = [f"{path} ({path.stat().st_mode & 0o777:o})" for path in open_to_others[:MAX_SHOWN_PATHS]]
    folders = {str(settings.data_dir), str(settings.events_dir)} & {str(path) for path in open_to_others}
    hint = f"chmod -R go= {' '.join(map(shlex.quote, sorted(folders or {str(settings.data_dir)})))}"
    return HealthCheck("permissions", ok=False, found=f"others may enter or read: {', '.join(shown)}", hint=hint)


def _private_paths(settings: Settings) -> Iterator[Path]:
    """The folders and files that only this user may read."""
    folder = settings.data_dir
    candidates = [folder, *filter(None, [settings.events_dir]), folder / "profiles", folder / "logs"]
    candidates += [path for pattern in ("logs/*", "profiles/*", "profiles/*/*") for path in folder.glob(pattern)]
    return (path for path in candidates if path.exists())


def _check_databases(settings: Settings) -> list[HealthCheck]:
    installation = read_installation(settings.data_dir)
    profile = Profile.of(settings.data_dir, installation) if installation else None
    if profile is None or not (has_begun(settings, profile.database) or os.path.lexists(profile.database)):
        return [HealthCheck("database", ok=None, found="not there yet; the first command makes it")]
    encryption = DatabaseEncryption.of(settings)
    return [_check_database(profile.database, encryption), _check_encryption(profile, encryption)]


def _check_database(path: Path, encryption: DatabaseEncryption) -> HealthCheck:
    hint = "Start the sidecar: it keeps the damaged file, saves what can be read and fetches the rest from the cloud."
    try:
        with encryption.read_only_connection(path, READ_TIMEOUT) as connection:
            mark, version, verdict = (
                connection.execute(f"pragma {name}").fetchone()[0]
                for name in ("application_id", "user_version", "quick_check")
            )
    except driver_errors("Error") as error:
        return HealthCheck("database", ok=False, found=f"{path}: {error}", hint=hint)
    except XiaobaiError as error:  # no key, no driver
        return HealthCheck("database", ok=False, found=error.message, hint=error.hint)
    newest = known_migrations()[-1].version
    if mark != APPLICATION_ID:
        return HealthCheck("database", ok=False, found=f"{path} belongs to another program", hint="Move it aside.")
    if verdict != "ok":
        return HealthCheck("database", ok=False, found=f"{path} is damaged: {str(verdict)[:120]}", hint=hint)
    if version > newest:
        found = f"{path} has schema {version}, this program knows {newest}"
        return HealthCheck("database", ok=False, found=found, hint="Update xiaobai-memory on this machine.")
    return HealthCheck("database", ok=True, found=f"{path}, schema {version}")


def _check_encryption(profile: Profile, encryption: DatabaseEncryption) -> HealthCheck:
    """Which profiles' databases are encrypted, and whether their keys are there; no key is shown."""
    databases = [each.database for each in (profile, *profile.other_profiles()) if each.database.exists()]
    marked = [path for path in databases if encrypted_marker.is_marked(path)]
    if not encryption.encrypts and not marked:
        return HealthCheck("encryption", ok=None, found="off: the databases are plain files")
    found = f"{len(marked)} of {len(databases)} databases are encrypted"
    try:
        for path in databases:
            encryption.access_for(path)
    except XiaobaiError as error:
        return HealthCheck("encryption", ok=False, found=f"{found}; {error.message}", hint=error.hint)
    if encryption.encrypts is not encrypted_marker.is_marked(profile.database):
        to_do = "encrypts" if encryption.encrypts else "decrypts"
        return HealthCheck("encryption", ok=None, found=f"{found}; the next start of the sidecar {to_do} that in use")
    places = sorted({encryption.key_location(path) for path in marked})
    return HealthCheck("encryption", ok=True, found=f"{found}; the keys are there ({', '.join(places)})")


def _check_sidecar(settings: Settings, is_sidecar: bool) -> HealthCheck:
    if is_sidecar:
        return HealthCheck("sidecar", ok=True, found=f"this process ({os.getpid()})")
    if not (settings.data_dir / "sidecar.lock").exists():
        return HealthCheck("sidecar", ok=True, found="none is running")
    try:
        acquire_sidecar_lock(settings.data_dir, timeout=0.0).release()
    except AlreadyRunning:
        pid = read_sidecar_pid(settings.data_dir)
        who = "another process" if pid is None else f"process {pid}"
        return HealthCheck("sidecar", ok=True, found=f"{who} serves this memory; there can be only one")
    except StorageError as error:
        return HealthCheck("sidecar", ok=False, found=error.message, hint=error.hint)
    return HealthCheck("sidecar", ok=True, found="none is running")


def _check_memory_file(path: Path) -> HealthCheck:
    """The memory file can be read, understood and replaced."""
    folder = resolve_target(path).parent
    if not folder.is_dir():
        hint = "Make that folder, or set XIAOBAI_MEMORY_FILE to another place."
        return HealthCheck("file", ok=False, found=f"there is no folder {folder}", hint=hint)
    if path.is_dir():
        return HealthCheck("file", ok=False, found=f"{path} is a folder", hint="Set XIAOBAI_MEMORY_FILE to a file.")
    if not os.access(folder, os.W_OK):
        hint = f"Give this user write permission to {folder}: the file is written beside and put in its place."
        return HealthCheck("file", ok=False, found=f"{folder} is not writable", hint=hint)
    try:
        found = read_once(path)
        document = parse(found.data) if found else None
    except (StorageError, DocumentUntouchable) as error:
        return HealthCheck("file", ok=False, found=f"{path}: {error.message}", hint=error.hint)
    if copies := conflict_copies(path):
        hint = "Copy what you miss into the memory file, then delete these copies of a synchronising program."
        return HealthCheck("file", ok=None, found=f"beside it: {', '.join(copies[:MAX_SHOWN_PATHS])}", hint=hint)
    if found is None or document is None:
        return HealthCheck("file", ok=True, found=f"{path} is not there yet")
    if document.encoding != "utf-8":
        hint = "It is read and kept as it is; save it as UTF-8 if other programs show it wrongly."
        return HealthCheck("file", ok=True, found=f"{path}, {document.encoding}", hint=hint)
    return HealthCheck("file", ok=True, found=f"{path}, {found.size} bytes")


async def _check_watcher(path: Path) -> HealthCheck:
    watcher = Watcher(path, ChangeCounter())
    try:
        watcher.renew()
        if watcher.alive:
            return HealthCheck("watcher", ok=True, found=f"{path.parent} can be watched")
    finally:
        await asyncio.to_thread(watcher.stop)
    cause = f" ({watcher.problem})" if watcher.problem else ""
    hint = (
        "Raise fs.inotify.max_user_instances and max_user_watches, close programs that watch many files, or put the"
        " file on a local disk; until then it is read every few seconds."
    )
    return HealthCheck("watcher", ok=False, found=f"{path.parent} cannot be watched{cause}", hint=hint)


async def _check_app_cache(path: Path) -> HealthCheck:
    hint = "Set XIAOBAI_APP_DB to the app's own SQLite file, or unset it."
    try:
        content = await read_content(path)
    except StorageError as error:
        return HealthCheck("app cache", ok=False, found=f"{path}: {error.message}", hint=hint)
    if content is None:
        return HealthCheck("app cache", ok=None, found=f"{path} holds no memory yet", hint=hint)
    return HealthCheck("app cache", ok=True, found=f"{path}, {len(content)} bytes")


def _check_session_store(settings: Settings) -> HealthCheck:
    if settings.supabase_url is None:
        return HealthCheck("session store", ok=None, found="not needed without a cloud")
    installation = read_installation(settings.data_dir)
    if installation is None:
        return HealthCheck("session store", ok=None, found="nothing is set up yet")
    profile = Profile.of(settings.data_dir, installation)
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    try:
        store = open_session_storage(profile.session_file, profile.folder.name, prefer_file=prefer_file)
        store.load()
    except StorageError as error:
        return HealthCheck("session store", ok=False, found=error.message, hint=error.hint)
    in_a_file = isinstance(store, FileSessionStorage)
    place = "a file that only this user can read" if in_a_file else "the keychain of the operating system"
    return HealthCheck("session store", ok=True, found=place)


def _check_api_key(settings: Settings) -> HealthCheck:
    if settings.supabase_key is None:
        return HealthCheck("key", ok=None, found="no Supabase project is set; everything works locally")
    kind = key_kind(settings.supabase_key.get_secret_value())
    if kind == "publishable":
        return HealthCheck("key", ok=True, found="a publishable key")
    if kind == "anon":
        hint = "It works; Supabase replaces these keys by publishable ones (Settings, API keys)."
        return HealthCheck("key", ok=True, found="a legacy anon key", hint=hint)
    hint = "Copy the publishable key (sb_publishable_…) from the project's settings, API keys."
    return HealthCheck("key", ok=False, found="neither a publishable nor an anon key", hint=hint)


async def _check_server_address(settings: Settings) -> HealthCheck:
    """Connect to the project, TLS included, without a request: none is sent without a token."""
    if settings.supabase_url is None:
        return HealthCheck("address", ok=None, found="no Supabase project is set")
    parts = urlsplit(settings.supabase_url)
    secure = parts.scheme == "https"
    from urllib.request import getproxies  # noqa: PLC0415 - 20 ms that a start need not spend

    from sync.cloud.supabase.proxy import proxy_for  # noqa: PLC0415 - imports the same

    if proxy_for(settings.supabase_url, getproxies()) is not None:
        return HealthCheck("address", ok=None, found="a proxy is set for this system; the next sync tells")
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_connection(host, port, ssl=secure or None)
    except (OSError, TimeoutError) as error:
        what, hint = _describe_connection_error(error)
        return HealthCheck("address", ok=False, found=f"{host}:{port} {what}", hint=hint)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return HealthCheck("address", ok=True, found=f"{host}:{port} answers")


def _describe_connection_error(error: OSError) -> tuple[str, str]:
    online = "Check the network; until it answers everything is kept on this device."
    if isinstance(error, socket.gaierror):
        return "is not a known name", "Check XIAOBAI_SUPABASE_URL and the network's name service."
    if isinstance(error, ssl.SSLError):
        hint = "Check the clock, SSL_CERT_FILE, and for a captive portal or proxy."
        return "shows a certificate this machine does not trust", hint
    if error.filename is not None:  # no connection has one
        return "cannot be asked over TLS: a file for it is not usable", "Check SSLKEYLOGFILE and SSL_CERT_FILE."
    if isinstance(error, TimeoutError):
        return f"did not answer within {CONNECT_TIMEOUT:.0f} s", online
    return "refuses the connection", "Check XIAOBAI_SUPABASE_URL, and that the project is not paused."


async def _check_redaction_rules(events: EventLog, redactor: Redactor) -> HealthCheck:
    if not await needs_rescan(events, redactor):
        return HealthCheck("redaction", ok=True, found="the log was read under the current rules")
    hint = "xiaobai-memory redact --log shows what they would find in it; --apply corrects it."
    return HealthCheck("redaction", ok=None, found="the rules have changed since the log was last read", hint=hint)


async def _check_document(document: MemoryFile) -> HealthCheck:
    notices = await document.preview_notices()
    if not notices:
        return HealthCheck("document", ok=True, found="file and log agree")
    hint = "docs/operations.md explains each warning."
    if notices & RESOLVABLE:
        hint = f"Answer with `xiaobai-memory resolve accept` or `resolve restore`. {hint}"
    return HealthCheck(
        "document", ok=None if notices <= VERSION_NOTICES else False, found=", ".join(sorted(notices)), hint=hint
    )


async def _check_log(events: EventLog) -> HealthCheck:
    """The findings of `events verify`."""
    hint = "`xiaobai-memory events verify` names the events. Keep a copy of the database before you change anything."
    problems = await events.find_problems()
    found = "; ".join(f"{problem.what} ({problem.count})" for problem in problems)
    return HealthCheck(
        "log", ok=not problems, found=found or "every event is what its index says", hint=hint if found else ""
    )


async def _check_outbox(events: EventLog) -> HealthCheck:
    outbox = await user_visible_outbox(events)
    waiting = f"{outbox.pending} events wait" if events.has_cloud else "no cloud: nothing to send"
    found = f"{waiting}, {outbox.quarantined} set aside"
    hint = "The server refuses these events: `xiaobai-memory quarantine list`."
    return HealthCheck("outbox", ok=outbox.quarantined == 0, found=found, hint=hint)


async def _check_clock(replicator: Replicator, clock: Clock, *, synced_now: bool) -> HealthCheck:
    """Compare this clock with the server's: exactly if the server has just answered, else only whether it is behind."""
    synced_at = (await replicator.status()).cursor.synced_at
    if synced_at is None:
        return HealthCheck("clock", ok=None, found="no server has told its time yet")
    ahead = (clock.now() - datetime.fromisoformat(synced_at)).total_seconds()
    off = abs(ahead) if synced_now else max(0.0, -ahead)
    if off <= MAX_CLOCK_SKEW_SECONDS:
        return HealthCheck(
            "clock", ok=True, found="agrees with the server's" if synced_now else "not behind the last sync"
        )
    side = "ahead of" if ahead > 0 else "behind"
    hint = "Set this machine's clock (automatic time); logins fail and the order of memories suffers."
    return HealthCheck("clock", ok=False, found=f"{off / 60:.0f} minutes {side} the server's", hint=hint)
