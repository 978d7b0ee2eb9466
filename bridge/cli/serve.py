"""`serve`: the sidecar on standard input and output."""

from typing import Annotated

import typer

from bridge.cli.running import Invocation, print_json
from bridge.methods.openrpc import document
from bridge.methods.registry import TABLE
from bridge.serving import main


def serve_command(
    context: typer.Context,
    *,
    openrpc: Annotated[bool, typer.Option("--openrpc", help="Print the OpenRPC document instead.")] = False,
) -> None:
    """Serve JSON-RPC on standard input and output until the client leaves."""
    if openrpc:
        print_json(document(TABLE))
        return
    raise SystemExit(main(context.ensure_object(Invocation).flags))
