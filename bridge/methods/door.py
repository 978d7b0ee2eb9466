"""What a method finds behind `context.app`: the application, at once or as soon as it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from sync.errors import InvalidInput

if TYPE_CHECKING:  # importing it is what a starting sidecar has not done yet
    from sync.app import App
    from sync.document.answers import Loaded
    from sync.log.model import Query


class Door(Protocol):
    """Behind every row of the table."""

    async def opened(self) -> App:
        """The application; waits while it is being opened, raises what its opening raised."""
        ...

    def listen(self) -> None:
        """The client has shaken hands: it may be told things unasked."""
        ...

    def follow(self, app: App, query: Query) -> None:
        """Tell the client the events after `query.after` as they come; replaces an earlier wish."""
        ...

    def unfollow(self) -> None:
        """Tell no more of them."""
        ...

    def glimpse(self, *, scope: Literal["user", "device"], max_chars: int | None) -> Loaded | None:
        """The newest known memory while the application is not open yet, where that is certain."""
        ...


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """The door of a command: the application is open already."""

    app: App

    async def opened(self) -> App:
        return self.app

    def listen(self) -> None:
        return None  # nobody is there to be told

    def follow(self, app: App, query: Query) -> None:
        del app, query
        raise InvalidInput("nobody stays here to be told", field="follow", hint="Use events tail --follow.")

    def unfollow(self) -> None:
        return None

    def glimpse(self, *, scope: Literal["user", "device"], max_chars: int | None) -> Loaded | None:
        del scope, max_chars
        return None
