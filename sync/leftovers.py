"""What killed processes left behind on this machine: half written files go, and what is a hand's is taken in."""

import logging
from pathlib import Path
from typing import Final

from sync.archive.unfinished import remove_unfinished as remove_unfinished_archives
from sync.clock import Clock
from sync.document.memory_file import MemoryFile
from sync.errors import StorageError
from sync.files import real_target, remove_leftovers
from sync.profiles import Installation, Profile
from sync.settings import Settings
from sync.tree.files import remove_unfinished

LONGEST_WRITE: Final = 60.0  # seconds; whoever began to write a small file before that was killed

log = logging.getLogger(__name__)


async def tidy(
    settings: Settings, profile: Profile, installation: Installation, document: MemoryFile, clock: Clock, trees: Path
) -> None:
    """Only for the sidecar's role; `trees`: where each profile has the files of its events.

    The role's holder alone writes the memory file, what is parked and the trees; others may be writing tokens or
    `installation.json` at this moment. The active profile's own tree is tidied by whoever follows the log with it.
    """
    try:
        former = installation.document_of
        await document.aside.take_in(former=Profile(profile.folder.with_name(former)).parked if former else None)
    except StorageError as error:
        log.warning("what stands beside the memory file could not be taken in: %s", error.kind)
    target = real_target(settings.memory_file)
    remove_leftovers(target.parent, name=target.name)
    for kept in (profile, *profile.others()):  # a parked document that was half written says what is forgotten since
        remove_leftovers(kept.parked)
    for folder in (settings.data_dir, profile.folder):
        remove_leftovers(folder, before=clock.now().timestamp() - LONGEST_WRITE)
    remove_unfinished_archives(profile.archives)
    for other in profile.others():
        remove_unfinished_archives(other.archives)
        remove_unfinished(trees / other.name)
