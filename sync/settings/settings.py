"""One frozen settings object; the only reader of the environment and of `config.toml`.

Where a value comes from, the first found wins: command-line flag, environment (`XIAOBAI_…`, nested ones with a double
underscore), `config.toml` in the data directory, default. An unknown name or a bad value is an error that names it:
a setting typed wrongly must not silently do nothing. Keys and tokens never appear in a message.

msgspec, which the wire needs anyway, reads them: pydantic-settings took 10 MB of the 60 that an idle sidecar may have,
and 100 ms of every command.
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
    HttpAddress,
    KeepLimit,
    LoadSettings,
    PrivacySettings,
    RecallSettings,
    RecordSettings,
    RedactionSettings,
    SessionSettings,
    SettingsSection,
    SyncSettings,
)

ENV_PREFIX: Final = "XIAOBAI_"
NESTING_SEPARATOR: Final = "__"
ADMIN_KEY_VARIABLES: Final = (f"{ENV_PREFIX}ADMIN_KEY", "SUPABASE_SECRET_KEY")  # the first found; never settings
EMBEDDINGS_KEY_VARIABLE: Final = (
    f"{ENV_PREFIX}EMBEDDINGS_KEY"  # of an embeddings API; a secret, so no setting and in no file
)
CONFIG_FILE: Final = "config.toml"
EVENTS_FOLDER: Final = "memory-data"  # the folder of seed 002 §3
LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MASKED: Final = "**********"
VALIDATION_MESSAGE: Final = re.compile(r"(?s)(.*?)(?: - at `\$\.?(.*)`)?")  # what msgspec says, and of which value


class Secret:
    """A text that shows itself to nobody who prints it."""

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


def default_data_dir() -> Path:
    """The system's place for application data."""
    return user_data_path("xiaobai-memory", appauthor=False)


class Settings(SettingsSection, frozen=True):
    """Everything that can be set. Use `Settings.gather()`, which reads all sources and checks what they say."""

    memory_file: Path = field(default_factory=lambda: Path.home() / "xiaobai-ai-memory.md")
    data_dir: Path = field(default_factory=default_data_dir)
    events_dir: Path | None = None  # where the JSONL tree lies; none: `memory-data/` in the data directory
    app_db: Path | None = None
    app_db_write_back: bool = False  # the app may rewrite its cache from memory, so it is asked for
    supabase_url: HttpAddress | None = None
    supabase_key: Secret | None = None
    device_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}\Z")] | None = None
    device_name: Annotated[str, Meta(min_length=1, max_length=128)] = field(default_factory=socket.gethostname)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    token_store: Literal["auto", "file"] = "auto"  # noqa: S105 - where tokens are kept, not one of them
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
        given = _merge_trees(_read_environment(os.environ, cls), _resolve_flags(flags))
        given = _merge_trees(_read_config_file(given.get("data_dir")), given)
        if isinstance(level := given.get("log_level"), str):
            given["log_level"] = level.upper()
        try:
            settings = msgspec.convert(given, cls, strict=False, dec_hook=_decode_value)
        except msgspec.ValidationError as error:
            raise _to_settings_error(error, cls) from None  # the cause would show what was typed, which may be a key
        if settings.data_dir != default_data_dir() and "home" not in given.get("daily", {}):
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
                f"{ENV_PREFIX}RECALL__{missing} is missing: an API is asked by its address and its model"
            )
        return settings

    @property
    def jsonl_root(self) -> Path:
        """Below it lies a folder for each profile, with the JSONL files of its events."""
        return self.events_dir or self.data_dir / EVENTS_FOLDER

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and probably a mistake, as `status` lists it."""
        is_odd = self.supabase_key is not None and key_kind(self.supabase_key.reveal()) == "unknown"
        return ("supabase_key_unknown",) if is_odd else ()

    def to_display(self) -> dict[str, Any]:
        """All of them as JSON values, the key hidden, and in an address the name and password that open it."""
        told: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_display_value)
        return told


def _display_value(value: object) -> str:
    if not isinstance(value, HttpAddress):
        return str(value)
    parts = urlsplit(value)
    credentials, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{MASKED}@{host}")) if credentials else str(value)


# --- where values come from -------------------------------------------------------------------------------------------


def _read_environment(environment: Mapping[str, str], model: type[SettingsSection]) -> dict[str, Any]:
    """What the variables say, nested as the groups are. Raises SettingsError."""
    found: dict[str, Any] = {}
    for variable in sorted(environment, key=str.upper):  # a table as a whole comes before the values that change it
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
        found = _merge_trees(found, value)
    return found


def _resolve_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as values. A relative path is that of the shell in which it was typed."""
    paths = {name for name, value in flags.items() if isinstance(value, str) and _is_relative(value)}
    paths &= {one.name for one in msgspec.structs.fields(Settings) if one.type is Path}
    return {name: os.path.abspath(value) if name in paths else value for name, value in flags.items()}  # noqa: PTH100 - keeps symlinks


def _read_config_file(data_dir: object) -> dict[str, Any]:
    """What `config.toml` says, in whatever data directory flags and environment have settled on."""
    try:
        path = Path(str(data_dir or default_data_dir())).expanduser() / CONFIG_FILE
    except RuntimeError:
        return {}  # a folder that cannot be; the check of `data_dir` says so
    if "\0" in str(path):
        return {}
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{path} is no ordinary file")  # a pipe would wait for somebody who writes into it
        return tomllib.loads(path.read_text("utf-8-sig"))  # an editor on Windows may begin it with a byte order mark
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        there = next(one for one in path.parents if one.exists())
        raise SettingsError(
            f"{ENV_PREFIX}DATA_DIR: {there} is a file, not a folder", hint=f"Set {ENV_PREFIX}DATA_DIR to a folder."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problem = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise SettingsError(f"{path} cannot be read: {problem}") from None  # the cause holds the whole file
    except RecursionError:
        raise SettingsError(f"{path} cannot be read: it is nested too deeply") from None


def _merge_trees(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees as one; where both have a value the upper one counts."""
    found = dict(below)
    for name, value in above.items():
        known = found.get(name)
        found[name] = _merge_trees(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found


def _type_of_setting(path: list[str], model: type[SettingsSection]) -> Any:
    """The type of a setting; None where there is no such."""
    kind = next((one.type for one in msgspec.structs.fields(model) if one.name == path[0]), None)
    if len(path) == 1 or kind is None:
        return kind
    return _type_of_setting(path[1:], kind) if _is_table(kind) else None


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SettingsSection)


def _parse_json(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise SettingsError(f"{variable} cannot be read: a list or a table is written as JSON") from None


# --- what values may be -----------------------------------------------------------------------------------------------


def _decode_value(kind: type, raw: Any) -> Any:
    """The values that are no plain numbers, words or tables. Raises ValueError."""
    if kind is Path:
        return _decode_path(raw)
    if kind is Secret:
        return _decode_key(raw)
    return _decode_address(raw) if kind is HttpAddress else _decode_limit(raw)


def _decode_path(raw: Any) -> Path:
    if not isinstance(raw, str | Path) or raw == "":  # which a path would take for the current folder
        raise ValueError("must be a path" if raw != "" else "must not be empty")
    if "\0" in str(raw) or not _is_utf8(str(raw)):
        raise ValueError("must be a path in UTF-8 without NUL")
    if _is_relative(str(raw)):  # an app starts the program anywhere
        raise ValueError("must be an absolute path, or begin with ~")
    try:
        return Path(os.path.abspath(Path(raw).expanduser()))  # noqa: PTH100 - keeps symlinks
    except RuntimeError:
        raise ValueError("names the home of somebody this machine does not know") from None


def _is_relative(path: str) -> bool:
    return bool(path) and not Path(path).is_absolute() and not path.startswith("~")


def _decode_key(raw: Any) -> Secret:
    key = raw.strip() if isinstance(raw, str) else ""  # a line copied with its end
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


def _to_settings_error(error: msgspec.ValidationError, model: type[SettingsSection]) -> SettingsError:
    """What is wrong, under the name of the setting; never what was typed."""
    parts = VALIDATION_MESSAGE.fullmatch(str(error))
    problem, place = (parts[1], parts[2] or "") if parts else (str(error), "")
    path = re.sub(r"\[.*", "", place).split(".") if place else []
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", problem)
    if unknown:
        return SettingsError(f"{'.'.join([*path, unknown[1]])} is not a setting of xiaobai-memory")
    if problem.startswith("Invalid enum value"):  # and the value
        problem = f"must be one of {', '.join(map(str, get_args(_type_of_setting(path, model))))}"
    return SettingsError(f"{ENV_PREFIX}{NESTING_SEPARATOR.join(path).upper()} ({'.'.join(path)}): {problem}")


def _is_secure_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port  # a port is looked at when it is asked for
    except ValueError:
        return False
    return bool(host) and port != 0 and (parts.scheme == "https" or (parts.scheme == "http" and host in LOCAL_HOSTS))


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # bytes of a name that is not UTF-8
        return False
    return True


def _refuse_own_file(memory_file: Path, data_dir: Path) -> None:
    """The memory file is rewritten; a file of the program's own would not survive that."""
    target = Path(os.path.realpath(memory_file))
    if target.suffix.lower() != ".md" and target.is_relative_to(os.path.realpath(data_dir)):
        raise SettingsError(
            f"{ENV_PREFIX}MEMORY_FILE names a file of the program's own; in its data directory use *.md"
        )


def _refuse_service_key(key: Secret | None) -> None:
    """Decided contradiction 3: a key that passes row-level security by has no business on a user's machine."""
    if key is not None and is_service_key(key.reveal()):
        raise ServiceKeyRefused(f"{ENV_PREFIX}SUPABASE_KEY holds a service key")


def pop_admin_key(environment: MutableMapping[str, str]) -> str:
    """The project's secret key, for the `admin` commands alone. Raises SettingsError where there is none.

    It is taken out of the environment: nothing this process starts inherits it, and a sidecar that is given the same
    variable refuses to start with an unknown setting.
    """
    found = [key for name in ADMIN_KEY_VARIABLES if (key := environment.pop(name, "").strip())]
    if not found:
        raise SettingsError(
            f"no secret key: {ADMIN_KEY_VARIABLES[0]} and {ADMIN_KEY_VARIABLES[1]} are not set",
            hint=f"Set {ADMIN_KEY_VARIABLES[0]} in the environment of this one command; it belongs in no file.",
        )
    if not is_service_key(found[0]):
        raise SettingsError(f"{ADMIN_KEY_VARIABLES[0]} holds no secret key", hint="Use the project's sb_secret_… key.")
    return found[0]


def read_embeddings_key(environment: Mapping[str, str]) -> str | None:
    """The key of an embeddings API, where the environment has one."""
    return environment.get(EMBEDDINGS_KEY_VARIABLE, "").strip() or None


def key_kind(key: str) -> Literal["service", "publishable", "anon", "unknown"]:
    """What a Supabase key is: `sb_…` says it itself, a legacy key is a JWT with a role."""
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
