"""Decide whether a document belongs to another account of this machine. Pure.

After a switch of accounts an editor may still hold the first account's document and save it over the second's. The
label in the footer decides, since every version has its own. Without a known label, the document belongs to the account
that alone has most of its lines. Reasons and limits: docs/decisions/008-handover.md.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from sync.document.erased_lines_store import normalised_line
from sync.document.markdown.model import BlockKind, MemoryDocument
from sync.sequences import is_mostly_others
from sync.system.digests import sha256


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


def removal_digest(text: str) -> str:
    """What is kept of a version's label, or of its owner's id, when the account is removed."""
    return sha256(text.encode())[:16]


def label_is_in_both(document: MemoryDocument, own: OwnershipMarks, other: OwnershipMarks) -> bool:
    """Whether both profiles have this label, which a switch within one second makes possible."""
    return document.label in own.labels & other.labels


def comparable_lines(texts: Iterable[str]) -> frozenset[str]:
    """Lines as they are compared: an editor may change list markers, repeat counts and spaces."""
    return frozenset(filter(None, map(normalised_line, frozenset(texts))))


def is_other_by_lines(
    document: MemoryDocument, own: frozenset[str], other: frozenset[str], *, is_one_of_both: bool
) -> bool:
    """Whether the other profile's versions have most lines of the document, and ours do not.

    `own`, `other`: comparable lines; those of both profiles count only in the whole, of which the other alone must have
    a quarter. A last line that is cut off counts as the line that it begins. `is_one_of_both`: it is known to be one
    of the two profiles', so new lines and those of both need not be outweighed.
    """
    if cut := _cut_line(document):
        own, other = (known | {cut} if any(line.startswith(cut) for line in known) else known for known in (own, other))
    lines = comparable_lines(entry.text for entry in document.entries)
    if is_one_of_both:
        return len(lines & other - own) > len(lines & own - other)
    return is_mostly_others(lines, own, other)


def _cut_line(document: MemoryDocument) -> str:
    """The last line of a file that ends without a footer and within a line; empty if there is none."""
    if document.label is not None or document.text.endswith(("\n", "\r")):
        return ""
    return normalised_line(document.blocks[-1].text) if document.blocks[-1].kind is BlockKind.ENTRY else ""
