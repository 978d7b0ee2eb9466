"""Answers about the memory document, and how they become JSON."""

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from sync.document.markdown.model import EntryAdded, EntryEdited, EntryRemoved
from sync.document.read.results import VersionJson
from sync.log.authorship import FORMER_ORIGIN, AuthorName

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Iterable

    from sync.document.read.device_digest import DeviceDigest
    from sync.document.read.results import LoadResult, UpdateResult
    from sync.document.versions.writer import EditResult


class DigestLineJson(TypedDict):
    """`author`: who wrote it. `origin`, for one version: what its event says, `peer` if unknown."""

    date: str
    text: str
    origin: str
    author: AuthorName


class DeviceJson(TypedDict):
    deviceId: str
    name: str
    entries: list[DigestLineJson]


class OmissionJson(TypedDict):
    section: str
    count: int


# apart from LoadResult, whose devices hold dates and origins as values of their own
class LoadJson(TypedDict):
    content: str
    document: str
    documentSha256: str
    digest: str
    source: Literal["cloud", "local", "template"]
    stale: bool
    pending: int
    throughSeq: int
    updatedAt: str | None
    devices: list[DeviceJson]
    omitted: list[OmissionJson]


# apart from UpdateResult, whose `reason` is None if this one has no such field
class UpdateJson(TypedDict):
    eventId: str | None
    recorded: bool
    pending: int
    reason: NotRequired[str]


class PromptJson(TypedDict):
    prompt: str


class OperationJson(TypedDict):
    """What an edit did to one entry; the text is in the document."""

    type: Literal["entry_added", "entry_edited", "entry_removed"]
    entryId: str
    section: list[str]


class EditedJson(TypedDict):
    """`nothingWaits`: true if no warning waited for the answer of `memory/resolve`, else missing."""

    operations: list[OperationJson]
    sha256: str
    nothingWaits: NotRequired[bool]


class HistoryJson(TypedDict):
    versions: list[VersionJson]


def load_to_json(value: "LoadResult") -> LoadJson:
    return {
        "content": value.content,
        "document": value.document,
        "documentSha256": value.document_sha256,
        "digest": value.digest,
        "source": value.source,
        "stale": value.stale,
        "pending": value.pending,
        "throughSeq": value.through_seq,
        "updatedAt": value.updated_at,
        "devices": [device_digest_to_json(found) for found in value.devices],
        "omitted": [{"section": item.section, "count": item.count} for item in value.omitted],
    }


def update_to_json(value: "UpdateResult") -> UpdateJson:
    answer: UpdateJson = {"eventId": value.event_id, "recorded": value.recorded, "pending": value.pending}
    if value.reason is not None:
        answer["reason"] = value.reason
    return answer


def edit_to_json(value: "EditResult") -> EditedJson:
    kinds: dict[type, Literal["entry_added", "entry_edited", "entry_removed"]] = {
        EntryAdded: "entry_added",
        EntryEdited: "entry_edited",
        EntryRemoved: "entry_removed",
    }
    operations: list[OperationJson] = [
        {"type": kinds[type(done)], "entryId": done.entry_id, "section": list(done.section)}
        for done in value.operations
    ]
    return {"operations": operations, "sha256": value.sha256}


def history_to_json(versions: "Iterable[VersionJson]") -> HistoryJson:
    return {"versions": list(versions)}


def device_digest_to_json(value: "DeviceDigest") -> DeviceJson:
    entries: list[DigestLineJson] = [
        {
            "date": line.date.isoformat(),
            "text": line.text,
            "origin": FORMER_ORIGIN[line.author].value,
            "author": line.author.value,
        }
        for line in value.lines
    ]
    return {"deviceId": value.device_id, "name": value.name, "entries": entries}
