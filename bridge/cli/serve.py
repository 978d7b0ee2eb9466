"""`serve`: the sidecar on standard input and output."""

from typing import Annotated

import typer

from bridge.api.openrpc import openrpc_document
from bridge.cli.output import CliContext, print_json
from bridge.methods.registry import METHOD_TABLE
from bridge.sidecar import main


def serve_command(
    context: typer.Context,
    *,
    openrpc: Annotated[bool, typer.Option("--openrpc", help="Print the OpenRPC document instead.")] = False,
) -> None:
    """Serve JSON-RPC on standard input and output until the client leaves."""
    if openrpc:
        print_json(openrpc_document(METHOD_TABLE))
        return
    raise SystemExit(main(context.ensure_object(CliContext).flags))
