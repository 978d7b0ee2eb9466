"""Clean up after killed processes: remove half-written files and ingest displaced manual edits."""

import logging
from pathlib import Path
from typing import Final

from sync.accounts.profiles import Installation, Profile
from sync.archive.partial_files import remove_partial_files as remove_unfinished_archives
from sync.clock import Clock
from sync.document.surfaces.memory_file import MemoryFile
from sync.errors import StorageError
from sync.jsonl.event_file import remove_partial_files
from sync.settings.settings import Settings
from sync.system.files import remove_temporary_files, resolve_target

MAX_WRITE_SECONDS: Final = 60.0  # a small file that takes longer belongs to a killed process

log = logging.getLogger(__name__)


async def clean_up_after_crash(
    settings: Settings,
    profile: Profile,
    installation: Installation,
    document: MemoryFile,
    clock: Clock,
    jsonl_root: Path,
) -> None:
    """Only for the holder of the sidecar lock. `jsonl_root`: the folder with each profile's event files.

    Only the holder writes the memory file, parked documents and event files; other processes may write tokens or
    `installation.json` now. The JSONL projection cleans up the active profile's event files.
    """
    try:
        former = installation.document_of
        await document.swap_recovery.recover(
            leaving_folder=Profile(profile.folder.with_name(former)).parked_folder if former else None
        )
    except StorageError as error:
        log.warning("the files beside the memory file could not be ingested: %s", error.kind)
    target = resolve_target(settings.memory_file)
    remove_temporary_files(target.parent, name=target.name)
    for each in (profile, *profile.other_profiles()):  # a half-written parked document may hold erased text
        remove_temporary_files(each.parked_folder)
    remove_temporary_files(profile.removed_accounts_folder)
    for folder in (settings.data_dir, profile.folder):
        remove_temporary_files(folder, before=clock.now().timestamp() - MAX_WRITE_SECONDS)
    remove_unfinished_archives(profile.archives_folder)
    for other in profile.other_profiles():
        remove_unfinished_archives(other.archives_folder)
        remove_partial_files(jsonl_root / other.name)
