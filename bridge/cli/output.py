"""What a command prints: results on stdout, errors and notices on stderr. Imports no typer.

With `--json` a result is one JSON object and so is an error. The exit status is 0, 1 for a failure, 2 for wrong usage.
"""

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NoReturn

import msgspec

from bridge.api.errors import RpcError, exit_code_of, rpc_error_of
from sync.errors import StorageError
from sync.texts.language import Language
from sync.texts.table import text, translated

_DISK_FAILURES: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_ANSI_SEQUENCE: Final = re.compile(r"\033\[[0-?]*[ -/]*[@-~]")
_CONTROL: Final = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass
class CliContext:
    """The options before the verb; `json` may also follow it."""

    json: bool = False
    flags: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def language(self) -> Language:
        """The language of what is printed for people."""
        from bridge.api.command_language import command_language  # noqa: PLC0415 - `--json` needs none

        return command_language(self.flags)


CLI_CONTEXT: Final[ContextVar[CliContext]] = ContextVar("cli_context")


def localized(english: str, /, **values: object) -> str:
    """A sentence of the table in the language of the command that runs."""
    return text(english, _language(), **values)


def say(english: str, /, *, err: bool = False, **values: object) -> None:
    """Print a sentence of the table in the language of the command that runs."""
    echo(localized(english, **values), err=err)


def in_own_language(sentence: str) -> str:
    """A finished English sentence, such as the hint of an error, in the language of the command that runs."""
    return translated(sentence, _language())


def _language() -> Language:
    if (context := CLI_CONTEXT.get(None)) is None:
        CLI_CONTEXT.set(context := CliContext())
    return context.language


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text. Terminal control sequences in it reach a terminal only."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    stream.write((text if stream.isatty() else _ANSI_SEQUENCE.sub("", text)) + ("\n" if nl else ""))
    stream.flush()


def print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_result(cli: CliContext, result: Any, show: Callable[[Any], None]) -> None:
    """Print a result as JSON, or as `show` prints it for people."""
    if cli.json:
        print_json(result)
    else:
        show(legible(result))


def legible(value: Any) -> Any:
    """A result in which no stored text controls a terminal: it may come from another program or device.

    A pipe may end on a terminal too. `--json` prints the text as it is stored, with control characters escaped.
    """
    if isinstance(value, str):
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [legible(item) for item in value]
    return {name: legible(item) for name, item in value.items()} if isinstance(value, dict) else value


def exit_with_error(error: BaseException, *, as_json: bool) -> NoReturn:
    """Print an error and exit with its status."""
    exit_with_rpc_error(rpc_error_of(error), exit_code_of(error), as_json=as_json)


def exit_with_rpc_error(error: RpcError, status: int, *, as_json: bool) -> NoReturn:
    if as_json:
        fields = {"code": error.code, "message": error.message, "data": error.data}
        sys.stderr.write(msgspec.json.encode({"error": fields}).decode() + "\n")
    else:
        echo_problem(error.message, error.data.hint)
    raise SystemExit(status)


def echo_error(error: BaseException) -> None:
    """Print an error after which the command goes on."""
    answer = rpc_error_of(error)
    echo_problem(answer.message, answer.data.hint)


def echo_problem(message: str, hint: str) -> None:
    """Print what is wrong and what to do, in English sentences, on stderr and in the language of the command."""
    say("error: {message}", err=True, message=in_own_language(legible(message)))
    say("hint: {hint}", err=True, hint=in_own_language(legible(hint)))


@contextmanager
def flushed_stdout() -> Iterator[None]:
    """Flush stdout after a block. StorageError if it cannot be written, BrokenPipeError if the reader is gone.

    An OSError of the block after which stdout can be flushed is that of something else, unless it says that a disk
    takes no more.
    """
    is_written = False
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None in a process that was started without one
                sys.stdout.flush()
            is_written = True
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None or (is_written and error.errno not in _DISK_FAILURES):
            raise
        discard_stdout()
        reason = error.strerror or type(error).__name__
        raise StorageError(
            f"the answer could not be written to standard output ({reason})",
            hint="What was asked is done and need not be repeated; only its answer is missing.",
        ) from error


def discard_stdout() -> None:
    """Drop what stdout still holds; otherwise the interpreter tries to write it at exit and reports that itself."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
