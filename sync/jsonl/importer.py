"""Import JSONL files of other installations, and what an earlier installation left behind.

Every line is checked and redacted like an event of another program; its device, replica and order are not believed. A
line without an id gets one from its bytes, so a repeated import records nothing new. A refused line does not stop the
others. Files of an earlier installation are read once for all profiles: their hashes are stored in the data directory.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from sync.clock import Clock
from sync.cloud.auth.event_signer import EventSigner
from sync.errors import InvalidInput, StorageError
from sync.jsonl.event_import import EventImport, decode_lines
from sync.jsonl.legacy_sessions import parse_legacy_sessions
from sync.jsonl.model import ImportCounts
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.projections.external import OnProgress
from sync.system.files import read_once, translate_os_errors, write_private

MAX_BATCH_LINES: Final = 500  # lines in one transaction
MAX_BATCH_BYTES: Final = 4 * 1024 * 1024  # JSON of empty lists decodes to twenty times its size
MAX_LINE_BYTES: Final = 1024 * 1024  # longer than any event
_HINT: Final = "Name a file, or a folder with *.jsonl."
IMPORTED_HASHES_FILE: Final = "taken-in.json"  # hashes of imported files of an earlier installation

log = logging.getLogger(__name__)


class FileImportResult(ImportCounts):
    """The result of importing one file; refusals name its lines."""

    path: Path


class EventFileImporter:
    """Imports files into one profile's log."""

    def __init__(
        self, events: EventLog, intake: DraftBuilder, signer: EventSigner, clock: Clock, *, data_dir: Path
    ) -> None:
        self._log = events
        self._intake, self._signer, self._clock = intake, signer, clock
        self._imported_hashes_path = data_dir / IMPORTED_HASHES_FILE

    async def import_paths(
        self, paths: Sequence[Path], on_progress: OnProgress | None = None
    ) -> list[FileImportResult]:
        """Import files, and every `*.jsonl` below folders. `on_progress` gets bytes. Raises StorageError."""
        files = await asyncio.to_thread(lambda: [file for path in paths for file in _jsonl_files(path)])
        total = sum(size for _, size in files)
        done, results, importing = 0, [], self._new_import()
        for path, size in files:
            imported = FileImportResult(path)
            async for read in self._import_file(path, importing, imported):
                if on_progress is not None:
                    on_progress(done + read, total)
            done += size
            imported.refusals.sort()
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
        sessions = list(enumerate(parse_legacy_sessions(data, path.stat().st_mtime), 1))
        await self._new_import().take(sessions, imported)
        imported_hashes.add(digest)
        await asyncio.to_thread(self._save_imported_hashes, imported_hashes)
        return imported.recorded

    def _new_import(self) -> EventImport:
        return EventImport(self._log, self._intake, self._signer, self._clock)

    async def _import_file(self, path: Path, importing: EventImport, imported: FileImportResult) -> AsyncIterator[int]:
        """Import one file; yield the bytes read after each batch."""
        with translate_os_errors(path):
            file = path.open("rb")
        with file:
            number = read = 0
            while lines := await asyncio.to_thread(_next_lines, file):
                numbered = [(number + place, line) for place, line in enumerate(lines, 1)]
                await importing.take(list(decode_lines(numbered, imported)), imported)
                number += len(lines)
                read += sum(map(len, lines))
                yield read

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
            raise InvalidInput(f"there is no {path}", field="paths", hint=_HINT)
        files = sorted(filter(Path.is_file, path.rglob("*.jsonl"))) if path.is_dir() else [path]
        if not all(map(Path.is_file, files)):  # a pipe or a device has no end
            raise InvalidInput(f"{path} is no ordinary file", field="paths", hint=_HINT)
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
