"""A record and its content, as values and as event payloads. Pure."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from sync.errors import InvalidInput, TooLarge
from sync.log.authorship import Author as Writer
from sync.log.authorship import Authorship, one_line
from sync.log.model import Door

T = TypeVar("T")

Author = Literal["extractive", "caller", "hand"]
Mark = Literal["important", "outdated", "reviewed", "expired"]
MARKS: Final[tuple[Mark, ...]] = ("important", "outdated", "reviewed", "expired")

MAX_FACT_CHARS: Final = 1_000
MAX_TOPIC_CHARS: Final = 200
MAX_TAG_CHARS: Final = 64
MAX_CODE_CHARS: Final = 12_000
MAX_FACTS: Final = 100
MAX_TAGS: Final = 50
MAX_CODE_BLOCKS: Final = 20
MAX_CONTENT_CHARS: Final = 15_000  # of all parts: at four bytes a character below the limit of an event

_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d", re.ASCII)  # a subset of what `fromisoformat` accepts
_LANGUAGE: Final = re.compile(r"[^\w+#.-]")


class Code(msgspec.Struct, frozen=True):
    """A block of code or configuration; `language` may be empty."""

    language: str
    text: str


class Content(msgspec.Struct, frozen=True):
    """What a record says. Create one with `normalised_content`, so that a page can represent it."""

    topic: str
    facts: tuple[str, ...] = ()
    code: tuple[Code, ...] = ()
    tags: tuple[str, ...] = ()

    def changed_parts(self, other: "Content") -> list[str]:
        """The names of the parts that differ."""
        return [name for name in ("topic", "facts", "code", "tags") if getattr(self, name) != getattr(other, name)]

    def without(self, more: "Content", less: "Content") -> "Content":
        """This content without the items that `more` has and `less` lacks."""
        parts = {
            name: _minus(*(getattr(one, name) for one in (self, more, less))) for name in ("facts", "code", "tags")
        }
        is_private = self.topic == more.topic != less.topic
        return replace(self, topic=less.topic if is_private else self.topic, **parts)

    @property
    def full_text(self) -> str:
        return "\n".join((self.topic, *self.facts, *(block.text for block in self.code), " ".join(self.tags)))


class Record(msgspec.Struct, frozen=True):
    """One session's record. `date` and `time` are local to its device; `quality` rates the summary.

    `written`: who said it, whatever is changed later, until the person takes a project file. `shared`: what its events
    say, which leave the device, if the content has more from whole texts that stay here.
    `label`: names another device whose words it has.
    """

    record_id: str
    event_id: str
    date: str
    time: str
    number: int
    content: Content
    project_id: str
    project_path: str | None
    device_id: str
    session_id: str | None = None
    until_event_id: str | None = None  # the last event of the session that it covers
    author: Author = "caller"
    quality: float | None = None
    marks: tuple[Mark, ...] = ()
    reviewed_on: str | None = None
    written: Authorship = Authorship(Writer.USER, "", Door.HAND)
    label: str | None = None
    shared: Content | None = None

    @property
    def shared_content(self) -> Content:
        """What its events say."""
        return self.content if self.shared is None else self.shared

    @property
    def is_project_file(self) -> bool:
        """Whether it is of a page that a repository brought, and that the person did not take."""
        return self.written.door == Door.PROJECT

    @property
    def page_project(self) -> str | None:
        """The project whose page shows it; the home's page for an import, which may name any folder."""
        is_import = not self.written.is_proven or (self.written.author is Writer.FILE and not self.is_project_file)
        return None if is_import else self.project_path

    @property
    def merge_key(self) -> tuple[str | None, ...]:
        """What records that merge have in common: the project and the author."""
        written = self.written
        door = written.door if written.author is Writer.FILE else None
        return self.project_id, written.author, door, self.device_id, str(written.is_proven)

    @property
    def moment(self) -> tuple[str, str]:
        return self.date, self.time


class _CodePayload(msgspec.Struct):
    language: str = ""
    text: str = ""


class _ContentPayload(msgspec.Struct):
    topic: str = ""
    facts: list[str] = []
    code: list[_CodePayload] = []
    tags: list[str] = []


class _RecordPayload(_ContentPayload):
    """The payload of a `session_recorded`."""

    record_id: str = ""
    date: str = ""
    time: str = ""
    session: int = 0
    source_session_id: str | None = None
    until_event_id: str | None = None
    author: Author = "caller"
    quality: float | None = None
    marks: list[str] = []


def normalised_content(topic: str, facts: Any = (), code: Any = (), tags: Any = ()) -> Content:
    """Make content that a page can represent: single lines, nothing empty, nothing twice."""
    content = Content(
        topic=topic_line(topic) or "对话记录",
        facts=_unique_non_empty(one_line(fact)[:MAX_FACT_CHARS] for fact in facts),
        code=tuple(
            Code(_LANGUAGE.sub("", block.language), text) for block in code if (text := block.text.strip("\n").rstrip())
        ),
        tags=_unique_non_empty(tag_word(tag) for tag in tags),
    )
    _check_sizes(content)
    return content


def topic_line(text: str) -> str:
    """A topic that does not look like Markdown structure."""
    return one_line(text).lstrip("#-*~`= ")[:MAX_TOPIC_CHARS].rstrip()


def tag_word(text: str) -> str:
    return re.sub(r"[\s#]+", "-", one_line(text).strip("# "))[:MAX_TAG_CHARS].strip("-")


def _minus(items: tuple[Any, ...], more: tuple[Any, ...], less: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(item for item in items if item not in more or item in less)


def _unique_non_empty(parts: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in parts if part))


def _check_sizes(value: Content) -> None:
    sizes = ((value.facts, MAX_FACTS, "facts"), (value.code, MAX_CODE_BLOCKS, "code"), (value.tags, MAX_TAGS, "tags"))
    for parts, most, name in sizes:
        if len(parts) > most:
            raise TooLarge(f"{name}: more than {most} of them in one record", field=name)
    if any(len(block.text) > MAX_CODE_CHARS for block in value.code) or len(value.full_text) > MAX_CONTENT_CHARS:
        raise TooLarge(f"a record holds at most {MAX_CONTENT_CHARS} characters", field="summary")


def content_of(payload: Mapping[str, Any]) -> Content:
    """The content in an event's payload. Raises InvalidInput."""
    parts = _convert_payload(payload, _ContentPayload)
    return normalised_content(parts.topic, parts.facts, parts.code, parts.tags)


def content_payload(value: Content) -> dict[str, Any]:
    return {
        "topic": value.topic,
        "facts": list(value.facts),
        "code": [{"language": block.language, "text": block.text} for block in value.code],
        "tags": list(value.tags),
    }


def record_payload(record: Record) -> dict[str, Any]:
    """The payload of the `session_recorded` event."""
    return {
        "record_id": record.record_id,
        "date": record.date,
        "time": record.time,
        "session": record.number,
        **content_payload(record.content),
        "source_session_id": record.session_id,
        "until_event_id": record.until_event_id,
        "author": record.author,
        "quality": record.quality,
        "marks": list(record.marks),
    }


def record_from_payload(payload: Mapping[str, Any], **envelope: Any) -> Record:
    """The record in a payload, with the remaining fields from its event's envelope. Raises InvalidInput."""
    parts = _convert_payload(payload, _RecordPayload)
    if not parts.record_id or parts.session < 1:
        raise InvalidInput("a record has an id and a number from 1 on", field="payload.record_id")
    return Record(
        record_id=parts.record_id,
        date=parse_day(parts.date),
        time=parse_time(parts.time),
        number=parts.session,
        content=normalised_content(parts.topic, parts.facts, parts.code, parts.tags),
        session_id=parts.source_session_id,
        until_event_id=parts.until_event_id,
        author=parts.author,
        quality=parts.quality,
        marks=marks_of(parts.marks),
        **envelope,
    )


def marks_of(names: Any) -> tuple[Mark, ...]:
    return tuple(mark for mark in MARKS if mark in names)


def set_mark(record: Record, mark: Mark, *, on: bool, day: str) -> Record:
    marks = {*record.marks, mark} if on else {*record.marks} - {mark}
    reviewed = day if mark in {"reviewed", "important"} and on else record.reviewed_on
    return replace(record, marks=marks_of(marks), reviewed_on=reviewed)


def parse_day(text: str, *, field: str = "date") -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InvalidInput(f"{field} is a day, as 2026-01-29", field=field) from None


def parse_time(text: str) -> str:
    if _TIME.fullmatch(text) is None:
        raise InvalidInput("time is written as 10:30:45", field="time")
    return text


def _convert_payload(payload: Mapping[str, Any], payload_type: type[T]) -> T:
    try:
        return msgspec.convert(dict(payload), payload_type)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a record is malformed: {error}", field="payload") from None
