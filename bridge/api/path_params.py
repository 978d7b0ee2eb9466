"""Paths as a caller may write them."""

from pathlib import Path

from sync.errors import InvalidInput


def absolute_path(text: str, field: str) -> Path:
    """An absolute path, or one from `~` on. Raises InvalidInput."""
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise InvalidInput("a path names a home that is not known here", field=field) from error
    if not path.is_absolute() or "\0" in text:
        raise InvalidInput("a path is absolute, or begins with ~", field=field)
    return path
