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
salvage (`sync.db.salvage`) comes when it is opened.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock, timestamp
from sync.cloud import store as cloud_store
from sync.cloud.logins import Session
from sync.db.engine import Database
from sync.db.tables import UNKNOWN_OWNER
from sync.document.handover import hand_over, keep_unsaid, replace_document
from sync.document.memory_file import MemoryFile
from sync.document.neighbours import Neighbour, Neighbours
from sync.errors import KeyLost, SettingsError, StorageError, XiaobaiError
from sync.files import make_private_folder
from sync.log import blank_store
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import EXPIRED, Draft, Event, Origin, Query, Reach, forgotten_by
from sync.log.withdrawn import cleaned
from sync.profiles import (
    Installation,
    Profile,
    change_installation,
    known_installation,
    new_profile_id,
    remove_profile,
    remove_tree,
)
from sync.redaction import Redactor
from sync.vault.vault import Vault

CARRIED_AT_ONCE: Final = 200  # events in one transaction

log = logging.getLogger(__name__)


def neighbours_of(profile: Profile, vault: Vault) -> Neighbours:
    """The other profiles, for whoever has to tell their documents from this one's."""
    return Neighbours(profile.database, lambda: [_neighbour(other) for other in profile.others()], vault)


async def other_home(
    active: Profile, owner: str | None, session: Session, vault: Vault, clock: Clock
) -> Profile | None:
    """The profile that is this user's, old or new, where the active one is not; None where he belongs here.

    `owner`: the active profile's, None for a guest's, empty where damage has hidden it (then a person has to say).
    Raises StorageError, SettingsError where one that may be his cannot be asked now; nothing was made then.
    """
    if owner in {session.user_id, UNKNOWN_OWNER}:
        return None
    unasked: XiaobaiError | None = None
    for profile in active.others():
        try:
            if await asyncio.to_thread(profile.owner, vault) == session.user_id:
                return profile
        except (StorageError, SettingsError) as error:
            if not _is_going(profile):
                unasked = unasked or error
    if unasked is not None:
        log.warning("nobody new comes in: a profile cannot be asked whose it is (%s)", unasked.kind)
        raise unasked
    return None if owner is None else await _new_home(active, session, vault, clock)


def _is_going(profile: Profile) -> bool:
    """Whether it is to be removed: its key may be gone already, and nobody is kept from a new one by it."""
    installation = known_installation(profile.data_dir)
    return installation is not None and installation.removing == profile.name


async def _new_home(active: Profile, session: Session, vault: Vault, clock: Clock) -> Profile:
    """A new profile that is this user's from its first moment."""
    profile = Profile(active.folder.with_name(new_profile_id()))
    make_private_folder(profile.folder)
    database = await Database.open(profile.database, await asyncio.to_thread(vault.settled, profile.database))
    try:
        now = timestamp(clock.now())
        await database.write(lambda connection: cloud_store.claim(connection, session.user_id, session.label, now))
    finally:
        await database.close()
    return profile


def parked(profile: Profile) -> tuple[str, ...]:
    """What `status` says about documents of this profile that turned up while another one was active."""
    found = sorted(profile.parked.glob("*.md")) if profile.parked.is_dir() else []
    return (f"documents_parked: {len(found)} in {profile.parked}",) if found else ()


@dataclass(frozen=True, slots=True)
class Rooms:
    """The active profile's memory, and how the memory file of another log is made."""

    data_dir: Path
    profile: Profile
    vault: Vault
    events: Log
    document: MemoryFile
    redactor: Redactor
    document_of: Callable[[Log, Profile], MemoryFile]
    trees: Path  # where each profile has the files of its events


async def complete(rooms: Rooms, installation: Installation, clock: Clock) -> Installation:
    """Hand the memory file over to the active profile, remove the one that is to go; what stands then.

    Only for the holder of the sidecar role.
    Raises StorageError where the file cannot be replaced; then all of it is done by the next that opens.
    """
    if installation.document_of is not None:
        former = Profile(rooms.profile.folder.with_name(installation.document_of))
        await _take_over(rooms, former, clock, goes=installation.removing == former.name)
        installation = change_installation(rooms.data_dir, lambda now: replace(now, document_of=None))
        log.info("the memory file was handed over from profile %s to %s", former.name, rooms.profile.name)
    if installation.removing is not None:
        installation = await asyncio.to_thread(
            _remove, rooms, Profile(rooms.profile.folder.with_name(installation.removing))
        )
    return installation


def _remove(rooms: Rooms, going: Profile) -> Installation:
    """Delete a profile; the server is told whom the next one replaces, or it would keep the device for the old one."""
    data_dir, former = rooms.data_dir, going.replica(rooms.vault)
    installation = change_installation(data_dir, lambda now: replace(now, former=former or now.former))
    try:
        if _is_somebodys(going, rooms.vault):  # what is in them is in the cloud; a guest's has moved by now
            remove_tree(going.archives)
        rooms.vault.forget(going.database)
        remove_profile(data_dir, going.name)
        remove_tree(rooms.trees / going.name)
    except StorageError as error:  # another process still has it open; Windows then deletes nothing
        log.warning("profile %s could not be removed yet (%s)", going.name, error.kind)
        return installation
    return change_installation(data_dir, lambda now: replace(now, removing=None))


def _is_somebodys(going: Profile, vault: Vault) -> bool:
    """Whether it is a user's. An earlier try may have removed its key: then the archives went before it."""
    try:
        return going.owner(vault) is not None
    except (KeyLost, SettingsError):
        return False


async def _take_over(rooms: Rooms, former: Profile, clock: Clock, *, goes: bool) -> None:
    """`goes`: the former profile is removed afterwards. A guest's then moves in; of a user's nothing is to stay."""
    if goes and await asyncio.to_thread(former.owner, rooms.vault) is not None:
        await replace_document(rooms.document)
        return
    heir = rooms.profile if goes else former
    between = Neighbours(former.database, lambda: [_neighbour(rooms.profile)], rooms.vault)
    try:
        access = await asyncio.to_thread(rooms.vault.settled, former.database)
        database = await Database.open(former.database, access)
    except (StorageError, SettingsError) as error:
        if goes:
            raise  # a guest's words are not removed unread
        log.warning("the profile that leaves cannot be opened (%s)", error.kind)
        await hand_over(None, _neighbour(heir), rooms.document, between)
        return
    try:
        events = Log(database, clock, device_id=rooms.events.device_id, session_id="")
        document = rooms.document_of(events, former)
        await hand_over(document, _neighbour(heir), rooms.document, between)
        if goes:
            await _carry_over(events, rooms)
            await _take_archives_along(former, rooms, clock)
            await keep_unsaid(document, _neighbour(former), rooms.document, _neighbour(heir))
    finally:
        await database.close()


async def _carry_over(guest: Log, rooms: Rooms) -> None:
    """Record everything of a guest in the active profile, under the same ids and on the days it was on.

    What is there already stays as it is.
    """
    page = await guest.read(Query(limit=CARRIED_AT_ONCE))
    while page.events:
        await rooms.events.database.write(partial(_carry, events=page.events, rooms=rooms))
        rooms.events.changed.set()
        page = await guest.read(Query(after=page.next_offset, limit=CARRIED_AT_ONCE))


def _carry(connection: Connection, *, events: Sequence[Event], rooms: Rooms) -> None:
    """Of what retention took from the guest the blank row comes along, with what says so: a wish to forget names it."""
    known = log_store.known_ids(connection, [event.event_id for event in events])
    taken = [
        _spared(connection, event)
        for event in events
        if event.event_id not in known or (event.payload and event.type != EXPIRED)
    ]
    rooms.events.record_in(connection, [_drafted(event, rooms.redactor) for event in taken])


def _spared(connection: Connection, event: Event) -> Event:
    """What retention took from the guest takes nothing from a profile that has the same words on its own."""
    if event.type != EXPIRED:
        return event
    named = forgotten_by(event)
    said = log_store.known_ids(connection, named) - {
        held.event_id for held in blank_store.blank_among(connection, named)
    }
    return replace(event, payload={**event.payload, "event_ids": [name for name in named if name not in said]})


async def _take_archives_along(former: Profile, rooms: Rooms, clock: Clock) -> None:
    """What retention took from a guest becomes the active profile's. May be repeated until nothing is left there.

    All wishes to forget are carried out in it once more: those of this profile are older than its being here.
    """
    if not former.archives.is_dir():
        return
    from sync.retention.archives import ARCHIVES, take_along  # noqa: PLC0415 - nobody else at a start pays for it

    await asyncio.to_thread(take_along, former.archives, rooms.profile.archives)
    await rooms.events.database.write(lambda connection: log_store.set_watermark(connection, ARCHIVES, 0, clock))
    await asyncio.to_thread(remove_tree, former.archives)  # what a killed writer left half made in it goes with it


def _drafted(event: Event, redactor: Redactor) -> Draft:
    redactor = redactor if event.reach is Reach.LOCAL else redactor.for_leaving()
    return Draft(
        type=event.type,
        payload=cleaned(event, redactor),
        project_id=event.project_id,
        project_path=None if event.project_path is None else redactor.clean(event.project_path),
        session_id=event.session_id,
        event_id=event.event_id,
        ts=event.ts,
        origin=Origin(event.origin),
        extra=redactor.payload(event.extra),
        local_date=event.local_date,
        utc_offset=event.utc_offset,
    )


def _neighbour(profile: Profile) -> Neighbour:
    return Neighbour(profile.database, profile.parked)
