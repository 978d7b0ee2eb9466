"""python -m tests.cloud: a local Supabase until standard input closes, or SIGTERM or SIGINT comes.

Standard output carries one JSON line when everything is ready; everything else goes to standard error.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cloud.local_cloud import JWT_EXPIRY, LocalCloud
from tests.cloud.prerequisites import MIGRATIONS, LocalCloudError
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.cloud.proxy.http_control import ProxyHttpControl


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cloud", description=__doc__)
    parser.add_argument("--engine", choices=["postgres", "pglite"], default="postgres")
    parser.add_argument("--migrations", type=Path, default=MIGRATIONS, metavar="DIR")
    parser.add_argument("--jwt-expiry", type=int, default=JWT_EXPIRY, metavar="SECONDS")
    parser.add_argument("--grants", choices=["classic", "explicit"], default="classic")
    parser.add_argument("--proxy", action="store_true", help="put a fault proxy before the API; `control` commands it")
    return parser.parse_args()


async def run(arguments: argparse.Namespace) -> None:
    ended = _wait_for_end()
    async with AsyncExitStack() as stack:
        cloud = await stack.enter_async_context(
            LocalCloud.start(
                arguments.engine,
                migrations=arguments.migrations,
                jwt_expiry=arguments.jwt_expiry,
                grants=arguments.grants,
            )
        )
        ready: dict[str, Any] = {
            "url": cloud.url,
            "publishable_key": cloud.publishable_key,
            "secret_key": cloud.secret_key,
            "jwt_secret": cloud.jwt_secret,
            "database_url": cloud.database_url,
            "pids": cloud.pids,
        }
        if arguments.proxy:
            behind = urlsplit(cloud.url)
            proxy = await stack.enter_async_context(FaultProxy(str(behind.hostname), behind.port or 0))
            control = await stack.enter_async_context(ProxyHttpControl(proxy))
            ready |= {"url": proxy.url, "control": control.url}
        print(json.dumps(ready), flush=True)
        await ended.wait()


def _wait_for_end() -> asyncio.Event:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)

    def watch_input() -> None:
        """In a thread, because an event loop cannot watch every kind of input (a file, /dev/null)."""
        while os.read(sys.stdin.fileno(), 1 << 12):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended for another reason
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_input, daemon=True).start()
    return ended


def main() -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        asyncio.run(run(arguments()))
    except LocalCloudError as error:
        print(f"local cloud: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
