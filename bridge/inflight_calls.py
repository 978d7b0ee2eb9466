"""The calls that use the open application, and how they end before another account's is opened.

An application is not closed under a call that uses it. A call is waited for; one that takes too long is ended while
everything that its cleanup needs is still open. It answers `account_changed`, which is not retryable: repeated, the
call would do for the next account what was meant for the former one.
"""

import asyncio
from typing import Any, Final
from weakref import WeakSet

from msgspec.structs import replace

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Method
from sync.errors import AccountChanged

DRAIN_TIMEOUT: Final = 5.0  # seconds for calls that use an application which is about to be closed
CANCEL_GRACE: Final = 1.0  # seconds for those that were ended then to clean up


class InflightCalls:
    """The calls that use the open application."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[Any]]()
        self._cancelled_tasks = WeakSet[asyncio.Task[Any]]()

    def register_current_task(self) -> None:
        """Count the current task among them until it ends."""
        if (caller := asyncio.current_task()) is not None:
            self._tasks.add(caller)
            caller.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until no call uses it; cancel those that take too long."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN_TIMEOUT)
        if late := set(self._tasks):
            self._cancelled_tasks |= late
            for caller in late:
                caller.cancel()
            await asyncio.wait(late, timeout=CANCEL_GRACE)

    def wrap_method(self, method: Method[AppProvider, Any]) -> Method[AppProvider, Any]:
        """A row of the table whose calls fail with AccountChanged if they were cancelled here."""

        async def call(context: Context[AppProvider], params: Any) -> object:
            try:
                return await method.call(context, params)
            except (Exception, asyncio.CancelledError):
                if asyncio.current_task() not in self._cancelled_tasks:
                    raise
                context.cancelled = True  # a thread of it that still runs may look
                raise AccountChanged(f"another account came in while {method.name} was under way") from None

        return replace(method, call=call)
