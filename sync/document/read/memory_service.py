"""The memory as an assistant uses it: load before a message, update after it.

`load` and `update` never fail because of the network. `update` returns when its event is on disk; the file, the cloud
and the other devices follow. `load` returns the newest known state, whether or not the file or the server has it yet.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sync.clock import Clock, new_event_id
from sync.cloud.status import CloudState
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.exchange_events import (
    TEXT_LENGTH,
    ExchangeInput,
    RedactedExchange,
    draft_exchange_events,
    draft_exchange_text,
    repeated_exchange_id,
)
from sync.document.erasure import erasure
from sync.document.markdown.model import Snapshot
from sync.document.markdown.template import language_of
from sync.document.read.device_digest import DeviceDigest
from sync.document.read.line_authors import AuthorLabels, LineAuthors
from sync.document.read.other_devices import (
    EDIT_EVENTS,
    EXCHANGE_EVENTS,
    MAX_EVENTS,
    device_digests,
)
from sync.document.read.results import LoadResult, LoadScope, LoadSource, UpdateResult
from sync.document.surfaces.memory_file import MemoryFile
from sync.errors import CloudError, StorageError
from sync.log import store as log_store
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.devices.store import read_registry
from sync.log.event_types import EXCHANGE_RECORDED, EXCHANGE_TEXT
from sync.log.local_state import FORMERLY_SHARED, TEXTS_ANNOUNCED
from sync.log.log import EventLog, StoreWithEvents, user_visible_outbox
from sync.log.model import AppendResult, Event, EventDraft
from sync.log.sessions.pauses import SavePauses
from sync.redaction import Redactor
from sync.settings.settings import Settings
from sync.system.shared_folders import copies_warning, sharing_warning
from sync.texts.language import Language

if TYPE_CHECKING:
    from sync.cloud.replication.replicator import Replicator
    from sync.document.capture.capture_policy import CapturePolicy
    from sync.document.surfaces.watcher import Watcher

NOT_TO_BE_SAVED: Final = "not_to_be_saved"  # the user asked for this in the conversation
HURRIED_SECONDS: Final = 0.15  # seconds; a caller that waits longer wants the server's own answer, not realtime's
FactExtractor = Callable[[Transaction, list[EventDraft]], list[EventDraft]]
ExchangeReader = Callable[[Transaction, Event], None]


class MemoryService:
    """One profile's memory as an assistant uses it."""

    def __init__(
        self,
        events: EventLog,
        document: MemoryFile,
        replicator: "Replicator | None",
        redactor: Redactor,
        *,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._log = events
        self._document = document
        self._replicator = replicator
        self._redactor = redactor.for_egress()
        self._clock, self._data_dir = clock, settings.data_dir
        self._raw_redactor = None if redactor.enabled else redactor
        self._other_devices = settings.load.other_devices == "digest"
        self._store_messages = settings.privacy.stores_messages_whole
        self._keeps_texts = settings.privacy.keeps_exchange_texts
        self._announces = settings.privacy.store_messages is None
        self._record_settings = settings.record
        self._line_authors = LineAuthors(events.own_device_ids)
        idle_ms = int(settings.sessions.idle_minutes * 60_000)
        self.pauses = SavePauses(events, self._redactor, clock, idle_ms)
        self.on_exchange: ExchangeReader | None = None  # gets each new exchange in its transaction
        self._cached: LoadResult | None = None  # the last answer, valid until the database or the cloud's state changes
        self._cache_key: object = None

    @cached_property
    def _capture_policy(self) -> "CapturePolicy":
        """Loaded at the first update: most commands only read."""
        from sync.document.capture.capture_policy import CapturePolicy  # noqa: PLC0415

        return CapturePolicy(self._log, self._record_settings, self._clock)

    async def load(self, *, wait_ms: int, scope: LoadScope = "user", max_chars: int | None = None) -> LoadResult:
        """The newest known memory. Asks the cloud for at most `wait_ms` milliseconds; 0 does not ask.

        A short wait does not ask either while realtime proves that the local log is up to date.
        """
        answered = await self._refresh_from_cloud(wait_ms / 1000)
        stale = self._is_stale(cloud_asked=wait_ms > 0, cloud_answered=answered)
        token = self._log.database.change_token()
        key = (token, answered, stale, scope, max_chars, self._document.language.locale)
        if self._cached is not None and key == self._cache_key:
            return self._cached
        is_cacheable = self._log.database.is_token_readable(token)
        loaded = await self._compose_answer(cloud_answered=answered, stale=stale, scope=scope, max_chars=max_chars)
        if is_cacheable:
            self._cache_key, self._cached = key, loaded
        return loaded

    async def _compose_answer(
        self, *, cloud_answered: bool, stale: bool, scope: LoadScope, max_chars: int | None
    ) -> LoadResult:
        view = await self._document.view()
        others = await self._other_digests() if scope == "user" and self._other_devices else ()
        source: LoadSource = "cloud" if cloud_answered else "local"
        loaded = LoadResult.of(
            view.snapshot,
            await self._author_labels(view.snapshot),
            others,
            max_chars,
            language=self._document.language,
            source=source if view.exists or others else "template",
            updated_at=view.updated_at,
        )
        pending = (await user_visible_outbox(self._log)).pending
        return replace(loaded, stale=stale, pending=pending, through_seq=await self._through_seq())

    async def update(self, exchange: ExchangeInput) -> UpdateResult:
        """Record one exchange; when this returns it survives power loss.

        Raises InvalidInput, RedactionFailed (nothing was stored), StorageError.
        """
        redacted = RedactedExchange.of(exchange, self._redactor, await self.language()).with_empty_sides_marked()
        if redacted.is_blank:
            return UpdateResult(
                None, recorded=False, reason="nothing_said", pending=(await user_visible_outbox(self._log)).pending
            )

        add_facts = await self._fact_extractor(exchange, redacted)

        def build(connection: Transaction) -> list[EventDraft]:
            drafts = draft_exchange_events(
                exchange,
                self._redactor,
                device_id=self._log.device_id,
                store_messages=self._store_messages,
                redacted=redacted,
                policy_fields=self._capture_policy.decide(connection, exchange, redacted),
            )
            if drafts and self._keeps_texts:
                drafts = self._with_text(drafts, exchange, redacted)
            return self.pauses.filter_allowed(connection, add_facts(connection, drafts))

        keep_unredacted = self._unredacted_writer(exchange, redacted)

        def keep(connection: Transaction, recorded: Sequence[AppendResult]) -> None:
            if keep_unredacted is not None:
                keep_unredacted(connection, recorded)
            is_new = recorded and recorded[0].event.type == EXCHANGE_RECORDED and not recorded[0].duplicate
            if is_new and self.on_exchange is not None and self._record_settings.preferences:
                self.on_exchange(connection, recorded[0].event)

        recorded, pending = await self._log.append_and_count(build, keep)
        if not recorded or recorded[0].event.type != EXCHANGE_RECORDED:
            return UpdateResult(None, recorded=False, reason=NOT_TO_BE_SAVED, pending=pending)
        event_id = recorded[0].event.event_id
        self._capture_policy.remember(recorded[0].event)
        return UpdateResult(event_id, recorded=True, reason=_reason(recorded[0]), pending=pending)

    async def warnings(self, watcher: "Watcher | None" = None) -> tuple[str | None, ...]:
        """What `status` says about recording, the folders of file and database, and the watch."""
        folders = copies_warning(self._document.path), sharing_warning(self._data_dir)
        watch = None if watcher is None else watcher.warning
        return await self.pauses.warning(), await self._announce_texts(), *folders, watch

    async def _announce_texts(self) -> str | None:
        """Say once, by default, that this device keeps its exchanges whole."""
        if not self._announces or not await self._log.newest_position((EXCHANGE_TEXT,)):
            return None
        if await self._log.watermark(TEXTS_ANNOUNCED):
            return None
        await self._log.database.write(log_store.set_watermark, TEXTS_ANNOUNCED, 1, self._clock)
        return (
            "exchange_texts_kept: this device keeps both sides of its exchanges, redacted; they are not sent anywhere;"
            " PRIVACY__STORE_MESSAGES=false keeps the summaries alone"
        )

    def _with_text(
        self, drafts: list[EventDraft], exchange: ExchangeInput, redacted: RedactedExchange
    ) -> list[EventDraft]:
        """The drafts of an exchange and that of its whole text, if the summaries do not say all."""
        first, *messages = drafts
        if first.event_id is None:
            first = replace(first, event_id=new_event_id(self._clock))
        echoes = self._capture_policy.echoes(redacted.ai_response[:TEXT_LENGTH].strip())
        text = draft_exchange_text(first, redacted, self._redactor, echoes, tools=exchange.has_tool_output)
        return drafts if text is None else [first, *messages, text]

    async def _fact_extractor(self, exchange: ExchangeInput, redacted: RedactedExchange) -> FactExtractor:
        """How the facts that the user states in this exchange are recorded behind its events."""
        if not self._record_settings.preferences:
            return lambda _, drafts: drafts
        from sync.understanding.capture import fact_extractor  # noqa: PLC0415 - at its first use
        from sync.understanding.store import turn_before  # noqa: PLC0415

        before = await self._log.database.read(turn_before, exchange.session_id or self._log.session_id)
        return fact_extractor(redacted.user_message, self._redactor, self._clock, before)

    async def language(self, asked: str | None = None) -> Language:
        """The language that a call asks for, else that of what is recorded now."""
        if asked is not None:
            return Language(asked)
        choice = self._document.language
        if not choice.version and (current := await self._document.versions.newest()) is not None:
            choice.note(current.number, language_of(current.snapshot.document))
        return choice.current

    def _unredacted_writer(
        self, exchange: ExchangeInput, redacted_exchange: RedactedExchange
    ) -> StoreWithEvents | None:
        """How the unredacted text is kept for this device's document, if the user has turned redaction off."""
        if self._raw_redactor is None:
            return None
        raw = RedactedExchange.of(exchange, self._raw_redactor, redacted_exchange.language).with_empty_sides_marked()
        redacted, original = (redacted_exchange.question, redacted_exchange.answer), (raw.question, raw.answer)
        return partial(store.save_unredacted, redacted=redacted, original=original)

    async def _refresh_from_cloud(self, seconds: float) -> bool:
        """Whether the server answered within the time. A late answer is still ingested."""
        if self._replicator is None or self._log.database.upkeep.is_locked_out:
            return False
        if seconds <= HURRIED_SECONDS and self._replicator.is_fresh():
            return True
        if seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._replicator.sync_unless_backing_off()
        except (TimeoutError, CloudError, StorageError):  # kept in `status`; a load returns what is here
            return False
        return True

    def _is_stale(self, *, cloud_asked: bool, cloud_answered: bool) -> bool:
        """Whether the cloud did not answer now or, if it was not asked, the last time."""
        if cloud_answered or self._replicator is None or self._replicator.state is CloudState.SIGNED_OUT:
            return False
        return cloud_asked or self._replicator.state is not CloudState.SYNCED

    async def _through_seq(self) -> int:
        return 0 if self._replicator is None else (await self._replicator.status()).cursor.seq

    async def _author_labels(self, snapshot: Snapshot) -> AuthorLabels:
        """The authors of the lines that the user did not write here."""

        def refresh(connection: Transaction) -> bool:
            run_query, newest = partial(store.run_event_query, connection), log_store.newest_position(connection)
            formerly_shared = log_store.watermark(connection, FORMERLY_SHARED) > 0
            self._line_authors.refresh(run_query, newest, snapshot, formerly_shared=formerly_shared)
            return formerly_shared

        has_others = await self._log.database.read(refresh)
        registry = await self._log.database.read(read_registry) if has_others else DeviceRegistry()
        return self._line_authors.author_labels(snapshot, registry)

    async def _other_digests(self) -> tuple[DeviceDigest, ...]:
        registry = await self._log.database.read(read_registry)
        excluded = self._log.own_device_ids | registry.hidden
        exchanges = await self._log.newest(EXCHANGE_EVENTS, MAX_EVENTS, excluded_devices=excluded)
        edits = await self._log.newest(EDIT_EVENTS, MAX_EVENTS, excluded_devices=excluded)
        retractions = await self._log.database.read(erasure.pending_retractions)
        return device_digests(
            list(map(retractions.effective_event, exchanges)), list(map(retractions.effective_event, edits)), registry
        )


def _reason(recorded: AppendResult) -> str | None:
    """What was special about an exchange, for the answer of `update`."""
    if recorded.duplicate:
        return "already_recorded"
    if recorded.event.payload.get("in_document") is False:
        return "below_min_importance"
    return None if repeated_exchange_id(recorded.event) is None else "counted"
