"""Write docs/events.md from the event catalogue: `python -m tests.event_catalogue`."""

from collections.abc import Iterator
from typing import Final

from sync.log.event_catalogue import CATALOGUE
from sync.log.event_types import EventType
from tests.support import REPOSITORY

DOCUMENT: Final = REPOSITORY / "docs" / "events.md"
_HEADER: Final = """\
# Event types

Generated from `sync/log/event_catalogue.py` by `python -m tests.event_catalogue`; do not edit.

Everything that the product remembers is an event. An event of a type that is not listed here is kept, searched and
replicated too: its readers may come later. The JSONL export, retention and replication read every event; the column
"Read by" names the readers that treat a type in their own way. `?` marks a payload field that may be missing, `#` a
number, `outer.inner` a field of an object. An event whose reach is "this device" is never sent to the server. Types
with an asterisk are recorded by this program alone: `events append` refuses them.

The envelope says where an event was recorded (`door`), which no program can set. Whatever is appended through
`events append`, hooks or `daily/add` has the door `program`, and its author is a program, whatever its type or `origin`
says ([decision 042](decisions/042-authorship.md)). When an event leaves its device, it gets a `signature` of the
device's key over the envelope and the payload.

Without `PRIVACY__STORE_PROGRAM_MESSAGES`, only the listed fields of an event that a program appends or a file brings
are stored, and numbers; of a `message`, role and length (an import keeps its beginning). Of fields beside the payload,
numbers and strings of at most 64 ASCII characters without a blank stay, unless their name is that of a text (`text`,
`content`, `output` …). A type that is not listed here is kept whole, redacted.
"""


def render_document() -> str:
    """Return the content of docs/events.md."""
    return "\n".join([_HEADER, *(line for title, types in CATALOGUE.items() for line in _section(title, types))])


def _section(title: str, types: tuple[EventType, ...]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| Type | Meaning | Payload | Emitted by | Read by | Reach |"
    yield "|---|---|---|---|---|---|"
    for one in types:
        emitted_by = ", ".join(name if " " in name else f"`{name}`" for name in one.emitted_by)
        cells = (
            f"`{one.name}`" + (" *" if one.is_internal else ""),
            one.meaning,
            ", ".join(f"`{field}`" if " " not in field else field for field in one.payload),
            emitted_by or "nothing yet",
            ", ".join(one.read_by),
            "this device" if one.is_device_only else "all devices",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


if __name__ == "__main__":
    DOCUMENT.write_text(render_document(), encoding="utf-8")
