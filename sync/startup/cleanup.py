"""What killed processes left behind on this machine: half written files go, and what is a hand's is taken in."""

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

MAX_WRITE_SECONDS: Final = 60.0  # seconds; whoever began to write a small file before that was killed

log = logging.getLogger(__name__)


async def clean_up_after_crash(
    settings: Settings,
    profile: Profile,
    installation: Installation,
    document: MemoryFile,
    clock: Clock,
    jsonl_root: Path,
) -> None:
    """Only for the sidecar's role; `trees`: where each profile has the files of its events.

    The role's holder alone writes the memory file, what is parked and the trees; others may be writing tokens or
    `installation.json` at this moment. The active profile's own tree is tidied by whoever follows the log with it.
    """
    try:
        former = installation.document_of
        await document.swap_recovery.recover(
            leaving_folder=Profile(profile.folder.with_name(former)).parked_folder if former else None
        )
    except StorageError as error:
        log.warning("what stands beside the memory file could not be taken in: %s", error.kind)
    target = resolve_target(settings.memory_file)
    remove_temporary_files(target.parent, name=target.name)
    for kept in (
        profile,
        *profile.other_profiles(),
    ):  # a parked document that was half written says what is forgotten since
        remove_temporary_files(kept.parked_folder)
    for folder in (settings.data_dir, profile.folder):
        remove_temporary_files(folder, before=clock.now().timestamp() - MAX_WRITE_SECONDS)
    remove_unfinished_archives(profile.archives_folder)
    for other in profile.other_profiles():
        remove_unfinished_archives(other.archives_folder)
        remove_partial_files(jsonl_root / other.name)
