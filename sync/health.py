"""`doctor`: everything a person can break, looked at without changing it, and what to do about each.

`around()` needs only the settings, so it answers also where the program cannot start: permissions, file, database,
key, address. `within()` asks an open program what only that knows: login, server, clock, quarantine, lost lines.
Findings name paths, sizes, codes and counts; never content, a token or a key.
"""

import asyncio
import contextlib
import os
import platform
import shlex
import shutil
import socket
import sqlite3
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sync.clock import Clock
from sync.cloud.account import Account
from sync.cloud.replicator import Replicator
from sync.cloud.tokens import FileTokenStore, open_token_store
from sync.db.migrate import APPLICATION_ID, known
from sync.document.app_cache import read_content
from sync.document.memory_file import MemoryFile
from sync.document.parse import parse
from sync.document.remarks import ANSWERED, LASTING
from sync.document.rescan import is_behind
from sync.document.watcher import Watcher
from sync.errors import AlreadyRunning, DocumentUntouchable, StorageError, XiaobaiError
from sync.files import probe, real_target
from sync.log.log import Log, to_be_sent
from sync.profiles import Profile, known_installation, sidecar_pid, take_sidecar_role
from sync.redaction import Redactor
from sync.settings import CONFIG_FILE, PREFIX, Settings, key_kind
from sync.signals import Signal
from sync.vault import begun, mark
from sync.vault.access import raised
from sync.vault.vault import Vault

LITTLE_SPACE: Final = 100 * 1024 * 1024  # bytes; below it a database with its log may fail any day
CLOCK_MAY_DIFFER: Final = 300.0  # seconds; tokens and the order of events bear less than that without a thought
REACHED_WITHIN: Final = 5.0  # seconds for a connection; a slower network is told as such
READ_WITHIN: Final = 5.0  # seconds to wait for a writer
SHOWN: Final = 5  # paths named in one finding


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `ok` is None where there is nothing to judge (no cloud is set); `hint` is what to do if False."""

    name: str
    ok: bool | None
    found: str
    hint: str = ""


async def around(settings: Settings, *, serving: bool) -> list[Check]:
    """What can be seen from outside. `serving`: this very process holds the sidecar role."""
    config = settings.data_dir / CONFIG_FILE
    found = str(config) if config.exists() else f"no {config}: the environment and the defaults"
    checks = [program(), Check("settings", ok=True, found=found)]
    checks.append(_space("data folder", settings.data_dir, "DATA_DIR"))
    checks += [_space("event files", settings.tree_base, "EVENTS_DIR"), _private(settings)]
    checks += await asyncio.to_thread(_databases, settings)
    checks.append(_sidecar(settings, serving))
    checks += [_file(settings.memory_file), await _watcher(settings.memory_file)]
    if settings.app_db is not None:
        checks.append(await _app_cache(settings.app_db))
    checks.append(await asyncio.to_thread(_tokens, settings))
    return [*checks, _key(settings), await _address(settings)]


async def within(
    document: MemoryFile,
    events: Log,
    account: Account,
    replicator: Replicator | None,
    clock: Clock,
    redactor: Redactor,
) -> list[Check]:
    """What an open program knows. Asks the server for one round where somebody is logged in."""
    checks = [await _document(document), await _log(events), await _quarantine(events), await _rules(events, redactor)]
    state = await account.state()
    if replicator is None or state.state != "logged_in":
        hint = "" if replicator is None else "xiaobai-memory login"
        return [*checks, Check("login", ok=None, found=state.state.replace("_", " "), hint=hint)]
    checks.append(Check("login", ok=True, found=state.label or state.user_id or "logged in"))
    try:
        await replicator.sync_now()
    except XiaobaiError as error:
        checks.append(Check("cloud", ok=False, found=f"{error.kind}: {error.message}", hint=error.hint))
        return [*checks, await _clock(replicator, clock, asked_now=False)]
    cursor = (await replicator.status()).cursor
    checks.append(Check("cloud", ok=True, found=f"level at {cursor.seq}"))
    return [*checks, await _clock(replicator, clock, asked_now=True)]


def program() -> Check:
    found = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}"
    return Check("program", ok=True, found=found)


# --- this machine ------------------------------------------------------------------------------------------


def _space(name: str, folder: Path, setting: str) -> Check:
    """A folder can be written, or made, and has room."""
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not (os.access(there, os.W_OK | os.X_OK) and there.is_dir()):
        hint = f"Set {PREFIX}{setting} to another folder, or give this user write permission to this one."
        return Check(name, ok=False, found=f"{there} is no folder that can be written to", hint=hint)
    free = shutil.disk_usage(there).free
    found = f"{there}: {free // (1024 * 1024)} MiB free"
    return Check(name, ok=free >= LITTLE_SPACE, found=found, hint="Free some disk space.")


def _private(settings: Settings) -> Check:
    if os.name != "posix":
        return Check("permissions", ok=None, found="kept by the user's own profile folder")
    open_to_others = [path for path in _ours(settings) if path.lstat().st_mode & 0o077 and not path.is_symlink()]
    links = [f"{path} is a link to {real_target(path)}" for path in _ours(settings) if path.is_symlink()]
    if not open_to_others:
        if links:
            hint = "Check that you made these links; what is remembered lies there."
            return Check("permissions", ok=None, found=", ".join(links[:SHOWN]), hint=hint)
        return Check("permissions", ok=True, found="only this user can read database, session and logs")
    shown = [f"{path} ({path.stat().st_mode & 0o777:o})" for path in open_to_others[:SHOWN]]
    folders = {str(settings.data_dir), str(settings.events_dir)} & {str(path) for path in open_to_others}
    hint = f"chmod -R go= {' '.join(map(shlex.quote, sorted(folders or {str(settings.data_dir)})))}"
    return Check("permissions", ok=False, found=f"others may enter or read: {', '.join(shown)}", hint=hint)


def _ours(settings: Settings) -> Iterator[Path]:
    """The folders and files that only this user may read."""
    folder = settings.data_dir
    candidates = [
        folder,
        *filter(None, [settings.events_dir]),
        folder / "profiles",
        folder / "logs",
        *folder.glob("logs/*"),
    ]
    candidates += [*folder.glob("profiles/*"), *folder.glob("profiles/*/*")]
    return (path for path in candidates if path.exists())


def _databases(settings: Settings) -> list[Check]:
    installation = known_installation(settings.data_dir)
    profile = Profile.of(settings.data_dir, installation) if installation else None
    if profile is None or not (profile.database.exists() or begun.is_emptied(profile.database)):
        return [Check("database", ok=None, found="not there yet; the first command makes it")]
    vault = Vault.of(settings)
    return [_database(profile.database, vault), _encryption(profile, vault)]


def _database(path: Path, vault: Vault) -> Check:
    hint = "Start the sidecar: it keeps the damaged file, saves what can be read and fetches the rest from the cloud."
    try:
        with vault.reading(path, READ_WITHIN) as connection:
            mark, version, verdict = (
                connection.execute(f"pragma {name}").fetchone()[0]
                for name in ("application_id", "user_version", "quick_check")
            )
    except raised("Error") as error:
        return Check("database", ok=False, found=f"{path}: {error}", hint=hint)
    except XiaobaiError as error:  # no key, no driver
        return Check("database", ok=False, found=error.message, hint=error.hint)
    newest = known()[-1].version
    if mark != APPLICATION_ID:
        return Check("database", ok=False, found=f"{path} belongs to another program", hint="Move it aside.")
    if verdict != "ok":
        return Check("database", ok=False, found=f"{path} is damaged: {str(verdict)[:120]}", hint=hint)
    if version > newest:
        found = f"{path} has schema {version}, this program knows {newest}"
        return Check("database", ok=False, found=found, hint="Update xiaobai-memory on this machine.")
    return Check("database", ok=True, found=f"{path}, schema {version}")


def _encryption(profile: Profile, vault: Vault) -> Check:
    """Which profiles' databases are encrypted, and whether their keys are there; no key is shown."""
    databases = [one.database for one in (profile, *profile.others()) if one.database.exists()]
    marked = [path for path in databases if mark.is_set(path)]
    if not vault.encrypts and not marked:
        return Check("encryption", ok=None, found="off: the databases are plain files")
    found = f"{len(marked)} of {len(databases)} databases are encrypted"
    try:
        for path in databases:
            vault.access(path)
    except XiaobaiError as error:
        return Check("encryption", ok=False, found=f"{found}; {error.message}", hint=error.hint)
    if vault.encrypts is not mark.is_set(profile.database):
        to_do = "encrypts" if vault.encrypts else "decrypts"
        return Check("encryption", ok=None, found=f"{found}; the next start of the sidecar {to_do} that in use")
    places = sorted({vault.place_of_key(path) for path in marked})
    return Check("encryption", ok=True, found=f"{found}; the keys are there ({', '.join(places)})")


def _sidecar(settings: Settings, serving: bool) -> Check:
    if serving:
        return Check("sidecar", ok=True, found=f"this process ({os.getpid()})")
    if not (settings.data_dir / "sidecar.lock").exists():
        return Check("sidecar", ok=True, found="none is running")
    try:
        take_sidecar_role(settings.data_dir, patience=0.0).release()
    except AlreadyRunning:
        pid = sidecar_pid(settings.data_dir)
        who = "another process" if pid is None else f"process {pid}"
        return Check("sidecar", ok=True, found=f"{who} serves this memory; there can be only one")
    except StorageError as error:
        return Check("sidecar", ok=False, found=error.message, hint=error.hint)
    return Check("sidecar", ok=True, found="none is running")


def _file(path: Path) -> Check:
    """The memory file can be read, understood and replaced."""
    folder = real_target(path).parent
    if not folder.is_dir():
        hint = "Make that folder, or set XIAOBAI_MEMORY_FILE to another place."
        return Check("file", ok=False, found=f"there is no folder {folder}", hint=hint)
    if path.is_dir():
        return Check("file", ok=False, found=f"{path} is a folder", hint="Set XIAOBAI_MEMORY_FILE to a file.")
    if not os.access(folder, os.W_OK):
        hint = f"Give this user write permission to {folder}: the file is written beside and put in its place."
        return Check("file", ok=False, found=f"{folder} is not writable", hint=hint)
    try:
        found = probe(path)
        document = parse(found.data) if found else None
    except (StorageError, DocumentUntouchable) as error:
        return Check("file", ok=False, found=f"{path}: {error.message}", hint=error.hint)
    if found is None or document is None:
        return Check("file", ok=True, found=f"{path} is not there yet")
    if document.encoding != "utf-8":
        hint = "It is read and kept as it is; save it as UTF-8 if other programs show it wrongly."
        return Check("file", ok=True, found=f"{path}, {document.encoding}", hint=hint)
    return Check("file", ok=True, found=f"{path}, {found.size} bytes")


async def _watcher(path: Path) -> Check:
    watcher = Watcher(path, Signal())
    try:
        watcher.renew()
        if watcher.alive:
            return Check("watcher", ok=True, found=f"{path.parent} can be watched")
    finally:
        await asyncio.to_thread(watcher.stop)
    hint = "Raise fs.inotify.max_user_watches, or put the file on a local disk; until then it is polled."
    return Check("watcher", ok=False, found=f"{path.parent} cannot be watched", hint=hint)


async def _app_cache(path: Path) -> Check:
    hint = "Set XIAOBAI_APP_DB to the app's own SQLite file, or unset it."
    try:
        content = await read_content(path)
    except StorageError as error:
        return Check("app cache", ok=False, found=f"{path}: {error.message}", hint=hint)
    if content is None:
        return Check("app cache", ok=None, found=f"{path} holds no memory yet", hint=hint)
    return Check("app cache", ok=True, found=f"{path}, {len(content)} bytes")


def _tokens(settings: Settings) -> Check:
    if settings.supabase_url is None:
        return Check("session store", ok=None, found="not needed without a cloud")
    installation = known_installation(settings.data_dir)
    if installation is None:
        return Check("session store", ok=None, found="nothing is set up yet")
    profile = Profile.of(settings.data_dir, installation)
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    try:
        store = open_token_store(profile.tokens, profile.folder.name, prefer_file=prefer_file)
        store.load()
    except StorageError as error:
        return Check("session store", ok=False, found=error.message, hint=error.hint)
    in_a_file = isinstance(store, FileTokenStore)
    place = "a file that only this user can read" if in_a_file else "the keychain of the operating system"
    return Check("session store", ok=True, found=place)


# --- the cloud ---------------------------------------------------------------------------------------------


def _key(settings: Settings) -> Check:
    if settings.supabase_key is None:
        return Check("key", ok=None, found="no Supabase project is set; everything works locally")
    kind = key_kind(settings.supabase_key.reveal())
    if kind == "publishable":
        return Check("key", ok=True, found="a publishable key")
    if kind == "anon":
        hint = "It works; Supabase replaces these keys by publishable ones (Settings, API keys)."
        return Check("key", ok=True, found="a legacy anon key", hint=hint)
    hint = "Copy the publishable key (sb_publishable_…) from the project's settings, API keys."
    return Check("key", ok=False, found="neither a publishable nor an anon key", hint=hint)


async def _address(settings: Settings) -> Check:
    """A connection to the project, TLS included, on which nothing is said: no request leaves without a token."""
    if settings.supabase_url is None:
        return Check("address", ok=None, found="no Supabase project is set")
    parts = urlsplit(settings.supabase_url)
    secure = parts.scheme == "https"
    from urllib.request import getproxies  # noqa: PLC0415 - 20 ms that a start need not spend

    from sync.cloud.proxy import proxy_of  # noqa: PLC0415 - imports the same

    if proxy_of(settings.supabase_url, getproxies()) is not None:
        return Check("address", ok=None, found="a proxy is set for this system; the next sync tells")
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(REACHED_WITHIN):
            _, writer = await asyncio.open_connection(host, port, ssl=secure or None)
    except (OSError, TimeoutError) as error:
        what, hint = _unreached(error)
        return Check("address", ok=False, found=f"{host}:{port} {what}", hint=hint)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Check("address", ok=True, found=f"{host}:{port} answers")


def _unreached(error: OSError) -> tuple[str, str]:
    online = "Check the network; until it answers everything is kept on this device."
    if isinstance(error, socket.gaierror):
        return "is not a known name", "Check XIAOBAI_SUPABASE_URL and the network's name service."
    if isinstance(error, ssl.SSLError):
        hint = "Check the clock, SSL_CERT_FILE, and for a captive portal or proxy."
        return "shows a certificate this machine does not trust", hint
    if error.filename is not None:  # no connection has one
        return "cannot be asked over TLS: a file for it is not usable", "Check SSLKEYLOGFILE and SSL_CERT_FILE."
    if isinstance(error, TimeoutError):
        return f"did not answer within {REACHED_WITHIN:.0f} s", online
    return "refuses the connection", "Check XIAOBAI_SUPABASE_URL, and that the project is not paused."


async def _rules(events: Log, redactor: Redactor) -> Check:
    if not await is_behind(events, redactor):
        return Check("redaction", ok=True, found="the log was read under the rules of today")
    hint = "xiaobai-memory redact --log shows what they would find in it; --apply corrects it."
    return Check("redaction", ok=None, found="the rules have changed since the log was last read", hint=hint)


async def _document(document: MemoryFile) -> Check:
    try:
        notices = await document.doubts()
    except StorageError as error:
        return Check("document", ok=False, found=error.message, hint=error.hint)
    if not notices:
        return Check("document", ok=True, found="file and log agree")
    hint = "The README explains each warning."
    if notices & ANSWERED:
        hint = f"Answer with `xiaobai-memory resolve accept` or `resolve restore`. {hint}"
    return Check("document", ok=None if notices <= LASTING else False, found=", ".join(sorted(notices)), hint=hint)


async def _log(events: Log) -> Check:
    """What `events verify` sees."""
    hint = "`xiaobai-memory events verify` names the events. Keep a copy of the database before you change anything."
    try:
        problems = await events.verify()
    except StorageError as error:
        return Check("log", ok=False, found=error.message, hint=error.hint)
    found = "; ".join(f"{problem.what} ({problem.count})" for problem in problems)
    return Check(
        "log", ok=not problems, found=found or "every event is what its index says", hint=hint if found else ""
    )


async def _quarantine(events: Log) -> Check:
    outbox = await to_be_sent(events)
    waiting = f"{outbox.pending} events wait" if events.has_cloud else "no cloud: nothing to send"
    found = f"{waiting}, {outbox.quarantined} set aside"
    hint = "The server refuses these events: `xiaobai-memory quarantine list`."
    return Check("outbox", ok=outbox.quarantined == 0, found=found, hint=hint)


async def _clock(replicator: Replicator, clock: Clock, *, asked_now: bool) -> Check:
    """This clock against the server's: exactly where the server has answered just now, else only whether it is late."""
    told = (await replicator.status()).cursor.synced_at
    if told is None:
        return Check("clock", ok=None, found="no server has told its time yet")
    ahead = (clock.now() - datetime.fromisoformat(told)).total_seconds()
    off = abs(ahead) if asked_now else max(0.0, -ahead)
    if off <= CLOCK_MAY_DIFFER:
        return Check("clock", ok=True, found="agrees with the server's" if asked_now else "not behind the last sync")
    side = "ahead of" if ahead > 0 else "behind"
    hint = "Set this machine's clock (automatic time); logins fail and the order of memories suffers."
    return Check("clock", ok=False, found=f"{off / 60:.0f} minutes {side} the server's", hint=hint)
