"""What a method finds behind `context.app`: the application, at once or as soon as it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from sync.errors import InvalidInput

if TYPE_CHECKING:  # importing it is what a starting sidecar has not done yet
    from sync.app import App
    from sync.document.read.results import LoadResult
    from sync.log.model import Query


class AppProvider(Protocol):
    """Behind every row of the table."""

    async def wait_until_open(self) -> App:
        """The application; waits while it is being opened, raises what its opening raised."""
        ...

    def enable_notifications(self) -> None:
        """The client has shaken hands: it may be told things unasked."""
        ...

    def subscribe(self, app: App, query: Query) -> None:
        """Tell the client the events after `query.after` as they come; replaces an earlier wish."""
        ...

    def unsubscribe(self) -> None:
        """Tell no more of them."""
        ...

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        """The newest known memory while the application is not open yet, where that is certain."""
        ...


@dataclass(frozen=True, slots=True)
class OpenAppProvider:
    """The door of a command: the application is open already."""

    app: App

    async def wait_until_open(self) -> App:
        return self.app

    def enable_notifications(self) -> None:
        return None  # nobody is there to be told

    def subscribe(self, app: App, query: Query) -> None:
        del app, query
        raise InvalidInput("nobody stays here to be told", field="follow", hint="Use events tail --follow.")

    def unsubscribe(self) -> None:
        return None

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        del scope, max_chars
        return None
