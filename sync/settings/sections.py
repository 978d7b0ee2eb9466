"""The groups of settings, one for each room. What is read from where, and what is refused, stands in `settings.py`."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class SettingsSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings of one room: `XIAOBAI_<GROUP>__<NAME>`."""


class KeepLimit(int):
    """How much is kept, in days or megabytes, at least one; -1: everything. Nobody asks for 0 by accident twice."""


class HttpAddress(str):
    """https://…, without a slash at its end; http://… only for this machine."""

    __slots__ = ()


class LoadSettings(SettingsSection, frozen=True):
    other_devices: Literal["digest", "off"] = "digest"


class PrivacySettings(SettingsSection, frozen=True):
    store_messages: bool = False
    retention_days: KeepLimit = KeepLimit(-1)  # days that events are kept here, then they are archived
    retention_megabytes: KeepLimit = KeepLimit(-1)  # of their payloads
    encrypt_at_rest: bool = False  # the profiles' databases; needs the extra `encryption`
    erasure_events: Annotated[int, Meta(ge=0, le=1_000_000)] = 20  # more, of another device: signed, or asked about
    erasure_percent: Annotated[int, Meta(ge=1, le=100)] = 25  # likewise, of the lines of the document


class RecordSettings(SettingsSection, frozen=True):
    min_importance: Annotated[float, Meta(ge=0, le=1)] = 0.0  # below it: in the log, not in the document
    preferences: bool = True  # the user's statements of preference become entries of their own
    deduplicate: bool = True  # what is said again is counted, not written again


class RedactionSettings(SettingsSection, frozen=True):
    enabled: bool = (
        True  # false: what stays on this device is kept as it was said; what leaves is redacted all the same
    )
    patterns: tuple[str, ...] = ()


class SessionSettings(SettingsSection, frozen=True):
    idle_minutes: Annotated[float, Meta(gt=0, le=10_080)] = 30.0  # without a word, and a session is over


class DailySettings(SettingsSection, frozen=True):
    home: Path = msgspec.field(default_factory=Path.home)  # below it: the daily records of no project, in `.cursor/…`


class DocumentSettings(SettingsSection, frozen=True):
    sharing: Literal["device", "user"] = "device"  # whose document the file is: this device's, or one for all
    poll_seconds: Annotated[float, Meta(gt=0, le=60)] = 3.0  # the floor below the watcher
    keep_versions: Annotated[int, Meta(ge=20, le=10_000)] = 200  # an editor may hold a buffer this many writes old
    keep_days: KeepLimit = KeepLimit(30)  # before a day folds into a line; today's words never do


class SyncSettings(SettingsSection, frozen=True):
    poll_seconds: Annotated[float, Meta(ge=0.2, le=3600)] = 30.0
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 12.0  # one request, as a whole
    push_events: Annotated[int, Meta(ge=1, le=500)] = 200
    realtime: bool = True  # hear of the other devices' changes at once; polling goes on below it


class RecallWeights(SettingsSection, frozen=True):
    """What takes the place of the preset's own numbers."""

    keyword: Annotated[float, Meta(ge=0, le=1)] | None = None
    semantic: Annotated[float, Meta(ge=0, le=1)] | None = None
    decay: Annotated[float, Meta(gt=0, le=1)] | None = None  # what a day leaves of a score


class RecallSettings(SettingsSection, frozen=True):
    preset: Literal["default", "seed000", "seed004"] = "default"
    weights: RecallWeights = RecallWeights()
    scope_days: Annotated[int, Meta(ge=1, le=36_500)] = 30  # how far back the recent part of the memory goes
    embeddings: Literal["auto", "off", "local", "api"] = "auto"  # auto: local where the extra is installed
    embeddings_url: HttpAddress | None = None  # of an OpenAI-compatible API, as https://…/v1; used with `api` alone
    embeddings_model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
