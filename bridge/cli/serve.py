"""`serve`: the sidecar on standard input and output."""

import asyncio
import logging
import logging.handlers
import os
from contextlib import AbstractAsyncContextManager
from typing import Final

import typer

from bridge.cli.running import Invocation, fail
from bridge.methods.registry import TABLE
from bridge.methods.table import Notify
from bridge.rpc.descriptors import claim
from bridge.rpc.stdio import serve
from sync.app import App, Role, open_app
from sync.errors import XiaobaiError
from sync.files import make_private_folder
from sync.settings import Settings

LOG_BYTES: Final = 2 * 1024 * 1024
LOG_FILES: Final = 3


def serve_command(context: typer.Context) -> None:
    """Serve JSON-RPC on standard input and output until the client leaves."""
    descriptors = claim()  # before anything else can print
    try:
        settings = Settings.gather(**context.ensure_object(Invocation).flags)
        log_to_stderr_and_file(settings)
        code = asyncio.run(_serve(settings, descriptors))
    except (XiaobaiError, BaseExceptionGroup) as error:
        fail(error, as_json=False)
    raise SystemExit(code)


async def _serve(settings: Settings, descriptors: tuple[int, int]) -> int:
    def opening(notify: Notify) -> AbstractAsyncContextManager[App]:
        del notify  # notifications come with the methods that need them
        return open_app(settings, Role.SIDECAR)

    return await serve(TABLE, opening, descriptors=descriptors)


def log_to_stderr_and_file(settings: Settings) -> None:
    """Ids, counts, sizes and codes, never content; the file is private from birth and stays small."""
    folder = settings.data_dir / "logs"
    make_private_folder(settings.data_dir)
    make_private_folder(folder)
    path = folder / "sidecar.log"
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    before = os.umask(0o077)  # rotation makes new files
    os.umask(before | 0o077)
    file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    logging.basicConfig(
        level=settings.log_level,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        handlers=[logging.StreamHandler(), file],
    )
