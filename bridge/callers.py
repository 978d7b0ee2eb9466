"""The calls that use one opened application, and their end where it has to make place for another account's.

Decisions
    An application is not closed under a call that uses it: a call is waited for, and one that takes too long is ended
    while everything it needs for its cleaning up is still open. It answers `account_changed`, not what closing would
    have made of it, and not that it may be tried again: asked once more, it would do for the next account what was
    meant for the former.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final
from weakref import WeakSet

from bridge.methods.door import Door
from bridge.methods.table import Context, Method
from sync.errors import AccountChanged

PATIENCE: Final = 5.0  # seconds for calls that use an application which is about to be closed
GRACE: Final = 1.0  # seconds for those that were ended then to clean up


class Callers:
    """Whoever works with the application that is open just now."""

    def __init__(self) -> None:
        self._working = set[asyncio.Task[Any]]()
        self._ended = WeakSet[asyncio.Task[Any]]()

    def note(self) -> None:
        """The present task works with it from now on until its end."""
        if (caller := asyncio.current_task()) is not None:
            self._working.add(caller)
            caller.add_done_callback(self._working.discard)

    async def let_go(self) -> None:
        """Wait until nobody works with it, and end who takes too long."""
        if self._working:
            await asyncio.wait(self._working, timeout=PATIENCE)
        if late := set(self._working):
            self._ended |= late
            for caller in late:
                caller.cancel()
            await asyncio.wait(late, timeout=GRACE)

    def heard(self, method: Method[Door, Any]) -> Method[Door, Any]:
        """A row of the table whose calls say so where they were ended here."""

        async def call(context: Context[Door], params: Any) -> object:
            try:
                return await method.call(context, params)
            except (Exception, asyncio.CancelledError):
                if asyncio.current_task() not in self._ended:
                    raise
                context.cancelled = True  # a thread of it that still runs may look
                raise AccountChanged(f"another account came in while {method.name} was under way") from None

        return replace(method, call=call)
