"""Parse an edited document again, and keep the ids of its entries.

Bytes are stored and compared, so a snapshot must be what its bytes parse to. They may parse to something else than was
intended: an unclosed fence may meet another one, and all lines between them become one entry with one id.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import (
    BOM,
    KIND_LETTERS,
    Block,
    BlockKind,
    Cell,
    MemoryDocument,
    Snapshot,
    preset_cached,
)
from sync.document.markdown.parse import MAX_BYTES, parse, reparse_range
from sync.sequences import common_ends


def parse_edited(data: bytes, known: MemoryDocument | None) -> MemoryDocument:
    """`parse`, in time proportional to the change if the file differs from a known document in one place.

    The two documents share the blocks of the rest.
    """
    edited = None if known is None else _parse_changed_lines(data, known)
    return parse(data) if edited is None else edited


def _parse_changed_lines(data: bytes, known: MemoryDocument) -> MemoryDocument | None:
    """The file parsed between the first and the last changed line; None if the whole has to be parsed."""
    if known.encoding != "utf-8" or len(data) > MAX_BYTES or b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text.startswith(BOM) != known.bom:
        return None
    text, was = text.removeprefix(BOM), known.text
    head, tail = common_ends((was, text))
    ends = list(accumulate([len(block.raw) for block in known.blocks]))
    low = bisect_right(ends, head)  # the first block that is not part of the common beginning
    high = bisect_left(ends, len(was) - tail) + 1 if tail < len(was) else 0  # the first one of the common end
    start = ends[low - 1] if low else 0
    stop = len(text) - len(was) + (ends[high - 1] if high else 0)
    if start < stop < len(text) and text[stop - 1] not in "\r\n":  # its line begins earlier now
        stop += len(known.blocks[high].raw)
        high += 1
    read = reparse_range(known, low, high, text[start:stop])
    if read is not None:
        preset_cached(read, text=text, data=data)
    return read


def reparse(parsed: MemoryDocument, intended: Sequence[Block], ids: Sequence[str]) -> Snapshot:
    """The snapshot of a document parsed from the bytes of `intended`, whose entries have these ids."""
    texts = [block.text for block in intended if block.kind is BlockKind.ENTRY]
    parsed_texts = [block.text for block in parsed.entries]
    return Snapshot(parsed, tuple(ids) if parsed_texts == texts else _match_ids(parsed_texts, texts, ids))


def reparse_changed_part(original: Snapshot, head: int, tail: int, changed: Sequence[Cell]) -> Snapshot | None:
    """Like `reparse`, for a snapshot that keeps its first `head` and last `tail` cells, with `changed` between them.

    None if the whole document has to be parsed.
    """
    before, high = original.document, len(original.cells) - tail
    read = reparse_range(before, head, high, "".join([cell.block.raw for cell in changed]))
    if read is None:
        return None
    blocks = read.blocks[head : len(read.blocks) - tail]
    entries = [block for block in blocks if block.kind is BlockKind.ENTRY]
    meant = [cell for cell in changed if cell.entry_id is not None]
    if [block.text for block in entries] != [cell.block.text for cell in meant]:
        return None
    letter = KIND_LETTERS[BlockKind.ENTRY]
    first, last = before.shape.count(letter, 0, head), len(original.ids) - before.shape.count(letter, high)
    ids = [cell.entry_id for cell in meant if cell.entry_id is not None]
    snapshot = Snapshot(read, original.ids[:first] + tuple(ids) + original.ids[last:])
    if read.blocks[:head] == before.blocks[:head] and read.blocks[len(read.blocks) - tail :] == before.blocks[high:]:
        named = iter(ids)
        cells = [Cell(block, next(named) if block.kind is BlockKind.ENTRY else None) for block in blocks]
        preset_cached(read, entries=before.entries[:first] + tuple(entries) + before.entries[last:])
        preset_cached(snapshot, cells=original.cells[:head] + tuple(cells) + original.cells[high:])
    return snapshot


def _match_ids(parsed_texts: Sequence[str], intended_texts: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """A joined entry keeps the id of its first part. If an entry was split, all parts but the first get derived ids."""
    paired: list[str] = []
    for _, first, end, start, stop in SequenceMatcher(None, intended_texts, parsed_texts, autojunk=False).get_opcodes():
        for place in range(stop - start):
            at = first + place
            known = (
                ids[at]
                if at < end
                else derived_entry_id(ids[end - 1] if end else "", str(place), parsed_texts[start + place])
            )
            paired.append(known)
    return tuple(paired)
