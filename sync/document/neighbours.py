"""The other profiles of this data directory, as far as the memory file has to know of them.

Their databases are read without SQLAlchemy, read-only: opening one as ours would begin to write it. Where there is no
other profile, nothing is read at all.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any, Final

from sync.digests import sha256
from sync.document.differences import Difference
from sync.document.model import Document
from sync.document.parse import parse_own, parse_text
from sync.document.strangers import NO_MARKS, Marks, is_of_either, named_by_marks, told_by_lines
from sync.errors import XiaobaiError
from sync.files import make_private_folder, write_private
from sync.vault.access import raised
from sync.vault.vault import Vault

PATIENCE: Final = 5.0  # seconds to wait for a writer of a database that is not in WAL mode
MOST_VERSIONS: Final = 200  # newest of a profile that are read: an editor's buffer is not older than these

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another profile: its database, and the folder for documents of his that turn up here."""

    database: Path
    parked: Path


class Neighbours:
    """Recognises documents of the other profiles. `others` lists them anew at every look; `vault` opens databases."""

    def __init__(self, own: Path, others: Callable[[], Sequence[Neighbour]], vault: Vault) -> None:
        self._own = own
        self._others = others
        self._vault = vault

    def owner_of(self, document: Document, shown: Marks = NO_MARKS) -> Neighbour | None:
        """The other profile that this document belongs to, or None where it is ours or nobody's.

        `shown`: what we have given out besides our versions.
        """
        if document.is_blank:
            return None
        return next((other for other in self._others() if self._is_of(other, document, shown)), None)

    def _is_of(self, other: Neighbour, document: Document, shown: Marks) -> bool:
        own, theirs = self._marks(self._own) | shown, self._marks(other.database)
        named = named_by_marks(document, own, theirs)
        if named is not None:
            return named
        of_either = is_of_either(document, own, theirs)
        return told_by_lines(document, self._lines(self._own), self._lines(other.database), of_either=of_either)

    def _marks(self, database: Path) -> Marks:
        rows = self._select(database, "select label, sha256 from written")
        return Marks(frozenset(label for label, _ in rows if label), frozenset(digest for _, digest in rows))

    def _lines(self, database: Path) -> frozenset[str]:
        rows = self._select(database, "select * from written order by version desc limit ?", MOST_VERSIONS)
        documents = (_own_lines(row) for row in rows)
        return frozenset(entry.text for document in documents for entry in document.entries)

    def _select(self, database: Path, statement: str, *given: int) -> list[Any]:
        """The rows; none where the database cannot be read."""
        try:
            with self._vault.reading(database, PATIENCE) as connection:
                return connection.execute(statement, given).fetchall()
        except raised("Error", besides=(XiaobaiError,)) as error:
            log.warning("a profile's versions could not be read (%s)", type(error).__name__)
            return []


def _own_lines(row: Row) -> Document:
    """The lines that a version does not have from another one; an older schema stores every version whole."""
    if "base" not in row.keys() or row["base"] is None:  # noqa: SIM118 - a row's own `in` looks among its values
        return parse_own(zlib.decompress(row["bytes"]))
    return parse_text(Difference.read(row["bytes"], row["entry_ids"]).own_lines())


def park(folder: Path, data: bytes) -> Path:
    """Keep a document for the profile whose folder for such this is; the same bytes once."""
    make_private_folder(folder)
    path = folder / f"{sha256(data)[:16]}.md"
    write_private(path, data)
    return path
