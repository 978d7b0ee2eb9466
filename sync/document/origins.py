"""Who wrote the lines under 用户偏好: marks for those that the user did not write on this device.

Decisions
    The newest event that adds, edits or moves a line decides. A line of another device (a shared document) is marked
    with the name of that device, a line that a program appended through `events/append` with 工具.
    The same words written here as well make a line the user's own.
    Marks stand in what an assistant reads (`content`, the system prompt), never in the document itself.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from sync.document.capture import EXCHANGE, preferences_of
from sync.document.deeds import order_of, twin
from sync.document.digest import ID_LENGTH, NAME_LENGTH
from sync.document.likeness import bare
from sync.document.model import Kind, Snapshot
from sync.document.summary import summarize
from sync.document.template import PREFERENCES
from sync.log.model import Event, Origin

TOOL: Final = "工具"
_OWN: Final = frozenset({Origin.USER, Origin.IMPORTED})  # at a device: typed there, or taken from a file there

# Text, because it is asked through SQLAlchemy and, before that is imported, through the standard library.
OF_PROGRAMS: Final = """
select * from events indexed by events_of_programs
where type in ('entry_added', 'entry_edited', 'entry_moved') and origin not in ('user-typed', 'imported')
  and position > :after and device_id in (select value from json_each(:own)) limit 1
"""
LINES: Final = """
select * from events where position > :after and type in ('entry_added', 'entry_edited', 'entry_moved')
  and (:everyone or device_id in (select value from json_each(:own)))
union all
select * from events
where :everyone and position > :after and type = 'exchange_recorded' and payload like '%"preferences"%'
order by position
"""

Ask = Callable[[str, dict[str, Any]], Sequence[Event]]


@dataclass(frozen=True, slots=True)
class LineSource:
    """The newest event that wrote a line. `words` are bare."""

    order: tuple[str, str, str]
    device: str
    is_typed: bool
    words: str


class LineSources:
    """The source of every line that the given events wrote."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = frozenset(own)
        self._newest: dict[str, LineSource] = {}
        self._typed: set[str] = set()  # bare words that the user wrote here
        self._after = 0

    def refresh(self, ask: Ask, head: int, *, shared: bool) -> None:
        """Read what the log has, up to position `head`. `ask` runs one of the statements above.

        In a device's own document all lines are its own, unless a program appended one.
        """
        asked = {"own": msgspec.json.encode(sorted(self._own)).decode(), "everyone": shared}
        if shared or self._newest:
            self.add(ask(LINES, {**asked, "after": self._after}))
        elif ask(OF_PROGRAMS, {"own": asked["own"], "after": self._after}):
            self.add(ask(LINES, {**asked, "after": 0}))
        self._after = head

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            order = order_of(event)
            for entry_id, words, is_typed in _written(event):
                if is_typed and event.device_id in self._own:
                    self._typed.add(words)
                known = self._newest.get(entry_id)
                if known is None or known.order < order:
                    self._newest[entry_id] = LineSource(order, event.device_id, is_typed, words)

    def marks(self, snapshot: Snapshot, name_of: Callable[[str], str | None]) -> dict[str, str]:
        """Entry id -> who wrote it, for each line under 用户偏好 that is not the user's own here."""
        found: dict[str, str] = {}
        lines = zip(snapshot.ids, snapshot.document.entries, strict=True) if self._newest else ()
        for entry_id, block in lines:
            source = self._newest.get(entry_id) if block.section[:1] == (PREFERENCES,) else None
            if source is not None and not self._is_own(source) and source.words not in self._typed - {""}:
                found[entry_id] = self._label(source, name_of)
        return found

    def _is_own(self, source: LineSource) -> bool:
        return source.is_typed and source.device in self._own

    def _label(self, source: LineSource, name_of: Callable[[str], str | None]) -> str:
        if source.device in self._own:
            return TOOL
        name = name_of(source.device) or source.device[:ID_LENGTH]
        return summarize(name, NAME_LENGTH).replace("【", "[").replace("】", "]")


def _written(event: Event) -> Sequence[tuple[str, str, bool]]:
    """The lines an event writes: their ids, bare words, and whether a person wrote them."""
    if event.type == EXCHANGE:
        return [(entry.entry_id, bare(entry.text), True) for entry in preferences_of(event)]
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if not isinstance(entry_id, str):
        return []
    words = bare(text) if isinstance(text, str) else ""
    return [(one, words, event.origin in _OWN) for one in (entry_id, twin(entry_id, event.event_id))]


def marked(snapshot: Snapshot, marks: Mapping[str, str]) -> str:
    """The text of a document in which each of these lines begins with 【来自 …】, behind its bullet."""
    if not marks:
        return snapshot.document.text
    ids = iter(snapshot.ids)
    parts = []
    for block in snapshot.document.blocks:
        label = marks.get(next(ids)) if block.kind is Kind.ENTRY else None
        parts.append(block.raw if label is None else _with_label(block.raw, label))
    return "".join(parts)


def _with_label(raw: str, label: str) -> str:
    body = raw.lstrip(" \t")
    indent = raw[: len(raw) - len(body)]
    bullet = body[:2] if body[:2] in {"- ", "* ", "+ "} else ""
    return f"{indent}{bullet}【来自 {label}】{body[len(bullet) :]}"
