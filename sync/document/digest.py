"""What the other devices of a person remember, as text to read beside the document and never written into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from sync.document.labels import day_label
from sync.document.model import lines_of
from sync.document.summary import one_line, summarize

HEADING: Final = "## 其他设备的记忆（只读）"
DEVICES_LIMIT: Final = 5  # a person's devices in use; older ones are found by search
LINES_LIMIT: Final = 20  # about ten exchanges of a device, the span of a conversation one may refer back to
LINE_LENGTH: Final = 120  # an answer's summary with its speaker
NAME_LENGTH: Final = 40
ID_LENGTH: Final = 8  # enough of an id to tell two devices of the same name apart


@dataclass(frozen=True, slots=True)
class DigestLine:
    date: date
    text: str


@dataclass(frozen=True, slots=True)
class DeviceDigest:
    """One device; of lines of the same day the first is the newest."""

    device_id: str
    name: str
    lines: tuple[DigestLine, ...]


def render_digest(devices: Sequence[DeviceDigest]) -> str:
    """The lines of every device under its name, newest first; empty where there is nothing to tell."""
    speaking = [device for device in devices if device.lines]
    speaking.sort(key=lambda device: max(line.date for line in device.lines), reverse=True)
    speaking = speaking[:DEVICES_LIMIT]
    names = [summarize(device.name, NAME_LENGTH) or device.device_id[:ID_LENGTH] for device in speaking]
    parts: list[str] = []
    for device, name in zip(speaking, names, strict=True):
        title = f"{name}（{one_line(device.device_id)[:ID_LENGTH]}）" if names.count(name) > 1 else name
        lines = sorted(device.lines, key=lambda line: line.date, reverse=True)[:LINES_LIMIT]
        parts.append("\n".join((f"### {title}", *(_line(line) for line in lines))))
    return "\n\n".join((HEADING, *parts)) + "\n" if parts else ""


def _line(line: DigestLine) -> str:
    """One line with its day in front; the bullet it had goes."""
    text = " ".join(part.strip() for part in lines_of(line.text)).lstrip()
    said = text[2:] if text[:2] in {"- ", "* ", "+ "} else text
    return f"- {day_label(line.date)} {summarize(said, LINE_LENGTH)}"
