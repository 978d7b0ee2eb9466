"""All settings as one frozen object.

The first source that has a value wins: command-line flag, environment (`XIAOBAI_…`), `config.toml` in the data
directory, default. An unknown name or a bad value is an error that names it. Keys and tokens never appear in a message.
pydantic is imported only for a value to check: docs/decisions/015-settings-reader.md.
"""

import base64
import binascii
import json
import os
import socket
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from sync.errors import ServiceKeyRefused, SettingsError
from sync.settings.data_dir import (
    EMBEDDINGS_KEY_VARIABLE,
    ENV_PREFIX,
    MODEL_KEY_VARIABLE,
    default_data_dir,
    read_paths,
)
from sync.settings.sections import (
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
    SettingsSection,
    SyncSettings,
)
from sync.settings.values import HttpAddress, KeepLimit, mask_credentials

if TYPE_CHECKING:
    from pydantic import SecretStr

ADMIN_KEY_VARIABLES: Final = (f"{ENV_PREFIX}ADMIN_KEY", "SUPABASE_SECRET_KEY")  # the first one set; never settings
EVENTS_FOLDER: Final = "memory-data"  # of the JSONL files
LESSONS_FOLDER: Final = "lessons"  # in the data directory, a folder for each profile


class Settings(msgspec.Struct, frozen=True):
    """All settings. `Settings.from_sources()` reads and checks them."""

    memory_file: Annotated[Path, Meta(description="the document")] = msgspec.field(
        default_factory=lambda: Path.home() / "xiaobai-ai-memory.md"
    )
    data_dir: Annotated[
        Path,
        Meta(
            description="database, session, logs and `config.toml`; private (0700). The default depends on the system"
        ),
    ] = msgspec.field(default_factory=default_data_dir)
    events_dir: Annotated[
        Path | None,
        Meta(
            description="the log as JSONL files, in a folder for each profile; `memory-data` in `DATA_DIR` by"
            " default. A new folder is private; an existing one keeps its mode, and `doctor` reports if others"
            " may enter it. With `PRIVACY__ENCRYPT_AT_REST` there are none unless this is set"
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
        "SecretStr | None", Meta(description="the project's *publishable* key; a service key is refused")
    ] = None
    device_id: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}$")] | None,
        Meta(description="what this device is; derived from the hardware by default"),
    ] = None
    device_name: Annotated[
        str, Meta(min_length=1, max_length=128, description="what this device is called; the host name by default")
    ] = msgspec.field(default_factory=socket.gethostname)
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
    daily: DailySettings = msgspec.field(default_factory=DailySettings)
    lessons: LessonSettings = LessonSettings()
    document: DocumentSettings = DocumentSettings()
    sync: SyncSettings = SyncSettings()
    lan: LanSettings = LanSettings()
    recall: RecallSettings = RecallSettings()
    model: ModelSettings = ModelSettings()

    @classmethod
    def from_sources(cls, **flags: Any) -> "Settings":
        """Read flags, environment and file. Raises SettingsError or ServiceKeyRefused."""
        given = {name: value for name, value in flags.items() if value is not None}
        if (paths := read_paths(given, os.environ)) is not None:
            settings = cls(**paths).with_daily_home()
        else:
            from sync.settings.reader import read_settings  # noqa: PLC0415 - pydantic takes longer than many a command

            settings = read_settings(given, os.environ)
        settings.check_combinations()
        return settings

    def with_daily_home(self) -> "Settings":
        """The settings with the default of `daily.home` for their data directory."""
        home = Path.home() if self.data_dir == default_data_dir() else self.data_dir
        return replace(self, daily=DailySettings(home=home))

    def check_combinations(self) -> None:
        """Refuse values that exclude each other. Raises SettingsError or ServiceKeyRefused."""
        _refuse_service_key(self.supabase_key)
        _refuse_own_file(self.memory_file, self.data_dir)
        if (self.supabase_url is None) != (self.supabase_key is None):
            missing = "SUPABASE_KEY" if self.supabase_key is None else "SUPABASE_URL"
            raise SettingsError(
                f"{ENV_PREFIX}{missing} is missing: the address and the key of the Supabase project go together"
            )
        recall = self.recall
        if recall.embeddings == "api" and (recall.embeddings_url is None or recall.embeddings_model is None):
            missing = "EMBEDDINGS_URL" if recall.embeddings_url is None else "EMBEDDINGS_MODEL"
            raise SettingsError(
                f"{ENV_PREFIX}RECALL__{missing} is missing: an embeddings API needs its address and its model"
            )
        if (self.model.url is None) != (self.model.model is None):
            missing = "URL" if self.model.url is None else "MODEL"
            raise SettingsError(
                f"{ENV_PREFIX}MODEL__{missing} is missing: a model's API needs its address and its model"
            )

    @property
    def jsonl_root(self) -> Path:
        """The folder with one folder of JSONL event files for each profile."""
        return self.events_dir or self.data_dir / EVENTS_FOLDER

    @property
    def writes_event_files(self) -> bool:
        """Whether there are JSONL files; an encrypted log is written as plain files only where the user says so."""
        return self.events_dir is not None or not self.privacy.encrypt_at_rest

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but probably a mistake, as `status` lists it."""
        is_odd = self.supabase_key is not None and key_kind(self.supabase_key.get_secret_value()) == "unknown"
        found = {"supabase_key_unknown": is_odd, "document_sharing_ended": self.document.sharing == "user"}
        return tuple(name for name, is_so in found.items() if is_so)

    def to_display(self) -> dict[str, Any]:
        """All settings as JSON values, without the key and without user names and passwords in addresses."""
        return {name: _display(getattr(self, name)) for name in self.__struct_fields__}

    def to_archive(self) -> dict[str, Any]:
        """What an archive holds: without the key, and only the number of patterns, which may contain what they hide."""
        values = self.to_display()
        values["supabase_key"] = None
        values["redaction"]["patterns"] = len(self.redaction.patterns)
        return values


def _display(value: Any) -> Any:
    match value:
        case SettingsSection():
            return {name: _display(getattr(value, name)) for name in value.__struct_fields__}
        case HttpAddress():
            return mask_credentials(value)
        case tuple():
            return list(value)
        case KeepLimit():
            return int(value)
        case None | bool() | int() | float():
            return value
        case _:
            return str(value)


def _refuse_own_file(memory_file: Path, data_dir: Path) -> None:
    """Refuse a file of the program's own as the memory file, which is rewritten."""
    target = Path(os.path.realpath(memory_file))
    if target.suffix.lower() != ".md" and target.is_relative_to(os.path.realpath(data_dir)):
        raise SettingsError(
            f"{ENV_PREFIX}MEMORY_FILE names a file of the program's own; in its data directory use *.md"
        )


def _refuse_service_key(key: "SecretStr | None") -> None:
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
