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

from sync.document.capture import is_large
from sync.document.deeds import sound_section
from sync.document.model import Block, Document, Encoding, Entry, Kind, Section, Snapshot
from sync.document.shared import SharedFold
from sync.document.template import TITLE

_PLACEHOLDER: Final = re.compile(r"\[[^\[\]]{1,20}\]")

Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Form:
    """How one device's file is written, whatever it says."""

    front_matter: str = ""  # raw, line endings included
    title: str = TITLE
    newline: str = "\n"
    encoding: Encoding = "utf-8"
    bom: bool = False

    @classmethod
    def of(cls, document: Document) -> "Form":
        front = next((block.raw for block in document.blocks if block.kind is Kind.FRONT_MATTER), "")
        title = next((block.title for block in document.blocks if _is_title(block)), TITLE)
        return cls(front, title, document.newline, document.encoding, document.bom)


@dataclass(frozen=True, slots=True)
class Overlay:
    """One device's side of the shared document. Sections are those of the log, redacted."""

    form: Form = field(default_factory=Form)
    texts: dict[str, str] = field(default_factory=dict)  # by the entry's id in the shared document, where they differ
    titles: dict[str, str] = field(default_factory=dict)  # of headings, by what the log calls them
    lines: dict[Section, list[tuple[str | None, Entry]]] = field(
        default_factory=dict
    )  # no event knows them: after, line
    sections: tuple[Section, ...] = ()  # likewise


def overlay(local: Snapshot | None, fold: SharedFold, clean: Clean) -> Overlay:
    """What a device's newest version has beyond the fold. `clean` redacts."""
    if local is None:
        return Overlay()
    titles: dict[str, str] = {}
    sections: dict[Section, Section] = {}
    for block in local.document.blocks:
        if block.section not in sections:
            sections[block.section] = sound_section(tuple(_cleaned(title, titles, clean) for title in block.section))
    texts: dict[str, str] = {}
    lines: defaultdict[Section, list[tuple[str | None, Entry]]] = defaultdict(list)
    before: dict[Section, str] = {}
    for entry in local.entries:
        root, section = fold.root(entry.entry_id), sections[entry.section]
        known = fold.line(root)
        if known is None and fold.left_by_conflict(root):
            continue  # the conflict is settled by now, here as on devices that never met it
        if known is None:
            lines[section].append((before.get(section), entry))
        elif known.text != entry.text:
            texts[root] = as_typed(entry.text, known.text, clean)
        before[section] = root
    unknown = tuple(section for section in sections.values() if section and section not in fold.mentioned)
    return Overlay(Form.of(local.document), texts, titles, dict(lines), unknown)


def as_typed(raw: str, said: str, clean: Clean) -> str:
    """The line as this device shows it: what was typed here, with what has been said elsewhere since."""
    cleaned = clean(raw)
    if cleaned == said or is_large(cleaned):
        return raw
    values = _hidden(raw, cleaned)
    restored = _PLACEHOLDER.sub(lambda match: values[match[0]].pop(0) if values.get(match[0]) else match[0], said)
    return restored if clean(restored) == said else said


def _hidden(raw: str, cleaned: str) -> dict[str, list[str]]:
    """By placeholder, what stands behind each of them in the raw text, from left to right."""
    marks = _PLACEHOLDER.findall(cleaned)
    pattern = "(.+?)".join(re.escape(part) for part in _PLACEHOLDER.split(cleaned))
    found = re.fullmatch(pattern, raw, re.DOTALL) if marks else None
    values: defaultdict[str, list[str]] = defaultdict(list)
    for mark, value in zip(marks, found.groups() if found else (), strict=False):
        values[mark].append(value)
    return values


def _cleaned(title: str, titles: dict[str, str], clean: Clean) -> str:
    cleaned = clean(title)
    if cleaned != title:
        titles[cleaned] = title
    return cleaned


def _is_title(block: Block) -> bool:
    return block.kind is Kind.HEADING and block.level == 1 and not block.section
