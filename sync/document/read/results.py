"""The results of `load`, `update` and `history`."""

from typing import Literal

import msgspec

from sync.document.markdown.model import MemoryDocument, Snapshot
from sync.document.markdown.template import language_of
from sync.document.read.device_digest import DeviceDigest, render_digest
from sync.document.read.line_authors import AuthorLabels, LineLabel, with_author_labels
from sync.document.read.prompt import Authors, Omission, compose
from sync.texts.language import ZH, Language, LanguageChoice

LoadScope = Literal["user", "device"]  # user: with a digest of the other devices
LoadSource = Literal["cloud", "local", "template"]


class LoadResult(msgspec.Struct, frozen=True):
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
    has_other_authors: bool = False
    language: Language = ZH
    snapshot: Snapshot = Snapshot(MemoryDocument())
    labelled: MemoryDocument = MemoryDocument()  # its document with the authors of its lines
    authors: Authors = ()

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        author_labels: AuthorLabels,
        devices: tuple[DeviceDigest, ...],
        max_chars: int | None,
        *,
        language: LanguageChoice,
        source: LoadSource,
        updated_at: str | None,
    ) -> "LoadResult":
        """The answer from a document, the authors of its lines, and what other devices remember; without a cloud."""
        document, spoken = snapshot.document, language.of(language_of(snapshot.document))
        digest = render_digest(devices, spoken)
        labelled = with_author_labels(snapshot, author_labels, spoken)
        authors = [_author_key(author_labels.get(entry_id)) for entry_id in snapshot.ids] if author_labels else ()
        content, omitted = compose(labelled, digest, max_chars, spoken, authors)
        return cls(
            content=content,
            document=document.text,
            document_sha256=document.sha256,
            digest=digest,
            source=source,
            stale=False,
            pending=0,
            through_seq=0,
            updated_at=updated_at,
            devices=devices,
            omitted=omitted,
            has_other_authors=bool(author_labels or digest),
            language=spoken,
            snapshot=snapshot,
            labelled=labelled,
            authors=authors,
        )


def _author_key(label: LineLabel | None) -> str | None:
    return None if label is None else label.zh


class UpdateResult(msgspec.Struct, frozen=True):
    """The answer of `update`. `recorded` is false only if there was nothing to save; `reason` says what was special."""

    event_id: str | None
    recorded: bool
    reason: str | None
    pending: int


class VersionJson(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the history. `label` is the footer's 最后更新.

    `cause`: hand, log, merged, app_cache, cloud, saved, restored, forgotten, redacted, folded, facts, operations.
    """

    sha256: str
    label: str | None
    cause: str
    created_at: str
    entries: int
