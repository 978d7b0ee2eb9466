"""What the local cloud needs from the machine, and how to get it."""

import hashlib
import os
import pwd
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HERE = Path(__file__).parent
SERVER = HERE / "server"
MIGRATIONS = HERE.parents[1] / "sql" / "migrations"
LOOPBACK = "127.0.0.1"


class LocalCloudError(Exception):
    """The local cloud cannot run as requested; the message says what to do."""


def node() -> Path:
    """Node.js and the packages that it needs."""
    found = shutil.which("node")
    if found is None:
        raise LocalCloudError("Node.js (20 or newer) is not on PATH. Install it, then run `make setup`.")
    if not (HERE / "node_modules" / "@supabase" / "lite" / "package.json").is_file():
        raise LocalCloudError("tests/cloud/node_modules is missing or incomplete. Run `make setup`.")
    return Path(found)


@dataclass(frozen=True)
class Account:
    """The account that runs PostgreSQL, which refuses to run as root."""

    uid: int
    gid: int

    def may_run(self, program: Path) -> bool:
        """Whether other accounts may execute it, which they may not below a private home directory."""
        program = program.resolve()
        everyone = stat.S_IXOTH
        return all(path.stat().st_mode & everyone for path in (program, *program.parents))


def unprivileged_account() -> Account | None:
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def cache_directory() -> Path:
    """Where prepared data directories are kept between runs; an unprivileged child can reach it."""
    directory = Path("/var/tmp/xiaobai-local-cloud-root") if os.geteuid() == 0 else _user_cache()
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise LocalCloudError(f"{directory} belongs to somebody else or is writable for others. Remove it.")
    return directory


def _user_cache() -> Path:
    return Path(platformdirs.user_cache_dir("xiaobai-local-cloud", appauthor=False))


def fingerprint() -> str:
    """A hash of everything that a prepared data directory depends on."""
    digest = hashlib.sha256()
    makers = [HERE / name for name in ("package-lock.json", "database/postgres.py", "database/pglite.py")]
    for path in (*sorted(SERVER.iterdir()), *makers):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def scratch_directory(account: Account | None = None, *, below: Path | None = None) -> Iterator[Path]:
    """A temporary directory that the account owns; gone at the end, unless it was moved away."""
    directory = Path(tempfile.mkdtemp(prefix="xiaobai-cloud-", dir=below))
    if account is not None:
        os.chown(directory, account.uid, account.gid)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def free_port() -> int:
    """A port that was free a moment ago; the caller must be ready to retry."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)
