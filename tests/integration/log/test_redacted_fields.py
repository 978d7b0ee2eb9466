"""Door × field: a value that one field names as a secret is in no field of the event, whatever its type and door."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from sync.errors import InvalidInput
from sync.log.event_catalogue import EVENT_TYPES, INTERNAL_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft
from tests.support import REDACTOR

SECRET: Final = "hunter2xyz"
SAID: Final = f"决定服务器密码是 {SECRET}"
BUILDER: Final = DraftBuilder(REDACTOR, store_messages=True, local_redactor=REDACTOR)
DOORS: Final[dict[str, Callable[[dict[str, Any]], EventDraft]]] = {
    "append": BUILDER.for_other_programs().build_appended,
    "batch": lambda event: BUILDER.for_other_programs().build_batch([event])[0],
    "import": BUILDER.build,
    "import of messages that are not stored": DraftBuilder(REDACTOR).build,
}
UNKNOWN: Final = "of_tomorrow"
FIELDS: Final = {
    **{
        name: [field.rstrip("?#") for field in one.payload if " " not in field and "." not in field]
        for name, one in EVENT_TYPES.items()
    },
    UNKNOWN: ["text"],
}


def events(event_type: str) -> list[dict[str, Any]]:
    """Events that name the secret in one field, and have it bare in each other one, as a string or in a list."""
    fields = [*FIELDS[event_type], "of_program"]
    found: list[dict[str, Any]] = []
    for place in (*fields, None):
        bare = {field: ([SECRET] if "s" in field[-1:] else SECRET) for field in fields if field != place}
        said = {} if place is None else {place: [SAID] if "s" in place[-1:] else SAID}
        extra = {"of_envelope": SAID if place is None else SECRET}
        found.append({"type": event_type, "payload": {**bare, **said}, **extra})
    return found


def built(door: str, event: dict[str, Any]) -> EventDraft | None:
    """The draft, without the fields that must not hold such a text; None if its named field is one of them."""
    payload = dict(event["payload"])
    while True:
        try:
            return DOORS[door]({**event, "payload": payload})
        except InvalidInput as error:
            name = (
                (error.field or "")
                .removeprefix("events[0].")
                .removeprefix("payload.")
                .partition(".")[0]
                .partition("[")[0]
            )
            if name not in payload:
                return None
            if SAID in str(payload.pop(name)):
                return None


@pytest.mark.parametrize(
    ("door", "event_type"),
    [
        (door, name)
        for door in sorted(DOORS)
        for name in sorted(FIELDS)
        if "import" in door or name not in INTERNAL_TYPES
    ],
)
def test_a_secret_is_in_no_field_of_an_event(door: str, event_type: str) -> None:
    drafts = [draft for event in events(event_type) if (draft := built(door, event)) is not None]
    assert drafts, "the door takes no event of this type"
    for draft in drafts:
        assert SECRET not in str(draft.payload.value)
        assert draft.extra is None or SECRET not in str(draft.extra.value)
