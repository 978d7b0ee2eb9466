"""What the bytes of a changed document say, where that is not what was meant. Pure.

A fence that nobody closed may meet another one, and then all between them is one entry to whoever reads the bytes, on
every device alike. Bytes are what is kept and compared, so the snapshot has to be what they say: otherwise a version
could not be read any more. The lines are all still there; they go by one id from then on.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Final

from sync.document.model import Block, Document, Kind, Snapshot

_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def read_back(read: Document, meant: Sequence[Block], ids: Sequence[str]) -> Snapshot:
    """The snapshot of a document that was read from the bytes of these blocks, whose entries have these ids."""
    texts = [block.text for block in meant if block.kind is Kind.ENTRY]
    found = [block.text for block in read.entries]
    return Snapshot(read, tuple(ids) if found == texts else _paired(found, texts, ids))


def derived(*names: str) -> str:
    """An id that follows from others, so that all who make it make the same; letters only, as all ids of entries."""
    return "ent_" + sha256("\n".join(names).encode()).hexdigest()[:32].translate(_LETTERS)


def _paired(found: Sequence[str], texts: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """An entry made of several goes by the first one's id; where one fell apart, the rest get new ones."""
    paired: list[str] = []
    for _, first, end, start, stop in SequenceMatcher(None, texts, found, autojunk=False).get_opcodes():
        for place in range(stop - start):
            at = first + place
            known = ids[at] if at < end else derived(ids[end - 1] if end else "", str(place), found[start + place])
            paired.append(known)
    return tuple(paired)
