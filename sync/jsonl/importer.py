"""Import JSONL files of other installations, and what an earlier installation left behind.

Every line is checked and redacted like an event of another program; its device, replica and order are not believed. A
line without an id gets one from its bytes, so a repeated import records nothing new. A refused line does not stop the
others. Files of an earlier installation are read once for all profiles: their hashes are stored in the data directory.
"""

import asyncio
import hashlib
import json
import logging
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec.structs import replace

from sync.errors import InvalidInput, RedactionFailed, StorageError
from sync.jsonl.legacy_sessions import parse_legacy_sessions
from sync.log import store
from sync.log.envelope import DECODE_ERRORS
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import AppendResult, Door, EventDraft, Origin, is_excluded_from_import
from sync.log.projections.external import OnProgress
from sync.system.files import read_once, translate_os_errors, write_private

MAX_BATCH_LINES: Final = 500  # lines in one transaction
MAX_BATCH_BYTES: Final = 4 * 1024 * 1024  # JSON of empty lists decodes to twenty times its size
MAX_LINE_BYTES: Final = 1024 * 1024  # longer than any event
MAX_REFUSALS: Final = 20  # refusals of one file that are listed; all are counted
IMPORTED_HASHES_FILE: Final = "taken-in.json"  # hashes of imported files of an earlier installation

log = logging.getLogger(__name__)


class RefusedLine(msgspec.Struct, frozen=True):
    line: int
    problem: str


class FileImportResult(msgspec.Struct):
    """The result of importing one file."""

    path: Path
    recorded: int = 0
    known: int = 0
    refused: int = 0
    refusals: list[RefusedLine] = msgspec.field(default_factory=list)

    def refuse(self, line: int, problem: str) -> None:
        self.refused += 1
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append(RefusedLine(line, problem))


class EventFileImporter:
    """Imports files into one profile's log."""

    def __init__(self, events: EventLog, intake: DraftBuilder, *, data_dir: Path) -> None:
        self._log = events
        self._intake = intake
        self._imported_hashes_path = data_dir / IMPORTED_HASHES_FILE

    async def import_paths(
        self, paths: Sequence[Path], on_progress: OnProgress | None = None
    ) -> list[FileImportResult]:
        """Import files, and every `*.jsonl` below folders. `on_progress` gets bytes. Raises StorageError."""
        files = await asyncio.to_thread(lambda: [file for path in paths for file in _jsonl_files(path)])
        total = sum(size for _, size in files)
        done, results = 0, []
        for path, size in files:
            imported = FileImportResult(path)
            async for read in self._import_file(path, imported):
                if on_progress is not None:
                    on_progress(done + read, total)
            done += size
            imported.refusals.sort(key=lambda refused: refused.line)
            results.append(imported)
        return results

    async def import_legacy(self, folders: Sequence[Path]) -> int:
        """Import `temp/` and `pending_session.json` of an earlier installation once; return how many events."""
        recorded = 0
        imported_hashes = await asyncio.to_thread(self._load_imported_hashes)
        for folder in folders:
            for path in await asyncio.to_thread(_legacy_files, folder):
                try:
                    recorded += await self._import_legacy_file(path, imported_hashes)
                except (StorageError, OSError) as error:  # the next files may be readable
                    log.warning("%s of an earlier installation cannot be read: %s", path.name, type(error).__name__)
        return recorded

    async def _import_legacy_file(self, path: Path, imported_hashes: set[str]) -> int:
        data = await asyncio.to_thread(_read_bytes, path)
        digest = hashlib.sha256(data).hexdigest()
        if digest in imported_hashes:
            return 0
        imported = FileImportResult(path)
        await self._append(list(enumerate(parse_legacy_sessions(data, path.stat().st_mtime), 1)), imported)
        imported_hashes.add(digest)
        await asyncio.to_thread(self._save_imported_hashes, imported_hashes)
        return imported.recorded

    async def _import_file(self, path: Path, imported: FileImportResult) -> AsyncIterator[int]:
        """Import one file; yield the bytes read after each batch."""
        with translate_os_errors(path):
            file = path.open("rb")
        with file:
            number = read = 0
            while lines := await asyncio.to_thread(_next_lines, file):
                numbered = [(number + place, line) for place, line in enumerate(lines, 1)]
                await self._append(list(_decode_lines(numbered, imported)), imported)
                number += len(lines)
                read += sum(map(len, lines))
                yield read

    async def _append(self, values: Sequence[tuple[int, Mapping[str, Any]]], imported: FileImportResult) -> None:
        drafts: list[tuple[int, EventDraft]] = []
        known = await self._log.database.read(store.known_ids, event_ids=_ids(values))
        for number, value in values:
            try:
                if value.get("event_id") in known:  # an own file from before such ids were refused, or from an archive
                    drafts.append((number, self._intake.build(value, ids_are_known=True)))
                else:
                    draft = self._intake.build(self._intake.with_safe_ids(value))
                    drafts.append((number, replace(draft, origin=Origin.IMPORTED, door=Door.IMPORT)))
            except (InvalidInput, RedactionFailed) as error:
                imported.refuse(number, error.message)
        try:
            _count(await self._log.append([draft for _, draft in drafts]) if drafts else [], imported)
        except InvalidInput:  # one of them is known with another content: record the others
            for number, draft in drafts:
                try:
                    _count(await self._log.append([draft]), imported)
                except InvalidInput as error:
                    imported.refuse(number, error.message)

    def _load_imported_hashes(self) -> set[str]:
        try:
            probe = read_once(self._imported_hashes_path)
            return set(json.loads(probe.data)) if probe else set()
        except (StorageError, ValueError, TypeError):
            return set()

    def _save_imported_hashes(self, imported_hashes: set[str]) -> None:
        write_private(self._imported_hashes_path, json.dumps(sorted(imported_hashes)).encode() + b"\n")


def _jsonl_files(path: Path) -> Iterator[tuple[Path, int]]:
    with translate_os_errors(path):
        if not path.exists():
            raise InvalidInput(f"there is no {path}", field="paths", hint="Name a file, or a folder with *.jsonl.")
        files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        yield from ((file, file.stat().st_size) for file in files)


def _legacy_files(folder: Path) -> list[Path]:
    """Return the unfinished files of an earlier installation."""
    candidates = [folder / "pending_session.json", *sorted((folder / "temp").glob("*.json"))]
    return [path for path in candidates if path.is_file()]


def _read_bytes(path: Path) -> bytes:
    probe = read_once(path)
    return b"" if probe is None else probe.data


def _next_lines(file: BinaryIO) -> list[bytes]:
    """Return the next batch of lines; none at the end. Of an overlong line, return the beginning."""
    lines: list[bytes] = []
    room = MAX_BATCH_BYTES
    while len(lines) < MAX_BATCH_LINES and room > 0 and (line := file.readline(MAX_LINE_BYTES)):
        lines.append(line)
        room -= len(line)
        rest = line
        while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES)
    return lines


def _decode_lines(
    lines: Sequence[tuple[int, bytes]], imported: FileImportResult
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines:
        line = line.removeprefix(BOM_UTF8) if number == 1 else line  # noqa: PLW2901 - editors on Windows add it
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line)
        except DECODE_ERRORS:
            imported.refuse(number, "this is no whole line of JSON")
            continue
        if not isinstance(value, dict):
            imported.refuse(number, "an event is a JSON object")
        elif not is_excluded_from_import(value.get("type")):
            yield number, _with_id(value, line)


def _with_id(value: dict[str, Any], line: bytes) -> dict[str, Any]:
    minted = "evt_" + hashlib.sha256(line.strip()).hexdigest()[:32]
    return {"event_id": minted, **value, "origin": str(Origin.IMPORTED)}  # what a file claims of its author is no proof


def _ids(values: Sequence[tuple[int, Mapping[str, Any]]]) -> list[str]:
    return [value["event_id"] for _, value in values if isinstance(value.get("event_id"), str)]


def _count(recorded: Sequence[AppendResult], imported: FileImportResult) -> None:
    for item in recorded:
        if item.duplicate:
            imported.known += 1
        else:
            imported.recorded += 1
