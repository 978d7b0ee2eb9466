"""The document's copy in the cloud as a surface beside the file: the versions sent there, and other programs' edits."""

from typing import Literal

import msgspec

from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure.erasure import ERASURE_OFFSET
from sync.document.markdown.edits import set_footer
from sync.document.markdown.model import MemoryDocument, Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.version_labels import next_label, parse_time_label
from sync.document.merge.three_way import plan_merge
from sync.document.merge.unredact import unredact
from sync.document.versions.ingest_edit import ingest_edit
from sync.document.versions.surface_edits import CloudEdit, sent_base
from sync.document.versions.writer import EditResult, VersionWriter
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.model import Origin


class OutgoingVersion(msgspec.Struct, frozen=True):
    """A document to be sent, and what it contains, all of one moment."""

    sha256: str  # of the document as it is here
    snapshot: Snapshot | None  # as it is sent; None if the server has it
    through_replica_seq: int  # this replica's newest event in it
    erased_through: int  # the log position up to which erasures are applied to it


class CloudHistory:
    """The ring of versions that were sent, as they were typed: the bases of other programs' edits."""

    _unconfirmed_text = ""  # the text in the cloud that looks lost, until the user answers

    def __init__(self, writer: VersionWriter) -> None:
        self._writer, self._log = writer, writer.log

    async def outgoing(self, *, known_sha256: str) -> OutgoingVersion | None:
        """What can be sent now; None if there is nothing. `known_sha256`: a document that the server has."""

        def read_outgoing(connection: Transaction) -> OutgoingVersion | None:
            view = self._writer.current_view(connection)
            if not view.exists:
                return None
            snapshot = None if view.sha256 == known_sha256 else self._with_unused_label(connection, view.snapshot)
            return OutgoingVersion(
                view.sha256, snapshot, log_store.last_own_seq(connection), _erased_through(connection)
            )

        return await self._log.database.read(read_outgoing)

    async def state(self) -> tuple[str, int] | None:
        """The hash of the document, and the log position up to which erasures are applied to it.

        None while a request to forget waits: what it names is not sent.
        """

        def read_state(connection: Transaction) -> tuple[str, int] | None:
            if erased_store.forget_requests(connection):
                return None
            view = self._writer.current_view(connection)
            return (view.sha256, _erased_through(connection)) if view.exists else None

        return await self._log.database.read(read_state)

    async def mark_sent(self, snapshot: Snapshot, erased_through: int) -> None:
        """Note what the server has stored: the base of another program's edit there.

        `erased_through`: as it was when the snapshot was taken. A snapshot that has lines erased since is not stored.
        """

        def note(connection: Transaction) -> None:
            sent = store.newest(connection, store.CLOUD)
            is_new = sent is None or sent.sha256 != snapshot.document.sha256
            if is_new and _erased_through(connection) == erased_through:
                self._writer.append_version(connection, snapshot, "log", surface=store.CLOUD)

        await self._log.database.write(note)

    async def ingest(self, text: str, *, confirmed: bool = False) -> EditResult | None:
        """Ingest what another program wrote. None if it looks lost and the user has not `confirmed` it.

        Raises DocumentUntouchable.
        """
        document = await self._unredacted(text)
        if document.is_blank:
            return EditResult((), "")  # nothing is lost if our document replaces it
        edit = CloudEdit(self._writer, document, origin=Origin.IMPORTED, confirmed=confirmed)
        edited = await self._writer.edit(ingest_edit, edit)
        self._unconfirmed_text = text if edited is None else ""
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> EditResult | None:
        """Apply the user's answer about the text that looked lost: ingest it, or send our document again."""
        if answer == "accept":
            return await self.ingest(self._unconfirmed_text, confirmed=True)
        await self._keep_as_version(self._unconfirmed_text)
        return EditResult((), "")

    async def _keep_as_version(self, text: str) -> None:
        """Keep that text in the history; our document stays as it is."""
        document = await self._unredacted(text)

        def keep(connection: Transaction) -> None:
            self._writer.keep_copy(connection, document)
            current = store.newest(connection, store.FILE)
            stripped = self._writer.strip_erased(connection, document, sent_base(connection, document)).document
            observed = plan_merge(current, current, stripped, self._writer.new_id).observed
            self._writer.append_version(connection, observed, "hand", surface=store.CLOUD)

        await self._log.database.write(keep)

    async def _unredacted(self, text: str) -> MemoryDocument:
        """The cloud's text with our values in place of our placeholders: first those sent last, then the current."""
        for surface in (store.CLOUD, store.FILE):
            newest = await self._log.database.read(store.newest, surface=surface)
            if newest is not None:  # outside the transaction: redaction is slow, and others wait for the writer
                raw = newest.snapshot.document.text
                text = unredact(text, raw, self._writer.redactor.clean(raw))
        return parse(text.encode())

    def _with_unused_label(self, connection: Transaction, snapshot: Snapshot) -> Snapshot:
        """With a label that no version in the cloud has: pending events and manual edits have none of their own.

        The label that comes back then names the one text that another program edited.
        """
        sent = store.newest(connection, store.CLOUD)
        label = snapshot.document.label
        if sent is None or sent.sha256 == snapshot.document.sha256 or label is None or not _label_is_used(label, sent):
            return snapshot
        return set_footer(snapshot, next_label(sent.label, self._writer.clock.now()))


def _erased_through(connection: Transaction) -> int:
    return log_store.watermark(connection, ERASURE_OFFSET)


def _label_is_used(label: str, sent: Version) -> bool:
    """Whether a version in the cloud has this label, or may have had it."""
    mine, last = parse_time_label(label), parse_time_label(sent.label or "")
    return label == sent.label or (mine is not None and last is not None and mine <= last)
