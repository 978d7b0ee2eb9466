"""One frozen settings object; the only reader of the environment and of `config.toml`.

Where a value comes from, the first found wins: command-line flag, environment (`XIAOBAI_…`, nested ones with a double
underscore), `config.toml` in the data directory, default. An unknown name or a bad value is an error that names it:
a setting typed wrongly must not silently do nothing. Keys and tokens never appear in a message.
"""

import base64
import binascii
import json
import os
import re
import socket
import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as NotJsonError

from sync.errors import ServiceKeyRefused, SettingsError
from sync.sections import (
    DailySettings,
    DocumentSettings,
    LoadSettings,
    PrivacySettings,
    RecallSettings,
    RecordSettings,
    RedactionSettings,
    SessionSettings,
    SyncSettings,
)

PREFIX: Final = "XIAOBAI_"
NEST: Final = "__"
ADMIN_KEYS: Final = (f"{PREFIX}ADMIN_KEY", "SUPABASE_SECRET_KEY")  # the first found; never settings
CONFIG_FILE: Final = "config.toml"
THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Settings(BaseSettings):
    """Everything that can be set. Use `Settings.gather()`, which also reads the file and checks the names."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=NEST, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    memory_file: Path = Path("~/xiaobai-ai-memory.md")
    data_dir: Path = Field(default_factory=lambda: user_data_path("xiaobai-memory", appauthor=False))
    events_dir: Path | None = None  # where the JSONL tree lies; none: `memory-data/` in the data directory
    app_db: Path | None = None
    app_db_write_back: bool = False  # the app may rewrite its cache from memory, so it is asked for
    supabase_url: str | None = None
    supabase_key: SecretStr | None = None
    device_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._:-]{1,128}$")
    device_name: str = Field(default_factory=socket.gethostname, min_length=1, max_length=128)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    token_store: Literal["auto", "file"] = "auto"  # noqa: S105 - where tokens are kept, not one of them
    load: LoadSettings = Field(default_factory=LoadSettings)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    record: RecordSettings = Field(default_factory=RecordSettings)
    redaction: RedactionSettings = Field(default_factory=RedactionSettings)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    daily: DailySettings = Field(default_factory=DailySettings)
    document: DocumentSettings = Field(default_factory=DocumentSettings)
    sync: SyncSettings = Field(default_factory=SyncSettings)
    recall: RecallSettings = Field(default_factory=RecallSettings)

    @field_validator("memory_file", "data_dir", "events_dir", "app_db", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if value == "":  # which a path would take for the current folder
            raise ValueError("must not be empty")
        return value

    @field_validator("memory_file", "data_dir", "events_dir", "app_db")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        if "\0" in str(value) or not _is_text(str(value)):
            raise ValueError("must be a path in UTF-8 without NUL")
        try:
            return Path(os.path.abspath(value.expanduser()))  # noqa: PTH100 - keeps symlinks
        except RuntimeError as error:
            raise ValueError("names the home of somebody this machine does not know") from error

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("supabase_url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is None or _is_acceptable(value):
            return value and value.rstrip("/")
        raise ValueError("must be https://… (http://… only for this machine)")

    @field_validator("supabase_key", mode="before")
    @classmethod
    def _one_word(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        key = value.strip()  # a line copied with its end
        if not key.isascii() or not key.isprintable() or not key or " " in key:
            raise ValueError("must be one word of ASCII characters")
        return key

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _ConfigFile(settings_cls)

    @classmethod
    def gather(cls, **flags: Any) -> "Settings":
        """Read flags, environment and file. Raises SettingsError or ServiceKeyRefused."""
        _refuse_unknown_variables(os.environ, cls)
        given = {name: value for name, value in flags.items() if value is not None}
        try:
            settings = cls(**given)
        except ValidationError as error:
            raise _told(error) from None  # the cause would show what was typed, which may be a key
        except NotJsonError as error:
            raise _not_json(error, os.environ) from None
        _refuse_service_key(settings.supabase_key)
        _refuse_own_file(settings.memory_file, settings.data_dir)
        if (settings.supabase_url is None) != (settings.supabase_key is None):
            missing = "SUPABASE_KEY" if settings.supabase_key is None else "SUPABASE_URL"
            raise SettingsError(
                f"{PREFIX}{missing} is missing: the address and the key of the Supabase project go together"
            )
        return settings


class _ConfigFile(PydanticBaseSettingsSource):
    """`config.toml` in whatever data directory flags and environment have settled on."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError((field, field_name))  # this source answers as a whole

    def __call__(self) -> dict[str, Any]:
        default = user_data_path("xiaobai-memory", appauthor=False)
        try:
            path = Path(self.current_state.get("data_dir") or default).expanduser() / CONFIG_FILE
        except (RuntimeError, ValueError):
            return {}  # a folder that cannot be; the check of `data_dir` says so
        if "\0" in str(path):
            return {}
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            problem = error.reason if isinstance(error, UnicodeDecodeError) else error
            raise SettingsError(f"{path} cannot be read: {problem}") from None  # the cause holds the whole file


def _refuse_unknown_variables(environment: Mapping[str, str], model: type[BaseModel]) -> None:
    for variable in environment:
        if variable.upper().startswith(PREFIX) and not _is_known(variable[len(PREFIX) :].lower().split(NEST), model):
            raise SettingsError(f"{variable} is not a setting of xiaobai-memory", hint="Correct or unset it.")


def _is_known(path: list[str], model: type[BaseModel]) -> bool:
    if path[0] not in model.model_fields:
        return False
    inner = model.model_fields[path[0]].annotation
    if len(path) == 1:
        return True
    return isinstance(inner, type) and issubclass(inner, BaseModel) and _is_known(path[1:], inner)


def _told(error: ValidationError) -> SettingsError:
    first = error.errors(include_input=False, include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        return SettingsError(f"{'.'.join(path)} is not a setting of xiaobai-memory")
    return SettingsError(f"{PREFIX}{NEST.join(path).upper()} ({'.'.join(path)}): {first['msg']}")


def _not_json(error: NotJsonError, environment: Mapping[str, str]) -> SettingsError:
    """A list or a table in one variable is JSON; the library says which field, the environment which variable."""
    found = re.search(r'field "(\w+)"', str(error))
    field = (PREFIX + found.group(1)).upper() if found else PREFIX
    names = [name for name in environment if name.upper() == field or name.upper().startswith(field + NEST)]
    return SettingsError(f"{', '.join(sorted(names)) or field} cannot be read: a list or a table is written as JSON")


def _is_acceptable(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in THIS_MACHINE))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # bytes of a name that is not UTF-8
        return False
    return True


def _refuse_own_file(memory_file: Path, data_dir: Path) -> None:
    """The memory file is rewritten; a file of the program's own would not survive that."""
    target = Path(os.path.realpath(memory_file))
    if target.suffix.lower() != ".md" and target.is_relative_to(os.path.realpath(data_dir)):
        raise SettingsError(f"{PREFIX}MEMORY_FILE names a file of the program's own; in its data directory use *.md")


def _refuse_service_key(key: SecretStr | None) -> None:
    """Decided contradiction 3: a key that passes row-level security by has no business on a user's machine."""
    if key is not None and is_service_key(key.get_secret_value()):
        raise ServiceKeyRefused(f"{PREFIX}SUPABASE_KEY holds a service key")


def take_admin_key(environment: MutableMapping[str, str]) -> str:
    """The project's secret key, for the `admin` commands alone. Raises SettingsError where there is none.

    It is taken out of the environment: nothing this process starts inherits it, and a sidecar that is given the same
    variable refuses to start with an unknown setting.
    """
    found = [key for name in ADMIN_KEYS if (key := environment.pop(name, "").strip())]
    if not found:
        raise SettingsError(
            f"no secret key: {ADMIN_KEYS[0]} and {ADMIN_KEYS[1]} are not set",
            hint=f"Set {ADMIN_KEYS[0]} in the environment of this one command; it belongs in no file.",
        )
    if not is_service_key(found[0]):
        raise SettingsError(f"{ADMIN_KEYS[0]} holds no secret key", hint="Use the project's sb_secret_… key.")
    return found[0]


def is_service_key(key: str) -> bool:
    """Whether a key is `sb_secret_…`, or a legacy JWT whose role bypasses row-level security."""
    if key.startswith("sb_secret_"):
        return True
    parts = key.split(".")
    if len(parts) != 3:
        return False
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(claims, dict) and claims.get("role") in {"service_role", "supabase_admin"}
