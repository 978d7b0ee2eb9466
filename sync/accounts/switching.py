"""From one account of this machine to another.

Each user has a profile of his own: database, tokens, document. A switch is one write of `installation.json`; what it
means for the memory file is made up for by whoever next holds the sidecar role, as often as it takes (`complete`), so
a program killed at any moment leaves nothing of one user with another.

A guest who turns out to be somebody with a profile here already takes his words along: they are recorded in that
profile under their own ids, what retention has archived of them becomes archives of that profile, his document is
parked there where it says more than they do, and the guest's profile goes.

A profile that cannot be asked at the moment whose it is (locked, without its key, on a failing disk) may be that of the
one who logs in. Unless another is known to be his, the login is refused until it can be asked: with a second profile he
would never see again what he said in the first. A damaged one answers no later either, and a stranger's would keep
everybody out for ever: it is asked about as far as it can be read, else it counts as nobody's and stays as it is. The
salvage (`sync.db.rebuild.salvage`) comes when it is opened.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from sync.accounts.profiles import (
    Installation,
    Profile,
    change_installation,
    new_profile_id,
    read_installation,
    remove_profile,
    remove_profile_tree,
)
from sync.clock import Clock, timestamp
from sync.cloud.auth import owner_store
from sync.cloud.auth_port import AuthSession
from sync.db.engine import Database, Transaction
from sync.db.schema import UNKNOWN_OWNER
from sync.document.ownership.other_profiles import OtherProfiles, ProfilePaths
from sync.document.surfaces.handover import hand_over, park_unrecorded, replace_document
from sync.document.surfaces.memory_file import MemoryFile
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import KeyLost, SettingsError, StorageError, XiaobaiError
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.event_types import PAYLOAD_EXPIRED
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, EventScope, Origin, Query, erased_by
from sync.log.projections.registry import ARCHIVE_RETRACTIONS
from sync.log.retractions import redacted_payload
from sync.redaction import Redactor
from sync.system.files import make_private_folder

EVENTS_PER_TRANSACTION: Final = 200  # events in one transaction

log = logging.getLogger(__name__)


def other_profiles_of(profile: Profile, encryption: DatabaseEncryption) -> OtherProfiles:
    """The other profiles, for whoever has to tell their documents from this one's."""
    return OtherProfiles(profile.database, lambda: [_paths_of(other) for other in profile.other_profiles()], encryption)


async def find_profile_for(
    active: Profile, owner: str | None, session: AuthSession, encryption: DatabaseEncryption, clock: Clock
) -> Profile | None:
    """The profile that is this user's, old or new, where the active one is not; None where he belongs here.

    `owner`: the active profile's, None for a guest's, empty where damage has hidden it (then a person has to say).
    Raises StorageError, SettingsError where one that may be his cannot be asked now; nothing was made then.
    """
    if owner in {session.user_id, UNKNOWN_OWNER}:
        return None
    unasked: XiaobaiError | None = None
    for profile in active.other_profiles():
        try:
            if await asyncio.to_thread(profile.read_owner, encryption) == session.user_id:
                return profile
        except (StorageError, SettingsError) as error:
            if not _is_being_removed(profile):
                unasked = unasked or error
    if unasked is not None:
        log.warning("nobody new comes in: a profile cannot be asked whose it is (%s)", unasked.kind)
        raise unasked
    return None if owner is None else await _create_profile(active, session, encryption, clock)


def _is_being_removed(profile: Profile) -> bool:
    """Whether it is to be removed: its key may be gone already, and nobody is kept from a new one by it."""
    installation = read_installation(profile.data_dir)
    return installation is not None and installation.removing == profile.name


async def _create_profile(
    active: Profile, session: AuthSession, encryption: DatabaseEncryption, clock: Clock
) -> Profile:
    """A new profile that is this user's from its first moment."""
    profile = Profile(active.folder.with_name(new_profile_id()))
    make_private_folder(profile.folder)
    database = await Database.open(
        profile.database, await asyncio.to_thread(encryption.resolve_access, profile.database)
    )
    try:
        now = timestamp(clock.now())
        await database.write(
            lambda connection: owner_store.claim_profile(connection, session.user_id, session.label, now)
        )
    finally:
        await database.close()
    return profile


def parked_warnings(profile: Profile) -> tuple[str, ...]:
    """What `status` says about documents of this profile that turned up while another one was active."""
    found = sorted(profile.parked_folder.glob("*.md")) if profile.parked_folder.is_dir() else []
    return (f"documents_parked: {len(found)} in {profile.parked_folder}",) if found else ()


@dataclass(frozen=True, slots=True)
class ActiveProfile:
    """The active profile's memory, and how another profile's memory file is opened."""

    data_dir: Path
    profile: Profile
    encryption: DatabaseEncryption
    events: EventLog
    document: MemoryFile
    redactor: Redactor
    memory_file_of: Callable[[EventLog, Profile], MemoryFile]
    jsonl_root: Path  # the folder with each profile's event files


async def complete_switch(active: ActiveProfile, installation: Installation, clock: Clock) -> Installation:
    """Hand the memory file over to the active profile, remove the one that is to go; what stands then.

    Only for the holder of the sidecar role.
    Raises StorageError where the file cannot be replaced; then all of it is done by the next that opens.
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
    """Delete a profile; the server is told whom the next one replaces, or it would keep the device for the old one."""
    data_dir, former = active.data_dir, leaving.read_replica_id(active.encryption)
    installation = change_installation(data_dir, lambda now: replace(now, former=former or now.former))
    try:
        if _has_owner(leaving, active.encryption):  # what is in them is in the cloud; a guest's has moved by now
            remove_profile_tree(leaving.archives_folder)
        active.encryption.delete_key(leaving.database)
        remove_profile(data_dir, leaving.name)
        remove_profile_tree(active.jsonl_root / leaving.name)
    except StorageError as error:  # another process still has it open; Windows then deletes nothing
        log.warning("profile %s could not be removed yet (%s)", leaving.name, error.kind)
        return installation
    return change_installation(data_dir, lambda now: replace(now, removing=None))


def _has_owner(leaving: Profile, encryption: DatabaseEncryption) -> bool:
    """Whether it is a user's. An earlier try may have removed its key: then the archives went before it."""
    try:
        return leaving.read_owner(encryption) is not None
    except (KeyLost, SettingsError):
        return False


async def _hand_over_memory_file(active: ActiveProfile, former: Profile, clock: Clock, *, remove_former: bool) -> None:
    """`goes`: the former profile is removed afterwards. A guest's then moves in; of a user's nothing is to stay."""
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
            raise  # a guest's words are not removed unread
        log.warning("the profile that leaves cannot be opened (%s)", error.kind)
        await hand_over(None, _paths_of(heir), active.document, between)
        return
    try:
        events = EventLog(database, clock, device_id=active.events.device_id, session_id="")
        document = active.memory_file_of(events, former)
        await hand_over(document, _paths_of(heir), active.document, between)
        if remove_former:
            await _copy_guest_events(events, active)
            await _move_guest_archives(former, active, clock)
            await park_unrecorded(document, _paths_of(former), active.document, _paths_of(heir))
    finally:
        await database.close()


async def _copy_guest_events(guest: EventLog, active: ActiveProfile) -> None:
    """Record everything of a guest in the active profile, under the same ids and on the days it was on.

    What is there already stays as it is.
    """
    page = await guest.read(Query(limit=EVENTS_PER_TRANSACTION))
    while page.events:
        await active.events.database.write(partial(_copy_batch, events=page.events, active=active))
        active.events.changed.increment()
        page = await guest.read(Query(after=page.next_offset, limit=EVENTS_PER_TRANSACTION))


def _copy_batch(connection: Transaction, *, events: Sequence[Event], active: ActiveProfile) -> None:
    """Of what retention took from the guest the blank row comes along, with what says so: a wish to forget names it."""
    known = log_store.known_ids(connection, [event.event_id for event in events])
    taken = [
        _without_own_events(connection, event)
        for event in events
        if event.event_id not in known or (event.payload and event.type != PAYLOAD_EXPIRED)
    ]
    active.events.append_in(connection, [_redacted_draft(event, active.redactor) for event in taken])


def _without_own_events(connection: Transaction, event: Event) -> Event:
    """What retention took from the guest takes nothing from a profile that has the same words on its own."""
    if event.type != PAYLOAD_EXPIRED:
        return event
    named = erased_by(event)
    said = log_store.known_ids(connection, named) - {
        held.event_id for held in erased_store.find_erased(connection, named)
    }
    return replace(event, payload={**event.payload, "event_ids": [name for name in named if name not in said]})


async def _move_guest_archives(former: Profile, active: ActiveProfile, clock: Clock) -> None:
    """What retention took from a guest becomes the active profile's. May be repeated until nothing is left there.

    All wishes to forget are carried out in it once more: those of this profile are older than its being here.
    """
    if not former.archives_folder.is_dir():
        return
    from sync.retention.archives import move_archives  # noqa: PLC0415 - nobody else at a start pays for it

    await asyncio.to_thread(move_archives, former.archives_folder, active.profile.archives_folder)
    await active.events.database.write(
        lambda connection: log_store.set_watermark(connection, ARCHIVE_RETRACTIONS.name, 0, clock)
    )
    await asyncio.to_thread(
        remove_profile_tree, former.archives_folder
    )  # what a killed writer left half made in it goes with it


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
