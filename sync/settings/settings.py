"""One frozen settings object, the only reader of the environment and of `config.toml`.

The first source that has a value wins: command-line flag, environment (`XIAOBAI_…`), `config.toml` in the data
directory, default. An unknown name or a bad value is an error that names it. Keys and tokens never appear in a message.
Why msgspec and not pydantic-settings: docs/decisions/015-settings-reader.md.
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
from typing import Annotated, Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Meta, field
from msgspec.structs import replace
from platformdirs import user_data_path

from sync.errors import ServiceKeyRefused, SettingsError
from sync.settings.sections import (
    DailySettings,
    DocumentSettings,
    LoadSettings,
    PrivacySettings,
    RecallSettings,
    RecordSettings,
    RedactionSettings,
    SessionSettings,
    SettingsSection,
    SyncSettings,
)
from sync.settings.values import MASKED, HttpAddress, Secret, decode_value, is_relative_path

ENV_PREFIX: Final = "XIAOBAI_"
NESTING_SEPARATOR: Final = "__"
ADMIN_KEY_VARIABLES: Final = (f"{ENV_PREFIX}ADMIN_KEY", "SUPABASE_SECRET_KEY")  # the first one set; never settings
EMBEDDINGS_KEY_VARIABLE: Final = f"{ENV_PREFIX}EMBEDDINGS_KEY"  # a secret, so it is no setting and in no file
CONFIG_FILE: Final = "config.toml"
EVENTS_FOLDER: Final = "memory-data"  # the folder of seed 002 §3
VALIDATION_MESSAGE: Final = re.compile(r"(?s)(.*?)(?: - at `\$\.?(.*)`)?")  # its message, and the path of the value


def default_data_dir() -> Path:
    """The system's folder for application data."""
    return user_data_path("xiaobai-memory", appauthor=False)


class Settings(SettingsSection, frozen=True):
    """All settings. `Settings.from_sources()` reads and checks them."""

    memory_file: Annotated[Path, Meta(description="the document")] = field(
        default_factory=lambda: Path.home() / "xiaobai-ai-memory.md"
    )
    data_dir: Annotated[
        Path,
        Meta(
            description="database, session, logs and `config.toml`; private (0700). The default depends on the system"
        ),
    ] = field(default_factory=default_data_dir)
    events_dir: Annotated[
        Path | None,
        Meta(
            description="the log as JSONL files, in a folder for each profile; `memory-data` in `DATA_DIR` by"
            " default. A new folder is private; an existing one keeps its mode, and `doctor` reports if others"
            " may enter it"
        ),
    ] = None
    app_db: Annotated[Path | None, Meta(description="the Electron app's own SQLite cache, read when it changes")] = None
    app_db_write_back: Annotated[
        bool,
        Meta(
            description="write the memory back into row 1 of that cache, only over what was read last; off, because"
            " the app may rewrite it"
        ),
    ] = False
    supabase_url: Annotated[
        HttpAddress | None, Meta(description="the Supabase project; without it everything works locally")
    ] = None
    supabase_key: Annotated[
        Secret | None, Meta(description="the project's *publishable* key; a service key is refused")
    ] = None
    device_id: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}\Z")] | None,
        Meta(description="what this device is; derived from the hardware by default"),
    ] = None
    device_name: Annotated[
        str, Meta(min_length=1, max_length=128, description="what this device is called; the host name by default")
    ] = field(default_factory=socket.gethostname)
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        Meta(description="of stderr and the rotating log file, for this program's own lines; logs never hold content"),
    ] = "INFO"
    token_store: Annotated[
        Literal["auto", "file"], Meta(description="`auto`: the system's keychain, else a private file")
    ] = "auto"  # noqa: S105 - where tokens are kept, not one of them
    load: LoadSettings = LoadSettings()
    privacy: PrivacySettings = PrivacySettings()
    record: RecordSettings = RecordSettings()
    redaction: RedactionSettings = RedactionSettings()
    sessions: SessionSettings = SessionSettings()
    daily: DailySettings = field(default_factory=DailySettings)
    document: DocumentSettings = DocumentSettings()
    sync: SyncSettings = SyncSettings()
    recall: RecallSettings = RecallSettings()

    @classmethod
    def from_sources(cls, **flags: Any) -> "Settings":
        """Read flags, environment and file. Raises SettingsError or ServiceKeyRefused."""
        flags = {name: value for name, value in flags.items() if value is not None}
        values = _merge_trees(_read_environment(os.environ, cls), _resolve_flags(flags))
        values = _merge_trees(_read_config_file(values.get("data_dir")), values)
        if isinstance(level := values.get("log_level"), str):
            values["log_level"] = level.upper()
        try:
            settings = msgspec.convert(values, cls, strict=False, dec_hook=decode_value)
        except msgspec.ValidationError as error:
            raise _to_settings_error(error, cls) from None  # the cause would show the value, which may be a key
        if settings.data_dir != default_data_dir() and "home" not in values.get("daily", {}):
            settings = replace(settings, daily=replace(settings.daily, home=settings.data_dir))
        _refuse_service_key(settings.supabase_key)
        _refuse_own_file(settings.memory_file, settings.data_dir)
        if (settings.supabase_url is None) != (settings.supabase_key is None):
            missing = "SUPABASE_KEY" if settings.supabase_key is None else "SUPABASE_URL"
            raise SettingsError(
                f"{ENV_PREFIX}{missing} is missing: the address and the key of the Supabase project go together"
            )
        recall = settings.recall
        if recall.embeddings == "api" and (recall.embeddings_url is None or recall.embeddings_model is None):
            missing = "EMBEDDINGS_URL" if recall.embeddings_url is None else "EMBEDDINGS_MODEL"
            raise SettingsError(
                f"{ENV_PREFIX}RECALL__{missing} is missing: an embeddings API needs its address and its model"
            )
        return settings

    @property
    def jsonl_root(self) -> Path:
        """The folder with one folder of JSONL event files for each profile."""
        return self.events_dir or self.data_dir / EVENTS_FOLDER

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but probably a mistake, as `status` lists it."""
        is_odd = self.supabase_key is not None and key_kind(self.supabase_key.reveal()) == "unknown"
        return ("supabase_key_unknown",) if is_odd else ()

    def to_display(self) -> dict[str, Any]:
        """All settings as JSON values, without the key and without user names and passwords in addresses."""
        values: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_display_value)
        return values


def _display_value(value: object) -> str:
    if not isinstance(value, HttpAddress):
        return str(value)
    parts = urlsplit(value)
    credentials, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{MASKED}@{host}")) if credentials else str(value)


# --- where values come from -------------------------------------------------------------------------------------------


def _read_environment(environment: Mapping[str, str], model: type[SettingsSection]) -> dict[str, Any]:
    """The variables' values, nested like the groups. Raises SettingsError."""
    values: dict[str, Any] = {}
    for variable in sorted(environment, key=str.upper):  # a whole table comes before the values that change it
        if not variable.upper().startswith(ENV_PREFIX) or variable.upper() == EMBEDDINGS_KEY_VARIABLE:
            continue
        path = variable[len(ENV_PREFIX) :].lower().split(NESTING_SEPARATOR)
        kind = _type_of_setting(path, model)
        if kind is None:
            raise SettingsError(f"{variable} is not a setting of xiaobai-memory", hint="Correct or unset it.")
        value: Any = environment[variable]
        if _is_table(kind) or get_origin(kind) is tuple:
            value = _parse_json(variable, value)
        for name in reversed(path):
            value = {name: value}
        values = _merge_trees(values, value)
    return values


def _resolve_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as values. A relative path is relative to the shell's folder."""
    paths = {name for name, value in flags.items() if isinstance(value, str) and is_relative_path(value)}
    paths &= {field.name for field in msgspec.structs.fields(Settings) if _plain_type(field.type) is Path}
    return {name: os.path.abspath(value) if name in paths else value for name, value in flags.items()}  # noqa: PTH100 - keeps symlinks


def _read_config_file(data_dir: object) -> dict[str, Any]:
    """The values of `config.toml` in the data directory that flags and environment name."""
    try:
        path = Path(str(data_dir or default_data_dir())).expanduser() / CONFIG_FILE
    except RuntimeError:
        return {}  # an impossible folder; the check of `data_dir` reports it
    if "\0" in str(path):
        return {}
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{path} is no ordinary file")  # reading a pipe would wait for a writer
        return tomllib.loads(path.read_text("utf-8-sig"))  # editors on Windows may add a byte order mark
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        there = next(parent for parent in path.parents if parent.exists())
        raise SettingsError(
            f"{ENV_PREFIX}DATA_DIR: {there} is a file, not a folder", hint=f"Set {ENV_PREFIX}DATA_DIR to a folder."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problem = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise SettingsError(f"{path} cannot be read: {problem}") from None  # the cause holds the whole file
    except RecursionError:
        raise SettingsError(f"{path} cannot be read: it is nested too deeply") from None


def _merge_trees(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees as one; if both have a value, `above` wins."""
    merged = dict(below)
    for name, value in above.items():
        lower = merged.get(name)
        merged[name] = _merge_trees(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def _type_of_setting(path: list[str], model: type[SettingsSection]) -> Any:
    """The type of a setting without its bounds; None if there is no such setting."""
    fields = msgspec.structs.fields(model)
    kind = next((_plain_type(field.type) for field in fields if field.name == path[0]), None)
    if len(path) == 1 or kind is None:
        return kind
    return _type_of_setting(path[1:], kind) if _is_table(kind) else None


def _plain_type(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SettingsSection)


def _parse_json(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise SettingsError(f"{variable} cannot be read: a list or a table is written as JSON") from None


# --- what values may be -----------------------------------------------------------------------------------------------


def _to_settings_error(error: msgspec.ValidationError, model: type[SettingsSection]) -> SettingsError:
    """The error under the setting's name, without the value."""
    parts = VALIDATION_MESSAGE.fullmatch(str(error))
    problem, place = (parts[1], parts[2] or "") if parts else (str(error), "")
    path = re.sub(r"\[.*", "", place).split(".") if place else []
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", problem)
    if unknown:
        return SettingsError(f"{'.'.join([*path, unknown[1]])} is not a setting of xiaobai-memory")
    if problem.startswith("Invalid enum value"):  # which shows the value
        problem = f"must be one of {', '.join(map(str, get_args(_type_of_setting(path, model))))}"
    return SettingsError(f"{ENV_PREFIX}{NESTING_SEPARATOR.join(path).upper()} ({'.'.join(path)}): {problem}")


def _refuse_own_file(memory_file: Path, data_dir: Path) -> None:
    """Refuse a file of the program's own as the memory file, which is rewritten."""
    target = Path(os.path.realpath(memory_file))
    if target.suffix.lower() != ".md" and target.is_relative_to(os.path.realpath(data_dir)):
        raise SettingsError(
            f"{ENV_PREFIX}MEMORY_FILE names a file of the program's own; in its data directory use *.md"
        )


def _refuse_service_key(key: Secret | None) -> None:
    """Refuse a key that bypasses row-level security: it does not belong on a user's machine."""
    if key is not None and is_service_key(key.reveal()):
        raise ServiceKeyRefused(f"{ENV_PREFIX}SUPABASE_KEY holds a service key")


def pop_admin_key(environment: MutableMapping[str, str]) -> str:
    """The project's secret key, for the `admin` commands only. Raises SettingsError if there is none.

    It is removed from the environment, so child processes do not inherit it. A sidecar with the same variable refuses
    to start.
    """
    keys = [key for name in ADMIN_KEY_VARIABLES if (key := environment.pop(name, "").strip())]
    if not keys:
        raise SettingsError(
            f"no secret key: {ADMIN_KEY_VARIABLES[0]} and {ADMIN_KEY_VARIABLES[1]} are not set",
            hint=f"Set {ADMIN_KEY_VARIABLES[0]} in the environment of this one command; it belongs in no file.",
        )
    if not is_service_key(keys[0]):
        raise SettingsError(f"{ADMIN_KEY_VARIABLES[0]} holds no secret key", hint="Use the project's sb_secret_… key.")
    return keys[0]


def read_embeddings_key(environment: Mapping[str, str]) -> str | None:
    """The key of an embeddings API, if the environment has one."""
    return environment.get(EMBEDDINGS_KEY_VARIABLE, "").strip() or None


def key_kind(key: str) -> Literal["service", "publishable", "anon", "unknown"]:
    """The kind of a Supabase key: by its prefix `sb_…`; a legacy key is a JWT with a role."""
    if key.startswith("sb_publishable_"):
        return "publishable"
    if key.startswith("sb_secret_"):
        return "service"
    parts = key.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) if len(parts) == 3 else {}
    except (binascii.Error, ValueError):
        return "unknown"
    role = claims.get("role") if isinstance(claims, dict) else None
    return "anon" if role == "anon" else "service" if role in {"service_role", "supabase_admin"} else "unknown"


def is_service_key(key: str) -> bool:
    """Whether a key bypasses row-level security."""
    return key_kind(key) == "service"
