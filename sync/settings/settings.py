"""One frozen settings object, the only reader of the environment and of `config.toml`.

The first source that has a value wins: command-line flag, environment (`XIAOBAI_…`), `config.toml` in the data
directory, default. An unknown name or a bad value is an error that names it. Keys and tokens never appear in a message.
What it costs: docs/decisions/015-settings-reader.md.
"""

import base64
import binascii
import json
import os
import re
import socket
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from sync.errors import ServiceKeyRefused, SettingsError
from sync.settings.data_dir import (
    ENV_PREFIX,
    default_data_dir,
    named_data_dir,
    read_config_file,
    resolve_flag_path,
)
from sync.settings.sections import (
    Address,
    DailySettings,
    DocumentSettings,
    LanSettings,
    LessonSettings,
    LoadSettings,
    ModelSettings,
    PrivacySettings,
    RecallSettings,
    RecordSettings,
    RedactionSettings,
    SessionSettings,
    SettingPath,
    SettingsSection,
    SyncSettings,
)
from sync.settings.values import decode_key

NESTING_SEPARATOR: Final = "__"
ADMIN_KEY_VARIABLES: Final = (f"{ENV_PREFIX}ADMIN_KEY", "SUPABASE_SECRET_KEY")  # the first one set; never settings
EMBEDDINGS_KEY_VARIABLE: Final = f"{ENV_PREFIX}EMBEDDINGS_KEY"  # a secret, so it is no setting and in no file
MODEL_KEY_VARIABLE: Final = f"{ENV_PREFIX}MODEL_KEY"  # likewise
EVENTS_FOLDER: Final = "memory-data"  # the folder of seed 002 §3

Key = Annotated[SecretStr, BeforeValidator(lambda raw: raw if isinstance(raw, SecretStr) else decode_key(raw))]


class Settings(BaseSettings):
    """All settings. `Settings.from_sources()` reads and checks them."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=NESTING_SEPARATOR,
    )

    memory_file: Annotated[SettingPath, Field(description="the document")] = Field(
        default_factory=lambda: Path.home() / "xiaobai-ai-memory.md"
    )
    data_dir: Annotated[
        SettingPath,
        Field(
            description="database, session, logs and `config.toml`; private (0700). The default depends on the system"
        ),
    ] = Field(default_factory=default_data_dir)
    events_dir: Annotated[
        SettingPath | None,
        Field(
            description="the log as JSONL files, in a folder for each profile; `memory-data` in `DATA_DIR` by"
            " default. A new folder is private; an existing one keeps its mode, and `doctor` reports if others"
            " may enter it"
        ),
    ] = None
    app_db: Annotated[
        SettingPath | None, Field(description="the Electron app's own SQLite cache, read when it changes")
    ] = None
    app_db_write_back: Annotated[
        bool,
        Field(
            description="write the memory back into row 1 of that cache, only over what was read last; off, because"
            " the app may rewrite it"
        ),
    ] = False
    supabase_url: Annotated[
        Address | None, Field(description="the Supabase project; without it everything works locally")
    ] = None
    supabase_key: Annotated[
        Key | None, Field(description="the project's *publishable* key; a service key is refused")
    ] = None
    device_id: Annotated[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")] | None,
        Field(description="what this device is; derived from the hardware by default"),
    ] = None
    device_name: Annotated[
        str, Field(min_length=1, max_length=128, description="what this device is called; the host name by default")
    ] = Field(default_factory=socket.gethostname)
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        BeforeValidator(lambda raw: raw.upper() if isinstance(raw, str) else raw),
        Field(description="of stderr and the rotating log file, for this program's own lines; logs never hold content"),
    ] = "INFO"
    token_store: Annotated[
        Literal["auto", "file"], Field(description="`auto`: the system's keychain, else a private file")
    ] = "auto"  # noqa: S105 - where tokens are kept, not one of them
    load: LoadSettings = LoadSettings()
    privacy: PrivacySettings = PrivacySettings()
    record: RecordSettings = RecordSettings()
    redaction: RedactionSettings = RedactionSettings()
    sessions: SessionSettings = SessionSettings()
    daily: DailySettings = Field(default_factory=DailySettings)
    lessons: LessonSettings = LessonSettings()
    document: DocumentSettings = DocumentSettings()
    sync: SyncSettings = SyncSettings()
    lan: LanSettings = LanSettings()
    recall: RecallSettings = RecallSettings()
    model: ModelSettings = ModelSettings()

    @classmethod
    def from_sources(cls, **flags: Any) -> "Settings":
        """Read flags, environment and file. Raises SettingsError or ServiceKeyRefused."""
        _check_variables(os.environ, cls)
        try:
            settings = cls(**_resolve_flags(flags, cls))
        except ValidationError as error:
            raise _to_settings_error(error) from None  # the cause would show the value, which may be a key
        if settings.data_dir != default_data_dir() and "home" not in settings.daily.model_fields_set:
            settings = settings.model_copy(update={"daily": DailySettings(home=settings.data_dir)})
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
        if (settings.model.url is None) != (settings.model.model is None):
            missing = "URL" if settings.model.url is None else "MODEL"
            raise SettingsError(
                f"{ENV_PREFIX}MODEL__{missing} is missing: a model's API needs its address and its model"
            )
        return settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - named by the library
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - named by the library
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, the environment, and the `config.toml` that belongs to them; no `.env` file."""
        file = read_config_file(named_data_dir(init_settings().get("data_dir"), os.environ))
        return init_settings, env_settings, InitSettingsSource(settings_cls, file)

    @property
    def jsonl_root(self) -> Path:
        """The folder with one folder of JSONL event files for each profile."""
        return self.events_dir or self.data_dir / EVENTS_FOLDER

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but probably a mistake, as `status` lists it."""
        is_odd = self.supabase_key is not None and key_kind(self.supabase_key.get_secret_value()) == "unknown"
        return ("supabase_key_unknown",) if is_odd else ()

    def to_display(self) -> dict[str, Any]:
        """All settings as JSON values, without the key and without user names and passwords in addresses."""
        return self.model_dump(mode="json")

    def to_archive(self) -> dict[str, Any]:
        """What an archive holds: without the key, and only the number of patterns, which may contain what they hide."""
        values = self.to_display()
        values["supabase_key"] = None
        values["redaction"]["patterns"] = len(self.redaction.patterns)
        return values


# --- where values come from -------------------------------------------------------------------------------------------


def _resolve_flags(flags: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The flags that were given, with absolute paths."""
    return {
        name: resolve_flag_path(value) if _type_of_setting([name], model) is Path else value
        for name, value in flags.items()
        if value is not None
    }


def _check_variables(environment: Mapping[str, str], model: type[BaseModel]) -> None:
    """Refuse variables that name no setting, and lists and tables that are no JSON. Raises SettingsError."""
    for variable, value in environment.items():
        name = variable.upper()
        if not name.startswith(ENV_PREFIX) or name in {EMBEDDINGS_KEY_VARIABLE, MODEL_KEY_VARIABLE}:
            continue
        kind = _type_of_setting(name.removeprefix(ENV_PREFIX).lower().split(NESTING_SEPARATOR), model)
        if kind is None:
            raise SettingsError(f"{variable} is not a setting of xiaobai-memory", hint="Correct or unset it.")
        if _is_table(kind) or get_origin(kind) is tuple:
            _check_json(variable, value, dict if _is_table(kind) else list)


def _type_of_setting(path: list[str], model: type[BaseModel]) -> Any:
    """The type of a setting without its bounds; None if there is no such setting."""
    field = model.model_fields.get(path[0])
    kind: Any = None if field is None else field.annotation
    if len(path) == 1:
        return kind
    return _type_of_setting(path[1:], kind) if _is_table(kind) else None


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SettingsSection)


def _check_json(variable: str, text: str, kind: type) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise SettingsError(f"{variable} cannot be read: a list or a table is written as JSON")


# --- what values may be -----------------------------------------------------------------------------------------------


def _to_settings_error(error: ValidationError) -> SettingsError:
    """The first error under the setting's name, without the value."""
    details = error.errors(include_url=False, include_input=False)[0]
    path = [part for part in details["loc"] if isinstance(part, str)]
    if details["type"] == "extra_forbidden":
        return SettingsError(f"{'.'.join(path)} is not a setting of xiaobai-memory")
    cause = details.get("ctx", {}).get("error")  # what a validator of ours raised
    problem = str(cause) if cause else re.sub("^(Input|String|Value) should", "must", details["msg"])
    return SettingsError(f"{ENV_PREFIX}{NESTING_SEPARATOR.join(path).upper()} ({'.'.join(path)}): {problem}")


def _refuse_own_file(memory_file: Path, data_dir: Path) -> None:
    """Refuse a file of the program's own as the memory file, which is rewritten."""
    target = Path(os.path.realpath(memory_file))
    if target.suffix.lower() != ".md" and target.is_relative_to(os.path.realpath(data_dir)):
        raise SettingsError(
            f"{ENV_PREFIX}MEMORY_FILE names a file of the program's own; in its data directory use *.md"
        )


def _refuse_service_key(key: SecretStr | None) -> None:
    """Refuse a key that bypasses row-level security: it does not belong on a user's machine."""
    if key is not None and is_service_key(key.get_secret_value()):
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


def read_model_key(environment: Mapping[str, str]) -> str | None:
    """The key of a language model's API, if the environment has one."""
    return environment.get(MODEL_KEY_VARIABLE, "").strip() or None


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
