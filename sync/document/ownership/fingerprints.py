"""Decide whether a document belongs to another account of this machine. Pure.

After a switch of accounts an editor may still hold the first account's document and save it over the second's. The
label in the footer decides, since every version has its own. Without a known label, the document belongs to the account
that alone has most of its lines.
"""

from typing import Final

import msgspec

from sync.document.markdown.model import MemoryDocument


class OwnershipMarks(msgspec.Struct, frozen=True):
    """The labels and hashes of a profile's versions."""

    labels: frozenset[str]
    hashes: frozenset[str]

    def __or__(self, other: "OwnershipMarks") -> "OwnershipMarks":
        return OwnershipMarks(self.labels | other.labels, self.hashes | other.hashes)


NO_MARKS: Final = OwnershipMarks(frozenset(), frozenset())


def is_other_by_marks(document: MemoryDocument, own: OwnershipMarks, other: OwnershipMarks) -> bool | None:
    """Whether the marks say that the document is the other profile's (True) or ours (False); None if neither."""
    for mark, ours, theirs in ((document.sha256, own.hashes, other.hashes), (document.label, own.labels, other.labels)):
        if (mark in ours) != (mark in theirs):
            return mark in theirs
    return None


def label_is_in_both(document: MemoryDocument, own: OwnershipMarks, other: OwnershipMarks) -> bool:
    """Whether both profiles have this label, which a switch within one second makes possible."""
    return document.label in own.labels & other.labels


def is_other_by_lines(
    document: MemoryDocument, own: frozenset[str], other: frozenset[str], *, is_one_of_both: bool
) -> bool:
    """Whether the other profile's versions have most lines of the document, and ours do not.

    `is_one_of_both`: it is known to be one of the two profiles', so new or common lines need not be outweighed.
    """
    lines = {entry.text for entry in document.entries}
    theirs = len(lines & other - own)
    return theirs > len(lines & own - other) and (is_one_of_both or 2 * theirs >= len(lines))
