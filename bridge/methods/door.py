"""What a method finds behind `context.app`: the application, at once or as soon as it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:  # importing it is what a starting sidecar has not done yet
    from sync.app import App
    from sync.document.answers import Loaded


class Door(Protocol):
    """Behind every row of the table."""

    async def opened(self) -> App:
        """The application; waits while it is being opened, raises what its opening raised."""
        ...

    def listen(self) -> None:
        """The client has shaken hands: it may be told things unasked."""
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

    def glimpse(self, *, scope: Literal["user", "device"], max_chars: int | None) -> Loaded | None:
        del scope, max_chars
        return None
