"""Turn a manual edit into events and versions.

`ingest_edit` is the one function for every surface (memory file, app's settings page, app cache, cloud document).
Which side wins on a line is decided in `sync.document.merge.three_way`.
"""

from sync.db.engine import Transaction
from sync.document.merge.three_way import plan_merge
from sync.document.versions.surface_edits import SurfaceEdit
from sync.document.versions.writer import EditResult


def ingest_edit(connection: Transaction, edit: SurfaceEdit) -> EditResult | None:
    """Ingest an edit in this transaction. None if the user has to say first what was meant."""
    writer = edit.writer
    current = writer.follow_log(connection, used_label=edit.used_label)
    base = edit.choose_base(connection, current)
    if edit.is_known(base):
        return EditResult((), edit.digest)
    if edit.looks_lost(base, current):
        return None
    stripped = writer.strip_erased(connection, edit.restyled(base.version or current), base.loaded, edit.digest)
    merged = plan_merge(base.version, current, stripped.document, writer.new_id)
    planned = edit.adapt(merged, base.version, current)
    if planned is None:
        return None
    writer.record_operations(connection, planned, edit.origin, edit.door)
    shown, sha256 = edit.append_versions(connection, planned, current, stripped)
    writer.erased_lines.mark_still_shown(connection, stripped, shown)
    return EditResult(planned.operations, sha256)
