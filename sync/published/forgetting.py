"""What a wish to forget by words, source or time means."""

from typing import TypedDict


class MeantJson(TypedDict):
    """An event that a wish means; `text`: the beginning of what it says, empty where only the cloud has it still."""

    eventId: str
    ts: str
    type: str
    deviceId: str
    projectId: str
    text: str


class ForgettingJson(TypedDict):
    """`found`: events that are meant, the first hundred of them in `events`; `forgotten`: with what says the same."""

    found: int
    events: list[MeantJson]
    dryRun: bool
    forgotten: list[str]
