"""`serve`: the sidecar on standard input and output."""

import typer

from bridge.cli.running import Invocation
from bridge.serving import main


def serve_command(context: typer.Context) -> None:
    """Serve JSON-RPC on standard input and output until the client leaves."""
    raise SystemExit(main(context.ensure_object(Invocation).flags))
