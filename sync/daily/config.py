"""`config.json` of the daily records: parse it, and change one option at a time. Pure.

Comments (`//`) may be read but are lost when the file is written. If the file is invalid the defaults apply, the file
stays as it is, and `daily status` names it. Unknown options are kept; a value out of bounds is refused by name.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from sync.errors import InvalidInput

Provider = Literal["openai", "local"]  # of vectors: an API like OpenAI's, or models on this machine
LocationPolicy = Literal["project-first", "project-only", "global-only"]


class StorageOptions(msgspec.Struct, frozen=True):
    location: LocationPolicy = "project-first"
    retention_days: Annotated[int, msgspec.Meta(ge=-1, le=36_500)] = 90  # -1: records never expire
    max_file_size_mb: Annotated[float, msgspec.Meta(gt=0, le=64)] = 10


class RecordingOptions(msgspec.Struct, frozen=True):
    auto_save: bool = True
    save_code_snippets: bool = True
    sanitize_sensitive: bool = True
    min_conversation_length: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 3


class RetrievalOptions(msgspec.Struct, frozen=True):
    method: Literal["keyword", "semantic", "hybrid"] = "hybrid"
    max_results: Annotated[int, msgspec.Meta(ge=1, le=200)] = 5
    time_decay_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.95
    search_scope_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 30


class SemanticOptions(msgspec.Struct, frozen=True):
    enabled: bool = True
    provider: Provider = "local"
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "all-MiniLM-L6-v2"


class DailyConfig(msgspec.Struct, frozen=True):
    """All options with their defaults."""

    version: str = "1.0"
    storage: StorageOptions = StorageOptions()
    recording: RecordingOptions = RecordingOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    semantic: SemanticOptions = SemanticOptions()


DEFAULT_CONFIG: Final = DailyConfig()
_STRING_OR_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


def parse_config(text: str) -> tuple[DailyConfig, dict[str, Any]]:
    """The options, and the file's content as parsed. Raises InvalidInput that names what is wrong."""
    bare = _STRING_OR_COMMENT.sub(lambda match: match.group() if match.group()[0] == '"' else "", text)
    try:
        raw = json.loads(bare) if bare.strip() else {}
        return msgspec.convert(raw, DailyConfig), raw
    except msgspec.ValidationError as error:
        raise _invalid_option(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"config.json is no JSON: {type(error).__name__}", field="config.json") from None


def with_option(raw: Mapping[str, Any], option: str, value: Any) -> dict[str, Any]:
    """The file's content with one option set, such as `recording.auto_save`. Raises InvalidInput."""
    check_option(option)
    group, _, name = option.partition(".")
    section = raw.get(group)
    result = {**raw, group: {**(section if isinstance(section, dict) else {}), name: value}}
    try:
        msgspec.convert(result, DailyConfig)
    except msgspec.ValidationError as error:
        raise _invalid_option(str(error)) from None
    return result


def tightened(base: DailyConfig, found: DailyConfig) -> DailyConfig:
    """The options of `base`, where those of a repository's file keep less: redaction, no code, no page in it."""
    recording = replace(
        base.recording,
        sanitize_sensitive=base.recording.sanitize_sensitive or found.recording.sanitize_sensitive,
        save_code_snippets=base.recording.save_code_snippets and found.recording.save_code_snippets,
    )
    is_elsewhere = "global-only" in (base.storage.location, found.storage.location)
    location = "global-only" if is_elsewhere else base.storage.location
    return replace(base, recording=recording, storage=replace(base.storage, location=location))


def still_chosen(chosen: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that were set here that the file still has."""
    sections = (
        [(group, each) for group, each in chosen.items() if isinstance(each, dict)] if isinstance(chosen, dict) else []
    )
    held = {group: each for group, each in raw.items() if isinstance(each, dict)}
    left = {group: {n: v for n, v in each.items() if held.get(group, {}).get(n) == v} for group, each in sections}
    return {group: each for group, each in left.items() if each}


def check_option(option: str) -> None:
    """Raise InvalidInput if there is no such option."""
    if option not in option_names():
        raise InvalidInput(
            "there is no such option", field=option[:80], hint=f"Known are: {', '.join(option_names())}."
        )


def option_names() -> list[str]:
    """Every option as `group.name`."""
    groups = {name: getattr(DEFAULT_CONFIG, name) for name in DailyConfig.__struct_fields__}
    return [
        f"{group}.{name}"
        for group, section in groups.items()
        if isinstance(section, msgspec.Struct)
        for name in section.__struct_fields__
    ]


def parse_value(text: str) -> Any:
    """Parse what the user typed after `=`: JSON, or else plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def to_text(raw: Mapping[str, Any]) -> str:
    return json.dumps(raw, ensure_ascii=False, indent=2) + "\n"


def to_json(value: DailyConfig) -> dict[str, Any]:
    options: dict[str, Any] = msgspec.to_builtins(value)
    return options


def _invalid_option(message: str) -> InvalidInput:
    what, _, place = message.partition(" - at `$.")
    place = place.rstrip("`")
    return InvalidInput(f"{place or 'config.json'}: {what}", field=place or "config.json")
