"""Whether a document belongs to another account of this machine. Pure.

After a switch of accounts an editor may still hold the first account's document and save it over the second's. Taken
for a hand edit it would make one person's memory another's, so it is recognised by what the two profiles have
written. The footer's label is the surest sign, since every version has one of its own; where it is gone or nobody's,
the lines decide: a document most of whose lines are only the other account's is the other account's.
"""

from dataclasses import dataclass
from typing import Final

from sync.document.markdown.model import MemoryDocument


@dataclass(frozen=True, slots=True)
class OwnershipMarks:
    """What tells a profile's versions from others': labels and hashes."""

    labels: frozenset[str]
    hashes: frozenset[str]

    def __or__(self, other: "OwnershipMarks") -> "OwnershipMarks":
        return OwnershipMarks(self.labels | other.labels, self.hashes | other.hashes)


NO_MARKS: Final = OwnershipMarks(frozenset(), frozenset())


def is_other_by_marks(document: MemoryDocument, own: OwnershipMarks, other: OwnershipMarks) -> bool | None:
    """Whether the marks say that the document is the other profile's (True) or ours (False); None where they do not."""
    for mark, ours, theirs in (
        (document.sha256, own.hashes, other.hashes),
        (document.label, own.labels, other.labels),
    ):
        if (mark in ours) != (mark in theirs):
            return mark in theirs
    return None


def label_is_in_both(document: MemoryDocument, own: OwnershipMarks, other: OwnershipMarks) -> bool:
    """Whether both profiles have given this label, which a switch within one second makes possible."""
    return document.label in own.labels & other.labels


def is_other_by_lines(
    document: MemoryDocument, own: frozenset[str], other: frozenset[str], *, is_one_of_both: bool
) -> bool:
    """Whether most lines of the document stand in the other profile's versions and not in ours.

    `of_either`: it is known to be one of the two, so what is new in it, or in both, need not be outweighed.
    """
    lines = {entry.text for entry in document.entries}
    theirs = len(lines & other - own)
    return theirs > len(lines & own - other) and (is_one_of_both or 2 * theirs >= len(lines))
