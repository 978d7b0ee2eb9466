"""What an AI asks of its memory: load before a message, update after it, a prompt to inject.

`load` and `update` never fail because of the network. An update is acknowledged when its event is on disk; the file,
the cloud and the other devices follow. `load` answers with the newest known state: this device's own words, whether or
not the file or the server has them yet, and apart from them a digest of the other devices.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from sync.clock import Clock
from sync.cloud.replication.replicator import CloudState, Replicator
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.capture_policy import CapturePolicy
from sync.document.capture.exchange_events import (
    ExchangeInput,
    RedactedExchange,
    draft_exchange_events,
    repeated_exchange_id,
)
from sync.document.erasure import erasure
from sync.document.markdown.model import Snapshot
from sync.document.read.device_digest import DeviceDigest, render_digest
from sync.document.read.line_authors import LineAuthors, with_author_labels
from sync.document.read.other_devices import (
    EDIT_EVENTS,
    EXCHANGE_EVENTS,
    MAX_EVENTS,
    DeviceInfo,
    device_digests,
    device_infos,
    hidden_devices,
)
from sync.document.read.prompt import compose, system_prompt
from sync.document.read.results import LoadResult, LoadScope, LoadSource, UpdateResult
from sync.document.surfaces.memory_file import MemoryFile
from sync.errors import CloudError, StorageError
from sync.log import store as log_store
from sync.log.event_types import DEVICE_EVENT_TYPES, EXCHANGE_RECORDED
from sync.log.log import EventLog, StoreWithEvents, user_visible_outbox
from sync.log.model import AppendResult, EventDraft
from sync.log.sessions.pauses import SavePauses
from sync.redaction import Redactor
from sync.settings.settings import Settings

NOT_TO_BE_SAVED: Final = "not_to_be_saved"  # a person asked so for this conversation
HURRIED_SECONDS: Final = 0.15  # seconds; who would wait longer wants the server's own word, not realtime's
FENCE_BYTES: Final = 6  # of randomness in a fence: a message cannot guess how to close it


class MemoryService:
    """One profile's memory as an AI uses it."""

    def __init__(
        self,
        events: EventLog,
        document: MemoryFile,
        replicator: Replicator | None,
        redactor: Redactor,
        *,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._log = events
        self._document = document
        self._replicator = replicator
        self._redactor = redactor.for_egress()
        self._clock = clock
        alone = settings.document.sharing == "device"  # a shared document is a function of the redacted log
        self._raw_redactor = redactor if alone and not redactor.enabled else None
        shared = settings.document.sharing == "user"  # then what others remember stands in the document itself
        self._other_devices = settings.load.other_devices == "digest" and not shared
        self._store_messages = settings.privacy.store_messages
        self._capture_policy = CapturePolicy(events, settings.record)
        self._shared = shared
        self._line_authors = LineAuthors({events.device_id, *events.former_device_ids})
        idle_ms = int(settings.sessions.idle_minutes * 60_000)
        self.pauses = SavePauses(events, self._redactor, clock, idle_ms)
        self._cached: LoadResult | None = None  # the last answer, good until the database or the cloud's state changes
        self._cache_key: object = None

    async def load(self, *, wait_ms: int, scope: LoadScope = "user", max_chars: int | None = None) -> LoadResult:
        """The newest known memory. Asks the cloud for at most `wait_ms`; 0 asks nobody.

        Where realtime vouches for what is here, a hurried load asks nobody either.
        """
        answered = await self._refresh_from_cloud(wait_ms / 1000)
        stale = self._is_stale(cloud_asked=wait_ms > 0, cloud_answered=answered)
        token = self._log.database.change_token()
        key = (token, answered, stale, scope, max_chars)
        if self._cached is not None and key == self._cache_key:
            return self._cached
        steady = self._log.database.is_token_readable(token)
        loaded = await self._compose_answer(cloud_answered=answered, stale=stale, scope=scope, max_chars=max_chars)
        if steady:
            self._cache_key, self._cached = key, loaded
        return loaded

    async def _compose_answer(
        self, *, cloud_answered: bool, stale: bool, scope: LoadScope, max_chars: int | None
    ) -> LoadResult:
        view = await self._document.view()
        others = await self._other_digests() if scope == "user" and self._other_devices else ()
        digest = render_digest(others) if others else ""
        content, omitted = compose(
            with_author_labels(view.snapshot, await self._author_labels(view.snapshot)), digest, max_chars
        )
        outbox = await user_visible_outbox(self._log)
        source: LoadSource = "cloud" if cloud_answered else "local"
        return LoadResult(
            content=content,
            document=view.text,
            document_sha256=view.sha256,
            digest=digest,
            source=source if view.exists or others else "template",
            stale=stale,
            pending=outbox.pending,
            through_seq=await self._through_seq(),
            updated_at=view.updated_at,
            devices=others,
            omitted=omitted,
        )

    async def update(self, exchange: ExchangeInput) -> UpdateResult:
        """Record one exchange; when this returns it survives power loss.

        Raises InvalidInput, RedactionFailed (nothing was stored), StorageError.
        """
        told = RedactedExchange.of(exchange, self._redactor).with_empty_sides_marked()
        if told.is_blank:
            return UpdateResult(
                None, recorded=False, reason="nothing_said", pending=(await user_visible_outbox(self._log)).pending
            )
        device_id, messages = self._log.device_id, self._store_messages
        drafts = partial(draft_exchange_events, exchange, self._redactor, device_id=device_id, store_messages=messages)

        def drafted(connection: Transaction) -> list[EventDraft]:
            decided = self._capture_policy.decide(connection, exchange, told)
            return self.pauses.filter_allowed(connection, drafts(redacted=told, policy_fields=decided))

        recorded, pending = await self._log.append_and_count(drafted, self._unredacted_writer(exchange, told))
        if not recorded or recorded[0].event.type != EXCHANGE_RECORDED:
            return UpdateResult(None, recorded=False, reason=NOT_TO_BE_SAVED, pending=pending)
        self._capture_policy.remember(recorded[0].event)
        return UpdateResult(recorded[0].event.event_id, recorded=True, reason=_reason(recorded[0]), pending=pending)

    def _unredacted_writer(
        self, exchange: ExchangeInput, redacted_exchange: RedactedExchange
    ) -> StoreWithEvents | None:
        """How what was said is kept for the document of this device, where the user has turned redaction off."""
        if self._raw_redactor is None:
            return None
        raw = RedactedExchange.of(exchange, self._raw_redactor).with_empty_sides_marked()
        redacted, said = (redacted_exchange.question, redacted_exchange.answer), (raw.question, raw.answer)
        keep = partial(store.save_unredacted, redacted=redacted, original=said)
        return lambda connection, recorded: keep(connection, _exchanges(recorded)) if _exchanges(recorded) else None

    async def prompt(self, *, wait_ms: int, scope: LoadScope = "user", max_chars: int | None = None) -> str:
        """The block to inject into a system prompt, the memory in it as fenced data.

        At most `max_chars` code points with its frame; empty if the frame alone is longer.
        """
        fence = self._clock.random_bytes(FENCE_BYTES).hex()
        block = system_prompt((await self.load(wait_ms=wait_ms, scope=scope)).content, fence)
        if max_chars is None or len(block) <= max_chars:
            return block
        room = max_chars - len(system_prompt("", fence))
        while room > 0:
            block = system_prompt((await self.load(wait_ms=0, scope=scope, max_chars=room)).content, fence)
            if len(block) <= max_chars:
                return block
            room -= len(block) - max_chars  # defusing marks has made it longer
        return ""

    async def _refresh_from_cloud(self, seconds: float) -> bool:
        """Whether the server answered within the time. Its answer goes on being taken in when we no longer wait."""
        if self._replicator is None:
            return False
        if seconds <= HURRIED_SECONDS and self._replicator.is_fresh():
            return True
        if seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._replicator.sync_unless_backing_off()
        except (TimeoutError, CloudError, StorageError):  # kept in `status`; a load answers with what there is
            return False
        return True

    def _is_stale(self, *, cloud_asked: bool, cloud_answered: bool) -> bool:
        """Whether the cloud did not answer when asked just now or, where nobody asked, when it was last."""
        if cloud_answered or self._replicator is None or self._replicator.state is CloudState.SIGNED_OUT:
            return False
        return cloud_asked or self._replicator.state is not CloudState.SYNCED

    async def _through_seq(self) -> int:
        return 0 if self._replicator is None else (await self._replicator.status()).cursor.seq

    async def _author_labels(self, snapshot: Snapshot) -> dict[str, str]:
        """The lines under 用户偏好 that the user did not write here, and who did."""

        def refresh(connection: Transaction) -> None:
            ask = partial(store.run_event_query, connection)
            self._line_authors.refresh(ask, log_store.newest_position(connection), shared=self._shared)

        await self._log.database.read(refresh)
        about = device_infos(await self._log.newest(DEVICE_EVENT_TYPES, MAX_EVENTS)) if self._shared else {}
        return self._line_authors.author_labels(snapshot, lambda device_id: about.get(device_id, DeviceInfo()).name)

    async def _other_digests(self) -> tuple[DeviceDigest, ...]:
        about = device_infos(await self._log.newest(DEVICE_EVENT_TYPES, MAX_EVENTS))
        besides = {self._log.device_id, *self._log.former_device_ids, *hidden_devices(about)}
        said = await self._log.newest(EXCHANGE_EVENTS, MAX_EVENTS, excluded_devices=besides)
        by_hand = await self._log.newest(EDIT_EVENTS, MAX_EVENTS, excluded_devices=besides)
        taken_back = await self._log.database.read(erasure.pending_retractions)
        return device_digests(
            list(map(taken_back.effective_event, said)), list(map(taken_back.effective_event, by_hand)), about
        )


def _exchanges(recorded: Sequence[AppendResult]) -> list[AppendResult]:
    return [item for item in recorded if item.event.type == EXCHANGE_RECORDED]


def _reason(recorded: AppendResult) -> str | None:
    """What was special about an exchange, for the answer of `update`."""
    if recorded.duplicate:
        return "already_recorded"
    if recorded.event.payload.get("in_document") is False:
        return "below_min_importance"
    return None if repeated_exchange_id(recorded.event) is None else "counted"
