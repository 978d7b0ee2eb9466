"""Invariants of search, daily records, erasure and archives, checked on disks and server.

An erased word is in no database row, file, archive or server row that the request has reached. Archived events are in
an archive and nothing else is missing. All devices show the same days.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN, SESSION_RECORDED
from sync.log.model import erased_by
from tests.simulation.checks.expected_state import ExpectedFact, words_of
from tests.simulation.checks.invariants import ProfileState, can_have_arrived, memories, revoked, unsendable_events

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Pages = Mapping[str, Mapping[str, str]]  # by device and day

_LABEL: Final = re.compile(r" 【[^】]*】")  # of a session that another device recorded: each device has its own view
DATABASE: Final = "memory.db"
IN_BYTES: Final = re.compile(
    rb'(?<=[ "])w\d+x(?=[ "])'
)  # delimited as in text; compressed bytes contain such letters too


def find_client_defects(world: "Simulator", held: list[ProfileState], pages: Pages) -> list[str]:
    """Describe each broken promise."""
    found: list[str] = []
    for profile in held:
        found += _check_erased_locally(world, profile)
        found += _check_archived(world, profile)
    found += _check_erased_on_server(world)
    found += _check_separated(world, held)
    found += _check_remembered(world, held, pages)
    found += _check_identical(world, held, pages)
    return found


# --- erased ---------------------------------------------------------------------------------------------------------


def _check_erased_locally(world: "Simulator", profile: ProfileState) -> Iterator[str]:
    """A profile that has the request has none of the words."""
    named = profile.named(PAYLOAD_FORGOTTEN)
    for event_id in sorted(named & profile.events.keys()):
        if profile.events[event_id]["payload"] != "{}" and profile.events[event_id]["type"] not in {
            PAYLOAD_FORGOTTEN,
            PAYLOAD_EXPIRED,
        }:
            yield f"{profile.name}: {event_id} was to be forgotten and is still there"
    in_archives = profile.device.archived().get(profile.path.parent.name, {}).keys()
    if profile.is_active and (kept := sorted(named & in_archives)):
        yield f"{profile.name}: {kept[0]} was to be forgotten and stands in an archive"
    gone = world.expected.erased_words(named)
    if not gone:
        return
    for place, text in _texts(profile):
        if found := sorted(gone.intersection(words_of(text))):
            yield f"{profile.name}: {found[0]} was forgotten and stands in {place}"
    for path in sorted(profile.path.parent.glob(f"{DATABASE}*")):
        if found := sorted(gone.intersection(word.decode() for word in IN_BYTES.findall(path.read_bytes()))):
            yield f"{profile.name}: {found[0]} was forgotten and stands in the bytes of {path.name}"


def _texts(profile: ProfileState) -> Iterator[tuple[str, str]]:
    """Yield all text of a profile on disk, including the active account's pages but not its archives."""
    device, folder = profile.device, profile.path.parent
    yield from (device.rows(profile.path))
    files = [*folder.rglob("*"), *(device.folder / "data" / "memory-data" / folder.name).rglob("*")]
    if profile.is_active:
        files += [device.memory_file, *device.page_files(), *device.pages.glob("*"), *device.pages.glob("index/*")]
    for path in sorted(files):
        if path.is_file() and not path.name.startswith((DATABASE, "device-key")):
            text = path.read_bytes().decode("utf-8", "replace")
            yield str(path.relative_to(device.folder)), text


def _check_erased_on_server(world: "Simulator") -> Iterator[str]:
    """Check the server's rows and its copies of the documents of devices that are caught up."""
    for user, memory in memories(world):
        named = {name for event in memory.events for name in erased_by(event)}
        gone = world.expected.erased_words(named)
        for event in memory.events:
            if event.event_id in named and event.payload and event.type != PAYLOAD_FORGOTTEN:
                yield f"{user}: {event.event_id} was to be forgotten and is still on the server"
            if found := sorted(gone.intersection(words_of(str(event)))):
                yield f"{user}: {found[0]} was forgotten and stands in {event.event_id} on the server"
        for device in world.devices:
            if device.last_owner != user or revoked(world, user, device) or device.was_recreated:
                continue
            stored = memory.documents.get(str(device.settings.device_id))
            if stored and (found := sorted(gone.intersection(words_of(stored.content)))):
                yield f"{user}: {found[0]} was forgotten and stands in the server's document of {device.name}"


# --- archived -------------------------------------------------------------------------------------------------------


def _check_archived(world: "Simulator", profile: ProfileState) -> Iterator[str]:
    """Expired events are in an archive and no longer in the log; nothing else is missing."""
    expired, archived = profile.named(PAYLOAD_EXPIRED), profile.archived
    requested = profile.named(PAYLOAD_FORGOTTEN) | world.expected.forgotten.keys()  # the server may refuse the request
    stored = {event.event_id: event for _, memory in memories(world) for event in memory.events}
    for event_id in sorted(expired & profile.events.keys()):
        if profile.events[event_id]["payload"] != "{}":
            yield f"{profile.name}: {event_id} was archived and is still in the log"
        if event_id not in archived:
            if event_id not in requested:
                yield f"{profile.name}: {event_id} was let go and is in no archive"
        elif event_id in stored and stored[event_id].payload not in ({}, json.loads(archived[event_id])["payload"]):
            yield f"{profile.name}: {event_id} differs in the archive and on the server"
    for event_id, row in profile.events.items():
        if row["payload"] == "{}" and event_id not in expired | requested and world.expected.has_words(event_id):
            yield f"{profile.name}: {event_id} was emptied although nobody requested it"


# --- ownership and daily pages --------------------------------------------------------------------------------------


def _check_separated(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """Pages and archives hold nothing of another account (I4)."""
    owners = world.expected.owners()
    places: list[tuple[str, str | None, Iterable[str]]] = []
    for profile in held:
        lines = profile.device.archived().get(profile.path.parent.name, {})
        places.append((f"the archive of {profile.name}", profile.owner, lines.values()))
    for device in world.devices:
        pages = [path.read_text("utf-8", "replace") for path in device.page_files()]
        places.append((f"the pages of {device.name}", device.last_owner, pages))
    for place, owner, texts in places:
        words = {word for text in texts for word in words_of(text)}
        strange = sorted(word for word in words if owners.get(word) not in {None, owner})
        if strange and owner is not None:
            yield f"{place} holds {strange[0]} of {owners[strange[0]]}"


def _check_remembered(world: "Simulator", held: list[ProfileState], pages: Pages) -> Iterator[str]:
    """An unchanged record is shown on its day, in the result and on disk.

    A manually edited page that was not ingested before its account left stays as it is (`left` in the marker), and the
    program writes no page of that day beside it. For such a day only the result is checked.
    """
    unheard = {
        str(json.loads(profile.events[event_id]["payload"]).get("record_id"))
        for profile in held
        for event_id in unsendable_events(world, profile)
        if profile.events[event_id]["type"] == SESSION_RECORDED
    }
    for device in world.devices:
        owner = device.last_owner
        if owner is None or (device.emptied and revoked(world, owner, device)):
            continue
        shown_words = set(words_of("\n".join(pages[device.name].values())))
        left = [text for day, text in pages[device.name].items() if device.has_other_accounts_page(day)]
        written = set(words_of("\n".join([*(path.read_text("utf-8") for path in device.page_files()), *left])))
        for fact in world.expected.required_facts():
            if fact.record is None or fact.owner != owner or not _has_reached(world, owner, device.name, fact):
                continue
            if fact.record in unheard and fact.device != device.name:
                continue  # the server refuses the record itself but has the changes of it
            for where, words in (("told", shown_words), ("on its page", written)):
                if lost := sorted(set(fact.words) - words):
                    yield f"{device.name}: {lost[0]} of the daily record {fact.record} was kept and is not {where}"


def _has_reached(world: "Simulator", owner: str, viewer: str, fact: ExpectedFact) -> bool:
    device = next(device for device in world.devices if device.name == viewer)
    return fact.device == viewer or can_have_arrived(world, owner, device, fact)


def _check_identical(world: "Simulator", held: list[ProfileState], pages: Pages) -> Iterator[str]:
    """Two devices of an account show the same days (I3)."""
    apart = {profile.device.name for profile in held if unsendable_events(world, profile)}
    shown: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
    for device in world.devices:
        owner = device.last_owner
        if owner is not None and device.name not in apart and not revoked(world, owner, device):
            shown[owner][device.name] = pages[device.name]
    for by in shown.values():
        if len({_LABEL.sub("", json.dumps(days, sort_keys=True, ensure_ascii=False)) for days in by.values()}) > 1:
            yield f"the daily records differ between {sorted(by)}"
