"""The memory file as values: blocks that keep their raw text, and entries whose ids are stored outside the file.

An entry's text keeps its bullet and indentation but no line endings or trailing spaces, so an editor that converts or
strips them edits nothing. Ids never enter the file: people would see them, and a copied line would duplicate its id.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

import msgspec

from sync.system.digests import sha256 as digest_of

Encoding = Literal["utf-8", "gb18030"]
Section = tuple[str, ...]

BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class BlockKind(StrEnum):
    """The kind of a block. Only an `ENTRY` has an id: one line, or one fenced block. The others are layout."""

    FRONT_MATTER = "front_matter"
    HEADING = "heading"
    ENTRY = "entry"
    PLACEHOLDER = "placeholder"
    SEPARATOR = "separator"
    BLANK = "blank"
    FOOTER = "footer"


class Block(msgspec.Struct, frozen=True):
    """A piece of the file. The `raw` texts of all blocks, line endings included, make up the file.

    `section`: the titles of the headings above it, outermost first, without the document's title; a heading's own title
    is included, and English titles of the template have become Chinese ones. `level`: 1–6 for a heading, else 0.
    `title`: the text of a heading as it is written, or the label of a footer, also of one with text below it.
    """

    kind: BlockKind
    raw: str
    section: Section = ()
    level: int = 0
    title: str = ""

    @property
    def text(self) -> str:
        """The block without line endings and trailing spaces; its lines are joined by line feeds."""
        return normalised_text(self.raw)


KIND_LETTERS: Final = {
    BlockKind.FRONT_MATTER: "m",
    BlockKind.HEADING: "h",
    BlockKind.ENTRY: "e",
    BlockKind.PLACEHOLDER: "p",
    BlockKind.SEPARATOR: "s",
    BlockKind.BLANK: "b",
    BlockKind.FOOTER: "f",
}

_HEADING_LETTER: Final = re.compile(KIND_LETTERS[BlockKind.HEADING])


def _join_raw(blocks: Iterable[Block]) -> str:
    return "".join([block.raw for block in blocks])


def shape_of(blocks: Iterable[Block]) -> str:
    """The kind of each block as one letter. Searching this string is faster than visiting the blocks."""
    return "".join([KIND_LETTERS[block.kind] for block in blocks])


@dataclass(frozen=True)
class MemoryDocument:
    """The whole file. Derived values are computed once; `reparse_range` presets those that it already knows."""

    blocks: tuple[Block, ...] = ()
    encoding: Encoding = "utf-8"
    bom: bool = False

    @cached_property
    def text(self) -> str:
        """The text of the file, without the byte order mark."""
        return _join_raw(self.blocks)

    @cached_property
    def shape(self) -> str:
        return shape_of(self.blocks)

    @cached_property
    def entries(self) -> tuple[Block, ...]:
        return tuple([block for block in self.blocks if block.kind is BlockKind.ENTRY])

    @property
    def heading_sections(self) -> list[Section]:
        """The section of each heading, in order."""
        return [self.blocks[found.start()].section for found in _HEADING_LETTER.finditer(self.shape)]

    @property
    def label(self) -> str | None:
        """The text after 最后更新 in the footer, else in the last line of its form; None if there is no such line.

        Every version that this program writes has its own label, so the label on disk names the version that an editor
        had loaded, also if the user has written below it.
        """
        at = self.shape.rfind(KIND_LETTERS[BlockKind.FOOTER])
        if at >= 0:
            return self.blocks[at].title
        return next((one.title for one in reversed(self.blocks) if one.title and one.kind is BlockKind.ENTRY), None)

    @cached_property
    def endings(self) -> tuple[int, int, int]:
        """The number of lines that end in LF, CRLF and CR."""
        return count_line_endings(self.text)

    @property
    def newline(self) -> str:
        """The most frequent line ending, which added lines use; LF if there is none."""
        counts = dict(zip(("\n", "\r\n", "\r"), self.endings, strict=True))
        return max(counts, key=lambda ending: counts[ending])

    @property
    def is_blank(self) -> bool:
        """Whether the file contains only white space."""
        return self.shape.count(KIND_LETTERS[BlockKind.BLANK]) == len(self.blocks)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file: for an accepted file exactly those that were read."""
        text = vars(self).get("text") or _join_raw(self.blocks)  # without caching the text as well
        return ((BOM if self.bom else "") + text).encode(self.encoding)

    @cached_property
    def sha256(self) -> str:
        """Of the bytes, in hex."""
        return digest_of(self.data)

    def drop_caches(self) -> None:
        """Forget derived values that are as large as the document; they are computed again when needed."""
        for name in ("text", "data", "entries"):
            vars(self).pop(name, None)

    def without_caches(self) -> "MemoryDocument":
        """A copy without most derived values, for callers that keep many."""
        slim = MemoryDocument(self.blocks, self.encoding, self.bom)
        preset_cached(slim, shape=self.shape)
        return slim


class Entry(msgspec.Struct, frozen=True):
    entry_id: str
    text: str
    section: Section = ()


class Cell(msgspec.Struct, frozen=True):
    """A block, and the id of an entry."""

    block: Block
    entry_id: str | None = None

    @property
    def kind(self) -> BlockKind:
        return self.block.kind


@dataclass(frozen=True)
class Snapshot:
    """A document and the ids of its entries: `ids[n]` belongs to the n-th entry block. Ids are unique in it."""

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
        """A copy without most derived values, for callers that keep many."""
        return Snapshot(self.document.without_caches(), self.ids)

    def text_of(self, entry_id: str) -> str:
        """The text of an entry. Raises ValueError if there is no such entry."""
        return self.document.entries[self.ids.index(entry_id)].text


class Version(msgspec.Struct, frozen=True):
    """One known state of the file. `number` grows; `sha256` is of its bytes, in hex."""

    number: int
    label: str | None
    sha256: str
    snapshot: Snapshot

    @classmethod
    def of(cls, number: int, snapshot: Snapshot) -> "Version":
        """The version with the hash and label of a snapshot."""
        return cls(number, snapshot.document.label, snapshot.document.sha256, snapshot)


class EntryAdded(msgspec.Struct, frozen=True):
    """A new line. `after` is the entry before it in the same section, None for the first one."""

    entry_id: str
    after: str | None
    section: Section
    text: str


class EntryEdited(msgspec.Struct, frozen=True):
    """A line with another text, or in another section (then `text` may equal `base_text`).

    `text` is the merged text; `base_text` is the text that the editor had loaded.
    """

    entry_id: str
    base_text: str
    text: str
    section: Section


class EntryRemoved(msgspec.Struct, frozen=True):
    """A line that an edit removed, with its former text and section."""

    entry_id: str
    text: str
    section: Section


Operation = EntryAdded | EntryEdited | EntryRemoved


class MergePlan(msgspec.Struct, frozen=True):
    """The result of a three-way merge.

    `operations`       the manual edit, in document order, removals last; ready to become events.
    `merged`           the bytes on disk with the changes of the current version put in.
    `conflicting_ids`  lines that both sides changed in the same words: the known line and, below it, the line from disk
                       as a separate entry.
    `observed`         the file exactly as read, with ids. If it differs from `merged`, store it as a version before
                       `merged`: an editor that saves again has this state loaded.
    """

    operations: tuple[Operation, ...]
    merged: Snapshot
    conflicting_ids: tuple[str, ...]
    observed: Snapshot

    @property
    def must_write(self) -> bool:
        """Whether the merged result differs from the file on disk.

        Such a version needs a new footer (`set_footer`) before it is stored, or an old label would name it.
        """
        return self.merged.document != self.observed.document


def count_line_endings(text: str) -> tuple[int, int, int]:
    """The number of LF, CRLF and CR."""
    windows = text.count("\r\n")
    return text.count("\n") - windows, windows, text.count("\r") - windows


def preset_cached(value: object, **known: object) -> None:
    """Set cached properties whose values are known already."""
    vars(value).update(known)


def normalised_text(raw: str) -> str:
    """Text that compares equal whatever line endings an editor uses."""
    bare = raw.rstrip()
    if "\n" not in bare and "\r" not in bare:
        return bare  # one line, as nearly all are
    return "\n".join(line.rstrip() for line in lines_of(raw)).rstrip("\n")


def lines_of(text: str) -> list[str]:
    """Lines with their endings. Only CR, LF and CRLF end a line; `str.splitlines` also splits at U+2028 and FF."""
    return _LINE.findall(text)
