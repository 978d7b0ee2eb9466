"""A version as its difference from an earlier one, the base, which is stored whole.

The parts of a difference are ranges of the base and, between them, new items: blocks as text, or ids of entries. All
versions of one base refer to the same base, so ten edits in ten places remain ten small parts.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import KIND_LETTERS, Block, BlockKind, MemoryDocument, Snapshot
from sync.document.markdown.parse import parse_stored, parse_text, reparse_range
from sync.sequences import common_ends

MAX_DELTAS_PER_BASE: Final = 32  # then a version is stored whole again
MAX_NEW_SHARE: Final = 0.25  # of a document; a version with more new text is stored whole
MAX_BYTES_PER_CHARACTER: Final = 4  # in UTF-8 and in GB18030
MAX_NEW_CHARACTERS: Final = 8_192  # likewise; these are written again with each version

Range = tuple[int, int]
Parts = tuple[Range | str, ...]


class _StoredDelta(msgspec.Struct, array_like=True):
    """The stored form of the blocks of a difference."""

    base: str
    number: int
    blocks: Parts


class VersionDelta(msgspec.Struct, frozen=True):
    """How to build a version from its base. `number` counts the differences from one base."""

    base_digest: str
    number: int
    block_parts: Parts
    id_parts: Parts

    @classmethod
    def of_base(cls, base: bytes, snapshot: Snapshot) -> "VersionDelta":
        """The empty difference: of the base itself, whose stored bytes are given."""
        return cls(base_digest(base), 0, ((0, len(snapshot.document.blocks)),), ((0, len(snapshot.ids)),))

    @classmethod
    def decode(cls, data: bytes, entry_ids: str) -> "VersionDelta":
        """Decode the two columns of a row. Raises zlib.error, msgspec.MsgspecError."""
        stored = msgspec.json.decode(zlib.decompress(data), type=_StoredDelta)
        return cls(stored.base, stored.number, stored.blocks, msgspec.json.decode(entry_ids, type=Parts))

    def encode(self) -> tuple[bytes, str]:
        """Encode as the two columns of a row."""
        # Encoding keeps its UTF-8 form inside a str, and these are strings of a document that stays in memory.
        parts = tuple([part.encode().decode() if isinstance(part, str) else part for part in self.block_parts])
        blocks = msgspec.json.encode(_StoredDelta(self.base_digest, self.number, parts))
        return zlib.compress(blocks, level=1), msgspec.json.encode(self.id_parts).decode()

    def next_delta(self, before: Snapshot, now: Snapshot) -> "VersionDelta | None":
        """The difference of `now`, given that this is the one of `before`. None if `now` should be stored whole."""
        blocks = self.block_parts
        for low, high, new in _changed_ranges(
            before.document, now.document
        ):  # from the end, so that earlier indices stay valid
            if len(new) > MAX_NEW_CHARACTERS:  # changes far apart: they enclose the lines between them
                return None
            blocks = _replace_items(blocks, low, high, [block.raw for block in new])
        head, tail = common_ends((before.ids, now.ids))
        ids = _replace_items(self.id_parts, head, len(before.ids) - tail, now.ids[head : len(now.ids) - tail])
        own = sum(len(part) for part in (*blocks, *ids) if isinstance(part, str))
        if self.number >= MAX_DELTAS_PER_BASE or own > MAX_NEW_CHARACTERS or _exceeds_share(own, now.document):
            return None
        return VersionDelta(self.base_digest, self.number + 1, blocks, ids)

    def apply_to(self, base: Snapshot) -> Snapshot:
        """Build the version. Raises ValueError if this is not a difference from that base."""
        return _with_ids(self._document(base.document), self.ids_of(base.ids))

    def ids_of(self, base: Sequence[str]) -> tuple[str, ...]:
        return tuple(_expand(self.id_parts, base))

    def own_text(self) -> str:
        """The text that is not in the base."""
        return "".join([part for part in self.block_parts if isinstance(part, str)])

    def _document(self, base: MemoryDocument) -> MemoryDocument:
        document: MemoryDocument | None = base
        for low, high, text in reversed(list(self._hunks(len(base.blocks)))):
            if high > len(base.blocks):
                raise ValueError("the difference does not belong to this base")
            document = reparse_range(document, low, high, text) if document is not None else None
        if document is None:  # a change that alters how other lines parse
            text = "".join(_expand(self.block_parts, [block.raw for block in base.blocks]))
            document = parse_text(text, encoding=base.encoding, bom=base.bom)
        return document

    def _hunks(self, count: int) -> Iterator[tuple[int, int, str]]:
        """The replaced ranges of the base, each with its new text."""
        at, own = 0, list[str]()
        for part in (*self.block_parts, (count, count)):
            if isinstance(part, str):
                own.append(part)
                continue
            if own or part[0] > at:
                yield at, part[0], "".join(own)
            at, own = part[1], []


def base_digest(data: bytes) -> str:
    """The digest that names the stored bytes of a base."""
    return hashlib.sha256(data).hexdigest()[:16]


def encode_whole(snapshot: Snapshot) -> tuple[bytes, str]:
    """Encode a whole version as the two columns of a row."""
    return zlib.compress(snapshot.document.data, level=1), msgspec.json.encode(snapshot.ids).decode()


def decode_whole(data: bytes, entry_ids: str) -> Snapshot:
    """Decode a version that is stored whole. Raises zlib.error, msgspec.MsgspecError, ValueError."""
    return _with_ids(parse_stored(zlib.decompress(data)), tuple(msgspec.json.decode(entry_ids, type=list[str])))


def _with_ids(document: MemoryDocument, ids: tuple[str, ...]) -> Snapshot:
    """The snapshot. The ids are derived if an earlier program read other lines of the same bytes as entries."""
    if len(ids) != document.shape.count(KIND_LETTERS[BlockKind.ENTRY]):
        ids = tuple(derived_entry_id("", str(at), block.text) for at, block in enumerate(document.entries))
    return Snapshot(document, ids)


def same_encoding(one: MemoryDocument, other: MemoryDocument) -> bool:
    """Whether encoding and byte order mark are equal: a difference does not contain them."""
    return (one.encoding, one.bom) == (other.encoding, other.bom)


def _changed_ranges(before: MemoryDocument, now: MemoryDocument) -> Iterator[tuple[int, int, Sequence[Block]]]:
    """The changed ranges, last first: the footer, which every version changes, and one range of the rest."""
    was, is_now = (document.shape.rfind(KIND_LETTERS[BlockKind.FOOTER]) for document in (before, now))
    if was < 0 or is_now < 0:
        was, is_now = len(before.blocks), len(now.blocks)
    for low, start, old, new in (
        (was, is_now, before.blocks[was:], now.blocks[is_now:]),
        (0, 0, before.blocks[:was], now.blocks[:is_now]),
    ):
        head, tail = common_ends((old, new))
        if head < max(len(old), len(new)) - tail:
            yield low + head, low + len(old) - tail, now.blocks[start + head : start + len(new) - tail]


def _exceeds_share(new_characters: int, document: MemoryDocument) -> bool:
    """Whether more than `MAX_NEW_SHARE` of the document is new. Its size in bytes mostly tells without counting."""
    if new_characters <= MAX_NEW_SHARE * len(document.data) / MAX_BYTES_PER_CHARACTER:
        return False
    return new_characters > MAX_NEW_SHARE * sum(len(block.raw) for block in document.blocks)


def _replace_items(parts: Parts, low: int, high: int, items: Iterable[str]) -> Parts:
    """Replace the items from `low` to before `high`."""
    replaced: list[Range | str] = []
    for part in chain(_slice_parts(parts, 0, low), items, _slice_parts(parts, high, sum(map(_part_size, parts)))):
        last = replaced[-1] if replaced else ""
        if isinstance(part, tuple) and isinstance(last, tuple) and last[1] == part[0]:
            replaced[-1] = last[0], part[1]
        else:
            replaced.append(part)
    return tuple(replaced)


def _slice_parts(parts: Parts, low: int, high: int) -> Iterator[Range | str]:
    at = 0
    for part in parts:
        first, end = max(low - at, 0), min(high - at, _part_size(part))
        if first < end:
            yield part if isinstance(part, str) else (part[0] + first, part[0] + end)
        at += _part_size(part)


def _part_size(part: Range | str) -> int:
    return 1 if isinstance(part, str) else part[1] - part[0]


def _expand(parts: Parts, base: Sequence[str]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part[1] > len(base):
            raise ValueError("the difference does not belong to this base")
        else:
            yield from base[part[0] : part[1]]
