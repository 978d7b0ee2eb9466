"""Payloads, notes and index rows. Pure values."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

Source = Literal["auto", "remember", "choice", "init"]
Confidence = Literal["low", "medium", "high"]
Audience = Literal["personal", "project", "team"]
SOURCES: Final[tuple[Source, ...]] = ("auto", "remember", "choice", "init")
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")
AUDIENCES: Final[tuple[Audience, ...]] = ("personal", "project", "team")
DIMENSIONS: Final = ("D1", "D2", "D3", "D4", "D5")

ACTIVE: Final = "active"
LOCAL: Final = "local"  # holds for this user or under stated bounds; found by retrieval, never exported
ARCHIVE: Final = "archive"  # kept, not retrieved
STATUSES: Final = (ACTIVE, LOCAL, ARCHIVE)
STRONG: Final = frozenset({"enforced", "validated"})  # of a note's Strength
TEAM_KINDS: Final = frozenset({"pattern", "decision", "reference", "tech"})

META_FIELDS: Final = (
    "Id",
    "Title",
    "Kind",
    "Status",
    "Strength",
    "Scope",
    "Audience",
    "Portability",
    "Source",
    "Tags",
    "Supersedes",
    "CreatedAt",
    "UpdatedAt",
    "Session",
)
INDEX_COLUMNS: Final = (
    "Id",
    "Kind",
    "Title",
    "When to load",
    "Status",
    "Strength",
    "Scope",
    "Supersedes",
    "CreatedAt",
    "UpdatedAt",
    "Source",
    "Session",
    "File",
)


class Layer(StrEnum):
    """What a score card allows to write: a fact (L0), a principle (L1), both, or nothing.

    `WEAK_L1`: a principle with stated bounds.
    """

    NONE = "none"
    L0 = "L0"
    L1 = "L1"
    BOTH = "L0+L1"
    WEAK_L1 = "weak L1"


class Action(StrEnum):
    """What governance does with a payload, or a user with a note."""

    NEW = "new"
    MERGE = "merge"
    REPLACE = "replace"
    VETO = "veto"
    DELETE = "delete"


class AnswerOption(StrEnum):
    """The answers to a question."""

    CONFIRM = "a"
    CANCEL = "b"
    WRITE_AS_NEW = "c"
    COMPARE = "d"


class ScoreCard(msgspec.Struct, frozen=True):
    """Five scores of 0 to 2: decision gain, transfer, trigger, verifiable, stable."""

    decision_gain: int
    transfer: int
    trigger: int
    verifiable: int
    stable: int

    @property
    def values(self) -> tuple[int, int, int, int, int]:
        return self.decision_gain, self.transfer, self.trigger, self.verifiable, self.stable

    @property
    def total(self) -> int:
        return sum(self.values)


class Payload(msgspec.Struct, frozen=True):
    """One judgement of the user: in `scene`, of `principles`, `choice`. `scores`: those of the caller's model."""

    scene: str
    principles: tuple[str, ...]
    choice: str
    source: Source
    confidence: Confidence
    evidence: str = ""
    apply: Audience = "project"
    scores: ScoreCard | None = None

    @property
    def rejected(self) -> tuple[str, ...]:
        """The principles that were not chosen."""
        return tuple(principle for principle in self.principles if principle != self.choice)


class Note(msgspec.Struct, frozen=True):
    """What a note file says. `meta`: its Meta lines by name, `sections`: the text below each other heading."""

    text: str
    title: str
    meta: dict[str, str]
    sections: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def status(self) -> str:
        return (self.meta.get("Status") or ACTIVE).casefold()

    @property
    def when_to_load(self) -> tuple[str, ...]:
        return bullets(self.sections.get("When to load", ""))

    @property
    def one_liner(self) -> str:
        return " ".join(self.sections.get("One-liner", "").split())

    def decision_field(self, name: str) -> str:
        """A field of the section Context / Decision, such as `Alternatives`; empty if it is missing.

        A merge adds lines of a label; all of them count.
        """
        values: list[str] = []
        for line in bullets(self.sections.get("Context / Decision", "")):
            label, colon, value = line.replace("：", ":", 1).partition(":")
            if colon and label.strip(" *").casefold() == name.casefold():
                values.append(value.strip(" *"))
        return LIST_SEPARATOR.join(value for value in values if value)

    @property
    def decision(self) -> str:
        """What was chosen; of a note that has no such field, what it tells."""
        return self.decision_field("Decision") or self.one_liner or self.title

    @property
    def alternatives(self) -> tuple[str, ...]:
        return split_list(self.decision_field("Alternatives"))

    @property
    def searchable(self) -> str:
        """The text to search, without the Meta."""
        parts = [self.title, *self.when_to_load, self.one_liner]
        parts += [text for name, text in self.sections.items() if name not in {"When to load", "One-liner"}]
        return "\n".join(part for part in parts if part.strip())


def is_for_team(note: Note) -> bool:
    """Whether a note belongs into the team's repository.

    Active, Audience team and Portability cross-project; and a standard (Strength enforced or validated), a solution
    (Kind pattern or decision) or a default (Kind reference or tech).
    """
    meta = {name: value.casefold() for name, value in note.meta.items()}
    is_portable = (meta.get("Audience"), meta.get("Portability")) == ("team", "cross-project")
    kinds = set(meta.get("Kind", "").split("/"))
    return note.status == ACTIVE and is_portable and (meta.get("Strength") in STRONG or bool(kinds & TEAM_KINDS))


class NoteFile(msgspec.Struct, frozen=True):
    """A note on disk. `file`: as INDEX names it, such as `memory/notes/MEM-1.md`."""

    note_id: str
    file: str
    sha256: str
    note: Note

    @property
    def is_shared(self) -> bool:
        return self.file.startswith(SHARE_PREFIX)


NOTES_PREFIX: Final = "memory/notes/"
SHARE_PREFIX: Final = "memory/notes/share/"
LIST_SEPARATOR: Final = "；"


def note_id_of(note: Note, file: str, row_id: str = "") -> str:
    """The id of a note: that of its Meta, else that of its row in INDEX.md, else its file's name."""
    return note.meta.get("Id") or row_id or file.rpartition("/")[2].removesuffix(".md")


def bullets(text: str) -> tuple[str, ...]:
    """The items of a list, or the lines of a paragraph; an item keeps its text only."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.lstrip("-*+").strip() if line[:2] in {"- ", "* ", "+ "} else line for line in lines if line)


def split_list(text: str) -> tuple[str, ...]:
    parts = text.replace(";", LIST_SEPARATOR).split(LIST_SEPARATOR)
    return tuple(part.strip() for part in parts if part.strip())
