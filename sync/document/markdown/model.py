"""The memory file as values: blocks that keep their raw text, and entries whose identity lives outside the file.

Glossary
    block       a piece of the file, raw text with its own line ending; the blocks put together are the file.
    entry       one line a person or the program wrote (bullet, paragraph, table row, quote), or one whole fenced
                block. The unit that is added, edited and removed.
    section     the titles of the headings above a block, outermost first, without the title of the document:
                ``("重要对话记录", "2026/1/8")``.
    snapshot    a document and the ids of its entries, in the order in which they stand.
    version     one known state of the file: a snapshot, its hash, and its label.
    label       the text behind 最后更新 in the last line. Every version that we write has a label of its own, so a
                label found on disk names the version an editor had loaded.

Two decisions live here. An entry's text keeps its bullet and its indentation, since both are the person's; it does
not hold line endings or spaces at the end of a line, so that an editor that strips or converts them edits nothing.
And ids never enter the file: a person would see them, and a copied line would bring its twin's id along.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

from sync.system.digests import sha256 as digest_of

Encoding = Literal["utf-8", "gb18030"]
Section = tuple[str, ...]

BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class BlockKind(StrEnum):
    """What a block is. Only an `ENTRY` has identity; the others are the person's layout and stay as they are."""

    FRONT_MATTER = "front_matter"
    HEADING = "heading"
    ENTRY = "entry"
    PLACEHOLDER = "placeholder"
    SEPARATOR = "separator"
    BLANK = "blank"
    FOOTER = "footer"


@dataclass(frozen=True, slots=True)
class Block:
    """`raw` is the text as it stands in the file, line endings included; `level` is 1–6 for a heading, else 0.

    `title` is the text of a heading or the label of a footer. A heading's `section` includes its own title.
    """

    kind: BlockKind
    raw: str
    section: Section = ()
    level: int = 0
    title: str = ""

    @property
    def text(self) -> str:
        """The block without line endings and without spaces at the end of its lines; lines joined by a line feed."""
        return normalised_text(self.raw)


# the letter of each kind in a shape
KIND_LETTERS: Final = {
    BlockKind.FRONT_MATTER: "m",
    BlockKind.HEADING: "h",
    BlockKind.ENTRY: "e",
    BlockKind.PLACEHOLDER: "p",
    BlockKind.SEPARATOR: "s",
    BlockKind.BLANK: "b",
    BlockKind.FOOTER: "f",
}


def _join_raw(blocks: Iterable[Block]) -> str:
    return "".join([block.raw for block in blocks])


def shape_of(blocks: Iterable[Block]) -> str:
    """The kind of each block as one letter: places are found in it without a look at each block."""
    return "".join([KIND_LETTERS[block.kind] for block in blocks])


@dataclass(frozen=True)
class MemoryDocument:
    """The whole file. `encoding` other than UTF-8 means: read it, tell the person, think before writing.

    What is derived from the blocks is computed once. `respliced` (parse.py) hands over what it knows already.
    """

    blocks: tuple[Block, ...] = ()
    encoding: Encoding = "utf-8"
    bom: bool = False

    @cached_property
    def text(self) -> str:
        """The file's text, without the byte order mark."""
        return _join_raw(self.blocks)

    @cached_property
    def shape(self) -> str:
        return shape_of(self.blocks)

    @cached_property
    def entries(self) -> tuple[Block, ...]:
        return tuple([block for block in self.blocks if block.kind is BlockKind.ENTRY])

    @property
    def label(self) -> str | None:
        """What stands behind 最后更新, or None where there is no such line or nothing behind it."""
        at = self.shape.rfind(KIND_LETTERS[BlockKind.FOOTER])
        return None if at < 0 else self.blocks[at].title or None

    @cached_property
    def endings(self) -> tuple[int, int, int]:
        """How many lines end in a line feed alone, in both, and in a carriage return alone."""
        return count_line_endings(self.text)

    @property
    def newline(self) -> str:
        """The line ending most lines have; what we add uses it. A line feed where nothing decides."""
        counts = dict(zip(("\n", "\r\n", "\r"), self.endings, strict=True))
        return max(counts, key=lambda ending: counts[ending])

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing but white space in the file."""
        return self.shape.count(KIND_LETTERS[BlockKind.BLANK]) == len(self.blocks)

    @cached_property
    def data(self) -> bytes:
        """The bytes: for every accepted file, the very bytes that were read."""
        text = vars(self).get("text") or _join_raw(self.blocks)  # the text is not kept beside the bytes
        return ((BOM if self.bom else "") + text).encode(self.encoding)

    @cached_property
    def sha256(self) -> str:
        """Over the bytes, in hex."""
        return digest_of(self.data)

    def drop_caches(self) -> None:
        """Forget derived values that are as large as the document; they are computed again when needed."""
        for name in ("text", "data", "entries"):
            vars(self).pop(name, None)

    def without_caches(self) -> "MemoryDocument":
        """The same without most of what was derived from it: for whoever keeps many."""
        slim = MemoryDocument(self.blocks, self.encoding, self.bom)
        preset_cached(slim, shape=self.shape)
        return slim


@dataclass(frozen=True, slots=True)
class Entry:
    entry_id: str
    text: str
    section: Section = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A block, and its id if it is an entry."""

    block: Block
    entry_id: str | None = None

    @property
    def kind(self) -> BlockKind:
        return self.block.kind


@dataclass(frozen=True)
class Snapshot:
    """A document whose entries have ids: `ids[n]` belongs to the n-th entry block. Ids are unique in it."""

    document: MemoryDocument
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        expected = self.document.shape.count(KIND_LETTERS[BlockKind.ENTRY])
        if expected != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids for {expected} entries")

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        blocks = self.document.entries
        return tuple([Entry(name, block.text, block.section) for name, block in zip(self.ids, blocks, strict=True)])

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Each block with its id."""
        ids = iter(self.ids)
        return tuple(
            [Cell(block, next(ids) if block.kind is BlockKind.ENTRY else None) for block in self.document.blocks]
        )

    def drop_caches(self) -> None:
        """Forget derived values that are as large as the document; they are computed again when needed."""
        for name in ("entries", "cells"):
            vars(self).pop(name, None)
        self.document.drop_caches()

    def without_caches(self) -> "Snapshot":
        """The same without most of what was derived from it: for whoever keeps many."""
        return Snapshot(self.document.without_caches(), self.ids)

    def text_of(self, entry_id: str) -> str:
        """What an entry says; ValueError where there is no such entry."""
        return self.document.entries[self.ids.index(entry_id)].text


@dataclass(frozen=True, slots=True)
class Version:
    """One known state of the file. `number` grows; `sha256` is over the bytes, in hex."""

    number: int
    label: str | None
    sha256: str
    snapshot: Snapshot

    @classmethod
    def of(cls, number: int, snapshot: Snapshot) -> "Version":
        """The version a snapshot makes: hash and label are its own."""
        return cls(number, snapshot.document.label, snapshot.document.sha256, snapshot)


@dataclass(frozen=True, slots=True)
class EntryAdded:
    """A line that was not there. `after` is the entry before it in the same section, None for the first one there."""

    entry_id: str
    after: str | None
    section: Section
    text: str


@dataclass(frozen=True, slots=True)
class EntryEdited:
    """A line that reads differently, or stands in another section (then `text` may equal `base_text`).

    `text` is what the line says after both sides were folded; `base_text` is what the hand had before it.
    """

    entry_id: str
    base_text: str
    text: str
    section: Section


@dataclass(frozen=True, slots=True)
class EntryRemoved:
    """A line the hand took away; `text` and `section` are what it was."""

    entry_id: str
    text: str
    section: Section


Operation = EntryAdded | EntryEdited | EntryRemoved


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a look at the file means.

    `operations`  what the hand did, in document order, removals last; ready to become events.
    `snapshot`    the merged result: the bytes on disk with what we knew besides put in.
    `flagged`     ids of lines that both sides changed in the same words: the known line and, next to it, the line
                  from disk as an entry of its own.
    `observed`    the file exactly as found, with ids. Where it differs from `snapshot` it must enter the ring before
                  it: an editor that saves again holds this state, not the merged one.
    """

    operations: tuple[Operation, ...]
    merged: Snapshot
    conflicting_ids: tuple[str, ...]
    observed: Snapshot

    @property
    def must_write(self) -> bool:
        """Whether the merged result is not what is on disk.

        Such a version needs a footer of its own (`set_footer`) before it enters the ring: a stale label would name it.
        """
        return self.merged.document != self.observed.document


def sha256_of(document: MemoryDocument) -> str:
    return document.sha256


def count_line_endings(text: str) -> tuple[int, int, int]:
    """Line feeds alone, both together, carriage returns alone."""
    windows = text.count("\r\n")
    return text.count("\n") - windows, windows, text.count("\r") - windows


def preset_cached(value: object, **known: object) -> None:
    """Hand over values of cached properties that need not be computed."""
    vars(value).update(known)


def normalised_text(raw: str) -> str:
    """Text that compares equal however an editor ends its lines."""
    bare = raw.rstrip()
    if "\n" not in bare and "\r" not in bare:
        return bare  # one line, as nearly all are
    return "\n".join(line.rstrip() for line in lines_of(raw)).rstrip("\n")


def lines_of(text: str) -> list[str]:
    """Lines with their endings. Only CR, LF and CRLF end a line; `str.splitlines` would also cut at U+2028 and FF."""
    return _LINE.findall(text)
