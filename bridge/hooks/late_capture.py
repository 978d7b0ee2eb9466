"""Record a tool call of an agent when no sidecar runs: a process of its own, so that the hook does not wait for it.

The call comes on standard input, because it is not redacted yet: it is in no file and on no command line.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bridge.hooks import hook_files

TIMEOUT: Final = 30.0  # seconds, also of waiting for a busy database
KEPT_FIELDS: Final = frozenset({"tool", "output", "error", "exitCode", "project", "sessionId"})
KEPT_INPUT_FIELDS: Final = frozenset(  # what `sync.lessons.commands` reads of the input
    {"command", "cmd", "command_line", "file_path", "path", "filePath", "target_file", "notebook_path"}
)


def start(data_dir: Path, params: Mapping[str, Any]) -> None:
    """Start the process and give it the parameters of `lessons/capture`. Raises OSError."""
    call = {name: value for name, value in params.items() if name in KEPT_FIELDS}
    call["input"] = {name: value for name, value in (params.get("input") or {}).items() if name in KEPT_INPUT_FIELDS}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __spec__.name, str(data_dir)],  # -P: nothing from the project's folder
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the host may end the hook's group
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(json.dumps(call, ensure_ascii=False).encode("utf-8", "replace"))
    process.returncode = 0  # it is not waited for, and Python need not warn of that


def main(data_dir: str) -> None:
    """Read one call and record it. What fails is one line of the log."""
    import asyncio  # noqa: PLC0415 - the hook imports this module too

    try:
        params = json.loads(sys.stdin.buffer.read())
        asyncio.run(asyncio.wait_for(_capture(data_dir, params), TIMEOUT))
    except Exception as error:  # noqa: BLE001 - the process has no caller
        with suppress(Exception):
            hook_files.log_line(hook_files.hooks_folder(Path(data_dir)), f"capture dropped: {type(error).__name__}")


async def _capture(data_dir: str, params: Mapping[str, Any]) -> None:
    from bridge.cli.app_runner import call_in_app  # noqa: PLC0415 - likewise
    from sync.open_app import AppMode, open_app  # noqa: PLC0415
    from sync.settings.settings import Settings  # noqa: PLC0415

    async with open_app(Settings.from_sources(data_dir=data_dir), AppMode.GUEST) as app:
        await call_in_app(app, "lessons/capture", params)


if __name__ == "__main__":
    main(sys.argv[1])
