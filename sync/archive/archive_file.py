"""Write an archive as a new file: verified and complete, or not at all."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from sync import __version__
from sync.archive.container import FORMAT, VERSION, ArchiveInfo, ArchiveManifest, ArchiveReader, ArchiveWriter
from sync.archive.partial_files import partial_file, remove_partial_files
from sync.clock import Clock, timestamp
from sync.cloud.auth.event_signer import EventSigner
from sync.errors import InvalidInput
from sync.log.devices.signing import verify_signature
from sync.log.envelope import to_json
from sync.log.log import EventLog
from sync.log.model import Event
from sync.system.atomic_swap import rename_no_replace
from sync.system.files import sync_folder, translate_os_errors

EVENTS_PER_PART: Final = 1_000  # events


class WrittenArchive(msgspec.Struct, frozen=True):
    """`sha256`: the hash of all parts, from the manifest."""

    bytes: int
    sha256: str


async def write_archive(
    path: Path,
    passphrase: str | None,
    fill: Callable[[ArchiveWriter], Awaitable[None]],
    *,
    signer: EventSigner | None = None,
    replace_existing: bool = False,
) -> WrittenArchive:
    """Write what `fill` adds into a new file. Raises InvalidInput if the file exists, StorageError.

    `signer` signs the manifest with the device's key. `replace_existing`: replace the file. Partial files of killed
    writers are removed.
    """
    if not replace_existing and await asyncio.to_thread(path.exists):
        raise _already_exists(path)
    await asyncio.to_thread(remove_partial_files, path.parent, name=path.name)
    with partial_file(path) as (temporary, file):
        with translate_os_errors(path), file:
            writer = await asyncio.to_thread(ArchiveWriter, file, passphrase, os.urandom)
            await fill(writer)
            manifest = writer.manifest()
            if signer is not None:
                key, (signature,) = await signer.sign_texts([manifest.signed_bytes])
                manifest = replace(manifest, public_key=key, signature=signature)
            await asyncio.to_thread(writer.finish, manifest)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
            size = file.tell()
        await asyncio.to_thread(ArchiveReader.open_verified, temporary, passphrase)  # the backup can be read
        with translate_os_errors(path):
            await asyncio.to_thread(_move_into_place, temporary, path, replace_existing=replace_existing)
    return WrittenArchive(size, manifest.sha256)


async def is_signed_by_account(manifest: ArchiveManifest, signer: EventSigner) -> bool:
    """Return whether a device of this account wrote the archive, this one included."""
    key, signature = manifest.public_key or "", manifest.signature or ""
    is_known = any(key in keys for keys in (await signer.device_keys()).values())
    return is_known and await asyncio.to_thread(verify_signature, key, signature, manifest.signed_bytes)


def build_info_part(events: EventLog, head: int, clock: Clock) -> bytes:
    """Return the part that describes the archive."""
    return msgspec.json.encode(
        ArchiveInfo(FORMAT, VERSION, timestamp(clock.now()), __version__, events.device_id, head)
    )


def build_events_part(number: int, part: Sequence[Event]) -> tuple[str, bytes]:
    """Return name and bytes of a part, one event a line."""
    lines = b"".join(msgspec.json.encode(to_json(event)) + b"\n" for event in part)
    return f"events/{number:06}.jsonl", lines


def _move_into_place(temporary: Path, path: Path, *, replace_existing: bool) -> None:
    try:
        (os.replace if replace_existing else rename_no_replace)(temporary, path)
    except FileExistsError:  # created meanwhile
        raise _already_exists(path) from None
    sync_folder(path.parent)


def _already_exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already", field="path", hint="Name a file that is not there yet.")
