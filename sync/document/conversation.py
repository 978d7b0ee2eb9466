"""What an AI asks of its memory: load before a message, update after it, a prompt to inject.

`load` and `update` never fail because of the network. An update is acknowledged when its event is on disk; the file,
the cloud and the other devices follow. `load` answers with the newest known state: this device's own words, whether or
not the file or the server has them yet, and apart from them a digest of the other devices.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock
from sync.cloud.replicator import CloudState, Replicator
from sync.document import forgetting, store
from sync.document.answers import Loaded, Scope, Source, Updated
from sync.document.capture import EXCHANGE, Exchange, Told, exchange_drafts, repeated_by
from sync.document.digest import DeviceDigest, render_digest
from sync.document.memory_file import MemoryFile
from sync.document.model import Snapshot
from sync.document.origins import LineSources, marked
from sync.document.others import (
    ABOUT_DEVICES,
    BY_HAND,
    MOST_EVENTS,
    SAID,
    About,
    about_devices,
    digests,
    hidden_devices,
)
from sync.document.prompt import compose, system_prompt
from sync.document.weighing import Weighing
from sync.errors import CloudError, StorageError
from sync.log import store as log_store
from sync.log.log import Beside, Log, to_be_sent
from sync.log.model import Draft, Recorded
from sync.log.pauses import SavePauses
from sync.redaction import Redactor
from sync.settings import Settings

NOT_TO_BE_SAVED: Final = "not_to_be_saved"  # a person asked so for this conversation
HURRIED: Final = 0.15  # seconds; who would wait longer wants the server's own word, not realtime's
FENCE_BYTES: Final = 6  # of randomness in a fence: a message cannot guess how to close it


class Conversation:
    """One profile's memory as an AI uses it."""

    def __init__(
        self,
        events: Log,
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
        self._redactor = redactor.for_leaving()
        self._clock = clock
        alone = settings.document.sharing == "device"  # a shared document is a function of the redacted log
        self._raw = redactor if alone and not redactor.enabled else None
        shared = settings.document.sharing == "user"  # then what others remember stands in the document itself
        self._other_devices = settings.load.other_devices == "digest" and not shared
        self._store_messages = settings.privacy.store_messages
        self._weighing = Weighing(events, settings.record)
        self._shared = shared
        self._sources = LineSources({events.device_id, *events.earlier_ids})
        idle_ms = int(settings.sessions.idle_minutes * 60_000)
        self.pauses = SavePauses(events, self._redactor, clock, idle_ms)
        self._kept: Loaded | None = None  # the last answer, good until the database or the cloud's state changes
        self._kept_for: object = None

    async def load(self, *, wait_ms: int, scope: Scope = "user", max_chars: int | None = None) -> Loaded:
        """The newest known memory. Asks the cloud for at most `wait_ms`; 0 asks nobody.

        Where realtime vouches for what is here, a hurried load asks nobody either.
        """
        answered = await self._ask_cloud(wait_ms / 1000)
        stale = self._is_stale(asked=wait_ms > 0, answered=answered)
        token = self._log.database.token()
        key = (token, answered, stale, scope, max_chars)
        if self._kept is not None and key == self._kept_for:
            return self._kept
        steady = self._log.database.is_steady(token)
        loaded = await self._look(answered=answered, stale=stale, scope=scope, max_chars=max_chars)
        if steady:
            self._kept_for, self._kept = key, loaded
        return loaded

    async def _look(self, *, answered: bool, stale: bool, scope: Scope, max_chars: int | None) -> Loaded:
        view = await self._document.view()
        others = await self._others() if scope == "user" and self._other_devices else ()
        digest = render_digest(others) if others else ""
        content, omitted = compose(marked(view.snapshot, await self._marks(view.snapshot)), digest, max_chars)
        outbox = await to_be_sent(self._log)
        source: Source = "cloud" if answered else "local"
        return Loaded(
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

    async def update(self, exchange: Exchange) -> Updated:
        """Record one exchange; when this returns it survives power loss.

        Raises InvalidInput, RedactionFailed (nothing was stored), StorageError.
        """
        told = Told.of(exchange, self._redactor).with_both_sides()
        if told.is_blank:
            return Updated(None, recorded=False, reason="nothing_said", pending=(await to_be_sent(self._log)).pending)
        device_id, messages = self._log.device_id, self._store_messages
        drafts = partial(exchange_drafts, exchange, self._redactor, device_id=device_id, store_messages=messages)

        def drafted(connection: Connection) -> list[Draft]:
            decided = self._weighing.decide(connection, exchange, told)
            return self.pauses.allowed(connection, drafts(told=told, decided=decided))

        recorded, pending = await self._log.record_and_count(drafted, self._kept_raw(exchange, told))
        if not recorded or recorded[0].event.type != EXCHANGE:
            return Updated(None, recorded=False, reason=NOT_TO_BE_SAVED, pending=pending)
        self._weighing.note(recorded[0].event)
        return Updated(recorded[0].event.event_id, recorded=True, reason=_reason(recorded[0]), pending=pending)

    def _kept_raw(self, exchange: Exchange, told: Told) -> Beside | None:
        """How what was said is kept for the document of this device, where the user has turned redaction off."""
        if self._raw is None:
            return None
        raw = Told.of(exchange, self._raw).with_both_sides()
        redacted, said = (told.question, told.answer), (raw.question, raw.answer)
        keep = partial(store.keep_as_said, redacted=redacted, said=said)
        return lambda connection, recorded: keep(connection, _exchanges(recorded)) if _exchanges(recorded) else None

    async def prompt(self, *, wait_ms: int, scope: Scope = "user", max_chars: int | None = None) -> str:
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

    async def _ask_cloud(self, seconds: float) -> bool:
        """Whether the server answered within the time. Its answer goes on being taken in when we no longer wait."""
        if self._replicator is None:
            return False
        if seconds <= HURRIED and self._replicator.vouches():
            return True
        if seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._replicator.ask()
        except (TimeoutError, CloudError, StorageError):  # kept in `status`; a load answers with what there is
            return False
        return True

    def _is_stale(self, *, asked: bool, answered: bool) -> bool:
        """Whether the cloud did not answer when asked just now or, where nobody asked, when it was last."""
        if answered or self._replicator is None or self._replicator.state is CloudState.SIGNED_OUT:
            return False
        return asked or self._replicator.state is not CloudState.SYNCED

    async def _through_seq(self) -> int:
        return 0 if self._replicator is None else (await self._replicator.status()).cursor.seq

    async def _marks(self, snapshot: Snapshot) -> dict[str, str]:
        """The lines under 用户偏好 that the user did not write here, and who did."""

        def refresh(connection: Connection) -> None:
            ask = partial(store.asked, connection)
            self._sources.refresh(ask, log_store.newest_position(connection), shared=self._shared)

        await self._log.database.read(refresh)
        about = about_devices(await self._log.newest(ABOUT_DEVICES, MOST_EVENTS)) if self._shared else {}
        return self._sources.marks(snapshot, lambda device_id: about.get(device_id, About()).name)

    async def _others(self) -> tuple[DeviceDigest, ...]:
        about = about_devices(await self._log.newest(ABOUT_DEVICES, MOST_EVENTS))
        besides = {self._log.device_id, *self._log.earlier_ids, *hidden_devices(about)}
        said = await self._log.newest(SAID, MOST_EVENTS, besides=besides)
        by_hand = await self._log.newest(BY_HAND, MOST_EVENTS, besides=besides)
        taken_back = await self._log.database.read(forgetting.taken_back)
        return digests(list(map(taken_back.left_of, said)), list(map(taken_back.left_of, by_hand)), about)


def _exchanges(recorded: Sequence[Recorded]) -> list[Recorded]:
    return [item for item in recorded if item.event.type == EXCHANGE]


def _reason(recorded: Recorded) -> str | None:
    """What was special about an exchange, for the answer of `update`."""
    if recorded.duplicate:
        return "already_recorded"
    if recorded.event.payload.get("in_document") is False:
        return "below_min_importance"
    return None if repeated_by(recorded.event) is None else "counted"
