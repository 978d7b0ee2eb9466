"""The groups of settings, one for each room. What is read from where, and what is refused, stands in `settings.py`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    """A group of settings of one room: `XIAOBAI_<GROUP>__<NAME>`."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LoadSettings(Section):
    other_devices: Literal["digest", "off"] = "digest"


class PrivacySettings(Section):
    store_messages: bool = False
    retention_days: int = -1  # days that events are kept; -1: for ever

    @field_validator("retention_days")
    @classmethod
    def _days(cls, value: int) -> int:
        if value == 0 or value < -1:  # 0 would keep nothing, which nobody asks for by accident twice
            raise ValueError("must be -1 (keep for ever) or at least 1")
        return value


class RecordSettings(Section):
    min_importance: float = Field(default=0.0, ge=0.0, le=1.0)  # below it: in the log, not in the document
    preferences: bool = True  # the user's statements of preference become entries of their own
    deduplicate: bool = True  # what is said again is counted, not written again


class RedactionSettings(Section):
    enabled: bool = (
        True  # false: what stays on this device is kept as it was said; what leaves is redacted all the same
    )
    patterns: tuple[str, ...] = ()


class SessionSettings(Section):
    idle_minutes: float = Field(default=30.0, gt=0.0, le=10_080.0)  # without a word, and a session is over


class DailySettings(Section):
    model_config = ConfigDict(validate_default=True)

    home: Path = Path("~")  # below it lie the daily records of no project, as `.cursor/skills/memories`

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        try:
            found = value.expanduser()
        except RuntimeError as error:
            raise ValueError("names the home of somebody this machine does not know") from error
        if not found.is_absolute() or "\0" in str(found):
            raise ValueError("must be an absolute path")
        return found


class DocumentSettings(Section):
    sharing: Literal["device", "user"] = "device"  # whose document the file is: this device's, or one for all
    poll_seconds: float = Field(default=3.0, gt=0.0, le=60.0)  # the floor below the watcher
    keep_versions: int = Field(default=200, ge=20, le=10_000)  # an editor may hold a buffer this many writes old
    keep_days: int = 30  # before a day folds into a line; -1: never

    @field_validator("keep_days")
    @classmethod
    def _kept(cls, value: int) -> int:
        if value == 0 or value < -1:  # today's words never fold
            raise ValueError("must be -1 (keep for ever) or at least 1")
        return value


class SyncSettings(Section):
    poll_seconds: float = Field(default=30.0, ge=0.2, le=3600.0)
    timeout_seconds: float = Field(default=12.0, gt=0.0, le=60.0)  # one request, as a whole
    push_events: int = Field(default=200, ge=1, le=500)
    realtime: bool = True  # hear of the other devices' changes at once; polling goes on below it


class RecallWeights(Section):
    """What takes the place of the preset's own numbers."""

    keyword: float | None = Field(default=None, ge=0.0, le=1.0)
    semantic: float | None = Field(default=None, ge=0.0, le=1.0)
    decay: float | None = Field(default=None, gt=0.0, le=1.0)  # what a day leaves of a score


class RecallSettings(Section):
    preset: Literal["default", "seed000", "seed004"] = "default"
    weights: RecallWeights = Field(default_factory=RecallWeights)
    scope_days: int = Field(default=30, ge=1, le=36_500)  # how far back the recent part of the memory goes
