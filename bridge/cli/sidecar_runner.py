"""Let a running sidecar carry out a command. Imports neither typer nor the application.

The settings of the sidecar apply. A sidecar that does not answer a ping gets no work. If the connection breaks after
that, the command does the work itself only if doing it twice is harmless: events and exchanges carry a key.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from bridge.api.errors import EXIT_FAILURE, EXIT_USAGE, RpcError
from bridge.cli.arguments import check_params
from bridge.cli.main import default_sigint
from bridge.cli.output import CliContext, exit_with_rpc_error, print_result
from bridge.rpc.endpoint_client import exchange, responsive_sidecar
from sync.clock import Clock, SystemClock, new_event_id, new_session_id
from sync.errors import InvalidInput, StorageError, TooLarge
from sync.runtime.garbage_collection import paused_collection
from sync.settings.data_dir import find_data_dir

ANSWER_TIMEOUT: Final = 65.0  # seconds for the answer of a sidecar that answered the ping: it ends a call after 60
# kinds of errors after which nothing was done; the last two if the wire cannot carry what this process can do itself
NOT_CARRIED_OUT: Final = frozenset({"unknown_method", "shutting_down", "parse_error", "invalid_request"})
USAGE_KINDS: Final = frozenset({InvalidInput.kind, TooLarge.kind})


class Request(msgspec.Struct, frozen=True):
    """One method of the table with its parameters, and how its result is printed for people."""

    method: str
    params: dict[str, Any]
    show: Callable[[Any], None]
    role: Literal["helper", "guest"] = "helper"
    repeatable: bool = True

    def with_ids(self) -> "Request":
        """The same request with the ids that this process gives to what it records.

        The event id or key makes it repeatable; the session is that of this command, not of the sidecar.
        """
        params, clock = self.params, SystemClock()
        session_id = new_session_id(clock)
        if self.method == "events/append":
            params = {"event": _with_ids(params["event"], session_id, clock)}
        elif self.method == "events/appendBatch" and isinstance(params["events"], list):
            params = {"events": [_with_ids(event, session_id, clock) for event in params["events"]]}
        elif self.method == "memory/update":
            params = {"idempotencyKey": secrets.token_hex(16), "sessionId": session_id, **params}
        return replace(self, params=params)


def _with_ids(event: Any, session_id: str, clock: Clock) -> Any:
    if not isinstance(event, dict):
        return event
    ids = {"event_id": new_event_id(clock), "session_id": session_id}
    return {**event, **{name: value for name, value in ids.items() if event.get(name) is None}}


def run_request(cli: CliContext, request: Request) -> None:
    """Have a running sidecar carry out the request, or carry it out here."""
    check_params(request.params)
    with open_sidecar(cli) as connection:
        if connection is not None:
            request = request.with_ids()
            if run_in_sidecar(cli, connection, request):
                return
    run_here(cli, request)


def run_here(cli: CliContext, request: Request) -> None:
    with default_sigint(), paused_collection():
        from bridge.cli.app_runner import run_method  # noqa: PLC0415 - it imports the application

    run_method(cli, request.method, request.params, request.show, request.role)


@contextmanager
def open_sidecar(cli: CliContext) -> Iterator[socket | None]:
    """A connection to the sidecar that may carry out this command; None if there is none. Raises SettingsError."""
    if "memory_file" in cli.flags:  # the sidecar keeps another one, perhaps
        yield None
        return
    with responsive_sidecar(find_data_dir(cli.flags.get("data_dir"), os.environ)) as connection:
        yield connection


def run_in_sidecar(cli: CliContext, connection: socket, request: Request) -> bool:
    """Send a request that has its ids, and print the answer. False if this process has to do the work."""
    try:
        response = exchange(connection, request.method, request.params, timeout=ANSWER_TIMEOUT)
    except (OSError, ValueError):
        if request.repeatable:
            return False
        hint = "See whether it was done before you repeat it."
        raise StorageError("the sidecar did not answer while it carried out this command", hint=hint) from None
    if "error" not in response:
        print_result(cli, response.get("result"), request.show)
        return True
    error = msgspec.convert(response["error"], RpcError)
    if error.data.kind not in NOT_CARRIED_OUT:
        exit_with_rpc_error(error, EXIT_USAGE if error.data.kind in USAGE_KINDS else EXIT_FAILURE, as_json=cli.json)
    return False
