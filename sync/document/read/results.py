"""The results of `load` and `update`."""

from dataclasses import dataclass
from typing import Literal

from sync.document.read.device_digest import DeviceDigest
from sync.document.read.prompt import Omission

LoadScope = Literal["user", "device"]  # user: with a digest of the other devices
LoadSource = Literal["cloud", "local", "template"]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The answer of `load`. `stale`: the cloud did not answer, so other devices may know more."""

    content: str
    document: str
    document_sha256: str
    digest: str
    source: LoadSource
    stale: bool
    pending: int
    through_seq: int
    updated_at: str | None
    devices: tuple[DeviceDigest, ...]
    omitted: tuple[Omission, ...]


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The answer of `update`. `recorded` is false only if there was nothing to save; `reason` says what was special."""

    event_id: str | None
    recorded: bool
    reason: str | None
    pending: int
