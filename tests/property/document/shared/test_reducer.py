"""Three devices share one document. Whatever they type and whenever events arrive, all show the same bytes in the end.

Only pure code runs: a save is planned against the versions of a device and becomes drafts, and their events reach the
others late, twice and in any order. Words are unique, so each one can be looked for afterwards.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sync.clock import format_hlc, parse_hlc
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.model import Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.template import WORK_HABITS
from sync.document.markdown.version_labels import is_shared_label
from sync.document.merge.three_way import choose_base, plan_merge
from sync.document.shared.entry_ops import conflict_copy_id
from sync.document.shared.local_edits import draft_edit_events
from sync.document.shared.local_overlay import build_overlay
from sync.document.shared.reducer import SharedReducer
from sync.document.shared.render import render_shared
from sync.log.event_types import EXCHANGE_RECORDED
from sync.log.model import Event, EventDraft, Origin
from tests.proof import examples
from tests.support import REDACTOR, event

NAMES = ("a", "b", "c")
STEPS = 14
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # a random history does not shrink to a readable one


@dataclass
class TypedText:
    """All typed words by line; a line is identified by its first word, which never changes."""

    chance: random.Random
    time: int = 1_700_000_000_000
    count: int = 0
    typed: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)  # words removed from a line, or with it
    removed: dict[str, set[str]] = field(default_factory=dict)  # line -> who removed it
    edited: dict[str, set[str]] = field(default_factory=dict)  # line -> who changed it

    def word(self) -> str:
        self.count += 1
        word = f"w{self.count}x"
        self.typed.add(word)
        return word

    def sentence(self) -> str:
        return " ".join(self.word() for _ in range(self.chance.randint(4, 7)))


@dataclass
class DeviceModel:
    """One device: its events, its reducer, its versions and an editor."""

    name: str
    world: TypedText
    known: list[Event] = field(default_factory=list)
    fold: SharedReducer = field(default_factory=SharedReducer)
    ring: list[Version] = field(default_factory=list)
    number: int = 0
    tick: int = 0  # of the clock: later than all events that it received
    buffer: str = ""

    def __post_init__(self) -> None:
        letters = self.ids()
        self.new_id: Callable[[], str] = lambda: next(letters)

    def ids(self) -> Iterator[str]:
        while True:
            self.world.count += 1
            yield f"ent_{self.name}{self.world.count}"

    @property
    def text(self) -> str:
        return self.ring[-1].snapshot.document.text if self.ring else ""

    def record(self, kind: str, payload: dict[str, object]) -> None:
        self.world.time += self.world.chance.choice([0, 0, 1, 1000])
        self.number, self.tick = self.number + 1, self.tick + 1
        made = event(
            self.number,
            replica=f"rep_{self.name}",
            device=f"device-{self.name}",
            type=kind,
            payload=payload,
            hlc=format_hlc(self.world.time, self.tick),
            event_id=f"evt_{self.name}{self.number}",
        )
        self.known.append(made)
        self.fold.add(made)

    def hear(self, events: list[Event]) -> None:
        seen = {event.event_id for event in self.known}
        for heard in events:
            self.fold.add(heard)
            self.tick = max(self.tick, parse_hlc(heard.hlc)[1])
            if heard.event_id not in seen:
                self.known.append(heard)
                seen.add(heard.event_id)
        self.render(self.ring[-1].snapshot if self.ring else None)

    def render(self, local: Snapshot | None) -> None:
        if self.fold.label is not None:
            made = render_shared(self.fold, build_overlay(local, self.fold, REDACTOR.clean))
            if not self.ring or made.document != self.ring[-1].snapshot.document:
                self.ring.append(Version.of(len(self.ring), made))

    def say(self) -> None:
        self.record(EXCHANGE_RECORDED, {"question": self.world.sentence(), "answer": self.world.sentence()})
        self.render(self.ring[-1].snapshot if self.ring else None)

    def save(self, text: str) -> None:
        disk = parse(text.encode())
        current = self.ring[-1] if self.ring else None
        base = choose_base(disk, self.ring)
        planned = plan_merge(base, current, disk, self.new_id)
        origin = Origin.USER if current else Origin.IMPORTED
        drafts = draft_edit_events(planned, base.snapshot if base else None, self.fold, REDACTOR, origin)
        for made in drafts:
            self.record_draft(made)
        self.ring.append(Version.of(len(self.ring), planned.observed))
        self.render(planned.merged)
        self.buffer = text

    def record_draft(self, made: EventDraft) -> None:
        self.record(made.type, dict(made.payload.value))

    def edit(self) -> None:
        """One change to the editor's buffer, which is sometimes reloaded first, and a save."""
        world, chance = self.world, self.world.chance
        if not self.buffer or chance.random() < 0.6:
            self.buffer = self.text
        if not self.buffer:
            return
        lines = self.buffer.split("\n")
        items = [at for at, line in enumerate(lines) if line.startswith("- ") and " w" in line.replace("：", " ")]
        kind = chance.choice(["add", "add", "edit", "edit", "edit", "remove", "move", "gap", "heading"])
        at = chance.choice(items) if items else 0
        if kind == "add" or not items:
            places = [at for at, line in enumerate(lines) if line.startswith(("- ", "###"))]
            lines.insert(chance.choice(places) + 1, f"- {world.sentence()}")
        elif kind == "edit":
            lines[at] = self.reworded(lines[at])
        elif kind == "remove":
            world.removed.setdefault(line_key(lines[at]), set()).add(self.name)
            world.taken |= words(lines[at])
            del lines[at]
        elif kind == "move":
            self.moved(lines, at, chance.choice(items))
        elif kind == "gap":
            lines.insert(at, "")
        else:
            lines.insert(lines.index("## 重要对话记录"), f"## {world.word()}\n")
        self.save("\n".join(lines))

    def moved(self, lines: list[str], at: int, to: int) -> None:
        """A line under another heading counts as edited: a removal that did not know the move does not remove it."""
        line, under = lines[at], heading(lines, at)
        lines.insert(to, lines.pop(at))
        if heading(lines, to) != under:
            self.world.edited.setdefault(line_key(line), set()).add(self.name)

    def reworded(self, line: str) -> str:
        """Replace, insert or remove one word, except the first ones, which identify the line."""
        world = self.world
        world.edited.setdefault(line_key(line), set()).add(self.name)
        parts = line.split(" ")
        first = next(at for at, part in enumerate(parts) if words(part)) + 1
        at = world.chance.randrange(first, len(parts)) if len(parts) > first else len(parts)
        gone = parts[at : at + 1]
        kind = world.chance.choice(["replace", "insert", "drop"] if len(parts) > first + 1 else ["insert"])
        put = [*(gone if kind == "insert" else []), *([world.word()] if kind != "drop" else [])]
        world.taken |= set(gone) - set(put)
        return " ".join([*parts[:at], *put, *parts[at + 1 :]])


def heading(lines: list[str], at: int) -> str:
    """The heading above a line."""
    return next(line for line in reversed(lines[:at]) if line.startswith("#"))


def words(text: str) -> set[str]:
    return {word for word in text.replace("：", " ").split() if word.startswith("w")}


def line_key(line: str) -> str:
    return next(word for word in line.replace("：", " ").split() if word.startswith("w"))


def history(chance: random.Random) -> tuple[TypedText, list[DeviceModel]]:
    world = TypedText(chance)
    peers = [DeviceModel(name, world) for name in NAMES]
    peers[0].say()
    for _ in range(STEPS):
        peer = chance.choice(peers)
        action = chance.choice(["say", "edit", "edit", "edit", "hear", "hear"])
        if action == "say":
            peer.say()
        elif action == "edit" and peer.ring:
            peer.edit()
        else:
            heard = list(chance.choice(peers).known)  # a prefix of the events of a replica, in its order
            peer.hear(heard[: chance.randint(0, len(heard))])
    return world, peers


def all_events(peers: list[DeviceModel]) -> list[Event]:
    return list({event.event_id: event for peer in peers for event in peer.known}.values())


@settings(max_examples=examples(150), phases=UNSHRUNK)
@given(st.randoms(use_true_random=False))
def test_devices_with_the_same_events_show_the_same_bytes_and_every_word(chance: random.Random) -> None:
    world, peers = history(chance)
    events = all_events(peers)
    for peer in peers:
        chance.shuffle(events)
        peer.hear(events[: chance.randrange(len(events))])  # a restored server receives events in any order
        peer.hear([*events, *events[:3]])
    texts = {peer.text for peer in peers}
    assert len(texts) == 1
    (text,) = texts
    assert parse(text.encode()).data == text.encode()
    assert peers[0].ring[-1].snapshot.document == parse(text.encode()), "what is kept is what the next look reads"
    assert is_shared_label(parse(text.encode()).label)
    shown = words(text)
    headings = {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## w")}
    assert world.typed - world.taken <= shown | headings
    for line, by in world.removed.items():
        edits = world.edited.get(line, set())  # two removals, each blind to the other's edit, leave both edits
        assert line not in shown or all(edits - {name} for name in by), "taken away and edited by nobody else"


@settings(max_examples=examples(100), phases=UNSHRUNK)
@given(st.randoms(use_true_random=False))
def test_any_order_of_delivery_ends_in_the_same_bytes(chance: random.Random) -> None:
    _, peers = history(chance)
    events = all_events(peers)
    texts = set()
    for _ in range(4):
        chance.shuffle(events)
        fold = SharedReducer()
        for at, heard in enumerate([*events, *events[::2]]):
            fold.add(heard)
            if at % 3 == 0:  # rendering in between changes nothing
                render_shared(fold, build_overlay(None, fold, REDACTOR.clean))
        texts.add(render_shared(fold, build_overlay(None, fold, REDACTOR.clean)).document.data)
    assert len(texts) == 1


def concurrent_edits(chance: random.Random) -> list[Event]:
    """Devices that change two lines and their conflict copies without receiving each other's events."""
    ids, texts, events = ["e1", "e2"], ["- 喝红茶", "- 喝绿茶的人"], list[Event]()
    for number in range(1, chance.randint(5, 10)):
        kind = chance.choice(["entry_added", *["entry_edited"] * 4, "entry_removed", "entry_moved"])
        entry_id, base, device = chance.choice(ids), chance.choice(texts), chance.choice(NAMES)
        said: dict[str, object] = {"entry_id": entry_id, "base_hash": text_hash(base)}
        if kind in {"entry_added", "entry_edited"}:
            said["text"] = base.replace(chance.choice(base[2:]), chance.choice("白黑酒水"))
            texts.append(str(said["text"]))
        if kind == "entry_edited":
            said["base"] = base
            ids.append(conflict_copy_id(entry_id, f"evt_{number}"))
        if kind in {"entry_added", "entry_moved"}:
            said["after"] = chance.choice([None, *ids])
        events.append(
            event(
                number,
                replica=f"rep_{device}",
                device=f"device-{device}",
                type=kind,
                payload={"section": list(WORK_HABITS), "shared": True, **said},
                hlc=format_hlc(1_700_000_000_000, number),
                event_id=f"evt_{number}",
            )
        )
    return events


@settings(max_examples=examples(400), phases=UNSHRUNK)
@given(st.randoms(use_true_random=False))
def test_many_conflicts_give_one_result_in_any_order_with_or_without_rendering_in_between(
    chance: random.Random,
) -> None:
    events = concurrent_edits(chance)
    shown = set()
    for looks in (0.0, 0.3, 0.6, 1.0):
        fold = SharedReducer()
        for heard in events:
            fold.add(heard)
            if chance.random() < looks:
                fold.entries_in(WORK_HABITS)
        shown.add(tuple((line.entry_id, line.text) for line in fold.entries_in(WORK_HABITS)))
        chance.shuffle(events)
    assert len(shown) == 1
