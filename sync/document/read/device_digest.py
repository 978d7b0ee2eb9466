"""The digest: what the user's other devices remember, as text to read beside the document, never written into it.

It is one list for all devices; each line names its device and its day, so that "你在 MacBook 上设置过自动更新" can be
answered from one line. Preferences come first, then by importance, then the newest: cutting the end loses the least.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

import msgspec

from sync.document.markdown.model import lines_of
from sync.document.markdown.one_line import summarize
from sync.document.markdown.version_labels import day_label
from sync.log.authorship import MAX_LABEL, Author, short_name
from sync.log.devices.device_registry import new_device_name
from sync.texts.language import EN, ZH, Language

HEADINGS: Final = {ZH: "## 其他设备的记忆（只读）", EN: "## Memory of other devices (read-only)"}
DEVICES_LIMIT: Final = 5  # devices in use; older ones are found by search
LINES_LIMIT: Final = 20  # about ten exchanges of a device: the span that a conversation refers back to
CONVERSATION_LINES: Final = 10  # of them are for conversations, however many preferences a device has
LINE_LENGTH: Final = 120  # an answer's summary with its speaker

PREFERENCE_WEIGHT: Final = 2.0  # of a line under 用户偏好: above any importance
DEFAULT_WEIGHT: Final = 0.5  # of a line without an importance: the middle of the scale from 0 to 1
_AUTHORS: Final = {
    ZH: {Author.PROGRAM: "，工具", Author.APP: "，应用", Author.FILE: "，导入"},
    EN: {Author.PROGRAM: ", a tool", Author.APP: ", the app", Author.FILE: ", imported"},
}


class DigestLine(msgspec.Struct, frozen=True):
    """`weight`: the importance from 0 to 1, or `PREFERENCE_WEIGHT`. `said_at`: any text that sorts within a day.

    `author`: who wrote it, as its device sees it.
    """

    date: date
    text: str
    weight: float = DEFAULT_WEIGHT
    said_at: str = ""
    author: Author = Author.DEVICE


class DeviceDigest(msgspec.Struct, frozen=True):
    """One device and its lines that are shown, the most important first. `is_new`: it is not admitted yet."""

    device_id: str
    name: str
    lines: tuple[DigestLine, ...]
    is_new: bool = False


def sort_by_weight(lines: Iterable[DigestLine]) -> list[DigestLine]:
    """The lines by importance, then the newest first; lines of one event keep their order."""
    return sorted(lines, key=lambda line: (line.weight, line.date, line.said_at), reverse=True)


def select_lines(lines: Iterable[DigestLine]) -> tuple[DigestLine, ...]:
    """The lines of one device that are shown, at most `LINES_LIMIT`."""
    in_order = sort_by_weight(lines)
    preferences = [line for line in in_order if line.weight >= PREFERENCE_WEIGHT]
    talk = [line for line in in_order if line.weight < PREFERENCE_WEIGHT]
    shown = talk[: max(CONVERSATION_LINES, LINES_LIMIT - len(preferences))]
    return (*preferences[: LINES_LIMIT - len(shown)], *shown)


def active_devices(devices: Iterable[DeviceDigest]) -> tuple[DeviceDigest, ...]:
    """The devices that have lines, the last active first, at most `DEVICES_LIMIT`."""
    speaking = [device for device in devices if device.lines]
    speaking.sort(key=lambda device: max((line.date, line.said_at) for line in device.lines), reverse=True)
    return tuple(speaking[:DEVICES_LIMIT])


def render_digest(devices: Sequence[DeviceDigest], language: Language = ZH) -> str:
    """Every line with the name of its device and its day; empty if there are no lines."""
    labels = _labels(devices, is_english=language is EN)
    label_of = {id(line): labels[device.device_id] for device in devices for line in device.lines}
    lines = sort_by_weight(line for device in devices for line in device.lines)
    return (
        "\n".join((HEADINGS[language], "", *(_line(line, label_of[id(line)], language) for line in lines))) + "\n"
        if lines
        else ""
    )


def _labels(devices: Sequence[DeviceDigest], *, is_english: bool) -> dict[str, str]:
    """The name of each device, with its id if two have the same name or it is not admitted."""
    names = {
        device.device_id: new_device_name(device.device_id, is_english=is_english)
        if device.is_new
        else short_name(summarize(device.name, MAX_LABEL), device.device_id)
        for device in devices
    }
    often = Counter(names.values())
    return {
        device_id: f"{name}（{short_name(None, device_id)}）" if often[name] > 1 else name
        for device_id, name in names.items()
    }


def _line(line: DigestLine, label: str, language: Language) -> str:
    """One line with its device, its author if it is not the user, and its day, without its own bullet."""
    text = " ".join(part.strip() for part in lines_of(line.text)).lstrip()
    text = text[2:] if text[:2] in {"- ", "* ", "+ "} else text
    author = _AUTHORS[language].get(line.author, "")
    return f"- 【{label}{author} {day_label(line.date)}】{summarize(text, LINE_LENGTH)}"
