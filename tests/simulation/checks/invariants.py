"""The invariants I1-I9, checked on databases, files and server after the faults have stopped.

They read everything with the standard library, so they share no code with the product except the queries of
`events verify`.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sync.log.envelope import to_wire
from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.integrity.store import _CHECKS
from sync.log.model import Origin, erased_by
from tests.simulation.checks.expected_state import TOKEN, ExpectedFact, words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.workload.editor import FOOTER
from tests.simulation.workload.plan import IMPORTING, LAN, PAIRING

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Views = Mapping[str, Mapping[str, tuple[Any, ...]]]
COMPARED = ("type", "device_id", "hlc", "ts", "session_id", "origin", "local_date")
IDENTITY = ("event_id", "device_id", "hlc", "type")
NUMBERED = ("replica_id", "replica_seq")  # two copies of one home both number their unsent events again
_EVENTS = "select events.*, deliveries.state as delivery from events left join deliveries using (position)"
SECRET = TOKEN.encode()
RECOGNISED = 20  # characters of a secret
QUESTIONS = {what: str(question) for what, question in _CHECKS.items()}


@dataclass
class ProfileState:
    """One profile's database after the run."""

    device: SimulatedDevice
    path: Path
    owner: str | None
    events: dict[str, dict[str, Any]]
    states: Counter[str]
    cursor: int
    documents: str
    archived: dict[str, str]  # what retention archived on this device: event id and line
    problems: list[str]

    @property
    def name(self) -> str:
        return f"{self.device.name}/{self.path.parent.name[:4]}"

    @property
    def is_active(self) -> bool:
        """Whether its account was the last one on the device."""
        return self.device.installation().get("profile") == self.path.parent.name

    def cloud(self) -> set[str]:
        return {event_id for event_id, row in self.events.items() if row["reach"] == "cloud"}

    def named(self, *types: str, besides: Container[str] = ()) -> set[str]:
        """The events that requests of these types name, except those of the requests in `besides`."""
        return {
            name
            for event_id, row in self.events.items()
            if row["type"] in types and event_id not in besides
            for name in json.loads(row["payload"])["event_ids"]
        }


def read_profiles(world: "Simulator") -> list[ProfileState]:
    """Read every profile of every device."""
    return [_read(device, path, owner) for device in world.devices for path, owner in device.profiles()]


def find_defects(world: "Simulator", views: Views, held: list[ProfileState]) -> list[str]:
    """Describe each broken promise."""
    _expect_erased_lines(world, held)
    found: list[str] = []
    for profile in held:
        found += [f"{profile.name}: {problem}" for problem in profile.problems]
    for user in world.users:
        found += _check_numbering(world, user)
        for profile in held:
            if profile.owner == user and not revoked(world, user, profile.device):
                found += _check_converged(world, user, profile)
    found += _check_acknowledged(world, held)
    found += _check_agreement(world, held)
    found += _check_remembered(world, held)
    found += _check_shown(world, held)
    found += _check_resurrected(world)
    found += _check_separated(world, held)
    found += _check_forged(world, held)
    found += _check_secrets(world)
    found += _check_identical(world, views, held)
    if world.server.refreshed_at_once and not world.copied:
        found.append("a session was refreshed by two requests at once")
    return found


def _read(device: SimulatedDevice, path: Path, owner: str | None) -> ProfileState:
    cursor = device.connection(path).cursor()
    cursor.row_factory = sqlite3.Row
    events = {row["event_id"]: dict(row) for row in cursor.execute(_EVENTS)}
    states = Counter(state for (state,) in device.query(path, "select state from deliveries"))
    problems = [found for (found,) in device.query(path, "pragma integrity_check") if found != "ok"]
    problems += [what for what, question in QUESTIONS.items() if device.query(path, question)]
    cursors = device.query(path, "select seq from cursors")
    documents = device.newest_document(path)
    archived = {event_id: line for lines in device.archived().values() for event_id, line in lines.items()}
    seq = cursors[0][0] if cursors else 0
    return ProfileState(device, path, owner, events, states, seq, documents, archived, problems)


def _expect_erased_lines(world: "Simulator", held: list[ProfileState]) -> None:
    """Expect nothing of an edit of an erased line; it is erased with the line.

    A removed line and a new one, both typed before the program reads the file, look like an edit. An edit that quotes
    the line is blanked by a derived request.
    """
    edits = [(name, row) for profile in held for name, row in profile.events.items() if row["type"] == "entry_edited"]
    payloads = [json.loads(row["payload"]) for _, row in edits]
    world.expected.taken |= _words(str(edit) for edit in payloads if edit.get("entry_id") in world.expected.lines)
    left = {row["device_id"] for name, row in edits if row["payload"] == "{}" and name not in world.expected.forgotten}
    stored_words = _words(row["payload"] for profile in held for row in profile.events.values())
    for fact in world.expected.required_facts():
        if fact.event_id is None and f"device-{fact.device}" in left and stored_words.isdisjoint(fact.words):
            fact.must = False


def revoked(world: "Simulator", user: str, device: SimulatedDevice) -> bool:
    """Whether the account has revoked the device, by its id or by the key of a copied home."""
    registered = world.server.user_logs[user].devices
    ids = [f"device-{name}" for name in (device.name, device.copy_of) if name]
    return any(registered[device_id].revoked_at is not None for device_id in ids if device_id in registered)


def _check_numbering(world: "Simulator", user: str) -> Iterator[str]:
    """The server's log: dense numbers, each event and each number of a replica once (I2)."""
    stored = world.server.user_logs[user].events
    if [event.server_seq for event in stored] != list(range(1, len(stored) + 1)):
        yield f"{user}: the server's numbers are not dense"
    exchanges = [event for event in stored if event.type == "exchange_recorded" and event.origin != Origin.IMPORTED]
    for what, keys in (
        ("event", [event.event_id for event in stored]),
        ("number of a replica", [(event.replica_id, event.replica_seq) for event in stored]),
        ("exchange", [said for event in exchanges if (said := tuple(words_of(str(event.payload))))]),
    ):
        doubled = [key for key, count in Counter(keys).items() if count > 1]
        if doubled:
            yield f"{user}: the server holds one {what} twice: {doubled[0]}"


def _check_converged(world: "Simulator", user: str, profile: ProfileState) -> Iterator[str]:
    """A device has what the server has, value for value, and nothing is pending (I1-I3, I6)."""
    memory = world.server.user_logs[user]
    stored = {event.event_id: event for event in memory.events}
    here = profile.cloud()
    refused = here & world.server.refused_event_ids - stored.keys()
    active = profile.device.last_owner == user  # another account's profile was caught up when it was left
    if active and (lacking := stored.keys() - here):
        yield f"{profile.name}: lacks {len(lacking)} events of {user}, among them {min(lacking)}"
    if unsent := here - stored.keys() - refused - _peer_only_events(world, profile):
        yield f"{profile.name}: {len(unsent)} events never reached the server, among them {min(unsent)}"
    if profile.states["pending"]:
        yield f"{profile.name}: {profile.states['pending']} deliveries still wait"
    own = [event_id for event_id in refused if profile.events[event_id]["delivery"]]  # other devices send their own
    if profile.states["quarantined"] != len(own):
        yield f"{profile.name}: {profile.states['quarantined']} events set aside, {len(own)} were refused"
    if active and profile.cursor != memory.head:
        yield f"{profile.name}: its cursor is at {profile.cursor}, the server's head at {memory.head}"
    gone_here = profile.named(PAYLOAD_EXPIRED) | profile.named(PAYLOAD_FORGOTTEN, besides=stored)
    if not active:  # a profile that was inactive at the request still has it
        unheard = [event for event in memory.events if event.event_id not in profile.events]
        here -= {name for event in unheard for name in erased_by(event)}
    for event_id in sorted(here & stored.keys()):
        row, wire = profile.events[event_id], to_wire(stored[event_id])
        left = not active and row["server_seq"] is None  # a restored server lost it, and others sent it again since
        if row["server_seq"] != stored[event_id].server_seq and not left:
            yield f"{profile.name}: {event_id} has number {row['server_seq']}, not {stored[event_id].server_seq}"
        compared = COMPARED if world.copied or world.renumbered else (*COMPARED, *NUMBERED)
        different = [name for name in compared if row[name] != wire[name]]
        erased = event_id in world.unheard or (row["payload"] == "{}" and event_id in gone_here)
        if different or (json.loads(row["payload"]) != wire["payload"] and not erased):
            yield f"{profile.name}: {event_id} differs from the server's in {different or 'its payload'}"


def _check_acknowledged(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """What counts as sent is what the server has (I1)."""
    for profile in held:
        memory = world.server.user_logs.get(profile.owner or "")
        for event in memory.events if memory else ():
            row = profile.events.get(event.event_id, {})
            if row.get("delivery") == "acked" and any(row[name] != getattr(event, name) for name in IDENTITY):
                yield f"{profile.name}: {event.event_id} counts as sent, and the server has another event under its id"


def _check_agreement(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """An event is the same event in every database, also before the server has it (I3).

    Of what two devices imported the server's copy decides, unless it refuses it or the device.
    """
    known: dict[str, tuple[str, dict[str, Any]]] = {}
    for profile in held:
        is_cut_off = profile.owner is not None and revoked(world, profile.owner, profile.device)
        for event_id, row in profile.events.items():
            if row["origin"] == Origin.IMPORTED and (is_cut_off or event_id in world.server.refused_event_ids):
                continue
            first, other = known.setdefault(event_id, (profile.name, row))
            if different := [name for name in IDENTITY if row[name] != other[name]]:
                yield f"{profile.name}: {event_id} differs from that of {first} in {different}"


def _check_remembered(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """Acknowledged events are in their device's log, and on the server if they may leave (I1)."""
    stored = {user: _words(str(to_wire(event)) for event in memory.events) for user, memory in memories(world)}
    documents = _words(row.content for _, memory in memories(world) for row in memory.documents.values())
    ids = {user: {event.event_id for event in memory.events} for user, memory in memories(world)}
    kept_out = _words(
        row["payload"] for p in held for name, row in p.events.items() if name in world.server.refused_event_ids
    )
    for fact in world.expected.required_facts():
        homes = [p for p in held if p.device.name == fact.device and p.owner == fact.owner]
        words = set(fact.words) - world.expected.taken if fact.event_id is None else set(fact.words)
        if fact.owner is None:
            yield f"{fact.device}: {fact.words} belongs to nobody although everybody has logged in"
            continue
        back = not any(home.device.emptied and revoked(world, fact.owner, home.device) for home in homes)
        if homes and back and not any(_holds(home, fact, words) for home in homes):
            yield f"{fact.device}: {_describe(fact)} was acknowledged and is in no log of {fact.owner}"
        if fact.stays_here:
            if any(words & there for there in (*stored.values(), documents)):
                yield f"{_describe(fact)} must stay on {fact.device} and is on the server"
        elif fact.event_id in world.server.refused_event_ids or any(
            revoked(world, fact.owner, home.device) for home in homes
        ):
            continue
        elif fact.event_id is not None and fact.event_id not in ids[fact.owner]:
            yield f"{fact.device}: {_describe(fact)} was acknowledged and never reached the server of {fact.owner}"
        elif fact.event_id is None and not words - kept_out <= stored[fact.owner]:
            yield f"{fact.device}: {_describe(fact)} was typed and never reached the server of {fact.owner}"


def _holds(home: ProfileState, fact: ExpectedFact, words: set[str]) -> bool:
    if fact.event_id is not None:
        return fact.event_id in home.events
    there = (*(row["payload"] for row in home.events.values()), *home.archived.values())
    return words <= _words(there)


def _check_shown(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """The file on disk shows what was recorded and typed and not removed (I8)."""
    for device in world.devices:
        path, owner = device.settings.memory_file, device.last_owner
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        seen = set(words_of(text))
        if device.emptied and owner is not None and revoked(world, owner, device):
            continue  # its own earlier words cannot come back to it
        for fact in world.expected.required_facts():
            lost = set(fact.words) - world.expected.taken - seen
            if fact.owner == owner and fact.shown and fact.device == device.name and lost:
                yield f"{device.name}: {sorted(lost)} of {_describe(fact)} is not in the document"
    yield from _snapshots(world, held)


def can_have_arrived(world: "Simulator", owner: str, viewer: SimulatedDevice, fact: ExpectedFact) -> bool:
    """Whether another device's fact can have reached this one."""
    of = next(device for device in world.devices if device.name == fact.device)
    if fact.event_id in world.server.refused_event_ids or (fact.event_id is None and world.server.refused_event_ids):
        return False
    return not revoked(world, owner, of) and not revoked(world, owner, viewer)


def _snapshots(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """The server's copy of a device's document has all that the device recorded (I1)."""
    for profile in held:
        device = profile.device
        if profile.owner is None or profile.owner != device.last_owner or revoked(world, profile.owner, device):
            continue
        if device.was_recreated:  # its own earlier words come back without a new number
            continue
        stored = world.server.user_logs[profile.owner].documents.get(str(device.settings.device_id))
        if _body(stored.content if stored else "") != _body(profile.documents):
            yield f"{device.name}: the server's document is not the one that this device has"
        seen = set(words_of(stored.content)) if stored else set()
        for fact in world.expected.required_facts():
            lost = set(fact.words) - world.expected.taken - seen
            if fact.device == device.name and fact.owner == profile.owner and fact.shown and lost:
                yield f"{device.name}: {sorted(lost)} of {_describe(fact)} is not in the server's document"


def _body(document: str) -> str:
    """The document without its footer; the server's copy has a version label of its own."""
    return document.rpartition(FOOTER)[0]


def _check_resurrected(world: "Simulator") -> Iterator[str]:
    """A removed line stays removed on its device, unless it was changed meanwhile."""
    expected = world.expected
    for device in world.devices:
        path = device.settings.memory_file
        seen = set(words_of(path.read_text("utf-8", "replace"))) if path.exists() else set()
        for line, by in expected.removed.items():
            gone = line not in expected.loose and line not in expected.changed
            if gone and line in seen and device.name in by:
                yield f"{device.name}: the line {line} was taken away and is back"


def _check_separated(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """No data of one user is with another, on the server, in databases or in the memory file (I4)."""
    owners = world.expected.owners()
    places: list[tuple[str, str | None, set[str]]] = []
    for user, memory in memories(world):
        rows = [str(to_wire(event)) for event in memory.events]
        places.append((f"the server's memory of {user}", user, _words(rows)))
        documents = [snapshot.content for snapshot in memory.documents.values()]
        places.append((f"the server's documents of {user}", user, _words(documents)))
    for profile in held:
        texts = [profile.documents, *(row["payload"] for row in profile.events.values())]
        places.append((f"the database {profile.name}", profile.owner, _words(texts)))
    for device in world.devices:
        path = device.settings.memory_file
        if path.exists():
            places.append(
                (f"the file of {device.name}", device.last_owner, _words([path.read_text("utf-8", "replace")]))
            )
    for place, owner, words in places:
        strange = sorted(word for word in words if owners.get(word) not in {None, owner})
        if strange and owner is not None:
            yield f"{place} holds {strange[0]} of {owners[strange[0]]}"


def _check_forged(world: "Simulator", held: list[ProfileState]) -> Iterator[str]:
    """A correction that is no redaction puts no words anywhere."""
    for profile in held:
        rows = [row["payload"] for row in profile.events.values() if row["type"] != PAYLOAD_REDACTED]
        if told := world.expected.forged & _words([profile.documents, *rows]):
            yield f"{profile.name}: tells {min(told)}, which a forged correction says"


def _check_secrets(world: "Simulator") -> Iterator[str]:
    """No planted secret is anywhere (I9)."""
    if not world.expected.secrets:
        return
    rows = [str(to_wire(event)) for _, memory in memories(world) for event in memory.events]
    rows += [row.content for _, memory in memories(world) for row in memory.documents.values()]
    rows += [line for device in world.devices for lines in device.archived().values() for line in lines.values()]
    files = (path for device in world.devices for path in device.folder.rglob("*") if path.is_file())
    secrets = [secret[:RECOGNISED].encode() for secret in world.expected.secrets]  # summaries cut the end off
    read = (path.read_bytes() for path in files)
    for data in ("\n".join(rows).encode(), *(data for data in read if SECRET in data)):  # most contain none
        for secret in secrets:
            if secret in data:
                yield f"the secret {secret.decode()} was kept"


def unsendable_events(world: "Simulator", profile: ProfileState) -> set[str]:
    """Events that the server never accepts, or whose erasure request it refused; their text is only here."""
    stored = {event.event_id for _, memory in memories(world) for event in memory.events}
    unheard = {
        event_id for event_id in world.unheard & profile.events.keys() if profile.events[event_id]["payload"] != "{}"
    }
    return profile.cloud() & world.server.refused_event_ids - stored | unheard | _peer_only_events(world, profile)


def _peer_only_events(world: "Simulator", profile: ProfileState) -> set[str]:
    """Events that a peer sent and their author, revoked or restored from a backup, will not send to the server."""
    memory = world.server.user_logs.get(profile.owner or "")
    if world.plan.kinds.isdisjoint((LAN, PAIRING, IMPORTING)) or memory is None:
        return set()
    owner = str(profile.owner)
    silent = [device for device in world.devices if device.emptied or revoked(world, owner, device)]
    silent_ids = {str(device.settings.device_id) for device in silent}
    stored = {event.event_id for event in memory.events}
    return {name for name in profile.cloud() - stored if profile.events[name]["device_id"] in silent_ids}


def _check_identical(world: "Simulator", views: Views, held: list[ProfileState]) -> Iterator[str]:
    """All devices show a device alike (I3).

    A device no longer shows what retention has archived of others.
    """
    apart = {profile.device.name for profile in held if unsendable_events(world, profile)}
    without = apart | {profile.device.name for profile in held if profile.named(PAYLOAD_EXPIRED)}
    shown: defaultdict[tuple[str | None, str], dict[str, tuple[Any, ...]]] = defaultdict(dict)
    for device in world.devices:
        owner = device.last_owner
        if owner is None or revoked(world, owner, device):
            continue
        for other, lines in views[device.name].items() if device.name not in without else ():
            shown[owner, other][device.name] = lines
    for (_, other), by in shown.items():
        if len(set(by.values())) > 1:
            yield f"{other} does not look the same on {sorted(by)}"


def memories(world: "Simulator") -> list[tuple[str, Any]]:
    return [(user, world.server.user_logs[user]) for user in world.users]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words_of(text)}


def _describe(fact: ExpectedFact) -> str:
    return f"{' '.join(fact.words)} ({fact.event_id or 'by hand'}, step {fact.step})"
