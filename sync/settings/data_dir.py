"""The data directory, the memory file and the `config.toml`. Imports no pydantic: most processes need no more."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from platformdirs import user_data_path

from sync.errors import SettingsError
from sync.settings.values import decode_path, is_relative_path

ENV_PREFIX: Final = "XIAOBAI_"
CONFIG_FILE: Final = "config.toml"
DATA_DIR_VARIABLE: Final = f"{ENV_PREFIX}DATA_DIR"
EMBEDDINGS_KEY_VARIABLE: Final = f"{ENV_PREFIX}EMBEDDINGS_KEY"  # a secret, so it is no setting and in no file
MODEL_KEY_VARIABLE: Final = f"{ENV_PREFIX}MODEL_KEY"  # likewise
SECRET_VARIABLES: Final = frozenset({EMBEDDINGS_KEY_VARIABLE, MODEL_KEY_VARIABLE})
PATHS: Final = ("memory_file", "data_dir")  # the settings that are read without pydantic if no other is set


def default_data_dir() -> Path:
    """The system's folder for application data."""
    return user_data_path("xiaobai-memory", appauthor=False)


def find_data_dir(flag: object, environment: Mapping[str, str]) -> Path:
    """`Settings.data_dir` without reading the other settings; None: no flag. Raises SettingsError."""
    named = named_data_dir(None if flag is None else resolve_flag_path(flag), environment)
    if named is None:
        named = read_config_file(None).get("data_dir", default_data_dir())
    return _decode_path("data_dir", named)


def read_paths(flags: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The values of `PATHS` that are set; None if any other setting is. Raises SettingsError."""
    names = {name.upper(): value for name, value in environment.items()}
    in_environment = {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in names.items()
        if name.startswith(ENV_PREFIX) and name not in SECRET_VARIABLES
    }
    given = {name: resolve_flag_path(value) for name, value in flags.items()}
    values = read_config_file(named_data_dir(given.get("data_dir"), environment)) | in_environment | given
    if not values.keys() <= set(PATHS):
        return None
    return {name: _decode_path(name, values[name]) for name in PATHS if name in values}


def _decode_path(name: str, value: object) -> Path:
    try:
        return decode_path(value)
    except ValueError as error:
        raise SettingsError(f"{ENV_PREFIX}{name.upper()} ({name}): {error}") from None


def named_data_dir(flag: object, environment: Mapping[str, str]) -> object:
    """What the flag or else the environment names; None if neither does."""
    if flag is not None:
        return flag
    return next((value for name, value in environment.items() if name.upper() == DATA_DIR_VARIABLE), None)


def resolve_flag_path(value: Any) -> Any:
    """A flag's value; a relative path is relative to the shell's folder."""
    return os.path.abspath(value) if isinstance(value, str) and is_relative_path(value) else value  # noqa: PTH100 - keeps symlinks


def read_config_file(data_dir: object) -> dict[str, Any]:
    """The values of `config.toml` in this data directory; None: the default one. Raises SettingsError."""
    try:
        path = Path(str(data_dir or default_data_dir())).expanduser() / CONFIG_FILE
    except RuntimeError:
        return {}  # an impossible folder; the check of `data_dir` reports it
    if "\0" in str(path):
        return {}
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{path} is no ordinary file")  # reading a pipe would wait for a writer
        _refuse_other_owner(path.parent)
        _refuse_other_owner(path)
        text = path.read_text("utf-8-sig")  # editors on Windows may add a byte order mark
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        there = next(parent for parent in path.parents if parent.exists())
        raise SettingsError(
            f"{ENV_PREFIX}DATA_DIR: {there} is a file, not a folder", hint=f"Set {ENV_PREFIX}DATA_DIR to a folder."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        problem = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise SettingsError(f"{path} cannot be read: {problem}") from None  # the cause holds the whole file
    return _parse_config(path, text)


def _refuse_other_owner(path: Path) -> None:
    """As ssh does: a file of another user decides nothing. Root's may."""
    if sys.platform != "win32" and path.exists() and path.stat().st_uid not in {0, os.getuid()}:
        hint = f"See what it holds and take it over (chown), or set {DATA_DIR_VARIABLE} to a folder of your own."
        raise SettingsError(f"{path} belongs to another user of this machine", hint=hint)


def _parse_config(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most have no such file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None  # the cause holds the whole file
    except RecursionError:
        raise SettingsError(f"{path} cannot be read: it is nested too deeply") from None
