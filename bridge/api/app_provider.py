"""`context.app` of a method: the application, at once or as soon as it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from sync.errors import InvalidInput

if TYPE_CHECKING:  # a starting sidecar has not imported it yet
    from bridge.api.method_table import RequestClient
    from sync.app import App
    from sync.document.read.results import LoadResult
    from sync.log.model import Query


class AppProvider(Protocol):
    """What every method can ask for."""

    async def wait_until_open(self) -> App:
        """The application; waits while it is being opened, raises what its opening raised."""
        ...

    def enable_notifications(self) -> None:
        """The client has called `initialize`: send it notifications from now on."""
        ...

    def use_locale(self, locale: str) -> None:
        """The client's locale: the language of what is answered before the application is open."""
        ...

    def offer_model(self, request_client: RequestClient, max_calls_per_day: int) -> None:
        """The client offers its language model for so many calls a day; with 0 it takes the offer back."""
        ...

    def subscribe(self, app: App, query: Query) -> None:
        """Notify the client of events after `query.after` as they come; replaces an earlier subscription."""
        ...

    def unsubscribe(self) -> None:
        """End the subscription."""
        ...

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        """The newest known memory while the application is not open yet; None if it is not certain."""
        ...


class OpenAppProvider(msgspec.Struct, frozen=True):
    """The provider of a command: the application is open already."""

    app: App

    async def wait_until_open(self) -> App:
        return self.app

    def enable_notifications(self) -> None:
        return None  # a command has no client

    def use_locale(self, locale: str) -> None:
        self.app.document.language.locale = locale

    def offer_model(self, request_client: RequestClient, max_calls_per_day: int) -> None:
        del request_client, max_calls_per_day  # a command has no client

    def subscribe(self, app: App, query: Query) -> None:
        del app, query
        raise InvalidInput("nobody stays here to be told", field="follow", hint="Use events tail --follow.")

    def unsubscribe(self) -> None:
        return None

    def cold_load(self, *, scope: Literal["user", "device"], max_chars: int | None) -> LoadResult | None:
        del scope, max_chars
        return None
