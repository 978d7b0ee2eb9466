"""The document's copy in the cloud as a surface beside the file: what left for it, and what was found there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sqlalchemy import Connection

from sync.document import store
from sync.document.edit import set_footer
from sync.document.forgetting import FORGETTER
from sync.document.labels import is_shared, next_label, parse_time
from sync.document.ledger import Edited, Ledger, elsewhere, folded, start
from sync.document.model import Document, Snapshot, Version, sha256_of
from sync.document.parse import parse
from sync.document.plan import explaining, is_suspicious, plan
from sync.document.unmask import unmasked
from sync.log import store as log_store
from sync.log.model import Origin


@dataclass(frozen=True, slots=True)
class Leaving:
    """A document on its way out, and how much it stands for, all of one moment."""

    sha256: str  # of what is shown here
    snapshot: Snapshot | None  # as it leaves; None where its hash is known
    through: int  # this replica's newest event; what is said afterwards is not in it
    forgotten: int  # up to where in the log everything is forgotten here that somebody wished gone


class CloudVersions(Ledger):
    """The ring of what left, as it was typed: the bases of another program's edits there."""

    _asked_about = ""  # what stands there, while a person is asked whether it was meant

    async def leaving(self, *, known: str) -> Leaving | None:
        """What may leave now, None where there is nothing. `known`: the hash of what is not asked for again."""

        def looking(connection: Connection) -> Leaving | None:
            view = self._shown(connection)
            if not view.exists:
                return None
            text = None if view.sha256 == known else self._labelled(connection, view.snapshot)
            return Leaving(view.sha256, text, log_store.last_own_seq(connection), _forgotten(connection))

        return await self._log.database.read(looking)

    async def leave(self, snapshot: Snapshot, forgotten: int) -> None:
        """Note what the server has stored: what another program makes of it there is an edit of this.

        `forgotten`: as it was when the snapshot was taken. What has lines that were forgotten since is not noted.
        """

        def noting(connection: Connection) -> None:
            sent = store.newest(connection, store.CLOUD)
            if _forgotten(connection) == forgotten and (sent is None or sent.sha256 != sha256_of(snapshot.document)):
                self._put(connection, snapshot, "log")

        await self._log.database.write(noting)

    async def take_in(self, text: str, *, meant: bool = False) -> Edited | None:
        """What another program wrote over our document in the cloud. None where it looks lost; `meant` says it is not.

        Raises DocumentUntouchable.
        """
        document = await self._as_typed(text)
        if document.is_blank:
            return Edited((), "")  # nothing was written, so nothing is lost when ours takes its place
        edited = await self._edited(lambda connection: self._taken_in(connection, document, meant=meant))
        self._asked_about = text if edited is None else ""
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> Edited | None:
        """A person's answer about the text that looked lost: it was meant, or ours shall stand there again."""
        if answer == "accept":
            return await self.take_in(self._asked_about, meant=True)
        await self._set_aside(self._asked_about)
        return None

    async def _set_aside(self, text: str) -> None:
        """Keep that text in the history and go on as if it had never been: ours stays as it is."""
        document = await self._as_typed(text)

        def keep(connection: Connection) -> None:
            self._record_aside(connection, document)
            ring = store.candidates(connection, store.CLOUD, "", None)
            current = store.newest(connection, store.FILE)
            stripped = self._stripped(connection, document, _base(document, ring)).document
            self._put(connection, plan(current, current, stripped, self._new_id).observed, "hand")

        await self._log.database.write(keep)

    def _taken_in(self, connection: Connection, document: Document, *, meant: bool) -> Edited | None:
        current = self._followed(connection)
        ring = store.candidates(connection, store.CLOUD, "", None)
        base = _base(document, ring)
        if base is not None and not meant and is_suspicious(ring[-1], document, base):
            return None
        stripped = self._stripped(connection, document, base)
        planned = elsewhere(plan(base, current, stripped.document, self._new_id), base, current)
        self._record(connection, planned, base, Origin.IMPORTED)
        if planned.operations:
            merged = folded(start(current, self._clock), planned.operations)
            self._append(connection, self._finished(connection, merged, current), "cloud")
        self._erased.mark(connection, stripped, self._put(connection, planned.observed, "hand"))
        return Edited(planned.operations, sha256_of(document))

    async def _as_typed(self, text: str) -> Document:
        """The cloud's text with our values in the place of our placeholders: those last sent, then those of today."""
        for surface in (store.CLOUD, store.FILE):
            known = await self._log.database.read(partial(store.newest, surface=surface))
            if known is not None:  # redacting takes its time: not within a transaction that others wait for
                raw = known.snapshot.document.text
                text = unmasked(text, raw, self._redactor.clean(raw))
        return parse(text.encode())

    def _put(self, connection: Connection, snapshot: Snapshot, cause: str) -> Version:
        return store.append(connection, store.CLOUD, snapshot, cause, self._clock, store.RULE_RING)

    def _labelled(self, connection: Connection, snapshot: Snapshot) -> Snapshot:
        """With a footer that no version there has borne; pending events and hand edits have none of their own.

        The label that comes back then names the one text another program has edited.
        """
        sent = store.newest(connection, store.CLOUD)
        label = snapshot.document.label
        if sent is None or sent.sha256 == sha256_of(snapshot.document) or label is None or is_shared(label):
            return snapshot  # the first, the same again, or one that its events name
        if not _is_past(label, sent):
            return snapshot
        return set_footer(snapshot, next_label(sent.label, self._clock.now()))


def _forgotten(connection: Connection) -> int:
    return log_store.watermark(connection, FORGETTER)


def _is_past(label: str, sent: Version) -> bool:
    """Whether a version there bears this label, or may have."""
    mine, last = parse_time(label), parse_time(sent.label or "")
    return label == sent.label or (mine is not None and last is not None and mine <= last)


def _base(document: Document, ring: Sequence[Version]) -> Version | None:
    """What the other program had loaded, None where nothing ever left.

    Where several bear one label (a clock set back, a crash before one was noted) the lines decide among them.
    """
    named = [version for version in ring if version.label == document.label is not None]
    return explaining(document, named or ring, distinctive=True) if ring else None
