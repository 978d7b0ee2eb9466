"""The types of settings that are this program's own, and how they are decoded. Imports no pydantic."""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MASKED: Final = "**********"


class KeepLimit(int):
    """A bound on what is kept, at least 1; -1 keeps everything. 0 is refused, because it would keep nothing."""


class HttpAddress(str):
    """An https:// address without a slash at its end; http:// only for this machine."""

    __slots__ = ()


def decode_path(raw: Any) -> Path:
    """An absolute path. Raises ValueError."""
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


def decode_key(raw: Any) -> str:
    key = raw.strip() if isinstance(raw, str) else ""  # it may be copied with its line end
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ValueError("must be one word of ASCII characters")
    return key


def decode_address(raw: Any) -> HttpAddress:
    if not isinstance(raw, str) or not _is_secure_url(raw):
        raise ValueError("must be https://… (http://… only for this machine)")
    return HttpAddress(raw.rstrip("/"))


def mask_credentials(address: HttpAddress) -> str:
    """The address without its user name and password."""
    parts = urlsplit(address)
    credentials, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{MASKED}@{host}")) if credentials else str(address)


def decode_limit(raw: Any) -> KeepLimit:
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
