"""Large erasure requests of other devices: what they take, what `status` says of them, the person's answer."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds
from sync.cloud.erasures import Stake
from sync.document import forgetting, store
from sync.document.ledger import Edited, Ledger
from sync.document.remarks import Notice
from sync.errors import InvalidInput
from sync.log import blank_store
from sync.log import store as log_store
from sync.log.envelope import instant_ms
from sync.log.model import HELD, Event, Withheld, named_by, withheld_as

SAID_FOR_MS: Final = 7 * 86_400_000  # how long `status` names a request that was carried out or refused
NOTICES: Final = {
    Withheld.WAITS: Notice.ERASURE_WAITS,
    Withheld.APPLIED: Notice.ERASURE_APPLIED,
    Withheld.ACCEPTED: Notice.ERASURE_APPLIED,
    Withheld.REFUSED: Notice.ERASURE_REFUSED,
}


class Erasures(Ledger):
    """The large requests of one document: what is said of them, and the person's answer."""

    async def notices(self) -> set[Notice]:
        """What `status` says of them."""
        return await self._log.database.read(lambda connection: notices(connection, self._clock))

    async def answer(self, *, accept: bool) -> Edited | None:
        """Erase what other devices asked for, as a request of this one, or keep it; None if none of them waits."""

        def answered(connection: Connection) -> bool:
            asked = bool(waiting(connection))
            named = answer(connection, accept=accept)
            self._log.record_in(connection, forgetting.wishes(named, self._redactor))
            return asked

        if not await self._in_transaction(answered):
            return None
        self._log.changed.set()
        newest = await self._log.database.read(lambda connection: store.newest(connection, store.FILE))
        return Edited((), "" if newest is None else newest.sha256)


def at_stake(connection: Connection, event_ids: Sequence[str]) -> Stake:
    """What an erasure of these events takes from the document."""
    shown = store.shown(connection)
    held = [event for event_id in event_ids if (event := log_store.find(connection, event_id)) is not None]
    return Stake(len(shown & {line for event in held for line in forgetting.lines_of(event)}), len(shown))


def notices(connection: Connection, clock: Clock) -> set[Notice]:
    """What is to be said of large requests: of those that wait, and of those that were answered a short time ago."""
    since = milliseconds(clock.now()) - SAID_FOR_MS
    marked = [(withheld_as(event), event) for event in blank_store.marked(connection, HELD)]
    return {NOTICES[mark] for mark, event in marked if mark and (mark is Withheld.WAITS or _taken_ms(event) > since)}


def waiting(connection: Connection) -> list[Event]:
    """The requests that wait for the person."""
    return [event for event in blank_store.marked(connection, HELD) if withheld_as(event) is Withheld.WAITS]


def answer(connection: Connection, *, accept: bool) -> list[str]:
    """Note the person's answer to all that wait; the ids of the events that are to be erased now."""
    asked = waiting(connection)
    for event in asked:
        mark = Withheld.ACCEPTED if accept else Withheld.REFUSED
        blank_store.mark(connection, event, HELD, str(mark))
    return list(dict.fromkeys(name for event in asked for name in named_by(event))) if accept else []


def _taken_ms(event: Event) -> int:
    try:
        return instant_ms(event.server_ts or event.ts)
    except InvalidInput:
        return 0
