"""Arguments of commands: text and JSON, also from standard input, and folders. Imports no typer."""

import os
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bridge.rpc.framing import FRAME_LIMIT, SEND_LESS_HINT, FramingError
from sync.errors import InvalidInput, TooLarge

STDIN: Final = "-"  # as an argument: read it from standard input


def text_argument(value: str) -> str:
    """An argument, or standard input for `-`. Raises InvalidInput, TooLarge."""
    text = _read_stdin(lambda: sys.stdin.read(FRAME_LIMIT + 1)) if value == STDIN else value
    if len(text) > FRAME_LIMIT:  # of which the rest is not read
        raise TooLarge(FramingError.TOO_LARGE.value, field="stdin", hint=SEND_LESS_HINT)
    return text


def read_stdin_line() -> str:
    """One line of standard input, without its end. Raises InvalidInput."""
    return _read_stdin(sys.stdin.readline).rstrip("\r\n")


def folder_option(value: str | None) -> str | None:
    """A project's folder as an absolute path; None for an empty value."""
    return os.path.abspath(value) if value else None  # noqa: PTH100 - folds `..`, and follows no link


def project_option(value: str | None) -> str | None:
    """A project's folder likewise, or its id as it is."""
    is_folder = value in {".", ".."} or any(mark in (value or "") for mark in ("/", os.sep))
    return folder_option(value) if is_folder else value


def json_argument(value: str, *, name: str) -> Any:
    """A JSON argument, or standard input for `-`. Raises InvalidInput."""
    try:
        return msgspec.json.decode(text_argument(value))
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{name} is not valid JSON: {error}", field=name) from error
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deep", field=name) from error
    except UnicodeEncodeError:
        raise _not_utf8(name) from None


def path_argument(value: str) -> str:
    """A path as the shell means it. What begins with `~` is for the methods, which know whose home there is not."""
    return value if value.startswith("~") else os.path.abspath(value)  # noqa: PTH100 - keeps symlinks


def check_params(params: dict[str, Any]) -> None:
    """What the shell hands over may be no text, or too much of it for a frame. Raises InvalidInput or TooLarge."""
    size = 0
    for name, value in params.items():
        try:
            size += len(msgspec.json.encode(value))
        except UnicodeEncodeError:
            raise _not_utf8(name) from None
        if size > FRAME_LIMIT:
            raise TooLarge(FramingError.TOO_LARGE.value, field=name, hint=SEND_LESS_HINT)


def _not_utf8(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is not text in UTF-8", field=name)


def _read_stdin(read: Callable[[], str]) -> str:
    try:
        return read()
    except UnicodeDecodeError:  # its text would repeat the input
        raise InvalidInput("standard input is not text in UTF-8", field="stdin", hint="Write it as UTF-8.") from None
