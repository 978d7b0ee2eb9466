"""What one device knows better than the log: the raw text of what was typed on it, and what no event could hold. Pure.

The log is redacted. A line whose redacted form is what the shared document says stays as it was typed; where somebody
else has changed the line around a placeholder, what was typed goes back into its place. Only if the line would then
no longer be redacted to what the log says (its new words do not introduce a secret as one) the placeholder stays: the
document also leaves this device, and what was typed is in the history of versions.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sync.document.capture.exchange_events import is_too_large_for_event
from sync.document.markdown.model import Block, BlockKind, Encoding, Entry, MemoryDocument, Section, Snapshot
from sync.document.markdown.template import TITLE
from sync.document.shared.entry_ops import normalised_section
from sync.document.shared.reducer import SharedReducer

_PLACEHOLDER: Final = re.compile(r"\[[^\[\]]{1,20}\]")

RedactText = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class LocalForm:
    """How one device's file is written, whatever it says."""

    front_matter: str = ""  # raw, line endings included
    title: str = TITLE
    newline: str = "\n"
    encoding: Encoding = "utf-8"
    bom: bool = False

    @classmethod
    def of(cls, document: MemoryDocument) -> "LocalForm":
        front = next((block.raw for block in document.blocks if block.kind is BlockKind.FRONT_MATTER), "")
        title = next((block.title for block in document.blocks if _is_title(block)), TITLE)
        return cls(front, title, document.newline, document.encoding, document.bom)


@dataclass(frozen=True, slots=True)
class LocalOverlay:
    """One device's side of the shared document. Sections are those of the log, redacted."""

    form: LocalForm = field(default_factory=LocalForm)
    texts: dict[str, str] = field(default_factory=dict)  # by the entry's id in the shared document, where they differ
    titles: dict[str, str] = field(default_factory=dict)  # of headings, by what the log calls them
    local_lines: dict[Section, list[tuple[str | None, Entry]]] = field(
        default_factory=dict
    )  # no event knows them: after, line
    local_sections: tuple[Section, ...] = ()  # likewise


def build_overlay(local: Snapshot | None, reducer: SharedReducer, redact: RedactText) -> LocalOverlay:
    """What a device's newest version has beyond the fold. `clean` redacts."""
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
    for entry in local.entries:
        root, section = reducer.canonical_id(entry.entry_id), sections[entry.section]
        known = reducer.entry(root)
        if known is None and reducer.is_conflict_copy(root):
            continue  # the conflict is settled by now, here as on devices that never met it
        if known is None:
            lines[section].append((before.get(section), entry))
        elif known.text != entry.text:
            texts[root] = restore_local_text(entry.text, known.text, redact)
        before[section] = root
    unknown = tuple(section for section in sections.values() if section and section not in reducer.first_mentions)
    return LocalOverlay(LocalForm.of(local.document), texts, titles, dict(lines), unknown)


def restore_local_text(raw: str, logged: str, redact: RedactText) -> str:
    """The line as this device shows it: what was typed here, with what has been said elsewhere since."""
    cleaned = redact(raw)
    if cleaned == logged or is_too_large_for_event(cleaned):
        return raw
    values = _values_by_placeholder(raw, cleaned)
    restored = _PLACEHOLDER.sub(lambda match: values[match[0]].pop(0) if values.get(match[0]) else match[0], logged)
    return restored if redact(restored) == logged else logged


def _values_by_placeholder(raw: str, redacted: str) -> dict[str, list[str]]:
    """By placeholder, what stands behind each of them in the raw text, from left to right."""
    marks = _PLACEHOLDER.findall(redacted)
    pattern = "(.+?)".join(re.escape(part) for part in _PLACEHOLDER.split(redacted))
    found = re.fullmatch(pattern, raw, re.DOTALL) if marks else None
    values: defaultdict[str, list[str]] = defaultdict(list)
    for mark, value in zip(marks, found.groups() if found else (), strict=False):
        values[mark].append(value)
    return values


def _redact_title(title: str, titles: dict[str, str], redact: RedactText) -> str:
    cleaned = redact(title)
    if cleaned != title:
        titles[cleaned] = title
    return cleaned


def _is_title(block: Block) -> bool:
    return block.kind is BlockKind.HEADING and block.level == 1 and not block.section
