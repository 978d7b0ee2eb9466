"""Parse an edited document again, and keep the ids of its entries.

Bytes are stored and compared, so a snapshot must be what its bytes parse to. They may parse to something else than was
intended: an unclosed fence may meet another one, and all lines between them become one entry with one id.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import KIND_LETTERS, Block, BlockKind, Cell, MemoryDocument, Snapshot, preset_cached
from sync.document.markdown.parse import reparse_range


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
