"""Switch from one account of this machine to another.

A switch is one write of `installation.json`. The next holder of the sidecar lock completes it (`complete_switch`) and
repeats that until it succeeds, so a process killed at any moment leaves nothing of one user with another.
When a guest logs in as a user who has a profile, the guest's events, archives and document move to that profile.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sync.accounts.profiles import (
    Installation,
    Profile,
    change_installation,
    new_profile_id,
    read_installation,
    remove_profile,
    remove_profile_tree,
    with_removed_account,
)
from sync.clock import Clock, timestamp
from sync.cloud.auth import owner_store
from sync.cloud.auth_port import AuthSession
from sync.db.engine import Database, Transaction
from sync.db.schema import UNKNOWN_OWNER
from sync.document.ownership.fingerprints import removal_digest
from sync.document.ownership.other_profiles import OtherProfiles, ProfilePaths, RemovedAccounts, newest_label_digests
from sync.document.surfaces.handover import hand_over, park_unrecorded, replace_document
from sync.document.surfaces.memory_file import MemoryFile
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import KeyLost, SettingsError, StorageError, XiaobaiError
from sync.lan.store import store_events
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.event_types import DEVICE_REGISTERED, PAYLOAD_EXPIRED
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, EventScope, Origin, Query, erased_by, replicable_events
from sync.log.projections.registry import ARCHIVE_RETRACTIONS
from sync.log.retractions import redacted_payload
from sync.redaction import Redactor
from sync.settings.settings import LESSONS_FOLDER
from sync.system.files import make_private_folder

if TYPE_CHECKING:
    from sync.lessons.files.live_view import LessonFiles

EVENTS_PER_TRANSACTION: Final = 200  # events in one transaction

log = logging.getLogger(__name__)


def other_profiles_of(profile: Profile, encryption: DatabaseEncryption) -> OtherProfiles:
    """The other profiles and the removed accounts, to tell their documents from this one's."""

    def removed() -> RemovedAccounts | None:
        installation = read_installation(profile.data_dir)
        if installation is None or not installation.removed:
            return None
        try:
            own = removal_digest(profile.read_owner(encryption) or "")
        except XiaobaiError:  # it is busy; the digests may be of this user's own removal
            return None
        others = (digests for digests in installation.removed.values() if own not in digests)
        digests = frozenset(chain.from_iterable(others))
        return RemovedAccounts(digests, profile.removed_accounts_folder) if digests else None

    return OtherProfiles(
        profile.database, lambda: [_paths_of(other) for other in profile.other_profiles()], encryption, removed
    )


async def find_profile_for(
    active: Profile, owner: str | None, session: AuthSession, encryption: DatabaseEncryption, clock: Clock
) -> Profile | None:
    """The user's other profile, existing or new; None if the active profile is theirs.

    `owner`: the active profile's owner, None for a guest, empty if damage has hidden it (then the user has to confirm).
    Raises StorageError, SettingsError if a profile cannot be read now (locked, without its key): it may belong to this
    user, and a second profile would hide the data in the first. A damaged profile without a readable owner is skipped,
    because it would block every login; it is salvaged when it is opened.
    """
    if owner in {session.user_id, UNKNOWN_OWNER}:
        return None
    unreadable: XiaobaiError | None = None
    for profile in active.other_profiles():
        try:
            if await asyncio.to_thread(profile.read_owner, encryption) == session.user_id:
                return profile
        except (StorageError, SettingsError) as error:
            if not _is_being_removed(profile):
                unreadable = unreadable or error
    if unreadable is not None:
        log.warning("no new profile is created: the owner of another cannot be read (%s)", unreadable.kind)
        raise unreadable
    return None if owner is None else await _create_profile(active, session, encryption, clock)


def _is_being_removed(profile: Profile) -> bool:
    """Whether the profile is being removed: its key may be gone already, and it must not block a login."""
    installation = read_installation(profile.data_dir)
    return installation is not None and installation.removing == profile.name


async def _create_profile(
    active: Profile, session: AuthSession, encryption: DatabaseEncryption, clock: Clock
) -> Profile:
    """Create a profile that belongs to this user from the start."""
    profile = Profile(active.folder.with_name(new_profile_id()))
    make_private_folder(profile.folder)
    database = await Database.open(
        profile.database, await asyncio.to_thread(encryption.resolve_access, profile.database)
    )
    try:
        now = timestamp(clock.now())
        await database.write(owner_store.claim_profile, session.user_id, session.label, now)
    finally:
        await database.close()
    return profile


def parked_warnings(profile: Profile) -> tuple[str, ...]:
    """The warnings about parked documents: of this profile, and of accounts that were removed from this machine."""
    folders = {"documents_parked": profile.parked_folder, "removed_account_parked": profile.removed_accounts_folder}
    counts = {name: sum(1 for _ in folder.glob("*.md")) for name, folder in folders.items()}
    return tuple(f"{name}: {count} in {folders[name]}" for name, count in counts.items() if count)


class ActiveProfile(msgspec.Struct, frozen=True):
    """The active profile's memory, and how another profile's memory file and lesson files are opened."""

    data_dir: Path
    profile: Profile
    encryption: DatabaseEncryption
    events: EventLog
    document: MemoryFile
    redactor: Redactor
    memory_file_of: Callable[[EventLog, Profile], MemoryFile]
    lesson_files_of: "Callable[[EventLog, Profile], LessonFiles]"
    jsonl_root: Path  # the folder with each profile's event files


async def complete_switch(active: ActiveProfile, installation: Installation, clock: Clock) -> Installation:
    """Hand the memory file over to the active profile and remove the profile that is to go.

    Only for the holder of the sidecar lock. Raises StorageError if the file cannot be replaced; the next start then
    repeats everything.
    """
    if installation.document_of is not None:
        former = Profile(active.profile.folder.with_name(installation.document_of))
        await _hand_over_memory_file(active, former, clock, remove_former=installation.removing == former.name)
        installation = change_installation(active.data_dir, lambda now: replace(now, document_of=None))
        log.info("the memory file was handed over from profile %s to %s", former.name, active.profile.name)
    if installation.removing is not None:
        installation = await asyncio.to_thread(
            _remove_profile, active, Profile(active.profile.folder.with_name(installation.removing))
        )
    return installation


def _remove_profile(active: ActiveProfile, leaving: Profile) -> Installation:
    """Delete a profile. Its replica id is kept, so that the next profile can take the device over on the server."""
    data_dir, former = active.data_dir, leaving.read_replica_id(active.encryption)
    installation = change_installation(data_dir, lambda now: replace(now, former=former or now.former))
    try:
        if (owner := _owner_of(leaving, active.encryption)) is not None:  # the cloud has it; a guest's data has moved
            labels = newest_label_digests(leaving.database, active.encryption)
            digests = (removal_digest(owner), *labels)
            change_installation(data_dir, lambda now: with_removed_account(now, leaving.name, digests))
            remove_profile_tree(leaving.archives_folder)
        remove_profile_tree(data_dir / LESSONS_FOLDER / leaving.name)
        active.encryption.delete_key(leaving.database)
        remove_profile(data_dir, leaving.name)
        remove_profile_tree(active.jsonl_root / leaving.name)
    except StorageError as error:  # another process still has it open; Windows then deletes nothing
        log.warning("profile %s could not be removed yet (%s)", leaving.name, error.kind)
        return installation
    return change_installation(data_dir, lambda now: replace(now, removing=None))


def _owner_of(leaving: Profile, encryption: DatabaseEncryption) -> str | None:
    """The user it belongs to. None also if an earlier try has removed the key: then the rest is gone already."""
    try:
        return leaving.read_owner(encryption)
    except (KeyLost, SettingsError):
        return None


async def _hand_over_memory_file(active: ActiveProfile, former: Profile, clock: Clock, *, remove_former: bool) -> None:
    """`remove_former`: the former profile is removed next. A guest's data moves first; of a user's nothing stays."""
    if remove_former and await asyncio.to_thread(former.read_owner, active.encryption) is not None:
        await replace_document(active.document)
        return
    heir = active.profile if remove_former else former
    between = OtherProfiles(former.database, lambda: [_paths_of(active.profile)], active.encryption)
    try:
        access = await asyncio.to_thread(active.encryption.resolve_access, former.database)
        database = await Database.open(former.database, access)
    except (StorageError, SettingsError) as error:
        if remove_former:
            raise  # a guest's data is not removed unread
        log.warning("the profile that leaves cannot be opened (%s)", error.kind)
        await hand_over(None, _paths_of(heir), active.document, between)
        return
    try:
        events = EventLog(database, clock, device_id=active.events.device_id, session_id="")
        document = active.memory_file_of(events, former)
        await hand_over(document, _paths_of(heir), active.document, between)
        if remove_former:
            if (active.data_dir / LESSONS_FOLDER / former.name).is_dir():
                await active.lesson_files_of(events, former).reconcile()  # takes in what was edited by hand
            await _copy_guest_events(events, active, clock)
            await _move_guest_archives(former, active, clock)
            await park_unrecorded(document, _paths_of(former), active.document, _paths_of(heir))
    finally:
        await database.close()


async def _copy_guest_events(guest: EventLog, active: ActiveProfile, clock: Clock) -> None:
    """Record a guest's events in the active profile, with their ids and days. Existing events stay as they are.

    What a paired guest shared, and what came from other devices, is taken as it is: others have it as well.
    """
    was_paired = await guest.newest((DEVICE_REGISTERED,), 1)  # a guest tells its name to paired devices only
    own_ids: Collection[str] = () if was_paired else guest.own_device_ids
    page = await guest.read(Query(limit=EVENTS_PER_TRANSACTION))
    while page.events:
        shared = [event for event in replicable_events(page.events) if event.device_id not in own_ids]
        own = [event for event in page.events if event not in shared]
        await active.events.database.write(_copy_batch, events=own, active=active)
        ids = active.events.own_device_ids
        await active.events.database.write(store_events, received=shared, clock=clock, own_device_ids=ids)
        active.events.changed.increment()
        page = await guest.read(Query(after=page.next_offset, limit=EVENTS_PER_TRANSACTION))


def _copy_batch(connection: Transaction, *, events: Sequence[Event], active: ActiveProfile) -> None:
    """Copy events; those that retention took from the guest come without payload, so that erasures can name them."""
    known = log_store.known_ids(connection, [event.event_id for event in events])
    copied = [
        _without_own_events(connection, event)
        for event in events
        if event.event_id not in known or (event.payload and event.type != PAYLOAD_EXPIRED)
    ]
    active.events.append_in(connection, [_redacted_draft(event, active.redactor) for event in copied])


def _without_own_events(connection: Transaction, event: Event) -> Event:
    """Retention of a guest's events must not take the same events from a profile that has them."""
    if event.type != PAYLOAD_EXPIRED:
        return event
    named = erased_by(event)
    present = log_store.known_ids(connection, named) - {
        erased.event_id for erased in erased_store.find_erased(connection, named)
    }
    return replace(event, payload={**event.payload, "event_ids": [name for name in named if name not in present]})


async def _move_guest_archives(former: Profile, active: ActiveProfile, clock: Clock) -> None:
    """Move a guest's archives to the active profile. May be repeated until nothing is left.

    All erasures are applied to the archives again: this profile's may be older than their arrival.
    """
    if not former.archives_folder.is_dir():
        return
    from sync.retention.archives import move_archives  # noqa: PLC0415 - other starts do not need it

    await asyncio.to_thread(move_archives, former.archives_folder, active.profile.archives_folder)
    await active.events.database.write(log_store.set_watermark, ARCHIVE_RETRACTIONS.name, 0, clock)
    await asyncio.to_thread(remove_profile_tree, former.archives_folder)  # with half-written files of a killed writer


def _redacted_draft(event: Event, redactor: Redactor) -> EventDraft:
    redactor = redactor if event.reach is EventScope.LOCAL else redactor.for_egress()
    return EventDraft(
        type=event.type,
        payload=redacted_payload(event, redactor),
        project_id=event.project_id,
        project_path=None if event.project_path is None else redactor.clean(event.project_path),
        session_id=event.session_id,
        event_id=event.event_id,
        ts=event.ts,
        origin=Origin(event.origin),
        extra=redactor.clean_payload(event.extra),
        local_date=event.local_date,
        utc_offset=event.utc_offset,
    )


def _paths_of(profile: Profile) -> ProfilePaths:
    return ProfilePaths(profile.database, profile.parked_folder)
