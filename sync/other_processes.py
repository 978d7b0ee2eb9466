"""Notice what another process did to this data directory: recorded events, or switched to another profile."""

import asyncio
from pathlib import Path
from typing import Final

from sync.accounts.profiles import INSTALLATION_FILE, Profile, open_installation
from sync.log.log import EventLog
from sync.system.files import FileStamp, stat_stamp
from sync.system.hardware_id import read_hardware_id

OTHER_PROCESS_POLL_SECONDS: Final = 0.5  # how often to check whether another process has recorded


async def watch_other_processes(
    events: EventLog, data_dir: Path, profile: Profile, profile_left: asyncio.Event
) -> None:
    """React to another process's commits as to our own; set `profile_left` when a command has logged in."""
    seen_token = events.database.change_token()
    last = await events.newest_position()
    stamp: FileStamp | None = None
    while True:
        await asyncio.sleep(OTHER_PROCESS_POLL_SECONDS)
        if (now := stat_stamp(data_dir / INSTALLATION_FILE)) != stamp:
            stamp = now
            if open_installation(data_dir, read_hardware_id).profile != profile.name:
                profile_left.set()
        token = events.database.change_token()
        if token == seen_token:
            continue
        newest = await events.newest_position()
        if newest > last:
            last = newest
            events.changed.increment()
        if events.database.is_token_readable(token):
            seen_token = token
