"""What one device shows in the shared document beyond the log: its own raw text, and lines that fit into no event.

The log is redacted. A line whose redacted form the log has is shown as it was typed; if another device edited the line
around a placeholder, the value is put back. The placeholder stays unless the restored line is redacted to the same
text, since the document also leaves this device; the version history has the value.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from sync.document.capture.exchange_events import is_too_large_for_event
from sync.document.markdown.model import Block, BlockKind, Encoding, Entry, MemoryDocument, Section, Snapshot
from sync.document.shared.entry_ops import normalised_section
from sync.document.shared.reducer import SharedReducer

_PLACEHOLDER: Final = re.compile(r"\[[^\[\]]{1,20}\]")

RedactText = Callable[[str], str]


class LocalForm(msgspec.Struct, frozen=True):
    """The form of one device's file, independent of its lines."""

    front_matter: str = ""  # raw, line endings included
    title: str | None = None  # None: that of the template
    newline: str = "\n"
    encoding: Encoding = "utf-8"
    bom: bool = False

    @classmethod
    def of(cls, document: MemoryDocument) -> "LocalForm":
        front = next((block.raw for block in document.blocks if block.kind is BlockKind.FRONT_MATTER), "")
        title = next((block.title for block in document.blocks if _is_title(block)), None)
        return cls(front, title, document.newline, document.encoding, document.bom)


class LocalOverlay(msgspec.Struct, frozen=True):
    """One device's additions to the shared document. Sections are redacted, as in the log."""

    form: LocalForm = msgspec.field(default_factory=LocalForm)
    texts: dict[str, str] = msgspec.field(default_factory=dict)  # by canonical id, if they differ
    titles: dict[str, str] = msgspec.field(default_factory=dict)  # headings as typed, by their redacted form
    # Lines and sections that no event names; each line with the id of the entry before it.
    local_lines: dict[Section, list[tuple[str | None, Entry]]] = msgspec.field(default_factory=dict)
    local_sections: tuple[Section, ...] = ()


def build_overlay(local: Snapshot | None, reducer: SharedReducer, redact: RedactText) -> LocalOverlay:
    """Compare a device's newest version with the shared document."""
    if local is None:
        return LocalOverlay()
    titles: dict[str, str] = {}
    sections: dict[Section, Section] = {}
    for block in local.document.blocks:
        if block.section not in sections:
            sections[block.section] = normalised_section(
                tuple(_redact_title(title, titles, redact) for title in block.section)
            )
    texts: dict[str, str] = {}
    lines: defaultdict[Section, list[tuple[str | None, Entry]]] = defaultdict(list)
    before: dict[Section, str] = {}
    known = {*reducer.first_mentions}  # and sections whose lines have left them: their day was that of a wrong clock
    for entry in local.entries:
        root, section = reducer.canonical_id(entry.entry_id), sections[entry.section]
        shared = reducer.entry(root)
        if shared is None and reducer.is_conflict_copy(root):
            continue  # a conflict that is settled by now
        if shared is None:
            lines[section].append((before.get(section), entry))
        elif shared.text != entry.text:
            texts[root] = restore_local_text(entry.text, shared.text, redact)
        if shared is not None:
            known.add(section)
        before[section] = root
    unknown = tuple(section for section in sections.values() if section and section not in known)
    return LocalOverlay(LocalForm.of(local.document), texts, titles, dict(lines), unknown)


def restore_local_text(raw: str, logged: str, redact: RedactText) -> str:
    """The line as this device shows it: the text in the log with the values that were typed here."""
    cleaned = redact(raw)
    if cleaned == logged or is_too_large_for_event(cleaned):
        return raw
    values = _values_by_placeholder(raw, cleaned)
    restored = _PLACEHOLDER.sub(lambda match: values[match[0]].pop(0) if values.get(match[0]) else match[0], logged)
    return restored if redact(restored) == logged else logged


def _values_by_placeholder(raw: str, redacted: str) -> dict[str, list[str]]:
    """The values behind each kind of placeholder, from left to right."""
    marks = _PLACEHOLDER.findall(redacted)
    pattern = "(.+?)".join(re.escape(part) for part in _PLACEHOLDER.split(redacted))
    match = re.fullmatch(pattern, raw, re.DOTALL) if marks else None
    values: defaultdict[str, list[str]] = defaultdict(list)
    for mark, value in zip(marks, match.groups() if match else (), strict=False):
        values[mark].append(value)
    return values


def _redact_title(title: str, titles: dict[str, str], redact: RedactText) -> str:
    cleaned = redact(title)
    if cleaned != title:
        titles[cleaned] = title
    return cleaned


def _is_title(block: Block) -> bool:
    return block.kind is BlockKind.HEADING and block.level == 1 and not block.section
