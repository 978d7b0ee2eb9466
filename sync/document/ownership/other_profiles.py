"""The other profiles of this data directory, as far as the memory file has to know them.

Their databases are opened read-only and without SQLAlchemy. Without another profile nothing is read.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from sqlite3 import Row
from typing import Any, Final

import msgspec

from sync.document.markdown.model import MemoryDocument
from sync.document.markdown.parse import parse_stored, parse_text
from sync.document.ownership.fingerprints import (
    NO_MARKS,
    OwnershipMarks,
    comparable_lines,
    is_other_by_lines,
    is_other_by_marks,
    label_is_in_both,
    removal_digest,
)
from sync.document.version_delta import VersionDelta
from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import driver_errors
from sync.errors import XiaobaiError
from sync.system.digests import sha256
from sync.system.files import make_private_folder, write_private

BUSY_TIMEOUT: Final = 5.0  # seconds to wait for a writer of a database that is not in WAL mode
MAX_VERSIONS: Final = 200  # newest of a profile that are read: an editor's buffer is not older than these

log = logging.getLogger(__name__)


class ProfilePaths(msgspec.Struct, frozen=True):
    """A profile: its database, and the folder for its documents that turned up in the wrong place."""

    database: Path
    parked_folder: Path


class RemovedAccounts(msgspec.Struct, frozen=True):
    """What is known of accounts that were removed from this machine, and where their documents are parked."""

    digests: frozenset[str]  # of the labels of their versions
    parked_folder: Path


class OtherProfiles:
    """Recognises documents of the other profiles and of removed accounts.

    `others` and `removed` are called each time; `vault` opens databases.
    """

    def __init__(
        self,
        own: Path,
        others: Callable[[], Sequence[ProfilePaths]],
        vault: DatabaseEncryption,
        removed: Callable[[], RemovedAccounts | None] = lambda: None,
    ) -> None:
        self._own = own
        self._others = others
        self._vault = vault
        self._removed = removed

    def exist(self) -> bool:
        """Whether there is another profile, or was. May wait for a database."""
        return bool(self._others()) or self._removed() is not None

    def parked_folder_of(self, document: MemoryDocument, served: OwnershipMarks = NO_MARKS) -> Path | None:
        """The folder for documents of the other account that this one belongs to; None if it is not another's.

        `served`: the marks of snapshots that were shown and are no versions.
        """
        if document.is_blank:
            return None
        for other in self._others():
            if self._belongs_to(other, document, served):
                return other.parked_folder
        removed = self._removed()
        return removed.parked_folder if removed and self._is_removed(removed, document, served) else None

    def _is_removed(self, removed: RemovedAccounts, document: MemoryDocument, served: OwnershipMarks) -> bool:
        label = document.label
        if label is None or removal_digest(label) not in removed.digests:
            return False
        return label not in (self._marks(self._own) | served).labels

    def _belongs_to(self, other: ProfilePaths, document: MemoryDocument, served: OwnershipMarks) -> bool:
        own, theirs = self._marks(self._own) | served, self._marks(other.database)
        named = is_other_by_marks(document, own, theirs)
        if named is not None:
            return named
        is_one_of_both = label_is_in_both(document, own, theirs)
        return is_other_by_lines(
            document, self._lines(self._own), self._lines(other.database), is_one_of_both=is_one_of_both
        )

    def _marks(self, database: Path) -> OwnershipMarks:
        rows = _select(self._vault, database, "select label, sha256 from written")
        return OwnershipMarks(frozenset(label for label, _ in rows if label), frozenset(digest for _, digest in rows))

    def _lines(self, database: Path) -> frozenset[str]:
        rows = _select(self._vault, database, "select * from written order by version desc limit ?", MAX_VERSIONS)
        documents = (_own_lines(row) for row in rows)
        return comparable_lines(entry.text for document in documents for entry in document.entries)


def newest_label_digests(database: Path, vault: DatabaseEncryption) -> tuple[str, ...]:
    """The digests by which documents of a profile are recognised after it is removed."""
    rows = _select(vault, database, "select label from written order by version desc limit ?", MAX_VERSIONS)
    return tuple(dict.fromkeys(removal_digest(label) for (label,) in rows if label))


def _select(vault: DatabaseEncryption, database: Path, statement: str, *parameters: int) -> list[Any]:
    """The rows; none if the database cannot be read."""
    try:
        with vault.read_only_connection(database, BUSY_TIMEOUT) as connection:
            return connection.execute(statement, parameters).fetchall()
    except driver_errors("Error", also=(XiaobaiError,)) as error:
        log.warning("a profile's versions could not be read (%s)", type(error).__name__)
        return []


def _own_lines(row: Row) -> MemoryDocument:
    """The lines that a version adds to its base; an older schema stores every version whole."""
    if "base" not in row.keys() or row["base"] is None:  # noqa: SIM118 - a row's own `in` looks among its values
        return parse_stored(zlib.decompress(row["bytes"]))
    return parse_text(VersionDelta.decode(row["bytes"], row["entry_ids"]).own_text())


def park_copy(folder: Path, data: bytes) -> Path:
    """Keep a document in a profile's folder of parked documents; the same bytes once."""
    make_private_folder(folder)
    path = folder / f"{sha256(data)[:16]}.md"
    write_private(path, data)
    return path
