"""The files in `hooks/` of the data directory: which events were seen, when each hook ran, the log. Small and private.

Hooks of one session run at the same time. A claim appends a line with a word of its own and reads the file again: the
first of equal lines has the claim. The ledger holds hashes only.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER: Final = "hooks"
LEDGER: Final = "ledger"
LOG: Final = "hooks.log"
RUNS: Final = "runs"  # one empty file for each host and event; its time is that of the last run
MAX_BYTES: Final = 128 * 1024  # of the ledger and of the log; then a new one begins and one old one is kept
REPEAT_SECONDS: Final = 2.0  # within which the same event is a repeat


def hooks_folder(data_dir: Path) -> Path:
    return data_dir / FOLDER


def claim(folder: Path, *words: str, now: float, within: float | None = None) -> bool:
    """Whether this is the first claim of these words; with `within`, the first for so many seconds up to `now`."""
    key = hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:24]
    own = secrets.token_hex(6)
    _append(folder, LEDGER, f"{now:.3f} {key} {own}\n")
    for line_key, at, word in _ledger_lines(folder):
        if line_key == key and (within is None or abs(now - at) <= within):
            return word == own
    return True


def note_run(folder: Path, host: str, event: str) -> None:
    runs = folder / RUNS
    folder.mkdir(mode=0o700, exist_ok=True)
    runs.mkdir(mode=0o700, exist_ok=True)
    path = runs / f"{host}.{event}"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    os.utime(path)


def last_runs(folder: Path) -> dict[str, float]:
    """Host and event, as in `claude.PostToolUse`, with the time of the last run in seconds since 1970."""
    try:
        return {path.name: path.stat().st_mtime for path in sorted((folder / RUNS).iterdir())}
    except OSError:
        return {}


def log_line(folder: Path, message: str) -> None:
    """One line in the log. Ids, counts and codes only, never content."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime())
    _append(folder, LOG, f"{stamp} {message}\n")


def _append(folder: Path, name: str, line: str) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)  # without a data directory there is no memory
    path = folder / name
    flags = os.O_CREAT | os.O_APPEND | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if size := os.fstat(descriptor).st_size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            line = line if os.read(descriptor, 1) == b"\n" else f"\n{line}"  # a power cut left half a line
        os.write(descriptor, line.encode())
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size > MAX_BYTES:
        with suppress(FileNotFoundError, PermissionError):  # another hook was first, or has the file open
            path.replace(path.with_name(f"{name}.old"))


def _ledger_lines(folder: Path) -> Iterator[tuple[str, float, str]]:
    for name in (f"{LEDGER}.old", LEDGER):
        try:
            text = (folder / name).read_text("ascii", "replace")
        except OSError:
            continue
        for line in text.split("\n"):
            parts = line.split(" ")
            if len(parts) == 3:
                with suppress(ValueError):  # half a line
                    yield parts[1], float(parts[0]), parts[2]
