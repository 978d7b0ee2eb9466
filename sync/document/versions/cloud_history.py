"""The document's copy in the cloud as a surface beside the file: what left for it, and what was found there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure.erasure import ERASURE_OFFSET
from sync.document.markdown.edits import set_footer
from sync.document.markdown.model import MemoryDocument, Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.version_labels import is_shared_label, next_label, parse_time_label
from sync.document.merge.three_way import infer_base, looks_like_data_loss, plan_merge
from sync.document.merge.unredact import unredact
from sync.document.versions.writer import (
    EditResult,
    VersionWriter,
    adapt_to_layout,
    apply_operations,
    snapshot_or_template,
)
from sync.log import store as log_store
from sync.log.model import Origin


@dataclass(frozen=True, slots=True)
class OutgoingVersion:
    """A document on its way out, and how much it stands for, all of one moment."""

    sha256: str  # of what is shown here
    snapshot: Snapshot | None  # as it leaves; None where its hash is known
    through_replica_seq: int  # this replica's newest event; what is said afterwards is not in it
    erased_through: int  # up to where in the log everything is forgotten here that somebody wished gone


class CloudHistory(VersionWriter):
    """The ring of what left, as it was typed: the bases of another program's edits there."""

    _unconfirmed_text = ""  # what stands there, while a person is asked whether it was meant

    async def outgoing(self, *, known_sha256: str) -> OutgoingVersion | None:
        """What may leave now, None where there is nothing. `known`: the hash of what is not asked for again."""

        def looking(connection: Transaction) -> OutgoingVersion | None:
            view = self._current_view(connection)
            if not view.exists:
                return None
            text = None if view.sha256 == known_sha256 else self._with_unused_label(connection, view.snapshot)
            return OutgoingVersion(view.sha256, text, log_store.last_own_seq(connection), _erased_through(connection))

        return await self._log.database.read(looking)

    async def mark_sent(self, snapshot: Snapshot, erased_through: int) -> None:
        """Note what the server has stored: what another program makes of it there is an edit of this.

        `forgotten`: as it was when the snapshot was taken. What has lines that were forgotten since is not noted.
        """

        def noting(connection: Transaction) -> None:
            sent = store.newest(connection, store.CLOUD)
            if _erased_through(connection) == erased_through and (
                sent is None or sent.sha256 != snapshot.document.sha256
            ):
                self._append_cloud_version(connection, snapshot, "log")

        await self._log.database.write(noting)

    async def ingest(self, text: str, *, confirmed: bool = False) -> EditResult | None:
        """What another program wrote over our document in the cloud. None where it looks lost; `meant` says it is not.

        Raises DocumentUntouchable.
        """
        document = await self._unredacted(text)
        if document.is_blank:
            return EditResult((), "")  # nothing was written, so nothing is lost when ours takes its place
        edited = await self._edit(
            lambda connection: self._record_remote_edit(connection, document, confirmed=confirmed)
        )
        self._unconfirmed_text = text if edited is None else ""
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> EditResult | None:
        """A person's answer about the text that looked lost: it was meant, or ours shall stand there again."""
        if answer == "accept":
            return await self.ingest(self._unconfirmed_text, confirmed=True)
        await self._keep_as_version(self._unconfirmed_text)
        return None

    async def _keep_as_version(self, text: str) -> None:
        """Keep that text in the history and go on as if it had never been: ours stays as it is."""
        document = await self._unredacted(text)

        def keep(connection: Transaction) -> None:
            self._record_kept_copy(connection, document)
            ring = store.base_candidates(connection, store.CLOUD, "", None)
            current = store.newest(connection, store.FILE)
            stripped = self._strip_erased(connection, document, _base_of(document, ring)).document
            self._append_cloud_version(
                connection, plan_merge(current, current, stripped, self._new_id).observed, "hand"
            )

        await self._log.database.write(keep)

    def _record_remote_edit(
        self, connection: Transaction, document: MemoryDocument, *, confirmed: bool
    ) -> EditResult | None:
        current = self._follow_log(connection)
        ring = store.base_candidates(connection, store.CLOUD, "", None)
        base = _base_of(document, ring)
        if base is not None and not confirmed and looks_like_data_loss(ring[-1], document, base):
            return None
        stripped = self._strip_erased(connection, document, base)
        planned = adapt_to_layout(plan_merge(base, current, stripped.document, self._new_id), base, current)
        self._record_operations(connection, planned, base, Origin.IMPORTED)
        if planned.operations:
            merged = apply_operations(snapshot_or_template(current, self._clock), planned.operations)
            self._append_version(connection, self._with_footer(connection, merged, current), "cloud")
        self._erased_lines.mark_still_shown(
            connection, stripped, self._append_cloud_version(connection, planned.observed, "hand")
        )
        return EditResult(planned.operations, document.sha256)

    async def _unredacted(self, text: str) -> MemoryDocument:
        """The cloud's text with our values in the place of our placeholders: those last sent, then those of today."""
        for surface in (store.CLOUD, store.FILE):
            known = await self._log.database.read(partial(store.newest, surface=surface))
            if known is not None:  # redacting takes its time: not within a transaction that others wait for
                raw = known.snapshot.document.text
                text = unredact(text, raw, self._redactor.clean(raw))
        return parse(text.encode())

    def _append_cloud_version(self, connection: Transaction, snapshot: Snapshot, cause: str) -> Version:
        return store.append(connection, store.CLOUD, snapshot, cause, self._clock, store.RING_SIZE)

    def _with_unused_label(self, connection: Transaction, snapshot: Snapshot) -> Snapshot:
        """With a footer that no version there has borne; pending events and hand edits have none of their own.

        The label that comes back then names the one text another program has edited.
        """
        sent = store.newest(connection, store.CLOUD)
        label = snapshot.document.label
        if sent is None or sent.sha256 == snapshot.document.sha256 or label is None or is_shared_label(label):
            return snapshot  # the first, the same again, or one that its events name
        if not _label_is_used(label, sent):
            return snapshot
        return set_footer(snapshot, next_label(sent.label, self._clock.now()))


def _erased_through(connection: Transaction) -> int:
    return log_store.watermark(connection, ERASURE_OFFSET)


def _label_is_used(label: str, sent: Version) -> bool:
    """Whether a version there bears this label, or may have."""
    mine, last = parse_time_label(label), parse_time_label(sent.label or "")
    return label == sent.label or (mine is not None and last is not None and mine <= last)


def _base_of(document: MemoryDocument, ring: Sequence[Version]) -> Version | None:
    """What the other program had loaded, None where nothing ever left.

    Where several bear one label (a clock set back, a crash before one was noted) the lines decide among them.
    """
    named = [version for version in ring if version.label == document.label is not None]
    return infer_base(document, named or ring, only_distinct_lines=True) if ring else None
