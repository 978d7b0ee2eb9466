"""Who said it: the author of an event, and the label under which another text shows it. Pure.

`author_of` uses replicated data alone, so all devices agree on it; facts, documents and hits ask nothing else. Where an
event was recorded (`Door`) decides; `origin`, which any program can claim, decides only for events without a door.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

from sync.log.event_catalogue import EVENT_TYPES, OTHER_PROGRAMS
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, EXCHANGE_RECORDED, EXCHANGE_TEXT, MEMORY_FACT
from sync.log.model import DOOR_FIELD, UNPROVEN_FIELD, Door, Event, Origin

PERSON_DOORS: Final = frozenset({Door.UPDATE, Door.HAND, Door.SAVE, Door.COMMAND, Door.PANEL})
PROPOSING_DOORS: Final = frozenset({Door.PROGRAM, Door.IMPORT, Door.PROJECT})  # they never end the words of others
_LINE_TYPES: Final = frozenset({ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED})
ANSWER: Final = "answer"  # the part of an exchange that the model wrote
MAX_LABEL: Final = 40  # characters of a device's name
ID_LENGTH: Final = 8  # characters of a device's id in place of its name


AuthorName = Literal["user", "device", "model", "program", "app", "file"]


class Author(StrEnum):
    """Who said it, as the wire and the labels name it. `DEVICE`: the user, on another device than the reader's."""

    USER = "user"
    DEVICE = "device"
    MODEL = "model"
    PROGRAM = "program"
    APP = "app"
    FILE = "file"


_AUTHOR_OF_DOOR: Final[Mapping[str, Author]] = {
    Door.PROGRAM: Author.PROGRAM,
    Door.APP: Author.APP,
    Door.CLOUD: Author.APP,
    Door.IMPORT: Author.FILE,
    Door.PROJECT: Author.FILE,
    Door.TEAM: Author.FILE,
}
OTHER_DOORS: Final = frozenset(_AUTHOR_OF_DOOR)  # through which not the user speaks
_AUTHOR_OF_ORIGIN: Final[Mapping[str, Author]] = {
    Origin.USER: Author.USER,
    Origin.MODEL: Author.MODEL,
    Origin.IMPORTED: Author.FILE,
    Origin.TOOL: Author.PROGRAM,
    Origin.PEER: Author.PROGRAM,
}


FORMER_ORIGIN: Final[Mapping[Author, Origin]] = {  # what the wire called an author before; sent for one version
    Author.USER: Origin.USER,
    Author.DEVICE: Origin.USER,
    Author.MODEL: Origin.MODEL,
    Author.PROGRAM: Origin.TOOL,
    Author.APP: Origin.TOOL,
    Author.FILE: Origin.IMPORTED,
}


class Authorship(msgspec.Struct, frozen=True):
    """The author of a text. `author` is never `DEVICE`. `is_proven`: the channel or a signature proves the device."""

    author: Author
    device_id: str
    door: str | None = None
    is_proven: bool = True

    @property
    def is_users(self) -> bool:
        """Return whether the user said it, on whatever device."""
        return self.author is Author.USER and self.is_proven

    @property
    def lacks_door(self) -> bool:
        """Return whether it counts as a program's only because the event does not say where it was recorded."""
        return self.door is None and self.author is Author.PROGRAM

    def seen_from(self, own_device_ids: Collection[str]) -> Author:
        """Return the author as a device sees it: what the user said elsewhere is another device's."""
        is_elsewhere = not self.is_proven or self.device_id not in own_device_ids
        return Author.DEVICE if self.author is Author.USER and is_elsewhere else self.author


def author_of(event: Event, part: str = "") -> Authorship:
    """Return the author of an event, or of one part of an exchange, whose answer is the model's."""
    return authorship(event.type, event.origin, event.device_id, event.extra, part=part)


def authorship(
    event_type: str, origin: str, device_id: str, extra: Mapping[str, object], *, part: str = ""
) -> Authorship:
    """Return the author of the event with these fields."""
    door = extra.get(DOOR_FIELD)
    door = door if isinstance(door, str) else None
    author = _AUTHOR_OF_DOOR.get(door or "")
    if author is None and event_type in (EXCHANGE_RECORDED, EXCHANGE_TEXT) and origin == Origin.MODEL:
        author = Author.MODEL if part == ANSWER else Author.USER
    if author is None:
        by_origin = _AUTHOR_OF_ORIGIN.get(origin, Author.PROGRAM)
        is_typed = door in PERSON_DOORS
        author = _typed_author(by_origin, door) if is_typed else _former_author(by_origin, event_type, extra)
    return Authorship(author, device_id, door, UNPROVEN_FIELD not in extra)


def _typed_author(by_origin: Author, door: str | None) -> Author:
    """Return the author at a person's door. An import there is the file found at the first start.

    One at `UPDATE` is a conversation of another program that an earlier version imported.
    """
    return Author.USER if by_origin is Author.FILE and door != Door.UPDATE else by_origin


def _former_author(by_origin: Author, event_type: str, extra: Mapping[str, object]) -> Author:
    """Return the author of an event without a door: an old one, or one that this program derived.

    A program could claim any origin, but not for document lines and facts.
    """
    if by_origin is Author.FILE and event_type in _LINE_TYPES and "imported_device_id" not in extra:
        return Author.USER  # the file found at the first start
    if by_origin is not Author.USER:
        return by_origin
    known = EVENT_TYPES.get(event_type)
    is_open = known is None or OTHER_PROGRAMS in known.emitted_by
    return Author.PROGRAM if is_open and event_type != MEMORY_FACT else Author.USER


UNPROVEN: Final = "unproven"  # the label key of an author that is not proven
NameOf = Callable[[str], str | None]

_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    "zh": {
        Author.DEVICE: "来自 {}",
        Author.MODEL: "模型写",
        Author.PROGRAM: "来自 工具",
        Author.APP: "来自 应用",
        Author.FILE: "导入",
        Door.PROJECT: "项目文件",
        Door.TEAM: "团队",
        Door.CLOUD: "来自 云端",
        UNPROVEN: "来自 未证实的设备",
    },
    "en": {
        Author.DEVICE: "from {}",
        Author.MODEL: "written by a model",
        Author.PROGRAM: "from a tool",
        Author.APP: "from the app",
        Author.FILE: "imported",
        Door.PROJECT: "project file",
        Door.TEAM: "team",
        Door.CLOUD: "from the cloud",
        UNPROVEN: "from an unverified device",
    },
}
_BRACKETS: Final = str.maketrans("【】", "[]")  # so that a name cannot end its label


def view_label(
    written: Authorship, own_device_ids: Collection[str], name_of: NameOf, *, is_english: bool = False
) -> str | None:
    """Return the label of a text, as shown in 【】; None for what the user said on this device."""
    key = label_key(written, own_device_ids)
    if key == Author.USER:
        return None
    label = _LABELS["en" if is_english else "zh"][key]
    return label.format(short_name(name_of(written.device_id), written.device_id)) if key == Author.DEVICE else label


def short_name(name: str | None, device_id: str) -> str:
    """Return the name of a device on one line and bounded; the beginning of its id without one."""
    line = one_line(name or "") or one_line(device_id)[:ID_LENGTH] or "?"
    return line[:MAX_LABEL].translate(_BRACKETS)


def one_line(text: str) -> str:
    """Return a text on one line, without control and bidi characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def label_key(written: Authorship, own_device_ids: Collection[str]) -> str:
    """Return the key under which texts word an author: an `Author`, a door of which more is said, or `UNPROVEN`."""
    if not written.is_proven:
        return UNPROVEN
    return written.door if written.door in (Door.PROJECT, Door.TEAM, Door.CLOUD) else written.seen_from(own_device_ids)
