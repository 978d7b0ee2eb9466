"""Write the hooks into the hosts' settings files, and take them out again.

What a file held before is kept in `hooks/backups` of the data directory; a removal brings it back byte for byte if the
file is what was written. If another program changed it meanwhile, only the entries of ours are taken out.
"""

import codecs
import difflib
import json
import os
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from bridge.hooks import hook_files, hook_settings
from bridge.hooks.event import AgentHost
from sync.errors import StorageError
from sync.system.digests import sha256
from sync.system.files import (
    make_private_folder,
    read_once,
    remove_private,
    replace_with_retry,
    resolve_target,
    translate_os_errors,
    write_private,
    write_temporary,
)

RECORD: Final = "installed.json"
BACKUPS: Final = "backups"
COMMENT_HINT: Final = "The file must be JSON without comments or trailing commas. Correct it and run this again."

Action = Literal["install", "remove"]
Outcome = Literal["installed", "removed", "unchanged", "not_found", "refused"]


@dataclass(frozen=True, slots=True)
class HookFile:
    """A settings file of a host. `is_project`: it lies in a project and not in the user's home."""

    host: AgentHost
    path: Path
    is_project: bool

    @property
    def is_host_present(self) -> bool:
        return self.is_project or self.path.parent.is_dir()


@dataclass(frozen=True, slots=True)
class FileChange:
    """What was done with a file, or would be: `diff` shows it. `problem`: why it was refused."""

    file: HookFile
    outcome: Outcome
    diff: str = ""
    problem: str = ""


def hook_command(data_dir: Path, default_data_dir: Path) -> str:
    """The command that every settings file holds: the same text, so that a host that reads two files runs it once."""
    program = "xiaobai-memory"
    if shutil.which(program) is None:
        beside = Path(sys.executable).with_name(program)
        program = _quoted(str(beside)) if beside.exists() else f"{_quoted(sys.executable)} -m bridge.cli.main"
    return f"{program} hook" if data_dir == default_data_dir else f"{program} --data-dir {_quoted(str(data_dir))} hook"


def settings_file(host: AgentHost, home: Path, environment: Mapping[str, str], project: Path | None) -> HookFile:
    if project is not None:
        return HookFile(host, project / host.project_file, is_project=True)
    return HookFile(host, host.user_file(home, environment), is_project=False)


def change_file(file: HookFile, action: Action, command: str, data_dir: Path, *, dry_run: bool) -> FileChange:
    """Install or remove. A file that cannot be read as JSON is refused and stays as it is. Raises StorageError."""
    if not file.is_host_present:
        return FileChange(file, "not_found", problem=f"there is no folder {file.path.parent}")
    target = resolve_target(file.path)
    found = read_once(target)
    before = None if found is None else found.data
    try:
        base = _before_installation(before, target, data_dir)
        after = base if action == "remove" else _installed(base, file.host, command)
    except (ValueError, RecursionError) as error:
        return FileChange(file, "refused", problem=f"{file.path}: {_reason(error)}")
    if after == before:
        return FileChange(file, "unchanged")
    change = FileChange(file, "installed" if action == "install" else "removed", _diff(file.path, before, after))
    if not dry_run:
        _write(file, target, before, after, data_dir)
        _note_written(file, target, after if action == "install" else None, base, data_dir)
    return change


def installed_commands(file: HookFile) -> dict[str, list[str]]:
    """The commands of ours in a file, by event. Raises ValueError, StorageError."""
    found = read_once(resolve_target(file.path))
    return {} if found is None or not found.data.strip() else hook_settings.own_commands(_decode(found.data)[1])


def _before_installation(data: bytes | None, target: Path, data_dir: Path) -> bytes | None:
    """The file without the hooks: what was there before, if it is still what was written, else without our entries."""
    if data is None:
        return None
    entry = _record(data_dir).get(str(target))
    if entry is not None and entry.get("written") == sha256(data):
        if entry.get("backup") is None:
            return None
        backup = read_once(hook_files.hooks_folder(data_dir) / BACKUPS / str(entry["backup"]))
        if backup is not None and backup.sha256 == entry.get("original"):
            return backup.data
    if not data.strip():
        return data
    mark, text = _decode(data)
    return mark + hook_settings.without_hooks(text).encode()


def _installed(base: bytes | None, host: AgentHost, command: str) -> bytes:
    mark, text = _decode(base or b"")
    return mark + hook_settings.with_hooks(text, host.entries(command), host.settings).encode()


def _write(file: HookFile, target: Path, before: bytes | None, after: bytes | None, data_dir: Path) -> None:
    """Replace the file, unless another program has changed it since it was read."""
    folder = hook_files.hooks_folder(data_dir)
    make_private_folder(folder)
    if before is not None:
        _keep_backup(folder, file, before)
    now = read_once(target)
    if (None if now is None else now.data) != before:
        raise StorageError(f"{file.path} changed meanwhile", hint="Run the command again.")
    if after is None:
        remove_private(target)
    else:
        with translate_os_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = stat.S_IMODE(target.stat().st_mode) if before is not None else 0o644 if file.is_project else 0o600
            replace_with_retry(write_temporary(target, after, mode), target)


def _note_written(file: HookFile, target: Path, written: bytes | None, base: bytes | None, data_dir: Path) -> None:
    """Record what a file holds with the hooks, and what it was without them; None for no file."""
    folder = hook_files.hooks_folder(data_dir)
    record = _record(data_dir)
    record.pop(str(target), None)
    if written is not None:
        original = None if base is None else _keep_backup(folder, file, base)
        sums = {"written": sha256(written), "backup": original, "original": None if base is None else sha256(base)}
        record[str(target)] = sums
    write_private(folder / RECORD, json.dumps(record, indent=1).encode())


def _keep_backup(folder: Path, file: HookFile, data: bytes) -> str:
    """Keep a file's content under its checksum; the name of the copy."""
    make_private_folder(folder / BACKUPS)
    day = time.strftime("%Y%m%d")
    name = f"{file.host.name}-{day}-{sha256(data)[:16]}.json"
    write_private(folder / BACKUPS / name, data)
    return name


def _record(data_dir: Path) -> dict[str, Any]:
    """What was written to which file; empty if it cannot be read."""
    found = read_once(hook_files.hooks_folder(data_dir) / RECORD)
    try:
        record = json.loads(found.data) if found is not None else {}
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _decode(data: bytes) -> tuple[bytes, str]:
    """The byte order mark and the text. ValueError if it is not UTF-8."""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return mark, data[len(mark) :].decode()


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON (line {error.lineno}, column {error.colno})"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _diff(path: Path, before: bytes | None, after: bytes | None) -> str:
    old, new = ((data or b"").decode(errors="replace").splitlines(keepends=True) for data in (before, after))
    return "".join(
        line if line.endswith("\n") else f"{line}\n" for line in difflib.unified_diff(old, new, str(path), str(path))
    )


def _quoted(word: str) -> str:
    if os.name != "nt":
        return shlex.quote(word)
    word = word.replace("\\", "/")
    return f'"{word}"' if " " in word else word
