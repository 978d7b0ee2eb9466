"""What the other devices of a person remember, as text to read beside the document and never written into it.

One list for all devices, since the reader asks what was said and not where; each line names its device and its day, so
that "你在 MacBook 上设置过自动更新" can be answered from one line. Preferences stand first, then what was marked as
important, and within that the newest: whoever cuts the list from its end loses the least.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from sync.document.markdown.model import lines_of
from sync.document.markdown.one_line import one_line, summarize
from sync.document.markdown.version_labels import day_label
from sync.log.model import Origin

HEADING: Final = "## 其他设备的记忆（只读）"
DEVICES_LIMIT: Final = 5  # a person's devices in use; older ones are found by search
LINES_LIMIT: Final = 20  # about ten exchanges of a device, the span of a conversation one may refer back to
CONVERSATION_LINES: Final = 10  # of them are kept for conversations, however many preferences a device holds
LINE_LENGTH: Final = 120  # an answer's summary with its speaker
NAME_LENGTH: Final = 40
ID_LENGTH: Final = 8  # enough of an id to tell two devices of the same name apart

PREFERENCE_WEIGHT: Final = 2.0  # weight of what a person wrote under 用户偏好: above any importance
DEFAULT_WEIGHT: Final = 0.5  # weight of what nobody weighed: the middle of the scale from 0 to 1
_BRACKETS: Final = str.maketrans("【】", "[]")  # a name cannot end the label it stands in and go on as somebody's words


@dataclass(frozen=True, slots=True)
class DigestLine:
    """`weight`: the importance from 0 to 1, or `PREFERENCE_WEIGHT`. `said_at` orders within a day; any text that sorts.

    `origin`: who said it, one of `sync.log.model.Origin`; `peer` where the other device does not tell.
    """

    date: date
    text: str
    weight: float = DEFAULT_WEIGHT
    said_at: str = ""
    origin: Origin = Origin.PEER


@dataclass(frozen=True, slots=True)
class DeviceDigest:
    """One device and the lines of it that are shown, the most wanted first."""

    device_id: str
    name: str
    lines: tuple[DigestLine, ...]


def sort_by_weight(lines: Iterable[DigestLine]) -> list[DigestLine]:
    """The most important first, the newest first among equals; lines of one event keep their order."""
    return sorted(lines, key=lambda line: (line.weight, line.date, line.said_at), reverse=True)


def select_lines(lines: Iterable[DigestLine]) -> tuple[DigestLine, ...]:
    """The lines of one device that are shown, at most `LINES_LIMIT`."""
    in_order = sort_by_weight(lines)
    preferences = [line for line in in_order if line.weight >= PREFERENCE_WEIGHT]
    talk = [line for line in in_order if line.weight < PREFERENCE_WEIGHT]
    room = max(CONVERSATION_LINES, LINES_LIMIT - len(preferences))
    shown = talk[:room]
    return (*preferences[: LINES_LIMIT - len(shown)], *shown)


def active_devices(devices: Iterable[DeviceDigest]) -> tuple[DeviceDigest, ...]:
    """The devices that have something to tell, the last heard first, at most `DEVICES_LIMIT`."""
    speaking = [device for device in devices if device.lines]
    speaking.sort(key=lambda device: max((line.date, line.said_at) for line in device.lines), reverse=True)
    return tuple(speaking[:DEVICES_LIMIT])


def render_digest(devices: Sequence[DeviceDigest]) -> str:
    """Every line under the name of its device and its day; empty where there is nothing to tell."""
    labels = _labels(devices)
    of = {id(line): labels[device.device_id] for device in devices for line in device.lines}
    lines = sort_by_weight(line for device in devices for line in device.lines)
    return "\n".join((HEADING, "", *(_line(line, of[id(line)]) for line in lines))) + "\n" if lines else ""


def _labels(devices: Sequence[DeviceDigest]) -> dict[str, str]:
    """How each device is called; two of one name are told apart by their ids."""
    names = {
        device.device_id: summarize(device.name, NAME_LENGTH).translate(_BRACKETS) or _short_id(device.device_id)
        for device in devices
    }
    often = Counter(names.values())
    return {
        device_id: f"{name}（{_short_id(device_id)}）" if often[name] > 1 else name for device_id, name in names.items()
    }


def _short_id(device_id: str) -> str:
    return one_line(device_id)[:ID_LENGTH]


def _line(line: DigestLine, label: str) -> str:
    """One line behind its device and its day; the bullet it had goes."""
    text = " ".join(part.strip() for part in lines_of(line.text)).lstrip()
    said = text[2:] if text[:2] in {"- ", "* ", "+ "} else text
    return f"- 【{label} {day_label(line.date)}】{summarize(said, LINE_LENGTH)}"
