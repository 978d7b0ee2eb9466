"""Turn a manual edit into events and versions.

`ingest_edit` is the one function for every surface (memory file, app's settings page, app cache, cloud document).
Which side wins on a line is decided in `sync.document.merge.three_way`; with one document for all devices
`sync.document.shared.entry_reducer` decides between the events of several devices by the same word merge.
"""

from abc import ABC, abstractmethod

from sync.db.engine import Transaction
from sync.document.erased_lines_store import StrippedDocument
from sync.document.markdown.model import MemoryDocument, MergePlan, Version
from sync.document.merge.three_way import plan_merge
from sync.document.versions.writer import BaseChoice, EditResult, VersionWriter
from sync.log.model import Origin


class SurfaceEdit(ABC):
    """An edited document, and what differs between the surfaces."""

    used_label: str | None = None  # a label that no version made from this edit may get

    def __init__(
        self, writer: VersionWriter, document: MemoryDocument, *, digest: str = "", origin: Origin = Origin.USER
    ) -> None:
        """`digest`: the hash by which the edit may name its base."""
        self.writer, self.document, self.digest, self.origin = writer, document, digest, origin

    @abstractmethod
    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:
        """The version that the editor had loaded."""

    def is_known(self, base: BaseChoice) -> bool:  # noqa: ARG002 - for the surfaces that can tell
        """Whether the document is a version already, so that there is nothing to ingest."""
        return False

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:  # noqa: ARG002 - likewise
        """Whether the document looks lost or cut off rather than edited."""
        return False

    def restyled(self, base: Version | None) -> MemoryDocument:  # noqa: ARG002 - likewise
        """The document with the line endings and the encoding of its base."""
        return self.document

    def adapt(self, planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan | None:  # noqa: ARG002
        """The plan as this surface may change the document; None: not at all."""
        return planned

    def base_of_events(self, base: BaseChoice) -> Version | None:
        """The version by which moved lines and headings are found for the events of a shared document."""
        return base.version

    @abstractmethod
    def append_versions(
        self, connection: Transaction, planned: MergePlan, current: Version | None, stripped: StrippedDocument
    ) -> tuple[Version, str]:
        """Append what the edit leads to: the version that the editor shows now, and the hash of the result."""


def ingest_edit(writer: VersionWriter, connection: Transaction, edit: SurfaceEdit) -> EditResult | None:
    """Ingest an edit in this transaction. None if the user has to say first what was meant."""
    current = writer.follow_log(connection, used_label=edit.used_label)
    base = edit.choose_base(connection, current)
    if edit.is_known(base):
        return EditResult((), edit.digest, base)
    if edit.looks_lost(base, current):
        return None
    stripped = writer.strip_erased(connection, edit.restyled(base.version or current), base.loaded, edit.digest)
    merged = plan_merge(base.version, current, stripped.document, writer.new_id)
    planned = edit.adapt(merged, base.version, current)
    if planned is None:
        return None
    writer.record_operations(connection, planned, edit.base_of_events(base), edit.origin)
    shown, sha256 = edit.append_versions(connection, planned, current, stripped)
    writer.erased_lines.mark_still_shown(connection, stripped, shown)
    return EditResult(planned.operations, sha256, base)
