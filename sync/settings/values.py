"""The types of settings that msgspec does not know, and how they are decoded."""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MASKED: Final = "**********"


class KeepLimit(int):
    """A bound on what is kept, at least 1; -1 keeps everything. 0 is refused, because it would keep nothing."""


class HttpAddress(str):
    """An https:// address without a slash at its end; http:// only for this machine."""

    __slots__ = ()


class Secret:
    """A text that does not appear when it is printed."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return MASKED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def decode_value(kind: type, raw: Any) -> Any:
    """Decode the types that msgspec does not know. Raises ValueError."""
    if kind is Path:
        return _decode_path(raw)
    if kind is Secret:
        return _decode_key(raw)
    return _decode_address(raw) if kind is HttpAddress else _decode_limit(raw)


def _decode_path(raw: Any) -> Path:
    if not isinstance(raw, str | Path) or raw == "":  # Path("") is the current folder
        raise ValueError("must be a path" if raw != "" else "must not be empty")
    if "\0" in str(raw) or not _is_utf8(str(raw)):
        raise ValueError("must be a path in UTF-8 without NUL")
    if is_relative_path(str(raw)):  # an app may start the program in any folder
        raise ValueError("must be an absolute path, or begin with ~")
    try:
        return Path(os.path.abspath(Path(raw).expanduser()))  # noqa: PTH100 - keeps symlinks
    except RuntimeError:
        raise ValueError("names the home of a user that this machine does not know") from None


def is_relative_path(path: str) -> bool:
    return bool(path) and not Path(path).is_absolute() and not path.startswith("~")


def _decode_key(raw: Any) -> Secret:
    key = raw.strip() if isinstance(raw, str) else ""  # it may be copied with its line end
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ValueError("must be one word of ASCII characters")
    return Secret(key)


def _decode_address(raw: Any) -> HttpAddress:
    if not isinstance(raw, str) or not _is_secure_url(raw):
        raise ValueError("must be https://… (http://… only for this machine)")
    return HttpAddress(raw.rstrip("/"))


def _decode_limit(raw: Any) -> KeepLimit:
    try:
        bound = KeepLimit(raw)
    except (TypeError, ValueError):
        bound = KeepLimit(0)
    if isinstance(raw, float | bool) or bound == 0 or bound < -1:
        raise ValueError("must be -1 (for ever) or a whole number from 1 on")
    return bound


def _is_secure_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port  # reading the port checks it
    except ValueError:
        return False
    return bool(host) and port != 0 and (parts.scheme == "https" or (parts.scheme == "http" and host in LOCAL_HOSTS))


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # undecodable bytes of a file name
        return False
    return True
