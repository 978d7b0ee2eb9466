"""Apply one pending erasure to everything that the document's transaction covers.

`sync.erasure_service.ErasureService.apply` lists the steps after it: the projections beside the document.
"""

from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure import erasure, parked_documents
from sync.document.erasure.corrections import apply_rewrites
from sync.document.erasure.erasure import PendingErasure
from sync.document.markdown.model import Version
from sync.document.surfaces import withheld_erasures
from sync.document.versions.writer import VersionWriter
from sync.log.event_types import ENTRY_REMOVED
from sync.log.model import EventDraft, Origin


def apply_next_erasure(connection: Transaction, writer: VersionWriter) -> PendingErasure | None:
    """Apply the next pending erasure, in this order; return it, or None if none is pending."""
    pending = erasure.next_pending(connection, writer.log.device_id)
    if pending is None:
        return None
    # 1. log payloads that are corrected instead of erased
    erasure.apply_corrections(connection, pending)
    writer.projection.history.reset()  # it has the old text
    # 2. the document: a version with the corrected lines, then one without the erased lines, with its events
    current = _rewrite_lines(writer, connection, pending)
    _remove_lines(writer, connection, pending, current)
    # 3. a request of this device's own for its edits that quote the erased lines, and for what admitted devices asked
    if named := (*pending.quoting_event_ids, *withheld_erasures.release_admitted(connection)):
        writer.log.append_in(connection, erasure.request_drafts(named, writer.redactor))
    # 4. parked documents; if one cannot be written, the transaction fails and the erasure stays pending
    if writer.parked_folder is not None and writer.parked_folder.is_dir():
        versions = store.containing(connection, pending.affected_entry_ids)
        parked_documents.erase_from_parked(writer.parked_folder, versions, pending.apply_to, writer.new_id)
    # 5. log payloads, the outbox, every stored version (file, app cache, cloud), and the erasure offset
    removed_lines = erasure.apply(connection, pending, writer.clock)
    # 6. hashes of the erased lines, by which an editor's old buffer is recognised
    writer.erased_lines.record(connection, removed_lines)
    # 7. the own history, which has the blanked events
    writer.projection.history.reset()
    return pending


def _rewrite_lines(writer: VersionWriter, connection: Transaction, pending: PendingErasure) -> Version | None:
    """The newest version, with the corrected text in place of the old."""
    current = writer.follow_log(connection)
    if current is None or not pending.corrected_payloads:
        return current
    snapshot = apply_rewrites(current.snapshot, pending.rewrites)
    if snapshot == current.snapshot:
        return current
    return writer.append_version(connection, writer.with_footer(snapshot, current), "redacted")


def _remove_lines(
    writer: VersionWriter, connection: Transaction, pending: PendingErasure, current: Version | None
) -> None:
    """Remove the erased lines. The removals carry no hash of the text: the text could be guessed from it."""
    planned = erasure.plan_removals(pending, current)
    if planned is None:
        return
    payloads = (
        {"entry_id": operation.entry_id, "section": list(operation.section)} for operation in planned.operations
    )
    drafts = [
        EventDraft(ENTRY_REMOVED, writer.redactor.clean_payload(payload), origin=Origin.USER) for payload in payloads
    ]
    writer.record_own_events(connection, drafts)
    writer.append_version(connection, writer.with_footer(planned.merged, current), "forgotten")
