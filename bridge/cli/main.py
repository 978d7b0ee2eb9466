"""The console script. `hook` and `serve` take the short way: what the command line imports would delay their answer.

Pipes and files carry UTF-8, whatever the locale says (cp936 on a Chinese Windows): what is piped comes from programs,
and is kept for years. A terminal keeps its own encoding and shows `?` for what that does not have, so that no command
fails after it has recorded something.

Ctrl-C during the imports ends the process as it ends any program: nothing has begun that needs cleaning up.
"""

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from sync.runtime.garbage_collection import paused_collection, skip_collection_at_exit

# `events --append` is `events append`: so other programs call `events` and `session-meta`
FLAG_COMMANDS: Final = frozenset({"--append", "--append-batch", "--read", "--tail", "--upsert", "--list"})


def main() -> None:
    """`xiaobai-memory …`"""
    skip_collection_at_exit()
    if (folder := hook_data_dir(sys.argv[1:])) is not None:
        with default_sigint():
            with paused_collection():
                from bridge.hooks.runner import main as hook  # noqa: PLC0415 - it runs at each call of an agent's tool

            hook(folder)
        raise SystemExit(0)
    configure_utf8_streams()
    if sys.argv[1:] == ["serve"]:
        with paused_collection():
            from bridge.sidecar import main as serve  # noqa: PLC0415 - only this way needs it

        raise SystemExit(serve({}))
    for at, (name, flag) in enumerate(pairwise(sys.argv[1:4]), 2):
        if name in {"events", "session-meta"} and flag in FLAG_COMMANDS:
            sys.argv[at] = flag.lstrip("-")
    with default_sigint(), paused_collection():
        from bridge.cli import fast_commands  # noqa: PLC0415 - `serve` does not need it

        command = fast_commands.parse(sys.argv[1:])
        if command is None:
            from bridge.cli.parser import app  # noqa: PLC0415 - typer takes longer than many a command
    if command is None:
        app()
    else:
        fast_commands.run(command)


def hook_data_dir(arguments: list[str]) -> str | None:
    """The data directory that `hook` is to use, "" for the usual one; None if the command is another.

    What follows is ignored: typer's exit status for a wrong option would make the host refuse the tool.
    """
    words = list(arguments)
    folder = ""
    if words[:1] == ["--data-dir"]:
        folder, words = "".join(words[1:2]), words[2:]
    asks_for_help = any(word in {"-h", "--help"} for word in words)
    return folder if words[:1] == ["hook"] and not asks_for_help else None


@contextmanager
def default_sigint() -> Iterator[None]:
    """Python's own handler would print a traceback of an import. If the parent ignores the signal, so do we."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def configure_utf8_streams() -> None:
    """Before anything is read or written. What is read may begin with a byte order mark, and has to be UTF-8."""
    if isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="replace")


if __name__ == "__main__":
    main()
