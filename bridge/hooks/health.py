"""The check of the hooks for `doctor`."""

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path

from bridge.hooks import hook_files, installer
from bridge.hooks.hosts import HOSTS
from sync.errors import StorageError
from sync.startup.checks import HealthCheck


def check_hooks(data_dir: Path, home: Path, environment: Mapping[str, str] = os.environ) -> HealthCheck:
    """Where hooks are installed for this user, and when each last ran. Reads files; raises nothing."""
    installed, unreadable = [], []
    for host in HOSTS.values():
        file = installer.settings_file(host, home, environment, None)
        try:
            if installer.installed_commands(file):
                installed.append(host.title)
        except (ValueError, RecursionError, StorageError):
            unreadable.append(str(file.path))
    runs = [
        f"{name} {dt.datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
        for name, at in hook_files.last_runs(hook_files.hooks_folder(data_dir)).items()
    ]
    if unreadable:
        return HealthCheck(
            "hooks", ok=None, found=f"not readable: {', '.join(unreadable)}", hint=installer.COMMENT_HINT
        )
    if not installed:
        return HealthCheck("hooks", ok=None, found="not installed", hint="`xiaobai-memory hooks install` adds them.")
    last = "; last runs: " + ", ".join(runs) if runs else "; none has run yet"
    return HealthCheck("hooks", ok=True, found=", ".join(installed) + last)
