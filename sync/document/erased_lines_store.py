"""Erased lines by keyed hash: an editor's old buffer, saved after an erasure, does not add them again.

Why, and what the hashes cover: docs/decisions/001-erased-lines.md.
"""

import hmac
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.sqlite import insert

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import erased_lines, erasure_key
from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.model import MemoryDocument, Snapshot, Version
from sync.document.markdown.repeat_suffix import split_repeat_count

KEY_BYTES: Final = 32
HASH_DIGITS: Final = 32
AS_SEEN: Final = "seen"  # hashes of a line as some version showed it, and of its redacted form
AS_REDACTED: Final = "redacted"  # hashes of a line that was only known redacted

_LIST_MARKER: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_COLUMNS: Final = erased_lines.c
_INSERT: Final = insert(erased_lines)
_INSERT_OR_EXTEND: Final = _INSERT.on_conflict_do_update(
    index_elements=["hash", "entry_id", "first"], set_={"last": func.max(_COLUMNS.last, _INSERT.excluded.last)}
)
_KEY: Final = select(erasure_key.c.key)
_HAS_ANY: Final = select(_COLUMNS.hash).limit(1)
_WITH_HASH: Final = select(_COLUMNS.hash, _COLUMNS.entry_id).where(
    _COLUMNS.hash.in_(bindparam("hashes", expanding=True))
)
_OF_VERSION: Final = _WITH_HASH.where(_COLUMNS.first <= bindparam("base"), _COLUMNS.last >= bindparam("base"))

RemovedLines = Mapping[tuple[str, str], int]
"""Entry id and text of each line that an erasure took away -> the newest version that had it."""


class StrippedDocument(msgspec.Struct, frozen=True):
    """A document without its erased lines, and which those were: hash and entry id of each."""

    document: MemoryDocument
    erased: tuple[tuple[str, str], ...] = ()


class ErasedLines:
    """The erased lines of one profile. Everything runs inside a transaction of the caller."""

    def __init__(self, clean: Callable[[str], str], clock: Clock) -> None:
        """`clean` redacts."""
        self._clean, self._clock = clean, clock

    def has_any(self, connection: Transaction) -> bool:
        """Whether anything was ever erased."""
        return connection.execute(_HAS_ANY).first() is not None

    def record(self, connection: Transaction, removed: RemovedLines) -> None:
        """Record what an erasure removed. The versions up to the newest one that had a line are older than it."""
        if not removed:
            return
        key = self._key(connection)
        rows = [
            {"hash": digest, "entry_id": entry_id, "first": 0, "last": last}
            for (entry_id, text), last in removed.items()
            for digest in self._stored_hashes(key, text)
        ]
        if rows:
            connection.execute(_INSERT_OR_EXTEND, rows)

    def strip(
        self, connection: Transaction, document: MemoryDocument, base_now: Snapshot | None, base_number: int | None
    ) -> StrippedDocument:
        """What an editor saved, without the lines that were erased since it loaded its base.

        `base_now`: the base as it is stored now; it has the text of corrected lines. `base_number`: None if the base is
        unknown and may be any version.
        """
        text_by_id = {entry.entry_id: entry.text for entry in base_now.entries} if base_now else {}
        lines = [block.text for block in document.entries]
        surplus = Counter(lines) - Counter(text_by_id.values())
        erased = self._find_erased(connection, surplus, base_number)
        if not erased:
            return StrippedDocument(document)
        draft = BlockEditor(Snapshot(document, tuple(map(str, range(len(lines))))))
        stripped: list[tuple[str, str]] = []
        for number in sorted(_surplus_positions(lines, {text: surplus[text] for text in erased}), reverse=True):
            rows = erased[lines[number]]
            stripped += rows
            _remove_or_correct(
                draft, number, next((text_by_id[entry_id] for _, entry_id in rows if entry_id in text_by_id), None)
            )
        return StrippedDocument(draft.to_snapshot().document, tuple(dict.fromkeys(stripped)))

    def mark_still_shown(self, connection: Transaction, stripped: StrippedDocument, version: Version) -> None:
        """Note that the editor of this version still shows these lines: its next save does not add them either."""
        if stripped.erased:
            number = {"first": version.number, "last": version.number}
            rows = [{"hash": digest, "entry_id": entry_id, **number} for digest, entry_id in stripped.erased]
            connection.execute(_INSERT_OR_EXTEND, rows)

    def _find_erased(
        self, connection: Transaction, texts: Mapping[str, int], base_number: int | None
    ) -> dict[str, list[tuple[str, str]]]:
        """The erased ones of these lines, each with the rows that match."""
        texts_by_hash: defaultdict[str, list[str]] = defaultdict(list)
        key = self._key(connection)
        for text in texts:
            for digest in self._lookup_hashes(key, text):
                texts_by_hash[digest].append(text)
        query, version = (_WITH_HASH, {}) if base_number is None else (_OF_VERSION, {"base": base_number})
        erased: dict[str, list[tuple[str, str]]] = {}
        digests = list(texts_by_hash)
        for start in range(0, len(digests), 1000):
            for row in connection.execute(query, {"hashes": digests[start : start + 1000], **version}):
                for text in texts_by_hash[row.hash]:
                    erased.setdefault(text, []).append((row.hash, row.entry_id))
        return erased

    def _stored_hashes(self, key: bytes, text: str) -> Iterator[str]:
        core, redacted = normalised_line(text), normalised_line(self._clean(text))
        if core:
            yield from dict.fromkeys((_hash(key, AS_SEEN, core), _hash(key, AS_SEEN, redacted)))
        if core and core == redacted:
            yield _hash(key, AS_REDACTED, core)

    def _lookup_hashes(self, key: bytes, text: str) -> Iterator[str]:
        if core := normalised_line(text):
            yield _hash(key, AS_SEEN, core)
            yield _hash(key, AS_REDACTED, normalised_line(self._clean(text)))

    def _key(self, connection: Transaction) -> bytes:
        """The profile's key, created at the first erasure."""
        key = connection.execute(_KEY).scalar()
        if key is None:
            key = self._clock.random_bytes(KEY_BYTES).hex()
            connection.execute(insert(erasure_key).values(one=1, key=key))
        return str(key).encode()


def _hash(key: bytes, form: str, text: str) -> str:
    return hmac.new(key, f"{form}\n{text}".encode(), sha256).hexdigest()[:HASH_DIGITS]


def normalised_line(text: str) -> str:
    """The form in which lines are compared: without list marker and repeat count, white space collapsed."""
    return " ".join(_LIST_MARKER.sub("", split_repeat_count(text)[0], count=1).split())


def _surplus_positions(lines: Sequence[str], counts: dict[str, int]) -> set[int]:
    """The positions of `counts[text]` lines of each text.

    Of equal lines, such as two answers, those that follow another such position; otherwise the last ones.
    """
    total = Counter(lines)
    positions = {at for at, text in enumerate(lines) if counts.get(text) == total[text]}
    for text in (text for text, count in counts.items() if count < total[text]):
        places = [at for at, line in enumerate(lines) if line == text]
        places.sort(key=lambda at: (at - 1 in positions, at), reverse=True)
        positions.update(places[: counts[text]])
    return positions


def _remove_or_correct(draft: BlockEditor, number: int, corrected: str | None) -> None:
    at = draft.index_of(str(number))
    if at is None:
        return
    if corrected is None:
        draft.remove_entry(at)
    else:
        draft.set_text(at, corrected)
