"""The groups of settings: types, bounds, defaults, and the descriptions of docs/settings.md.

`reader.py` checks values by them. Imports no pydantic: a process for which nothing is set needs none.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sync.settings.values import HttpAddress, KeepLimit


class SettingsSection(msgspec.Struct, frozen=True):
    """A group of settings: `XIAOBAI_<GROUP>__<NAME>`, or a table of `config.toml`."""


class LoadSettings(SettingsSection, frozen=True):
    other_devices: Annotated[
        Literal["digest", "off"],
        Meta(description="`off` leaves the other devices out of `load`; `devices hide` does so with one"),
    ] = "digest"


class PrivacySettings(SettingsSection, frozen=True):
    store_messages: Annotated[
        bool | None,
        Meta(
            description="`false`: only the summaries of exchanges are kept. Unset: this device also keeps both sides,"
            " redacted, up to 4,000 characters each, so that an answer is found again; they never leave it,"
            " but for an embeddings API that you have set, which gets their beginning."
            " `true`: whole messages are kept as events as well, which are replicated"
        ),
    ] = None
    store_program_messages: Annotated[
        bool | None,
        Meta(
            description="keep whole `message` events of programs and files, redacted. Without it only the fields that"
            " docs/events.md lists are kept of an event that a program appends or a file brings, and only role and"
            " length of a `message`, so recall and daily records of such sessions need `memory/update` or"
            " `daily/record`. Unset: as `store_messages`, and not if that is unset too"
        ),
    ] = None
    turn_block: Annotated[
        Literal["all", "facts", "off"],
        Meta(description="what `recall/context` may give: everything, facts about you alone, or nothing"),
    ] = "all"
    retention_days: Annotated[
        KeepLimit, Meta(description="days that events are kept on this device; older ones go into an archive")
    ] = KeepLimit(-1)
    retention_megabytes: Annotated[
        KeepLimit, Meta(description="megabytes of event payloads that are kept; the oldest go into an archive first")
    ] = KeepLimit(-1)
    encrypt_at_rest: Annotated[
        bool, Meta(description="encrypt the profiles' databases on disk; needs the extra `encryption`")
    ] = False
    erasure_events: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="an erasure by another device that removes more events than this from this device waits for"
            " confirmation, unless a key signed it that this device has known for a day",
        ),
    ] = 20
    undo_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=300,
            description="seconds in which what `memory/forget` takes is hidden and can be undone; then it is erased",
        ),
    ] = 10
    erasure_percent: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="the same for this share of the document's lines; up to three lines never wait",
        ),
    ] = 25

    @property
    def keeps_exchange_texts(self) -> bool:
        """Whether this device keeps both sides of its exchanges whole."""
        return self.store_messages is not False

    @property
    def stores_messages_whole(self) -> bool:
        """Whether the messages of exchanges are events of their own."""
        return self.store_messages is True

    @property
    def keeps_messages(self) -> bool:
        """Whether the text of programs' messages is kept."""
        return bool(self.store_messages if self.store_program_messages is None else self.store_program_messages)


class RecordSettings(SettingsSection, frozen=True):
    min_importance: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="below it (the caller's `importance`, else an estimate: small talk 0.05, an ordinary exchange"
            " 0.3, an illness or a decision above 0.6) an exchange stays in the log and out of the document",
        ),
    ] = 0.3
    preferences: Annotated[
        bool,
        Meta(
            description="what you state about yourself (我对花生过敏, 以后都…, I prefer…) becomes a fact and a line"
            " under 用户偏好. Delete the line and the fact is retracted for good. Questions, quotations and pasted text"
            " state none"
        ),
    ] = True
    deduplicate: Annotated[
        bool,
        Meta(
            description="count a question that is repeated on its day with the same answer in its line (`（×2）`), and"
            " do not store an answer that only repeats memory"
        ),
    ] = True


class RedactionSettings(SettingsSection, frozen=True):
    enabled: Annotated[
        bool,
        Meta(
            description="`false` keeps this device's document and events that never leave the"
            " device unredacted; everything else is redacted anyway"
        ),
    ] = True
    patterns: Annotated[
        tuple[str, ...],
        Meta(
            description="more patterns (RE2 syntax; a group marks what is replaced), shown as `[自定义]`; try them with"
            " `redact`"
        ),
    ] = ()


class SessionSettings(SettingsSection, frozen=True):
    idle_minutes: Annotated[
        float, Meta(gt=0, le=10_080, description="minutes without a message after which a session ends")
    ] = 30.0


class DailySettings(SettingsSection, frozen=True):
    home: Annotated[
        Path,
        Meta(
            description="folder of the daily records without a project, as `.cursor/skills/memories` below it;"
            " `DATA_DIR` if that is set"
        ),
    ] = msgspec.field(default_factory=Path.home)


class LessonSettings(SettingsSection, frozen=True):
    dir: Annotated[
        Path | None,
        Meta(
            description="folder of the JSON files of the lessons, such as `~/.gclm-flow/memory`; what it has is read"
            " first. `lessons` in `DATA_DIR`, with a folder for each profile, by default"
        ),
    ] = None


class DocumentSettings(SettingsSection, frozen=True):
    language: Annotated[
        Literal["auto", "zh", "en"],
        Meta(
            description="of what the program writes and says: a new memory file, lines, prompts, commands. `auto`: the"
            " language of the memory file; for a new one that of the app (`initialize`), else of the environment, else"
            " Chinese. What is written already is never translated"
        ),
    ] = "auto"
    sharing: Annotated[
        Literal["device", "user"],
        Meta(description="no longer used: every device has its own document (`user` is a warning in `status`)"),
    ] = "device"
    poll_seconds: Annotated[
        float, Meta(gt=0, le=60, description="how often the memory file is checked besides the watcher")
    ] = 3.0
    keep_versions: Annotated[
        int, Meta(ge=20, le=10_000, description="versions of the memory file that are kept; the base of late edits")
    ] = 200
    keep_days: Annotated[
        KeepLimit,
        Meta(
            description="days after which a day of conversations folds into one line under 更早的对话. Your own"
            " lines stay, and `restore` brings folded lines back; `-1`: never"
        ),
    ] = KeepLimit(30)


class LanSettings(SettingsSection, frozen=True):
    enabled: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="sync directly with the account's devices on the local network. `auto`: while the account has"
            " a second device; `off`: no port is opened"
        ),
    ] = "auto"
    address: Annotated[
        str, Meta(max_length=64, description="the address that this device listens on; empty: all of them")
    ] = ""
    port: Annotated[int, Meta(ge=0, le=65_535, description="the port; 0: any free one, another after each start")] = 0


class SyncSettings(SettingsSection, frozen=True):
    poll_seconds: Annotated[
        float,
        Meta(
            ge=0.2,
            le=3600,
            description="how often the server is polled; a quarter as often with realtime and by the account's only"
            " device, less often if the server asks for it",
        ),
    ] = 30.0
    timeout_seconds: Annotated[float, Meta(gt=0, le=60, description="how long one request may take as a whole")] = 12.0
    push_events: Annotated[int, Meta(ge=1, le=500, description="most events in one request")] = 200
    realtime: Annotated[
        bool,
        Meta(
            description="receive other devices' changes at once over Supabase Realtime, while another device of the"
            " account was seen within a week; polling continues"
        ),
    ] = True


class RecallWeights(SettingsSection, frozen=True):
    """Replacements for the preset's numbers."""

    keyword: Annotated[float, Meta(ge=0, le=1)] | None = None
    semantic: Annotated[float, Meta(ge=0, le=1)] | None = None
    decay: Annotated[float, Meta(gt=0, le=1)] | None = None  # what remains of a score after a day


class RecallSettings(SettingsSection, frozen=True):
    preset: Annotated[
        Literal["default", "seed000", "seed004"],
        Meta(
            description="`default`: words and meaning alike, words more if one item holds most of a question;"
            " `seed000` (`search --preset fading`): keyword 0.4, semantic 0.6, 5 % less for each day;"
            " `seed004` (`--preset meaning`): 0.3, 0.7, two hits at most"
        ),
    ] = "default"
    weights: Annotated[
        RecallWeights,
        Meta(description="your own numbers in place of the preset's; a semantic weight of 0 searches by words alone"),
    ] = RecallWeights()
    scope_days: Annotated[
        int,
        Meta(ge=1, le=36_500, description="the days that a search of the scope `recent` looks through first"),
    ] = 30
    embeddings: Annotated[
        Literal["auto", "off", "local", "api"],
        Meta(description="search by meaning: `auto` with the models of the extra `embeddings` if it is installed"),
    ] = "auto"
    embeddings_url: Annotated[
        HttpAddress | None,
        Meta(
            description="an OpenAI-compatible API (`https://…/v1`), used with `RECALL__EMBEDDINGS=api` only; it gets"
            " redacted text only"
        ),
    ] = None
    embeddings_model: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None, Meta(description="the model of that API")
    ] = None

    @property
    def vector_provider(self) -> Literal["openai", "local"]:
        """Who makes the vectors, as the `config.json` of daily records names it."""
        return "openai" if self.embeddings == "api" else "local"


class ModelSettings(SettingsSection, frozen=True):
    url: Annotated[
        HttpAddress | None,
        Meta(
            description="an OpenAI-compatible API (`https://…/v1`) whose language model finds facts in the background;"
            " it gets redacted text only. An app can offer its own model instead ([facts](facts.md))"
        ),
    ] = None
    model: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None, Meta(description="the model of that API")
    ] = None
    max_calls_per_day: Annotated[int, Meta(ge=0, le=1_000, description="calls of that API on one day")] = 20
